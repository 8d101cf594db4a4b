"""Inverse kinematics against OpenSim: same model, same markers, same weights, same machine, one core.

    python -m benchmarks.ik

Gait2354 of the shared data (23 coordinates, 31 markers, 151 frames of walking): both solve the same weighted least
squares problem frame by frame from the frame before. The mouse's speed is measured on virtual markers of a studio
actor that differs from the body fitted (soft tissue, other lengths), 0.3 mm noise.
"""

from __future__ import annotations

import json
import os
import resource
import time
from pathlib import Path

import numpy as np

from benchmarks.measuring.reference_kernel import reference_kernel_s
from benchmarks.peers.running import run_peer
from skeleton.actors.actor import sample_actor
from skeleton.bodies import load_body
from skeleton.inverse_kinematics.scaling import scale_body
from skeleton.inverse_kinematics.spring_ik import Springs, fit_skeleton
from skeleton.model_files.osim import IkSetup, OsimModel, read_ik_setup, read_osim
from skeleton.motion_files import read_trc
from skeleton.motions import make_motion

ROOT = Path(__file__).resolve().parent.parent

PEER = """
import time
import opensim
opensim.Logger.setLevelString("Off")
model = opensim.Model(str(given["model"]))
state = model.initSystem()
names = [str(name) for name in given["names"]]
table = opensim.TimeSeriesTableVec3()
table.setColumnLabels(names)
for t, frame in zip(given["times"], given["points"]):
    row = opensim.RowVectorVec3(len(names))
    for i, p in enumerate(frame):
        row[i] = opensim.Vec3(*(float(v) / 1000.0 for v in p))
    table.appendRow(float(t), row)
weights = opensim.SetMarkerWeights()
for name, weight in zip(names, given["weights"]):
    weights.cloneAndAppend(opensim.MarkerWeight(name, float(weight)))
reference = opensim.MarkersReference(table, weights)
tasks = opensim.SimTKArrayCoordinateReference()
for name, value, weight in zip(given["task_names"], given["task_values"], given["task_weights"]):
    task = opensim.CoordinateReference(str(name), opensim.Constant(float(value)))
    task.setWeight(float(weight))
    tasks.push_back(task)
solver = opensim.InverseKinematicsSolver(model, reference, tasks, float("inf"))
solver.setAccuracy(1e-5)
state.setTime(float(given["times"][0]))
solver.assemble(state)
errors = []
order = None
coordinates = []
spent = 0.0
for t in given["times"]:
    begin = time.process_time()
    state.setTime(float(t))
    solver.track(state)
    spent += time.process_time() - begin
    if order is None:
        order = [solver.getMarkerNameForIndex(i) for i in range(solver.getNumMarkersInUse())]
    model.realizePosition(state)
    errors.append([solver.computeCurrentMarkerError(name) for name in order])
    coordinates.append([model.getCoordinateSet().get(str(name)).getValue(state) for name in given["coordinates"]])
out["seconds"] = spent
out["order"] = np.array(order)
out["errors"] = 1000.0 * np.array(errors)
out["coordinates"] = np.array(coordinates)
"""


def gait_folder() -> Path:
    """Return the folder of the OpenSim gait sample."""
    data = Path(os.environ.get("VIVARIG_DATA", ROOT.parent / "shared" / "data"))
    return data / "opensim_gait" / "Pipelines" / "Gait2354_Simbody"


def osim_springs(model: OsimModel, setup: IkSetup, names: list[str]) -> tuple[OsimModel, Springs]:
    """Return model and springs that state OpenSim's own weighted least squares problem.

    A marker of weight 1 has a standard deviation of 10 mm; a coordinate task of weight w then has 0.01/sqrt(w) rad.
    """
    weights = np.array([setup.marker_weights[name] for name in names])
    markers = model.markers.subset(names).with_sd(10.0 / np.sqrt(weights))
    rest, spread = model.body.rest.copy(), np.full(model.body.dimension, np.inf)
    for name, (value, weight) in setup.coordinate_tasks.items():
        column = model.body.coordinate_names.index(name)
        rest[column], spread[column] = value, 0.01 / np.sqrt(weight)
    return OsimModel(model.body, markers, model.masses_kg), Springs(
        cutoff=np.inf, rest=rest, rest_sd=spread, memory=False, tolerance=1e-7
    )


def against_opensim() -> dict[str, float]:
    """Run both on the gait sample."""
    folder = gait_folder()
    path = folder / "OutputReference" / "subject01_simbody.osim"
    setup = read_ik_setup(folder / "subject01_Setup_IK.xml")
    trc = read_trc(folder / "subject01_walk1.trc", up="y")
    read = read_osim(path)
    names = [name for name in read.markers.names if name in setup.marker_weights and name in trc.names]
    model, springs = osim_springs(read, setup, names)
    points = trc.subset(names).positions
    weights = np.array([setup.marker_weights[name] for name in names])
    fit = fit_skeleton(model.body, names, points, marker_set=model.markers, springs=springs)  # compiles
    seconds = np.inf
    for _ in range(3):
        start = time.process_time()
        fit = fit_skeleton(model.body, names, points, marker_set=model.markers, springs=springs)
        seconds = min(seconds, time.process_time() - start)
    tasks = setup.coordinate_tasks
    peer = run_peer(
        "opensim",
        PEER,
        {
            "model": np.array(str(path)),
            "names": np.array(names),
            "times": trc.times(),
            "points": points,
            "weights": weights,
            "task_names": np.array(list(tasks)),
            "task_values": np.array([value for value, _ in tasks.values()]),
            "task_weights": np.array([weight for _, weight in tasks.values()]),
            "coordinates": np.array(model.body.coordinate_names),
        },
    )
    order = [list(fit.marker_names).index(str(name)) for name in peer["order"]]
    share = np.array([setup.marker_weights[str(name)] for name in peer["order"]])

    def weighted(errors: np.ndarray) -> float:
        return float(np.sqrt((share * errors**2).sum(axis=1).mean() / share.sum()))

    turned = ~model.body.is_length
    apart = np.degrees(fit.coordinates[:, turned] - peer["coordinates"][:, turned])
    return {
        "frames": len(points),
        "fps_gait2354": len(points) / seconds,
        "fps_gait2354_opensim": len(points) / float(peer["seconds"]),
        "speed_vs_opensim": float(peer["seconds"]) / seconds,
        "rms_mm": weighted(fit.residuals[:, order]),
        "rms_mm_opensim": weighted(peer["errors"]),
        "plain_rms_mm": fit.rms_mm,
        "plain_rms_mm_opensim": float(np.sqrt((peer["errors"] ** 2).mean())),
        "angles_apart_rms_deg": float(np.sqrt((apart**2).mean())),
    }


def mouse_speed(frames: int = 600) -> dict[str, float]:
    """Fit the mouse to the markers of a studio actor that explores."""
    actor = sample_actor("mouse", 11)
    motion = make_motion(actor.skeleton, "explore", frames=frames, rate_hz=100.0, rng=np.random.default_rng(5))
    pose = actor.skeleton.forward(motion.coordinates)
    names, vertices = actor.virtual_markers
    skin = actor.skin(pose, motion.time_s)[:, vertices]
    points = skin + np.random.default_rng(6).normal(0.0, 0.3, skin.shape)
    noise = np.full(len(names), 0.3)
    body = load_body("mouse")
    scaled = scale_body(body, names, points, noise)
    seconds = np.inf
    for _ in range(3):
        start = time.process_time()
        fit = fit_skeleton(scaled.skeleton, names, points, noise, marker_set=scaled.marker_set)
        seconds = min(seconds, time.process_time() - start)
    truth = actor.skeleton.landmarks(pose)[1]
    found = scaled.skeleton.landmarks(scaled.skeleton.forward(fit.coordinates))[1]
    return {
        "mouse_fps": len(points) / seconds,
        "mouse_joint_error_mm": float(np.linalg.norm(found - truth, axis=2).mean()),
        "mouse_iterations": float(fit.iterations.mean()),
    }


def main() -> None:
    """Measure and print."""
    numbers: dict[str, float] = {**against_opensim(), **mouse_speed()}
    numbers["peak_rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    numbers["reference_kernel_s"] = reference_kernel_s()
    print("                      ours     OpenSim")
    print(f"frames per second  {numbers['fps_gait2354']:9.0f} {numbers['fps_gait2354_opensim']:9.0f}")
    print(f"weighted rms, mm   {numbers['rms_mm']:9.4f} {numbers['rms_mm_opensim']:9.4f}")
    print(f"plain rms, mm      {numbers['plain_rms_mm']:9.4f} {numbers['plain_rms_mm_opensim']:9.4f}")
    print(f"mouse: {numbers['mouse_fps']:.0f} frames per second, joint error {numbers['mouse_joint_error_mm']:.2f} mm")
    print(json.dumps({key: float(f"{value:.6g}") for key, value in numbers.items()}))


if __name__ == "__main__":
    main()
