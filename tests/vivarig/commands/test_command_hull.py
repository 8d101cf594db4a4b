"""``vivarig hull`` on silhouettes that are wrong in every way: the frame says why, the run goes on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig, save_rig
from calibration.geometry.transforms import RigidTransform
from capture.hull.result import HullFlag
from capture.hull.store import read_hulls
from capture.recordings.masks import MaskFlag, create_masks
from vivarig.cli import main

WIDTH, HEIGHT = 160, 120
RADIUS_MM = 30.0


def ring(count: int = 6) -> Rig:
    """Cameras 400 mm around the origin, all looking at it."""
    intrinsics = np.array([[300.0, 0, (WIDTH - 1) / 2], [0, 300.0, (HEIGHT - 1) / 2], [0, 0, 1]])
    cameras = []
    for index in range(count):
        turn, rise = 2 * np.pi * index / count, 0.3 + 0.4 * (index % 2)
        centre = 400.0 * np.array([np.cos(turn) * np.cos(rise), np.sin(turn) * np.cos(rise), np.sin(rise)])
        forward = -centre / 400.0
        right = np.cross(forward, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        rotation = np.stack([right, np.cross(forward, right), forward])
        lens = PinholeLens((WIDTH, HEIGHT), intrinsics, np.zeros(5))
        cameras.append(LensCamera(f"cam{index}", lens, RigidTransform(rotation, -rotation @ centre)))
    return Rig(tuple(cameras))


def ball(camera: LensCamera, centre: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> np.ndarray:
    """(H, W) the silhouette of a ball."""
    grid = np.stack(np.meshgrid(np.arange(WIDTH, dtype=float), np.arange(HEIGHT, dtype=float)), axis=-1)
    origins, rays = camera.rays(grid.reshape(-1, 2))
    away = np.array(centre) - origins
    along = (away * rays).sum(axis=1)
    return ((away**2).sum(axis=1) - along**2 < RADIUS_MM**2).reshape(HEIGHT, WIDTH)


#: What is wrong in each frame, and the flag that must say so; the last is a frame without a fault.
CASES = [
    ("nothing anywhere", HullFlag.NO_SILHOUETTE, False),
    ("all white", HullFlag.FULL_SILHOUETTE, False),
    ("one camera saw nothing", HullFlag.EMPTY_SILHOUETTE, True),
    ("one camera all white", HullFlag.FULL_SILHOUETTE, True),
    ("cameras do not agree", HullFlag.EMPTY_HULL, False),
    ("seen by two", HullFlag.FEW_VIEWS, True),
    ("out of view", HullFlag.PARTLY_OUT_OF_VIEW, True),
    ("one view contradicted", HullFlag.VIEW_LEFT_OUT, True),
    ("good", HullFlag(0), True),
]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A recording of one frame per case."""
    folder = tmp_path / "wrong"
    (folder / "results").mkdir(parents=True)
    rig = ring()
    save_rig(rig, folder / "rig.toml")
    tables = "".join(f'[cameras.{name}]\nvideo = "{name}.mp4"\n' for name in rig.names)
    for name in rig.names:
        (folder / f"{name}.mp4").write_bytes(b"")
    (folder / "recording.toml").write_text(f'name = "wrong"\nrate_hz = 30.0\nrig = "rig.toml"\n{tables}')
    sizes = [camera.size for camera in rig]
    with create_masks(folder / "results" / "silhouettes.h5", rig.names, sizes, len(CASES), {}) as writer:
        for index, camera in enumerate(rig):
            assert isinstance(camera, LensCamera)
            good = ball(camera)
            masks = np.repeat(good[None], len(CASES), axis=0)
            flags = np.zeros(len(CASES), np.uint16)
            for frame, (case, _, _) in enumerate(CASES):
                first = index == 0
                if case == "nothing anywhere" or (case == "one camera saw nothing" and first):
                    masks[frame] = False
                elif case == "all white" or (case == "one camera all white" and first):
                    masks[frame] = True
                elif case == "cameras do not agree":
                    masks[frame] = ball(camera, (0.0, 0.0, 45.0 if index % 2 else -45.0))
                elif case == "seen by two" and index >= 2:
                    masks[frame] = False
                elif case == "out of view" and first:
                    masks[frame, good.any(axis=1), : WIDTH // 2] = True  # reaches the border
                elif case == "one view contradicted" and first:
                    masks[frame] = ball(camera, (0.0, 0.0, 45.0))
                    flags[frame] = MaskFlag.CONTRADICTED
                if not masks[frame].any():
                    flags[frame] |= MaskFlag.EMPTY
                elif masks[frame].all():
                    flags[frame] |= MaskFlag.FULL
            packed = np.packbits(masks, axis=2)
            writer.write(camera.name, 0, packed, np.ones(len(CASES), np.float32), flags)
    return folder


@pytest.mark.parametrize("engine", ["implicit", "exact"])
def test_every_wrong_frame_says_why_and_is_counted(
    recording: Path, engine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["hull", str(recording), "--engine", engine, "--json", str(recording / "n.json")]) == 0
    said = capsys.readouterr().out
    hulls = list(read_hulls(recording / "results" / "hull.h5"))
    assert len(hulls) == len(CASES)
    for (case, flag, there), hull in zip(CASES, hulls, strict=True):
        assert (not hull.is_empty) == there, case
        assert hull.flags & flag == flag, case
    assert hulls[-1].flags == 0 and hulls[-1].views_used.all()
    assert hulls[-1].volume == pytest.approx(4 / 3 * np.pi * RADIUS_MM**3, rel=0.3)  # six views: a little larger
    counts = json.loads((recording / "n.json").read_text())["flags"]
    for flag in (HullFlag.NO_SILHOUETTE, HullFlag.EMPTY_HULL, HullFlag.VIEW_LEFT_OUT):
        assert counts[flag.name] >= 1
    assert "no silhouette in any view" in said and "no common point" in said


def test_a_rig_without_a_camera_of_the_silhouettes_is_refused(
    recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_rig(Rig(tuple(ring())[:5]), recording / "rig.toml")
    assert main(["hull", str(recording)]) == 2
    assert "cam5" in capsys.readouterr().err


def test_robust_hulls_survive_a_view_that_is_wrong_in_some_frames(recording: Path) -> None:
    rig = ring()
    wrong = (1, 3)
    with create_masks(recording / "results" / "silhouettes.h5", rig.names, [c.size for c in rig], 4, {}) as writer:
        for index, camera in enumerate(rig):
            assert isinstance(camera, LensCamera)
            masks = np.repeat(ball(camera)[None], 4, axis=0)
            if index == 2:
                masks[wrong, :, : WIDTH // 2] = False
            writer.write(camera.name, 0, np.packbits(masks, axis=2), np.ones(4, np.float32), np.zeros(4, np.uint16))
    volumes = []
    for extra in ([], ["--robust", "1"]):
        assert main(["hull", str(recording), *extra]) == 0
        volumes.append([hull.volume for hull in read_hulls(recording / "results" / "hull.h5")])
    plain, robust = np.array(volumes)
    assert (plain[list(wrong)] < 0.6 * plain[0]).all() and plain[2] == plain[0]
    # The half that one view denies is there again; what a second view would have to deny too stays uncarved.
    assert (robust[list(wrong)] >= plain[0]).all() and (robust[list(wrong)] <= robust[0]).all()
    assert robust[0] < 1.5 * plain[0]


def test_robust_hulls_need_two_views_that_are_right(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hull", str(recording), "--robust", "5"]) == 2
    assert "--robust 5 needs at least 7 cameras, the silhouettes have 6" in capsys.readouterr().err
