"""Every reader that a public command reaches, each with a sound file to start from; what it covers is checked."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import h5py
import numpy as np
import pydicom
import tifffile
import trimesh
from example_rigs import ring
from pydicom.dataset import FileDataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, SecondaryCaptureImageStorage, generate_uid
from xmalab_example import write_xmalab_project

import skeleton.bodies
from calibration.boards.board import load_boards
from calibration.foundation.result_files import create_results, text_array
from calibration.rig_formats import FORMATS, ReadOptions, read_rig, write_rig
from calibration.rig_formats.known_lenses import load_lenses
from calibration.solving.survey_files import load_clicks, load_surveyed_scene
from calibration.solving.wand import load_marks
from calibration.solving.world_frame import load_named_points
from calibration.xray.cube import load_cube
from capture.hull.result import Hull
from capture.hull.store import create_hulls, read_hulls
from capture.recordings.image_stacks import open_stack
from capture.recordings.masks import create_masks, mask_cameras, read_agreement, read_masks, user_masks
from capture.recordings.recording import load_recording
from capture.recordings.video import probe, read_both, read_frames, read_image, write_video
from capture.recordings.xmalab_project import read_xmalab_project
from capture.studio.films.simulation import load_plan
from capture.studio.scene.truth import NamedPoints, Truth, load_truth, save_truth
from skeleton.bodies import load_skeleton_toml
from skeleton.bodies.marker_sets import load_marker_set
from skeleton.model_files.mujoco import read_mujoco
from skeleton.model_files.osim import read_ik_setup, read_osim
from skeleton.motion_files import JointMotion, MarkerSeries, read_motion, write_motion
from skeleton.motion_files.acclaim import write_acclaim
from skeleton.motion_files.motions import CoordinateSeries
from skeleton.pose_spaces.coding.motion_coding import code_motion, decode_motion
from skeleton.pose_spaces.coding.vpg_files import read_vpg, write_vpg
from skeleton.pose_spaces.library_files import load_pose_model, save_library
from skeleton.pose_spaces.pose_library import PoseLibrary
from skeleton.pose_spaces.principal_geodesics import PoseSpace, load_pose_space, save_pose_space
from skeleton.pose_spaces.rotation_tree import RotationTree
from tracking.beads.store import load_maps, load_tracks
from tracking.beads.xmalab_files import read_deeplabcut, read_points_2d, read_points_3d, read_rigid_body
from tracking.own_bodies.joints_file import load_joints
from tracking.points.files import read_image_points
from tracking.points.naming import load_point_names
from tracking.priors.cmu import FILE, load_cmu
from tracking.priors.files import load_prior
from tracking.priors.key_poses import load_key_poses, save_key_poses
from tracking.priors.training_poses import TrainingPoses
from tracking.quads.oriented_quads import load_quad_rig, save_quad_rig
from tracking.sequence.tracked_points import TrackedPoints
from tracking.subjects.mesh_files import read_mesh
from tracking.subjects.subject import builtin_subject, load_subject, save_subject
from vivarig.edits.edit_file import load_edits
from vivarig.evaluation.scores import load_estimate, load_joint_map
from vivarig.jobs.fingerprints import Ledger
from vivarig.results.findings import load_findings
from vivarig.statistics.table_files import read_table

__all__ = ["READERS", "Reader"]


@dataclass(frozen=True)
class Reader:
    """One reader.

    Attributes:
        file: name of the sound file, or folder.
        make: writes it.
        read: reads it as a command would, and returns what is to be looked at.
        covers: functions of the product that take a path and are reached by this.
        slow: takes a second or more, so that fewer files are tried.
    """

    file: str
    make: Callable[[Path], None]
    read: Callable[[Path], Any]
    covers: tuple[str, ...] = ()
    slow: bool = False


READERS: dict[str, Reader] = {}
_FUNCTIONS = {"netcdf": "movement", "mot": "storage", "c3d": "c3d_markers"}


def _rigs() -> None:
    suffixes = {"anipose": "rig.toml", "pose2sim": "rig.toml", "caliscope": "rig.toml", "opencv": "rig.yml",
                "dannce": "rig.mat", "qualisys": "rig.qca.txt", "dlt": "rig.csv"}  # fmt: skip
    options = ReadOptions(size=(640, 480))

    def make(name: str, path: Path) -> None:
        write_rig(ring(3), path, name, lossy=True)

    def read(name: str, path: Path) -> Any:
        return read_rig(path, name, options)

    for name in FORMATS:
        READERS[f"rig {name}"] = Reader(
            suffixes.get(name, "cameras"), partial(make, name), partial(read, name),
            ("read_rig", "recognise", "load_rig", "read_toml", "read_text", "read_matlab", "storage_files", "camera_files",
             "looks_like_storage"),
        )  # fmt: skip
    READERS["known lenses"] = Reader(
        "cameras", partial(make, "jarvis"),
        lambda path: load_lenses(path, ring(3).names, [(640, 480)] * 3),
        ("load_lenses", "load_stated_lenses"),
    )  # fmt: skip


def _markers() -> MarkerSeries:
    rng = np.random.default_rng(0)
    return MarkerSeries(("a", "b", "c"), rng.normal(0, 100, (12, 3, 3)), 100.0, up="z", confidence=np.ones((12, 3)))


def _joints() -> JointMotion:
    turn = np.tile([1.0, 0, 0, 0], (6, 3, 1))
    return JointMotion(
        ("hip", "knee", "foot"), (-1, 0, 1), np.eye(3) * 100, np.eye(3) * 50, np.zeros((6, 3, 3)), turn, 100.0
    )


def _pixels_h5(path: Path, kind: str) -> None:
    rng = np.random.default_rng(1)
    with h5py.File(path, "w") as file:
        if kind == "sleap":
            file["tracks"] = rng.uniform(0, 500, (1, 2, 3, 20))
            file["node_names"], file["track_names"] = [b"a", b"b", b"c"], [b"one"]
            file["point_scores"] = rng.uniform(0, 1, (1, 3, 20))
            return
        group = file.create_group("df_with_missing")
        group["block0_values"] = rng.uniform(0, 1, (20, 6))
        for level, words in enumerate(([b"s"], [b"a", b"b"], [b"x", b"y", b"likelihood"])):
            group[f"block0_items_level{level}"] = words
            group[f"block0_items_label{level}"] = (
                [0] * 6 if level == 0 else [0, 0, 0, 1, 1, 1] if level == 1 else [0, 1, 2] * 2
            )


def _pixels_csv(path: Path) -> None:
    rows = ["scorer" + ",s" * 6, "bodyparts,a,a,a,b,b,b", "coords,x,y,likelihood,x,y,likelihood"]
    path.write_text("\n".join(rows + [f"{k},1.5,2,0.9,3,4,0.8" for k in range(8)]) + "\n")


def _anipose_csv(path: Path) -> None:
    titles = [f"{n}_{k}" for n in "ab" for k in ("x", "y", "z", "error", "ncams", "score")]
    path.write_text(
        "\n".join([",".join([*titles, "fnum"]), *(",".join(["1.5"] * 12 + [str(k)]) for k in range(6))]) + "\n"
    )


def _motions() -> None:
    options = {"rate_hz": 100.0, "unit_mm": 10.0, "up": "y"}

    def read(name: str, path: Path) -> Any:
        motion = read_motion(path, name, **options)
        if isinstance(motion, JointMotion):
            return motion.as_markers()
        return motion

    seeds: dict[str, tuple[str, Callable[[Path], None]]] = {
        "bvh": ("a.bvh", lambda p: write_motion(_joints(), p)),
        "c3d": ("a.c3d", lambda p: write_motion(_markers(), p)),
        "trc": ("a.trc", lambda p: write_motion(_markers(), p)),
        "csv": ("a.csv", lambda p: write_motion(_markers(), p)),
        "nwb": ("a.nwb", lambda p: write_motion(_markers(), p)),
        "netcdf": ("a.nc", lambda p: write_motion(_markers(), p)),
        "mot": ("a.mot", lambda p: write_motion(CoordinateSeries(("x", "y"), np.ones((5, 2)), np.arange(5.0), True), p)),
        "deeplabcut": ("a.csv", _pixels_csv),
        "sleap": ("a.h5", partial(_pixels_h5, kind="sleap")),
        "anipose": ("a.csv", _anipose_csv),
    }  # fmt: skip
    for name, (file, make) in seeds.items():
        READERS[f"motion {name}"] = Reader(file, make, partial(read, name), ("read_motion", "format_of", "open_hdf5",
            f"read_{_FUNCTIONS.get(name, name)}", "read_c3d"))  # fmt: skip
    READERS["motion deeplabcut h5"] = Reader("a.h5", partial(_pixels_h5, kind="dlc"), partial(read, "deeplabcut"))

    def acclaim(path: Path) -> None:
        path.mkdir()
        write_acclaim(_joints(), path / "walk.amc")

    READERS["motion amc"] = Reader(
        "walk", acclaim, lambda path: read(None, path / "walk.amc"), ("read_acclaim", "read_asf", "find_asf")
    )


def _meshes() -> None:
    ball = trimesh.creation.icosphere(2, 50.0)
    for suffix in ("ply", "obj", "stl", "off", "glb"):
        READERS[f"mesh {suffix}"] = Reader(
            f"a.{suffix}", lambda path: ball.export(path), lambda path: read_mesh(path), ("read_mesh", "mesh_paths")
        )


def _images() -> None:
    rng = np.random.default_rng(2)
    grey = rng.integers(0, 255, (4, 48, 64)).astype(np.uint8)

    def coco(path: Path) -> None:
        images = [{"id": k, "width": 64, "height": 48, "file_name": f"{k}.png"} for k in range(3)]
        polygon = {"id": 1, "image_id": 0, "segmentation": [[1, 1, 30, 1, 30, 30]]}
        runs = {"id": 2, "image_id": 1, "segmentation": {"size": [48, 64], "counts": [100, 50, 48 * 64 - 150]}}
        path.write_text(json.dumps({"images": images, "annotations": [polygon, runs]}))

    def masks(path: Path) -> Any:
        return list(user_masks(path, 3, (64, 48)))

    def png(path: Path) -> None:
        path.mkdir()
        for k in range(3):
            cv2.imwrite(str(path / f"{k}.png"), (grey[k] > 100).astype(np.uint8) * 255)

    def dicom(path: Path) -> None:
        meta = FileMetaDataset()
        meta.MediaStorageSOPClassUID = SecondaryCaptureImageStorage
        meta.MediaStorageSOPInstanceUID = generate_uid(entropy_srcs=["test"])
        meta.TransferSyntaxUID = ExplicitVRLittleEndian
        data = FileDataset(str(path), {}, file_meta=meta, preamble=b"\0" * 128)
        data.SOPClassUID, data.SOPInstanceUID = meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID
        data.Rows, data.Columns, data.NumberOfFrames, data.SamplesPerPixel = 48, 64, 4, 1
        data.PixelRepresentation, data.BitsAllocated, data.BitsStored, data.HighBit = 0, 8, 8, 7
        data.PhotometricInterpretation, data.InstanceNumber, data.PixelData = "MONOCHROME2", 1, grey.tobytes()
        pydicom.dcmwrite(path, data, enforce_file_format=True)

    def stack(path: Path) -> Any:
        return list(open_stack(path).read())

    def video(path: Path) -> Any:
        pieces = [list(read_frames(path, first, first + 2, ahead=False)) for first in (0, 2, 50)]  # one goes on
        pieces.append([pair[:2] for pair in read_both(path, [1, 50])])
        return probe(path), [image.shape for _, image in read_frames(path)], list(read_frames(path, 50)), pieces

    films = (
        "probe", "open_video", "read_frames", "read_both", "spread_frames", "load_background", "measured_noise",
        "image_files",
    )  # fmt: skip
    READERS["masks coco"] = Reader("a.json", coco, masks, ("user_masks", "coco_masks", "coco_images"))
    READERS["masks png"] = Reader("masks", png, masks, ("user_masks",))
    READERS["image png"] = Reader("a.png", lambda p: cv2.imwrite(str(p), grey[0]) and None, read_image, ("read_image",))
    READERS["image jpg"] = Reader("a.jpg", lambda p: cv2.imwrite(str(p), grey[0]) and None, read_image)
    READERS["stack tiff"] = Reader(
        "a.tif", lambda p: tifffile.imwrite(p, grey, photometric="minisblack"), stack, ("open_stack",)
    )
    READERS["stack dicom"] = Reader("a.dcm", dicom, stack)
    READERS["video mp4"] = Reader("a.mp4", lambda p: write_video(p, list(grey) * 15, 30.0) and None, video, films)
    READERS["video avi"] = Reader("a.avi", lambda p: write_video(p, list(grey), 30.0, codec="ffv1") and None, video)


def _written(text: str) -> Callable[[Path], None]:
    return lambda path: path.write_text(text) and None


def _xmalab_project(path: Path) -> None:
    picture = path.with_name("01.png")
    picture.write_bytes(cv2.imencode(".png", np.full((8, 8), 90, np.uint8))[1].tobytes())
    films = {"left": "D:\\a.avi", "right": "D:\\b.avi"}
    pictures = {name: [picture] for name in films}
    cube = np.arange(24.0).reshape(8, 3)
    write_xmalab_project(path, films, cube, pictures, markers={"a": np.ones((3, 2, 2))}, bones={"jaw": [1]})
    picture.unlink()


def _tables() -> None:
    cells = ",".join(f"{n}_cam{c}_{a}" for n in ("b1", "b2") for c in (1, 2) for a in "XY")
    matrix = "1,0,0,0,0,1,0,0,0,0,1,0,5,6,7,1"
    head = ",".join(f"bone_{k}" for k in range(16))
    frame = "frame,camera,mark,x,y\n" + "".join(
        f"{f},cam{c},m{m},1.5,2\n" for f in range(3) for c in (1, 2) for m in (0, 1)
    )
    points = '[points.a]\nworld = [0, 0, 1]\npixels.cam1 = [1, 2]\n[points.b]\npixels.cam2 = [3, 4]\n' \
             '[[distances]]\nbetween = ["a", "b"]\nmm = 5\n'  # fmt: skip
    cube = "X,Y,Z\n" + "".join(f"{x},{y},{z}\n" for x in (0, 10) for y in (0, 12) for z in (0, 14, 15))
    board = '[[boards]]\nkind = "charuco"\ncolumns = 7\nrows = 5\nsquare_mm = 10\nmarker_mm = 7\ndictionary = "DICT_4X4_50"\n'
    READERS["xmalab 2d"] = Reader(
        "a.csv", _written(cells + "\n" + "1,2,3,4,5,6,7,8\n" * 4), read_points_2d, ("read_points_2d",)
    )
    READERS["xmalab 3d"] = Reader("a.csv", _written("b_X,b_Y,b_Z\n1,2,3\n4,,6\n"), read_points_3d, ("read_points_3d",))
    READERS["xmalab body"] = Reader(
        "a.csv", _written(f"{head}\n{matrix}\n{matrix}\n"), read_rigid_body, ("read_rigid_body",)
    )
    READERS["xmalab project"] = Reader("a.xma", _xmalab_project, read_xmalab_project, ("read_xmalab_project",))
    READERS["xmalab deeplabcut"] = Reader("a.csv", _pixels_csv, read_deeplabcut, ("read_deeplabcut",))
    keypoints = {
        "images": [{"id": k, "file_name": f"{k}.png"} for k in range(3)],
        "categories": [{"keypoints": ["nose", "left_knee"]}],
        "annotations": [{"image_id": k, "area": 4.0, "keypoints": [1, 2, 2, 3, 4, 1]} for k in range(3)],
    }
    READERS["image points"] = Reader(
        "a.json", _written(json.dumps(keypoints)), lambda p: read_image_points(p, rate_hz=60.0), ("read_image_points",)
    )
    READERS["point names"] = Reader(
        "a.toml", _written('[points]\na = "nose"\nb = ""\n'), lambda p: load_point_names(p, ["nose"]),
        ("load_point_names",),
    )  # fmt: skip
    READERS["marks"] = Reader("a.csv", _written(frame), load_marks, ("load_marks",))
    READERS["named points"] = Reader(
        "a.toml", _written(points), lambda p: load_named_points(p, ("cam1", "cam2")), ("load_named_points",)
    )
    READERS["table"] = Reader(
        "a.csv", _written("group,joint,x_mm\n" + "day1,left_knee,1.5\n" * 5 + "day1,left_hip,\n"),
        lambda p: read_table(p, ("group", "x_mm")), ("read_table",),
    )  # fmt: skip
    READERS["clicks"] = Reader("a.csv", _written("camera,point,x,y\ncam1,a,1,2\n"), load_clicks, ("load_clicks",))
    READERS["surveyed scene"] = Reader(
        "a.toml", _written("sd_mm = 2\n[points.a]\nworld = [0, 0, 1]\npixels.cam1 = [1, 2]\n"),
        lambda p: load_surveyed_scene(p, None), ("load_surveyed_scene",),
    )  # fmt: skip
    READERS["cube"] = Reader("a.csv", _written(cube), load_cube, ("load_cube",))
    READERS["boards"] = Reader("a.toml", _written(board), load_boards, ("load_boards",))
    READERS["plan"] = Reader(
        "a.toml",
        _written('name = "x"\nbody = "mouse"\nmotion = "walk"\nframes = 5\nrate_hz = 100.0\n'),
        load_plan,
        ("load_plan",),
    )
    READERS["joint map"] = Reader("a.toml", _written('a = "b"\nc = "d"\n'), load_joint_map, ("load_joint_map",))
    bodies = Path(skeleton.bodies.__file__).parent
    READERS["body"] = Reader(
        "a.toml",
        lambda p: p.write_text((bodies / "mouse.toml").read_text()) and None,
        load_skeleton_toml,
        ("load_skeleton_toml",),
    )
    READERS["marker set"] = Reader(
        "a.toml", lambda p: p.write_text((bodies / "mouse_markers.toml").read_text()) and None, load_marker_set,
        ("load_marker_set",),
    )  # fmt: skip
    model = (
        '<mujoco model="arm"><compiler angle="degree"/><default><joint axis="0 1 0" limited="true"/></default><worldbody>'
        '<body name="upper" pos="0 0 1" euler="0 0 90"><freejoint name="root"/><body name="fore" pos="0.3 0 0">'
        '<joint name="elbow" pos="-0.1 0 0" range="0 90"/><site name="tip" pos="0.2 0 0"/></body></body></worldbody></mujoco>'
    )
    READERS["mujoco"] = Reader("a.xml", _written(model), read_mujoco, ("read_mujoco",))
    osim = (
        '<OpenSimDocument Version="30000"><Model name="pendulum"><BodySet><objects><Body name="ground"><Joint/></Body>'
        '<Body name="rod"><mass>2</mass><Joint><PinJoint name="swing"><parent_body>ground</parent_body>'
        "<location_in_parent>0 1 0</location_in_parent><orientation_in_parent>0 0 0</orientation_in_parent>"
        "<location>0 0.5 0</location><orientation>0 0 0</orientation><CoordinateSet><objects>"
        '<Coordinate name="angle"><default_value>0</default_value><range>-1 1</range><clamped>true</clamped></Coordinate>'
        "</objects></CoordinateSet></PinJoint></Joint></Body></objects></BodySet><MarkerSet><objects>"
        '<Marker name="tip"><body>rod</body><location>0 -0.5 0</location></Marker></objects></MarkerSet></Model>'
        "</OpenSimDocument>"
    )
    READERS["osim"] = Reader("a.osim", _written(osim), read_osim, ("read_osim",))
    setup = '<a><IKMarkerTask name="m"><apply>true</apply><weight>2</weight></IKMarkerTask></a>'
    READERS["ik setup"] = Reader("a.xml", _written(setup), read_ik_setup, ("read_ik_setup",))


def _subjects() -> None:
    def make(path: Path) -> None:
        save_subject(builtin_subject("mouse"), path)

    def quads(path: Path) -> None:
        save_quad_rig(builtin_subject("mouse").cage_rig.quads, path)

    def keys(path: Path) -> None:
        rig = builtin_subject("mouse").cage_rig.quads
        path.mkdir()
        save_quad_rig(rig, path / "quads.toml")
        save_key_poses(
            TrainingPoses(rig, rig.rotations[None].repeat(2, 0), rig.centres[None].repeat(2, 0), ("a", "b")),
            path / "keys.toml",
        )

    def prior(path: Path) -> None:
        from tracking.priors.files import builtin_prior_path

        path.write_bytes(builtin_prior_path("mouse").read_bytes())

    def read_prior(path: Path) -> Any:
        known = load_prior(path)
        return known.evaluate(np.zeros(known.latent_dim)), known.back(known.training_poses[0])

    READERS["subject"] = Reader(
        "m7",
        make,
        lambda p: load_subject(str(p)),
        ("load_subject_skeleton", "raw_mesh", "read_npz"),
        slow=True,
    )
    READERS["quads"] = Reader("a.toml", quads, load_quad_rig, ("load_quad_rig",))
    READERS["key poses"] = Reader(
        "keys", keys, lambda p: load_key_poses(p / "keys.toml", load_quad_rig(p / "quads.toml")), ("load_key_poses",)
    )
    READERS["prior"] = Reader("a.npz", prior, read_prior, ("load_prior", "read_npz"))
    READERS["cmu table"] = Reader("cmu", _cmu_table, lambda p: load_cmu(p).motion(0), ("load_cmu",))
    READERS["joints"] = Reader("joints.toml", _joint_list, load_joints, ("load_joints",))


def _joint_list(path: Path) -> None:
    path.write_text(
        '[joints]\nroot = { at = [0.0, 0.0, 1.0] }\nleg = { at = [0.1, 0.2, 0.5], parent = "root", range_deg = 40 }\n'
        'paw = { at = [0.1, 0.2, 0.0], parent = "leg" }\nnose = { at = [1.0, 0.0, 1.0], parent = "root" }\n'
    )


def _cmu_table(path: Path) -> None:
    path.mkdir()
    names = np.array([f"{joint}.{axis}rotation" for joint in ("Hips", "LeftUpLeg") for axis in "ZYX"])
    np.savez(
        path / FILE, channels=names, angles_centideg=np.ones((4, 6), np.int16), root_position=np.ones((4, 3)),
        clip=np.array(["01_01"]), subject=np.array(["001"]), first=np.array([0]), frames=np.array([4]),
        offset_subject=np.array(["001"]), offsets=np.ones((1, 38, 3)),
    )  # fmt: skip


def _spaces() -> None:
    rng = np.random.default_rng(5)
    turns = np.tile(np.eye(3), (30, 3, 1, 1))

    def vpg(path: Path) -> None:
        tree = RotationTree(("a", "b", "c"), np.array([-1, 0, 1]), np.eye(3) * 50, "z")
        write_vpg(code_motion(tree, turns, rng.normal(0, 5, (30, 3)), rate_hz=100.0, step_mm=1.0), path)

    def space(path: Path) -> None:
        known = PoseSpace(
            "mouse", ("a", "b"), np.array([1]), np.tile(np.eye(3), (2, 1, 1)), np.eye(3)[:, :2], np.ones(2), 3.0, 9
        )
        save_pose_space(known, path)

    edit = (
        '[[edit]]\npoint = "nose"\nframes = [3, 9]\nplace = [1.0, 2.0, 3.0]\nmode = "absolute"\n'
        '[[mask]]\ncamera = "a"\nframes = [3, 3]\npaint = false\nradius = 4.0\npath = [[1.0, 2.0], [3.0, 4.0]]\n'
        '[[drop]]\ncamera = "a"\nframes = [3, 9]\n[[lost]]\nframes = [1, 2]\nlimb = "tail"\n'
        '[[key_pose]]\nframe = 4\nramp = 3\n[key_pose.joints]\nnose = [1.0, 2.0, 3.0]\n[names.beads]\na = "b"\n'
    )
    READERS["vpg"] = Reader("a.vpg", vpg, lambda p: decode_motion(read_vpg(p)), ("read_vpg",))

    def library(path: Path) -> None:
        poses = rng.normal(0, 0.1, (9, 6)).astype(np.float32)
        save_library(
            PoseLibrary("mouse", ("a", "b"), "z", np.tile(np.eye(3), (2, 1, 1)), poses, np.zeros(9, int), 1.0), path
        )

    READERS["pose library"] = Reader("a.npz", library, load_pose_model, ("load_pose_model", "load_library"))
    READERS["pose space"] = Reader("a.npz", space, load_pose_space, ("load_pose_space",))
    READERS["edits"] = Reader("a.toml", _written(edit), load_edits, ("load_edits",))


def _recording(path: Path) -> None:
    path.mkdir()
    rig = ring(2)
    write_rig(rig, path / "rig.toml", "anipose")
    text = 'name = "a"\nrate_hz = 100.0\nsubject = "mouse"\n'
    for name in rig.names:
        (path / f"{name}.mp4").write_bytes(b"x")
        text += f'[cameras.{name}]\nvideo = "{name}.mp4"\n'
    (path / "recording.toml").write_text(text)


def _results(path: Path) -> None:
    """A recording whose results were made up, as large as a few frames."""
    rng = np.random.default_rng(3)
    _recording(path)
    names, frames = ring(2).names, 5
    with create_masks(path / "results" / "silhouettes.h5", names, [(64, 48)] * 2, frames, {"start": 0}) as masks:
        for name in names:
            packed = rng.integers(0, 255, (frames, 48, 8)).astype(np.uint8)
            masks.write(name, 0, packed, np.ones(frames, np.float32), np.zeros(frames, np.uint16))
    ball = trimesh.creation.icosphere(1, 20.0)
    with create_hulls(path / "results" / "hull.h5", names, frames, {}) as hulls:
        one = Hull(np.asarray(ball.vertices), np.asarray(ball.faces), 1.0, np.ones(2, bool), np.ones(2), 0)
        hulls.write(0, [one] * frames)
    _made(path / "results" / "track.h5", "track", {
        "marker_names": text_array(["m1", "m2"]), "quad_names": text_array(["q"]), "reasons": text_array(["none"]),
        "faces": np.asarray(ball.faces, np.int32), "rotations": np.tile(np.eye(3), (frames, 1, 1, 1)),
        "centres": np.zeros((frames, 1, 3)), "latent": np.zeros((frames, 2)), "overlap": np.ones((frames, 2)),
        "agreement": np.ones(frames), "residual": np.ones(frames), "trust": np.zeros(frames, np.uint8),
        "reason": np.zeros(frames, np.uint8), "markers": rng.normal(0, 9, (frames, 2, 3)),
        "marker_sigma": np.ones((frames, 2)), "cage_joint_names": text_array(["j"]), "cage_joints": np.ones((frames, 1, 3)),
        "vertices": np.tile(np.asarray(ball.vertices, np.float32), (frames, 1, 1)),
    })  # fmt: skip
    _made(path / "results" / "skeleton.h5", "skeleton", {
        "joint_names": text_array(["a", "b"]), "joint_parents": np.array([-1, 0]), "joint_offsets": np.ones((2, 3)),
        "coordinate_names": text_array(["x"]), "positions": rng.normal(0, 9, (frames, 2, 3)),
        "rotations": np.tile([1.0, 0, 0, 0], (frames, 2, 1)), "coordinates": np.zeros((frames, 1)), "sigma": np.ones((frames, 2)),
        "trust": np.zeros(frames, np.uint8), "reason": np.zeros(frames, np.uint8), "reasons": text_array(["none"]),
        "landmark_names": text_array(["l"]), "landmarks": np.ones((frames, 1, 3)), "marker_names": text_array(["m1"]),
        "marker_residuals": np.ones((frames, 1)),
    }, body="mouse", rate_hz=100.0)  # fmt: skip
    _made(path / "results" / "beads.h5", "beads", {
        "names": text_array(["b"]), "positions": np.ones((frames, 1, 3)), "bead_bones": text_array([""]),
    }, rate_hz=100.0)  # fmt: skip
    Ledger(path / "results").record("hull", "x", path / "results" / "hull.h5", "")


def _made(path: Path, stage: str, values: dict[str, Any], **attributes: Any) -> None:
    with create_results(path, stage=stage, parameters={}) as file:
        for name, value in values.items():
            file[name] = value
        for name, value in attributes.items():
            file.attrs[name] = value


def _read_results(path: Path) -> Any:
    recording = load_recording(path)
    ledger = Ledger(recording.results)
    ledger.is_done("hull", "x", recording.results / "hull.h5")
    findings = load_findings(recording)
    seen: list[Any] = [findings.skeleton, findings.track, findings.hull, findings.beads]
    if findings.hull is not None:
        seen.append(list(read_hulls(findings.hull.path)))
    if findings.silhouettes is not None:
        seen += [read_masks(findings.silhouettes.path, name, 0) for name in findings.silhouettes.names]
    if findings.track is not None:
        seen += [findings.track.vertices_at(0), TrackedPoints(findings.track.path).rows(slice(0, 2))]
    if findings.skeleton is not None:
        seen.append(load_estimate(recording.results))
    return seen


def _tracks(path: Path) -> None:
    _made(path, "xray track", {
        "names": text_array(["b"]), "cameras": text_array(["x1", "x2"]), "pixels": np.ones((4, 2, 1, 2)),
        "covariance": np.ones((4, 2, 1, 2, 2)), "status": np.ones((4, 2, 1), np.uint8), "sigma": np.ones((2, 1)),
        "contrast": np.ones((2, 1)),
    })  # fmt: skip


def _maps(path: Path) -> None:
    with create_results(path, stage="xray undistort", parameters={}) as file:
        group = file.create_group("x1")
        group.attrs["size"], group.attrs["step"] = (64, 64), 8.0
        group["to_ideal"], group["to_raw"], group["known"] = (
            np.ones((17, 17, 2)),
            np.ones((17, 17, 2)),
            np.ones((17, 17), bool),
        )


def _truth(path: Path) -> None:
    joints = NamedPoints(("a", "b"), np.ones((4, 2, 3)))
    none = NamedPoints.none(4)
    save_truth(path, Truth(100.0, joints, np.tile([1.0, 0, 0, 0], (4, 2, 1)), np.ones((4, 3)), joints,
                           np.ones((4, 5, 3), np.float32), np.array([[0, 1, 2]]), none, none, (), np.zeros((4, 0), bool)))  # fmt: skip


def _own() -> None:
    results = ("open_results", "read_hull", "read_hulls", "mask_cameras", "first_frame", "read_masks", "read_agreement",
               "read_flags", "load_results", "load_estimate", "cage_estimate", "digest_of_path", "summary")  # fmt: skip
    READERS["recording"] = Reader("rec", _recording, load_recording, ("load_recording", "open_recording"))
    READERS["results"] = Reader("rec", _results, _read_results, results)
    READERS["silhouettes"] = Reader(
        "rec",
        _results,
        lambda p: (mask_cameras(p / "results" / "silhouettes.h5"), read_agreement(p / "results" / "silhouettes.h5")),
    )
    READERS["bead tracks"] = Reader("a.h5", _tracks, load_tracks, ("load_tracks",))
    READERS["distortion maps"] = Reader("a.h5", _maps, load_maps, ("load_maps",))
    READERS["truth"] = Reader("truth.h5", _truth, load_truth, ("load_truth",))


for _register in (_rigs, _motions, _meshes, _images, _tables, _subjects, _spaces, _own):
    _register()
