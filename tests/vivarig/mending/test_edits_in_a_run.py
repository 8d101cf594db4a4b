"""Edits made by hand: after a run the result is changed there and nowhere else, and taking them back restores it."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from small_recordings import differences

from calibration.foundation.errors import InputError
from capture.recordings.masks import MaskFlag, mask_cameras, read_flags, read_masks
from capture.recordings.recording import load_recording
from vivarig.cli import main
from vivarig.edits.edit_file import Drop, Edits, KeyPose, Lost, Stroke, load_edits, save_edits
from vivarig.pipeline import RunOptions, StageOutcome, run_recording

OPTIONS = RunOptions("skeleton", workers=1)
FRAMES, AT = 12, 5


def run(place: Path, edits: Edits) -> dict[str, StageOutcome]:
    save_edits(place / "edits.toml", edits)
    return {one.name: one for one in run_recording(load_recording(place), OPTIONS)}


def rows(place: Path, file: str, name: str) -> np.ndarray:
    with h5py.File(place / "results" / file) as opened:
        return np.asarray(opened[name][:])


def changed_rows(one: np.ndarray, other: np.ndarray, tolerance: float = 0.0) -> list[int]:
    apart = np.abs(one.astype(float) - other.astype(float)).reshape(len(one), -1)
    return np.flatnonzero(np.nanmax(apart, axis=1) > tolerance).tolist()


def body_middle(place: Path, camera: str) -> tuple[float, float]:
    y, x = np.nonzero(read_masks(place / "results" / "silhouettes.h5", camera, AT)[0])
    return float(x.mean()), float(y.mean())


def test_an_erased_part_changes_its_frame_and_nothing_else(finished: Path, copy: Path) -> None:
    x, y = body_middle(copy, "cam01")
    # a third of the animal gone in one camera, and something painted beside it
    edits = Edits((Stroke("cam01", AT, AT, False, 25.0, ((x, y),)), Stroke("cam01", AT, AT, True, 6.0, ((x + 60, y),))))
    outcomes = run(copy, edits)
    assert [outcomes[name].status for name in ("silhouettes", "track", "skeleton")] == ["kept", "kept", "done"]
    for camera in mask_cameras(copy / "results" / "silhouettes.h5")[0]:
        before, after = (read_masks(place / "results" / "silhouettes.h5", camera) for place in (finished, copy))
        assert np.flatnonzero((before != after).any(axis=(1, 2))).tolist() == ([AT] if camera == "cam01" else [])
    mask = read_masks(copy / "results" / "silhouettes.h5", "cam01", AT)[0]
    assert not mask[round(y), round(x)] and mask[round(y), round(x + 60)]
    assert changed_rows(rows(finished, "hull.h5", "volume"), rows(copy, "hull.h5", "volume")) == [AT]
    moved = changed_rows(rows(finished, "track.h5", "centres"), rows(copy, "track.h5", "centres"))
    assert AT in moved and len(moved) < FRAMES - 2
    assert set(changed_rows(rows(finished, "track.h5", "vertices"), rows(copy, "track.h5", "vertices"))) == set(moved)
    # the skeleton is smooth: four frames more follow
    bent = changed_rows(rows(finished, "skeleton.h5", "positions"), rows(copy, "skeleton.h5", "positions"))
    assert AT in bent and set(bent) <= set(range(min(moved) - 4, max(moved) + 5))

    assert all(one.status == "kept" for one in run(copy, edits).values()), "nothing is done twice"
    run(copy, Edits())
    # which tells what was laid over the results last
    assert set(differences(copy, finished)) <= {"results/stages.json"}, "taken back, all is as it was"


def test_a_key_pose_of_a_joint_is_held(finished: Path, copy: Path) -> None:
    names = [name.decode() for name in rows(finished, "skeleton.h5", "joint_names")]
    wrist = names.index("left_wrist")
    before = rows(finished, "skeleton.h5", "positions")
    place = before[AT, wrist] + [0.0, 2.0, 2.0]
    outcomes = run(copy, Edits(key_poses=(KeyPose(AT, {"left_wrist": tuple(place)}, ramp=2),)))
    assert outcomes["track"].status == "kept" and outcomes["skeleton"].status == "done"
    after = rows(copy, "skeleton.h5", "positions")
    np.testing.assert_allclose(after[AT, wrist], place, atol=0.05)
    assert changed_rows(before, after) == list(range(AT - 2, AT + 3))
    others = [k for k, name in enumerate(names) if not name.startswith("left_")]
    np.testing.assert_allclose(before[:, others], after[:, others], atol=1e-9)
    assert rows(copy, "skeleton.h5", "edited")[AT, wrist]
    assert not (copy / "results" / "unedited").exists(), "no other file was touched"


def test_a_key_pose_of_a_quad_is_where_tracking_begins(finished: Path, copy: Path) -> None:
    names = [name.decode() for name in rows(finished, "track.h5", "quad_names")]
    centres = rows(finished, "track.h5", "centres")
    quad = next(k for k, name in enumerate(names) if "head" in name)
    run(copy, Edits(key_poses=(KeyPose(AT, quads={names[quad]: tuple(centres[AT, quad] + [0.0, 0.0, 3.0])}),)))
    moved = changed_rows(centres, rows(copy, "track.h5", "centres"))
    assert AT in moved
    # the silhouettes decide in the end: from 3 mm off it comes back to where it was
    assert np.linalg.norm(centres[AT, quad] - rows(copy, "track.h5", "centres")[AT, quad]) < 1.5


def test_a_camera_left_out_and_a_limb_said_to_be_lost(finished: Path, copy: Path) -> None:
    limbs = [name.decode() for name in rows(finished, "track.h5", "limb_names")]
    names, _ = mask_cameras(copy / "results" / "silhouettes.h5")
    run(copy, Edits(drops=(Drop(names[1], 2, 4),), lost=(Lost(8, 9, limbs[1]), Lost(11, 11, note="behind the wheel"))))
    flags = read_flags(copy / "results" / "silhouettes.h5")
    left_out = (flags & int(MaskFlag.NO_FRAME)) != 0
    assert np.argwhere(left_out).tolist() == [[frame, 1] for frame in (2, 3, 4)]
    assert np.isnan(rows(copy, "track.h5", "overlap")[2:5, 1]).all()
    trust, by_limb = rows(copy, "track.h5", "trust"), rows(copy, "track.h5", "limb_trust")
    assert trust[11] == 2 and (by_limb[11] == 2).all() and (by_limb[8:10, 1] == 2).all() and (trust[8:10] > 0).all()
    words = [word.decode() for word in rows(copy, "track.h5", "reasons")]
    assert words[rows(copy, "track.h5", "reason")[11]] == "said by hand"
    assert rows(copy, "skeleton.h5", "trust")[11] == 2
    assert main(["report", str(copy)]) == 0
    page = (copy / "results" / "report.html").read_text()
    assert "behind the wheel" in page and f"{names[1]} left out" in page and "somebody who looked said so" in page
    assert "constant offset" in page, "what sigma leaves out"


def test_what_is_wrong_with_an_edit_is_told_in_one_line(copy: Path) -> None:
    for edits, words in (
        (Edits((Stroke("cam09", 1, 1, True, 3.0, ((1.0, 1.0),)),)), "no camera 'cam09'"),
        (Edits(lost=(Lost(1, 1, "wing"),)), "no limb 'wing'"),
        (Edits(key_poses=(KeyPose(1, {"wing": (0.0, 0.0, 0.0)}),)), "no joint 'wing'"),
        (Edits(key_poses=(KeyPose(1, quads={"wing": (0.0, 0.0, 0.0)}),)), "no quad 'wing'"),
    ):
        with pytest.raises(InputError, match=words):
            run(copy, edits)
        assert not (copy / "results" / "unedited").exists() and (copy / "results" / "silhouettes.h5").is_file()
    (copy / "edits.toml").write_text("[[mask]]\ncamera = 'cam01'\nframes = [3, 1]\nradius = 2\npath = [[1, 2]]\n")
    with pytest.raises(InputError, match="0 <= first <= last"):
        load_edits(copy / "edits.toml")


def test_a_file_is_read_as_it_was_saved(tmp_path: Path) -> None:
    edits = Edits(
        (Stroke("cam01", 3, 3, True, 4.5, ((1.0, 2.0), (3.5, 4.0)), "ear"),),
        (Drop("cam02", 4, 9),),
        (Lost(5, 6, "tail"),),
        (KeyPose(7, {"nose": (1.0, 2.0, 3.0)}, {"head": (4.0, 5.0, 6.0)}, 3),),
        {"bead_1": "femur"},
        {"nose_tip": "snout"},
    )
    save_edits(tmp_path / "edits.toml", edits)
    again = load_edits(tmp_path / "edits.toml")
    kinds = ("masks", "drops", "lost", "key_poses", "bead_names", "marker_names")
    assert again.digest(*kinds) == edits.digest(*kinds) and again.described() == edits.described()
    save_edits(tmp_path / "edits.toml", Edits())
    assert not (tmp_path / "edits.toml").exists()
