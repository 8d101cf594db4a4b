"""A synthetic recording from a few words: who moves how, seen by which rig, how hard."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from calibration.cameras.rig import Rig, load_rig
from calibration.cameras.ring import ring_rig
from calibration.foundation.arrays import HUGE
from calibration.foundation.damaged_files import guarded
from calibration.foundation.errors import InputError, nearest
from calibration.foundation.tables import Table, read_toml
from capture.recordings.recording import Recording
from capture.studio.films.acting import Performance, perform
from capture.studio.films.film import check_rig, film_cameras
from capture.studio.films.recording_writer import write_films
from capture.studio.scene.options import StudioOptions
from skeleton.actors.actor import Actor, build_actor, sample_actor
from skeleton.bodies import BODIES
from skeleton.motion_files import read_motion
from skeleton.motion_files.motions import JointMotion
from skeleton.motions import make_motion, motion_names
from skeleton.motions.retarget import CMU_HUMAN, motion_from_file

__all__ = ["Plan", "RingPlan", "Simulated", "load_plan", "simulate"]


@dataclass(frozen=True)
class RingPlan:
    """Cameras on a ring; zeros are filled in from the space the subject takes.

    Attributes:
        cameras: how many.
        radius: of the ring, mm.
        heights: above the floor, mm, taken in turn.
        target: point all look at, mm.
        size: (width, height) px.
        field: width seen at the target, mm.
        focal: focal length, px, instead of ``field``.
        distortion: OpenCV coefficients.
        jitter: relative scatter of places and lenses, as in a real rig.
        arc: degrees over which the cameras spread.
    """

    cameras: int = 8
    radius: float = 0.0
    heights: tuple[float, ...] = ()
    target: tuple[float, float, float] | None = None
    size: tuple[int, int] = (640, 480)
    field: float = 0.0
    focal: float = 0.0
    distortion: tuple[float, ...] = (-0.18, 0.06, 0.0006, -0.0004, 0.0)
    jitter: float = 0.02
    arc: float = 360.0


@dataclass(frozen=True)
class Plan:
    """What to film.

    Attributes:
        name: of the recording.
        body: "mouse", "rat" or "human".
        motion: a procedural motion of the body, or a BVH or AMC file with CMU's joint names (human).
        motion_unit_mm: millimetres in one unit of a motion file that states none (CMU's BVH: 56.444).
        variation: whether the actor deviates from the built-in body (lengths +-8 %, girth +-10 %).
        frames: how many.
        rate_hz: frames per second.
        seed: of body, motion and rig; the pictures' own seed is in ``options``.
        ring: the rig, unless ``rig_file`` names one.
        rig_file: a rig.toml.
        options: the difficulties.
        quality: H.264 quality (CRF), 0 lossless.
    """

    name: str = "simulated"
    body: str = "mouse"
    motion: str = "walk"
    motion_unit_mm: float = 56.444
    variation: bool = True
    frames: int = 100
    rate_hz: float = 120.0
    seed: int = 0
    ring: RingPlan = field(default_factory=RingPlan)
    rig_file: Path | None = None
    options: StudioOptions = field(default_factory=StudioOptions)
    quality: int = 16

    def __post_init__(self) -> None:
        if self.body not in BODIES:
            raise InputError(f"unknown body '{self.body}'; {nearest(self.body, BODIES)}")
        if self.frames < 1 or not self.rate_hz > 0.0:
            raise InputError(f"wanted at least 1 frame and a rate above 0, got {self.frames} at {self.rate_hz:g} Hz")


@dataclass(frozen=True, eq=False)
class Simulated:
    """What came out: the recording, and in how many of the looked-at frames each camera sees the subject, 0 to 1."""

    recording: Recording
    seen_share: dict[str, float]


def plan_performance(plan: Plan) -> Performance:
    """Build the actor and let it move."""
    actor = sample_actor(plan.body, plan.seed) if plan.variation else build_actor(plan.body)
    if Path(plan.motion).suffix:
        return _from_file(plan, actor)
    motion = make_motion(
        actor.skeleton,
        plan.motion,
        rate_hz=plan.rate_hz,
        frames=plan.frames,
        rng=np.random.default_rng([plan.seed, 17]),
    )
    return perform(actor, motion.coordinates, plan.rate_hz, contact_names=motion.feet, contacts=motion.contacts)


def _from_file(plan: Plan, actor: Actor) -> Performance:
    """Give a BVH or ASF/AMC motion to the actor through the joint map of the CMU database, brought to the middle."""
    if actor.body != "human":
        raise InputError(f"{plan.motion}: the motion of another skeleton than '{actor.body}'; files move a human only")
    source = read_motion(plan.motion, unit_mm=plan.motion_unit_mm)
    if not isinstance(source, JointMotion):
        raise InputError(f"{plan.motion}: holds points or angles, not a joint tree; wanted BVH or ASF/AMC")
    mapped = [key for key, value in CMU_HUMAN.items() if set(source.names) & set(value.joints)]
    if len(mapped) < len(CMU_HUMAN) // 2:
        raise InputError(
            f"{plan.motion}: the motion of another skeleton than '{actor.body}' (its joints are "
            f"{', '.join(source.names[:4])}, ...); files with CMU's joint names fit the human, "
            f"'{actor.body}' has {', '.join(motion_names(actor.skeleton))}"
        )
    coordinates, contacts = motion_from_file(source, actor.skeleton)
    step = max(1, round(source.rate_hz / plan.rate_hz))
    coordinates, contacts = coordinates[::step][: plan.frames], contacts[::step][: plan.frames]
    _, landmarks = actor.skeleton.landmarks(actor.skeleton.forward(coordinates))
    middle = 0.5 * (landmarks.min(axis=(0, 1)) + landmarks.max(axis=(0, 1)))
    coordinates[:, :2] -= middle[:2]
    return perform(
        actor,
        coordinates,
        source.rate_hz / step,
        contact_names=tuple(actor.skeleton.floor_points),
        contacts=contacts,
    )


def plan_rig(plan: Plan, performance: Performance) -> Rig:
    """Return the rig of the plan; a ring's missing sizes follow from the space the subject takes."""
    if plan.rig_file is not None:
        return load_rig(plan.rig_file)
    ring = plan.ring
    low = performance.vertices.min(axis=(0, 1)).astype(np.float64)
    high = performance.vertices.max(axis=(0, 1)).astype(np.float64)
    span = float(max(high - low))
    target = np.array(ring.target) if ring.target is not None else 0.5 * (low + high)
    radius = ring.radius or 1.6 * span
    heights = ring.heights or (float(target[2] + 0.55 * radius), float(target[2] + 0.9 * radius))
    width, height = ring.size
    wide = None if ring.focal else (ring.field or 1.25 * span * max(1.0, 0.75 * width / height))
    return ring_rig(
        ring.cameras,
        radius=radius,
        height=heights,
        target=target,
        size=ring.size,
        field_mm=wide,
        focal_px=ring.focal or None,
        distortion=ring.distortion,
        jitter=ring.jitter,
        arc=float(np.radians(ring.arc)),
        seed=plan.seed,
    )


def simulate(
    plan: Plan,
    folder: Path | str,
    *,
    workers: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
) -> Simulated:
    """Film the plan into ``folder`` with ``workers`` processes and return the recording."""
    performance = plan_performance(plan)
    rig = plan_rig(plan, performance)
    surface = performance.surface
    seen = check_rig(rig, surface)
    films = film_cameras(rig, surface, plan.options)
    looked_at = len(range(0, len(surface), 10))
    truth = performance.truth()
    parameters = {**truth.parameters, "motion": plan.motion, "seed": plan.seed, "variation": plan.variation}
    recording = write_films(
        folder,
        films,
        rig,
        replace(truth, parameters=parameters),
        name=plan.name,
        subject=plan.body,
        quality=plan.quality,
        workers=workers,
        on_progress=on_progress,
    )
    shares = {name: float(count) / looked_at for name, count in zip(rig.names, seen, strict=True)}
    return Simulated(recording, shares)


_PLAN_KEYS = (
    "name",
    "body",
    "motion",
    "motion_unit_mm",
    "variation",
    "frames",
    "rate_hz",
    "seed",
    "quality",
    "rig",
    "options",
)
_RING_KEYS = ("file", *(f.name for f in fields(RingPlan)))


@guarded("a plan of a recording")
def load_plan(path: Path | str) -> Plan:
    """Read a plan file: the fields of `Plan`, with tables [rig] (fields of `RingPlan`, or file) and [options]."""
    root = read_toml(path)
    root.allow(_PLAN_KEYS)
    values: dict[str, Any] = {
        key: root.content[key] for key in _PLAN_KEYS if key in root and key not in ("rig", "options")
    }
    if "rig" in root:
        table = root.table("rig")
        table.allow(_RING_KEYS)
        if "file" in table:
            values["rig_file"] = Path(path).parent / table.text("file")
        values["ring"] = _ring(table)
    if "options" in root:
        table = root.table("options")
        table.allow([f.name for f in fields(StudioOptions)])
        values["options"] = _built(StudioOptions, table.content, table)
    plan: Plan = _built(Plan, values, root)
    return plan


def _ring(table: Table) -> RingPlan:
    content = {key: value for key, value in table.content.items() if key != "file"}
    for key, value in content.items():
        if isinstance(value, Sequence) and not isinstance(value, str):
            content[key] = tuple(value)
        elif key == "heights":
            content[key] = (float(value),)
    ring: RingPlan = _built(RingPlan, content, table)
    return ring


def _built(kind: type[Any], content: Mapping[str, Any], table: Table) -> Any:
    """Build a dataclass of simple values after checking their types against its defaults."""
    for item in fields(kind):
        if item.name not in content:
            continue
        value, wanted = content[item.name], getattr(kind(), item.name)
        numbers = [v for v in (value if isinstance(value, tuple) else (value,)) if isinstance(v, int | float)]
        if any(not abs(number) < HUGE for number in numbers):
            raise InputError(f"{table.where(item.name)}: wanted a number below {HUGE:g}, got {value!r}")
        good = {
            bool: isinstance(value, bool),
            int: isinstance(value, int) and not isinstance(value, bool),
            float: isinstance(value, int | float) and not isinstance(value, bool),
            str: isinstance(value, str),
            tuple: isinstance(value, tuple) and all(isinstance(v, int | float) for v in value),
        }.get(type(wanted), True)
        if not good:
            raise InputError(f"{table.where(item.name)}: wanted a {type(wanted).__name__}, got {value!r}")
    return kind(**content)
