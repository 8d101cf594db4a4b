"""Spring inverse kinematics: markers pull an articulated body through springs; the pose is the equilibrium.

Every marker is tied to its segment by a spring, every joint to its rest pose (or to a prior); limits hold exactly.
Springs are given as standard deviations, so the equilibrium is the most likely pose and the inverse of the Hessian its
covariance. Zordan and Van Der Horst 2003; the energy is in `skeleton.inverse_kinematics.spring_energy`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Bools, Floats, Ints
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import fit_rigid, vector_from_rotation
from skeleton.bodies.marker_sets import MarkerSet, builtin_markers, match_names
from skeleton.inverse_kinematics import spring_kernels as kernels
from skeleton.inverse_kinematics.fits import DOUBTFUL, LOST, TRUSTED, SkeletonFit, fit_of
from skeleton.inverse_kinematics.spring_energy import SpringBody, spring_body
from skeleton.inverse_kinematics.spring_kernels import Equilibria
from skeleton.tree.articulation import Articulation, articulation_of
from skeleton.tree.articulation_kernels import BALL
from skeleton.tree.joint_tree import Skeleton

__all__ = [
    "SpringProblem", "Springs", "check_units", "fit_skeleton", "judge", "rest_stiffness_of", "rigid_starts",
    "robust_weights", "run_frames", "solve", "spring_problem", "steps_metric",
]  # fmt: skip


#: Standard deviation of a limited angle about its rest, as a share of the way from there to its farther limit.
SPRING_SHARE = 0.27

#: The most that a pose is taken to foretell the next, as a correlation.
MOST_MEMORY = 0.98


@dataclass(frozen=True, eq=False)
class Springs:
    """How the body is held, beside the markers.

    Attributes:
        cutoff: residual, in standard deviations of the marker, beyond which a marker counts as wrong; inf
            trusts all.
        joint_sd: standard deviation of a free angle about its rest, rad; a limited one has `SPRING_SHARE` of the
            way to its farther limit if that is less.
        rest: (D,) or (T, D) pose that the joint springs hold (a prior's mean); None: the body's rest pose.
        rest_sd: (D,) standard deviations that replace those of ``joint_sd``; inf for no spring.
        memory: where markers are missing, springs hold a joint to what its last pose lets expect, not to its rest;
            how far a pose foretells the next is measured in the motion itself.
        most_iterations: per frame.
        tolerance: a step that lowers the energy by less ends the iteration; the energy is half a sum of
            squares in
            units of standard deviations, so 1e-4 leaves the pose within some hundredths of its sigma.
    """

    cutoff: float = 4.0
    joint_sd: float = 0.9
    rest: Floats | None = None
    rest_sd: Floats | None = None
    memory: bool = True
    most_iterations: int = 60
    tolerance: float = 1e-4


@dataclass(frozen=True, eq=False)
class SpringProblem:
    """A body, its attached markers and their targets; made by `spring_problem`."""

    body: Articulation
    names: tuple[str, ...]
    segments: Ints
    offsets: Floats
    targets: Floats
    stiffness: Floats
    rest: Floats
    rest_stiffness: Floats
    lever: Floats
    springs: Springs

    @property
    def frames(self) -> int:
        """Number of frames T."""
        return len(self.targets)

    @property
    def packed(self) -> SpringBody:
        """The body and its markers as the kernels take them."""
        return spring_body(self.body, self.segments, self.offsets, self.lever)


def check_units(body: Articulation, segments: Ints, offsets: Floats, targets: Floats) -> None:
    """Compare the spread of the markers with that of the body: a power of ten between them is a wrong unit."""
    wanted = body.points(body.rest[None], segments, offsets)[0]
    size = float(np.linalg.norm(wanted - wanted.mean(axis=0), axis=1).mean())
    shown = targets[np.isfinite(targets[..., 0]).sum(axis=1) >= 3]
    if len(segments) < 3 or size <= 0 or not len(shown):
        return
    centre = np.nanmedian(shown, axis=1, keepdims=True)
    ratio = float(np.nanmedian(np.linalg.norm(shown - centre, axis=2))) / size
    if 0.25 < ratio < 4.0:
        return
    power = int(np.round(np.log10(ratio))) if ratio > 0 else 0
    unit = {-3: "metres", -2: "decimetres", -1: "centimetres", 3: "micrometres"}.get(power)
    way_out = f"they look like {unit}: multiply them by {10.0**-power:g}" if unit else "is this the right body?"
    raise InputError(
        f"markers: their spread is {ratio:.3g} times that of body '{body.name}', wanted millimetres; {way_out}"
    )


def spring_problem(
    body: Skeleton | Articulation,
    marker_names: Sequence[str],
    markers: Floats,
    sigma: Floats | None = None,
    *,
    marker_set: MarkerSet | None = None,
    springs: Springs | None = None,
) -> SpringProblem:
    """Check and pack what `fit_skeleton` takes."""
    articulation = articulation_of(body) if isinstance(body, Skeleton) else body
    attached = builtin_markers(articulation.name) if marker_set is None else marker_set
    held = Springs() if springs is None else springs
    values = np.asarray(markers, dtype=np.float64)
    if values.ndim != 3 or values.shape[1:] != (len(marker_names), 3):
        raise InputError(f"markers must be (T, {len(marker_names)}, 3) for these names, got {values.shape}")
    pairs = match_names(attached.names, marker_names, f"body '{articulation.name}'")
    mine, given = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    targets = values[:, given]
    targets = np.ascontiguousarray(np.where(np.isfinite(targets).all(axis=2, keepdims=True), targets, np.nan))
    variance = np.broadcast_to(attached.sd_mm[mine] ** 2, targets.shape[:2])
    if sigma is not None:
        noise = np.asarray(sigma, dtype=np.float64)
        if noise.shape not in (values.shape[:2], (values.shape[1],)):
            raise InputError(f"sigma must be {values.shape[:2]} or ({values.shape[1]},) mm, got {noise.shape}")
        variance = variance + np.broadcast_to(noise, values.shape[:2])[:, given] ** 2
    unknown = np.isnan(variance) & np.isfinite(targets[..., 0])
    if unknown.any():
        frame, marker = np.argwhere(unknown)[0]
        raise InputError(
            f"sigma: NaN in frame {frame} for marker '{attached.names[mine[marker]]}', which is observed; "
            "give inf for a marker that says nothing"
        )
    stiffness = np.where(np.isfinite(variance), 1.0 / variance, 0.0)
    segments = np.array([articulation.segment(attached.segments[index]) for index in mine], dtype=np.int64)
    offsets = np.ascontiguousarray(attached.offsets[mine])
    check_units(articulation, segments, offsets, targets)
    rest = articulation.rest if held.rest is None else np.asarray(held.rest, dtype=np.float64)
    rest = np.ascontiguousarray(np.atleast_2d(rest))
    if rest.shape[1] != articulation.dimension or rest.shape[0] not in (1, len(targets)):
        raise InputError(f"rest must be ({articulation.dimension},) or one row per frame, got {rest.shape}")
    return SpringProblem(
        articulation,
        tuple(attached.names[index] for index in mine),
        segments,
        offsets,
        targets,
        np.ascontiguousarray(stiffness),
        rest,
        rest_stiffness_of(articulation, held),
        steps_metric(articulation),
        held,
    )


def _root_columns(body: Articulation) -> Bools:
    """(D,) coordinates that place the whole body: those of every node down to the first segment, if it is free."""
    root = np.zeros(body.dimension, dtype=np.bool_)
    if not len(body.segment_nodes):
        return root
    path = body.path(0)
    if body.is_length[path].sum() >= 3:
        root[path] = True
    return root


def rest_stiffness_of(body: Articulation, springs: Springs) -> Floats:
    """Return (D,) the stiffness of the joint springs; 0 for the coordinates that place the whole body."""
    if springs.rest_sd is not None:
        given = np.asarray(springs.rest_sd, dtype=np.float64)
        if given.shape != (body.dimension,) or not (given > 0).all():
            raise InputError(f"rest_sd must be ({body.dimension},) and above 0 (inf for no spring)")
        return np.asarray(1.0 / given**2)
    spread = np.where(body.is_length, 10.0, springs.joint_sd)
    far = np.maximum(body.limits.upper - body.rest, body.rest - body.limits.lower)
    for start, halves in zip(body.limits.starts, body.limits.halves, strict=True):
        far[start : start + 3] = halves.max(axis=1)
    limited = np.isfinite(far)
    spread[limited] = np.minimum(spread[limited], np.maximum(SPRING_SHARE * far[limited], 1e-3))
    stiffness = 1.0 / spread**2
    stiffness[_root_columns(body)] = 0.0
    return np.asarray(stiffness)


def _size(body: Articulation) -> float:
    """Largest extent of the joint centres at rest, mm."""
    origins, _ = body.forward(body.rest)
    return float(np.ptp(origins[0], axis=0).max()) or 1.0


def steps_metric(body: Articulation) -> Floats:
    """(D,) mm that the farthest joint moves per unit of a coordinate, at rest: the metric of steps and damping."""
    lever = np.where(body.is_length, 1.0, 0.05 * _size(body))
    segments = np.arange(len(body.segment_names))
    _, derivative = body.jacobian(body.rest, segments, np.zeros((len(segments), 3)))
    reach = np.linalg.norm(derivative, axis=1).max(axis=0)
    return np.asarray(np.maximum(lever, np.where(body.is_length, 1.0, reach)))


def rigid_starts(problem: SpringProblem, frames: Sequence[int], pose: Floats | None = None) -> Floats:
    """Return (F, D) starts: the rest (or given) pose laid rigidly on the markers of each frame."""
    body = problem.body
    base = body.rest if pose is None else pose
    out = np.repeat(base[None], len(frames), axis=0)
    root = np.flatnonzero(_root_columns(body))
    if len(root) != 6:
        return out
    still = base.copy()
    still[root] = 0.0
    own = body.points(still[None], problem.segments, problem.offsets)[0]
    # The root node's own frame at zero: turns act about its origin.
    origin = body.forward(still[None])[0][0, 0]
    ball = [node for node in range(len(body.nodes.kinds)) if body.nodes.kinds[node] == BALL]
    if not ball or body.nodes.columns[ball[0]] not in root:
        return out
    turning = int(body.nodes.columns[ball[0]])
    sliding = [column for column in root if not turning <= column < turning + 3]
    for row, frame in enumerate(frames):
        seen = np.isfinite(problem.targets[frame, :, 0]) & (problem.stiffness[frame] > 0)
        if seen.sum() < 3:
            continue
        placed = fit_rigid(own[seen] - origin, problem.targets[frame, seen], problem.stiffness[frame, seen])
        out[row, turning : turning + 3] = vector_from_rotation(placed.rotation)
        out[row, sliding] = placed.translation - origin
    return out


def run_frames(
    problem: SpringProblem,
    frames: Ints,
    start: Floats,
    *,
    warm: bool,
    anneal: bool = True,
    memory: Floats | None = None,
) -> Equilibria:
    """Solve the given frames in the given order; a cold frame narrows the robust cutoff in steps
    (``anneal``)."""
    body = problem.body
    count, markers = len(frames), len(problem.names)
    held = problem.springs
    found = Equilibria(
        coordinates=np.empty((count, body.dimension)),
        residuals=np.full((count, markers), np.nan),
        sigma=np.empty((count, len(body.segment_names))),
        energy=np.empty(count),
        status=np.empty(count, dtype=np.int64),
        iterations=np.empty(count, dtype=np.int64),
    )
    narrow = min(held.cutoff, 1e12)
    wide = np.array([1e12, 4.0 * narrow, narrow]) if anneal and narrow < 1e12 else np.array([narrow])
    rest = problem.rest if len(problem.rest) == 1 else np.ascontiguousarray(problem.rest[frames])
    locked = body.locked if len(body.locked) else np.zeros(body.dimension, dtype=np.bool_)
    remembered = np.zeros(body.dimension) if memory is None else memory
    kernels.solve_frames(
        problem.packed,
        body.limits,
        locked,
        np.ascontiguousarray(problem.targets[frames]),
        np.ascontiguousarray(problem.stiffness[frames]),
        wide,
        rest,
        problem.rest_stiffness,
        held.most_iterations,
        held.tolerance,
        np.ascontiguousarray(start),
        warm,
        remembered,
        found,
    )
    return found


def robust_weights(problem: SpringProblem, residuals: Floats) -> Floats:
    """(T, M) share of the stiffness that each marker kept under the robust cutoff."""
    u = problem.stiffness * residuals**2
    bound = problem.springs.cutoff**2
    share = np.ones_like(u) if not np.isfinite(bound) else (bound / (bound + u)) ** 2
    return np.asarray(np.where(np.isfinite(u), share, 0.0))


def judge(problem: SpringProblem, residuals: Floats, status: Ints) -> tuple[Ints, Ints]:
    """Return trust (T,) and reason (T,) of fitted frames; the reasons are listed in
    `skeleton.inverse_kinematics.fits.REASONS`."""
    seen = np.isfinite(residuals)
    share_seen = seen.mean(axis=1)
    weights = robust_weights(problem, residuals)
    kept = np.where(seen, weights, np.nan)
    rejected = np.sum((weights < 0.25) & seen, axis=1) / np.maximum(seen.sum(axis=1), 1)
    normalised = np.sqrt(problem.stiffness) * residuals
    middle = np.array([np.median(row[np.isfinite(row)]) if np.isfinite(row).any() else np.inf for row in normalised])
    trust = np.full(len(residuals), TRUSTED, dtype=np.int64)
    reason = np.zeros(len(residuals), dtype=np.int64)
    # Later rules outrank earlier ones.
    for code, level, broken in (
        (4, DOUBTFUL, (status == kernels.TOO_LONG) | (status == kernels.STALLED)),
        (3, DOUBTFUL, rejected > 0.3),
        (1, DOUBTFUL, share_seen < 0.4),
        (2, DOUBTFUL, middle > 3.0),
        (2, LOST, middle > 8.0),
        (1, LOST, seen.sum(axis=1) < 4),
        (5, LOST, ~np.isfinite(kept).any(axis=1)),
    ):
        trust[broken], reason[broken] = level, code
    return trust, reason


def fit_skeleton(
    body: Skeleton | Articulation,
    marker_names: Sequence[str],
    markers: Floats,
    sigma: Floats | None = None,
    *,
    marker_set: MarkerSet | None = None,
    springs: Springs | None = None,
    start: Floats | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> SkeletonFit:
    """Fit a body to markers, frame by frame from the frame before.

    Args:
        body: a `Skeleton` or any `Articulation`.
        marker_names: M names; those that the marker set does not hold are left out.
        markers: (T, M, 3) mm, NaN where not observed.
        sigma: (T, M) or (M,) standard deviation of the measured markers, mm per axis; adds to that of the
            set.
        marker_set: how markers ride on the body; by default that of the built-in body of this name.
        springs: how the joints are held.
        start: (D,) pose to begin with; by default the rest pose laid on the markers, of which some frame must then
            show 3.
        on_progress: called with (frames done, T).
    """
    problem = spring_problem(body, marker_names, markers, sigma, marker_set=marker_set, springs=springs)
    return solve(problem, start=start, on_progress=on_progress)


def solve(
    problem: SpringProblem, *, start: Floats | None = None, on_progress: Callable[[int, int], None] | None = None
) -> SkeletonFit:
    """Find the equilibrium of every frame."""
    total = problem.frames
    if total == 0:
        raise InputError("markers: no frames")
    seen = (np.isfinite(problem.targets[..., 0]) & (problem.stiffness > 0)).sum(axis=1)
    if seen.max() < 3 and start is None:
        raise InputError(f"markers: no frame shows 3 markers of body '{problem.body.name}' (at most {seen.max()})")
    first = int(np.argmax(seen >= 0.8 * seen.max()))
    begin = rigid_starts(problem, [first]) if start is None else np.atleast_2d(np.asarray(start, dtype=np.float64))
    found = _in_order(problem, first, begin, None, on_progress)
    if problem.springs.memory and (seen < len(problem.names)).any():
        memory = _memory(problem, found.coordinates)
        if memory.any():
            found = _in_order(problem, first, found.coordinates[first : first + 1], memory, None)
    _repair(problem, found)
    weights = robust_weights(problem, found.residuals)
    trust, reason = judge(problem, found.residuals, found.status)
    sigma = found.sigma * _variance_factor(problem, found)[:, None]
    return fit_of(
        problem.body, problem.names, found.coordinates, found.residuals, weights, sigma, trust, reason,
        found.iterations, found.energy,
    )  # fmt: skip


def _in_order(
    problem: SpringProblem,
    first: int,
    pose: Floats,
    memory: Floats | None,
    on_progress: Callable[[int, int], None] | None,
) -> Equilibria:
    """Solve from frame ``first``, begun at ``pose`` (1, D), to the end and back to frame 0."""
    total, chunk = problem.frames, 512
    parts: list[Equilibria] = []
    for low in range(first, total, chunk):
        part = run_frames(problem, np.arange(low, min(low + chunk, total)), pose, warm=True, memory=memory)
        pose = part.coordinates[-1:]
        parts.append(part)
        if on_progress is not None:
            on_progress(min(low + chunk, total), total)
    if first:
        start = parts[0].coordinates[:1]
        before = run_frames(problem, np.arange(first - 1, -1, -1), start, warm=True, memory=memory)
        parts.insert(0, Equilibria._make(values[::-1] for values in before))
    return Equilibria._make(np.concatenate(arrays) for arrays in zip(*parts, strict=True))


def _memory(problem: SpringProblem, coordinates: Floats) -> Floats:
    """Return (D,) the correlation of each coordinate's deviation from rest with that of the frame before.

    ``1 - change^2 / (2 deviation^2)`` from mean squares without their largest tenth, since the poses of frames that
    miss all markers of a limb are off; 0 where there is no spring or the motion is short.
    """
    count = len(coordinates)
    if count < 20:
        return np.zeros(coordinates.shape[1])
    away = coordinates - problem.rest
    spread = np.sort(away**2, axis=0)[: int(0.9 * count)].mean(axis=0)
    change = np.sort(np.diff(away, axis=0) ** 2, axis=0)[: int(0.9 * count)].mean(axis=0)
    share = 1.0 - 0.5 * change / np.maximum(spread, 1e-12)
    return np.asarray(np.where(problem.rest_stiffness > 0, np.clip(share, 0.0, MOST_MEMORY), 0.0))


def _variance_factor(problem: SpringProblem, found: Equilibria) -> Floats:
    """(T,) by how much the residuals exceed what the springs expect; never below 1.

    With as many joint springs as coordinates less the root's six, 3 n - 6 degrees of freedom remain of n
    markers.
    """
    residuals = found.residuals
    seen = np.isfinite(residuals)
    pulled = np.nansum(robust_weights(problem, residuals) * problem.stiffness * residuals**2, axis=1)
    rest = problem.rest if len(problem.rest) > 1 else problem.rest[0]
    pulled = pulled + ((found.coordinates - rest) ** 2 * problem.rest_stiffness).sum(axis=1)
    freedom = np.maximum(3.0 * seen.sum(axis=1) - 6.0, 1.0)
    return np.asarray(np.sqrt(np.maximum(1.0, pulled / freedom)))


def _repair(problem: SpringProblem, found: Equilibria) -> None:
    """Solve doubtful frames again, backwards from the good frame after them and cold; keep the lower energy."""
    trust, _ = judge(problem, found.residuals, found.status)
    bad = np.flatnonzero((trust != TRUSTED) & np.isfinite(found.residuals).any(axis=1))
    if not len(bad):
        return
    breaks = np.flatnonzero(np.diff(bad) > 1) + 1
    for run in np.split(bad, breaks):
        after = int(run[-1]) + 1
        if after < problem.frames:
            back = run[::-1].copy()
            _keep_better(found, back, run_frames(problem, back, found.coordinates[after : after + 1], warm=True))
    cold = run_frames(problem, bad, rigid_starts(problem, list(bad)), warm=False)
    _keep_better(found, bad, cold)


def _keep_better(found: Equilibria, frames: Ints, other: Equilibria) -> None:
    better = other.energy < 0.99 * found.energy[frames]
    for kept, values in zip(found, other, strict=True):
        kept[frames[better]] = values[better]
