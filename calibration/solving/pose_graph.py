"""A first rig from boards seen together: relative poses of two cameras, the tree of the best links, board poses."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from calibration.boards.co_visibility import CoVisibility, co_visibility, require_connected
from calibration.boards.sightings import Sightings
from calibration.bundle.adjustment import Bundle
from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.compiled import compiled
from calibration.foundation.errors import SolveError
from calibration.geometry.transforms import RigidTransform
from calibration.solving.board_views import CAP_PX, Views, board_views, capped_error, compose, set_pose
from calibration.solving.planar_pose import lens_row
from calibration.solving.target_poses import place_targets

__all__ = ["first_rig"]

VIEWS_PER_PAIR = 40


@compiled
def _explains(
    row: Floats, rotation: Floats, translation: Floats, mine: Ints, other: Ints, bound: float, views: Views
) -> float:
    """Sum over a camera's views ``mine`` of the mean capped squared error of boards posed by another camera.

    The best of the other camera's poses counts. Gives up above ``bound``.
    """
    starts, ends, model, pixels = views.starts, views.ends, views.model, views.pixels
    rotations, translations, poses = views.rotations, views.translations, views.poses
    turn, shift = np.empty((3, 3)), np.empty(3)
    total = 0.0
    for s in range(mine.shape[0]):
        v, o = mine[s], other[s]
        corners = ends[v] - starts[v]
        best = CAP_PX**2 * corners
        for k in range(poses[o]):
            compose(rotation, translation, rotations[o, k], translations[o, k], turn, shift)
            set_pose(row, turn, shift)
            best = min(best, capped_error(row, model, pixels, starts[v], ends[v], best))
        total += best / corners
        if total > bound:
            break
    return total


@compiled
def _relative_pose(
    lens_a: Floats, lens_b: Floats, a: Ints, b: Ints, every: int, views: Views
) -> tuple[Floats, Floats, float]:
    """Return a_from_b and its error: the candidate of any shared view that explains all of them best.

    ``a`` and ``b`` are the shared views of both cameras; every ``every``-th proposes each pairing of its poses in
    both. The error is the sum, over the views of both cameras, of the mean capped squared distance.
    """
    rotations, translations, poses = views.rotations, views.translations, views.poses
    row_a, row_b = lens_a.copy(), lens_b.copy()
    turn, shift, back, away = np.empty((3, 3)), np.empty(3), np.empty((3, 3)), np.empty(3)
    best, best_turn, best_shift = np.inf, np.eye(3), np.zeros(3)
    for s in range(0, a.shape[0], every):
        for i in range(poses[a[s]]):
            ra, ta = rotations[a[s], i], translations[a[s], i]
            for k in range(poses[b[s]]):
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
                error = _explains(row_a, turn, shift, a, b, best, views)
                if error < best:
                    error += _explains(row_b, back, away, b, a, best - error, views)
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
    views = board_views(rows, sightings)
    if not views.poses.all():
        return first_rig(rows, sightings.where(np.repeat(views.poses > 0, views.ends - views.starts)))
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


def _spanning_tree(rows: Floats, views: Views, graph: CoVisibility) -> list[RigidTransform]:
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
            views,
        )
        link = RigidTransform(rotation, translation)
        # error of a link falls with the number of views that agree
        error = (np.sqrt(total / (2 * len(shared))) + 0.05) / np.sqrt(float(graph.shared[a, b]))
        links[a, b], links[b, a] = (link, error), (link.inverse(), error)
    poses: dict[int, RigidTransform] = {0: RigidTransform.identity()}
    while len(poses) < count:
        open_links = [(links[a, b][1], a, b) for a, b in links if a not in poses and b in poses]
        if not open_links:
            lost = graph.named(c for c in range(count) if c not in poses)
            raise SolveError(f"no usable view links camera {lost} to the others; record more views", graph)
        _, a, b = min(open_links)
        poses[a] = links[a, b][0] @ poses[b]
    return [poses[c] for c in range(count)]
