"""The rhythm of a gait from silhouettes alone, before any calibration.

Favreau et al. 2004 (Animal gaits from video, SCA): the binarised images, cropped to the subject, are taken apart into
principal components; a regular gait shows as components that repeat. Here the stride frequency is the one whose
harmonics explain most of the leading components of all cameras, and a component's regularity r is its correlation with
what repeats in it. What moves slowly (a turn, a change of distance) is taken out first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import cv2
import numpy as np
from scipy.ndimage import gaussian_filter1d

from calibration.foundation.arrays import Bools, Floats
from calibration.foundation.errors import InputError

__all__ = ["Rhythm", "find_rhythm", "key_frames", "silhouette_components"]

SIDE = 32
"""Pixels of a cropped silhouette."""
_COMPONENTS = 6
"""Leading components that the frequency is looked for in."""
_HARMONICS = 3
_FASTEST_HZ = 12.0
"""Strides per second that no gait exceeds."""
_FEWEST = 4.0
"""Strides that a recording must hold, at least, to be called regular."""
_REGULAR = 0.6
"""Regularity from which a component repeats (Favreau et al.)."""


@dataclass(frozen=True, eq=False)
class Rhythm:
    """How regular a gait is.

    Attributes:
        stride_hz: strides per second; NaN if there is no regular gait.
        camera: the camera that shows it best.
        regularity: r of its first and second component.
        phase: (T,) cycles since the first frame, finer than frames; NaN without a regular gait.
        components: (T, 2) first two components of that camera, unit variance.
    """

    stride_hz: float
    camera: str
    regularity: tuple[float, float]
    phase: Floats
    components: Floats

    @property
    def regular(self) -> bool:
        """Whether there is a regular gait."""
        return bool(np.isfinite(self.stride_hz))

    def words(self) -> str:
        """Say it in one line."""
        r = f"r = {self.regularity[0]:.2f} and {self.regularity[1]:.2f} in {self.camera}"
        return (
            f"regular gait, {self.stride_hz:.2f} strides per second, {r}" if self.regular else f"no regular gait ({r})"
        )


def silhouette_components(crops: Floats, cycles: float) -> Floats:
    """Return the leading principal components (T, 6) of cropped silhouettes (T, 32, 32), less what is slower than
    ``cycles`` per recording."""
    flat = _brisk(crops.reshape(len(crops), -1), cycles)
    u, s, _ = np.linalg.svd(flat - flat.mean(axis=0), full_matrices=False)
    return np.asarray(u[:, :_COMPONENTS] * s[:_COMPONENTS])


def _brisk(values: Floats, cycles: float) -> Floats:
    """Return values (T, ...) without what is slower than 0.6 of ``cycles`` per recording: half of that goes."""
    return values - gaussian_filter1d(values, 0.313 * len(values) / cycles, axis=0, mode="nearest")


def _crops(masks: Sequence[Bools] | Bools) -> Floats:
    """(T, 32, 32) silhouettes about their middle, of one size, turned to one direction."""
    frames = len(masks)
    middles, sizes, turns = np.zeros((frames, 2)), np.zeros(frames), np.zeros(frames, dtype=np.complex128)
    for t in range(frames):
        found = cv2.moments(np.asarray(masks[t], dtype=np.uint8), binaryImage=True)
        if found["m00"] > 0:
            middles[t] = found["m10"] / found["m00"], found["m01"] / found["m00"]
            sizes[t] = np.sqrt(found["m00"])
            # A direction has no sign: twice its angle has one.
            turns[t] = found["mu20"] - found["mu02"] + 2j * found["mu11"]
    seen = sizes > 0
    if not seen.any():
        raise InputError("rhythm: no silhouette in any frame")
    index = np.arange(frames)
    for values in (middles[:, 0], middles[:, 1], sizes):
        values[:] = np.interp(index, index[seen], values[seen])
    slow = frames / 8.0
    size = gaussian_filter1d(sizes, slow, mode="nearest")
    angle = 0.5 * np.unwrap(np.angle(gaussian_filter1d(turns.real, slow) + 1j * gaussian_filter1d(turns.imag, slow)))
    out = np.zeros((frames, SIDE, SIDE))
    for t in index[seen]:
        scale = SIDE / (3.2 * size[t])
        cosine, sine = scale * np.cos(angle[t]), scale * np.sin(angle[t])
        move = np.array([[cosine, sine, 0.0], [-sine, cosine, 0.0]])
        move[:, 2] = 0.5 * (SIDE - 1) - move[:, :2] @ middles[t]
        image = np.asarray(masks[t], dtype=np.uint8) * np.uint8(255)
        if scale < 0.7:
            image = cv2.GaussianBlur(image, (0, 0), 0.4 / scale)
        out[t] = cv2.warpAffine(image, move, (SIDE, SIDE), flags=cv2.INTER_LINEAR) / 255.0
    return out


def find_rhythm(masks: Mapping[str, Sequence[Bools] | Bools], rate_hz: float) -> Rhythm:
    """Judge the rhythm of silhouettes (T, H, W) of one or more cameras, of equal lengths."""
    if not masks:
        raise InputError("rhythm: wanted the silhouettes of one camera at least")
    crops = {camera: _crops(some) for camera, some in masks.items()}
    frames = len(next(iter(crops.values())))
    cycles, scores, stacked = _fundamental(crops, rate_hz)
    regular = {camera: _regularity(values, cycles) for camera, values in scores.items()}
    best = max(regular, key=lambda camera: min(regular[camera]))
    shown = scores[best][:, :2] / np.maximum(scores[best][:, :2].std(axis=0), 1e-12)
    if min(regular[best]) < _REGULAR or cycles < _FEWEST * 0.95:
        return Rhythm(np.nan, best, regular[best], np.full(frames, np.nan), shown)
    return Rhythm(cycles / frames * rate_hz, best, regular[best], _phase(stacked, cycles), shown)


def _fundamental(crops: Mapping[str, Floats], rate_hz: float) -> tuple[float, dict[str, Floats], Floats]:
    """Return the strides of the recording, and the components of what is as fast, by camera and of all together.

    Of the times after which silhouettes come back, the one whose harmonics explain most; but if every
    second or third of these does nearly as well, the strides are that much faster.
    """
    most = min(len(next(iter(crops.values()))) / 8.0, len(next(iter(crops.values()))) / rate_hz * _FASTEST_HZ)

    def tried(guess: float) -> tuple[float, float, dict[str, Floats], Floats]:
        scores = {camera: silhouette_components(some, guess) for camera, some in crops.items()}
        stacked = np.concatenate(
            [values / max(float(np.linalg.norm(values)), 1e-12) for values in scores.values()], axis=1
        )
        cycles = _refined(stacked, guess)
        return _explained(stacked, cycles) / float((stacked**2).sum()), cycles, scores, stacked

    best = max((tried(guess) for guess in _guesses(_joined(crops, _FEWEST), rate_hz)), key=lambda one: one[0])
    for times, nearly in ((2, 0.8), (3, 0.6), (2, 0.8)):
        _, cycles, _, stacked = best
        if times * cycles > most:
            continue
        faster = _refined(stacked, times * cycles)
        if _explained(stacked, faster) >= nearly * _explained(stacked, cycles):
            best = tried(faster)
    return best[1], best[2], best[3]


def _joined(crops: Mapping[str, Floats], cycles: float) -> Floats:
    """(T, K) leading components of all cameras, each camera of unit size."""
    parts = [silhouette_components(some, cycles) for some in crops.values()]
    return np.concatenate([part / max(float(np.linalg.norm(part)), 1e-12) for part in parts], axis=1)


def _harmonics(frames: int, cycles: float, count: int = _HARMONICS) -> Floats:
    """(T, 2 count) orthonormal sines and cosines of ``cycles`` per recording and its multiples."""
    turn = 2 * np.pi * cycles * np.arange(frames)[:, None] / frames * np.arange(1, count + 1)
    return np.asarray(np.linalg.qr(np.concatenate([np.cos(turn), np.sin(turn)], axis=1))[0])


def _explained(scores: Floats, cycles: float) -> float:
    """Return the variance of scores (T, K) that a frequency and its harmonics explain."""
    return float(((_harmonics(len(scores), cycles).T @ scores) ** 2).sum())


def _guesses(scores: Floats, rate_hz: float) -> list[float]:
    """Return cycles of the recording that may be its strides: after such a time the components come back, or after two
    or three of them."""
    frames = len(scores)
    whole = int(frames / _FEWEST * 1.1)
    alike = np.zeros(whole + 2)
    for lag in range(whole + 2):
        early, late = scores[: frames - lag], scores[lag:]
        size = np.linalg.norm(early) * np.linalg.norm(late)
        alike[lag] = float((early * late).sum()) / max(float(size), 1e-300)
    inner = np.arange(4, whole + 1)
    peaks = inner[(alike[inner] > alike[inner - 1]) & (alike[inner] >= alike[inner + 1])]
    best = peaks[np.argsort(-alike[peaks], kind="stable")][:3]
    guesses = {round(frames * parts / float(lag), 1) for lag in best for parts in (1, 2, 3)}
    most = min(frames / 8.0, frames / rate_hz * _FASTEST_HZ)
    return sorted(one for one in guesses if one <= most) or [_FEWEST]


def _refined(scores: Floats, cycles: float) -> float:
    """Return the frequency near ``cycles`` that explains most, to a thousandth of a cycle."""
    for width in (0.3, 0.06, 0.012, 0.003):
        near = cycles + width * np.linspace(-1.0, 1.0, 11)
        cycles = float(near[int(np.argmax([_explained(scores, one) for one in near]))])
    return cycles


def _regularity(scores: Floats, cycles: float) -> tuple[float, float]:
    """Return the correlation of the first and the second component with what repeats in them."""
    if cycles <= 0:
        return 0.0, 0.0
    basis = _harmonics(len(scores), cycles)
    shares = [float(((basis.T @ scores[:, k]) ** 2).sum() / max((scores[:, k] ** 2).sum(), 1e-300)) for k in range(2)]
    return float(np.sqrt(shares[0])), float(np.sqrt(shares[1]))


def _phase(scores: Floats, cycles: float) -> Floats:
    """(T,) cycles since the first frame: the steady count, and what the components are early or late against it.

    Each harmonic's own phase, in a window of a stride, is compared with its mean pattern; they are weighed by power.
    """
    frames = len(scores)
    steady = cycles * np.arange(frames) / frames
    width = 0.5 * frames / cycles
    late, weight = np.zeros(frames), np.zeros(frames)
    for harmonic in (1, 2):
        carrier = np.exp(-2j * np.pi * harmonic * steady)[:, None] * scores
        local = gaussian_filter1d(carrier.real, width, axis=0, mode="nearest") + 1j * gaussian_filter1d(
            carrier.imag, width, axis=0, mode="nearest"
        )
        pattern = carrier.mean(axis=0)
        turn = (local * pattern.conj()).sum(axis=1)
        late += harmonic * np.abs(turn) * np.unwrap(np.angle(turn)) / (2 * np.pi)
        weight += harmonic**2 * np.abs(turn)
    return np.asarray(steady + late / np.maximum(weight, 1e-300))


def key_frames(rhythm: Rhythm, count: int) -> list[int]:
    """Return the frames to place key poses in: those that tell the poses of a cycle apart best.

    Favreau et al.: the subset of frames whose radial basis functions in the plane of the first two components have the
    least condition number; looked for among frames spread over one cycle, or over all without a regular gait.
    """
    points = rhythm.components
    if count < 2 or count > len(points):
        raise InputError(f"key frames: wanted 2 to {len(points)}, got {count}")
    chosen = np.arange(len(points))
    if rhythm.regular:
        middle = float(np.nanmedian(rhythm.phase))
        chosen = np.flatnonzero(np.abs(rhythm.phase - middle) <= 0.5)
    some = chosen[np.unique(np.linspace(0, len(chosen) - 1, max(count, min(len(chosen), 20))).round().astype(int))]
    apart = np.linalg.norm(points[some][:, None] - points[some][None], axis=2)
    basis = np.exp(-np.log(2.0) * apart**2)
    if count <= 4:
        subsets = combinations(range(len(some)), count)
        best = min(subsets, key=lambda one: float(np.linalg.cond(basis[np.ix_(one, one)])))
        return [int(some[index]) for index in best]
    picked = [0]
    while len(picked) < count:
        rest = [index for index in range(len(some)) if index not in picked]
        picked.append(min(rest, key=lambda i: float(np.linalg.cond(basis[np.ix_([*picked, i], [*picked, i])]))))
    return sorted(int(some[index]) for index in picked)
