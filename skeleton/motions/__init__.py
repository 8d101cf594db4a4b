"""Procedural motions: seeded, feet planted before joints move, joints within their limits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Bools, Floats
from calibration.foundation.errors import InputError, nearest
from skeleton.motions.human_scores import HUMAN_MOTIONS
from skeleton.motions.humans import FEET as HUMAN_FEET
from skeleton.motions.humans import human_motion
from skeleton.motions.retarget import motion_from_file, motion_from_rotations
from skeleton.motions.rodent_scores import RODENT_MOTIONS, RODENT_POSTURES
from skeleton.motions.rodents import FEET as RODENT_FEET
from skeleton.motions.rodents import rodent_motion
from skeleton.tree.joint_tree import Skeleton

__all__ = ["Motion", "make_motion", "motion_from_file", "motion_from_rotations", "motion_names"]

#: Radius of the floor that a long motion stays on, mm.
ARENA_MM = {"mouse": 85.0, "rat": 230.0, "human": 1500.0}


@dataclass(frozen=True, eq=False)
class Motion:
    """A motion of one skeleton.

    Attributes:
        name: what is done.
        skeleton: the skeleton's name.
        coordinates: (T, D).
        rate_hz: frames per second.
        feet: names of the feet (F).
        contacts: (T, F) the foot stands: its floor points do not move from this frame to the next one in contact.
        phase: (T,) strides since an arbitrary moment: what feet and trunk are timed by. None: not known.
    """

    name: str
    skeleton: str
    coordinates: Floats
    rate_hz: float
    feet: tuple[str, ...]
    contacts: Bools
    phase: Floats | None = None

    @property
    def time_s(self) -> Floats:
        """(T,) time of each frame from 0, s."""
        return np.arange(len(self.coordinates)) / self.rate_hz


def _family(skeleton: Skeleton) -> str:
    if {"tail_1", "skull", "left_scapula"} <= set(skeleton.joint_names):
        return "rodent"
    if {"left_clavicle", "chest", "left_toes"} <= set(skeleton.joint_names):
        return "human"
    raise InputError(f"skeleton '{skeleton.name}': motions exist for the built-in mouse, rat and human trees")


def motion_names(skeleton: Skeleton) -> tuple[str, ...]:
    """Return the motions that a skeleton can make."""
    return tuple(RODENT_MOTIONS if _family(skeleton) == "rodent" else HUMAN_MOTIONS)


def make_motion(
    skeleton: Skeleton,
    name: str,
    *,
    rate_hz: float,
    rng: np.random.Generator,
    seconds: float | None = None,
    frames: int | None = None,
    arena_mm: float | None = None,
) -> Motion:
    """Make a motion of ``frames`` frames (or ``seconds``) at ``rate_hz``, centred on the world's origin.

    Args:
        skeleton: a built-in body or one scaled from it.
        name: see `motion_names`; of rodents also "postures", poses at the ends of what joints allow, for priors.
        arena_mm: radius of the floor that a long walk stays on.
    """
    if (seconds is None) == (frames is None):
        raise InputError("make_motion: give either seconds or frames")
    count = int(frames) if frames is not None else round(float(seconds or 0.0) * rate_hz)
    if count < 1 or not (np.isfinite(rate_hz) and rate_hz > 0):
        raise InputError(f"make_motion: wanted at least 1 frame and a rate above 0, got {count} at {rate_hz} Hz")
    names = motion_names(skeleton)
    if name not in names and not (name in RODENT_POSTURES and _family(skeleton) == "rodent"):
        raise InputError(f"skeleton '{skeleton.name}' has no motion '{name}'; {nearest(name, names)}")
    times = np.arange(count) / rate_hz
    arena = arena_mm if arena_mm is not None else ARENA_MM.get(skeleton.name, 85.0)
    rodent = _family(skeleton) == "rodent"
    perform = rodent_motion if rodent else human_motion
    coordinates, contacts, phase = perform(skeleton, name, times, rng, arena)
    feet = RODENT_FEET if rodent else HUMAN_FEET
    return Motion(name, skeleton.name, skeleton.continuous(coordinates), float(rate_hz), feet, contacts, phase)
