"""Which cameras saw the board together, and a first rig from that: relative poses, spanning tree, board poses."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from calibration.arrays import Bools, Floats, Ints
from calibration.bundle import Bundle
from calibration.compiled import compiled
from calibration.errors import SolveError
from calibration.planar_pose import half_turn, lens_row, poses_of_views
from calibration.projection import project_point
from calibration.sightings import Sightings
from calibration.transforms import RigidTransform

__all__ = ["CoVisibility", "co_visibility", "first_rig", "require_connected"]

CAP_PX = 8.0  # a candidate's error is capped here, so that one wrong view cannot outvote the rest
VIEWS_PER_PAIR = 40
HALF_TURN = np.array([-1.0, -1.0, 1.0])  # of the axes of a board turned by 180 degrees


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
class _Views:
    """Every camera's view of every target, in the order of the sightings (target by target), and its poses.

    Attributes:
        camera, target: (v,) whose view of what.
        starts, ends: (v,) rows of each view in ``model`` and ``pixels``.
        model, pixels: (n, 3), (n, 2) corners and their images.
        rotations, translations: (v, 4, 3, 3), (v, 4, 3) candidate camera_from_board poses; the second half of them
            with the corners in the other order where the board looks the same upside down.
        count: (v,) how many of them there are.
        turn: (v, 3) where the half turn that a view may be off by moves the board's origin; NaN: order known.
    """

    camera: Ints
    target: Ints
    starts: Ints
    ends: Ints
    model: Floats
    pixels: Floats
    rotations: Floats
    translations: Floats
    count: Ints
    turn: Floats


def _views(rows: Floats, sightings: Sightings) -> _Views:
    points, index = sightings.model_points()
    targets = sightings.targets()
    camera, target, ends = sightings.view_runs()
    model = points[index]
    first, second, rms = poses_of_views(rows, camera, model, sightings.pixels, ends)
    rotations, translations = np.zeros((len(camera), 4, 3, 3)), np.zeros((len(camera), 4, 3))
    rotations[:, :2], translations[:, :2] = first, second
    count = np.isfinite(rms).sum(1)
    turns = np.array([np.full(3, np.nan) if t is None else t.translation for t in _turns(sightings)])
    turn = turns[targets.board[target]]
    for v in np.flatnonzero(np.isfinite(turn[:, 0])):
        for k in range(count[v]):
            r, t = rotations[v, k], translations[v, k]
            rotations[v, count[v] + k], translations[v, count[v] + k] = r * HALF_TURN, r @ turn[v] + t
        count[v] *= 2
    starts = np.concatenate([[0], ends[:-1]])
    return _Views(
        camera, target, starts, ends, model, sightings.pixels, rotations, translations, count.astype(np.int64), turn
    )


def _turns(sightings: Sightings) -> list[RigidTransform | None]:
    """Return for each board the half turn that its views may be off by, None where the order is known.

    With fewer than three poses motion cannot tell; the order given (see `calibration.half_turns`) is taken.
    """
    if len(sightings.targets()) < 3:
        return [None] * len(sightings.boards)
    return [half_turn(b.points_mm) if b.looks_same_upside_down else None for b in sightings.boards]


@compiled
def _set_pose(row: Floats, rotation: Floats, translation: Floats) -> None:
    for i in range(3):
        for j in range(3):
            row[20 + 3 * i + j] = rotation[i, j]
        row[29 + i] = translation[i]


@compiled
def _compose(a: Floats, s: Floats, b: Floats, t: Floats, out: Floats, shift: Floats) -> None:
    """Fill rotation and translation of the motion (b, t) followed by (a, s)."""
    for i in range(3):
        for j in range(3):
            out[i, j] = a[i, 0] * b[0, j] + a[i, 1] * b[1, j] + a[i, 2] * b[2, j]
        shift[i] = a[i, 0] * t[0] + a[i, 1] * t[1] + a[i, 2] * t[2] + s[i]


@compiled
def _capped(row: Floats, model: Floats, pixels: Floats, first: int, last: int, bound: float) -> float:
    """Sum of squared distances of corners from their projection, each capped (NaN too); stops above ``bound``."""
    total = 0.0
    for n in range(first, last):
        u, v = project_point(row, model[n, 0], model[n, 1], model[n, 2])
        square = (u - pixels[n, 0]) ** 2 + (v - pixels[n, 1]) ** 2
        total += square if square < CAP_PX**2 else CAP_PX**2
        if total > bound:
            break
    return total


@compiled
def _explains(
    row: Floats,
    rotation: Floats,
    translation: Floats,
    mine: Ints,
    other: Ints,
    bound: float,
    starts: Ints,
    ends: Ints,
    model: Floats,
    pixels: Floats,
    rotations: Floats,
    translations: Floats,
    count: Ints,
) -> float:
    """Sum over a camera's views ``mine`` of the mean capped squared error of boards posed by another camera.

    The best of the other camera's poses counts. Gives up above ``bound``.
    """
    turn, shift = np.empty((3, 3)), np.empty(3)
    total = 0.0
    for s in range(mine.shape[0]):
        v, o = mine[s], other[s]
        corners = ends[v] - starts[v]
        best = CAP_PX**2 * corners
        for k in range(count[o]):
            _compose(rotation, translation, rotations[o, k], translations[o, k], turn, shift)
            _set_pose(row, turn, shift)
            best = min(best, _capped(row, model, pixels, starts[v], ends[v], best))
        total += best / corners
        if total > bound:
            break
    return total


@compiled
def _relative_pose(
    lens_a: Floats,
    lens_b: Floats,
    a: Ints,
    b: Ints,
    every: int,
    starts: Ints,
    ends: Ints,
    model: Floats,
    pixels: Floats,
    rotations: Floats,
    translations: Floats,
    count: Ints,
) -> tuple[Floats, Floats, float]:
    """Return a_from_b and its error: the candidate of any shared view that explains all of them best.

    ``a`` and ``b`` are the shared views of both cameras; every ``every``-th proposes each pairing of its poses in
    both. The error is the sum, over the views of both cameras, of the mean capped squared distance.
    """
    row_a, row_b = lens_a.copy(), lens_b.copy()
    turn, shift, back, away = np.empty((3, 3)), np.empty(3), np.empty((3, 3)), np.empty(3)
    best, best_turn, best_shift = np.inf, np.eye(3), np.zeros(3)
    for s in range(0, a.shape[0], every):
        for i in range(count[a[s]]):
            ra, ta = rotations[a[s], i], translations[a[s], i]
            for k in range(count[b[s]]):
                rb, tb = rotations[b[s], k], translations[b[s], k]
                for m in range(3):
                    for n in range(3):
                        turn[m, n] = ra[m, 0] * rb[n, 0] + ra[m, 1] * rb[n, 1] + ra[m, 2] * rb[n, 2]
                for m in range(3):
                    shift[m] = ta[m] - turn[m, 0] * tb[0] - turn[m, 1] * tb[1] - turn[m, 2] * tb[2]
                for m in range(3):
                    away[m] = -turn[0, m] * shift[0] - turn[1, m] * shift[1] - turn[2, m] * shift[2]
                    for n in range(3):
                        back[m, n] = turn[n, m]
                # the board posed by either camera, judged in the other
                error = _explains(
                    row_a, turn, shift, a, b, best, starts, ends, model, pixels, rotations, translations, count
                )
                if error < best:
                    error += _explains(
                        row_b, back, away, b, a, best - error, starts, ends, model, pixels, rotations, translations,
                        count,
                    )  # fmt: skip
                if error < best:
                    best = error
                    best_turn[:, :] = turn
                    best_shift[:] = shift
    return best_turn, best_shift, best


def first_rig(rows: Floats, sightings: Sightings) -> tuple[Bundle, Sightings]:
    """Return a first bundle of all cameras and board poses, the first camera at the origin.

    ``rows`` (c, 36) holds the lenses; their poses are ignored. The sightings come back with the corner order of
    boards that look the same upside down made consistent, and without views that no pose explains.
    """
    graph = co_visibility(sightings)
    require_connected(graph, sightings)
    views = _views(rows, sightings)
    if not views.count.all():
        return first_rig(rows, sightings.where(np.repeat(views.count > 0, views.ends - views.starts)))
    targets = sightings.targets()
    poses = _spanning_tree(rows, views, graph)
    placed = rows.copy()
    for c, pose in enumerate(poses):
        placed[c, 20:29], placed[c, 29:32] = pose.rotation.ravel(), pose.translation
        placed[c, 33:36] = pose.inverse().translation
    rotations, translations, sightings = place_targets(placed, sightings, views)
    points, index = sightings.model_points()
    return (
        Bundle(
            rows=placed,
            rotations=rotations,
            translations=translations,
            points=points,
            camera=sightings.camera,
            target=targets.of_row,
            point=index,
            pixels=sightings.pixels,
            velocity=sightings.velocity,
        ),
        sightings,
    )


def _spanning_tree(rows: Floats, views: _Views, graph: CoVisibility) -> list[RigidTransform]:
    """Return camera_from_world of each camera along the tree of the most reliable links (Prim)."""
    count = len(rows)
    view = np.full((count, int(views.target.max()) + 1), -1, np.int64)
    view[views.camera, views.target] = np.arange(len(views.camera))
    lenses = [lens_row(row) for row in rows]
    links: dict[tuple[int, int], tuple[RigidTransform, float]] = {}
    for a, b in combinations(range(count), 2):
        shared = np.flatnonzero((view[a] >= 0) & (view[b] >= 0))
        if not len(shared):
            continue
        if len(shared) > VIEWS_PER_PAIR:
            shared = shared[np.unique(np.linspace(0, len(shared) - 1, VIEWS_PER_PAIR).astype(int))]
        rotation, translation, total = _relative_pose(
            lenses[a],
            lenses[b],
            view[a, shared],
            view[b, shared],
            max(1, len(shared) // 12),
            views.starts,
            views.ends,
            views.model,
            views.pixels,
            views.rotations,
            views.translations,
            views.count,
        )
        link = RigidTransform(rotation, translation)
        # error of a link falls with the number of views that agree
        error = (np.sqrt(total / (2 * len(shared))) + 0.05) / np.sqrt(float(graph.shared[a, b]))
        links[a, b], links[b, a] = (link, error), (link.inverse(), error)
    poses: dict[int, RigidTransform] = {0: RigidTransform.identity()}
    while len(poses) < count:
        open_links = [(links[a, b][1], a, b) for a, b in links if a not in poses and b in poses]
        if not open_links:
            lost = [graph.cameras[c] for c in range(count) if c not in poses]
            raise SolveError(f"no usable view links camera {_list(lost)} to the others; record more views", graph)
        _, a, b = min(open_links)
        poses[a] = links[a, b][0] @ poses[b]
    return [poses[c] for c in range(count)]


def place_targets(rows: Floats, sightings: Sightings, views: _Views | None = None) -> tuple[Floats, Floats, Sightings]:
    """Return the world pose of every target that explains all its views best, and the sightings in one order.

    Candidates are both planar solutions of every camera that saw the target. Rotations (t, 3, 3) and translations
    (t, 3) are NaN where no camera has one.
    """
    views = _views(rows, sightings) if views is None else views
    targets = sightings.targets()
    free = rows.copy()
    free[:, 32] = [lens_row(row)[32] for row in rows]
    rotations, translations, turned = _place(
        free,
        len(targets),
        views.camera,
        views.target,
        views.starts,
        views.ends,
        views.model,
        views.pixels,
        views.rotations,
        views.translations,
        views.count,
        views.turn,
    )
    if not turned.any():
        return rotations, translations, sightings
    mine = np.repeat(turned, views.ends - views.starts)
    corners = np.array([board.corners for board in sightings.boards])[sightings.board]
    return (
        rotations,
        translations,
        replace(sightings, corner=np.where(mine, corners - 1 - sightings.corner, sightings.corner)),
    )


@compiled
def _place(
    rows: Floats,
    targets: int,
    camera: Ints,
    target: Ints,
    starts: Ints,
    ends: Ints,
    model: Floats,
    pixels: Floats,
    rotations: Floats,
    translations: Floats,
    count: Ints,
    turn: Floats,
) -> tuple[Floats, Floats, Bools]:
    """Return the best world pose of each target and which views have the corners of an ambiguous board turned."""
    out, shift = np.full((targets, 3, 3), np.nan), np.full((targets, 3), np.nan)
    turned = np.zeros(camera.shape[0], np.bool_)
    back, away = np.empty((3, 3)), np.empty(3)
    world, place = np.empty((3, 3)), np.empty(3)
    first = 0
    while first < camera.shape[0]:
        last = first
        while last < camera.shape[0] and target[last] == target[first]:
            last += 1
        best = np.inf
        for v in range(first, last):
            row = rows[camera[v]]
            # world_from_camera
            for i in range(3):
                for j in range(3):
                    back[i, j] = row[20 + 3 * j + i]
                away[i] = -row[20 + i] * row[29] - row[23 + i] * row[30] - row[26 + i] * row[31]
            straight = count[v] // 2 if math.isfinite(turn[v, 0]) else count[v]
            for k in range(straight):
                _compose(back, away, rotations[v, k], translations[v, k], world, place)
                error = 0.0
                for o in range(first, last):
                    error += _either(rows[camera[o]], world, place, starts[o], ends[o], model, pixels, turn[o])[0]
                    if error > best:
                        break
                if error < best:
                    best = error
                    out[target[first]] = world
                    shift[target[first]] = place
        if math.isfinite(best):
            for o in range(first, last):
                t = target[first]
                _, turned[o] = _either(rows[camera[o]], out[t], shift[t], starts[o], ends[o], model, pixels, turn[o])
        first = last
    return out, shift, turned


@compiled
def _either(
    row: Floats, world: Floats, place: Floats, first: int, last: int, model: Floats, pixels: Floats, turn: Floats
) -> tuple[float, bool]:
    """Return a view's capped squared error with its board at a world pose, and whether the turned order fits better."""
    posed = row.copy()
    rotation, translation = np.empty((3, 3)), np.empty(3)
    _compose(row[20:29].reshape(3, 3), row[29:32], world, place, rotation, translation)
    _set_pose(posed, rotation, translation)
    straight = _capped(posed, model, pixels, first, last, np.inf)
    if not math.isfinite(turn[0]):
        return straight, False
    for i in range(3):
        translation[i] += rotation[i, 0] * turn[0] + rotation[i, 1] * turn[1] + rotation[i, 2] * turn[2]
        rotation[i, 0], rotation[i, 1] = -rotation[i, 0], -rotation[i, 1]
    _set_pose(posed, rotation, translation)
    other = _capped(posed, model, pixels, first, last, np.inf)
    return min(straight, other), other < straight
