"""The whole line on a small recording: tracking in parts, killed on the way, and what comes after it."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import av
import h5py
import numpy as np
import pytest
from headless_browser import open_page, wait_for
from small_recordings import cut_recording, differences
from threadpoolctl import threadpool_limits

import vivarig
from calibration.foundation.hdf5_files import words_of
from calibration.foundation.result_files import create_results, text_array
from calibration.foundation.spans import Span
from calibration.geometry.transforms import rotation_from_quaternion
from capture.recordings.recording import load_recording
from capture.recordings.video import read_frames
from skeleton.model_files.osim import read_osim
from skeleton.motion_files import CoordinateSeries, JointMotion, MarkerSeries, read_motion, write_motion
from vivarig.cli import main
from vivarig.export.motions import point_series
from vivarig.jobs.job import Job
from vivarig.pipeline import RunOptions, run_recording
from vivarig.results.findings import load_findings
from vivarig.stages.options import TrackOptions
from vivarig.track_stage import track
from vivarig.viewer import Viewer

SLIDER = "document.querySelector('.mantine-Slider-track')"
REPOSITORY = Path(__file__).resolve().parents[2]
#: Six frames in two parts; size and shape are given, so that no search for them is repeated after each kill.
OPTIONS = RunOptions("skeleton", {"track": TrackOptions(scale=1.06, adapt=False)}, workers=1, part_frames=3)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small recording with all stages but the report done, undisturbed."""
    place = tmp_path_factory.mktemp("whole") / "undisturbed"
    run_recording(cut_recording(place, frames=6, cameras=3), OPTIONS)
    return place


KILLED = """
import os, sys
from capture.recordings.recording import load_recording
from calibration.foundation.result_files import create_results, text_array
from vivarig.track_stage import track
from vivarig.pipeline.runner import run_recording
sys.path.insert(0, sys.argv[3])
from test_whole_line import OPTIONS
{patch}
run_recording(load_recording(sys.argv[1]), OPTIONS)
"""
IN_THE_SECOND_PART = """
work, calls = track.work, []
def deadly(job, phase, span):
    calls.append(span)
    if len(calls) == 2:
        os._exit(9)
    work(job, phase, span)
track.work = deadly
"""
BEFORE_JOINING = "track.join = lambda job: os._exit(9)"


def test_a_stage_by_itself_makes_the_same_bytes_on_any_number_of_threads(finished: Path, tmp_path: Path) -> None:
    place = tmp_path / "copy"
    shutil.copytree(finished, place)
    with threadpool_limits(limits=2, user_api="blas"):
        assert main(["skeleton", str(place)]) == 0
    assert set(differences(place, finished)) <= {"results/stages.json"}  # which says how the stage was run


def test_killed_while_tracking(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gone without a word in its second part, then before the parts are joined: no part is tracked twice."""
    place = tmp_path / "copy"
    shutil.copytree(finished, place)
    for name in ("track.h5", "skeleton.h5"):
        (place / "results" / name).unlink()
    for patch in (IN_THE_SECOND_PART, BEFORE_JOINING):
        words = [sys.executable, "-c", KILLED.format(patch=patch), str(place), "", str(Path(__file__).parent)]
        paths = [str(REPOSITORY), str(REPOSITORY / "tests" / "helpers")]
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(paths))
        assert subprocess.run(words, env=environment, check=False).returncode == 9
    tracked: list[Span] = []
    work = track.work

    def watched(job: Job, phase: str, span: Span) -> None:
        tracked.append(span)
        work(job, phase, span)

    monkeypatch.setattr(track, "work", watched)
    run_recording(load_recording(place), OPTIONS)
    assert tracked == []
    assert not differences(place, finished)


def test_the_notebook(finished: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Executed as it is; the stages are done, so that it only makes the report."""
    keep = {"track": TrackOptions(scale=1.06, adapt=False)}
    run = vivarig.run
    monkeypatch.setattr(vivarig, "run", lambda folder: run(folder, workers=1, part_frames=3, **keep), raising=False)
    monkeypatch.setattr(sys, "argv", ["notebook.py", str(finished)])
    runpy.run_path(str(REPOSITORY / "docs" / "examples" / "notebook.py"))
    out = capsys.readouterr().out
    assert "silhouettes: kept" in out and "track: kept" in out and "report: done" in out
    assert "mean joint error" in out and "6 frames" in out


@pytest.mark.parametrize("suffix", [".c3d", ".trc", ".csv", ".nwb", ".nc", ".h5"])
def test_points_come_back_from_every_format(finished: Path, tmp_path: Path, suffix: str) -> None:
    """Written and read again: the same landmarks to what the format keeps (C3D and TRC: single precision, 1e-3 mm)."""
    target = tmp_path / f"points{suffix}"
    assert main(["export", str(finished), str(target)]) == 0
    back = read_motion(target, up="y")  # which TRC alone does not say
    assert isinstance(back, MarkerSeries)
    back = back.with_z_up()
    wanted = load_findings(load_recording(finished)).skeleton
    assert wanted is not None and back.names == wanted.landmark_names
    assert np.abs(back.positions - wanted.landmarks).max() < 1e-3


@pytest.mark.parametrize("suffix", [".nwb", ".nc", ".h5", ".csv"])
def test_the_trust_of_a_frame_is_the_confidence_of_its_points(finished: Path, tmp_path: Path, suffix: str) -> None:
    found = load_findings(load_recording(finished))
    assert found.skeleton is not None
    trust = np.zeros_like(found.skeleton.landmark_trust)
    trust[1], trust[2] = 1, 2
    series = point_series(
        replace(found, skeleton=replace(found.skeleton, landmark_trust=trust)), "landmarks", trusted_only=False
    )
    write_motion(series, tmp_path / f"points{suffix}")
    back = read_motion(tmp_path / f"points{suffix}")
    assert isinstance(back, MarkerSeries) and back.confidence is not None
    assert back.confidence[:4].tolist() == [[score] * len(back.names) for score in (1.0, 0.5, 0.0, 1.0)]


def test_sigma_is_the_residual_of_c3d(finished: Path, tmp_path: Path) -> None:
    """Read by ezc3d itself: points in mm, residual the stated sigma, -1 where a point is missing."""
    import ezc3d

    assert main(["export", str(finished), str(tmp_path / "joints.c3d"), "--points", "joints"]) == 0
    found = load_findings(load_recording(finished)).skeleton
    content = ezc3d.c3d(str(tmp_path / "joints.c3d"))
    assert found is not None and content["parameters"]["POINT"]["UNITS"]["value"] == ["mm"]
    residuals = content["data"]["meta_points"]["residuals"][0].T
    np.testing.assert_allclose(residuals, np.nan_to_num(found.sigma), atol=np.nanmax(found.sigma) / 400)
    np.testing.assert_allclose(content["data"]["points"][:3].transpose(2, 1, 0), found.positions, atol=1e-3)


def test_bvh_is_in_centimetres_and_y_up_and_says_so(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rotation channels alone below the root, unless asked for more, which then puts every joint where it was."""
    found = load_findings(load_recording(finished)).skeleton
    assert found is not None
    assert main(["export", str(finished), str(tmp_path / "a.bvh")]) == 0
    assert "cm, y up; bones keep their lengths" in capsys.readouterr().out
    assert (tmp_path / "a.bvh").read_text().count("position") == 3
    assert main(["export", str(finished), str(tmp_path / "b.bvh"), "--bone-shifts"]) == 0
    back = read_motion(tmp_path / "b.bvh", unit_mm=10.0)
    assert isinstance(back, JointMotion)
    points = MarkerSeries(back.names, back.poses()[0], back.rate_hz, up="y").with_z_up().subset(found.joint_names)
    np.testing.assert_allclose(points.positions, found.positions, atol=1e-3)


def test_nwb_holds_cameras_bones_subject_and_day(finished: Path, tmp_path: Path) -> None:
    """Read by pynwb and ndx-pose, and found valid by them."""
    import pynwb

    place = tmp_path / "copy"
    shutil.copytree(finished, place)
    with (place / "recording.toml").open("a") as file:
        file.write('\n[session]\nstart = 2026-03-02T10:15:00+01:00\nsubject_id = "m7"\nsex = "F"\nage = "P90D"\n')
    assert main(["export", str(place), str(tmp_path / "a.nwb")]) == 0
    recording = load_recording(place)
    assert pynwb.validate(path=str(tmp_path / "a.nwb")) == []
    with pynwb.NWBHDF5IO(str(tmp_path / "a.nwb"), "r") as stream:
        nwb = stream.read()
        assert nwb.session_start_time == recording.session["start"]
        assert (nwb.subject.subject_id, nwb.subject.species) == ("m7", "Mus musculus")
        poses = nwb.processing["behavior"]["MultiCameraPoseEstimation"]
        nodes, edges = list(poses.skeleton.nodes[:]), poses.skeleton.edges[:]
        assert ("left_knee", "left_ankle") in {(nodes[a], nodes[b]) for a, b in edges} and len(edges) == len(nodes) - 1
        view = poses.pose_estimations["view_cam01"]
        camera = recording.need_rig()["cam01"]
        np.testing.assert_allclose(
            -np.asarray(view.device.rotation_matrix).T @ np.asarray(view.device.translation_vector),
            camera.centre, atol=0.01,
        )  # fmt: skip
        assert (tmp_path / view.source_video.external_file[0]).is_file()
        assert set(poses.pose_estimation_series) == set(nodes)


def test_the_model_for_opensim_is_ours(finished: Path, tmp_path: Path) -> None:
    """Read by our own reader of OpenSim models and put in the poses of the .mot: its markers are where ours are."""
    assert main(["export", str(finished), str(tmp_path / "m.osim")]) == 0
    model, motion = read_osim(tmp_path / "m.osim"), read_motion(tmp_path / "m.mot")
    markers = read_motion(tmp_path / "m.trc", up="y")
    found = load_findings(load_recording(finished))
    assert isinstance(motion, CoordinateSeries) and isinstance(markers, MarkerSeries) and found.skeleton is not None
    order = [motion.names.index(name) for name in model.body.coordinate_names]
    values = np.where(model.body.is_length, 1000.0 * motion.values[:, order], np.radians(motion.values[:, order]))
    segments = np.array([model.body.segment(name) for name in model.markers.segments])
    placed = model.body.points(values, segments, model.markers.offsets)
    measured = markers.subset(model.markers.names).positions
    with h5py.File(finished / "results" / "skeleton.h5") as file:
        order = [list(words_of(file["marker_names"])).index(name) for name in model.markers.names]
        np.testing.assert_allclose(
            np.linalg.norm(placed - measured, axis=2), file["marker_residuals"][:][:, order], atol=1e-3
        )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a.xyz"], "cannot export to '.xyz'; known are .c3d"),
        (["a.c3d", "--frames", "0:2"], "--frames has no meaning for '.c3d'; it is for .glb"),
        (["a.bvh", "--trusted-only"], "--trusted-only has no meaning for '.bvh'"),
        (["a.glb", "--points", "joints"], "--points has no meaning for '.glb'; it is for .c3d"),
        (["a.c3d", "--skin"], "--skin has no meaning for '.c3d'; it is for .glb"),
    ],
)
def test_options_that_a_format_has_no_use_for_are_refused(
    finished: Path, tmp_path: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(finished), str(tmp_path / words[0]), *words[1:]]) == 2
    assert said in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_usd_holds_the_surface_and_the_skeleton_of_every_frame(finished: Path, tmp_path: Path) -> None:
    """Read again by the library itself: vertices to single precision, joints to what three chained turns lose."""
    from pxr import Usd, UsdGeom, UsdSkel

    target = tmp_path / "motion.usdc"
    assert main(["export", str(finished), str(target)]) == 0
    stage, found = Usd.Stage.Open(str(target)), load_findings(load_recording(finished))
    assert found.track is not None and found.skeleton is not None
    assert UsdGeom.GetStageUpAxis(stage) == "Z" and UsdGeom.GetStageMetersPerUnit(stage) == 0.001
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode()) == (0.0, 5.0)
    top = stage.GetDefaultPrim().GetPath()
    mesh = UsdGeom.Mesh.Get(stage, top.AppendPath("surface"))
    bones = UsdSkel.Skeleton.Get(stage, top.AppendPath("skeleton/bones"))
    cache = UsdSkel.Cache()
    cache.Populate(UsdSkel.Root.Get(stage, top.AppendPath("skeleton")), Usd.PrimDefaultPredicate)
    for frame in (0, 4):
        vertices = np.array(mesh.GetPointsAttr().Get(frame))
        np.testing.assert_allclose(vertices, found.track.vertices_at(frame), atol=1e-3)
        placed = cache.GetSkelQuery(bones).ComputeJointSkelTransforms(frame)
        joints = np.array([list(transform.ExtractTranslation()) for transform in placed])
        np.testing.assert_allclose(joints, found.skeleton.positions[frame], atol=0.01)


def test_usd_bones_carry_the_surface(finished: Path, tmp_path: Path) -> None:
    """UsdSkel's own skinning puts the vertices within 1 mm (median) of the tracked surface; limbs keep their trust."""
    from pxr import Usd, UsdGeom, UsdSkel

    target = tmp_path / "skin.usdc"
    assert main(["export", str(finished), str(target), "--skin"]) == 0
    stage, found = Usd.Stage.Open(str(target)), load_findings(load_recording(finished)).track
    assert found is not None
    root = UsdSkel.Root.Get(stage, stage.GetDefaultPrim().GetPath().AppendPath("skeleton"))
    assert UsdSkel.BakeSkinning(root)
    mesh = UsdGeom.Mesh.Get(stage, root.GetPath().AppendPath("surface"))
    for frame in (0, 5):
        apart = np.linalg.norm(np.array(mesh.GetPointsAttr().Get(frame)) - found.vertices_at(frame), axis=1)
        assert np.median(apart) < 1.0
    said = stage.GetDefaultPrim().GetAttribute("vivarig:limbTrust").Get(3)
    assert found.limb_trust is not None and list(said) == found.limb_trust[3].tolist()


def test_gltf_bones_carry_the_surface(finished: Path, tmp_path: Path) -> None:
    """Skinned by hand from what pygltflib reads: within 1 mm (median) of the tracked surface, in metres and y up."""
    from pygltflib import GLTF2

    target = tmp_path / "skin.glb"
    assert main(["export", str(finished), str(target), "--skin"]) == 0
    gltf, found = GLTF2().load(str(target)), load_findings(load_recording(finished)).track
    assert found is not None and not gltf.meshes[0].primitives[0].targets

    def values(index: int) -> np.ndarray:
        accessor = gltf.accessors[index]
        view = gltf.bufferViews[accessor.bufferView]
        kind = {5121: np.uint8, 5125: np.uint32, 5126: np.float32}[accessor.componentType]
        flat = np.frombuffer(gltf.binary_blob(), kind, view.byteLength // np.dtype(kind).itemsize, view.byteOffset)
        return flat.reshape(accessor.count, -1)

    frame = 4
    moving: dict[int, dict[str, np.ndarray]] = {}
    for channel in gltf.animations[0].channels:
        sampler = gltf.animations[0].samplers[channel.sampler]
        moving.setdefault(channel.target.node, {})[channel.target.path] = values(sampler.output)[frame]
    world: dict[int, np.ndarray] = {}

    def place(node: int, above: np.ndarray) -> None:
        item, change = gltf.nodes[node], moving.get(node, {})
        local = np.eye(4)
        turn = np.array(change.get("rotation", item.rotation or [0, 0, 0, 1]))[[3, 0, 1, 2]]
        local[:3, :3] = rotation_from_quaternion(turn) * (item.scale or [1, 1, 1])
        local[:3, 3] = change.get("translation", item.translation or [0, 0, 0])
        world[node] = above @ local
        for child in item.children or []:
            place(child, world[node])

    place(gltf.scenes[0].nodes[0], np.eye(4))
    skin, parts = gltf.skins[0], gltf.meshes[0].primitives[0].attributes
    back = values(skin.inverseBindMatrices).reshape(-1, 4, 4).transpose(0, 2, 1)
    bones = np.stack([world[node] @ matrix for node, matrix in zip(skin.joints, back, strict=True)])
    vertices = np.pad(values(parts.POSITION), ((0, 0), (0, 1)), constant_values=1.0)
    weights = values(parts.WEIGHTS_0)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-5)
    carried = np.einsum("vk,vkij,vj->vi", weights, bones[values(parts.JOINTS_0)], vertices)[:, :3]
    x, y, z = 0.001 * found.vertices_at(frame).T
    assert np.median(np.linalg.norm(carried - np.stack([x, z, -y], axis=1), axis=1)) < 1e-3
    assert gltf.scenes[0].extras["frames"] == list(range(6))


def test_opensim_reads_model_markers_and_motion(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenSim's own library puts its markers where ours are: residuals within 0.01 mm of those in skeleton.h5."""
    monkeypatch.chdir(tmp_path)  # it writes a log into the folder it is imported from
    opensim = pytest.importorskip("opensim", reason="OpenSim has wheels for some systems only: pip install opensim")
    assert main(["export", str(finished), str(tmp_path / "m.osim")]) == 0
    opensim.Logger.setLevelString("error")
    model = opensim.Model(str(tmp_path / "m.osim"))
    state = model.initSystem()
    motion = opensim.TimeSeriesTable(str(tmp_path / "m.mot"))
    markers = opensim.TimeSeriesTableVec3(str(tmp_path / "m.trc"))
    assert markers.getTableMetaDataString("Units") == "mm" and motion.getTableMetaDataString("inDegrees") == "yes"
    labels, names = list(motion.getColumnLabels()), list(markers.getColumnLabels())
    with h5py.File(finished / "results" / "skeleton.h5") as file:
        ours = dict(zip(words_of(file["marker_names"]), file["marker_residuals"][:].T, strict=True))
    for frame in range(6):
        row, seen = motion.getRowAtIndex(frame), markers.getRowAtIndex(frame)
        for index, label in enumerate(labels):
            coordinate = model.updCoordinateSet().get(label)
            turns = coordinate.getMotionType() == opensim.Coordinate.Rotational
            coordinate.setValue(state, np.radians(row[index]) if turns else row[index], False)
        model.realizePosition(state)
        for index, name in enumerate(names):
            at = model.getMarkerSet().get(name).getLocationInGround(state)
            apart = np.linalg.norm([1000.0 * at[axis] - seen[index][axis] for axis in range(3)])
            assert abs(apart - ours[name][frame]) < 0.01


def test_movement_takes_the_data_set(finished: Path, tmp_path: Path) -> None:
    """Loaded as its documentation says and found valid by it; its own speed is the one of our points."""
    pytest.importorskip("movement", reason="needs the movement package: pip install movement")
    import xarray
    from movement.kinematics import compute_speed
    from movement.validators.datasets import ValidPosesInputs

    assert main(["export", str(finished), str(tmp_path / "a.nc")]) == 0
    dataset = xarray.load_dataset(tmp_path / "a.nc")
    ValidPosesInputs.validate(dataset)
    found = load_findings(load_recording(finished)).skeleton
    assert found is not None
    speed = compute_speed(dataset.position).isel(individuals=0).values
    wanted = np.linalg.norm(np.gradient(found.landmarks, 1 / found.rate_hz, axis=0), axis=2)
    np.testing.assert_allclose(speed, wanted, rtol=1e-4, atol=1e-6)


def test_sleap_anipose_projects_the_points_with_the_rig_as_we_do(finished: Path, tmp_path: Path) -> None:
    """The file of points and rig.toml, both as they are, in sleap-anipose; it wants an old OpenCV, hence not in CI."""
    other = pytest.importorskip("sleap_anipose", reason="needs an OpenCV of its own: pip install sleap-anipose")
    assert main(["export", str(finished), str(tmp_path / "points.h5")]) == 0
    found, rig = load_findings(load_recording(finished)).skeleton, load_recording(finished).need_rig()
    assert found is not None
    theirs = other.reproject(str(tmp_path / "points.h5"), str(finished / "rig.toml"))
    for camera, pixels in zip(rig, theirs, strict=True):
        np.testing.assert_allclose(pixels[:, 0], camera.project(found.landmarks), atol=0.01)


def test_the_viewer_draws_every_layer(finished: Path) -> None:
    viewer = Viewer(load_findings(load_recording(finished)), "127.0.0.1", 8961)
    try:
        for toggle in viewer._toggles.values():
            toggle.value = True
        viewer.show(3)
        assert {"hull", "template", "skeleton", "markers", "camera/cam01"} <= set(viewer._handles)
        assert viewer._handles["camera/cam01"].image is not None
        viewer._toggles["hull"].value = False
        viewer.show(4)
        assert "hull" not in viewer._handles and "time" in viewer.words.content
    finally:
        viewer.stop()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--port", "99999"], "--port wants a number from 1 to 65535, got 99999"),
        (["--host", "192.0.2.1"], "--host 192.0.2.1: not an address of this machine"),
    ],
)
def test_an_address_that_cannot_be_served_on_is_said(
    finished: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["view", str(finished), "--no-browser", *words]) == 2
    assert said in capsys.readouterr().err


def test_clicks_in_a_browser_switch_every_layer(finished: Path, tmp_path: Path) -> None:
    place = tmp_path / "with_beads"
    shutil.copytree(finished, place)
    with create_results(place / "results" / "beads.h5", stage="beads", parameters={}) as file:
        file["names"] = text_array(["b1", "b2"])
        file["positions"] = np.ones((6, 2, 3))
    viewer = Viewer(load_findings(load_recording(place)), "127.0.0.1", 8963)
    # The browser's own settings have other names; ours are numbered by their server, in its order, after "play".
    boxes = "[...document.querySelectorAll('input[type=checkbox]')].filter(box => /^[0-9a-f]{8}-/.test(box.id))"
    try:
        with open_page(viewer.address, tmp_path / "profile") as page:
            wait_for(lambda: page.value(f"{boxes}.length == {1 + len(viewer._toggles)} && {SLIDER} !== null"))
            for at, (name, toggle) in enumerate(viewer._toggles.items(), start=1):
                before = toggle.value
                page.click(f"{boxes}[{at}]")
                wait_for(lambda toggle=toggle, before=before: toggle.value != before)  # type: ignore[misc]
                if name == "cameras":
                    wait_for(lambda: not viewer._handles["camera/cam01"].visible)
                elif name in ("images", "silhouettes"):
                    wait_for(lambda: viewer._handles["camera/cam01"].image is not None)
                else:
                    wait_for(lambda name=name, before=before: (name in viewer._handles) != before)  # type: ignore[misc]
            page.press(SLIDER, across=0.99)
            wait_for(lambda: viewer.slider.value == 5 and "time 0.04" in viewer.words.content)
    finally:
        viewer.stop()


def test_films_play_and_show_what_was_found(finished: Path, tmp_path: Path) -> None:
    assert main(["film", str(finished), "--frames", "1:4", "--slow", "4", "--output", str(tmp_path)]) == 0
    recording = load_recording(finished)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"all.mp4", *(f"{footage.name}.mp4" for footage in recording.footage)}
    with av.open(str(tmp_path / "all.mp4")) as film:
        stream = film.streams.video[0]
        assert stream.codec_context.name == "h264" and stream.codec_context.pix_fmt == "yuv420p"
        assert float(stream.average_rate or 0) == pytest.approx(recording.rate_hz / 4)
        assert sum(1 for _ in film.decode(video=0)) == 3
    footage = recording.footage[0]
    drawn = next(image for _, image in read_frames(tmp_path / f"{footage.name}.mp4", 0, 1))
    raw = next(image for _, image in read_frames(footage.source, 1, 2))
    raw = raw if raw.ndim == 3 else np.repeat(raw[..., None], 3, axis=2)
    assert (np.abs(drawn.astype(int) - raw[: drawn.shape[0], : drawn.shape[1]]).max(axis=2) > 80).mean() > 0.002
    assert main(["film", str(finished), "--frames", "4:99"]) == 2
