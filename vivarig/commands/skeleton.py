"""``vivarig skeleton``: from virtual markers to joints."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np

from calibration.arrays import Floats, Ints
from calibration.errors import InputError
from capture.recording import load_recording
from capture.results import create_results, open_results, text_array
from skeleton.bodies import BODIES, load_body, load_skeleton_toml
from skeleton.fits import REASONS, SkeletonFit
from skeleton.marker_sets import LANDMARK, MarkerSet, builtin_markers, load_marker_set
from skeleton.scaling import Scaling, scale_body
from skeleton.spring_ik import Springs, fit_skeleton
from skeleton.spring_window import fit_smoothly
from skeleton.tree import Skeleton
from tracking.subject_skeleton import load_subject_skeleton
from vivarig.bead_springs import hold_beads, load_bead_springs
from vivarig.progress import progress_callback
from vivarig.reporting import CommandReport

__all__ = ["EXAMPLE", "HELP", "add_arguments", "run", "write_skeleton"]

HELP = "Recover the skeleton from the markers of results/track.h5 into results/skeleton.h5."
EXAMPLE = """  vivarig skeleton mouse_07
  vivarig skeleton mouse_07 --smooth 0 --no-scaling"""

#: How far a segment's length factor may lie from the whole body's: a tracked surface carries its template's
#: proportions, so it says less about them than markers on skin do.
LENGTH_SD = 0.02


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("recording", type=Path, help="recording folder")
    parser.add_argument(
        "--body", default=None, help="mouse, rat or human, or a subject folder (default: the recording's)"
    )
    parser.add_argument(
        "--no-scaling", action="store_true", help="keep the body's own segment lengths and marker places"
    )
    parser.add_argument(
        "--cutoff", type=float, default=4.0, metavar="SD", help="markers farther off than this many sd are wrong ones"
    )
    parser.add_argument(
        "--smooth",
        type=float,
        default=0.02,
        metavar="S",
        help="time in which a joint may change its speed fully, seconds (default 0.02); 0 fits each frame alone",
    )
    parser.add_argument(
        "--no-beads", action="store_true", help="leave results/beads.h5 aside: the skin alone (default: stiff springs)"
    )


def _subject(name: str, folder: Path) -> tuple[Skeleton, MarkerSet]:
    """Return body and markers of a built-in body or of a subject folder, whose own files come first."""
    if name in BODIES:
        return load_body(name), builtin_markers(name)
    place = next((path for path in (folder / name, Path(name)) if path.is_dir()), None)
    if place is None:
        raise InputError(f"unknown subject '{name}'; built in are {', '.join(BODIES)}, or give a subject folder")
    if not (place / "skeleton.toml").is_file():
        bones = load_subject_skeleton(place)
        return bones.skeleton, bones.markers
    body = load_skeleton_toml(place / "skeleton.toml")
    own = place / "markers.toml"
    return body, load_marker_set(own) if own.is_file() else builtin_markers(body.name)


def _words(values: object) -> tuple[str, ...]:
    return tuple(value.decode() if isinstance(value, bytes) else str(value) for value in np.asarray(values))


def write_skeleton(
    path: Path,
    fit: SkeletonFit,
    body: Skeleton,
    *,
    rate_hz: float,
    parameters: dict[str, object],
    scaling: Scaling | None,
    cage_joints: Floats | None,
    cage_names: tuple[str, ...],
    markerless: SkeletonFit | None = None,
) -> None:
    """Write results/skeleton.h5."""
    landmarks = body.landmarks(body.forward(fit.coordinates))
    with create_results(path, stage="skeleton", parameters=parameters) as file:
        file.attrs["body"] = body.name
        file.attrs["rate_hz"] = rate_hz
        file["joint_names"] = text_array(list(body.joint_names))
        file["joint_parents"] = body.parents
        file["coordinate_names"] = text_array(list(body.coordinate_names))
        file["marker_names"] = text_array(list(fit.marker_names))
        file["reasons"] = text_array(list(REASONS))
        for name, values in (
            ("positions", fit.positions),
            ("rotations", fit.rotations),
            ("coordinates", fit.coordinates),
            ("sigma", fit.sigma),
            ("marker_residuals", fit.residuals),
            ("marker_weights", fit.weights),
            ("trust", fit.trust.astype(np.uint8)),
            ("reason", fit.reason.astype(np.uint8)),
            ("iterations", fit.iterations),
            ("landmarks", landmarks[1]),
        ):
            file.create_dataset(name, data=values, track_times=False)
        file["landmark_names"] = text_array(list(landmarks[0]))
        # Bone offsets of the subject: what a viewer needs to draw it.
        file["joint_offsets"] = np.array([joint.offset for joint in body.joints])
        if scaling is not None:
            group = file.create_group("scaling")
            group["factors"] = np.array([scaling.factors[name] for name in body.joint_names])
            group["factor_sd"] = np.array([scaling.factor_sd[name] for name in body.joint_names])
            group["marker_offsets"] = scaling.marker_set.offsets
            group["marker_offset_sd"] = scaling.offset_sd
            group["marker_names"] = text_array(list(scaling.marker_set.names))
            group["rms_mm"] = np.array(scaling.rms_mm)
        if markerless is not None:
            # What the skin alone says, where X-ray beads took part: they cannot judge a fit that they made.
            group = file.create_group("markerless")
            group.create_dataset("positions", data=markerless.positions, track_times=False)
            group.create_dataset("rotations", data=markerless.rotations, track_times=False)
        if cage_joints is not None:
            file.create_dataset("cage_joints", data=cage_joints, track_times=False)
            file["cage_joint_names"] = text_array(list(cage_names))


def _read_track(path: Path) -> tuple[tuple[str, ...], Floats, Floats | None, Floats | None, tuple[str, ...], Ints]:
    """Return marker names, markers (T, M, 3), sigma, cage joints with their names, and trust (T,)."""
    with open_results(path, stage="track") as file:
        if "markers" not in file or "marker_names" not in file:
            raise InputError(f"{path}: holds no markers; run `vivarig track` again")
        names = _words(file["marker_names"][:])
        markers = np.asarray(file["markers"][:], dtype=np.float64)
        sigma = _optional(file, "marker_sigma", "sigma")
        cage = _optional(file, "cage_joints")
        cage_names = _words(file["cage_joint_names"][:]) if "cage_joint_names" in file else ()
        trust = (
            np.asarray(file["trust"][:], dtype=np.int64) if "trust" in file else np.zeros(len(markers), dtype=np.int64)
        )
    return names, markers, sigma, cage, cage_names, trust


def _with_carried_joints(
    body: Skeleton,
    markers: MarkerSet,
    names: tuple[str, ...],
    points: Floats,
    sigma: Floats | None,
    cage: Floats,
    cage_names: tuple[str, ...],
) -> tuple[MarkerSet, tuple[str, ...], Floats, Floats | None]:
    """Add the joint centres that the cage carried to the markers: what the surface alone leaves open is their depth.

    Their uncertainty is that of the frame's typical marker; without markers there are no joints either.
    """
    more = tuple(LANDMARK + name for name in cage_names)
    seen = np.isfinite(points[..., 0]).sum(axis=1) > 0
    cage = np.where(seen[:, None, None], cage, np.nan)
    if sigma is not None:
        typical = np.full(len(sigma), np.nan)
        typical[seen] = np.nanmedian(sigma[seen], axis=1)
        sigma = np.concatenate([sigma, np.repeat(typical[:, None], len(more), axis=1)], axis=1)
    return markers.with_landmarks(body), (*names, *more), np.concatenate([points, cage], axis=1), sigma


def _place_sd(markers: MarkerSet) -> Floats:
    """(M,) how far a marker may lie from its generic place, mm: a joint centre not at all."""
    return np.where([name.startswith(LANDMARK) for name in markers.names], 0.0, 3.0 * markers.sd_mm)


def _surface_only(fit: SkeletonFit) -> SkeletonFit:
    """Return the fit with the residuals and weights of surface markers alone."""
    keep = [index for index, name in enumerate(fit.marker_names) if not name.startswith(LANDMARK)]
    return replace(
        fit,
        marker_names=tuple(fit.marker_names[index] for index in keep),
        residuals=fit.residuals[:, keep],
        weights=fit.weights[:, keep],
    )


def _optional(file: h5py.File, *names: str) -> Floats | None:
    for name in names:
        if name in file:
            return np.asarray(file[name][:], dtype=np.float64)
    return None


def run(args: argparse.Namespace) -> CommandReport:
    """Fit the skeleton."""
    recording = load_recording(args.recording)
    subject = args.body or recording.subject
    if subject is None:
        raise InputError(f"{recording.folder}: recording.toml names no subject; pass --body mouse, rat or human")
    body, markers = _subject(str(subject), recording.folder)
    names, points, sigma, cage, cage_names, tracked = _read_track(recording.results / "track.h5")
    springs = Springs(cutoff=args.cutoff)
    if cage is not None:
        markers, names, points, sigma = _with_carried_joints(body, markers, names, points, sigma, cage, cage_names)
    scaling = None
    if not args.no_scaling:
        good = points.copy()
        good[tracked >= 2] = np.nan  # a frame that tracking lost says nothing about lengths
        usable = good if np.isfinite(good).any() else points
        with progress_callback("scaling") as on_progress:
            scaling = scale_body(
                body, names, usable, sigma, marker_set=markers, springs=springs, length_sd=LENGTH_SD,
                offset_sd=_place_sd(markers), on_progress=on_progress,
            )  # fmt: skip
        body, markers = scaling.skeleton, scaling.marker_set

    def fitted(labels: Sequence[str], at: Floats, noise: Floats | None, held: MarkerSet) -> SkeletonFit:
        with progress_callback("skeleton") as on_progress:
            found = fit_skeleton(body, labels, at, noise, marker_set=held, springs=springs, on_progress=on_progress)
        if args.smooth <= 0:
            return found
        with progress_callback("smoothing") as on_progress:
            return fit_smoothly(
                body, labels, at, noise, marker_set=held, springs=springs, rate_hz=recording.rate_hz,
                time_s=args.smooth, start=found, on_progress=on_progress,
            )  # fmt: skip

    fit = fitted(names, points, sigma, markers)
    markerless: SkeletonFit | None = None
    beads = None if args.no_beads else load_bead_springs(recording, body.name, body.joint_names)
    if beads is not None:
        markerless, fit = fit, hold_beads(beads, fit, names, points, sigma, markers, fitted)
    fit = _surface_only(fit)
    parameters = {
        "body": str(subject), "cutoff": args.cutoff, "scaling": scaling is not None, "smooth_s": args.smooth,
        "beads": 0 if beads is None else len(beads.names),
    }  # fmt: skip
    write_skeleton(
        recording.results / "skeleton.h5", fit, body, rate_hz=recording.rate_hz, parameters=parameters, scaling=scaling,
        cage_joints=cage, cage_names=cage_names, markerless=markerless,
    )  # fmt: skip
    report = _report(fit, body, scaling)
    if beads is not None and markerless is not None:
        report.lines.append(
            f"  beads: {len(beads.names)} X-ray beads hold their segments"
            f" ({', '.join(dict.fromkeys(beads.segments))}); the fit without them is kept beside it, for evaluate"
        )
    return report


def _report(fit: SkeletonFit, body: Skeleton, scaling: Scaling | None) -> CommandReport:
    finite = np.isfinite(fit.sigma)
    sigma = float(np.median(fit.sigma[finite])) if finite.any() else float("nan")
    lines = [
        f"{fit.frames} frames, body '{body.name}' with {len(body.joints)} joints: results/skeleton.h5",
        f"  markers: {len(fit.marker_names)}, residual median {fit.median_mm:.2f} mm, rms {fit.rms_mm:.2f} mm",
        f"  joints: 1 sigma median {sigma:.2f} mm; trusted {100 * fit.trusted_share:.1f} % of frames",
    ]
    numbers: dict[str, object] = {
        "frames": fit.frames,
        "body": body.name,
        "markers": len(fit.marker_names),
        "residual_median_mm": fit.median_mm,
        "residual_rms_mm": fit.rms_mm,
        "sigma_median_mm": sigma,
        "trusted_share": fit.trusted_share,
        "iterations_mean": float(fit.iterations.mean()),
    }
    if scaling is not None:
        low = min(scaling.factors, key=lambda name: scaling.factors[name])
        high = max(scaling.factors, key=lambda name: scaling.factors[name])
        lines.append(
            f"  scaling: residual {scaling.rms_mm[0]:.2f} -> {scaling.rms_mm[1]:.2f} mm; lengths from "
            f"{scaling.factors[low]:.3f} ({low}) to {scaling.factors[high]:.3f} ({high}) of the built-in "
            "body's"
        )
        numbers["scaling_factors"] = scaling.factors
        numbers["scaling_factor_sd"] = scaling.factor_sd
    for code in range(1, len(REASONS)):
        count = int(np.sum(fit.reason == code))
        if count:
            lines.append(f"  {count} frames: {REASONS[code]}")
    ok = fit.trusted_share >= 0.5
    return CommandReport(
        lines, numbers, ok, "" if ok else f"only {100 * fit.trusted_share:.0f} % of frames are trusted"
    )
