"""The skeleton: from virtual markers to joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError
from calibration.foundation.once import once
from calibration.foundation.result_files import open_results
from calibration.foundation.spans import Span
from calibration.foundation.trust import Trust
from capture.recordings.recording import Recording
from skeleton.analysis.contacts import detect_contacts, foot_points, heel_points
from skeleton.analysis.foot_constraints import foot_constraints, foot_poses
from skeleton.analysis.foot_events import events_of
from skeleton.bodies.marker_sets import LANDMARK, MarkerSet
from skeleton.inverse_kinematics.fits import REASONS, TRUSTED, SkeletonFit
from skeleton.inverse_kinematics.scaling import Scaling, choose_frames, scale_body
from skeleton.inverse_kinematics.skeleton_file import SkeletonWriter, create_skeleton
from skeleton.inverse_kinematics.spring_ik import Springs, fit_skeleton
from skeleton.inverse_kinematics.spring_window import fit_smoothly
from skeleton.pose_spaces.guided_springs import check_pose_model, guided_springs, likely_poses
from skeleton.pose_spaces.library_files import load_pose_model
from skeleton.pose_spaces.pose_library import PoseLibrary
from skeleton.pose_spaces.principal_geodesics import PoseSpace
from skeleton.pose_spaces.skeleton_filling import FillReport, fill_skeleton_file
from skeleton.tree.joint_tree import Skeleton
from tracking.sequence.tracked_points import TrackedPoints
from tracking.subjects.skeleton import subject_body
from vivarig.console.progress import progress_callback
from vivarig.console.reporting import CommandReport
from vivarig.edits.edit_file import edits_file, load_edits
from vivarig.edits.frames import first_of
from vivarig.jobs.cutting import CHUNK, chunk_spans
from vivarig.mending.key_poses import hold_key_poses, signed_like
from vivarig.mending.skeleton_rows import around, edited_spans
from vivarig.mending.unedited import as_made
from vivarig.results.ground import ground_under
from vivarig.stages import clean
from vivarig.stages.joint_doubt import torn_from_surface, trust_by_joint, with_model_error
from vivarig.stages.options import CleanOptions, SkeletonOptions, own_options
from vivarig.stages.skeleton_chunks import fit_chunk, fit_chunks
from vivarig.xray.bead_springs import BeadSprings, hold_beads, load_bead_springs

__all__ = ["fit_ahead", "prepare_ahead", "run"]

#: How far a segment's length factor may lie from the whole body's: a tracked surface carries its template's
#: proportions, so it says less about them than markers on skin do.
LENGTH_SD = 0.02

_LOOKED_AT = 5_000
"""Frames, at least, that the report's medians are taken over."""


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


class _Fitting:
    """What a skeleton of a recording is fitted with: its body at the subject's lengths, its markers, and how."""

    def __init__(self, recording: Recording, options: SkeletonOptions) -> None:
        self.recording, self.options = recording, options
        self.tracked = TrackedPoints(recording.results / "track.h5")
        self.subject = options.body or self.tracked.subject or recording.subject
        if self.subject is None:
            raise InputError(f"{recording.folder}: recording.toml names no subject; pass --body mouse, rat or human")
        self.body, self.markers = subject_body(str(self.subject), recording.folder)
        if self.tracked.cage_names:
            self.markers = self.markers.with_landmarks(self.body)
        self._springs = Springs(cutoff=options.cutoff)
        # An edit of some frames changes neither the bones' lengths nor the others, which are fitted as tracked first.
        made = as_made(recording.results, "track.h5")
        self.unedited = self.tracked if made.parent == recording.results else TrackedPoints(made)
        self.seen: Ints = once("seen", self.unedited.seen)
        self.scaling: Scaling | None = None
        if options.scaling:
            self.scaling = once("scaling", self._scaled)
            self.body, self.markers = self.scaling.skeleton, self.scaling.marker_set
        self._likely = _pose_model(options, self.body)

    def _scaled(self) -> Scaling:
        return _scaled(self.body, self.markers, self.unedited, self.seen, self._springs)

    def fit(
        self, labels: Sequence[str], at: Floats, noise: Floats | None, held: MarkerSet, start: Floats | None = None
    ) -> SkeletonFit:
        """Fit the body to points; ``start`` is a pose (D,) to begin with."""
        pull, body = self._springs, self.body
        if self._likely is not None:
            pull = guided_springs(pull, likely_poses(body, self._likely, labels, at, noise, held))
        found = fit_skeleton(body, labels, at, noise, marker_set=held, springs=pull, start=start)
        if self.options.smooth_s <= 0:
            return found
        return fit_smoothly(
            body, labels, at, noise, marker_set=held, springs=pull, rate_hz=self.recording.rate_hz,
            time_s=self.options.smooth_s, start=found,
        )  # fmt: skip

    def fit_rows(self, span: Span, start: Floats | None, of: TrackedPoints | None = None) -> SkeletonFit:
        """Fit some frames, as tracked before any edit unless said otherwise."""
        points = of or self.unedited
        rows = points.rows(slice(span.first, span.stop))
        return self.fit(points.names, rows.points, rows.sigma, self.markers, start)


def prepare_ahead(recording: Recording, options: SkeletonOptions) -> None:
    """Find the subject's lengths, which all chunks share: kept, where steps are (`calibration.foundation.once`)."""
    _Fitting(recording, options)


def fit_ahead(recording: Recording, options: SkeletonOptions, index: int) -> None:
    """Fit one chunk of a long recording for the `run` that follows; one that is not there has nothing to do."""
    fitting = _Fitting(recording, options)
    spans = chunk_spans(len(fitting.seen))
    if index < len(spans):
        fit_chunk(fitting.fit_rows, spans[index], len(fitting.seen))


def run(recording: Recording, options: SkeletonOptions) -> CommandReport:
    """Fit the skeleton, a chunk of frames at a time; with X-ray beads, whose places need them all, all at once."""
    fitting = _Fitting(recording, options)
    tracked, unedited, body, scaling = fitting.tracked, fitting.unedited, fitting.body, fitting.scaling
    beads = None if not options.beads else load_bead_springs(recording, body.name, body.joint_names)
    parameters = {
        "body": str(fitting.subject), "cutoff": options.cutoff, "scaling": scaling is not None,
        "smooth_s": options.smooth_s, "beads": 0 if beads is None else len(beads.names),
        "pose_space": str(options.pose_space or ""), "prior": str(options.prior or ""), "fill_s": options.fill_s,
        "sample": options.sample,
    }  # fmt: skip
    path = recording.results / "skeleton.h5"
    with (
        create_skeleton(
            path, body, len(tracked), rate_hz=recording.rate_hz, parameters=parameters, scaling=scaling,
            cage_names=tracked.cage_names, limb_names=tracked.limb_names, limb_reasons=tracked.reasons,
        ) as writer,
        progress_callback("skeleton") as on_progress,
    ):  # fmt: skip

        def write(span: Span, fit: SkeletonFit, of: TrackedPoints) -> None:
            rows = of.rows(slice(span.first, span.stop))
            markerless: SkeletonFit | None = None
            if beads is not None:
                held = hold_beads(beads, fit, of.names, rows.points, rows.sigma, fitting.markers, fitting.fit)
                markerless, fit = fit, held
            torn = torn_from_surface(fit, fitting.markers, body)
            fit = _no_surer(_surface_only(fit), of.trust[span.first : span.stop])
            limbs = of.limbs(slice(span.first, span.stop), body.joint_names)
            fit = with_model_error(fit, limbs, torn, body)
            writer.write(span, fit, rows.cage, markerless, trust_by_joint(fit, body, limbs, torn))

        done = 0
        chunk = None if beads is None else max(len(tracked), 1)
        for span, fit in fit_chunks(fitting.fit_rows, fitting.seen, chunk=chunk):
            write(span, fit, unedited)
            done += len(span)
            on_progress(done, len(tracked))
        for span in edited_spans(unedited, tracked):
            wide, whole = around(span, len(tracked))
            start = writer.file["coordinates"][wide.first]
            again = fitting.fit_rows(wide, start, tracked)
            again = replace(
                again, rotations=signed_like(again.rotations, writer.file["rotations"][wide.first : wide.stop])
            )
            write(whole, again.rows(whole.first - wide.first, whole.stop - wide.first), tracked)
        filled = None
        if options.fill_s > 0:
            filled = fill_skeleton_file(
                writer.file, body, rate_hz=recording.rate_hz, most_s=options.fill_s, samples=options.sample
            )
        edits = load_edits(edits_file(recording.folder))
        held = hold_key_poses(writer.file, body, edits.key_poses, first_of(recording.results))
        if body.floor_points and len(tracked) >= 3:
            _write_feet(writer, body, recording)
    return _with_extras(_report(path, body, scaling), recording, options, filled, held, beads)


def _with_extras(
    report: CommandReport,
    recording: Recording,
    options: SkeletonOptions,
    filled: FillReport | None,
    held: Sequence[str],
    beads: BeadSprings | None,
) -> CommandReport:
    """Return the report with what was done beside the fit; cleans the feet's motion if asked."""
    if filled is not None:
        sure = f", 1 sigma median {filled.sigma_mm:.1f} mm" if filled.frames else ""
        report.lines.append(
            f"  filled: {filled.frames} frames in {filled.gaps} gaps{sure}; {filled.left} frames stay lost or doubtful "
            f"(longer than {options.fill_s:g} s, or at an end)"
        )
        counts = {"filled_frames": filled.frames, "filled_gaps": filled.gaps, "unfilled_frames": filled.left}
        report = replace(report, numbers={**report.numbers, **counts})
    report.lines.extend(f"  {line}" for line in held)
    if beads is not None:
        report.lines.append(
            f"  beads: {len(beads.names)} X-ray beads hold their segments"
            f" ({', '.join(dict.fromkeys(beads.segments))}); the fit without them is kept beside it, for evaluate"
        )
    if options.clean:
        report.lines.extend(
            f"  clean: {line}" for line in clean.run(recording, own_options(recording, CleanOptions)).lines
        )
    return report


def _pose_model(options: SkeletonOptions, body: Skeleton) -> PoseLibrary | PoseSpace | None:
    """Read the pose space or library that the skeleton is pulled towards."""
    if options.sample and not options.fill_s:
        raise InputError("--sample draws possible fillings: give --fill with the longest gap in seconds, too")
    if options.pose_space is not None and options.prior is not None:
        raise InputError("--pose-space and --prior: give one of them")
    path = options.pose_space or options.prior
    if path is None:
        return None
    model = load_pose_model(path)
    check_pose_model(model, body)
    return model


def _write_feet(writer: SkeletonWriter, body: Skeleton, recording: Recording) -> None:
    """Write when each foot stands, on a floor, a belt or a wheel, and what it does there; read a chunk at a time."""
    file, rate = writer.file, recording.rate_hz
    points, turns, heels = [], [], []
    for first in range(0, len(file["coordinates"]), CHUNK):
        pose = body.forward(file["coordinates"][first : first + CHUNK])
        points.append(foot_points(body, pose))
        turns.append(foot_poses(body, pose))
        heels.append(heel_points(body, pose))
    feet, poses, behind = (
        {foot: np.concatenate([chunk[foot] for chunk in some]) for foot in some[0]} for some in (points, turns, heels)
    )
    ground = ground_under(recording, feet, rate)
    contacts = {foot: detect_contacts(sole, rate, belt=ground) for foot, sole in feet.items()}
    writer.write_contacts(contacts)
    writer.write_events(events_of(feet, behind, rate, ground))
    soles = [float(np.median(np.linalg.norm(np.ptp(sole, axis=1), axis=1))) for sole in feet.values()]
    writer.write_constraints(foot_constraints(poses, contacts, rate, ground, size_mm=max(*soles, 1.0)))


def _no_surer(fit: SkeletonFit, trust: Ints) -> SkeletonFit:
    """Return the fit trusted no more than the track (T,) whose markers it was made from."""
    worse = trust > fit.trust
    reason = np.where(worse, len(REASONS) - 1, fit.reason)
    return replace(fit, trust=np.maximum(fit.trust, trust), reason=reason)


def _scaled(body: Skeleton, markers: MarkerSet, tracked: TrackedPoints, seen: Ints, springs: Springs) -> Scaling:
    """Estimate lengths and marker places from the best seen frames; one that tracking lost says nothing about them."""
    good = np.where(tracked.trust == Trust.LOST, 0, seen)
    chosen = choose_frames(good if good.any() else seen)
    few = tracked.rows(chosen)
    with progress_callback("scaling") as on_progress:
        found = scale_body(
            body, tracked.names, few.points, few.sigma, marker_set=markers, springs=springs, length_sd=LENGTH_SD,
            offset_sd=_place_sd(markers), on_progress=on_progress,
        )  # fmt: skip
    return replace(found, frames=chosen[found.frames])


def _report(path: Path, body: Skeleton, scaling: Scaling | None) -> CommandReport:
    """Say how the fit came out; medians of very long recordings are taken over frames spread evenly."""
    with open_results(path, stage="skeleton") as file:
        trust, reason, iterations = (file[name][:] for name in ("trust", "reason", "iterations"))
        frames = len(trust)
        some = slice(None, None, max(1, frames // _LOOKED_AT))
        residuals, sigmas = file["marker_residuals"][some], file["sigma"][some]
    known, finite = residuals[np.isfinite(residuals)], sigmas[np.isfinite(sigmas)]
    sigma, median, rms = (float("nan"),) * 3
    if finite.size:
        sigma = float(np.median(finite))
    if known.size:
        median, rms = float(np.median(known)), float(np.sqrt(np.mean(known**2)))
    trusted = float(np.mean(trust == TRUSTED))
    lines = [
        f"{frames} frames, body '{body.name}' with {len(body.joints)} joints: results/skeleton.h5",
        f"  markers: {residuals.shape[1]}, residual median {median:.2f} mm, rms {rms:.2f} mm",
        f"  joints: 1 sigma median {sigma:.2f} mm; trusted {100 * trusted:.1f} % of frames",
    ]
    numbers: dict[str, object] = {
        "frames": frames,
        "body": body.name,
        "markers": residuals.shape[1],
        "residual_median_mm": median,
        "residual_rms_mm": rms,
        "sigma_median_mm": sigma,
        "trusted_share": trusted,
        "iterations_mean": float(iterations.mean()),
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
        count = int(np.sum(reason == code))
        if count:
            lines.append(f"  {count} frames: {REASONS[code]}")
    ok = trusted >= 0.5
    return CommandReport(lines, numbers, ok, "" if ok else f"only {100 * trusted:.0f} % of frames are trusted")
