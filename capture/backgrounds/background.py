"""What a camera sees without the subject: the median of a plate or clip, and how much each pixel varies.

The spread is the larger of two: the pixel's own in the background clip (median absolute deviation), and the noise at
that brightness, measured in the recording itself over its whole length, because a codec repeats still blocks from
frame to frame and lets them wander over seconds. So a single plate does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.foundation.arrays import Bytes, Floats, Singles
from calibration.foundation.compiled import compiled
from calibration.foundation.errors import InputError
from capture.backgrounds.medians import median_and_spread
from capture.recordings.video import probe, read_both, read_frames

__all__ = [
    "MOST_SPREAD",
    "SCALE",
    "Background",
    "NoiseCurve",
    "background_of",
    "empty_scene",
    "fitting_frames",
    "light_gain",
    "load_background",
    "noise_curve",
    "noise_over",
    "spread_frames",
    "spread_frames_beside",
    "steadied",
    "three_axes",
]

#: Evidence is stored in bytes: this many units are one standard deviation.
SCALE = 8.0
#: Share of the normal distribution: sigma = 1.4826 median |x - median|.
_MAD = 1.4826
_MOST_BYTES = 160_000_000
#: Up to this many frames are decoded in one go; beyond, each sample is sought in containers that can.
_MOST_FRAMES = 4000
_SOUGHT = (".mp4", ".m4v", ".mov", ".mkv", ".webm")
#: Pairs of images that the noise is measured on, about.
_PAIRS = 8
#: A band of brightness with this many times the usual noise shows movement.
_RESTLESS = 4.0
#: A pixel's own spread counts up to this many times the noise at its brightness: more is the subject's.
MOST_SPREAD = 4.0
#: Light that changes by less than this share is left alone: rounding would cost more.
_STEADY = 0.004
#: Pixels that the light of an image is measured on, about, and where a background is learnt from it.
_LIGHT_PX, _LEARNT_PX = 5_000, 12_000
#: Every so many-th pixel says how noisy a background usually is.
_USUAL_STEP = 4


@dataclass(frozen=True, eq=False)
class NoiseCurve:
    """Standard deviation of the sensor noise over brightness.

    Attributes:
        levels: (n,) brightness, grey levels, rising.
        sigma: (n,) grey levels.
    """

    levels: Floats
    sigma: Floats

    def at(self, brightness: Singles) -> Singles:
        """Return the noise at each brightness, grey levels, to a quarter of a grey level."""
        table = np.interp(np.arange(4 * 255 + 1) / 4.0, self.levels, self.sigma).astype(np.float32)
        # Looked up, not interpolated: that would hold images twice in double precision.
        place = np.multiply(brightness, np.float32(4.0), dtype=np.float32)
        np.rint(place, out=place)
        return np.asarray(table[np.clip(place, 0, len(table) - 1, out=place).astype(np.int16)])


@dataclass(frozen=True, eq=False)
class Background:
    """A per-pixel model of the empty scene.

    Attributes:
        centre: (H, W, C) median, grey levels.
        spread: (H, W, C) robust standard deviation, grey levels.
    """

    centre: Singles
    spread: Singles

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) px."""
        return self.centre.shape[1], self.centre.shape[0]

    def noisier(self, times: float) -> Background:
        """Return it with so many times its usual noise. What is unsure beyond that, as ground never seen, stays so."""
        usual = np.median(self.spread[::_USUAL_STEP, ::_USUAL_STEP], axis=(0, 1))
        more = np.float32(times * times - 1.0) * np.square(usual)
        return Background(self.centre, np.sqrt(np.square(self.spread) + more))


def three_axes(image: Bytes) -> Bytes:
    """Return (H, W) or (H, W, C) as (H, W, C)."""
    return image[:, :, None] if image.ndim == 2 else image


def background_of(
    images: Sequence[Bytes] | Bytes, noise: NoiseCurve | None = None, *, most_spread: float = np.inf
) -> Background:
    """Return the median and robust spread of images of the empty scene.

    ``most_spread`` limits the spread to that many times the noise: where a subject passes through the images, the
    spread is the subject's and not the background's.
    """
    if len(images) == 0:
        raise InputError("background: no image given")
    stack = steadied(images)
    centre, spread, _ = median_and_spread(stack)
    floor = np.float32(1.0) if noise is None else noise.at(centre)
    return Background(centre, np.clip(spread, floor, np.float32(most_spread) * floor, out=spread))


def steadied(images: Sequence[Bytes] | Bytes) -> Bytes:
    """Return (n, H, W, C) the images of one camera under one light: flicker and exposure taken out.

    An array (n, H, W, C) is changed in place, so that large images are not held twice.
    """
    whole = isinstance(images, np.ndarray) and images.ndim == 4
    stack = np.asarray(images) if whole else np.stack([three_axes(image) for image in images])
    reference = stack[len(stack) // 2].astype(np.float32)
    gains = np.array([light_gain(image, reference, _LEARNT_PX) for image in stack])
    gains /= np.median(gains, axis=0)
    for image, gain in zip(stack, gains, strict=True):
        if np.abs(gain - 1.0).max() > _STEADY:
            # In one buffer, which the reference no longer needs.
            np.divide(image, gain.astype(np.float32), out=reference)
            np.clip(np.rint(reference, out=reference), 0, 255, out=reference)
            image[:] = reference
    return stack


def fitting_frames(size: tuple[int, int]) -> int:
    """Return how many colour images of a size (width, height) are held at a time, at most."""
    return max(3, _MOST_BYTES // (3 * size[0] * size[1]))


def spread_frames(
    source: Path | str, most: int, *, start: int = 0, stop: int | None = None, gray: bool = False
) -> Bytes:
    """Read at most ``most`` frames (n, H, W, C) spread evenly over ``source``, within a bounded amount of memory."""
    return spread_frames_beside(source, most, (), start=start, stop=stop, gray=gray)[0]


def spread_frames_beside(
    source: Path | str,
    most: int,
    beside: Collection[int],
    *,
    start: int = 0,
    stop: int | None = None,
    gray: bool = False,
) -> tuple[Bytes, dict[int, tuple[Bytes, Bytes]]]:
    """Read frames as `spread_frames` does, and others in the same pass: by their numbers, as filmed and in grey.

    Of those ``beside`` there are none where frames are sought one by one.
    """
    info = probe(source)
    last = info.frames if stop is None else min(stop, info.frames)
    width, height = info.size
    channels = 3 if info.colour and not gray else 1
    seeks = Path(source).is_dir() or Path(source).suffix.lower() in _SOUGHT
    if last - start > _MOST_FRAMES and not seeks:
        last = start + _MOST_FRAMES
    step = max(1, -(-(last - start) // min(most, fitting_frames(info.size))))
    wanted = range(start, last, step)
    stack = np.empty((len(wanted), height, width, channels), dtype=np.uint8)
    others: dict[int, tuple[Bytes, Bytes]] = {}
    images: Iterator[Bytes]
    if last - start > _MOST_FRAMES:
        images = (next(read_frames(source, frame, frame + 1, gray=gray, ahead=False))[1] for frame in wanted)
    elif beside:
        images = _beside(source, wanted, {frame for frame in beside if start <= frame < last}, gray, others)
    else:
        images = (image for _, image in read_frames(source, start, last, step, gray=gray, ahead=False))
    count = 0
    for image in images:
        stack[count] = three_axes(image)
        count += 1
    return stack[:count], others


def _beside(
    source: Path | str, wanted: range, others: Collection[int], gray: bool, found: dict[int, tuple[Bytes, Bytes]]
) -> Iterator[Bytes]:
    """Yield the images that are wanted, and fill in the ``others``."""
    for index, image, grey in read_both(source, {*wanted, *others}):
        if index in others:
            found[index] = image, grey
        if index in wanted:
            yield grey if gray else image


def load_background(
    source: Path | str, noise: NoiseCurve | None = None, *, most: int = 32, gray: bool = False
) -> Background:
    """Read a plate, clip or folder without the subject."""
    return background_of(spread_frames(source, most, gray=gray), noise, most_spread=MOST_SPREAD)


def empty_scene(
    sources: Sequence[Path], frames: tuple[int, int] | None = None, *, most: int = 32, gray: bool = False
) -> Bytes:
    """Return images (n, H, W, C) of plates, clips and folders without the subject, or of some frames of them."""
    start, stop = frames or (0, None)
    each = max(1, most // len(sources))
    stacks = []
    for source in sources:
        count = probe(source).frames
        if start >= count:
            raise InputError(f"{source}: background_frames begin at {start}, it has {count} frames")
        stacks.append(spread_frames(source, each, start=start, stop=stop, gray=gray))
    for source, stack in zip(sources, stacks, strict=True):
        if stack.shape[1:] != stacks[0].shape[1:]:
            height, width, channels = stack.shape[1:]
            raise InputError(
                f"{source}: a background of {width} x {height} px and {channels} channels beside {sources[0].name} of "
                f"{stacks[0].shape[2]} x {stacks[0].shape[1]} px and {stacks[0].shape[3]}; give them alike"
            )
    return np.concatenate(stacks)


def noise_over(stack: Bytes) -> NoiseCurve:
    """Measure the noise in images (n, H, W, C) spread over a recording: between images half its length apart."""
    half = len(stack) // 2
    if half == 0:
        return noise_curve([])
    return noise_curve([(stack[n], stack[n + half]) for n in range(0, half, max(1, half // _PAIRS))])


def noise_curve(pairs: Iterable[tuple[Bytes, Bytes]], *, floor: float = 1.0) -> NoiseCurve:
    """Measure the sensor noise from pairs of images, most of whose pixels show nothing that moves.

    The difference of two images has twice the variance of one; flicker between them is no noise. ``floor`` stands for
    what a codec rounds away. A brightness that only the edge of something moving has is left out.
    """
    edges = np.linspace(0.0, 256.0, 17)
    found: list[list[float]] = [[] for _ in range(16)]
    for pair in pairs:
        first, second = steadied(pair)
        a = first.reshape(-1)[::7].astype(np.int16)
        b = second.reshape(-1)[::7].astype(np.int16)
        which = ((a + b) >> 5).astype(np.uint8)
        ends = np.cumsum(np.bincount(which, minlength=16))
        changes = np.split(np.abs(a - b)[np.argsort(which, kind="stable")], ends[:-1])
        dither = _half_step(max(map(len, changes)))
        for band, change in enumerate(changes):
            if len(change) >= 200:
                # The share within one grey level makes the estimate of integer data continuous.
                found[band].append(_MAD * float(np.median(change + dither[: len(change)])) / np.sqrt(2.0))
    known = [band for band in range(16) if found[band]]
    if not known:
        return NoiseCurve(np.array([0.0, 255.0]), np.array([2.0, 2.0]))
    sigma = np.maximum([float(np.median(found[band])) for band in known], floor)
    usual = sigma <= _RESTLESS * np.median(sigma)
    levels = np.array([(edges[band] + edges[band + 1]) / 2 for band in known])
    return NoiseCurve(levels[usual], sigma[usual])


def _half_step(count: int) -> Singles:
    """Return a fixed dither in [-0.5, 0.5): a median of integers becomes a median of numbers."""
    return ((np.arange(count, dtype=np.float32) * np.float32(0.618034)) % 1.0 - np.float32(0.5)).astype(np.float32)


def light_gain(frame: Bytes, centre: Singles, pixels: int = _LIGHT_PX) -> Floats:
    """Return (C,) how much brighter the scene is than in the background, robust to the subject, by some ``pixels``."""
    step = max(1, int(np.sqrt(frame.shape[0] * frame.shape[1] / pixels)))
    gains = np.ones(frame.shape[2])
    for channel in range(frame.shape[2]):
        ratio = _ratios(frame, centre, step, channel)
        if len(ratio) > 200:
            # The half of the pixels whose ratios lie closest together is background; its median is the gain.
            ratio.sort()
            half = len(ratio) // 2
            first = int(np.argmin(ratio[half:] - ratio[: len(ratio) - half]))
            gains[channel] = float((ratio[first + (half - 1) // 2] + ratio[first + half // 2]) / 2)
    return gains


@compiled
def _ratios(frame: Bytes, centre: Singles, step: int, channel: int) -> Singles:
    """Return the brightness ratios of every ``step``-th pixel along both axes that is neither dark nor saturated."""
    height, width, _ = frame.shape
    out = np.empty(((height - 1) // step + 1) * ((width - 1) // step + 1), np.float32)
    count = 0
    for y in range(0, height, step):
        for x in range(0, width, step):
            now, then = np.float32(frame[y, x, channel]), centre[y, x, channel]
            if then > 16 and then < 235 and now > 4 and now < 250:
                out[count] = now / then
                count += 1
    return out[:count]
