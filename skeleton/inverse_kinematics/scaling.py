"""Fit a body to a subject: segment lengths and marker places from a static or a moving trial.

Poses, length factors and marker places are fitted together. With the poses at their spring equilibrium, a Gauss-Newton
step in the shared parameters p (factors and places) uses the Schur complement of the poses,

    ``S = sum_t (A_pp - A_pq A_qq^-1 A_qp) + prior``,  ``S dp = -gradient``

and the poses are solved again (variable projection). The inverse of S is the covariance of what is reported.
A length factor multiplies all that a segment carries: its children's offsets and its markers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError
from skeleton.bodies.marker_sets import MarkerSet, builtin_markers, match_names
from skeleton.inverse_kinematics.spring_ik import (
    SpringProblem,
    Springs,
    check_units,
    rigid_starts,
    run_frames,
    spring_problem,
)
from skeleton.inverse_kinematics.spring_kernels import Equilibria
from skeleton.tree.articulation import articulation_of
from skeleton.tree.joint_tree import Skeleton

__all__ = ["Scaling", "choose_frames", "length_groups", "scale_body"]

#: Frames that lengths are estimated from.
FRAMES = 40
#: As how many independent frames a whole trial counts: its errors are skin motion, not noise.
INDEPENDENT_FRAMES = 6.0


@dataclass(frozen=True, eq=False)
class Scaling:
    """A body fitted to a subject.

    Attributes:
        skeleton: the body with the subject's lengths.
        marker_set: the markers at the subject's places; those that were not observed are only scaled.
        factors: segment name to length factor.
        factor_sd: segment name to its standard deviation.
        offset_sd: (M,) standard deviation of the marker places, mm per axis; NaN where not observed.
        rms_mm: marker residual before and after, root mean square over the frames used.
        frames: indices of the frames used.
    """

    skeleton: Skeleton
    marker_set: MarkerSet
    factors: dict[str, float]
    factor_sd: dict[str, float]
    offset_sd: Floats
    rms_mm: tuple[float, float]
    frames: Ints


def length_groups(skeleton: Skeleton, *, tie_sides: bool = True) -> list[list[int]]:
    """Return groups of segments that share a length factor: numbered ones (tail_1, tail_2, ...), left with right."""
    groups: dict[str, list[int]] = {}
    for index, name in enumerate(skeleton.joint_names):
        key = re.sub(r"_\d+$", "", name)
        if tie_sides:
            key = re.sub(r"^(left|right)_", "", key)
        groups.setdefault(key, []).append(index)
    return list(groups.values())


def choose_frames(seen: Ints, count: int = FRAMES) -> Ints:
    """Return up to ``count`` frames that see many markers, spread over the trial; (T,) is how many each sees."""
    parts = np.array_split(np.arange(len(seen)), min(count, len(seen)))
    best = [int(part[np.argmax(seen[part])]) for part in parts if len(part)]
    chosen = np.array([frame for frame in best if seen[frame] >= 0.6 * seen.max()], dtype=np.int64)
    return chosen if len(chosen) else np.array([int(np.argmax(seen))], dtype=np.int64)


# Twelve parameters: the data, and keywords that a user of the library may set one at a time.
def scale_body(
    skeleton: Skeleton,
    marker_names: Sequence[str],
    markers: Floats,
    sigma: Floats | None = None,
    *,
    marker_set: MarkerSet | None = None,
    springs: Springs | None = None,
    frames: int = FRAMES,
    tie_sides: bool = True,
    length_sd: float = 0.04,
    offset_sd: float | Floats | None = None,
    rounds: int = 4,
    on_progress: Callable[[int, int], None] | None = None,
) -> Scaling:
    """Estimate segment lengths and marker places of a subject.

    Args:
        skeleton: the generic body.
        marker_names: M names.
        markers: (T, M, 3) of a static or moving trial, mm, NaN where not observed.
        sigma: (T, M) or (M,) measurement standard deviation, mm per axis.
        marker_set: generic marker places; by default the built-in set of this body.
        springs: how the joints are held meanwhile.
        frames: how many frames to use, chosen where many markers are seen.
        tie_sides: left and right segments share their factor.
        length_sd: how far a segment's factor may lie from the whole body's, standard deviation.
        offset_sd: how far a marker may lie from its generic place, mm, one for all or (M,) in the order of the marker
            set; None: three times its spring's sd_mm; 0: fixed.
        rounds: Gauss-Newton rounds with all parameters.
        on_progress: called with (rounds done, all rounds).
    """
    attached = builtin_markers(skeleton.name) if marker_set is None else marker_set
    values = np.asarray(markers, dtype=np.float64)
    chosen = choose_frames(np.isfinite(values).all(axis=2).sum(axis=1), frames)
    few = values[chosen]
    noise = None if sigma is None else np.broadcast_to(np.asarray(sigma, dtype=np.float64), values.shape[:2])[chosen]
    whole = _overall_factor(skeleton, attached, marker_names, few)
    model = _Model(skeleton.scaled(whole), attached.with_offsets(attached.offsets * whole))
    problem = spring_problem(
        model.skeleton, marker_names, few, noise, marker_set=model.markers, springs=_patient(springs)
    )
    found = run_frames(problem, np.arange(len(few)), rigid_starts(problem, range(len(few))), warm=False)
    before = _rms(found.residuals)
    used = [attached.names.index(name) for name in problem.names]
    groups = length_groups(skeleton, tie_sides=tie_sides)
    share = np.zeros((len(skeleton.joints), len(groups)))
    for column, group in enumerate(groups):
        share[group, column] = 1.0
    ties = np.broadcast_to(3.0 * attached.sd_mm if offset_sd is None else offset_sd, attached.sd_mm.shape)[used]
    spread = np.concatenate([np.full(len(groups), length_sd), np.repeat(np.maximum(ties, 1e-6), 3)])
    parameters = np.zeros(len(spread))
    generic = model
    covariance = np.diag(spread**2)
    for turn in range(rounds + 2):
        # Two rounds with one factor for all: the size must be right before parts are told apart.
        if turn < 2:
            parameters[: len(groups)] += _size_step(generic, problem, found, share, used)
        else:
            step, covariance = _step(generic, problem, found, share, parameters, spread, used)
            parameters = parameters + step
        model = generic.changed(share @ parameters[: len(groups)], used, parameters[len(groups) :].reshape(-1, 3))
        problem = spring_problem(
            model.skeleton, marker_names, few, noise, marker_set=model.markers, springs=_patient(springs)
        )
        found = run_frames(problem, np.arange(len(few)), found.coordinates, warm=False, anneal=turn < 3)
        if on_progress is not None:
            on_progress(turn + 1, rounds + 2)
    sd = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    factor = whole * (1.0 + share @ parameters[: len(groups)])
    factor_sd = whole * (share @ sd[: len(groups)])
    places = np.full(len(attached.names), np.nan)
    places[used] = np.sqrt((sd[len(groups) :].reshape(-1, 3) ** 2).mean(axis=1))
    return Scaling(
        model.skeleton,
        model.markers,
        dict(zip(skeleton.joint_names, map(float, factor), strict=True)),
        dict(zip(skeleton.joint_names, map(float, factor_sd), strict=True)),
        places,
        (before, _rms(found.residuals)),
        chosen,
    )


@dataclass(frozen=True, eq=False)
class _Model:
    skeleton: Skeleton
    markers: MarkerSet

    def changed(self, stretch: Floats, used: list[int], moved: Floats) -> _Model:
        """Return the model with factors ``1 + stretch`` (J,) and observed markers moved by (m, 3) mm."""
        factors = np.clip(1.0 + stretch, 0.3, 3.0)
        names = self.skeleton.joint_names
        segments = [names.index(segment) for segment in self.markers.segments]
        offsets = self.markers.offsets * factors[segments, None]
        offsets[used] += moved
        grown = self.skeleton.scaled(dict(zip(names, map(float, factors), strict=True)))
        return _Model(grown, self.markers.with_offsets(offsets))


def _patient(springs: Springs | None) -> Springs:
    """Springs for fitting shape: a wider cutoff, since markers of the generic body lie off at first."""
    held = Springs() if springs is None else springs
    return replace(held, cutoff=2.0 * held.cutoff)


def _rms(residuals: Floats) -> float:
    return float(np.sqrt(np.nanmean(residuals**2)))


def _overall_factor(skeleton: Skeleton, markers: MarkerSet, names: Sequence[str], few: Floats) -> float:
    """Return the size of the subject against the body: median ratio of distances within segment
    neighbourhoods.

    Markers on the same or on adjacent segments keep their distance within a few per cent whatever the pose.
    """
    body = articulation_of(skeleton)
    pairs = match_names(markers.names, names, f"body '{skeleton.name}'")
    mine = [pair[0] for pair in pairs]
    segments = np.array([body.segment(markers.segments[index]) for index in mine], dtype=np.int64)
    given = few[:, [pair[1] for pair in pairs]]
    check_units(body, segments, markers.offsets[mine], given)
    rest = body.points(body.rest[None], segments, markers.offsets[mine])[0]
    ratios, weights = [], []
    for a in range(len(mine)):
        for b in range(a):
            near = segments[a] == segments[b] or segments[b] in skeleton.parents[[segments[a]]]
            near = near or segments[a] in skeleton.parents[[segments[b]]]
            length = float(np.linalg.norm(rest[a] - rest[b]))
            if near and length > 0:
                seen = np.linalg.norm(given[:, a] - given[:, b], axis=1)
                seen = seen[np.isfinite(seen)]
                if len(seen):
                    ratios.append(float(np.median(seen)) / length)
                    weights.append(length)
    if not ratios:
        return 1.0
    order = np.argsort(ratios)
    total = np.cumsum(np.array(weights)[order])
    middle = float(np.array(ratios)[order][np.searchsorted(total, 0.5 * total[-1])])
    return float(np.clip(middle, 0.25, 4.0))


def _by_factor(generic: _Model, segments: Ints, places: Floats, rotations: Floats, share: Floats) -> Floats:
    """(T, M, 3, G) how markers move with the factors of G groups of segments, poses held.

    A marker moves with its own segment's factor by where it lies on it, and with that of each segment above by where
    the next one down hangs on that.

    Args:
        generic: the body that the factors stretch.
        segments: (M,) that the markers lie on.
        places: (M, 3) where on it, mm.
        rotations: (T, J, 3, 3) of the segments.
        share: (J, G) which group each segment belongs to.
    """
    parents = np.asarray(generic.skeleton.parents)
    hung = np.flatnonzero(parents >= 0)
    carried = np.array([joint.offset for joint in generic.skeleton.joints])[hung]
    levers = np.einsum("tjab,jb->tja", rotations[:, parents[hung]], carried)
    above = np.zeros((len(segments), len(parents)))
    for marker, segment in enumerate(segments):
        while segment >= 0:
            above[marker, segment] = 1.0
            segment = parents[segment]
    by_lever = above[:, hung, None] * share[parents[hung]]
    own = np.einsum("tmab,mb->tma", rotations[:, segments], places)
    return np.asarray(
        np.einsum("tja,mjg->tmag", levers, by_lever, optimize=True) + own[..., None] * share[segments][:, None]
    )


def _step(
    generic: _Model,
    problem: SpringProblem,
    found: Equilibria,
    share: Floats,
    parameters: Floats,
    spread: Floats,
    used: list[int],
) -> tuple[Floats, Floats]:
    """Return a Gauss-Newton step of the shared parameters (P,) and their covariance (P, P)."""
    groups = share.shape[1]
    count = groups + 3 * len(used)
    _, rotations = problem.body.forward(found.coordinates)
    by_factor = _by_factor(generic, problem.segments, generic.markers.offsets[used], rotations, share)

    def by_shape(frame: int, seen: Ints) -> Floats:
        moved = np.zeros((len(seen), 3, count))
        moved[:, :, :groups] = by_factor[frame, seen]
        by_place = moved[:, :, groups:].reshape(len(seen), 3, -1, 3)
        by_place[np.arange(len(seen)), :, seen] = rotations[frame, problem.segments[seen]]
        moved[:, :, groups:] = by_place.reshape(len(seen), 3, -1)
        return moved

    normal, gradient, variance = _normal_equations(problem, found, by_shape, count)
    normal[np.diag_indices(count)] += 1.0 / spread**2
    gradient += parameters / spread**2
    # The prior holds factors near each other, not near one: project the common factor out of it.
    together = np.ones((groups, groups)) / (groups * spread[:groups].mean() ** 2)
    normal[:groups, :groups] -= together
    gradient[:groups] -= together @ parameters[:groups]
    covariance: Floats = np.asarray(np.linalg.inv(normal), dtype=np.float64)
    return -covariance @ gradient, covariance * max(1.0, variance)


def _size_step(generic: _Model, problem: SpringProblem, found: Equilibria, share: Floats, used: list[int]) -> float:
    """Return a Gauss-Newton step of one factor for all groups, which nothing holds near the first guess."""
    _, rotations = problem.body.forward(found.coordinates)
    as_one = share.sum(axis=1, keepdims=True)
    by_size = _by_factor(generic, problem.segments, generic.markers.offsets[used], rotations, as_one)
    curve, slope, _ = _normal_equations(problem, found, lambda frame, seen: by_size[frame, seen], 1)
    return float(np.clip(-slope[0] / (curve[0, 0] + 1e-9), -0.2, 0.2))


def _normal_equations(
    problem: SpringProblem, found: Equilibria, by_shape: Callable[[int, Ints], Floats], count: int
) -> tuple[Floats, Floats, float]:
    """Return (P, P) and (P,) of the parameters that all frames share, each frame's pose taken out, and the variance.

    Args:
        problem: markers and springs.
        found: the poses.
        by_shape: (frame, markers) to (m, 3, P): how these markers move with the parameters, the pose held.
        count: P.

    Returns:
        Curvature, gradient, and the errors' variance in units of what is expected of them.
    """
    body = problem.body
    normal, gradient = np.zeros((count, count)), np.zeros(count)
    # Skin moves with the pose, so errors repeat from frame to frame: many frames count as few independent
    # ones.
    independent = min(1.0, INDEPENDENT_FRAMES / max(problem.frames, 1))
    variance, freedom = 0.0, 0
    bound = problem.springs.cutoff**2
    for frame in range(problem.frames):
        seen = np.flatnonzero(np.isfinite(found.residuals[frame]))
        if len(seen) < 3:
            continue
        points, by_pose = body.jacobian(found.coordinates[frame], problem.segments[seen], problem.offsets[seen])
        off = points - problem.targets[frame, seen]
        u = problem.stiffness[frame, seen] * (off**2).sum(axis=1)
        keep = np.ones_like(u) if not np.isfinite(bound) else (bound / (bound + u)) ** 2
        scaled = np.sqrt(independent * keep * problem.stiffness[frame, seen])[:, None, None]
        pose = (by_pose * scaled).reshape(-1, body.dimension)
        shape = (by_shape(frame, seen) * scaled).reshape(-1, count)
        error = (off * scaled[..., 0]).reshape(-1)
        inner = pose.T @ pose
        inner[np.diag_indices_from(inner)] += independent * problem.rest_stiffness + 1e-9 * problem.lever**2
        cross = pose.T @ shape
        normal += shape.T @ shape - cross.T @ np.linalg.solve(inner, cross)
        gradient += shape.T @ error  # the pose's own gradient vanishes at its equilibrium
        variance += float(error @ error) / independent
        freedom += 3 * len(seen) - 6
    if freedom <= 0:
        raise InputError("scaling: no frame shows 3 markers of this body")
    return normal, gradient, variance / freedom
