"""Mouse and rat: walk, trot, turn, rear, groom, sniff, explore, and postures, all one performance of a few signals.

Order of work: the signals give a path over the floor, the footfalls follow from the path, the trunk, head and tail
are posed along it, and last the limbs reach for their footfalls.
Figures: mouse walk 3-4 strides/s at 150-200 mm/s, trot 5-6 at 350-400 (Herbin et al. 2007, J Exp Biol 210); rat walk
2-2.5 at 250 mm/s, trot 3.5-4 at 550; face strokes at 6-7 Hz (Berridge 1990); sniffing at 7-9 Hz.
"""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Bools, Floats
from calibration.geometry.transforms import rotation_from_vector, vector_from_rotation
from skeleton.motions.footfalls import FootTrack, Path, plan_foot, walk_path
from skeleton.motions.limb_ik import Goal, reach
from skeleton.motions.rodent_scores import POSTURE, RODENT_MOTIONS, RODENT_POSTURES, RodentScore
from skeleton.motions.signals import ramp, smooth_noise
from skeleton.tree.joint_tree import Pose, Skeleton

__all__ = ["FEET", "rodent_motion"]

FEET = ("left_fore", "right_fore", "left_hind", "right_hind")
SPINE = ("lumbar_1", "lumbar_2", "lumbar_3", "thoracic_1", "thoracic_2", "thoracic_3")
NECK = ("cervical_1", "cervical_2", "skull")
TAIL = tuple(f"tail_{i}" for i in range(1, 9))


def rodent_motion(
    skeleton: Skeleton, name: str, frames: Floats, rng: np.random.Generator, arena_mm: float
) -> tuple[Floats, Bools, Floats]:
    """Return coordinates (T, D), contacts (T, 4) and strides (T,) of a named motion at times ``frames`` (T,), s."""
    seconds = float(frames[-1]) + 1e-6
    size = _size(skeleton)
    # Larger animals move slower for their size: time stretches with the square root of length.
    slow = np.sqrt(size)
    t = np.arange(-1.5 * slow, seconds + 1.5 * slow, 1.0 / 400.0)
    score = (RODENT_MOTIONS | RODENT_POSTURES)[name](t / slow, seconds / slow, rng)
    speed, turning = score.speed * size / slow, score.turning / slow
    if name in ("walk", "trot", "explore"):
        turning = turning + _steering(t, speed, turning, arena_mm)
    moving = ramp(speed, 0.0, 30.0 * size / slow)
    stride_hz = (2.3 + 0.0112 * score.speed) / slow * moving
    # Turning on the spot needs steps too.
    stride_hz = np.maximum(stride_hz, 2.4 / slow * ramp(np.abs(turning) * slow, 0.4, 1.2) * (1 - moving))
    path = _centred(walk_path(t, speed, turning, stride_hz, start_heading=float(rng.uniform(-np.pi, np.pi))), seconds)

    # The same noise wherever the trunk is evaluated.
    seed = int(rng.integers(2**31))
    chest = _chest_path(skeleton, path, _trunk(skeleton, path, t[::4], t, score, size, slow, seed), t[::4])
    tracks = _footfalls(skeleton, path, chest, frames, score, size, slow)
    q = _trunk(skeleton, path, frames, t, score, size, slow, seed)
    q, contacts = _limbs(skeleton, q, tracks, path, frames, t, score, size, slow)
    return q, contacts, np.asarray(np.interp(frames, path.t, path.phase))


def _size(skeleton: Skeleton) -> float:
    """Return the animal's length relative to the built-in mouse (skull to pelvis 58.5 mm along the spine)."""
    chain = [skeleton.joints[skeleton.index(name)].offset for name in (*SPINE[1:], *NECK)]
    return float(sum(np.linalg.norm(offset) for offset in chain)) / 51.5


def _steering(t: Floats, speed: Floats, turning: Floats, arena_mm: float) -> Floats:
    """Return extra turning (N,) that keeps a walk inside a disc of ``arena_mm`` around its middle."""
    if float(np.sum(speed) * (t[1] - t[0])) < 1.8 * arena_mm:
        return np.zeros(len(t))
    x = y = heading = 0.0
    extra = np.zeros(len(t))
    for i in range(1, len(t)):
        dt = float(t[i] - t[i - 1])
        radius = np.hypot(x, y)
        wrong = np.angle(np.exp(1j * (np.arctan2(-y, -x) - heading)))
        push = np.clip((radius / arena_mm - 0.35) / 0.5, 0.0, 1.0)
        wanted = push * (np.clip(3.0 * wrong, -3.0, 3.0) * min(1.0, float(speed[i]) / 40.0) - float(turning[i]))
        extra[i] = extra[i - 1] + (wanted - extra[i - 1]) * min(1.0, dt / 0.18)
        heading += (float(turning[i]) + extra[i]) * dt
        x += float(speed[i]) * np.cos(heading) * dt
        y += float(speed[i]) * np.sin(heading) * dt
    return extra


def _centred(path: Path, seconds: float) -> Path:
    """Move the path so that the middle of its bounding box over the record is the world's origin."""
    inside = path.place[(path.t >= 0) & (path.t <= seconds)]
    middle = 0.5 * (inside.min(0) + inside.max(0))
    return Path(path.t, path.place - middle, path.heading, path.phase, path.speed)


def _chest_path(skeleton: Skeleton, path: Path, q: Floats, t: Floats) -> Path:
    """Return the way of the chest over the floor: the fore paws step under it, not under the pelvis' straight axis."""
    pose = skeleton.forward(q)
    chest = skeleton.index("thoracic_3")
    x = pose.rotations[:, chest, :, 0]
    heading = np.unwrap(np.arctan2(x[:, 1], x[:, 0]))
    # The trunk's rotation vectors give the heading up to whole turns.
    heading += 2 * np.pi * np.round((np.interp(t, path.t, path.heading) - heading) / (2 * np.pi))
    phase, speed = np.interp(t, path.t, path.phase), np.interp(t, path.t, path.speed)
    return Path(t, pose.positions[:, chest, :2], heading, phase, speed)


def _footfalls(
    skeleton: Skeleton, path: Path, chest: Path, frames: Floats, score: RodentScore, size: float, slow: float
) -> dict[str, FootTrack]:
    rest = skeleton.forward(skeleton.rest())
    out = {}
    for foot in FEET:
        fore = foot.endswith("fore")
        point = rest.points(*skeleton.points([skeleton.floor_points[foot][0]]))[0, 0]
        neutral = point[:2] - rest.positions[0, skeleton.index("thoracic_3") if fore else 0, :2]
        neutral = neutral + size * np.array([-1.0 if fore else 1.5, 0.0])
        out[foot] = plan_foot(
            frames,
            chest if fore else path,
            neutral,
            offset=score.phases[foot],
            duty=score.duty,
            lift_mm=(3.8 if fore else 4.0) * size,
            swing_range_s=(0.06 * slow, 0.16 * slow),
            airborne=[(a * slow, b * slow) for a, b in score.airborne] if fore else None,
            ease_s=0.16 * slow,
        )
    return out


# Over 80 lines: the curve of the back in one place, from the tail's root to the nose.
def _trunk(
    skeleton: Skeleton,
    path: Path,
    frames: Floats,
    t: Floats,
    score: RodentScore,
    size: float,
    slow: float,
    seed: int,
) -> Floats:
    """Pose pelvis, spine, head and tail at times ``frames`` (T,)."""

    def at(signal: Floats) -> Floats:
        return np.asarray(np.interp(frames, t, signal))

    q = skeleton.rest(len(frames))
    rear, groom, sniff = at(score.rear), at(score.groom), at(score.sniff)
    speed, turning = at(score.speed), at(np.gradient(path.heading, path.t)) * slow
    moving = ramp(speed, 5.0, 60.0)
    posture = {name: at(score.posture[name]) if score.posture else np.zeros(len(frames)) for name in POSTURE}
    upright = np.maximum(np.maximum(rear, groom), posture["free"])
    phase = 2 * np.pi * at(path.phase)
    place, heading = path.at(frames)
    forward = np.stack([np.cos(heading), np.sin(heading)], axis=1)
    noise = smooth_noise(frames / slow, 20, 1.0, np.random.default_rng(seed))
    degrees = np.pi / 180

    # Pelvis: back and up when rearing; a small bob twice per stride; held a little higher on the move.
    back = (-9.0 * rear - 8.0 * groom + 0.6 * noise[:, 0] + posture["back"]) * size
    height = (1.5 * moving + 4.5 * rear + 1.5 * groom + 0.5 * moving * np.sin(2 * phase) + 0.25 * noise[:, 1]) * size
    height = height + posture["height"] * size
    q[:, 0:2] = place + forward * back[:, None]
    q[:, 0:2] -= skeleton.joints[0].offset[:2]
    q[:, 2] = height
    pitch = (-46.0 * rear - 50.0 * groom + 0.6 * noise[:, 2] + 1.0 * moving * np.sin(2 * phase + 1)) * degrees
    pitch = pitch + posture["pitch"] * degrees
    roll = (1.5 * moving * np.sin(phase) + 0.8 * noise[:, 3] + posture["roll"]) * degrees
    yaw = heading + (2.5 * moving * np.sin(phase + 0.4) + 1.0 * noise[:, 4] * (1 - 0.5 * moving)) * degrees
    q[:, 3:6] = _compose(yaw, pitch, roll)

    # Spine: bends into the turn, waves with the stride, stretches up or curls down.
    # A chain of joints 7.5 mm apart follows a path of curvature turning / speed.
    bend = np.clip(np.degrees(7.5 * turning / np.maximum(speed, 60.0)), -12.0, 12.0)
    bend = bend + posture["bend"]
    curl = -3.5 * rear + 7.0 * groom + posture["curl"]
    for i, joint in enumerate(SPINE):
        columns = skeleton.columns(joint)
        wave = 1.6 * moving * np.sin(phase + 0.9 + 0.5 * i)
        q[:, columns.start] = posture["twist"] * degrees
        q[:, columns.start + 1] = (curl + 0.5 * noise[:, 5 + i % 3]) * degrees
        q[:, columns.start + 2] = (bend + wave + 0.8 * noise[:, 8 + i % 3]) * degrees

    # Head: looks ahead into the turn, scans and bobs while sniffing, nods under the paws while grooming.
    bob = np.sin(2 * np.pi * 7.6 * frames / slow + 0.6 * noise[:, 11])
    scan = sniff * (1 - 0.6 * groom)
    nod = groom * np.sin(2 * np.pi * 1.3 * frames / slow + 1.0)
    level = 21.0 * rear + 14.0 * groom - 2.0 * moving + posture["nod"]
    for i, joint in enumerate(NECK):
        columns = skeleton.columns(joint)
        q[:, columns.start] = (
            5.0 * groom * np.sin(2 * np.pi * 0.9 * frames / slow) + 1.5 * noise[:, 12] + posture["tilt"]
        ) * degrees
        q[:, columns.start + 1] = (
            level + 2.2 * scan * bob * (1 if i else 0.4) + (4.0 * scan + 1.0) * noise[:, 13] + 3.0 * nod
        ) * degrees
        q[:, columns.start + 2] = (
            0.8 * bend + (6.0 * scan + 1.0) * noise[:, 14] + 2.0 * scan * noise[:, 15 + i] + posture["look"]
        ) * degrees
    # On all fours the shoulders keep their height, whatever the spine does: corrected by the pelvis' pitch.
    chest = skeleton.index("thoracic_3")
    wanted = float(skeleton.forward(skeleton.rest()).positions[0, chest, 2]) + 0.6 * size * moving
    wanted = wanted + 0.8 * posture["height"] * size
    for _ in range(3):
        there = skeleton.forward(q).positions
        ahead = np.linalg.norm(there[:, chest, :2] - there[:, 0, :2], axis=1)
        pitch = pitch + (1 - np.clip(2.5 * upright, 0, 1)) * (there[:, chest, 2] - wanted) / np.maximum(
            ahead, 10 * size
        )
        q[:, 3:6] = _compose(yaw, pitch, roll)
    q = skeleton.clamp(q)
    q = _tail(skeleton, q, frames, phase, moving, turning, noise[:, 18:20], size, slow)
    if score.posture:
        for joint in TAIL:
            columns = skeleton.columns(joint)
            q[:, columns.start] += posture["lift"] * degrees
            q[:, columns.start + 1] += posture["tail"] * degrees
        q = skeleton.clamp(q)
        q[:, 2] += np.maximum(0.8 * size - _lowest(skeleton, q), 0.0)
    return q


def _lowest(skeleton: Skeleton, q: Floats) -> Floats:
    """Return the height (T,) of the lowest point of spine, head and tail."""
    pose = skeleton.forward(q)
    which = [skeleton.index(name) for name in (*SPINE, *NECK, *TAIL)]
    ends = pose.points(*skeleton.points(["nose", "tail_tip"]))
    return np.asarray(np.minimum(pose.positions[:, which, 2].min(axis=1), ends[..., 2].min(axis=1)))


def _compose(yaw: Floats, pitch: Floats, roll: Floats) -> Floats:
    """Return rotation vectors (T, 3) of yaw after pitch after roll, continuous in yaw beyond pi."""
    zero = np.zeros_like(yaw)
    turn = (
        rotation_from_vector(np.stack([zero, zero, yaw], axis=1))
        @ rotation_from_vector(np.stack([zero, pitch, zero], axis=1))
        @ rotation_from_vector(np.stack([roll, zero, zero], axis=1))
    )
    return vector_from_rotation(turn)


def _tail(
    skeleton: Skeleton,
    q: Floats,
    frames: Floats,
    phase: Floats,
    moving: Floats,
    turning: Floats,
    noise: Floats,
    size: float,
    slow: float,
) -> Floats:
    """Let the tail sink from its base towards the floor and trail behind, swinging with the stride."""
    pose = skeleton.forward(q)
    base = pose.positions[:, skeleton.index("tail_1"), 2]
    offsets = [skeleton.joints[skeleton.index(n)].offset for n in TAIL[1:]] + [skeleton.point("tail_tip")[1]]
    lengths = np.array([np.linalg.norm(offset) for offset in offsets])
    floor = 2.6 * size
    # Heights of the joints: an even, flattening descent. A segment's slope is its rest slope plus all pitches so far.
    share = np.minimum(np.concatenate([[0.0], np.cumsum(lengths)]) / lengths.sum(), 1.0)
    heights = floor + (base - floor)[:, None] * (1 - share) ** 2.2
    slope = np.arcsin(np.clip(np.diff(heights, axis=1) / lengths, -0.85, 0.3))
    before = np.arcsin(np.clip(-pose.rotations[:, 0, 2, 0], -1, 1))  # the pelvis' own pitch
    for i, (joint, offset) in enumerate(zip(TAIL, offsets, strict=True)):
        columns = skeleton.columns(joint)
        total = slope[:, i] - float(np.arctan2(offset[2], -offset[0]))
        # What a joint's limit refuses is left to the next one.
        q[:, columns.start] = np.clip(total - before, -0.7, 0.7)
        before = before + q[:, columns.start]
        swing = 4.0 * moving * np.sin(phase - 0.7 * i) + (2.5 + 0.5 * i) * noise[:, i % 2] * (1 - 0.4 * moving)
        trail = -np.clip(4.0 * np.interp(frames - 0.05 * i * slow, frames, turning), -8, 8)
        q[:, columns.start + 1] = np.radians(swing + trail)
    return skeleton.clamp(q)


def _limbs(
    skeleton: Skeleton,
    q: Floats,
    tracks: dict[str, FootTrack],
    path: Path,
    frames: Floats,
    t: Floats,
    score: RodentScore,
    size: float,
    slow: float,
) -> tuple[Floats, Bools]:
    """Bring the paws to their tracks. A paw that a leg cannot hold in place to 0.02 mm any more has left the floor."""
    contacts = np.zeros((len(frames), len(FEET)), dtype=bool)
    rest = skeleton.forward(skeleton.rest())
    pose = skeleton.forward(q)
    for column, foot in enumerate(FEET):
        side = foot.split("_")[0]
        track = tracks[foot]
        fore = foot.endswith("fore")
        near, far = skeleton.floor_points[foot]
        if fore:
            joints = [f"{side}_scapula", f"{side}_shoulder", f"{side}_elbow", f"{side}_wrist"]
            stay = [0.16, 0.05, 0.03, 0.05]
        else:
            joints = [f"{side}_hip", f"{side}_knee", f"{side}_ankle", f"{side}_toes"]
            stay = [0.04, 0.03, 0.10, 0.03]
        points = rest.points(*skeleton.points([near, far]))[0]
        pad = np.concatenate([track.place, np.full((len(frames), 1), points[0, 2])], axis=1)
        pad[:, 2] += track.height
        # In the swing the toes hang, most in its first half.
        dip = np.where(track.contact, 0.0, np.sin(np.pi * track.swing) ** 2 * (0.9 - 0.5 * track.swing))
        length = float(np.linalg.norm((points[1] - points[0])[:2]))
        dip = np.minimum(dip, np.arcsin(np.clip(0.5 * track.height / length, 0.0, 0.95)))  # not into the floor
        outward = float(np.arctan2(points[1, 1] - points[0, 1], points[1, 0] - points[0, 0]))
        drop = float(points[1, 2] - points[0, 2])
        angle = track.heading + outward
        tip = pad + np.stack(
            [
                np.cos(angle) * (length * np.cos(dip) + drop * np.sin(dip)),
                np.sin(angle) * (length * np.cos(dip) + drop * np.sin(dip)),
                -length * np.sin(dip) + drop * np.cos(dip),
            ],
            axis=1,
        )
        if fore and track.free.any():
            pad, tip = _lifted(skeleton, pose, side, frames, t, score, size, slow, track, pad, tip)
            pad[:, 2], tip[:, 2] = np.maximum(pad[:, 2], points[0, 2]), np.maximum(tip[:, 2], points[1, 2])
        planted = track.contact.astype(np.float64)
        goals = [Goal(near, pad, 1.0), Goal(far, tip, 0.45 + 0.55 * planted, hard=bool(planted.all()))]
        if not fore:
            goals.append(_heel(skeleton, pose, side, path, frames, pad, track, points[0], size, slow))
        q = reach(skeleton, q, joints, goals, size=10.0 * size, stay=stay)
        if not planted.all():
            q = _settle(skeleton, q, joints, near, far, pad, tip, track.contact, size)
        there = skeleton.forward(q).points(*skeleton.points([near, far]))
        missed = np.linalg.norm(there - np.stack([pad, tip], axis=1), axis=2).max(axis=1)
        contacts[:, column] = track.contact & (missed < 0.02)
    return q, contacts


def _heel(
    skeleton: Skeleton,
    pose: Pose,
    side: str,
    path: Path,
    frames: Floats,
    pad: Floats,
    track: FootTrack,
    pad_at_rest: Floats,
    size: float,
    slow: float,
) -> Goal:
    """Return the soft goal of a heel: flat on the floor when standing, rising as the walking foot falls behind."""
    rest = skeleton.forward(skeleton.rest()).points(*skeleton.points([f"{side}_heel"]))[0, 0] - pad_at_rest
    moving = ramp(np.interp(frames, path.t, path.speed), 5.0 * size / slow, 60.0 * size / slow)
    hip = pose.positions[:, skeleton.index(f"{side}_hip"), :2]
    ahead = (pad[:, 0] - hip[:, 0]) * np.cos(track.heading) + (pad[:, 1] - hip[:, 1]) * np.sin(track.heading)
    pitch = np.radians(moving * np.clip(24.0 - 1.3 * ahead / size, 6.0, 55.0))
    # About the pad: pitch about y (positive raises what lies behind), then the foot's heading.
    x = rest[0] * np.cos(pitch) + rest[2] * np.sin(pitch)
    z = -rest[0] * np.sin(pitch) + rest[2] * np.cos(pitch)
    c, s = np.cos(track.heading), np.sin(track.heading)
    return Goal(f"{side}_heel", pad + np.stack([c * x - s * rest[1], s * x + c * rest[1], z], axis=1), 0.4, hard=False)


def _settle(
    skeleton: Skeleton,
    q: Floats,
    joints: list[str],
    near: str,
    far: str,
    pad: Floats,
    tip: Floats,
    contact: Bools,
    size: float,
) -> Floats:
    """Close both floor points exactly in the frames of contact."""
    if not contact.any():
        return q
    out = q.copy()
    goals = [Goal(near, pad[contact], 1.0), Goal(far, tip[contact], 1.0)]
    out[contact] = reach(skeleton, q[contact], joints, goals, size=10.0 * size, stay=0.03, rounds=0)
    return out


# Eleven parameters: a foot's path is made of all of them at once.
def _lifted(
    skeleton: Skeleton,
    pose: Pose,
    side: str,
    frames: Floats,
    t: Floats,
    score: RodentScore,
    size: float,
    slow: float,
    track: FootTrack,
    pad: Floats,
    tip: Floats,
) -> tuple[Floats, Floats]:
    """Blend floor targets into paws held before the chest (rearing) or stroking the snout (grooming)."""
    sign = 1.0 if side == "left" else -1.0
    groom = np.interp(frames, t, score.groom)
    chest, skull = skeleton.index("thoracic_3"), skeleton.index("skull")
    held = np.array([5.5, 7.4 * sign, -18.5]) * size
    held_tip = held + np.array([2.4, -0.4 * sign, -2.8]) * size
    stroke = np.sin(2 * np.pi * 6.3 * frames / slow + (0.0 if side == "left" else 0.5))
    nose = skeleton.point("nose")[1]
    base = nose + np.array([-5.5, 4.6 * sign, -1.8]) * size
    path = np.stack([2.4 * stroke, 0.5 * sign * stroke**2, 1.4 * stroke], axis=1) * size
    face = base + path
    face_tip = face + np.array([1.6, -1.6 * sign, 3.2]) * size

    def world(segment: int, local: Floats) -> Floats:
        turned = np.einsum("tij,tj->ti", pose.rotations[:, segment], np.broadcast_to(local, (len(frames), 3)))
        return np.asarray(pose.positions[:, segment] + turned)

    share = np.clip(groom, 0, 1)[:, None]
    free = track.free[:, None]
    near = (1 - share) * world(chest, held) + share * world(skull, face)
    far = (1 - share) * world(chest, held_tip) + share * world(skull, face_tip)
    return (1 - free) * pad + free * near, (1 - free) * tip + free * far
