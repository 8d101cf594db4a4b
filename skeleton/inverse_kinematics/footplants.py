"""Feet that stand: goals for the points of each sole, still while the foot stands and as before while it swings.

Each stance keeps one place per point: the mean of where it was seen, mid-stance weighing most, less what that would
move the ankle, which is seen better than the sole; in height one level for the whole motion, that of the floor where
the feet do not say otherwise. Only joints of its own limb move. Towards the ends of a stance, and over the swing, the
correction fades smoothly (Le Callennec's relative constraint with condensation).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Bools, Floats, Ints
from skeleton.analysis.belts import Ground
from skeleton.analysis.contacts import Contacts, detect_contacts, foot_points, heel_points
from skeleton.analysis.stances import runs_of
from skeleton.inverse_kinematics.deformation import Constraint, balance_goal, deform_motion, limb_of
from skeleton.tree.joint_tree import Pose, Skeleton

__all__ = ["CONTACT", "FootPlants", "Soles", "plant_feet", "soles_of"]

CONTACT, BALANCE = 10, 5
"""Priorities: a contact outranks the balance; where a foot in the air goes is a wish like where its ankle does."""
_KEPT = {"hind": {"ankle": 1.0, "knee": 1.0}, "fore": {"shoulder": 0.1}}
"""How much joints of a limb are wished to stay where they were seen while its sole is moved."""
_CONTRADICTS = 2.0
"""Standard deviations from which feet that stand off the rig's floor say that it is elsewhere."""


@dataclass(frozen=True)
class Soles:
    """What is known of soles before they are seen.

    Attributes:
        height_mm: point name to its height above the floor, z = 0, when it stands there.
        sigma_mm: how well feet are seen, 1 sigma; 0: levels are always those that the feet show.
    """

    height_mm: Mapping[str, float]
    sigma_mm: float = 0.0


def soles_of(skeleton: Skeleton, *, grown: float = 1.0, sigma_mm: float = 0.0) -> Soles:
    """Return what a body's rest pose, which stands on z = 0, tells of its soles if it is ``grown`` times as big."""
    names = [point for points in skeleton.floor_points.values() for point in points]
    heights = skeleton.forward(skeleton.rest()).points(*skeleton.points(names))[0, :, 2]
    return Soles({name: grown * float(height) for name, height in zip(names, heights, strict=True)}, sigma_mm)


@dataclass(frozen=True, eq=False)
class FootPlants:
    """What the feet shall do.

    Attributes:
        constraints: one per point of a sole, and the balance.
        contacts: of each foot as detected.
        held: point name to the frames (T,) in which it is held.
        level_mm: point name to the height it stands at; -inf if it never does.
    """

    constraints: tuple[Constraint, ...]
    contacts: Mapping[str, Contacts]
    held: Mapping[str, Bools]
    level_mm: Mapping[str, float]


def plant_feet(
    skeleton: Skeleton,
    raw: Floats,
    rate_hz: float,
    ground: Ground,
    *,
    soles: Soles | None = None,
    heels: bool = False,
    balance: bool = False,
    ramp_s: float = 0.03,
) -> FootPlants:
    """Return constraints that make the feet of a motion (T, D) stand.

    Args:
        skeleton: the body.
        raw: (T, D).
        rate_hz: frames per second.
        ground: how the ground lies and moves.
        soles: what is known of them; by default what the skeleton's rest pose tells of how they lie flat.
        heels: whether heels are held, too, from their strike until the toes stand: for motions whose feet are known
            better than the rest. A captured foot's shape is not, and its heel then turns the whole leg.
        balance: whether the centre of mass follows what its support is moved by.
        ramp_s: time in which a hold sets in and ends.
    """
    pose = skeleton.forward(raw)
    contacts = {
        foot: detect_contacts(points, rate_hz, belt=ground) for foot, points in foot_points(skeleton, pose).items()
    }
    holds = {name: contacts[foot].states for foot, names in skeleton.floor_points.items() for name in names}
    tracks = {point: ground.without(pose.points(*skeleton.points([point]))[:, 0], rate_hz) for point in holds}
    levels = _levels(skeleton, tracks, holds, soles_of(skeleton) if soles is None else soles)
    ramp = max(1, round(ramp_s * rate_hz))
    shifts = {p: _corrections(tracks[p], held, levels[p], ramp) for p, held in holds.items()}
    priority = {point: np.full(len(raw), CONTACT) for point in holds}
    for foot, heel in heel_points(skeleton, pose).items() if heels else ():
        name, toes = f"{foot.split('_')[0]}_heel", skeleton.floor_points[foot]
        tracks[name] = ground.without(heel, rate_hz)
        holds[name] = detect_contacts(heel, rate_hz, belt=ground).states
        carried = np.mean([shifts[toe] for toe in toes], axis=0)
        shifts[name] = carried + _held_still(tracks[name] + carried, holds[name], ramp)
        # The heel alone holds from its strike to that of the toes; from there on they do, and it follows if it can.
        priority[name] = np.where(contacts[foot].states, CONTACT - 1, CONTACT)
    kept = _kept_joints(skeleton, pose)

    def feet() -> list[Constraint]:
        goals = {point: ground.back(track + shifts[point], rate_hz) for point, track in tracks.items()}
        return [
            Constraint(p, p, goals[p], priority[p], joints=limb_of(skeleton, p), wish=~holds[p]) for p in tracks
        ]  # fmt: skip

    tried = skeleton.forward(deform_motion(skeleton, raw, [*feet(), *kept]).coordinates)
    for foot, given in _given_way(skeleton, (pose, tried), contacts, ground, rate_hz).items():
        for point in (*skeleton.floor_points[foot], f"{foot.split('_')[0]}_heel"):
            if point in shifts:
                shifts[point] = shifts[point] + given
    constraints = [*feet(), *kept]
    if balance and constraints:
        goal = balance_goal(skeleton, raw, np.mean(list(shifts.values()), axis=0))
        legs = dict.fromkeys(joint for point in tracks for joint in limb_of(skeleton, point))
        joints = (skeleton.joint_names[0], *legs)
        constraints.append(Constraint("balance", "", goal, np.full(len(raw), BALANCE), "balance", joints))
    return FootPlants(tuple(constraints), contacts, holds, levels)


def _given_way(
    skeleton: Skeleton, poses: tuple[Pose, Pose], contacts: Mapping[str, Contacts], ground: Ground, rate_hz: float
) -> dict[str, Floats]:
    """Return by how much (T, 3) the places of each foot give way, level with the ground, so that its ankle stays.

    ``poses`` before and after the feet were put at their places: what the ankle moved on the whole of a stance.
    """
    out: dict[str, Floats] = {}
    for foot, stands in contacts.items():
        ankle = f"{foot.split('_')[0]}_ankle"
        if foot.endswith("fore") or ankle not in skeleton.joint_names or not stands.intervals:
            continue
        before, after = (ground.without(pose.positions[:, skeleton.index(ankle)], rate_hz) for pose in poses)
        moved = np.array([np.median((after - before)[start:stop], axis=0) for start, stop in stands.intervals])
        ends = np.array([frame for start, stop in stands.intervals for frame in (start, stop - 1)])
        out[foot] = -_between(len(before), ends, np.repeat(moved * [1.0, 1.0, 0.0], 2, axis=0))
    return out


def _kept_joints(skeleton: Skeleton, pose: Pose) -> list[Constraint]:
    """Return what leaves the joints above a sole where they were seen, as far as the soles allow."""
    names = {
        f"{foot.split('_')[0]}_{joint}": weight
        for foot in skeleton.floor_points
        for joint, weight in _KEPT["fore" if foot.endswith("fore") else "hind"].items()
    }
    return [
        Constraint(
            name, name, pose.positions[:, skeleton.index(name)], np.zeros(len(pose), dtype=np.int64),
            joints=limb_of(skeleton, name), weight=weight, wish=True,
        )
        for name, weight in names.items()
        if name in skeleton.joint_names
    ]  # fmt: skip


def _levels(
    skeleton: Skeleton, tracks: Mapping[str, Floats], holds: Mapping[str, Bools], soles: Soles
) -> dict[str, float]:
    """Return the height each point of a sole stands at; -inf if the foot never does.

    A foot's first point has the height of left and right together, as the floor is one, and where that is the floor's
    own by all that the feet can tell, just this. The other points lie as in the rest pose, where the sole is flat.
    """
    out: dict[str, float] = {}
    for names in skeleton.floor_points.values():
        kind, known = names[0].split("_", 1)[1], soles.height_mm
        alike = [tracks[p][holds[p], 2] for p in tracks if p.split("_", 1)[1] == kind and holds[p].any()]
        level = float(np.mean([np.median(one) for one in alike])) if alike else -np.inf
        if abs(level - known[names[0]]) <= _CONTRADICTS * soles.sigma_mm:
            level = known[names[0]]
        out |= {name: level + known[name] - known[names[0]] for name in names}
    return out


def _held_still(track: Floats, held: Bools, ramp: int) -> Floats:
    """Return (T, 3) what keeps a point at its middle place while it is held; nothing else."""
    out = np.zeros_like(track)
    for start, stop in runs_of(held):
        weight = _ramps(start, stop, len(track), ramp)
        out[start:stop] = weight[:, None] * (np.median(track[start:stop], axis=0) - track[start:stop])
    return out


def _ramps(start: int, stop: int, frames: int, ramp: int) -> Floats:
    """(stop - start,) how firmly a stance holds: it sets in and ends softly, except at the motion's own ends."""
    index = np.arange(start, stop)
    rise = np.clip((index - start + 1) / (ramp + 1), 0.0, 1.0) if start > 0 else np.ones(len(index))
    fall = np.clip((stop - index) / (ramp + 1), 0.0, 1.0) if stop < frames else np.ones(len(index))
    return _soft(np.minimum(rise, fall))


def _corrections(track: Floats, held: Bools, level: float, ramp: int) -> Floats:
    """Return (T, 3) by how much a point is moved, in the ground's frame.

    Held: to its place. Else by what its neighbouring stances are moved on the whole, and up where it is below its
    level.
    """
    frames = len(track)
    stances = runs_of(held)
    weight = np.zeros(frames)
    still = np.zeros((frames, 3))
    middles, offsets = [], []
    for start, stop in stances:
        place = _place(track[start:stop])
        place[2] = level
        still[start:stop] = place - track[start:stop]
        weight[start:stop] = _ramps(start, stop, frames, ramp)
        middles += [start, stop - 1]
        offsets += [np.median(still[start:stop], axis=0)] * 2
    shift = _between(frames, np.array(middles), np.array(offsets)) if stances else np.zeros((frames, 3))
    shift = weight[:, None] * still + (1.0 - weight[:, None]) * shift
    if stances:
        shift[:, 2] = np.maximum(shift[:, 2], level - track[:, 2])
    return shift


def _place(track: Floats) -> Floats:
    """Return (3,) where a point stands: its mean, mid-stance weighing most, for a foot creeps in and rolls off."""
    frames = len(track)
    index = np.arange(frames)
    weight = _soft(np.minimum(index + 1, frames - index) / (0.5 * frames + 1.0))
    return np.asarray(weight @ track / weight.sum())


def _soft(share: Floats) -> Floats:
    return np.asarray(share * share * (3.0 - 2.0 * share))


def _between(frames: int, knots: Ints, values: Floats) -> Floats:
    """Return (T, 3) what goes smoothly from one of the values (K, 3) at frames (K,) to the next."""
    at = np.arange(frames, dtype=np.float64)
    return np.stack([_eased(at, knots.astype(np.float64), values[:, axis]) for axis in range(3)], axis=1)


def _eased(at: Floats, knots: Floats, values: Floats) -> Floats:
    """Interpolate between knots with smooth beginnings and ends; constant beyond them."""
    which = np.clip(np.searchsorted(knots, at, side="right") - 1, 0, len(knots) - 2)
    width = np.maximum(knots[which + 1] - knots[which], 1e-9)
    share = _soft(np.clip((at - knots[which]) / width, 0.0, 1.0))
    return np.asarray((1.0 - share) * values[which] + share * values[which + 1])
