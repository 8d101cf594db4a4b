"""Time offsets between cameras, whole frames and fractions, from what moves in front of them.

Two steps. Motion: the image speed of the board (or of any signal per frame) rises and falls in all cameras at the
same instants, whatever their viewpoint; normalised cross-correlation of speeds finds the shift to about half a frame.
Geometry: corners seen at the same instant by two cameras obey one epipolar geometry; the shift (with linear
interpolation between frames) that they obey best gives the fraction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.boards.sightings import Sightings
from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError, SolveError

__all__ = ["Offset", "motion_signal", "offset_between", "offset_of_signals", "offsets_of_session"]

LEAST_OVERLAP = 20
REACH = 60  # frames; offsets beyond it are found by motion alone


@dataclass(frozen=True)
class Offset:
    """How late one camera is against another.

    Attributes:
        frames: frame f of the reference shows the instant of frame f + ``frames`` of the camera.
        sd_frames: standard deviation, frames; NaN where only motion was used.
        correlation: of the two motion signals at that offset, -1..1.
        method: ``geometry`` or ``motion``.
    """

    frames: float
    sd_frames: float
    correlation: float
    method: str


def motion_signal(sightings: Sightings, camera: int) -> tuple[int, Floats]:
    """Return the first frame and the image speed of the board at each frame step (n,), px per frame; NaN unseen."""
    mine = sightings.where(sightings.camera == camera)
    if not len(mine):
        raise InputError(f"camera '{sightings.cameras[camera]}' never saw a board")
    first, last = int(mine.frame.min()), int(mine.frame.max())
    key = mine.board * 1_000_000 + mine.corner
    where: dict[int, dict[int, Floats]] = {}
    for f, k, p in zip(mine.frame.tolist(), key.tolist(), mine.pixels, strict=True):
        where.setdefault(f, {})[k] = p
    speed = np.full(last - first + 1, np.nan)
    for f in range(first, last):
        here, after = where.get(f, {}), where.get(f + 1, {})
        common = [k for k in here if k in after]
        if len(common) >= 3:
            speed[f - first] = np.median([np.linalg.norm(after[k] - here[k]) for k in common])
    return first, speed


def offset_of_signals(a: Floats, b: Floats, *, most: int | None = None) -> Offset:
    """Return how many frames signal ``b`` (n,) lags behind ``a`` (m,), both starting at frame 0; NaN = unknown.

    Pearson correlation over the frames both know, at each whole lag; the peak's fraction by a parabola.
    """
    limit = max(len(a), len(b)) - LEAST_OVERLAP if most is None else most
    lags = np.arange(-max(limit, 0), max(limit, 0) + 1)
    score = np.full(len(lags), -np.inf)
    for i, lag in enumerate(lags.tolist()):
        start, stop = max(0, -lag), min(len(a), len(b) - lag)
        if stop - start < LEAST_OVERLAP:
            continue
        x, y = a[start:stop], b[start + lag : stop + lag]
        good = np.isfinite(x) & np.isfinite(y)
        if good.sum() < LEAST_OVERLAP or np.ptp(x[good]) == 0 or np.ptp(y[good]) == 0:
            continue
        # fewer common frames make a high correlation by chance more likely: Fisher's z against its own spread
        r = float(np.corrcoef(x[good], y[good])[0, 1])
        score[i] = np.arctanh(min(r, 0.999999)) * np.sqrt(good.sum() - 3)
    if not np.isfinite(score).any():
        raise SolveError(f"the two signals share fewer than {LEAST_OVERLAP} frames with motion; record longer")
    best = int(np.argmax(score))
    fraction = 0.0
    if 0 < best < len(lags) - 1 and np.isfinite(score[best - 1 : best + 2]).all():
        left, top, right = score[best - 1 : best + 2]
        bend = left - 2 * top + right
        fraction = float(np.clip(0.5 * (left - right) / bend, -0.5, 0.5)) if bend < 0 else 0.0
    peak = int(lags[best])
    return Offset(peak + fraction, float("nan"), _correlation_at(a, b, peak), "motion")


def offset_between(sightings: Sightings, reference: int, camera: int, *, most: int | None = None) -> Offset:
    """Return how late ``camera`` is against ``reference``, from the board's motion and then from geometry."""
    (first_a, a), (first_b, b) = motion_signal(sightings, reference), motion_signal(sightings, camera)
    start = min(first_a, first_b)
    a = np.concatenate([np.full(first_a - start, np.nan), a])
    b = np.concatenate([np.full(first_b - start, np.nan), b])
    # speeds belong between frames in both cameras alike, so the lag of the speeds is that of the frames
    try:
        coarse = offset_of_signals(a, b, most=most)
    except SolveError:
        coarse = Offset(0.0, float("nan"), float("nan"), "motion")
    refined = _refine(sightings, reference, camera, coarse.frames, REACH if most is None else most)
    if refined is None:
        if not np.isfinite(coarse.correlation):
            raise SolveError("neither motion nor common corners tell the offset; record longer, with more motion")
        return coarse
    return Offset(refined[0], refined[1], _correlation_at(a, b, round(refined[0])), "geometry")


def _correlation_at(a: Floats, b: Floats, lag: int) -> float:
    start, stop = max(0, -lag), min(len(a), len(b) - lag)
    x, y = a[start:stop], b[start + lag : stop + lag]
    good = np.isfinite(x) & np.isfinite(y)
    if good.sum() < 3 or np.ptp(x[good]) == 0 or np.ptp(y[good]) == 0:
        return float("nan")
    return float(np.corrcoef(x[good], y[good])[0, 1])


def _tracks(sightings: Sightings, camera: int) -> tuple[Ints, Ints, Floats]:
    mine = sightings.where(sightings.camera == camera)
    key = mine.board * 1_000_000 + mine.corner
    corners, index = np.unique(key, return_inverse=True)
    frames = np.arange(int(mine.frame.min()), int(mine.frame.max()) + 1)
    place = np.full((len(frames), len(corners), 2), np.nan)
    place[mine.frame - frames[0], index.ravel()] = mine.pixels
    return frames, corners, place


def _refine(
    sightings: Sightings, reference: int, camera: int, start: float, reach: float
) -> tuple[float, float] | None:
    """Minimise the epipolar error over the offset; None where too few corners are common.

    Short recordings move in ways that correlate at wrong lags too, so geometry looks at every lag within
    ``reach`` that keeps half of the most common corners, and around the motion's own answer.
    """
    frames_a, corners_a, place_a = _tracks(sightings, reference)
    frames_b, corners_b, place_b = _tracks(sightings, camera)
    common, in_a, in_b = np.intersect1d(corners_a, corners_b, return_indices=True)
    if len(common) < 4:
        return None
    a, b = place_a[:, in_a], place_b[:, in_b]

    def pairs(offset: float) -> tuple[Floats, Floats]:
        at = frames_a + offset - frames_b[0]
        low = np.floor(at).astype(int)
        part = (at - low)[:, None, None]
        inside = (low >= 0) & (low + 1 < len(frames_b))
        low = np.clip(low, 0, max(len(frames_b) - 2, 0))
        moved = (1 - part) * b[low] + part * b[np.minimum(low + 1, len(frames_b) - 1)]
        good = inside[:, None] & np.isfinite(a).all(-1) & np.isfinite(moved).all(-1)
        return a[good], moved[good]

    def cost(offset: float) -> float:
        x, y = pairs(offset)
        return _epipolar_rms(x, y) if len(x) >= 40 else np.inf

    grid = np.unique(np.concatenate([np.arange(-reach, reach + 0.5, 0.5), start + np.arange(-2.0, 2.01, 0.5)]))
    counts = np.array([len(pairs(o)[0]) for o in grid])
    values = np.array([cost(o) if n >= 0.5 * counts.max() else np.inf for o, n in zip(grid, counts, strict=True)])
    if not np.isfinite(values).any():
        return None
    best = float(grid[int(np.argmin(values))])
    for step in (0.1, 0.02, 0.004):
        fine = best + step * np.arange(-6, 7)
        values = np.array([cost(o) for o in fine])
        best = float(fine[int(np.argmin(values))])
    h = 0.1
    left, middle, right = cost(best - h) ** 2, cost(best) ** 2, cost(best + h) ** 2
    bend = (left - 2 * middle + right) / h**2
    count = len(pairs(best)[0])
    # s^2 = middle; the sum of squares bends by count * bend, so var = 2 s^2 / (count * bend); corners of one view
    # err together, so count views rather than corners
    views = max(count / max(len(common), 1), 1.0)
    sd = float(np.sqrt(2 * middle / (views * bend))) if bend > 0 else float("nan")
    return best, sd


def _epipolar_rms(x: Floats, y: Floats) -> float:
    """Fit a fundamental matrix linearly (eight points, normalised) and return the RMS Sampson distance, px."""
    tx, ty = _normaliser(x), _normaliser(y)
    p, q = (np.column_stack([v, np.ones(len(v))]) @ t.T for v, t in ((x, tx), (y, ty)))
    design = np.einsum("ni,nj->nij", q, p).reshape(len(p), 9)
    weight = np.ones(len(p))
    f = np.eye(3)
    for _ in range(3):
        _, _, vt = np.linalg.svd((design * weight[:, None]).T @ (design * weight[:, None]))
        u, s, v = np.linalg.svd(vt[-1].reshape(3, 3))
        f = ty.T @ (u * [s[0], s[1], 0.0]) @ v @ tx
        distance = _sampson(f, x, y)
        scale = max(1.4826 * float(np.median(np.abs(distance))), 1e-9)
        weight = np.where(np.abs(distance) < 3 * scale, 1.0, 0.0)
        if weight.sum() < 16:
            return np.inf
    kept = _sampson(f, x, y)[weight > 0]
    return float(np.sqrt((kept**2).mean()))


def _sampson(f: Floats, x: Floats, y: Floats) -> Floats:
    p, q = np.column_stack([x, np.ones(len(x))]), np.column_stack([y, np.ones(len(y))])
    a, b = p @ f.T, q @ f
    top = (q * a).sum(1)
    return np.asarray(top / np.sqrt(np.maximum((a[:, :2] ** 2).sum(1) + (b[:, :2] ** 2).sum(1), 1e-18)))


def _normaliser(points: Floats) -> Floats:
    centre = points.mean(0)
    scale = np.sqrt(2) / max(float(np.linalg.norm(points - centre, axis=1).mean()), 1e-9)
    return np.array([[scale, 0, -scale * centre[0]], [0, scale, -scale * centre[1]], [0, 0, 1]])


def offsets_of_session(sightings: Sightings, *, most: int | None = None) -> dict[str, Offset]:
    """Return how late every camera is against the first, from the board's motion."""
    out = {sightings.cameras[0]: Offset(0.0, 0.0, 1.0, "reference")}
    for c in range(1, len(sightings.cameras)):
        try:
            out[sightings.cameras[c]] = offset_between(sightings, 0, c, most=most)
        except SolveError as error:
            raise SolveError(f"cameras '{sightings.cameras[0]}' and '{sightings.cameras[c]}': {error}") from None
    return out
