"""Marks on the skin followed through the images of each camera: what the texture term knows of a recording.

Well-textured spots inside the silhouette are followed from image to image by pyramidal Lucas-Kanade, forwards and
back; a mark that does not come back to where it was, or nears the silhouette's edge, ends there. What is followed is
the image less its local mean inside the silhouette: neither the outline nor shading, which stay where they are while
the skin moves, hold a mark back. Nothing is known of the body here: a track is a row of pixels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Floats, Ints, Singles
from calibration.foundation.compiled import compiled

__all__ = ["FeatureFollower", "FeatureTracks", "FollowSettings", "follow"]

_GAIN = 4.0
"""Grey levels of the flattened image per level of the image: faint fur is a few levels deep."""

_CRITERIA = (cv2.TERM_CRITERIA_COUNT + cv2.TERM_CRITERIA_EPS, 12, 0.02)


@dataclass(frozen=True)
class FollowSettings:
    """How marks are chosen and followed. Pixels are those of the image brought to ``extent``.

    Attributes:
        most: marks looked for in one camera at a time.
        apart: least distance between new marks, px.
        again: frames after which new marks are looked for.
        window: side of the followed patch, px.
        levels: halvings of the image for fast motion.
        edge: distance that a mark keeps from the silhouette's edge, px.
        noise: 1 sigma of the images' noise, grey levels.
        blur: 1 sigma of a mark's place under that noise, px, above which its texture is too faint.
        back: a mark that is followed there and back must return within this, px.
        extent: images are halved until the silhouette's area is at most the square of this, px.
    """

    most: int = 60
    apart: float = 5.0
    again: int = 3
    window: int = 11
    levels: int = 3
    edge: float = 3.0
    noise: float = 0.75
    blur: float = 0.12
    back: float = 0.2
    extent: float = 250.0


@dataclass(frozen=True, eq=False)
class FeatureTracks:
    """Marks of all cameras over a sequence; one row for each time that a mark was seen.

    Attributes:
        frames: (N,) frame of the sequence, ascending.
        views: (N,) camera.
        tracks: (N,) which mark; unique over all cameras.
        pixels: (N, 2) where it was seen, px.
    """

    frames: Ints
    views: Ints
    tracks: Ints
    pixels: Floats

    def __len__(self) -> int:
        """Return how often marks were seen."""
        return len(self.frames)


def follow(
    frames: Iterable[tuple[Sequence[Bytes | None], Sequence[Bools | None]]], settings: FollowSettings | None = None
) -> FeatureTracks:
    """Follow marks through a sequence, holding two images of each camera at a time.

    Args:
        frames: for each frame the images (H, W) or (H, W, 3) of all cameras and their silhouettes (H, W), None where
            a camera has none.
        settings: how.
    """
    followers: list[FeatureFollower] = []
    columns: list[tuple[Ints, Ints, Ints, Floats]] = []
    for frame, (images, masks) in enumerate(frames):
        while len(followers) < len(masks):
            followers.append(FeatureFollower(settings))
        for view, (image, mask) in enumerate(zip(images, masks, strict=True)):
            tracks, pixels = followers[view](image, mask)
            count = len(tracks)
            # Numbers of several cameras are interleaved, so that none must know how many another has.
            unique = tracks * len(masks) + view
            columns.append((np.full(count, frame, np.int64), np.full(count, view, np.int64), unique, pixels))
    if not columns:
        none = np.zeros(0, np.int64)
        return FeatureTracks(none, none, none, np.zeros((0, 2)))
    return FeatureTracks(*(np.concatenate(column) for column in zip(*columns, strict=True)))


class FeatureFollower:
    """Follows marks through one camera's images, one image at a time."""

    def __init__(self, settings: FollowSettings | None = None) -> None:
        self._settings = settings or FollowSettings()
        self._image: Bytes | None = None
        self._box = (0, 0, 0, 0)
        self._points: Singles = np.zeros((0, 2), np.float32)
        self._tracks: Ints = np.zeros(0, np.int64)
        self._halvings = -1
        self._made = self._age = 0

    def __call__(self, image: Bytes | None, mask: Bools | None) -> tuple[Ints, Floats]:
        """Go on to the next image.

        Args:
            image: (H, W) grey levels or (H, W, 3) BGR; None where the camera has none: all marks end.
            mask: (H, W) silhouette; none, or an empty one, ends all marks, too.

        Returns:
            tracks (N,), numbered from 0 in this camera, and pixels (N, 2) of the marks seen.
        """
        if image is None or mask is None or not mask.any():
            self._image = None
            self._points, self._tracks = self._points[:0], self._tracks[:0]
            return self._tracks, np.zeros((0, 2))
        grey = image if image.ndim == 2 else np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY))
        inside = np.ascontiguousarray(mask, np.uint8)
        if self._halvings < 0:
            side = np.sqrt(float(np.count_nonzero(mask)))
            self._halvings = max(0, int(np.ceil(np.log2(side / self._settings.extent))))
        factor = 1 << self._halvings
        if factor > 1:
            size = (mask.shape[1] // factor, mask.shape[0] // factor)
            grey = np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA))
            inside = np.asarray(cv2.resize(inside, size, interpolation=cv2.INTER_NEAREST))
        self._next(grey, inside)
        # The centre of a pixel of the halved image is the corner between four of the image.
        return self._tracks, factor * (self._points.astype(np.float64) + 0.5) - 0.5

    def _next(self, grey: Bytes, inside: Bytes) -> None:
        settings = self._settings
        left, top, width, height = cv2.boundingRect(inside)
        pad = settings.window + 8
        box = (
            max(left - pad, 0),
            max(top - pad, 0),
            min(left + width + pad, grey.shape[1]),
            min(top + height + pad, grey.shape[0]),
        )
        part = (slice(box[1], box[3]), slice(box[0], box[2]))
        corner = np.array(box[:2], np.float32)
        crop = inside[part]
        flat = np.full(grey.shape, 128, np.uint8)
        flat[part] = _flattened(grey[part], crop, settings.window)
        depth = np.asarray(cv2.distanceTransform(crop, cv2.DIST_L2, 3))
        if self._image is not None and len(self._points):
            self._follow(flat, box)
            at = np.rint(self._points - corner).astype(np.int64)
            good = (at >= 0).all(axis=1) & (at[:, 0] < crop.shape[1]) & (at[:, 1] < crop.shape[0])
            good[good] = depth[at[good, 1], at[good, 0]] > settings.edge
            self._points, self._tracks = self._points[good], self._tracks[good]
        if self._image is None or self._age % settings.again == 0:
            self._find(flat[part], crop, depth, corner)
        self._image, self._box = flat, box
        self._age += 1

    def _follow(self, flat: Bytes, box: tuple[int, int, int, int]) -> None:
        """Take the marks to where they are in the next image, and drop those that do not come back."""
        assert self._image is not None
        left, top = min(box[0], self._box[0]), min(box[1], self._box[1])
        right, bottom = max(box[2], self._box[2]), max(box[3], self._box[3])
        both = (slice(top, bottom), slice(left, right))
        before, after = np.ascontiguousarray(self._image[both]), np.ascontiguousarray(flat[both])
        corner = np.array([left, top], np.float32)
        window = (self._settings.window, self._settings.window)
        start = (self._points - corner)[:, None]
        there, found, _ = cv2.calcOpticalFlowPyrLK(
            before, after, start, None, winSize=window, maxLevel=self._settings.levels, criteria=_CRITERIA
        )
        back, returned, _ = cv2.calcOpticalFlowPyrLK(
            after, before, there, None, winSize=window, maxLevel=self._settings.levels, criteria=_CRITERIA
        )
        off = np.linalg.norm((back - start)[:, 0], axis=1)
        good = (found[:, 0] == 1) & (returned[:, 0] == 1) & (off < self._settings.back)
        self._points, self._tracks = (there[:, 0] + corner)[good].astype(np.float32), self._tracks[good]

    def _find(self, flat: Bytes, inside: Bytes, depth: Singles, corner: Singles) -> None:
        """Add marks where the texture is strongest, evenly over the silhouette, away from the marks there are."""
        settings = self._settings
        apart = max(settings.apart, 0.8 * float(np.sqrt(np.count_nonzero(inside) / settings.most)))
        # OpenCV scales the smaller eigenvalue of the summed squares of the slopes by (2 / (255 window))^2.
        squares = cv2.cornerMinEigenVal(np.ascontiguousarray(flat), settings.window, ksize=3)
        squares *= (127.5 * settings.window) ** 2
        # An error of 1 sigma in each pixel moves the patch by sigma / sqrt(squares).
        strong = squares > (_GAIN * settings.noise / settings.blur) ** 2
        radius = int(apart)
        highest = cv2.dilate(squares, np.ones((2 * radius + 1, 2 * radius + 1), np.uint8))
        free = strong & (squares == highest) & (depth > settings.edge + 1.0)
        rows, columns = np.nonzero(free)
        new = np.stack([columns, rows], axis=1).astype(np.float32) + corner
        if len(self._points) and len(new):
            gap = np.linalg.norm(new[:, None] - self._points[None], axis=2).min(axis=1)
            new = new[gap > 0.7 * apart]
        self._points = np.concatenate([self._points, new])
        self._tracks = np.concatenate([self._tracks, self._made + np.arange(len(new))])
        self._made += len(new)


def _flattened(grey: Bytes, inside: Bytes, window: int) -> Bytes:
    """Return what stands out from the local mean inside the silhouette, 128 where nothing does, and outside."""
    within = np.asarray(cv2.erode(inside, np.ones((3, 3), np.uint8)))
    image = np.ascontiguousarray(grey)
    # Sums of whole numbers: quicker than means of fractions, and exact.
    sums, counts = (
        np.asarray(cv2.boxFilter(values, cv2.CV_32F, (window, window), normalize=False))
        for values in (image * within, within)
    )
    flat = np.full(image.shape, 128, np.uint8)
    _stand_out(image, within, sums, counts, flat)
    return flat


@compiled
def _stand_out(image: Bytes, within: Bytes, sums: Singles, counts: Singles, flat: Bytes) -> None:
    """Write how far pixels within stand out from the mean around them, 128 for not at all."""
    for row in range(image.shape[0]):
        for column in range(image.shape[1]):
            if within[row, column]:
                mean = sums[row, column] / counts[row, column]
                flat[row, column] = np.uint8(min(max(128.5 + _GAIN * (image[row, column] - mean), 0.0), 255.0))
