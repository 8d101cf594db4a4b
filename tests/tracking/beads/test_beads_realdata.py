"""Real biplane X-ray: two pig trials with an expert's bead tracks; an XMALab calibration and bone poses."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.rig_formats import read_rig
from capture.recordings.video import read_frames
from tracking.beads.clip import ArrayClip, track_clip
from tracking.beads.epipolar import epipolar_distance, fit_fundamental
from tracking.beads.xmalab_files import read_points_2d, read_rigid_body, write_rigid_body

pytestmark = pytest.mark.realdata


@pytest.mark.parametrize("trial", ["01", "02"])
def test_pig_beads_stay_with_the_expert(shared_data, trial):
    folder = shared_data / "pig_xray" / f"20061229_pig_trial{trial}"
    names, cameras, expert = read_points_2d(folder / f"trial{trial}_2dpts.csv")
    views = tuple(
        np.stack([f for _, f in read_frames(folder / f"20061229susD_Trial{trial}_{cam}_reduced.avi", gray=True)])
        for cam in cameras
    )
    tracks = track_clip(ArrayClip(views), expert[0], names=names, cameras=cameras)
    error = np.linalg.norm(tracks.pixels - expert, axis=-1)
    assert tracks.found.mean() > 0.98
    assert np.nanmedian(error) < 1.0 and np.nanpercentile(error, 95) < 2.0
    # No identity swap: each point's nearest expert point of its frame and view is its own.
    distance = np.linalg.norm(tracks.pixels[:, :, :, None] - expert[:, :, None], axis=-1)
    nearest = np.nanargmin(np.nan_to_num(distance, nan=1e9), axis=-1)
    assert (nearest == np.arange(len(names)))[tracks.found].all()
    # Independent of the expert: our points obey one epipolar geometry better than the labels do.
    spread = {}
    for who, pixels in (("ours", tracks.pixels), ("expert", expert)):
        first, second = pixels[:, 0].reshape(-1, 2), pixels[:, 1].reshape(-1, 2)
        both = np.isfinite(first[:, 0]) & np.isfinite(second[:, 0])
        matrix, _ = fit_fundamental(first[both], second[both])
        spread[who] = np.median(epipolar_distance(matrix, first[both], second[both]))
    assert spread["ours"] < spread["expert"]


def test_real_mayacam_files_load_and_rigid_bodies_round_trip(shared_data, tmp_path):
    folder = shared_data / "jaw_xray"
    for name in ("Calibration_cam1_MayaCam1.txt", "Calibration_cam2_MayaCam2.txt"):
        rig = read_rig(folder / name)
        assert rig[0].size == (1024, 1024)
    for name in ("RigidBody001_Upper_transformation.csv", "RigidBody002_lower_transformation.csv"):
        bone, pose = read_rigid_body(folder / name)
        assert len(pose.translation) == 147
        write_rigid_body(tmp_path / name, bone, pose)
        again_bone, again = read_rigid_body(tmp_path / name)
        assert again_bone == bone
        assert np.allclose(again.rotation, pose.rotation, equal_nan=True, atol=1e-11)
        assert np.allclose(again.translation, pose.translation, equal_nan=True, atol=1e-9)
        assert (tmp_path / name).read_text().splitlines()[0] == (folder / name).read_text().splitlines()[0].strip()
