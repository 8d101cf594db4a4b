"""Human motions: walk, jog, turn, reach, box, balance and sit down (the HumanEva actions).

Order of work as for rodents: path, footfalls, trunk, then legs to the footfalls and arms to their targets.
Figures: walk 1 m/s at 0.92 strides/s, jog 2.05 m/s at 1.36 (Winter; Cappellini et al. 2006).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibration.foundation.arrays import Bools, Floats
from calibration.geometry.transforms import rotation_from_vector, vector_from_rotation
from skeleton.motions.footfalls import FootTrack, Path, plan_foot, walk_path
from skeleton.motions.human_scores import HUMAN_MOTIONS, HumanScore
from skeleton.motions.limb_ik import Goal, reach
from skeleton.motions.signals import smooth_noise, smoothstep
from skeleton.tree.joint_tree import Pose, Skeleton

__all__ = ["FEET", "human_motion"]

FEET = ("left_foot", "right_foot")
SIDES = ("left", "right")


def human_motion(
    skeleton: Skeleton, name: str, frames: Floats, rng: np.random.Generator, arena_mm: float
) -> tuple[Floats, Bools, Floats]:
    """Return coordinates (T, D), contacts (T, 2) and strides (T,) of a named motion at times ``frames`` (T,), s."""
    seconds = float(frames[-1]) + 1e-6
    size = float(skeleton.joints[0].offset[2]) / 932.0
    t = np.arange(-2.0, seconds + 2.0, 1.0 / 200.0)
    score = HUMAN_MOTIONS[name](t, seconds, rng)
    turning = score.turning
    if score.walking and float(score.speed.sum() / 200.0) > 1.8 * arena_mm:
        turning = turning + score.speed / (0.75 * arena_mm)  # round the arena, as in HumanEva
    heading = float(rng.uniform(-np.pi, np.pi))
    path = walk_path(t, score.speed * size, turning, score.stride_hz, start_heading=heading)
    inside = path.place[(path.t >= 0) & (path.t <= seconds)]
    middle = 0.5 * (inside.min(0) + inside.max(0))
    path = Path(path.t, path.place - middle, path.heading, path.phase, path.speed)
    tracks = {side: _foot(skeleton, path, frames, score, side, size) for side in SIDES}
    q = _trunk(skeleton, path, frames, t, score, size, rng)
    contacts = np.zeros((len(frames), 2), dtype=bool)
    for column, side in enumerate(SIDES):
        q, contacts[:, column] = _leg(skeleton, q, tracks[side], score, side, size)
        q = _arm(skeleton, q, path, frames, t, score, side, size)
    return q, contacts, np.asarray(np.interp(frames, path.t, path.phase))


def _turn(axis: int, angle: Floats) -> Floats:
    vector = np.zeros((len(angle), 3))
    vector[:, axis] = angle
    return rotation_from_vector(vector)


def _foot(skeleton: Skeleton, path: Path, frames: Floats, score: HumanScore, side: str, size: float) -> FootTrack:
    rest = skeleton.forward(skeleton.rest())
    ball = rest.points(*skeleton.points([f"{side}_ball"]))[0, 0] - rest.positions[0, 0]
    sign = 1.0 if side == "left" else -1.0
    neutral = ball[:2] + size * np.array([score.ahead_mm[side], sign * score.apart_mm])
    return plan_foot(
        frames,
        path,
        neutral,
        offset=0.0 if side == "left" else 0.5,
        duty=score.duty,
        lift_mm=score.lift_mm * size,
        swing_range_s=(0.2, 0.6),
        toe_out=sign * np.radians(4.0),
        airborne=score.airborne.get(side),
        ease_s=0.6,
        arrive=0.9 if score.heel_strike else 1.0,
        brisk=True,
    )


def _trunk(
    skeleton: Skeleton,
    path: Path,
    frames: Floats,
    t: Floats,
    score: HumanScore,
    size: float,
    rng: np.random.Generator,
) -> Floats:
    """Pose pelvis, spine and head."""

    def at(signal: Floats) -> Floats:
        return np.asarray(np.interp(frames, t, signal))

    q = skeleton.rest(len(frames))
    degrees = np.pi / 180
    noise = smooth_noise(frames, 12, 0.5, rng)
    phase = 2 * np.pi * at(path.phase)
    gait = 1.0 if score.walking else 0.0
    place, heading = path.at(frames)
    along = np.stack([np.cos(heading), np.sin(heading)], axis=1)
    across = np.stack([-np.sin(heading), np.cos(heading)], axis=1)

    # Pelvis. The left foot leaves the floor at phase 0: there the body is low (walk) or rising (jog) and to the right.
    bob = score.bob_mm * np.cos(2 * phase + score.bob_phase)
    forward = at(score.forward_mm) + 3.0 * noise[:, 0]
    aside = at(score.aside_mm) - gait * 16.0 * np.sin(phase + 0.5) + 4.0 * noise[:, 1]
    q[:, :2] = place + size * (along * forward[:, None] + across * aside[:, None]) - skeleton.joints[0].offset[:2]
    q[:, 2] = size * (at(score.height_mm) - bob)
    yaw = heading + (gait * score.swing_yaw * np.cos(phase) + 1.0 * noise[:, 2]) * degrees
    pitch = (at(score.pitch_deg) + 0.6 * noise[:, 3]) * degrees
    roll = (gait * 3.0 * np.sin(phase + 0.4) + 0.5 * noise[:, 4]) * degrees
    q[:, 3:6] = vector_from_rotation(_turn(2, yaw) @ _turn(1, pitch) @ _turn(0, roll))

    lean, twist = at(score.lean_deg), at(score.twist_deg) - gait * 2.2 * score.swing_yaw * np.cos(phase)
    for i, joint in enumerate(("lumbar", "spine", "chest")):
        columns = skeleton.columns(joint)
        q[:, columns.start] = (-gait * 1.2 * np.sin(phase + 0.4) + 0.5 * noise[:, 5]) * degrees
        q[:, columns.start + 1] = (lean / 3 + 0.5 * noise[:, 6 + i]) * degrees
        q[:, columns.start + 2] = (twist / 3) * degrees
    # The head stays level and looks along the path.
    for i, joint in enumerate(("neck", "head")):
        columns = skeleton.columns(joint)
        q[:, columns.start + 1] = (-0.4 * (lean + at(score.pitch_deg)) + 2.0 * noise[:, 9]) * degrees
        q[:, columns.start + 2] = (-0.45 * twist + 3.0 * noise[:, 10 + i]) * degrees
    return skeleton.clamp(q)


def _leg(
    skeleton: Skeleton, q: Floats, track: FootTrack, score: HumanScore, side: str, size: float
) -> tuple[Floats, Bools]:
    """Bring a foot to its track: heel first, flat, then rolling over the ball while the toes stay."""
    rest = skeleton.forward(skeleton.rest())
    names = [f"{side}_ball", f"{side}_toe_tip", f"{side}_heel"]
    ball, tip, heel = rest.points(*skeleton.points(names))[0]
    s = track.swing
    rolled = score.roll_deg * smoothstep(1 - track.until_lift / max(score.roll_s, 1e-6))
    flying = score.roll_deg * (1 - smoothstep(s / 0.6)) - score.strike_deg * smoothstep((s - 0.5) / 0.4)
    flying += score.strike_deg * smoothstep((s - 0.9) / 0.1)
    beta = np.radians(np.where(track.contact, rolled, flying))
    base = np.concatenate([track.place, np.full((len(s), 1), ball[2])], axis=1)
    base[:, 2] += track.height

    c, d = np.cos(track.heading), np.sin(track.heading)

    def placed(x: Floats, y: Floats | float, z: Floats) -> Floats:
        return base + np.stack([c * x - d * y, d * x + c * y, z], axis=1)

    back, up = heel[0] - ball[0], heel[2] - ball[2]
    raised = np.maximum(beta, 0.0)
    # beta > 0: about the ball, heel up. beta < 0: about the heel, toes up.
    heel_goal = placed(
        back * np.cos(raised) + up * np.sin(raised), heel[1] - ball[1], -back * np.sin(raised) + up * np.cos(raised)
    )
    lowered = np.minimum(beta, 0.0)
    ball_goal = placed(back - back * np.cos(lowered), 0.0, back * np.sin(lowered))
    reach_out, sink = tip[0] - ball[0], tip[2] - ball[2]
    # Planted toes stay flat; in the swing they follow the foot.
    toes = np.where(track.contact, 0.0, lowered + raised * smoothstep(s / 0.25) * 0.7)
    tip_goal = ball_goal + (
        placed(
            reach_out * np.cos(toes) + sink * np.sin(toes),
            tip[1] - ball[1],
            -reach_out * np.sin(toes) + sink * np.cos(toes),
        )
        - base
    )
    if track.free.any():
        pelvis = skeleton.forward(q)
        free = track.free[:, None]
        targets = []
        for goal, point in ((ball_goal, ball), (tip_goal, tip), (heel_goal, heel)):
            local = point - rest.positions[0, 0] + size * np.array(score.lifted_mm)
            turned = np.einsum("tij,j->ti", pelvis.rotations[:, 0], local) + pelvis.positions[:, 0]
            targets.append((1 - free) * goal + free * turned)
        ball_goal, tip_goal, heel_goal = targets
    joints = [f"{side}_hip", f"{side}_knee", f"{side}_ankle", f"{side}_toes"]
    planted = track.contact
    # In mid-swing the foot hangs from the shank; it takes its aim again before it lands.
    held = np.where(planted, 1.0, np.maximum(1 - smoothstep(s / 0.3), smoothstep((s - 0.6) / 0.3)))
    goals = [
        Goal(names[0], ball_goal, 1.0),
        Goal(names[1], tip_goal, 0.05 + 0.95 * held, hard=bool(planted.all())),
        Goal(names[2], heel_goal, 0.05 + 0.75 * held, hard=False),
    ]
    # A little knee flexion in the reference: a straight knee has no way to begin.
    start = q.copy()
    start[:, skeleton.columns(joints[1])] = 0.35
    start[:, skeleton.columns(joints[0]).start + 1] = -0.2
    q = reach(skeleton, start, joints, goals, size=300.0 * size, stay=0.02)
    if not planted.all() and planted.any():
        close = [Goal(names[0], ball_goal[planted]), Goal(names[1], tip_goal[planted])]
        q[planted] = reach(skeleton, q[planted], joints, close, size=300.0 * size, rounds=0)
    there = skeleton.forward(q).points(*skeleton.points(names[:2]))
    missed = np.linalg.norm(there - np.stack([ball_goal, tip_goal], axis=1), axis=2).max(axis=1)
    return q, planted & (missed < 0.05)


def _arm(
    skeleton: Skeleton,
    q: Floats,
    path: Path,
    frames: Floats,
    t: Floats,
    score: HumanScore,
    side: str,
    size: float,
) -> Floats:
    """Swing the arm with the gait, then let the hand go to its target where it has one."""
    sign = 1.0 if side == "left" else -1.0
    phase = 2 * np.pi * np.interp(frames, t, path.phase)
    swing = sign * np.radians(score.arm_swing_deg) * np.cos(phase) if score.walking else np.zeros(len(frames))
    # From 45 degrees at rest to hanging, more or less spread.
    spread = np.radians(-36.0 + np.interp(frames, t, score.spread_deg))
    turn = _turn(1, -swing - np.radians(score.arm_forward_deg)) @ _turn(0, sign * spread)
    q[:, skeleton.columns(f"{side}_shoulder")] = vector_from_rotation(turn)
    elbow = skeleton.columns(f"{side}_elbow")
    q[:, elbow.start] = np.radians(score.elbow_deg) + 0.35 * np.maximum(swing, -0.3)
    q[:, elbow.start + 1] = np.radians(35.0)
    q = skeleton.clamp(q)
    target = score.hands.get(side)
    if target is None:
        return q
    share = np.interp(frames, t, target.weight)
    pose = skeleton.forward(q)
    goal = _in_chest(skeleton, pose, frames, target.place, size)
    wrist = pose.positions[:, skeleton.index(f"{side}_wrist")]
    joints = [f"{side}_clavicle", f"{side}_shoulder", f"{side}_elbow"]
    mixed = (1 - share)[:, None] * wrist + share[:, None] * goal
    start = q.copy()
    start[:, elbow.start] = np.maximum(start[:, elbow.start], 0.5 * share)
    moved = reach(
        skeleton,
        start,
        joints,
        [Goal(f"{side}_wrist", mixed, 1.0, hard=False)],
        size=250.0 * size,
        stay=[0.25, 0.04, 0.03],
    )
    return moved


def _in_chest(skeleton: Skeleton, pose: Pose, frames: Floats, place: Callable[[Floats], Floats], size: float) -> Floats:
    """Return the world position (T, 3) of a hand target that is given in the chest's frame at rest."""
    chest = skeleton.index("chest")
    turned = np.einsum("tij,tj->ti", pose.rotations[:, chest], size * place(frames))
    return np.asarray(pose.positions[:, chest] + turned)
