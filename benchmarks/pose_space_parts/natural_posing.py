"""Poses of people never trained on from five handles: plain IK, pose space, linear prior, FITC GPLVM, library."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

import numpy as np

from benchmarks.pose_space_parts.clips import DOUBLES, PoseTable
from calibration.geometry.transforms import mean_rotation, vector_from_rotation
from skeleton.pose_spaces.pose_library import LibrarySearch, PoseLibrary, build_library, grounded, tilts_of
from skeleton.pose_spaces.posing import HandleSet, TangentModel, free_model, pose_one, space_model
from skeleton.pose_spaces.principal_geodesics import learn_pose_space
from skeleton.pose_spaces.representative_poses import cover_poses
from skeleton.pose_spaces.rotation_tree import RotationTree, place_rotations

HANDLES = ("Head", "LeftHand", "RightHand", "LeftFoot", "RightFoot")
#: How exactly the handles are to be met, mm.
SIGMA = np.full(len(HANDLES), 2.0)
#: Weight of each joint when all 31 of the files count: three finger joints lie in each hand.
FINGERS = 3


def split(table: PoseTable, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return training frames and 100 test frames, five of each of 20 subjects that are not in training."""
    rng = np.random.default_rng(seed)
    held = rng.choice(np.unique(table.subject), 20, replace=False)
    test = np.concatenate([rng.choice(np.flatnonzero(table.subject == s), 5, replace=False) for s in held])
    return np.flatnonzero(~np.isin(table.subject, held)), test


def people_library(table: PoseTable, frames: np.ndarray, count: int) -> PoseLibrary:
    """Build a library of the clips of some frames; a subject is one source."""
    edges = np.flatnonzero(np.diff(frames) > 1) + 1
    runs = np.split(frames, edges)
    _, numbers = np.unique(table.subject, return_inverse=True)

    class Clips:
        """The clips, read when they are asked for."""

        def __len__(self) -> int:
            return len(runs)

        def __getitem__(self, index: int) -> np.ndarray:
            return table.rotations(runs[index])

        def __iter__(self):  # type: ignore[no-untyped-def]
            return (self[i] for i in range(len(runs)))

    sources = [int(numbers[run[0]]) for run in runs]
    return build_library(Clips(), sources, table.example, body="cmu", count=count, calibrate=HANDLES)  # type: ignore[arg-type]


def posing_by_split(table: PoseTable, splits: int = 5, frames: int = 40_000, poses: int = 100) -> dict[str, object]:
    """Pose by libraries of random frames, over several splits: a hundred poses alone leave 2 mm of chance.

    Sigma is not calibrated here: that needs a library by itself for each split.
    """
    rng = np.random.default_rng(0)
    some = np.sort(rng.choice(len(table.subject), frames, replace=False))
    rotations = table.rotations(some)
    rotations[:, 0] = tilts_of(rotations[:, 0], "y")
    mean = mean_rotation(rotations[::4])
    tangents = vector_from_rotation(np.swapaxes(mean, -1, -2) @ rotations).reshape(len(some), -1).astype(np.float32)
    _, numbers = np.unique(table.subject, return_inverse=True)
    names = table.example.names
    free = [j for j, name in enumerate(names) if name not in HANDLES]
    each, shares = [], []
    for seed in range(splits):
        train, test = split(table, seed)
        rows = np.isin(some, train)
        library = PoseLibrary("cmu", names, "y", mean, tangents[rows], numbers[some[rows]])
        scored = _score("library", table, test[:poses], _with_library(library))
        each.append(scored.line(names)["all_mm"])
        ratio = np.array(scored.errors)[:, free] / np.maximum(np.array(scored.sigmas)[:, free], 1e-9)
        shares.append(float((ratio < 1.88).mean()))
    return {
        "posing_mm": float(np.mean(each)), "posing_splits_mm": each, "posing_splits_within_1_88_sigma": shares,
    }  # fmt: skip


class Scored:
    """Errors of one method over the test poses."""

    def __init__(self, name: str) -> None:
        self.name, self.errors, self.sigmas, self.seconds = name, [], [], 0.0

    def line(self, names: tuple[str, ...]) -> dict[str, float]:
        """Mean errors in mm: all 31 joints of the files, joints of different places, those without handle; ms."""
        errors = np.array(self.errors)
        weights = np.ones(len(names))
        weights[[names.index("LeftHand"), names.index("RightHand")]] += FINGERS
        distinct = [j for j, name in enumerate(names) if name not in DOUBLES]
        others = [j for j in distinct if names[j] not in HANDLES]
        return {
            "all_mm": float((errors @ weights).mean() / weights.sum()),
            "median_mm": float(np.median(errors @ weights / weights.sum())),
            "distinct_mm": float(errors[:, distinct].mean()), "unseen_mm": float(errors[:, others].mean()),
            "ms": 1e3 * self.seconds / len(errors),
        }  # fmt: skip


def _score(name: str, table: PoseTable, test: np.ndarray, solver: Callable[..., Callable[..., object]]) -> Scored:
    out = Scored(name)
    for frame in test:
        tree = table.tree(str(table.clip[frame]).split("_")[0].zfill(3))
        truth = place_rotations(tree, table.rotations(np.array([frame])), np.zeros((1, 3))).positions[0]
        prepared = solver(tree)
        handles = HandleSet.at(tree, HANDLES)
        begin = time.process_time()
        found = prepared(truth[handles.joints])
        out.seconds += time.process_time() - begin
        positions, sigma = found  # type: ignore[misc]
        out.errors.append(np.linalg.norm(positions - truth, axis=1))
        out.sigmas.append(sigma)
    return out


def _with_model(model: TangentModel, *, ground: bool) -> Callable[..., Callable[..., object]]:
    def prepare(tree: RotationTree) -> Callable[..., object]:
        body = grounded(tree) if ground else tree
        handles = HandleSet.at(body, HANDLES)

        def solve(targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            found = pose_one(body, model, handles, targets, SIGMA)
            skip = 1 if ground else 0
            return found.pose.positions[0, skip:], found.sigma[0, skip:]

        return solve

    return prepare


def _with_library(library: PoseLibrary) -> Callable[..., Callable[..., object]]:
    def prepare(tree: RotationTree) -> Callable[..., object]:
        search = LibrarySearch.of(library, tree, HandleSet.at(tree, HANDLES))

        def solve(targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            found = search.pose(targets, SIGMA)
            return found.pose.positions[0], found.sigma[0]

        return solve

    return prepare


def natural_posing(count: int = 20_000) -> dict[str, object]:
    """Run all methods on the same poses."""
    table = PoseTable()
    train, test = split(table)
    names = table.example.names
    numbers: dict[str, object] = {"posing_train_frames": len(train), "posing_test_subjects": 20}
    some = train[:: max(1, len(train) // 20_000)]
    space = learn_pose_space(table.rotations(some), names, body="cmu")
    chosen, numbers["choose_2000_s"] = _choose(table, train, 2000)
    numbers["choose_2000_peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    begin = time.process_time()
    library = people_library(table, train, count)
    numbers["library_poses"], numbers["library_s"] = len(library), time.process_time() - begin
    rest = np.repeat(np.eye(3)[None], len(names), axis=0)
    methods = [
        ("plain IK from the T-pose", _with_model(free_model(rest, 1.0), ground=False)),
        ("plain IK from the mean pose", _with_model(free_model(space.mean, 1.0), ground=False)),
        ("pose space, 20 modes", _with_model(space_model(space.truncated(20)), ground=False)),
        ("linear prior, tilt included", _with_model(library.whole_model(), ground=True)),
        ("FITC GPLVM, 12-D, 200 of 2,000", _gplvm(table, chosen, numbers)),
        (f"library of {len(library)}", _with_library(library)),
    ]
    lines = {}
    for name, solver in methods:
        _score(name, table, test[:1], solver)  # compiles
        scored = _score(name, table, test, solver)
        lines[name] = scored.line(names)
        if "library" in name:
            free = [j for j, n in enumerate(names) if n not in HANDLES]
            ratio = np.array(scored.errors)[:, free] / np.maximum(np.array(scored.sigmas)[:, free], 1e-9)
            numbers["posing_within_1_88_sigma"] = float((ratio < 1.88).mean())
    ours, plain = lines[methods[-1][0]], lines[methods[0][0]]
    better_plain = min(plain["all_mm"], lines[methods[1][0]]["all_mm"])
    return {
        "posing_table": lines, "posing_ratio_plain_ik": ours["all_mm"] / better_plain,
        "posing_ratio_t_pose_ik": ours["all_mm"] / plain["all_mm"], "posing_ms": ours["ms"], **numbers,
        **posing_by_split(table),
    }  # fmt: skip


def _choose(table: PoseTable, frames: np.ndarray, count: int) -> tuple[np.ndarray, float]:
    """Choose representative frames and take the time."""
    begin = time.process_time()
    mean = learn_pose_space(table.rotations(frames[::50]), table.example.names, body="cmu").mean

    def chunks():  # type: ignore[no-untyped-def]
        for part in np.array_split(frames, max(1, len(frames) // 8000)):
            turned = np.swapaxes(mean, -1, -2) @ table.rotations(part)
            turned[:, 0] = tilts_of(turned[:, 0], "y")
            yield vector_from_rotation(turned).reshape(len(part), -1)

    cover = cover_poses(chunks(), count)
    return frames[cover.frames], time.process_time() - begin


def _gplvm(table: PoseTable, chosen: np.ndarray, numbers: dict[str, object]) -> Callable[..., Callable[..., object]]:
    from benchmarks.pose_space_parts.gplvm_posing import gplvm_solver

    return gplvm_solver(table, chosen, numbers, HANDLES, SIGMA)
