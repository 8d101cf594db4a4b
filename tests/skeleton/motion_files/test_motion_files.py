"""Motion files: two encodings of one motion agree, everything written is read back, missing stays missing."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from calibration.foundation.errors import InputError
from calibration.geometry.euler import angles_from_rotation, rotation_from_angles
from calibration.geometry.transforms import quaternion_from_rotation, rotation_from_quaternion, rotation_from_vector
from skeleton.motion_files import (
    READERS,
    WRITERS,
    CoordinateSeries,
    JointMotion,
    MarkerSeries,
    format_of,
    read_acclaim,
    read_bvh,
    read_c3d,
    read_motion,
    read_storage,
    read_trc,
    write_motion,
)

CMU_MM = 25.4 / 0.45


@pytest.fixture
def points(rng: np.random.Generator) -> MarkerSeries:
    """Ten frames of four points, some of them missing."""
    positions = rng.normal(0.0, 300.0, (10, 4, 3))
    positions[3, 1] = np.nan
    positions[7, :] = np.nan
    return MarkerSeries(("nose", "L.Ear", "tail base", "paw"), positions, 119.88, up="z", start_s=0.5)


@pytest.fixture
def motion(rng: np.random.Generator) -> JointMotion:
    """A small tree that turns and shifts, with an offset child that does not begin at its parent's tip."""
    turns = quaternion_from_rotation(rotation_from_vector(rng.normal(0.0, 0.8, (6, 4, 3))))
    shifts = np.zeros((6, 4, 3))
    shifts[:, 0] = rng.normal(0.0, 500.0, (6, 3))
    offsets = np.array([[10.0, 20.0, 30.0], [0.0, 0.0, 0.0], [0.0, -80.0, 5.0], [40.0, 10.0, 0.0]])
    tips = np.array([[np.nan] * 3, [0.0, -80.0, 5.0], [0.0, -70.0, 0.0], [60.0, 0.0, 0.0]])
    return JointMotion(("hips", "thigh", "shank", "arm"), (-1, 0, 1, 0), offsets, tips, shifts, turns, 120.0)


@pytest.mark.parametrize("axes", ["xyz", "zyx", "yxz", "zxy", "xzy", "yzx"])
def test_angles_and_rotations_are_inverse(axes: str, rng: np.random.Generator) -> None:
    angles = rng.uniform(-1.4, 1.4, (50, 3))
    np.testing.assert_allclose(angles_from_rotation(rotation_from_angles(angles, axes), axes), angles, atol=1e-12)
    locked = np.array([0.3, np.pi / 2, -0.4])
    turn = rotation_from_angles(locked, axes)
    np.testing.assert_allclose(rotation_from_angles(angles_from_rotation(turn, axes), axes), turn, atol=1e-9)


@pytest.mark.realdata
def test_asf_amc_and_bvh_of_one_clip_agree_in_the_legs(shared_data: Path) -> None:
    folder = shared_data / "cmu" / "asf_amc"
    acclaim = read_acclaim(folder / "01_01.amc", rate_hz=120.0)
    bvh = read_bvh(folder / "01_01.bvh", unit_mm=CMU_MM, drop_first=True)
    assert acclaim.frames == bvh.frames == 2751
    assert bvh.rate_hz == 120.0
    first, second = acclaim.poses()[0], bvh.poses()[0]
    pairs = {"femur": "UpLeg", "tibia": "Leg", "foot": "Foot", "toes": "ToeBase"}
    for bone, joint in pairs.items():
        for side, word in (("l", "Left"), ("r", "Right")):
            a, b = acclaim.names.index(side + bone), bvh.names.index(word + joint)
            assert np.linalg.norm(first[:, a] - second[:, b], axis=1).max() < 0.01  # mm
            turn_a = rotation_from_quaternion(acclaim.rotations[:, a])
            turn_b = rotation_from_quaternion(bvh.rotations[:, b])
            apart = np.linalg.norm(turn_a - turn_b, axis=(1, 2)) / np.sqrt(2.0)
            assert np.degrees(apart.max()) < 1e-3


@pytest.mark.realdata
def test_cmu_files_round_trip(shared_data: Path, tmp_path: Path) -> None:
    sources = [shared_data / "cmu" / "bvh" / "07_01.bvh", shared_data / "cmu" / "asf_amc" / "07" / "07_01.amc"]
    for source in sources:
        before = read_motion(source, unit_mm=CMU_MM, rate_hz=120.0)
        assert isinstance(before, JointMotion)
        few = JointMotion(
            before.names, before.parents, before.offsets, before.tips, before.shifts[:40], before.rotations[:40], 120.0
        )
        for suffix, tolerance in ((".bvh", 2e-4), (".amc", 2e-4)):
            target = tmp_path / f"{source.stem}{suffix}"
            write_motion(few, target)
            again = read_motion(target, unit_mm=10.0)
            assert isinstance(again, JointMotion)
            named = [
                again.names.index("root" if name == few.names[0] and suffix == ".amc" else name) for name in few.names
            ]
            np.testing.assert_allclose(again.poses()[0][:, named], few.poses()[0], atol=tolerance)
            np.testing.assert_allclose(again.poses()[1][:, named], few.poses()[1], atol=1e-6)


@pytest.mark.realdata
def test_every_cmu_file_round_trips(shared_data: Path, tmp_path: Path) -> None:
    """All of them, eight frames each, in the format they came in."""
    sources = sorted((shared_data / "cmu").rglob("*.bvh")) + sorted((shared_data / "cmu").rglob("*.amc"))
    assert len(sources) >= 60
    for source in sources:
        before = read_motion(source, unit_mm=CMU_MM, rate_hz=120.0)
        assert isinstance(before, JointMotion)
        step = max(1, before.frames // 8)
        few = replace(before, shifts=before.shifts[::step], rotations=before.rotations[::step])
        target = tmp_path / f"again{source.suffix}"
        write_motion(few, target)
        again = read_motion(target, unit_mm=10.0)
        assert isinstance(again, JointMotion) and again.frames == few.frames, source
        # An ASF tree calls its root "root"; files are written with at least six decimals.
        names = ["root" if parent < 0 and source.suffix == ".amc" else name
                 for name, parent in zip(few.names, few.parents, strict=True)]  # fmt: skip
        index = [again.names.index(name) for name in names]
        np.testing.assert_allclose(again.poses()[0][:, index], few.poses()[0], atol=1e-4, err_msg=str(source))
        np.testing.assert_allclose(again.poses()[1][:, index], few.poses()[1], atol=1e-7, err_msg=str(source))


@pytest.mark.parametrize("suffix", [".bvh", ".amc"])
def test_joint_motions_round_trip(motion: JointMotion, suffix: str, tmp_path: Path) -> None:
    write_motion(motion, tmp_path / f"m{suffix}")
    again = read_motion(tmp_path / f"m{suffix}", unit_mm=10.0)
    assert isinstance(again, JointMotion)
    assert again.rate_hz == pytest.approx(120.0)
    names = [
        "root" if suffix == ".amc" and parent < 0 else name
        for name, parent in zip(motion.names, motion.parents, strict=True)
    ]
    index = [again.names.index(name) for name in names]
    np.testing.assert_allclose(again.poses()[0][:, index], motion.poses()[0], atol=1e-5)
    np.testing.assert_allclose(again.poses()[1][:, index], motion.poses()[1], atol=1e-8)
    ends = again.tips[index][np.isfinite(motion.tips[:, 0])]
    np.testing.assert_allclose(ends, motion.tips[np.isfinite(motion.tips[:, 0])], atol=1e-6)


@pytest.mark.parametrize(
    "suffix, tolerance", [(".trc", 1e-5), (".csv", 1e-5), (".c3d", 2e-4), (".nc", 0.0), (".nwb", 0.0)]
)
def test_points_round_trip_with_missing_ones(
    points: MarkerSeries, suffix: str, tolerance: float, tmp_path: Path
) -> None:
    path = tmp_path / f"points{suffix}"
    write_motion(points, path)
    again = read_motion(path)
    assert isinstance(again, MarkerSeries)
    assert again.names == points.names
    assert again.rate_hz == pytest.approx(points.rate_hz, rel=1e-6)
    assert again.unit == "mm"
    np.testing.assert_allclose(again.positions, points.positions, atol=tolerance + 1e-12)
    np.testing.assert_array_equal(np.isnan(again.positions), np.isnan(points.positions))
    if suffix != ".trc":  # the format has no field for the vertical
        assert again.up == "z"
    if suffix != ".c3d":  # the format counts whole frames
        assert again.start_s == pytest.approx(0.5)


def test_image_points_keep_their_confidence_in_csv(rng: np.random.Generator, tmp_path: Path) -> None:
    series = MarkerSeries(("a", "b"), rng.uniform(0, 640, (5, 2, 2)), 30.0, unit="px", confidence=rng.random((5, 2)))
    write_motion(series, tmp_path / "p.csv")
    again = read_motion(tmp_path / "p.csv")
    assert isinstance(again, MarkerSeries) and again.unit == "px" and again.confidence is not None
    np.testing.assert_allclose(again.confidence, series.confidence)


def test_coordinates_round_trip(rng: np.random.Generator, tmp_path: Path) -> None:
    values = rng.normal(size=(7, 3))
    values[2, 1] = np.nan
    series = CoordinateSeries(("hip", "knee", "ankle"), values, np.arange(7) / 60.0, True, "gait")
    write_motion(series, tmp_path / "a.mot")
    again = read_storage(tmp_path / "a.mot")
    assert again.names == series.names and again.in_degrees and again.title == "gait"
    np.testing.assert_allclose(again.values, values, rtol=1e-11)


@pytest.mark.realdata
@pytest.mark.parametrize(
    "name, markers, frames, rate, channels, bodies",
    [
        ("BTS", 22, 675, 100.0, 44, 0),
        ("C3DRotationExample", 0, 340, 85.0, 0, 21),
        ("FP_Type1", 22, 634, 100.0, 24, 0),
        ("FP_Type3", 34, 2, 250.0, 16, 0),
        ("Optotrak", 54, 29, 30.0, 0, 0),
        ("Qualisys", 55, 340, 200.0, 69, 0),
        ("Vicon", 51, 580, 100.0, 38, 0),
        ("read_NOTworking2", 23, 670, 25.0, 0, 0),
    ],
)
def test_c3d_of_several_makers(
    shared_data: Path, name: str, markers: int, frames: int, rate: float, channels: int, bodies: int, tmp_path: Path
) -> None:
    recording = read_c3d(shared_data / "c3d" / f"{name}.c3d")
    assert (len(recording.markers.names), recording.markers.frames) == (markers, frames)
    assert recording.markers.rate_hz == rate
    assert len(recording.analog_names) == channels
    assert len(recording.rotation_names) == bodies
    if markers:
        write_motion(recording.markers, tmp_path / "again.c3d")
        again = read_motion(tmp_path / "again.c3d")
        assert isinstance(again, MarkerSeries)
        np.testing.assert_allclose(again.positions, recording.markers.positions, rtol=1e-6, atol=1e-3)
    else:
        with pytest.raises(InputError, match="holds no points, but 21 rotations"):
            read_motion(shared_data / "c3d" / f"{name}.c3d")


@pytest.mark.realdata
def test_opensim_files(shared_data: Path) -> None:
    folder = shared_data / "opensim_gait" / "Pipelines" / "Gait2354_Simbody"
    walk = read_trc(folder / "subject01_walk1.trc", up="y")
    assert (len(walk.names), walk.frames, walk.rate_hz) == (41, 151, 60.0)
    angles = read_storage(folder / "OutputReference" / "subject01_walk1_ik.mot")
    assert angles.in_degrees and len(angles.times) == 73
    assert angles.column("knee_angle_r")[0] == pytest.approx(-54.91982332)


@pytest.mark.realdata
def test_rat_of_another_program_in_nwb(shared_data: Path) -> None:
    path = shared_data / "rodent_mocap" / "test_rodent_mocap_1000_frames.nwb"
    with pytest.raises(InputError, match="unknown length unit 'pixels'"):
        read_motion(path)  # the file calls its 3D points pixels
    rat = read_motion(path, unit_mm=1.0, up="z")
    assert isinstance(rat, MarkerSeries)
    assert rat.positions.shape == (1000, 23, 3) and rat.rate_hz == 30.0


def _deeplabcut_csv(path: Path) -> None:
    path.write_text(
        "scorer,net,net,net,net,net,net\nbodyparts,nose,nose,nose,tail,tail,tail\n"
        "coords,x,y,likelihood,x,y,likelihood\n0,1.5,2.5,0.9,3,4,0.2\n1,1.6,2.6,0.8,,,\n"
    )


def test_deeplabcut_csv_and_h5(tmp_path: Path) -> None:
    _deeplabcut_csv(tmp_path / "dlc.csv")
    assert format_of(tmp_path / "dlc.csv") == "deeplabcut"
    series = read_motion(tmp_path / "dlc.csv", rate_hz=30.0)
    assert isinstance(series, MarkerSeries) and series.unit == "px"
    np.testing.assert_allclose(series.positions[0], [[1.5, 2.5], [3.0, 4.0]])
    assert np.isnan(series.positions[1, 1]).all()
    labels = [("net", part, kind) for part in ("nose", "tail") for kind in ("x", "y", "likelihood")]
    with h5py.File(tmp_path / "dlc.h5", "w") as file:
        rows = np.zeros(2, dtype=[("index", "i8"), ("values_block_0", "f8", (6,))])
        rows["values_block_0"] = [[1.5, 2.5, 0.9, 3, 4, 0.2], [1.6, 2.6, 0.8, np.nan, np.nan, np.nan]]
        table = file.create_dataset("df_with_missing/table", data=rows)
        table.attrs["values_block_0_kind"] = np.bytes_(pickle.dumps(labels, protocol=0))
    again = read_motion(tmp_path / "dlc.h5", rate_hz=30.0)
    assert isinstance(again, MarkerSeries)
    np.testing.assert_allclose(again.positions, series.positions)
    strict = read_motion(tmp_path / "dlc.csv", rate_hz=30.0, least_likelihood=0.5)
    assert isinstance(strict, MarkerSeries) and np.isnan(strict.positions[0, 1]).all()


def test_a_pickle_that_names_a_class_is_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "evil.h5", "w") as file:
        rows = np.zeros(1, dtype=[("index", "i8"), ("values_block_0", "f8", (3,))])
        table = file.create_dataset("df/table", data=rows)
        table.attrs["values_block_0_kind"] = np.bytes_(pickle.dumps([Path("x")], protocol=0))
    with pytest.raises(InputError, match="not plain data"):
        read_motion(tmp_path / "evil.h5", rate_hz=30.0)


def test_sleap_analysis_files(rng: np.random.Generator, tmp_path: Path) -> None:
    tracks = rng.uniform(0, 500, (2, 2, 3, 6))  # tracks, xy, nodes, frames
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file["tracks"] = tracks
        file["node_names"] = [b"nose", b"ear", b"tail"]
        file["track_names"] = [b"one", b"two"]
    with pytest.raises(InputError, match="several tracks \\(one, two\\)"):
        read_motion(tmp_path / "s.h5", rate_hz=25.0)
    series = read_motion(tmp_path / "s.h5", rate_hz=25.0, individual="two")
    assert isinstance(series, MarkerSeries)
    np.testing.assert_allclose(series.positions, tracks[1].transpose(2, 1, 0))


def test_anipose_tables(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "nose_x,nose_y,nose_z,nose_error,nose_ncams,nose_score,fnum\n1,2,3,0.5,4,0.9,10\n,,,,0,,11\n"
    )
    with pytest.raises(InputError, match="unit_mm"):
        read_motion(tmp_path / "a.csv", rate_hz=100.0)
    series = read_motion(tmp_path / "a.csv", rate_hz=100.0, unit_mm=10.0)
    assert isinstance(series, MarkerSeries)
    np.testing.assert_allclose(series.positions[0, 0], [10.0, 20.0, 30.0])
    assert np.isnan(series.positions[1]).all() and series.start_s == pytest.approx(0.1)


def test_a_joint_motion_becomes_points_and_points_no_joint_motion(motion: JointMotion, tmp_path: Path) -> None:
    write_motion(motion, tmp_path / "m.trc")
    again = read_motion(tmp_path / "m.trc")
    assert isinstance(again, MarkerSeries)
    assert again.names == ("hips", "thigh", "shank", "arm", "shank_tip", "arm_tip")
    np.testing.assert_allclose(again.positions[:, :4], motion.poses()[0], atol=1e-5)
    with pytest.raises(InputError, match="fit a skeleton first"):
        write_motion(again, tmp_path / "m.bvh")


def test_vertical_axis_is_turned_on_request(points: MarkerSeries) -> None:
    y_up = MarkerSeries(points.names, points.positions, points.rate_hz, up="y")
    np.testing.assert_allclose(y_up.with_z_up().positions[..., 2], points.positions[..., 1])
    assert np.linalg.det(np.stack([y_up.with_z_up().positions[0, 0], points.positions[0, 0], [0, 0, 1]])) != 0
    with pytest.raises(InputError, match="vertical axis is not known"):
        MarkerSeries(points.names, points.positions, points.rate_hz).with_z_up()


def test_every_writer_has_a_reader() -> None:
    assert set(WRITERS) <= set(READERS)


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("a.bvh", "HIERARCHY\nROOT hips\n{\nOFFSET 0 0\n}", "a.bvh:5: wanted a number, got '}'"),
        ("b.bvh", "HIERARCHY\nROOT h\n{\nOFFSET 0 0 0\nCHANNELS 3 Zrotation Yrotation Xrotation\n}\nMOTION\n"
         "Frames: 2\nFrame Time: 0.1\n1 2 3\n", "wanted 2 frames of 3 values, got 3 values"),
        ("c.trc", "PathFileType 4\nDataRate NumMarkers Units\n100 1 mm\nFrame#\tTime\tp\n\t\tX1\n"
         "1\t0.0\t1\t2\t3\n2\t0.02\t1\t2\t3\n3\t0.04\t1\t2\t3\n", "the header says 100 Hz, the time column 50 Hz"),
        ("d.mot", "x\nnRows=2\nendheader\ntime a\n0 1\n", "the header says nrows=2, the file has 1"),
        ("e.csv", "time_s,nose_x,nose_y,nose_z\n0,1,2,3\n", "hold no unit"),
        ("f.csv", "time_s,nose_x_mm,nose_y_mm\n0,1,2\n1,1,2\n", "column 'nose_z' is missing"),
        ("g.xyz", "", "unknown motion format '.xyz'"),
        ("h.c3d", "not a c3d file", "not a C3D file"),
        ("i.amc", ":FULLY-SPECIFIED\n", "which .asf skeleton"),
    ],
)  # fmt: skip
def test_bad_files_say_what_is_wrong(name: str, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message.replace("(", "\\(")):
        read_motion(tmp_path / name, unit_mm=None if name.endswith("csv") else 10.0)


def test_a_cycle_in_an_asf_hierarchy_is_refused(tmp_path: Path) -> None:
    bone = "begin\n name {0}\n direction 1 0 0\n length 1\n axis 0 0 0 XYZ\nend\n"
    (tmp_path / "m.asf").write_text(
        ":units\n length 1\n angle deg\n:root\n order TX TY TZ RX RY RZ\n axis XYZ\n:bonedata\n"
        + bone.format("a") + bone.format("b") + ":hierarchy\nbegin\n root a\n a b\n b a\nend\n"
    )  # fmt: skip
    (tmp_path / "m.amc").write_text("1\nroot 0 0 0 0 0 0\n")
    with pytest.raises(InputError, match="bone 'a' has two parents or closes a cycle"):
        read_motion(tmp_path / "m.amc", rate_hz=120.0)
