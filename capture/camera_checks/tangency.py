"""Tangent planes that two cameras share.

A plane through the centres of two cameras that touches the subject touches its outline in both images. So the two
outermost planes of the pencil around the line between the centres, each a single angle, are the same seen from either
camera, whatever the subject's shape (frontier points: Cipolla, Astrom and Giblin, Motion from the frontier of curved
surfaces, ICCV 1995). They differ if a camera is late, turned or moved, and by how much says what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from calibration.cameras.camera import Camera
from calibration.foundation.arrays import Bools, Floats, Ints
from calibration.geometry.transforms import rotation_from_vector
from capture.camera_checks.outlines import Outlines

__all__ = ["OutlineRays", "Tangents", "at_lag", "disagreement", "moved", "stacked", "tangents", "view_of"]

#: A corner this near to the border may be where the image ends, not the subject.
_BORDER_PX = 2.0
#: An outermost plane is not believed if a corner at the border lies within this share of the outline's width of it.
_CUT_SHARE = 0.15
#: An outline that fills more of the pencil than this (radians) holds the other camera's own image.
_WIDEST = 2.6


@dataclass(frozen=True, eq=False)
class OutlineRays:
    """The outlines of one camera as lines of sight.

    Attributes:
        centre: (3,) of the camera, world mm.
        rays: (T, M, 3) unit directions to the corners; rows are filled up with their first corner.
        px_rad: (T, M) radians of one pixel there.
        cut: (T, M) whether the image ends there.
        seen: (T,) whether the frame has an outline.
        pencils: outermost planes that were asked for, by the axis: cameras are held against each other again and again.
    """

    centre: Floats
    rays: Floats
    px_rad: Floats
    cut: Bools
    seen: Bools
    pencils: dict[bytes, Tangents] = field(default_factory=dict, init=False, repr=False)

    def take(self, rows: slice) -> OutlineRays:
        """Return the view of some frames."""
        return OutlineRays(self.centre, self.rays[rows], self.px_rad[rows], self.cut[rows], self.seen[rows])


def view_of(camera: Camera, outlines: Outlines) -> OutlineRays:
    """Return the lines of sight of a camera's outlines."""
    counts = np.diff(outlines.starts)
    most = max(int(counts.max(initial=0)), 1)
    column = np.arange(most)
    index = outlines.starts[:-1, None] + np.where(column < counts[:, None], column, 0)
    seen = counts > 0
    pixels = outlines.pixels[np.where(seen[:, None], index, 0)] if len(outlines.pixels) else np.zeros((*index.shape, 2))
    rays = camera.rays(pixels)[1]
    steps = [np.linalg.norm(camera.rays(pixels + step)[1] - rays, axis=-1) for step in ((1.0, 0.0), (0.0, 1.0))]
    size = np.array(camera.size, dtype=np.float64)
    cut = np.asarray(((pixels < _BORDER_PX) | (pixels > size - 1 - _BORDER_PX)).any(axis=-1))
    px_rad = np.mean(steps, axis=0)
    known = np.isfinite(rays).all(axis=(1, 2)) & np.isfinite(px_rad).all(axis=1)
    rays[~known], px_rad[~known] = (0.0, 0.0, 1.0), 1.0
    return OutlineRays(camera.centre, rays, px_rad, cut, seen & known)


def moved(view: OutlineRays, turn: Floats, shift: Floats) -> OutlineRays:
    """Return the view of a camera turned by a rotation vector (radians) and shifted (mm), both in world axes."""
    return replace(view, centre=view.centre + shift, rays=view.rays @ rotation_from_vector(turn).T)


@dataclass(frozen=True, eq=False)
class Tangents:
    """The outermost planes of a pencil in one view, per frame the first and the last; NaN where not known.

    Attributes:
        angle: (..., T, 2) rad.
        px_rad: (..., T, 2) radians of the pencil that one pixel spans there.
        by_turn: (..., T, 2, 3) how the angle changes as the camera turns, world axes, rad/rad.
    """

    angle: Floats
    px_rad: Floats
    by_turn: Floats


def tangents(view: OutlineRays, axis: Floats) -> Tangents:
    """Return the outermost planes of the pencil around ``axis`` (3,), a unit vector towards another camera."""
    key = axis.tobytes()
    if key not in view.pencils:
        view.pencils[key] = _outermost(view, axis)
    return view.pencils[key]


def _outermost(view: OutlineRays, axis: Floats) -> Tangents:
    u, v = _across(axis)
    x, y = view.rays @ u, view.rays @ v
    middle = np.arctan2(y.sum(axis=1), x.sum(axis=1))[:, None]
    cosine, sine = np.cos(middle), np.sin(middle)
    angle = np.arctan2(cosine * y - sine * x, cosine * x + sine * y)
    which = np.stack([angle.argmax(axis=1), angle.argmin(axis=1)], axis=1)
    row = np.arange(len(angle))[:, None]
    outermost = angle[row, which]
    width = outermost[:, :1] - outermost[:, 1:]
    room = _CUT_SHARE * width
    highest = np.where(view.cut, angle, -np.inf).max(axis=1, keepdims=True)
    lowest = np.where(view.cut, angle, np.inf).min(axis=1, keepdims=True)
    free = np.concatenate([highest < outermost[:, :1] - room, lowest > outermost[:, 1:] + room], axis=1)
    good = free & view.seen[:, None] & (width < _WIDEST)
    a, b, ray = x[row, which], y[row, which], view.rays[row, which]
    away = np.maximum(np.hypot(a, b), 1e-9)
    by_turn = _cross(ray, a[..., None] * v - b[..., None] * u) / (away**2)[..., None]
    known = np.where(good, middle + outermost, np.nan)
    return Tangents(known, view.px_rad[row, which] / away, np.where(good[..., None], by_turn, 0.0))


def _across(axis: Floats) -> tuple[Floats, Floats]:
    u = _cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    u /= np.linalg.norm(u)
    return u, _cross(axis, u)


def _cross(a: Floats, b: Floats) -> Floats:
    """Return ``np.cross`` of vectors (..., 3), which moves axes about for several times as long."""
    (a0, a1, a2), (b0, b1, b2) = (a[..., k] for k in range(3)), (b[..., k] for k in range(3))
    return np.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axis=-1)


def stacked(several: Sequence[Tangents]) -> Tangents:
    """Return the planes of several pencils in one object, with a leading axis."""
    fields = zip(*((one.angle, one.px_rad, one.by_turn) for one in several), strict=True)
    return Tangents(*(np.stack(field) for field in fields))


def at_lag(one: Tangents, frames: Ints, lag: float) -> Tangents:
    """Return what a camera that is ``lag`` frames late shows of the frames (T,): its own, that many later."""
    if lag == 0.0:
        return one
    whole = int(np.floor(lag))
    part = lag - whole
    place = np.full(int(frames.max() - frames.min()) + 1, -1)
    place[frames - frames.min()] = np.arange(len(frames))

    def at(step: int) -> Ints:
        wanted = frames - frames.min() + step
        return np.where((wanted >= 0) & (wanted < len(place)), place[np.clip(wanted, 0, len(place) - 1)], -1)

    first = at(whole)
    second = at(whole + 1) if part else first
    good = (first >= 0) & (second >= 0)
    start = one.angle[..., first, :]
    angle = start + part * _wrapped(one.angle[..., second, :] - start) if part else start
    return Tangents(np.where(good[:, None], angle, np.nan), one.px_rad[..., first, :], one.by_turn[..., first, :, :])


def disagreement(one: Tangents, other: Tangents) -> tuple[Floats, Floats]:
    """Return (..., T, 2) by how much a view's planes differ from the other's, px, and the radians of such a pixel."""
    scale = np.hypot(one.px_rad, other.px_rad)
    return _wrapped(one.angle - other.angle) / scale, scale


def _wrapped(angle: Floats) -> Floats:
    return np.asarray((angle + np.pi) % (2 * np.pi) - np.pi)
