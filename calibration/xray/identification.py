"""Which spot of an image is which bead of the calibration cube, with no guess of where the camera is.

The cube is tried in thousands of orientations that cover all rotations evenly. For each, as a parallel projection,
the differences between spots and projected beads vote for a shift; the best are refined, first as an affine camera,
then as a pinhole with its focal length, each time matching spots and beads anew. What remains ambiguous is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares
from scipy.spatial import cKDTree

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.compiled import compiled
from calibration.foundation.errors import SolveError
from calibration.geometry.transforms import RigidTransform, rotation_from_quaternion, rotation_from_vector
from calibration.xray.spots import nearest_neighbours

__all__ = ["CubeMatch", "identify_cube", "rotations_everywhere"]

#: Orientations tried when nothing is known: about 11 degrees apart.
ORIENTATIONS = 12000
#: Fewer beads than this do not fix a camera: six points give the eleven numbers of a projection matrix.
MIN_BEADS = 6


@dataclass(frozen=True, eq=False)
class CubeMatch:
    """Beads identified in one image.

    Attributes:
        spots: (n,) numbers of the spots used.
        beads: (n,) the bead each of them is.
        camera: rough camera in the cube's frame.
        rms_px: root mean square distance of the matched spots, px.
        rival_beads: matches of the best different labelling, 0 where there is none near as good.
        rival_rms_px: its distance, px.
    """

    spots: Ints
    beads: Ints
    camera: LensCamera
    rms_px: float
    rival_beads: int
    rival_rms_px: float

    def __len__(self) -> int:
        return len(self.beads)


def rotations_everywhere(count: int) -> Floats:
    """Return (count, 3, 3) rotations spread evenly (Alexa, Super-Fibonacci spirals, CVPR 2022)."""
    phi, psi = np.sqrt(2.0), 1.533751168755204288118041
    s = np.arange(count) + 0.5
    r, big = np.sqrt(s / count), np.sqrt(1.0 - s / count)
    a, b = 2.0 * np.pi * s / phi, 2.0 * np.pi * s / psi
    q = np.stack([r * np.sin(a), r * np.cos(a), big * np.sin(b), big * np.cos(b)], axis=1)
    return rotation_from_quaternion(q)


def identify_cube(
    pixels: Floats,
    cube: Floats,
    size: tuple[int, int],
    *,
    who: str = "cube",
    guess: LensCamera | None = None,
    focal_px: float | None = None,
    lens: PinholeLens | None = None,
    hints: Mapping[int, Floats] | None = None,
    match_px: float = 4.0,
) -> CubeMatch:
    """Find which spot is which bead.

    Args:
        pixels: (m, 2) undistorted spots, px; false ones and missing beads are expected.
        cube: (n, 3) beads, mm.
        size: (width, height) of the image.
        guess: rough camera in the cube's frame (30 degrees, a quarter of the distance); tried without otherwise.
        focal_px: rough focal length; found in the range of X-ray set-ups (1.2 to 8 image widths) otherwise.
        lens: the camera's known lens (a light camera): its focal length is then not changed.
        hints: bead -> pixel of beads that the user named: only answers that agree (within 12 px) count.
        match_px: distance at which a spot counts as its bead in the end.

    Raises:
        SolveError: fewer than six beads, or no orientation fits; the message says whether the mirrored image would.
    """
    if len(pixels) < MIN_BEADS:
        raise SolveError(f"{who}: {len(pixels)} cube beads visible, wanted at least {MIN_BEADS}", pixels)
    best = _search(pixels, cube, size, guess, focal_px, lens, hints, match_px)
    enough = max(MIN_BEADS, int(0.6 * min(len(pixels), len(cube))))
    if best is None or len(best) < enough:
        found = 0 if best is None else len(best)
        mirrored = np.stack([size[0] - 1.0 - pixels[:, 0], pixels[:, 1]], axis=1)
        other = _search(mirrored, cube, size, None, focal_px, None, None, match_px)
        if other is not None and len(other) >= max(enough, found + 3):
            raise SolveError(
                f"{who}: the image is mirrored: {len(other)} of {len(cube)} beads fit its mirror image and"
                f" {found} the image itself; flip the video (or the cube file has a mirrored axis)",
                pixels,
            )
        raise SolveError(
            f"{who}: {found} of {len(cube)} cube beads fit the {len(pixels)} spots found (wanted {enough});"
            " wrong cube file or unit, or the spots are not the cube's",
            pixels,
        )
    return best


def _search(
    pixels: Floats,
    cube: Floats,
    size: tuple[int, int],
    guess: LensCamera | None,
    focal_px: float | None,
    lens: PinholeLens | None,
    hints: Mapping[int, Floats] | None,
    match_px: float,
) -> CubeMatch | None:
    """Try orientations, keep the labelling that most beads support, and name the runner-up."""
    middle = cube.mean(axis=0)
    body = cube - middle
    if guess is None:
        rotations = rotations_everywhere(ORIENTATIONS)
    else:
        # All turns up to 30 degrees about the guess.
        near = np.random.default_rng(0).normal(size=(600, 3)) * np.deg2rad(13.0)
        rotations = rotation_from_vector(near) @ guess.camera_from_world.rotation
    extent = 2.0 * float(np.sqrt(np.mean(np.sum((pixels - np.median(pixels, axis=0)) ** 2, axis=1))))
    spread = 2.0 * float(np.sqrt(np.mean(np.sum(body**2, axis=1)) * 2.0 / 3.0))
    scales = extent / spread * np.array([0.72, 0.85, 1.0, 1.18, 1.4])
    if guess is not None:
        depth = float(guess.camera_from_world.apply(middle)[2])
        scales = guess.lens.intrinsics[0, 0] / depth * np.array([0.85, 1.0, 1.18])
    votes = _vote(np.ascontiguousarray(pixels), body, rotations, scales, 0.07 * extent)
    order = np.argsort(-votes[:, 0], kind="stable")[:250]
    tree = cKDTree(pixels)
    affine = [_affine_fit(pixels, tree, body, rotations[int(i)], votes[i], extent) for i in order]
    ranked = sorted((a for a in affine if a is not None), key=lambda a: (-a[0], a[1]))
    matches: list[CubeMatch] = []
    seen: set[bytes] = set()
    for _, _, matrix in ranked[:40]:
        key = np.round(matrix / np.abs(matrix).max(), 2).tobytes()
        if key in seen or len(seen) > 14:
            continue
        seen.add(key)
        match = _pinhole_fit(pixels, tree, cube, middle, matrix, size, focal_px, lens, match_px)
        if match is not None and _agrees(match, pixels, hints):
            matches.append(match)
        # Once nearly all beads have found their spots, a few more tries look for a rival and no more.
        full = 0.9 * min(len(pixels), len(cube))
        if len(seen) >= 6 and any(len(m) > full and m.rms_px < 0.3 * match_px for m in matches):
            break
    if not matches:
        return None
    matches.sort(key=lambda m: (-len(m), m.rms_px))
    # Most beads first; among those nearly as complete the one that fits best.
    full = len(matches[0])
    matches.sort(key=lambda m: (len(m) < 0.93 * full, m.rms_px))
    best = matches[0]
    own = set(zip(best.spots.tolist(), best.beads.tolist(), strict=True))
    for other in matches[1:]:
        shared = own & set(zip(other.spots.tolist(), other.beads.tolist(), strict=True))
        if len(shared) < 0.5 * len(best):
            return CubeMatch(best.spots, best.beads, best.camera, best.rms_px, len(other), other.rms_px)
    return best


@compiled
def _vote(pixels: Floats, body: Floats, rotations: Floats, scales: Floats, cell: float) -> Floats:
    """Return per rotation (r, 4): support of its best scale and shift, the scale, the shift in x and y, px.

    Support is the smaller of the number of spots and the number of beads that take part, so that beads that
    hide behind each other do not count double.
    """
    n_rotations, n_beads, n_spots = rotations.shape[0], body.shape[0], pixels.shape[0]
    result = np.zeros((n_rotations, 4))
    projected = np.empty((n_beads, 2))
    low_x, low_y = pixels[:, 0].min(), pixels[:, 1].min()
    high_x, high_y = pixels[:, 0].max(), pixels[:, 1].max()
    # The shift is where the cube's middle lies in the image: no farther out than the spots reach, by some slack.
    slack = 0.5 * max(high_x - low_x, high_y - low_y)
    columns = int((high_x - low_x + 2.0 * slack) / cell) + 3
    rows = int((high_y - low_y + 2.0 * slack) / cell) + 3
    table = np.zeros((rows, columns), dtype=np.int32)
    spot_used = np.zeros(n_spots, dtype=np.bool_)
    bead_used = np.zeros(n_beads, dtype=np.bool_)
    for r in range(n_rotations):
        for scale in scales:
            for j in range(n_beads):
                for d in range(2):
                    total = 0.0
                    for k in range(3):
                        total += rotations[r, d, k] * body[j, k]
                    projected[j, d] = scale * total
            table[:] = 0
            for i in range(n_spots):
                for j in range(n_beads):
                    cx = int((pixels[i, 0] - projected[j, 0] - low_x + slack) / cell)
                    cy = int((pixels[i, 1] - projected[j, 1] - low_y + slack) / cell)
                    if 0 <= cx < columns and 0 <= cy < rows:
                        table[cy, cx] += 1
            top, at_x, at_y = 0, 0, 0
            for y in range(rows - 1):
                for x in range(columns - 1):
                    block = table[y, x] + table[y, x + 1] + table[y + 1, x] + table[y + 1, x + 1]
                    if block > top:
                        top, at_x, at_y = block, x, y
            if top <= result[r, 0]:
                continue
            spot_used[:] = False
            bead_used[:] = False
            sum_x, sum_y, pairs = 0.0, 0.0, 0
            for i in range(n_spots):
                for j in range(n_beads):
                    fx = (pixels[i, 0] - projected[j, 0] - low_x + slack) / cell - at_x
                    fy = (pixels[i, 1] - projected[j, 1] - low_y + slack) / cell - at_y
                    if 0.0 <= fx < 2.0 and 0.0 <= fy < 2.0:
                        spot_used[i] = True
                        bead_used[j] = True
                        sum_x += pixels[i, 0] - projected[j, 0]
                        sum_y += pixels[i, 1] - projected[j, 1]
                        pairs += 1
            support = float(min(spot_used.sum(), bead_used.sum()))
            if support > result[r, 0]:
                result[r, 0] = support
                result[r, 1] = scale
                result[r, 2] = sum_x / pairs
                result[r, 3] = sum_y / pairs
    return result


def _mutual(projected: Floats, pixels: Floats, tree: cKDTree, reach: float) -> tuple[Ints, Ints]:
    """Return spots and beads that are each other's nearest within ``reach`` px."""
    found, number = tree.query(projected, distance_upper_bound=reach)
    spot = np.asarray(number, dtype=np.int64)
    _, bead = nearest_neighbours(projected, pixels, 1)
    beads = np.flatnonzero(np.isfinite(found))
    beads = beads[bead[spot[beads], 0] == beads]
    return spot[beads], beads


def _affine_fit(
    pixels: Floats, tree: cKDTree, body: Floats, rotation: Floats, vote: Floats, extent: float
) -> tuple[int, float, Floats] | None:
    """Refine an orientation as an affine camera; return (matches, rms, (2, 4) matrix) or None."""
    matrix = np.column_stack([vote[1] * rotation[:2], vote[2:4]])
    design = np.column_stack([body, np.ones(len(body))])
    spots = beads = np.empty(0, dtype=np.int64)
    for reach in np.array([0.08, 0.08, 0.07, 0.06, 0.05, 0.045, 0.04, 0.04]) * extent:
        new_spots, new_beads = _mutual(design @ matrix.T, pixels, tree, reach)
        if len(new_beads) < MIN_BEADS:
            return None
        if np.array_equal(new_spots, spots) and np.array_equal(new_beads, beads):
            continue
        spots, beads = new_spots, new_beads
        # A little of the old matrix keeps few or flat matches from shearing the cube away.
        old = 1e-2 * np.eye(4) * np.array([*np.full(3, np.abs(body).mean()), 1.0])
        a = np.concatenate([design[beads], old])
        b = np.concatenate([pixels[spots], old @ matrix.T])
        solution, *_ = np.linalg.lstsq(a, b, rcond=None)
        matrix = solution.T
    rows = np.linalg.norm(matrix[:, :3], axis=1)
    if min(rows) < 0.6 * max(rows) or abs(matrix[0, :3] @ matrix[1, :3]) > 0.4 * rows[0] * rows[1]:
        return None
    error = pixels[spots] - design[beads] @ matrix.T
    return len(beads), float(np.sqrt(np.mean(np.sum(error**2, axis=1)))), matrix


def _pinhole_fit(
    pixels: Floats,
    tree: cKDTree,
    cube: Floats,
    middle: Floats,
    affine: Floats,
    size: tuple[int, int],
    focal_px: float | None,
    lens: PinholeLens | None,
    match_px: float,
) -> CubeMatch | None:
    """Refine an affine camera as a pinhole, matching anew with a shrinking reach."""
    u, _, vt = np.linalg.svd(affine[:, :3], full_matrices=False)
    flat = u @ vt
    rotation = np.stack([flat[0], flat[1], np.cross(flat[0], flat[1])])
    scale = float(np.linalg.norm(affine[:, :3], axis=1).mean())
    centre = np.array([(size[0] - 1) / 2.0, (size[1] - 1) / 2.0])
    fixed = lens is not None
    if lens is not None:
        focal = float(0.5 * (lens.intrinsics[0, 0] + lens.intrinsics[1, 1]))
        centre = np.array([lens.intrinsics[0, 2], lens.intrinsics[1, 2]])
    else:
        focal = focal_px if focal_px is not None else 3.5 * max(size)
    depth = focal / scale
    start = np.concatenate([np.zeros(3), (affine[:, 3] - centre) * depth / focal, [depth, np.log(focal)]])
    body = cube - middle
    state = start
    spots = beads = np.empty(0, dtype=np.int64)
    steps = [6.0 * match_px, 4.0 * match_px, 2.5 * match_px, 1.5 * match_px, match_px, match_px]
    for reach in steps:
        projected = _pinhole(state, rotation, centre, body)
        spots, beads = _mutual(projected, pixels, tree, reach)
        if len(beads) < MIN_BEADS:
            return None
        free = slice(0, 6) if fixed else slice(0, 7)
        held = state.copy()

        def residual(x: Floats, free: slice = free, held: Floats = held, b: Ints = beads, s: Ints = spots) -> Floats:
            full = held.copy()
            full[free] = x
            error = (_pinhole(full, rotation, centre, body[b]) - pixels[s]).ravel()
            # The focal length is weakly seen by few beads: hold it within a factor of two of what is usual.
            return np.append(error, 0.0 if fixed else 0.5 * (full[6] - start[6]))

        solved = least_squares(residual, state[free], x_scale="jac", max_nfev=15)
        state = held.copy()
        state[free] = solved.x
        if not 0.7 * max(size) < np.exp(state[6]) < 15.0 * max(size) or state[5] <= 0.0:
            return None
    error = _pinhole(state, rotation, centre, body[beads]) - pixels[spots]
    focal = float(np.exp(state[6]))
    turned = rotation_from_vector(state[:3]) @ rotation
    translation = state[3:6] - turned @ middle
    intrinsics = np.array([[focal, 0.0, centre[0]], [0.0, focal, centre[1]], [0.0, 0.0, 1.0]])
    camera = LensCamera("cube", PinholeLens(size, intrinsics), RigidTransform(turned, translation), "xray")
    rms = float(np.sqrt(np.mean(np.sum(error**2, axis=1))))
    return CubeMatch(spots, beads, camera, rms, 0, float("nan"))


def _pinhole(state: Floats, rotation: Floats, centre: Floats, points: Floats) -> Floats:
    """Project by (turn (3), translation (3), log focal length)."""
    local = points @ (rotation_from_vector(state[:3]) @ rotation).T + state[3:6]
    return np.asarray(centre + np.exp(state[6]) * local[:, :2] / np.maximum(local[:, 2:], 1e-6))


def _agrees(match: CubeMatch, pixels: Floats, hints: Mapping[int, Floats] | None) -> bool:
    """Whether a labelling puts each hinted bead where the user said."""
    for bead, pixel in (hints or {}).items():
        at = np.flatnonzero(match.beads == bead)
        if not len(at) or np.hypot(*(pixels[match.spots[at[0]]] - pixel)) > 12.0:
            return False
    return True
