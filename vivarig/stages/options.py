"""The options of each stage: one frozen dataclass per stage, the single place that knows names, bounds and defaults.

The command line (`vivarig.commands.stage_arguments`), ``--set`` and the tables of recording.toml are made from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from calibration.foundation.errors import InputError, nearest
from capture.recordings.recording import Recording
from capture.silhouettes.models import MODELS
from vivarig.console.option_types import number, whole_number

__all__ = [
    "STAGE_OPTIONS",
    "CleanOptions",
    "HullOptions",
    "ReportOptions",
    "SilhouetteOptions",
    "SkeletonOptions",
    "StageOptions",
    "TrackOptions",
    "changed",
    "differences",
    "flag_of",
    "own_options",
]

O = TypeVar("O", bound="StageOptions")  # noqa: E741  (one letter for the one type)


def option(
    default: Any,
    text: str,
    *,
    read: Callable[[str], Any] | None = None,
    choices: tuple[str, ...] = (),
    metavar: str | None = None,
    flag: str = "",
) -> Any:
    """Declare an option: its default, its line of help, how it is read from text, and its flag if not its name."""
    return field(
        default=default,
        metadata={"help": text, "read": read or str, "choices": choices, "metavar": metavar, "flag": flag},
    )


def scale_factor(text: str) -> float:
    """Read the size of a subject against its template."""
    try:
        scale = float(text)
    except ValueError:
        raise InputError(f"wanted a number or auto, got '{text}'") from None
    if not 0.2 < scale < 5.0:
        raise InputError(f"must lie between 0.2 and 5, got {text}")
    return scale


@dataclass(frozen=True)
class StageOptions:
    """What all options have in common: a value out of bounds is refused where it is given."""

    def __post_init__(self) -> None:
        """Check each value as if it had been read from text."""
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(one.default, bool):
                if not isinstance(value, bool):
                    raise InputError(f"{one.name}: wanted true or false, got {value!r}")
            elif value is not None and value != one.default:
                object.__setattr__(self, one.name, _read(one.metadata, one.name, str(value)))


def _read(metadata: Mapping[str, Any], name: str, text: str) -> Any:
    choices = metadata["choices"]
    if choices and text not in choices:
        raise InputError(f"{name}: wanted one of {', '.join(choices)}, got '{text}'")
    try:
        return metadata["read"](text)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


@dataclass(frozen=True)
class SilhouetteOptions(StageOptions):
    """How the subject is cut out of the videos.

    Attributes:
        model: one of `capture.silhouettes.MODELS`.
        threshold: strong evidence, sigma; None: the model's own.
        shadow_floor: darkest brightness ratio taken for a shadow; None: found.
        repair: whether views mend each other.
        margin_px: pixels added around each silhouette; None: the model's own.
        matte: whether to store how much of each pixel along the edge is covered.
        subjects: how many to tell apart; None: as the recording says.
        sheet: contact sheet to write, if any.
        start, stop: frames to cut out; None: to the end.
    """

    model: str = option(
        "auto", "; ".join(f"{name}: {text}" for name, text in MODELS.items()), choices=tuple(MODELS)
    )  # fmt: skip
    threshold: float | None = option(
        None, "strong evidence; weak is 0.45 of it", read=number(above=0), metavar="SIGMA"
    )  # fmt: skip
    shadow_floor: float | None = option(
        None,
        "darkest brightness ratio taken for a shadow, 1: none (default: found by view agreement)",
        read=number(above=0, most=1),
    )
    repair: bool = option(True, "store silhouettes as each camera sees them")
    margin_px: int | None = option(
        None,
        "pixels added around each silhouette (default: 0; 0.25 %% of the image's longer side for a subject that sits "
        "and has no plate)",
        read=whole_number(0),
        metavar="PX",
        flag="margin",
    )
    matte: bool = option(
        False, "also store how much of each pixel along the edge is covered; `vivarig hull` then uses it"
    )
    subjects: int | None = option(
        None,
        "how many subjects to tell apart (default: as recording.toml says, else 1); each becomes a recording of its "
        "own, results/subject_1, ...",
        read=whole_number(1),
        metavar="N",
    )
    sheet: Path | None = option(
        None, "also write a contact sheet (PNG or JPEG) for your eyes", read=Path, metavar="FILE"
    )
    start: int = option(0, "first frame", read=whole_number(0))
    stop: int | None = option(None, "frame to stop before", read=whole_number(0))


@dataclass(frozen=True)
class HullOptions(StageOptions):
    """How hulls are made.

    Attributes:
        voxel_mm: side of a cell, mm; None: two pixels at the subject, at most 104 cells along a side.
        robust: views that may be wrong at any point.
        engine: "implicit" or "exact".
        posture: CSV table to write, if any.
    """

    voxel_mm: float | None = option(
        None,
        "side of a cell (default: 2 pixels at the subject, at most 104 cells a side)",
        read=number(above=0),
        metavar="MM",
        flag="voxel",
    )
    robust: int = option(0, "number of views that may be wrong at any point", read=whole_number(0), metavar="K")
    engine: str = option(
        "implicit", "implicit: fast, closed mesh of a field; exact: polyhedron", choices=("implicit", "exact")
    )
    posture: Path | None = option(
        None, "also write centroid, axes, length, height, volume and speed as CSV", read=Path, metavar="FILE"
    )


#: What a template can be laid on.
DATA = ("outlines", "hull", "hull-one-sided")


@dataclass(frozen=True)
class TrackOptions(StageOptions):
    """How the template is fitted.

    Attributes:
        subject: built-in body or subject folder; None: the recording's.
        scale: size against the template; None: estimated.
        adapt: whether lengths and girths of a built-in body are estimated.
        start: frame to start at; None: chosen.
        frames: "A:B", only these; None: all.
        smooth: smoothing sweeps.
        texture: whether marks on fur and cloth tie frames together.
        data: what the template is laid on, one of `DATA`.
        redraw: whether silhouettes are drawn again with the template's help where views left out gain by it.
    """

    subject: str | None = option(None, "built-in body or subject folder (default: the recording's)", metavar="NAME")
    scale: float | None = option(
        None,
        "size of the subject against its template: a number (its lengths are then known), or auto to estimate it",
        read=lambda text: None if text == "auto" else scale_factor(text),
        metavar="FACTOR",
    )
    adapt: bool = option(
        True,
        "keep the built-in body's proportions: estimate its size only, not the lengths and girths of its parts",
    )
    start: int | None = option(None, "frame to start at (default: chosen)", read=whole_number(0), metavar="FRAME")
    frames: str | None = option(None, "only frames A to B - 1; the others stay untracked", metavar="A:B")
    smooth: int = option(1, "smoothing sweeps (default 1, 0 for none)", read=whole_number(0), metavar="N")
    texture: bool = option(True, "use silhouettes only, not the texture of fur or cloth in the images")
    data: str = option(
        "outlines",
        "what the template is laid on: outlines of the silhouettes (default), the frame's visual hull (hull), or the "
        "hull from the template's side alone, as published (hull-one-sided)",
        choices=DATA,
    )
    redraw: bool = option(
        True,
        "keep the silhouettes as they were cut out; by default things that stand still in them are taken off where the "
        "body fits much better without, and they are drawn again with the help of the template and of its colours "
        "where cameras that had no part in it agree with them better then (results/redrawn.h5)",
    )


@dataclass(frozen=True)
class SkeletonOptions(StageOptions):
    """How the skeleton is recovered.

    Attributes:
        body: mouse, rat, human or a subject folder; None: the track's.
        scaling: whether segment lengths and marker places are estimated.
        cutoff: markers farther off than this many sd are wrong ones.
        smooth_s: time in which a joint may change its speed fully, s; 0: each frame alone.
        beads: whether X-ray beads hold their segments.
        clean: whether the feet are made to stand, too, as `vivarig clean` does.
        pose_space: file of `vivarig train --skeleton`: poses near its own are likelier; None: none.
        prior: pose library of `vivarig train --skeleton --poses`: as pose_space; None: none.
        fill_s: lost or doubtful stretches up to so long get the most likely motion, s; 0: none.
        sample: so many possible fillings are written beside it.
    """

    body: str | None = option(None, "mouse, rat or human, or a subject folder (default: the recording's)")
    scaling: bool = option(True, "keep the body's own segment lengths and marker places")
    cutoff: float = option(
        4.0, "markers farther off than this many sd are wrong ones", read=number(above=0), metavar="SD"
    )
    smooth_s: float = option(
        0.02,
        "time in which a joint may change its speed fully, seconds (default 0.02); 0 fits each frame alone",
        read=number(least=0),
        metavar="S",
        flag="smooth",
    )
    beads: bool = option(True, "leave results/beads.h5 aside: the skin alone (default: stiff springs)")
    clean: bool = option(False, "write results/clean.h5, too: feet that stand still, as `vivarig clean` does")
    pose_space: Path | None = option(
        None, "pull towards the poses of this pose space (of `vivarig train --skeleton`)", read=Path, metavar="NPZ"
    )
    prior: Path | None = option(
        None, "pull towards the poses of this library (of `vivarig train --skeleton --poses`)", read=Path, metavar="NPZ"
    )
    fill_s: float = option(
        0.0,
        "fill lost or doubtful stretches up to so long, seconds; marked as filled, never trusted (default 0: none)",
        read=number(least=0),
        metavar="S",
        flag="fill",
    )
    sample: int = option(
        0, "with --fill: write so many possible fillings, too", read=whole_number(least=0), metavar="N"
    )


@dataclass(frozen=True)
class CleanOptions(StageOptions):
    """How the feet are made to stand.

    Attributes:
        feet: whether they are; otherwise the edits alone are done.
        balance: whether the centre of mass follows what its support is moved by.
        ramp_s: time in which a hold sets in and ends, s.
        smooth_s: width of a low-pass on the correction, s; 0: none.
    """

    feet: bool = option(True, "leave the feet as they are: edits.toml alone")
    balance: bool = option(False, "let the centre of mass follow its support")
    ramp_s: float = option(
        0.03, "time in which a hold sets in and ends, seconds (default 0.03)", read=number(least=0), metavar="S",
        flag="ramp",
    )  # fmt: skip
    smooth_s: float = option(
        0.0, "smooth the correction (not the motion) over this time, seconds (default 0: not at all)",
        read=number(least=0), metavar="S", flag="smooth",
    )  # fmt: skip


@dataclass(frozen=True)
class ReportOptions(StageOptions):
    """Where the report goes.

    Attributes:
        output: HTML file; None: results/report.html.
    """

    output: Path | None = option(None, "where to write (default: results/report.html)", read=Path, metavar="HTML")


STAGE_OPTIONS: Mapping[str, type[StageOptions]] = {
    "silhouettes": SilhouetteOptions,
    "hull": HullOptions,
    "track": TrackOptions,
    "skeleton": SkeletonOptions,
    "clean": CleanOptions,
    "report": ReportOptions,
}


def flag_of(one: Any) -> str:
    """Return an option's flag without dashes: ``voxel``, or ``no-texture`` for what is on unless said."""
    name = one.metadata["flag"] or one.name.replace("_", "-")
    return f"no-{name}" if one.default is True else name


def changed(options: O, words: Mapping[str, Any], *, said: str) -> O:
    """Return options with some changed, each given by its flag or its name as text or as a plain value.

    Args:
        options: what to start from.
        words: flag or field name to value; a switch takes true or false.
        said: where the words come from, for messages: ``--set track`` or ``recording.toml: [track]``.
    """
    known: dict[str, tuple[Any, bool]] = {}
    for one in fields(options):
        known[one.name] = (one, False)
        known[flag_of(one)] = (one, one.default is True)
    values: dict[str, Any] = {}
    for name, value in words.items():
        if name not in known:
            raise InputError(f"{said}.{name}: no such option; {nearest(name, [k for k in known if k])}")
        one, inverted = known[name]
        if isinstance(one.default, bool):
            truth = {"true": True, "false": False}.get(str(value).lower())
            if truth is None:
                raise InputError(f"{said}.{name} is a switch; give it as {name}=true or {name}=false, got {value!r}")
            values[one.name] = truth != inverted
        else:
            try:
                values[one.name] = _read(one.metadata, name, str(value))
            except InputError as error:
                raise InputError(f"{said}.{error}") from None
    return type(options)(**{**{one.name: getattr(options, one.name) for one in fields(options)}, **values})


def differences(options: StageOptions, start: StageOptions) -> dict[str, str]:
    """Return what `changed` wants to make ``options`` of ``start``: field names to text."""
    values = {one.name: (getattr(options, one.name), getattr(start, one.name)) for one in fields(options)}
    return {name: str(value) for name, (value, before) in values.items() if value != before and value is not None}


def own_options(recording: Recording, kind: type[O]) -> O:
    """Return a stage's options as the recording's own file sets them, the others by default."""
    stage = next(name for name, options in STAGE_OPTIONS.items() if options is kind)
    return changed(kind(), recording.settings.get(stage, {}), said=f"{recording.folder / 'recording.toml'}: [{stage}]")
