"""The silhouette models by name, and how one is made for a camera."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import cv2
import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Floats
from calibration.foundation.errors import InputError, nearest
from capture.backgrounds.adaptive import NearestSamples, RunningMixture
from capture.backgrounds.appearance import AppearanceModel, Surroundings, sitting_place
from capture.backgrounds.background import (
    MOST_SPREAD,
    SCALE,
    NoiseCurve,
    background_of,
    empty_scene,
    noise_over,
    steadied,
)
from capture.backgrounds.evidence import Evidence, Window
from capture.backgrounds.keys import AROUND_PX, ChromaModel, ThresholdModel, key_colour
from capture.backgrounds.mixture import fit_mixture
from capture.mask_boxes import box_of
from capture.recordings.recording import Footage
from capture.silhouettes.cleanup import Cleaning, Holes, silhouette_and_holes, silhouette_of
from capture.silhouettes.difference import FollowingModel, PlateModel, matched_channels
from capture.silhouettes.doubts import Doubt, doubt_of
from capture.silhouettes.edges.half_way import drop_ground
from capture.silhouettes.edges.keyed_edge import keyed_edge
from capture.silhouettes.ground import uncovered_ground
from capture.silhouettes.still import activity, still_parts

__all__ = [
    "MODELS",
    "CameraModel",
    "EvidenceModel",
    "ModelOptions",
    "SittingModel",
    "SittingSubject",
    "camera_model",
    "is_grey",
]

MODELS = {
    "auto": "masks where the recording brings them, else plate where it names a background, else moving",
    "plate": "difference from the median of a background plate or clip",
    "mixture": "a Gaussian mixture per pixel of a background clip",
    "moving": "background estimated from the recording itself; a subject that sits still is learnt by its looks",
    "mog2": "adaptive mixture, for light that drifts",
    "knn": "adaptive nearest neighbours, for light that drifts",
    "chroma": "distance from the colour of a green or blue screen",
    "backlight": "dark subject before an infrared backlight",
    "bright": "bright subject on a dark ground",
    "masks": "silhouettes that the recording brings",
}
_NEED_BACKGROUND = ("plate", "mixture")
_COVERED = 0.6
#: Of the images spread over the recording, these many are cut out to see what moves.
_CUT_OUT = 12
#: Darkest ratio taken for a shadow in colour (False) and in grey (True), where no hue tells dark skin from shade.
_SHADOW_FLOORS = {False: 0.42, True: 0.5}
#: Holes of up to this share of the silhouette are looked at again without the shadow rule.
_FALSE_SHADOW = 0.04


class EvidenceModel(Protocol):
    """Says for each pixel how little it looks like the background."""

    def evidence(self, image: Bytes) -> Bytes:
        """Return (H, W) the distance from the background in units of 1 / `SCALE` standard deviations."""
        ...


@dataclass(frozen=True)
class ModelOptions:
    """What the user may set; the rest is found.

    Attributes:
        model: one of `MODELS`.
        cleaning: thresholds and clean-up.
        shadow_floor: darkest brightness ratio taken for a shadow, 1: none; None: found by view agreement.
        repair: let the other views drop contradicted parts and fill holes.
        margin_px: pixels added around each silhouette; None: none, but for a sitting subject without plate, whose
            edge is least certain, `capture.silhouettes.sitting.SITTING_MARGIN` (a hull loses what any view loses).
        subjects: how many are to be told apart; None: as the recording says.
        matte: also store how much of each pixel along the edge is covered.
    """

    model: str = "auto"
    cleaning: Cleaning = field(default_factory=Cleaning)
    shadow_floor: float | None = None
    repair: bool = True
    margin_px: int | None = None
    subjects: int | None = None
    matte: bool = False


@dataclass(frozen=True, eq=False)
class CameraModel:
    """A model made for one camera, with its clean-up.

    Attributes:
        name: which of `MODELS` it is.
        model: gives the evidence.
        cleaning: thresholds and clean-up.
        grey: whether images are read in grey.
        still: (H, W) pixels of parts that never move and are not the subject, or None.
    """

    name: str
    model: EvidenceModel
    cleaning: Cleaning
    grey: bool
    still: Bools | None = None

    @property
    def in_order(self) -> bool:
        """Whether the model has a state and must see every image once, in order."""
        return isinstance(self.model, FollowingModel)

    @property
    def filmed(self) -> bool:
        """Whether the empty scene was filmed, and not found in the recording itself."""
        return self.name in _NEED_BACKGROUND or (isinstance(self.model, FollowingModel) and self.model.filmed)

    def silhouette(self, image: Bytes) -> Bools:
        """Return the silhouette (H, W) in an image, and let a model that holds a state go on to the next."""
        if isinstance(self.model, ChromaModel):
            return _keyed(image, self.model, self.cleaning)
        known = self._known(image)
        if known is None:
            return silhouette_of(self.model.evidence(image), self.cleaning)
        mask = self._differing(image, *known)
        self._follow(image, mask, known[1].gain)
        return mask

    def silhouette_and_doubt(self, image: Bytes, out: Bools) -> Doubt | None:
        """Fill the silhouette (H, W) in an image as `silhouette` gives it; return what may be missing as `doubt` does.

        New memory of a large image's size would cost more than what is written to it. ``out`` must be empty.
        """
        known = self._known(image)
        if known is None:
            out[:] = self.silhouette(image)
            return None
        mask = self._differing(image, *known, out)
        doubt = self._doubt(image, mask, *known, known[1].rectangle())
        self._follow(image, mask, known[1].gain)
        return doubt

    def doubt(self, image: Bytes, mask: Bools) -> Doubt | None:
        """Return what may be missing from the silhouette of an image; None for models that know no shade."""
        known = self._known(image)
        return None if known is None else self._doubt(image, mask, *known)

    def _known(self, image: Bytes) -> tuple[PlateModel, Evidence] | None:
        """Return the background as it looks in an image, and how far that is from it; None if none is known."""
        model = self.model.now() if isinstance(self.model, FollowingModel) else self.model
        if not isinstance(model, PlateModel):
            return None
        known = model.evidence_of(image, model.light(image), self.cleaning)
        return model.as_seen(known), known

    def _doubt(
        self, image: Bytes, mask: Bools, model: PlateModel, known: Evidence, window: Window | None = None
    ) -> Doubt | None:
        """Return what may be missing from a silhouette; ``window``: rows and columns that hold all of it."""
        box, apart = box_of(mask, window), not self.filmed
        found = doubt_of(image, mask, model, self.cleaning, known.gain, apart=apart, known=known, box=box)
        return found if found is None or model is self.model else found.by_itself()

    def _follow(self, image: Bytes, mask: Bools, light: Floats) -> None:
        """Let a model that holds a state go on to the next image."""
        if isinstance(self.model, FollowingModel):
            self.model.follow(image, mask, light)

    def _differing(self, image: Bytes, model: PlateModel, known: Evidence, out: Bools | None = None) -> Bools:
        """Return the silhouette of what differs from a background of one look, by what was measured.

        ``out``: (H, W) where the silhouette is to be, empty so far.
        """
        here, evidence = known.rectangle(), known.shaded
        mask = np.zeros(evidence.shape, dtype=bool) if out is None else out
        if evidence[here].size == 0:
            return mask
        moving = evidence[here] if self.still is None else np.where(self.still[here], np.uint8(0), evidence[here])
        found, holes = silhouette_and_holes(moving, self.cleaning, known.plain[here] if self.filmed else None)
        if model.shadow_floor < 1.0:
            self._fill_false_shadows(found, holes, here, (image, model, known.gain, known))
        corner = (here[0].start, here[1].start)
        picture, ground = matched_channels(image, model.background), model.background.centre
        drop_ground(found, picture, ground, known.gain, corners=(corner, corner))
        mask[here] = found
        return mask

    def _fill_false_shadows(
        self,
        mask: Bools,
        holes: Holes,
        window: Window,
        seen: tuple[Bytes, PlateModel, Floats, Evidence],
    ) -> None:
        """Fill holes that only the shadow rule made: inside a body, a pixel unlike the background is no shadow.

        ``mask`` is of a window of the image, and changed in place.
        """
        asked = np.flatnonzero(holes.areas <= _FALSE_SHADOW * float(np.count_nonzero(mask)))
        if len(asked) == 0:
            return
        image, model, light, known = seen
        x, y, w, h = holes.runs.rectangle(holes.runs.all())
        top, left = window[0].start + y, window[1].start + x
        _, plain = model.both_in(image, (slice(top, top + h), slice(left, left + w)), light, known)
        for n in asked.tolist():
            inside = holes.runs.drawn(np.arange(len(holes.runs.areas)) == holes.part[n])
            if np.median(plain[inside[y : y + h, x : x + w]]) >= self.cleaning.high * SCALE:
                mask |= inside


def _keyed(image: Bytes, model: ChromaModel, cleaning: Cleaning) -> Bools:
    """Return the silhouette (H, W) before a screen."""
    evidence = model.evidence(image)
    mask = silhouette_of(evidence, cleaning)
    x, y, w, h = box_of(mask)
    if w == 0:
        return mask
    here = (slice(max(0, y - AROUND_PX), y + h + AROUND_PX), slice(max(0, x - AROUND_PX), x + w + AROUND_PX))
    picture, some, near = image[here], mask[here], evidence[here]
    some = keyed_edge(some, picture, model.within(here).screen_around(picture, some, near), model.sigma)
    # What a codec left beside the edge are specks now; pieces of a thin part lie a pixel or two apart.
    joined = cv2.dilate(some.view(np.uint8), np.ones((3, 3), np.uint8)).view(np.bool_)
    kept = silhouette_of(np.where(joined, np.maximum(near, np.uint8(cleaning.low * SCALE)), np.uint8(0)), cleaning)
    mask[here] = some & kept
    return mask


@dataclass(frozen=True, eq=False)
class SittingSubject:
    """A camera whose subject hardly leaves its place, not yet learnt (`capture.silhouettes.sitting`).

    Attributes:
        place: where it moves a little.
        grey: whether images are read in grey.
        moving: the model of it if it moves after all, as other cameras may see.
    """

    place: Surroundings
    grey: bool
    moving: CameraModel


@dataclass(frozen=True, eq=False)
class SittingModel:
    """A model of a sitting subject, made for one camera.

    Attributes:
        looks: gives the odds.
        grey: whether images are read in grey.
    """

    looks: AppearanceModel
    grey: bool
    name: str = "still"


def is_grey(image: Bytes) -> bool:
    """Return whether an image has no colour (tried on some of its pixels)."""
    if image.ndim == 2:
        return True
    some = image[::8, ::8].astype(np.int16)
    return bool((np.abs(some - some[:, :, :1]) <= 2).all())


def camera_model(footage: Footage, options: ModelOptions, samples: Bytes) -> CameraModel | SittingSubject:
    """Make the model of a camera from its footage and images (n, H, W, C) spread over the recording."""
    if options.model not in MODELS:
        raise InputError(f"unknown silhouette model '{options.model}'; {nearest(options.model, MODELS)}")
    name = options.model
    if name == "auto":
        name = "moving" if footage.background is None else "plate"
    if name in _NEED_BACKGROUND and footage.background is None:
        raise InputError(
            f"camera '{footage.name}': the {name} model needs a background in recording.toml; "
            "give one or take --model moving"
        )
    grey = is_grey(samples[0])
    if grey and samples.shape[3] == 3:
        samples = np.ascontiguousarray(samples[:, :, :, :1])
    model, place = _evidence_model(name, footage, options, samples, grey)
    made = CameraModel(name, model, options.cleaning, grey)
    if isinstance(model, PlateModel):
        some = _some(samples)
        masks = [made.silhouette(image) for image in some]
        moves = activity(some, model.background.spread.max(axis=2))
        still = still_parts(masks, moves)
        if still.any():
            made = replace(made, still=still)
    return made if place is None else SittingSubject(place, grey, made)


def _some(samples: Bytes) -> list[Bytes]:
    """Return a few of the images, as a camera gives them."""
    chosen = samples[:: max(1, len(samples) // _CUT_OUT)]
    return [image[:, :, 0] if image.shape[2] == 1 else image for image in chosen]


def _sitting_place(options: ModelOptions, samples: Bytes, grey: bool, noise: NoiseCurve) -> Surroundings | None:
    """Return where a sitting subject lives; None if the subject moves.

    Against the median of the recording a subject that moves is found all over the region that it livens, at one time
    or another; one that sits, at its rim only.
    """
    some = _some(samples)
    place = sitting_place(some)
    if place is None:
        return None
    median = background_of(samples, noise, most_spread=2.0)
    model = CameraModel("moving", PlateModel(median, shadow_floor=_floor(options, grey)), options.cleaning, grey)
    found = np.logical_or.reduce([model.silhouette(image) for image in some])
    sits = (found[place.window] & place.lively).sum() < _COVERED * place.lively.sum()
    return place if sits else None


def _stands_out(model: PlateModel, hidden: Bools, samples: Sequence[Bytes], cleaning: Cleaning) -> bool:
    """Return whether the subject differs clearly from the ground that was filled in where none was ever seen."""
    if not hidden.any():
        return False
    strong = [np.mean(model.evidence(image)[hidden] >= cleaning.high * SCALE) for image in samples]
    return bool(np.median(strong) >= _COVERED)


def _floor(options: ModelOptions, grey: bool) -> float:
    return _SHADOW_FLOORS[grey] if options.shadow_floor is None else options.shadow_floor


def _evidence_model(
    name: str, footage: Footage, options: ModelOptions, samples: Bytes, grey: bool
) -> tuple[EvidenceModel, Surroundings | None]:
    """Return a camera's model, and where its subject sits if that would be learnt better by its looks."""
    floor = _floor(options, grey)
    if name == "chroma":
        return key_colour(samples, floor), None
    if name in ("backlight", "bright"):
        return ThresholdModel(dark=name == "backlight"), None
    samples = steadied(samples)
    noise = noise_over(samples)
    if name == "plate" and footage.background is not None:
        plate = background_of(_empty_scene(footage, grey), noise, most_spread=MOST_SPREAD)
        return PlateModel(plate, shadow_floor=floor), None
    if name == "mixture" and footage.background is not None:
        first, *others = fit_mixture(list(_empty_scene(footage, grey)), noise)
        return PlateModel(first, shadow_floor=floor, states=tuple(others)), None
    if name == "moving":
        place = _sitting_place(options, samples, grey, noise)
        ground = uncovered_ground(samples, noise, floor)
        found = PlateModel(ground.background, shadow_floor=floor)
        if place is not None and not _stands_out(found, ~ground.seen, _some(samples), options.cleaning):
            return found, place
        return found, None
    if footage.background is not None:
        empty = list(_empty_scene(footage, grey))
    else:
        centre = uncovered_ground(samples, noise, floor).background.centre
        empty = [np.clip(np.rint(centre), 0, 255).astype(np.uint8)]
    scene = RunningMixture(empty, noise) if name == "mog2" else NearestSamples(empty, noise)
    return FollowingModel(scene, shadow_floor=floor, filmed=footage.background is not None), None


def _empty_scene(footage: Footage, grey: bool) -> Bytes:
    """Return images (n, H, W, C) of a camera's empty scene."""
    return empty_scene(footage.backgrounds, footage.background_frames, gray=grey)
