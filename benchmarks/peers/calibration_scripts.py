"""What the other programs do with the detections of a board: scripts for `benchmarks.peers.running.run_peer`."""

from __future__ import annotations

__all__ = ["SCRIPTS"]

ANIPOSELIB = """
import time, contextlib, io
from aniposelib.boards import CharucoBoard
from aniposelib.cameras import CameraGroup
columns, rows, side, marker = given["board"]
board = CharucoBoard(int(columns), int(rows), float(side), float(marker), marker_bits=4, dict_size=1000)
count = int(given["camera"].max()) + 1
group = CameraGroup.from_names([str(c) for c in range(count)])
tables = []
for c, cam in enumerate(group.cameras):
    cam.set_size(tuple(int(v) for v in given["sizes"][c]))
    mine, table = given["camera"] == c, []
    for f in np.unique(given["frame"][mine]):
        here = mine & (given["frame"] == f)
        table.append({"framenum": (0, int(f)), "corners": given["pixels"][here].reshape(-1, 1, 2).astype("float32"),
                      "ids": given["corner"][here].reshape(-1, 1).astype("int32")})
    tables.append(board.fill_points_rows(table) if hasattr(board, "fill_points_rows") else table)
np.random.seed(0)
start, cpu = time.perf_counter(), time.process_time()
with contextlib.redirect_stdout(io.StringIO()):
    group.calibrate_rows(tables, board, verbose=False)
out["seconds"], out["cpu"] = time.perf_counter() - start, time.process_time() - cpu
out["K"] = np.stack([cam.get_camera_matrix() for cam in group.cameras])
out["dist"] = np.stack([np.resize(cam.get_distortions(), 5) for cam in group.cameras])
out["rvec"] = np.stack([cam.get_rotation() for cam in group.cameras])
out["tvec"] = np.stack([cam.get_translation() for cam in group.cameras])
"""

OPENCV = """
import time
import cv2
camera, frame, corner = (given[key] for key in ("camera", "frame", "corner"))
frames, count = np.unique(frame), int(camera.max()) + 1
most = int(corner.max()) + 1
model = np.zeros((most, 3), "float32")
model[corner] = given["model"] / 1000  # in metres: it divides by the square of the board's size, and refuses mm
row = np.searchsorted(frames, frame)
places = np.full((count, len(frames), most, 2), -1.0, "float32")
places[camera, row, corner] = given["pixels"]
mask = ((places[..., 0] >= 0).sum(axis=2) >= 6).astype("uint8")  # fewer give no pose of a plane
kept = mask.any(axis=0)
places, mask = places[:, kept], np.ascontiguousarray(mask[:, kept])
objects = [model] * int(kept.sum())
pictures = [list(one) for one in places]
sizes = [tuple(int(v) for v in size) for size in given["sizes"]]
models = np.full(count, cv2.CALIB_MODEL_PINHOLE, "uint8")
flags = np.full(count, cv2.CALIB_FIX_K3, "int32")
start, cpu = time.perf_counter(), time.process_time()
rms, K, dist, R, t = cv2.calibrateMultiview(
    objects, pictures, sizes, mask, models, None, None, None, None, flagsForIntrinsics=flags
)
out["seconds"], out["cpu"], out["rms"] = time.perf_counter() - start, time.process_time() - cpu, rms
out["K"] = np.stack(K)
out["dist"] = np.stack([np.ravel(one)[:5] for one in dist])
out["rvec"] = np.stack([np.ravel(one if np.size(one) == 3 else cv2.Rodrigues(one)[0]) for one in R])
out["tvec"] = np.stack([1000 * np.ravel(one) for one in t])
"""

CALISCOPE = """
import time
import cv2, pandas as pd
from caliscope.cameras.camera_array import CameraArray, CameraData
from caliscope.core.calibrate_extrinsics import calibrate_extrinsics
from caliscope.core.calibrate_intrinsics import run_intrinsic_calibration
from caliscope.core.charuco import Charuco
from caliscope.core.constraints import ConstraintSet
from caliscope.core.point_data import ImagePoints
columns, rows, side, marker = given["board"]
charuco = Charuco.from_squares(int(columns), int(rows), float(side) / 10, dictionary="DICT_4X4_1000",
                               aruco_scale=float(marker / side))
table = pd.DataFrame({"sync_index": given["frame"], "cam_id": given["camera"], "frame_index": given["frame"],
    "object_id": 0, "keypoint_id": given["corner"], "img_loc_x": given["pixels"][:, 0],
    "img_loc_y": given["pixels"][:, 1], "obj_loc_x": given["model"][:, 0] / 1000,
    "obj_loc_y": given["model"][:, 1] / 1000, "obj_loc_z": 0.0})
points = ImagePoints(table)
count = int(given["camera"].max()) + 1
out["cpu"] = out["cpu_poses"] = np.inf
for _ in range(3):
    start, cpu = time.perf_counter(), time.process_time()
    cameras = {}
    for c in range(count):
        bare = CameraData(cam_id=c, size=tuple(int(v) for v in given["sizes"][c]))
        cameras[c] = run_intrinsic_calibration(bare, ImagePoints(table[table.cam_id == c].copy())).camera
    out["K0"] = np.stack([cameras[c].matrix for c in range(count)])
    out["dist0"] = np.stack([np.resize(np.ravel(cameras[c].distortions), 5) for c in range(count)])
    poses = time.process_time()
    run = calibrate_extrinsics(points, CameraArray(cameras), ConstraintSet.from_charuco(charuco))
    if time.process_time() - cpu < out["cpu"]:
        out["seconds"], out["cpu"] = time.perf_counter() - start, time.process_time() - cpu
    out["cpu_poses"] = min(out["cpu_poses"], time.process_time() - poses)
solved = [run.capture_volume.camera_array.cameras[c] for c in range(count)]
out["K"] = np.stack([cam.matrix for cam in solved])
out["dist"] = np.stack([np.resize(np.ravel(cam.distortions), 5) for cam in solved])
out["rvec"] = np.stack([cv2.Rodrigues(np.asarray(cam.rotation))[0].ravel() for cam in solved])
out["tvec"] = np.stack([np.ravel(cam.translation) * 1000 for cam in solved])
"""

COLMAP = """
import os, time
import cv2, pycolmap
camera, frame, corner, pixels = (given[key] for key in ("camera", "frame", "corner", "pixels"))
frames, count = np.unique(frame), int(camera.max()) + 1
sizes = [tuple(int(v) for v in size) for size in given["sizes"]]
model = np.zeros((int(corner.max()) + 1, 3))
model[corner] = given["model"]
start, cpu = time.perf_counter(), time.process_time()
# COLMAP has no start from a board: lenses of each camera alone, and the poses of the views, are OpenCV's.
views, lenses = {}, []
for c in range(count):
    mine = [(f, np.flatnonzero((camera == c) & (frame == f))) for f in frames]
    mine = [(f, rows) for f, rows in mine if len(rows) >= 6]
    few = mine[:: max(1, len(mine) // 40)]
    _, K, dist, _, _ = cv2.calibrateCamera([model[corner[rows]].astype("float32") for _, rows in few],
        [pixels[rows].astype("float32") for _, rows in few], sizes[c], None, None, flags=cv2.CALIB_FIX_K3)
    lenses.append((K, np.ravel(dist)[:4]))
    for f, rows in mine:
        good, rvec, tvec = cv2.solvePnP(model[corner[rows]], pixels[rows], K, dist)
        if good:
            views[c, f] = rows, np.vstack([np.hstack([cv2.Rodrigues(rvec)[0], tvec]), [0, 0, 0, 1]])
# From camera to camera over the pair that shares most frames; of their relative poses the one in the middle.
place = {0: np.eye(4)}
while len(place) < count:
    shared = {(a, b): [f for f in frames if (a, f) in views and (b, f) in views] for a in place for b in range(count)}
    a, b = max((pair for pair in shared if pair[1] not in place), key=lambda pair: len(shared[pair]))
    between = np.stack([views[b, f][1] @ np.linalg.inv(views[a, f][1]) for f in shared[a, b]])
    off = np.linalg.norm(between[:, None, :3, 3] - between[None, :, :3, 3], axis=2).sum(axis=1)
    place[b] = between[off.argmin()] @ place[a]
# The board is the world: its corners are constant, every instant is a pose of the rig of cameras.
whole, rig = pycolmap.Reconstruction(), pycolmap.Rig(rig_id=1)
rigid = lambda matrix: pycolmap.Rigid3d(np.ascontiguousarray(matrix[:3]))
for c in range(count):
    K, dist = lenses[c]
    whole.add_camera(pycolmap.Camera(model="OPENCV", width=sizes[c][0], height=sizes[c][1], camera_id=c + 1,
        params=[K[0, 0], K[1, 1], K[0, 2], K[1, 2], *dist]))
    sensor = whole.camera(c + 1).sensor_id
    rig.add_ref_sensor(sensor) if c == 0 else rig.add_sensor(sensor, rigid(place[c]))
whole.add_rig(rig)
elements = [[] for _ in model]
config, number = pycolmap.BundleAdjustmentConfig(), 0
for at, f in enumerate(frames):
    seen = [c for c in range(count) if (c, f) in views]
    if not seen:
        continue
    best = max(seen, key=lambda c: len(views[c, f][0]))
    pose = pycolmap.Frame(frame_id=at + 1, rig_id=1)
    pictures = []
    for c in seen:
        number += 1
        rows = views[c, f][0]
        picture = pycolmap.Image(name=f"{c}_{f}", keypoints=1.0 * pixels[rows], camera_id=c + 1, image_id=number)
        picture.frame_id = at + 1
        pose.add_data_id(picture.data_id)
        pictures.append(picture)
        for k, row in enumerate(rows):
            elements[corner[row]].append(pycolmap.TrackElement(number, k))
    pose.rig_from_world = rigid(np.linalg.inv(place[best]) @ views[best, f][1])
    whole.add_frame(pose)
    for picture in pictures:
        whole.add_image(picture)
        config.add_image(picture.image_id)
    whole.register_frame(at + 1)
for point, track in zip(model, elements):
    if track:
        config.add_constant_point(whole.add_point3D(point, pycolmap.Track(track)))
options = pycolmap.BundleAdjustmentOptions(refine_principal_point=True, print_summary=False)
options.ceres.loss_function_type = pycolmap.LossFunctionType.CAUCHY
options.ceres.solver_options.num_threads = 1
summary = pycolmap.create_default_bundle_adjuster(options, config, whole).solve()
out["seconds"], out["cpu"] = time.perf_counter() - start, time.process_time() - cpu
solved = [whole.camera(c + 1) for c in range(count)]
stance = [np.eye(4)[:3] if c == 0 else whole.rig(1).sensor_from_rig(solved[c].sensor_id).matrix() for c in range(count)]
out["K"] = np.stack([one.calibration_matrix() for one in solved])
out["dist"] = np.stack([[*one.params[4:8], 0.0] for one in solved])
out["rvec"] = np.stack([cv2.Rodrigues(np.ascontiguousarray(one[:, :3]))[0].ravel() for one in stance])
out["tvec"] = np.stack([one[:, 3] for one in stance])
"""

SCRIPTS = {"aniposelib": ANIPOSELIB, "caliscope": CALISCOPE, "opencv": OPENCV, "colmap": COLMAP}
