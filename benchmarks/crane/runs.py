"""Tracking the crane sequence: the subject made from its key frames, the conditions of its protocol, and their scores.

Protocol: template from the mesh of frame 0, key poses from the key frames only, start at frame 60 with no pose given,
all scored frames counted, flagged ones included. Each run is one process of one thread, so that two fill two cores.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numba
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.crane.sequence import UP, Crane, crane_cage, crane_rig
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Floats
from calibration.foundation.trust import Trust
from tracking.fitting.mesh_keys import fit_key_poses
from tracking.fitting.settings import OWN_POSES, Settings
from tracking.fitting.solver import FrameSolver
from tracking.observations.contours import Observation, observe
from tracking.observations.surface import Surface
from tracking.priors.gplvm import GplvmPrior
from tracking.priors.gplvm_training import GplvmOptions, train_gplvm
from tracking.priors.pose_chart import fit_pose_chart
from tracking.priors.prior import LinearPrior, fit_linear_prior
from tracking.quads.deformation import CageRig
from tracking.quads.oriented_quads import QuadPose
from tracking.quads.template import Template, coarse_template
from tracking.sequence.settings import TrackerSettings
from tracking.sequence.track import Track
from tracking.sequence.tracker import Tracker

__all__ = [
    "CONDITIONS",
    "CRANE",
    "Case",
    "CraneSubject",
    "crane_observations",
    "crane_subjects",
    "make_crane_subject",
    "one_thread",
    "run_case",
    "run_cases",
]

LATENT = 14
LOST_MM = 60.0
START = 60
CRANE = OWN_POSES
CONDITIONS = ("8view", "4view", "4view_noisy", "offprior")


@dataclass(frozen=True, eq=False)
class CraneSubject:
    """What the tracker may know of the person from one set of key frames.

    Attributes:
        cage_rig: quads, on the rest cage of the mesh of frame 0, with the sizes that the key frames have in common.
        binding: (10002, ...) coordinates of that mesh.
        template: the same with 4,000 vertices, and how far outlines lie from it in the key frames.
        keys: quads fitted to the key frames' meshes.
    """

    cage_rig: CageRig
    binding: Floats
    template: Template
    keys: list[QuadPose]

    def prior(self, kind: str = "linear", latent: int = LATENT) -> LinearPrior | GplvmPrior:
        """A prior of the key poses, ``kind`` "linear" or "gplvm"."""
        rotations, centres = np.array([p.rotations for p in self.keys]), np.array([p.centres for p in self.keys])
        rig = self.cage_rig.quads
        chart = fit_pose_chart(rotations, centres, root=rig.root)
        vectors = chart.to_vector(rotations, centres)[1]
        if kind == "linear":
            return fit_linear_prior(vectors, latent, chart, rig_name=rig.name, quad_names=rig.quad_names)
        rng, options = np.random.default_rng(0), GplvmOptions(latent_dim=latent)
        return train_gplvm(vectors, chart, options, rng, rig_name=rig.name, quad_names=rig.quad_names).prior


@dataclass(frozen=True, eq=False)
class Case:
    """One run: a condition, the frames it covers, the prior's kind and dimension, what is changed in the solver and
    tracker, whether the hull is taken as a distance field where it is the data, and another solver."""

    name: str
    condition: str
    first: int = 0
    last: int = 175
    settings: Settings = CRANE
    tracker: TrackerSettings | None = None
    use_prior: bool = True
    prior: tuple[str, int] = ("linear", LATENT)
    field: bool = False
    solver: type[FrameSolver] = FrameSolver


def make_crane_subject(crane: Crane, *, fine: bool = True, off_prior: bool = False) -> CraneSubject:
    """Make the subject: 32 quads, or the paper's 21; from the key frames of the second half only if ``off_prior``."""
    mesh, faces = crane.vertices[0], crane.faces
    at_rest = crane_cage(crane_rig(crane, fine=fine))
    binding = at_rest.bind(mesh, margin=5.0)
    frames: list[int] = (crane.protocol["offprior"] if off_prior else crane.protocol)["key_frames"]
    # From the template's own frame to the first key frame the body moves far: go there in steps.
    known = fit_key_poses(
        at_rest,
        Template(mesh, faces, binding),
        [crane.vertices[frame] for frame in frames],
        unit=1.0,
        start=at_rest.quads.rest,
        way=[crane.vertices[frame] for frame in range(0, frames[0], 8)],
    )
    cage_rig, poses = known.cage_rig, known.poses
    template = coarse_template(cage_rig, Template(mesh, faces, binding, known.spread), vertices=4000)
    return CraneSubject(cage_rig, binding, template, poses)


def representation_mm(crane: Crane, subject: CraneSubject) -> float:
    """Mean distance of the vertices of the key frames' meshes from the template on its fitted quads, mm."""
    frames = crane.protocol["key_frames"]
    away = [
        np.linalg.norm(subject.cage_rig.deform(subject.binding, pose) - crane.vertices[frame], axis=1).mean()
        for frame, pose in zip(frames, subject.keys, strict=True)
    ]
    return float(np.mean(away))


def crane_observations(
    crane: Crane, condition: str, first: int, last: int, *, hull: bool = False, field: bool = False
) -> tuple[Rig, list[Observation]]:
    """Return the cameras and the silhouettes of frames first to last - 1; with their hulls, and fields, if asked."""
    views = 8 if condition == "8view" else 4
    rig = crane.cameras(views)
    if condition == "4view_noisy":
        masks = [mask[first:last] for mask in crane.noisy_masks()]
    else:
        masks = crane.masks(views, np.arange(first, last))
    looks = []
    for frame in range(last - first):
        now = [mask[frame] for mask in masks]
        look = observe(now)
        if hull:
            look = look.with_surface(Surface.of_masks(now, rig, with_field=field))
        looks.append(look)
    return rig, looks


def run_case(crane: Crane, subject: CraneSubject, case: Case) -> dict[str, float]:
    """Track and score one case; seconds are processor time."""
    hull = case.settings.hull
    rig, looks = crane_observations(crane, case.condition, case.first, case.last, hull=hull, field=case.field)
    solver = case.solver(
        subject.cage_rig,
        subject.template,
        rig.packed(),
        [camera.size for camera in rig],
        subject.prior(*case.prior),
        settings=case.settings,
        use_prior=case.use_prior,
    )
    tracker = Tracker(solver, rig, up=UP, settings=case.tracker)
    began = time.process_time()
    track = tracker.track(lambda frame: looks[frame], len(looks), start=START - case.first)
    seconds = time.process_time() - began
    wanted = crane.protocol["offprior"] if case.condition == "offprior" else crane.protocol
    scored = np.array([frame for frame in wanted["scored_frames"] if case.first <= frame < case.last])
    return {**score(crane, subject, track, scored, case.first), "cpu_s_per_frame": seconds / len(looks)}


def score(crane: Crane, subject: CraneSubject, track: Track, scored: np.ndarray, first: int = 0) -> dict[str, float]:
    """Errors of a track whose frame 0 is the sequence's frame ``first``, over scored frames."""
    vertex, errors = frame_errors(crane, subject, track, scored, first)
    trusted = track.trust[scored - first] == int(Trust.TRUSTED)
    good = errors < 2 * np.median(errors)
    return {
        "vertex_mm": float(np.mean(vertex)),
        "joint_mm": float(errors.mean()),
        "joint_median_mm": float(np.median(errors)),
        "joint_max_mm": float(errors.max()),
        "lost_unflagged": int(np.sum((errors > LOST_MM) & trusted)),
        "trusted_share": float(trusted[good].mean()),
    }


def frame_errors(
    crane: Crane, subject: CraneSubject, track: Track, frames: np.ndarray, first: int = 0
) -> tuple[Floats, Floats]:
    """Mean vertex and mean joint error of each frame, mm; infinite where nothing was tracked."""
    vertex, joint = np.full(len(frames), np.inf), np.full(len(frames), np.inf)
    for index, frame in enumerate(frames):
        pose = QuadPose(track.rotations[frame - first], track.centres[frame - first])
        if not np.isfinite(pose.centres).all():
            continue
        mesh = subject.cage_rig.deform(subject.binding, pose)
        vertex[index] = np.linalg.norm(mesh - crane.vertices[frame], axis=1).mean()
        away = crane.joints(mesh) - crane.joints(crane.vertices[frame])
        joint[index] = np.linalg.norm(away, axis=1).mean()
    return vertex, joint


_SHARED: dict[str, Any] = {}


def one_thread() -> None:
    """Keep this process, all its libraries, to one thread."""
    numba.set_num_threads(1)
    _SHARED["limits"] = threadpool_limits(limits=1)


def _open(path: str) -> None:
    """Prepare a worker: one thread, the sequence and the subjects read once."""
    one_thread()
    _SHARED["crane"] = Crane.load()
    _SHARED["subjects"] = pickle.loads(Path(path).read_bytes())


def _work(case: Case) -> dict[str, float]:
    return run_case(_SHARED["crane"], _SHARED["subjects"]["offprior" if case.condition == "offprior" else "own"], case)


def run_cases(subjects: dict[str, CraneSubject], cases: list[Case], folder: Path) -> dict[str, dict[str, float]]:
    """Run cases, two at a time; longest first is the caller's business."""
    path = folder / "crane_subjects.pickle"
    path.write_bytes(pickle.dumps(subjects))
    with ProcessPoolExecutor(2, get_context("spawn"), _open, (str(path),)) as pool:
        return dict(zip([case.name for case in cases], pool.map(_work, cases), strict=True))


def _make(kind: str) -> CraneSubject:
    one_thread()
    return make_crane_subject(Crane.load(), fine=kind != "small", off_prior=kind == "offprior")


def crane_subjects(kinds: Sequence[str]) -> dict[str, CraneSubject]:
    """Make subjects, two at a time: ``own`` key frames, ``offprior`` those of the second half, ``small`` 21 quads."""
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        return dict(zip(kinds, pool.map(_make, kinds), strict=True))
