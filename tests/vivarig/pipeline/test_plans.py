"""Options given for once: they hold for what they were given for, and each run says what it does about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from example_rigs import ring

from calibration.rig_formats import write_rig
from capture.recordings.recording import Recording, load_recording
from vivarig.jobs.fingerprints import Ledger
from vivarig.jobs.job import StagePlan
from vivarig.pipeline.plans import plan_as_before, plan_with, record
from vivarig.pipeline.runner import RunOptions, wanted_stages
from vivarig.pipeline.stages import STAGES
from vivarig.stages.options import HullOptions, changed, own_options

HULL = next(stage for stage in STAGES if stage.name == "hull")


class Room:
    """A recording whose hulls are made up, and what was told."""

    def __init__(self, folder: Path) -> None:
        rig = ring(2)
        folder.mkdir()
        write_rig(rig, folder / "rig.toml", "anipose")
        text = 'name = "a"\nrate_hz = 100.0\nsubject = "mouse"\n'
        for name in rig.names:
            (folder / f"{name}.mp4").write_bytes(b"x")
            text += f'[cameras.{name}]\nvideo = "{name}.mp4"\n'
        (folder / "recording.toml").write_text(text + "[hull]\nrobust = 1\n")
        self.recording: Recording = load_recording(folder)
        self.output = self.recording.results / "hull.h5"
        self.output.parent.mkdir()
        self.output.write_text("made")
        self.told: list[str] = []

    def plan(self, inputs: str = "inputs", **given: str) -> StagePlan:
        """Plan hulls as `vivarig run` would, in a process of its own; with ``given``, as by --set."""
        self.told.clear()
        rests = ([inputs], "", 100, self.ledger, lambda stage, text: self.told.append(text))
        if given:
            own = own_options(self.recording, HullOptions)
            return plan_with(self.recording, HULL, changed(own, given, said="--set hull"), *rests)
        return plan_as_before(self.recording, HULL, *rests)

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.recording.results)

    def make(self, plan: StagePlan) -> None:
        record(self.ledger, self.recording, plan, self.output, "")


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path / "rec")


def test_what_was_given_for_once_is_kept_and_said_until_it_is_made_anew(room: Room) -> None:
    plan = room.plan(voxel="2")
    assert plan.options == HullOptions(voxel_mm=2.0, robust=1)
    assert room.told == ["with voxel_mm=2.0, for this once (for always: [hull] voxel_mm in recording.toml)"]
    room.make(plan)
    again = room.plan()
    assert again.rests_on == plan.rests_on and room.ledger.is_done("hull", again.rests_on, room.output)
    assert len(room.told) == 1 and room.told[0].startswith("with voxel_mm=2.0, as given for it before (`--again hull`")
    other = room.plan("other inputs")
    assert other.options == HullOptions(robust=1)
    assert room.told == [
        "without voxel_mm=2.0, which was given for once (for always: [hull] voxel_mm in recording.toml)"
    ]
    room.make(other)
    assert room.plan("other inputs").rests_on == other.rests_on and room.told == []


def test_what_is_given_now_does_not_go_on_top_of_what_was_given_for_once(room: Room) -> None:
    room.make(room.plan(voxel="2"))
    assert room.plan(engine="exact").options == HullOptions(robust=1, engine="exact")


def test_an_interrupted_run_goes_on_with_what_it_was_given(room: Room) -> None:
    room.make(room.plan())
    begun = room.plan(voxel="2")
    assert room.plan().rests_on == begun.rests_on and "as given for it before" in room.told[0]
    assert room.plan("other inputs").options == HullOptions(robust=1)
    assert room.plan(robust="1").options == HullOptions(robust=1), "as recording.toml has it: nothing is given for once"
    (room.recording.results / "stages.json").write_text(
        '{"hull": {"begun": {"given": {"gone": "1"}, "rests_on": "x"}}}'
    )
    assert room.plan().options == HullOptions(robust=1) and room.told == []


def test_hulls_are_made_when_something_needs_them() -> None:
    def names(**options: Any) -> list[str]:
        return [stage.name for stage in wanted_stages(RunOptions(**options))]

    assert names(until="skeleton") == ["silhouettes", "track", "skeleton"]
    assert names(until="hull") == ["silhouettes", "hull"]
    assert names() == ["silhouettes", "hull", "track", "skeleton", "report"]
    assert "hull" in names(until="skeleton", changes={"hull": {"voxel": "2"}})
    assert "hull" in names(until="skeleton", again=("hull",))
