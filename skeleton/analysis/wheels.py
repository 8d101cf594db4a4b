"""A running wheel: ground that is the inside, or the outside, of a cylinder which turns about its axis.

A standing foot goes on a circle about the axis: its velocity is square to the line from there. Where the lines of all
feet meet is the axis, by least median of squares, for swings do otherwise. Unrolled, the surface is a belt, and what is
known of belts holds: how fast it turns is the velocity that feet near it share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.ndimage import gaussian_filter1d

from calibration.foundation.arrays import Floats, frozen
from calibration.foundation.errors import InputError
from skeleton.analysis.belts import Belt, find_belt, stride_frames

__all__ = ["Rim", "Wheel", "find_wheel", "given_wheel"]

_PAIRS = 400
"""Pairs of velocities that a centre is guessed from."""
_FEW = 600
"""Velocities that guesses are compared on."""
_SHARE = 0.4
"""Share of all velocities that a ground must explain: feet stand that long."""
_TURN = 0.3
"""Standing feet lie over so wide an angle on a wheel, rad, or the ground might as well be flat."""
_BETTER = 0.5
"""A wheel leaves at most this share of the velocity that a belt leaves unexplained."""
_REFINED = 5
"""Turns of fitting the centre to the feet that go with the wheel."""

_WITHIN = 8.0
"""A wheel's speed is one within this part of a stride, 1 sigma."""


@dataclass(frozen=True, eq=False)
class Rim:
    """Where a wheel is.

    Attributes:
        centre: (3,) a point of its axis, mm.
        axis: (3,) the direction of that, of length 1, not upright.
        radius_mm: of the surface that is run on.
        inside: whether that is its inside, where the feet are below the axis; otherwise its outside.
    """

    centre: Floats
    axis: Floats
    radius_mm: float
    inside: bool = True

    def __post_init__(self) -> None:
        axis = np.asarray(self.axis, dtype=np.float64)
        object.__setattr__(self, "axis", frozen(axis / np.linalg.norm(axis)))
        object.__setattr__(self, "centre", frozen(np.asarray(self.centre, dtype=np.float64)))

    @property
    def frame(self) -> Floats:
        """(3, 3) rows: along the surface where it is level, along the axis, and up from there."""
        along = np.cross(self.axis, [0.0, 0.0, 1.0])
        along /= np.linalg.norm(along)
        return np.stack([along, self.axis, np.cross(along, self.axis)])

    def unrolled(self, points: Floats) -> Floats:
        """Return points (..., 3) with the surface laid flat, level where it is lowest (outside: highest)."""
        frame, side = self.frame, 1.0 if self.inside else -1.0
        along, across, up = np.moveaxis((np.asarray(points, dtype=np.float64) - self.centre) @ frame.T, -1, 0)
        way = self.radius_mm * np.arctan2(along, -side * up)
        return np.asarray(np.stack([way, across, -side * np.hypot(along, up)], axis=-1) @ frame + self.centre)

    def rolled(self, points: Floats) -> Floats:
        """Return points (..., 3) of the flat surface where they are on the wheel."""
        frame, side = self.frame, 1.0 if self.inside else -1.0
        way, across, height = np.moveaxis((np.asarray(points, dtype=np.float64) - self.centre) @ frame.T, -1, 0)
        angle, distance = way / self.radius_mm, -side * height
        places = np.stack([distance * np.sin(angle), across, -side * distance * np.cos(angle)], axis=-1)
        return np.asarray(places @ frame + self.centre)


@dataclass(frozen=True, eq=False)
class Wheel:
    """A wheel that turns.

    Attributes:
        rim: where it is.
        surface: how its surface goes, unrolled.
        given: whether the recording says where it is; otherwise that was found.
    """

    rim: Rim
    surface: Belt
    given: bool = False

    @property
    def moves(self) -> bool:
        """Whether it turns, or is at least no floor."""
        return True

    @property
    def speed_mm_s(self) -> float:
        """Mean speed of its surface."""
        return self.surface.speed_mm_s

    def without(self, points: Floats, rate_hz: float, *, up: int = 2) -> Floats:
        """Return points (T, ..., 3) as seen by somebody who rides on it, the surface flat and level."""
        if up != 2:
            raise InputError("wheel: z must be up")
        return self.surface.without(self.rim.unrolled(points), rate_hz)

    def back(self, points: Floats, rate_hz: float) -> Floats:
        """Return such points (T, ..., 3) in the world."""
        return self.rim.rolled(self.surface.back(points, rate_hz))

    def path(self, root: Floats, rate_hz: float) -> Floats:
        """Return the way (T, 2) that a root (T, 2) goes over it, mm: the body itself hardly moves along the wheel."""
        return self.surface.path(root, rate_hz)

    def words(self) -> str:
        """Say what it is."""
        where = "named in recording.toml" if self.given else "found from the feet"
        x, y, z = self.rim.centre
        return (
            f"The ground is the {'inside' if self.rim.inside else 'outside'} of a wheel, {where}: radius "
            f"{self.rim.radius_mm:.0f} mm about an axis through ({x:.0f}, {y:.0f}, {z:.0f}) mm, surface "
            f"{self.speed_mm_s:.0f} mm/s; strides are told in its frame."
        )


def given_wheel(centre: Floats, axis: Floats, radius_mm: float, feet: Sequence[Floats], rate_hz: float) -> Wheel:
    """Return a wheel whose place is known; how it turns is found from the feet, per foot points (T, P, 3)."""
    height = float(np.nanmedian(np.concatenate([np.asarray(foot)[..., 2].ravel() for foot in feet])))
    rim = Rim(centre, axis, radius_mm, inside=height < float(np.asarray(centre)[2]))
    laid = np.concatenate([rim.unrolled(foot) for foot in feet], axis=1)
    return Wheel(rim, _followed(laid, find_belt([laid], rate_hz), rate_hz), given=True)


def find_wheel(feet: Sequence[Floats], rate_hz: float, flat: Belt) -> Wheel | None:
    """Find the wheel that feet run in, z up; None where a flat ground explains them as well.

    Args:
        feet: per foot its points (T, P, 3), mm; NaN where not seen.
        rate_hz: frames per second.
        flat: what moves as the feet do best on flat ground.
    """
    points = np.concatenate([np.asarray(foot, dtype=np.float64).reshape(len(foot), -1, 3) for foot in feet], axis=1)
    if len(points) < 8:
        return None
    velocity = np.gradient(points, 1.0 / rate_hz, axis=0)
    seen = np.isfinite(velocity).all(axis=2)
    speed = np.where(seen, np.linalg.norm(velocity, axis=2), 0.0)
    moving = seen & (speed > 0.1 * np.percentile(speed, 95.0))
    if moving.sum() < 16:
        return None
    few = slice(None, None, max(1, int(moving.sum()) // _FEW))
    rim = _guessed(points[moving][few], velocity[moving][few], _axis(velocity[moving]))
    if rim is None:
        return None
    least = _explained(points, flat, rate_hz)
    for turn in range(_REFINED):
        laid = rim.unrolled(points)
        belt = _followed(laid, find_belt([laid], rate_hz), rate_hz)
        against = _left(laid, belt, rate_hz)
        usual = float(np.nanquantile(against, _SHARE))
        goes = moving & (against < 2.5 * max(usual, 1e-9))
        if not (turn or usual < least) or goes.sum() < 16:
            return None
        if turn < _REFINED - 1:
            rim = _fitted(points[goes], velocity[goes], _axis(velocity[goes]), rim.inside)
    place = (points[goes] - rim.centre) @ rim.frame.T
    angles = np.arctan2(place[:, 0], (-1.0 if rim.inside else 1.0) * place[:, 2])
    wide = float(np.subtract(*np.percentile(angles, [95.0, 5.0])))
    return Wheel(rim, belt) if belt.moves and wide > _TURN and usual < _BETTER * least else None


def _explained(points: Floats, belt: Belt, rate_hz: float) -> float:
    """Return the speed against a belt, mm/s, below which a share of the velocities lie that stances make up."""
    return float(np.nanquantile(_left(points, belt, rate_hz), _SHARE))


def _followed(points: Floats, belt: Belt, rate_hz: float) -> Belt:
    """Return a belt under points (T, N, 3) as it goes within a stride: its runner drives a wheel step by step."""
    velocity = np.gradient(points[..., :2], 1.0 / rate_hz, axis=0)
    speeds = _left(points, belt, rate_hz)
    goes = speeds < 2.5 * max(float(np.nanquantile(speeds, _SHARE)), 1e-9)
    width = stride_frames(velocity) / _WITHIN
    count = gaussian_filter1d(goes.sum(axis=1).astype(np.float64), width, mode="nearest")
    ahead = np.where(goes[..., None], velocity - belt.velocity[:, None], 0.0).sum(axis=1)
    more = gaussian_filter1d(ahead, width, axis=0, mode="nearest") / np.maximum(count, 0.1)[:, None]
    return replace(belt, velocity=belt.velocity + more)


def _left(points: Floats, belt: Belt, rate_hz: float) -> Floats:
    """Return the speed (T, N) of points (T, N, 3) against a belt, mm/s, rise and fall included."""
    velocity = np.gradient(points, 1.0 / rate_hz, axis=0)
    velocity[..., :2] -= belt.velocity[:, None]
    return np.asarray(np.linalg.norm(velocity, axis=2))


def _axis(velocity: Floats) -> Floats:
    """Return the level direction (3,) in which velocities (N, 3) are least."""
    _, turned = np.linalg.eigh(velocity[:, :2].T @ velocity[:, :2])
    return np.array([*turned[:, 0], 0.0])


def _guessed(points: Floats, velocity: Floats, axis: Floats) -> Rim | None:
    """Return the rim whose centre lies square to most velocities (N, 3) at their points (N, 3)."""
    frame = Rim(np.zeros(3), axis, 1.0).frame
    place, way = (points @ frame.T)[:, [0, 2]], (velocity @ frame.T)[:, [0, 2]]
    way = way / np.maximum(np.linalg.norm(way, axis=1, keepdims=True), 1e-12)
    pairs = np.random.default_rng(0).integers(len(place), size=(_PAIRS, 2))
    directions = way[pairs]
    apart = directions[:, 0, 0] * directions[:, 1, 1] - directions[:, 0, 1] * directions[:, 1, 0]
    good = np.abs(apart) > 0.1
    if not good.any():
        return None
    goals = (directions * place[pairs]).sum(axis=2)
    centres = np.linalg.solve(directions[good], goals[good][..., None])[..., 0]
    misses = np.abs(((place[None] - centres[:, None]) * way[None]).sum(axis=2))
    best = centres[int(np.argmin(np.quantile(misses, _SHARE, axis=1)))]
    inside = bool(best[1] > np.median(place[:, 1]))
    distance = np.linalg.norm(place - best, axis=1)
    radius = float(np.quantile(distance, 0.75 if inside else 0.25))
    return Rim(best[0] * frame[0] + best[1] * frame[2] + float((points @ axis).mean()) * axis, axis, radius, inside)


def _fitted(points: Floats, velocity: Floats, axis: Floats, inside: bool) -> Rim:
    """Return the rim about whose axis velocities (N, 3) at points (N, 3) turn, by least squares."""
    frame = Rim(np.zeros(3), axis, 1.0).frame
    place, way = (points @ frame.T)[:, [0, 2]], (velocity @ frame.T)[:, [0, 2]]
    centre = np.linalg.lstsq(way, (way * place).sum(axis=1), rcond=None)[0]
    radius = float(np.median(np.linalg.norm(place - centre, axis=1)))
    middle = float(np.median(points @ axis))
    return Rim(centre[0] * frame[0] + centre[1] * frame[2] + middle * axis, axis, radius, inside)
