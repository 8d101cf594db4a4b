"""Clean: feet that stand still while they stand, and what the recording's edits ask; all else keeps its detail."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from calibration.foundation.result_files import create_results, open_results, read_parameters, text_array
from calibration.geometry.transforms import quaternion_from_rotation
from capture.recordings.recording import Recording
from skeleton.analysis.belts import Ground
from skeleton.analysis.contacts import foot_points
from skeleton.bodies import BODIES, load_body
from skeleton.inverse_kinematics.deformation import Deformed, deform_motion
from skeleton.inverse_kinematics.fits import same_sign
from skeleton.inverse_kinematics.footplants import FootPlants, Soles, plant_feet, soles_of
from skeleton.tree.joint_tree import Skeleton
from tracking.subjects.skeleton import subject_body
from vivarig.console.reporting import CommandReport
from vivarig.edits.edit_file import edits_file
from vivarig.edits.frames import first_of
from vivarig.mending.holds import hold_constraints
from vivarig.results.ground import ground_under
from vivarig.stages.options import CleanOptions

__all__ = ["FittedBody", "fitted_body", "run"]

_MISSED = 0.01
"""Share of a body's height from which a goal counts as out of reach."""


@dataclass(frozen=True, eq=False)
class FittedBody:
    """What ``skeleton.h5`` holds: the body with the subject's lengths, its coordinates (T, D), and its soles."""

    body: Skeleton
    coordinates: Floats
    soles: Soles


def fitted_body(recording: Recording) -> FittedBody:
    """Return the body of ``skeleton.h5`` in motion."""
    path = recording.results / "skeleton.h5"
    with open_results(path, stage="skeleton") as file:
        name = str(file.attrs["body"])
        if name in BODIES:
            body = load_body(name)
        else:
            body = subject_body(str(read_parameters(file)["body"]), recording.folder)[0]
        if not body.floor_points:
            raise InputError(
                f"{path}: body '{name}' names no feet to clean; give [floor] in the skeleton.toml of its subject"
            )
        feet = [int(index) for points in body.floor_points.values() for index in body.points(points)[0]]
        sigma = float(np.nan_to_num(np.nanmedian(file["sigma"][:][:, feet]))) if "sigma" in file else 0.0
        soles = soles_of(body, sigma_mm=sigma)
        if "scaling" in file:
            factors = np.asarray(file["scaling/factors"][:], dtype=np.float64)
            soles = soles_of(body, grown=float(np.median(factors)), sigma_mm=sigma)
            body = body.scaled(dict(zip(body.joint_names, factors.tolist(), strict=True)))
        return FittedBody(body, np.asarray(file["coordinates"][:], dtype=np.float64), soles)


def run(recording: Recording, options: CleanOptions) -> CommandReport:
    """Write ``results/clean.h5``: the clean motion, the raw one beside it, and how each constraint was met."""
    fitted = fitted_body(recording)
    body, raw = fitted.body, fitted.coordinates
    pose = body.forward(raw)
    rate = recording.rate_hz
    if len(raw) < 3:
        raise InputError(f"{recording.folder}: wanted 3 frames or more to clean, got {len(raw)}")
    ground = ground_under(recording, foot_points(body, pose), rate)
    plants = plant_feet(
        body, raw, rate, ground, soles=fitted.soles, balance=options.balance, ramp_s=options.ramp_s
    )  # fmt: skip
    edits = hold_constraints(edits_file(recording.folder), body, pose, first_of(recording.results))
    constraints = [*(plants.constraints if options.feet else ()), *edits]
    clean = deform_motion(body, raw, constraints, smooth_frames=options.smooth_s * rate)
    _write(recording, body, raw, plants, clean, options)
    return _report(body, raw, plants, clean, ground, rate)


def _write(
    recording: Recording, body: Skeleton, raw: Floats, plants: FootPlants, clean: Deformed, options: CleanOptions
) -> None:
    pose, before = body.forward(clean.coordinates), body.forward(raw)
    parameters = {"feet": options.feet, "balance": options.balance, "ramp_s": options.ramp_s}
    with create_results(recording.results / "clean.h5", stage="clean", parameters=parameters) as file:
        file.attrs["body"] = body.name
        file.attrs["rate_hz"] = recording.rate_hz
        file["joint_names"] = text_array(list(body.joint_names))
        file["coordinate_names"] = text_array(list(body.coordinate_names))
        file["landmark_names"] = text_array(list(body.landmark_names))
        for place, motion, coordinates in (("", pose, clean.coordinates), ("raw/", before, raw)):
            file[f"{place}positions"] = motion.positions
            file[f"{place}rotations"] = same_sign(quaternion_from_rotation(motion.rotations))
            file[f"{place}coordinates"] = coordinates
            file[f"{place}landmarks"] = body.landmarks(motion)[1]
        file["constraints/names"] = text_array(list(clean.names)) if clean.names else np.zeros(0, dtype="S1")
        file["constraints/residual_mm"] = clean.residuals
        names = list(plants.contacts)
        file["contacts/names"] = text_array(names)
        file["contacts/planted"] = np.stack([plants.contacts[foot].states for foot in names], axis=1)
        for foot, contacts in plants.contacts.items():
            assert contacts.spans is not None
            file[f"contacts/{foot}_frames"] = contacts.spans
        file["iterations"] = clean.iterations


def _report(
    body: Skeleton, raw: Floats, plants: FootPlants, clean: Deformed, ground: Ground, rate_hz: float
) -> CommandReport:
    """Say what stands now, and which goals were out of reach; a foot slides against the ground, which may move."""
    before, after = (
        {foot: ground.without(points, rate_hz) for foot, points in foot_points(body, body.forward(motion)).items()}
        for motion in (raw, clean.coordinates)
    )
    lines = [f"{len(raw)} frames, body '{body.name}': results/clean.h5 (the raw fit stays in it and in skeleton.h5)"]
    numbers: dict[str, object] = {"frames": len(raw), "body": body.name}
    for foot, contacts in plants.contacts.items():
        stands = contacts.states[1:] & contacts.states[:-1]
        if not stands.any():
            lines.append(f"  {foot}: never stands")
            continue
        slides = [_slide(points[foot], stands) for points in (before, after)]
        lines.append(
            f"  {foot}: {len(contacts.intervals)} stances, median slide {slides[0]:.3f} -> {slides[1]:.3f} mm a frame"
        )
        numbers[f"slide_mm_{foot}"] = slides[1]
    height = float(np.linalg.norm(np.ptp(body.forward(body.rest()).positions[0], axis=0)))
    for index, name in enumerate(clean.names):
        missed = clean.residuals[:, index]
        held = plants.held.get(name)
        asked = np.isfinite(missed) if held is None else held & np.isfinite(missed)
        worst = float(np.max(missed[asked])) if asked.any() else 0.0
        numbers[f"residual_mm_{name}"] = worst
        if worst > _MISSED * height and (held is not None or name.startswith("edit")):
            frame = int(np.flatnonzero(asked)[np.argmax(missed[asked])])
            lines.append(f"  {name}: out of reach by up to {worst:.1f} mm (frame {frame}); nothing was stretched")
    return CommandReport(lines, numbers)


def _slide(points: Floats, stands: np.ndarray) -> float:
    """Return the median way of a foot's points from frame to frame while it stands, mm."""
    return float(np.median(np.linalg.norm(np.diff(points, axis=0), axis=2)[stands]))
