"""Two mice pass each other: from masks to a hull each, by the commands, against the truth."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import pytest

from calibration.cameras.rig import Rig, load_rig, save_rig
from calibration.cameras.ring import ring_rig
from capture.hull import implicit_hull, overlap
from capture.hull.store import read_hulls
from capture.raycasting import cast_silhouette
from capture.recordings.masks import MaskFlag, read_flags, read_masks
from capture.studio.films.acting import perform
from skeleton.actors.actor import sample_actor
from skeleton.motions import make_motion
from vivarig.cli import main

FRAMES, CAMERAS = 7, 6


@dataclass(frozen=True, eq=False)
class Scene:
    """A recording folder and, per mouse, frame and camera, its true silhouette as if it were alone."""

    folder: Path
    rig: Rig
    silhouettes: list[list[list[np.ndarray]]]
    centres: list[np.ndarray]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """Mice that walk towards, past and away from each other, 110 mm apart: some views see one before the other."""
    folder = tmp_path_factory.mktemp("two") / "mice"
    rig = ring_rig(
        CAMERAS, radius=340.0, height=[180.0, 300.0], target=(0.0, 0.0, 20.0), size=(320, 240), field_mm=400.0, seed=3
    )
    silhouettes, centres = [], []
    for seed, side in ((101, -1.0), (102, 1.0)):
        actor = sample_actor("mouse", seed)
        motion = make_motion(
            actor.skeleton, "explore", rate_hz=30.0, frames=FRAMES + 50, rng=np.random.default_rng(seed)
        )
        coordinates = motion.coordinates[50:].copy()
        way = np.stack([np.linspace(-60.0, 60.0, FRAMES) * side, np.full(FRAMES, 55.0 * side)], axis=1)
        coordinates[:, :2] += way - perform(actor, coordinates, 30.0).vertices.mean(axis=1)[:, :2]
        skin = perform(actor, coordinates, 30.0).vertices
        centres.append(skin.mean(axis=1))
        silhouettes.append([[cast_silhouette(camera, frame, actor.faces) for camera in rig] for frame in skin])
    tables = ""
    for index, name in enumerate(rig.names):
        (folder / name).mkdir(parents=True)
        for frame in range(FRAMES):
            both = silhouettes[0][frame][index] | silhouettes[1][frame][index]
            cv2.imwrite(str(folder / name / f"{frame:03d}.png"), both.astype(np.uint8) * 255)
        tables += f'[cameras.{name}]\nimages = "{name}"\nmasks = "{name}"\n'
    save_rig(rig, folder / "rig.toml")
    head = 'name = "mice"\nrate_hz = 30.0\nsubject = "mouse"\nsubjects = 2\n'
    (folder / "recording.toml").write_text(head + tables)
    assert main(["silhouettes", str(folder), "--json", str(folder / "said.json")]) == 0
    return Scene(folder, load_rig(folder / "rig.toml"), silhouettes, centres)


def test_each_mouse_keeps_its_name_its_silhouettes_and_its_hull(scene: Scene) -> None:
    assert main(["hull", str(scene.folder), "--posture", str(scene.folder / "posture.csv")]) == 0
    taken = set()
    hidden = 0
    for number in (1, 2):
        results = scene.folder / "results" / f"subject_{number}" / "results"
        hulls = list(read_hulls(results / "hull.h5"))
        places = np.array([hull.vertices.mean(axis=0) for hull in hulls])
        away = np.array([np.linalg.norm(places - centres, axis=1) for centres in scene.centres])
        mouse = int(away[:, 0].argmin())
        taken.add(mouse)
        assert (away.argmin(axis=0) == mouse).all()
        codes = read_flags(results / "silhouettes.h5")
        assert not (codes & (MaskFlag.SUBJECTS_TOUCH | MaskFlag.IDENTITY_UNSURE)).any()
        masks = [read_masks(results / "silhouettes.h5", name) for name in scene.rig.names]
        for frame in range(FRAMES):
            alone, other = scene.silhouettes[mouse][frame], scene.silhouettes[1 - mouse][frame]
            hidden += sum((a & b).any() for a, b in zip(alone, other, strict=True))
            scores = [overlap(view[frame], true) for view, true in zip(masks, alone, strict=True)]
            # Where the mice meet in an image a silhouette is what the other views allow, a pixel or two too large.
            assert np.mean(scores) > 0.94 and min(scores) > 0.85
            assert hulls[frame].volume == pytest.approx(implicit_hull(alone, scene.rig, score=False).volume, rel=0.04)
        assert (scene.folder / f"posture_{number}.csv").is_file()
    assert taken == {0, 1} and hidden > 3
    said = json.loads((scene.folder / "said.json").read_text())["subjects"]
    assert [one["found_share"] for one in said] == [1.0, 1.0] and not said[0]["unsure_frames"]


def test_a_subject_is_a_recording_of_its_own(scene: Scene) -> None:
    one = scene.folder / "results" / "subject_1"
    before = [read_masks(one / "results" / "silhouettes.h5", name) for name in scene.rig.names]
    assert main(["run", str(one), "--until", "hull", "--workers", "1"]) == 0
    again = [read_masks(one / "results" / "silhouettes.h5", name) for name in scene.rig.names]
    assert all((a == b).all() for a, b in zip(before, again, strict=True))


def test_what_needs_one_subject_says_so(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["track", str(scene.folder)]) == 2
    assert "2 subjects; --which wants the number of one" in capsys.readouterr().err
    assert main(["track", str(scene.folder), "--which", "3"]) == 2
    assert "2 subjects; --which wants the number of one, got 3" in capsys.readouterr().err
    assert main(["run", str(scene.folder)]) == 2
    assert "2 subjects; run `vivarig silhouettes" in capsys.readouterr().err
    assert main(["silhouettes", str(scene.folder), "--subjects", "17"]) == 2
    assert "subjects: wanted a number from 1 to 16, got 17" in capsys.readouterr().err
