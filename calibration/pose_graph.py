"""Which cameras saw the board together, and a first rig from that: relative poses, spanning tree, board poses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from calibration.arrays import Floats, Ints
from calibration.bundle import Bundle
from calibration.compiled import compiled
from calibration.errors import SolveError
from calibration.planar_pose import PlanarPose, half_turn, lens_row, planar_poses
from calibration.projection import project_point, project_points
from calibration.sightings import Sightings
from calibration.transforms import RigidTransform

__all__ = ["CoVisibility", "co_visibility", "first_rig", "require_connected"]

CAP_PX = 8.0  # a candidate's error is capped here, so that one wrong view cannot outvote the rest
VIEWS_PER_PAIR = 40


@dataclass(frozen=True, eq=False)
class CoVisibility:
    """How often cameras saw a board at the same time.

    Attributes:
        cameras: names.
        shared: (c, c) number of (frame, board) that both saw; the diagonal counts a camera's own.
        parts: cameras of each connected part, largest first.
    """

    cameras: tuple[str, ...]
    shared: Ints
    parts: tuple[tuple[int, ...], ...]

    @property
    def connected(self) -> bool:
        """Whether every camera is linked to every other."""
        return len(self.parts) == 1


def co_visibility(sightings: Sightings) -> CoVisibility:
    """Count shared board views and find the connected parts."""
    count, targets = len(sightings.cameras), sightings.targets()
    seen = np.zeros((len(targets), count), np.int64)
    seen[targets.of_row, sightings.camera] = 1
    shared = seen.T @ seen
    left, parts = set(range(count)), []
    while left:
        part, frontier = set(), [min(left)]
        while frontier:
            c = frontier.pop()
            if c not in part:
                part.add(c)
                frontier += [d for d in left if d not in part and shared[c, d] > 0]
        left -= part
        parts.append(tuple(sorted(part)))
    parts.sort(key=lambda p: (-len(p), -int(shared[list(p), list(p)].sum()), p))
    return CoVisibility(sightings.cameras, shared, tuple(parts))


def require_connected(graph: CoVisibility, sightings: Sightings) -> None:
    """Raise an error that names the missing link if the cameras fall into parts."""
    names, own = graph.cameras, np.diag(graph.shared)
    blind = [names[c] for c in range(len(names)) if own[c] == 0]
    if blind:
        raise SolveError(
            f"camera {_list(blind)} never saw a board; check its footage, or leave it out with --cameras "
            f"{','.join(n for n in names if n not in blind)}",
            graph,
        )
    if graph.connected:
        return
    main, rest = graph.parts[0], graph.parts[1:]
    lost = [names[c] for part in rest for c in part]
    part = rest[0]
    a, b, gap = _nearest_miss(sightings, part, main)
    near = f" (nearest miss: {names[a]} and {names[b]}, {gap} frames apart)" if gap > 0 else ""
    raise SolveError(
        f"missing link between {_list([names[c] for c in part])} and {_list([names[c] for c in main])}: no frame shows "
        f"a board to a camera of both{near}; record the board where both see it, fix the time offset with `vivarig "
        f"sync`, or calibrate the largest part without {_list(lost)} with --largest-part",
        graph,
    )


def _nearest_miss(sightings: Sightings, part: tuple[int, ...], main: tuple[int, ...]) -> tuple[int, int, int]:
    best = (part[0], main[0], np.iinfo(np.int64).max)
    for a in part:
        for b in main:
            fa = np.unique(sightings.frame[sightings.camera == a])
            fb = np.unique(sightings.frame[sightings.camera == b])
            gap = int(np.abs(fa[:, None] - fb[None]).min())
            if gap < best[2]:
                best = (a, b, gap)
    return best


def _list(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


@dataclass(frozen=True, eq=False)
class _View:
    """One camera's view of one target: corners, and candidate poses (with the other order if ambiguous)."""

    model: Floats
    pixels: Floats
    poses: tuple[PlanarPose, ...]


def _views(rows: Floats, sightings: Sightings) -> dict[tuple[int, int], _View]:
    """Return the views that have a pose, keyed (camera, target)."""
    points, index = sightings.model_points()
    of_row, turns = sightings.targets().of_row, _turns(sightings)
    out = {}
    for (camera, _, board), chosen in sightings.views().items():
        model, pixels = points[index[chosen]], sightings.pixels[chosen]
        poses = planar_poses(rows[camera], model, pixels)
        turn = turns[board]
        if turn is not None:
            poses += tuple(PlanarPose(p.camera_from_board @ turn, p.rms_px) for p in poses)
        if poses:
            out[camera, int(of_row[chosen[0]])] = _View(model, pixels, poses)
    return out


def _error(row: Floats, view: _View, camera_from_board: RigidTransform, turn: RigidTransform | None) -> float:
    """Mean squared error of a view, each corner's distance capped; the better order of an ambiguous board."""
    best = np.inf
    for other in (None, turn) if turn is not None else (None,):
        pose = camera_from_board if other is None else camera_from_board @ other
        seen = project_points(row[None], np.ascontiguousarray(pose.apply(view.model)))[0]
        square = ((seen - view.pixels) ** 2).sum(1)
        square = np.where(np.isfinite(square), np.minimum(square, CAP_PX**2), CAP_PX**2)
        best = min(best, float(square.mean()))
    return best


def _turns(sightings: Sightings) -> list[RigidTransform | None]:
    """Return for each board the half turn that its views may be off by, None where the order is known.

    With fewer than three poses motion cannot tell; the order given (see `calibration.half_turns`) is taken.
    """
    if len(sightings.targets()) < 3:
        return [None] * len(sightings.boards)
    return [half_turn(b.points_mm) if b.looks_same_upside_down else None for b in sightings.boards]


def _relative_pose(
    rows: Floats,
    views: dict[tuple[int, int], _View],
    a: int,
    b: int,
) -> tuple[RigidTransform, float] | None:
    """Return a_from_b and its capped RMS: the candidate of any shared view that explains all of them best.

    Every shared view proposes each pairing of its planar solutions in both cameras.
    """
    shared = sorted(t for c, t in views if c == a and (b, t) in views)
    if not shared:
        return None
    if len(shared) > VIEWS_PER_PAIR:
        shared = [shared[i] for i in np.unique(np.linspace(0, len(shared) - 1, VIEWS_PER_PAIR).astype(int))]
    side_a, side_b = _stack([views[a, t] for t in shared]), _stack([views[b, t] for t in shared])
    lens_a, lens_b = lens_row(rows[a]), lens_row(rows[b])
    best: tuple[RigidTransform, float] | None = None
    for t in shared[:: max(1, len(shared) // 12)]:
        for pa in views[a, t].poses:
            for pb in views[b, t].poses:
                candidate = pa.camera_from_board @ pb.camera_from_board.inverse()
                back = candidate.inverse()
                # the board posed by either camera, judged in the other
                total = _candidate_error(lens_a, candidate.rotation, candidate.translation, *side_a[:3], *side_b[3:])
                total += _candidate_error(lens_b, back.rotation, back.translation, *side_b[:3], *side_a[3:])
                error = float(np.sqrt(total / (2 * len(shared))))
                if best is None or error < best[1]:
                    best = (candidate, error)
    return best


def _stack(views: list[_View]) -> tuple[Floats, Floats, Ints, Floats, Floats, Ints]:
    """Return the views as arrays: models, pixels, ends of each view; pose rotations, translations, ends."""
    poses = [p.camera_from_board for view in views for p in view.poses]
    return (
        np.concatenate([view.model for view in views]),
        np.concatenate([view.pixels for view in views]),
        np.cumsum([len(view.model) for view in views]).astype(np.int64),
        np.stack([p.rotation for p in poses]),
        np.stack([p.translation for p in poses]),
        np.cumsum([len(view.poses) for view in views]).astype(np.int64),
    )


@compiled
def _candidate_error(
    lens: Floats,
    rotation: Floats,
    translation: Floats,
    model: Floats,
    pixels: Floats,
    ends: Ints,
    rotations: Floats,
    translations: Floats,
    pose_ends: Ints,
) -> float:
    """Sum over views of the mean capped squared error, with the best of the other camera's poses for each."""
    row = lens.copy()
    total, first, first_pose = 0.0, 0, 0
    for v in range(ends.shape[0]):
        best = np.inf
        for p in range(first_pose, pose_ends[v]):
            turn = rotation @ rotations[p]
            shift = rotation @ translations[p] + translation
            row[20:29] = turn.ravel()
            row[29:32] = shift
            error = 0.0
            for n in range(first, ends[v]):
                x, y = project_point(row, model[n, 0], model[n, 1], model[n, 2])
                square = (x - pixels[n, 0]) ** 2 + (y - pixels[n, 1]) ** 2
                error += square if square < CAP_PX**2 else CAP_PX**2  # NaN counts as the cap
            error /= ends[v] - first
            best = min(best, error)
        total += best
        first, first_pose = ends[v], pose_ends[v]
    return total


@compiled
def _target_errors(
    rotations: Floats, translations: Floats, rows: Floats, model: Floats, pixels: Floats, ends: Ints
) -> Floats:
    """Return for each world pose of a board the sum of its capped squared errors in all cameras that saw it."""
    out = np.zeros(rotations.shape[0])
    for p in range(rotations.shape[0]):
        r, t = rotations[p], translations[p]
        first = 0
        for c in range(ends.shape[0]):
            for n in range(first, ends[c]):
                x = r[0, 0] * model[n, 0] + r[0, 1] * model[n, 1] + r[0, 2] * model[n, 2] + t[0]
                y = r[1, 0] * model[n, 0] + r[1, 1] * model[n, 1] + r[1, 2] * model[n, 2] + t[1]
                z = r[2, 0] * model[n, 0] + r[2, 1] * model[n, 1] + r[2, 2] * model[n, 2] + t[2]
                u, v = project_point(rows[c], x, y, z)
                square = (u - pixels[n, 0]) ** 2 + (v - pixels[n, 1]) ** 2
                out[p] += square if square < CAP_PX**2 else CAP_PX**2
            first = ends[c]
    return out


def first_rig(rows: Floats, sightings: Sightings) -> tuple[Bundle, Sightings]:
    """Return a first bundle of all cameras and board poses, the first camera at the origin.

    ``rows`` (c, 36) holds the lenses; their poses are ignored. The sightings come back with the corner order of
    boards that look the same upside down made consistent, and without views that no pose explains.
    """
    graph = co_visibility(sightings)
    require_connected(graph, sightings)
    views = _views(rows, sightings)
    explained = np.array([key in views for key in zip(sightings.camera, sightings.targets().of_row, strict=True)])
    if not explained.all():
        return first_rig(rows, sightings.where(explained))
    targets = sightings.targets()
    poses = _spanning_tree(rows, views, graph)
    placed = rows.copy()
    for c, pose in enumerate(poses):
        placed[c, 20:29], placed[c, 29:32] = pose.rotation.ravel(), pose.translation
        placed[c, 33:36] = pose.inverse().translation
    world_from_target, sightings = place_targets(placed, sightings, views)
    points, index = sightings.model_points()
    return (
        Bundle(
            rows=placed,
            rotations=np.stack([p.rotation for p in world_from_target]),
            translations=np.stack([p.translation for p in world_from_target]),
            points=points,
            camera=sightings.camera,
            target=targets.of_row,
            point=index,
            pixels=sightings.pixels,
            velocity=sightings.velocity,
        ),
        sightings,
    )


def _spanning_tree(
    rows: Floats,
    views: dict[tuple[int, int], _View],
    graph: CoVisibility,
) -> list[RigidTransform]:
    """Return camera_from_world of each camera along the tree of the most reliable links (Prim)."""
    count = len(rows)
    links: dict[tuple[int, int], tuple[RigidTransform, float]] = {}
    for a, b in combinations(range(count), 2):
        if graph.shared[a, b]:
            found = _relative_pose(rows, views, a, b)
            if found is not None:
                # error of a link falls with the number of views that agree
                links[a, b] = (found[0], (found[1] + 0.05) / np.sqrt(float(graph.shared[a, b])))
                links[b, a] = (found[0].inverse(), links[a, b][1])
    poses: dict[int, RigidTransform] = {0: RigidTransform.identity()}
    while len(poses) < count:
        open_links = [(links[a, b][1], a, b) for a, b in links if a not in poses and b in poses]
        if not open_links:
            lost = [graph.cameras[c] for c in range(count) if c not in poses]
            raise SolveError(f"no usable view links camera {_list(lost)} to the others; record more views", graph)
        _, a, b = min(open_links)
        poses[a] = links[a, b][0] @ poses[b]
    return [poses[c] for c in range(count)]


def place_targets(
    rows: Floats, sightings: Sightings, views: dict[tuple[int, int], _View] | None = None
) -> tuple[list[RigidTransform], Sightings]:
    """Return the world pose of every target that explains all its views best, and the sightings in one order.

    Candidates are both planar solutions of every camera that saw the target.
    """
    views = _views(rows, sightings) if views is None else views
    targets, turns = sightings.targets(), _turns(sightings)
    lens = np.stack([lens_row(row) for row in rows])
    poses = [RigidTransform(row[20:29].reshape(3, 3), row[29:32]) for row in rows]
    free = rows.copy()
    free[:, 32] = lens[:, 32]
    seen_by: list[list[int]] = [[] for _ in range(len(targets))]
    for c, t in sorted(views):
        seen_by[t].append(c)
    corner = sightings.corner.copy()
    placed = []
    for t, cameras in enumerate(seen_by):
        turn = turns[targets.board[t]]
        candidates = [
            poses[c].inverse() @ p.camera_from_board for c in cameras for p in views[c, t].poses[: 2 if turn else None]
        ]
        if turn is None:
            stack = _stack([views[c, t] for c in cameras])
            errors = _target_errors(
                np.stack([p.rotation for p in candidates]),
                np.stack([p.translation for p in candidates]),
                free[cameras],
                *stack[:3],
            ).tolist()
        else:
            errors = [
                sum(_error(lens[c], views[c, t], poses[c] @ candidate, turn) * len(views[c, t].pixels) for c in cameras)
                for candidate in candidates
            ]
        best = candidates[int(np.argmin(errors))]
        placed.append(best)
        if turn is not None:
            board = sightings.boards[targets.board[t]]
            for c in cameras:
                straight = _error(lens[c], views[c, t], poses[c] @ best, None)
                turned = _error(lens[c], views[c, t], poses[c] @ best @ turn, None)
                if turned < straight:
                    mine = (sightings.camera == c) & (targets.of_row == t)
                    corner[mine] = board.corners - 1 - corner[mine]
    return placed, replace(sightings, corner=corner)
