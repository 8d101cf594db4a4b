"""Synthetic board sessions for the calibration benchmark: how often the standard deviations cover the truth."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np

from calibration.boards.board import Board
from calibration.bundle.adjustment import Bundle, adjust
from calibration.bundle.parameters import Freedom
from calibration.cameras.camera_row import DISTORTION, FOCAL, FX, K1, K3, PRINCIPAL_POINT, ROTATION, SKEW, TRANSLATION
from calibration.geometry.transforms import fit_rigid, rotation_from_vector, vector_from_rotation

__all__ = ["studio_coverage"]

BOARD = Board("charuco", 16, 12, 50.0, 37.5, "DICT_4X4_1000")
FREEDOM = Freedom(2, True, "brown4")


def _scenes() -> Any:
    """The scenes of the tests, loaded from their file: tests are not a package."""
    path = Path(__file__).resolve().parents[2] / "tests" / "helpers" / "board_scenes.py"
    spec = importlib.util.spec_from_file_location("board_scenes", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["board_scenes"] = module
    spec.loader.exec_module(module)
    return module


def studio_coverage(seeds: int, frames: int = 200) -> dict[str, float]:
    """Solve ``seeds`` rigs of 8 cameras (0.2 px noise, 2 % wrong corners) from a disturbed start."""
    scenes = _scenes()
    inside, focal, centre_px, centre = [], [], [], []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        rig = scenes.ring_rig(8, rng, radius=1100.0)
        poses = scenes.waved_board(frames, rng, BOARD)
        table = scenes.disturb(scenes.film(rig, poses, BOARD), rng)
        targets = table.targets()
        points, index = table.model_points()
        first = rig[0].camera_from_world
        rows = rig.packed()
        for c in range(8):
            pose = rig[c].camera_from_world @ first.inverse()
            if c:
                pose = type(pose)(
                    rotation_from_vector(rng.normal(0, 0.01, 3)) @ pose.rotation,
                    pose.translation + rng.normal(0, 10, 3),
                )
            rows[c, ROTATION], rows[c, TRANSLATION] = pose.rotation.ravel(), pose.translation
            rows[c, FOCAL] *= 1 + rng.normal(0, 0.02)
            rows[c, PRINCIPAL_POINT] = 639.5, 511.5
            rows[c, DISTORTION] = 0.0
        placed = [first @ poses[f] for f in targets.frame]
        solution = adjust(
            Bundle(
                rows,
                np.stack([p.rotation for p in placed]),
                np.stack([p.translation for p in placed]),
                points,
                table.camera,
                targets.of_row,
                index,
                table.pixels,
            ),
            (FREEDOM,) * 8,
            start_px=5.0,
        )
        z, f, c_px, found = [], [], [], []
        for c in range(8):
            true, row, sd = rig[c], solution.bundle.rows[c], solution.camera_sd(c)
            k = true.lens.intrinsics
            truth = np.array([k[0, 0], k[1, 1], k[0, 2], k[1, 2], *true.lens.distortion[:4]])
            got = np.concatenate([row[FX:SKEW], row[K1:K3]])
            z += ((got - truth) / sd[[0, 1, 2, 3, 5, 6, 7, 8]]).tolist()
            f.append(np.abs(got[:2] / truth[:2] - 1).max())
            c_px.append(np.abs(got[2:4] - truth[2:4]).max())
            rotation, t = row[ROTATION].reshape(3, 3), row[TRANSLATION]
            found.append(-rotation.T @ t)
            if c:
                relative = true.camera_from_world @ first.inverse()
                z += (vector_from_rotation(rotation @ relative.rotation.T) / sd[19:22]).tolist()
                off = found[-1] - first.apply(true.centre)
                z += (off / np.sqrt(np.diag(solution.centre_covariance(c)))).tolist()
        truth = np.stack([camera.centre for camera in rig])
        fit = fit_rigid(np.array(found), truth)
        size = np.linalg.norm(truth[:, None] - truth[None], axis=-1).max()
        inside.append(float((np.abs(z) < 1.96).mean()))
        focal.append(max(f))
        centre_px.append(max(c_px))
        centre.append(float(np.linalg.norm(fit.apply(np.array(found)) - truth, axis=1).max() / size))
        print(
            f"  studio {seed}: 95 % intervals hold {inside[-1]:.1%}; worst focal {100 * focal[-1]:.4f} %, principal "
            f"point {centre_px[-1]:.3f} px, centre {100 * centre[-1]:.4f} % of the rig",
            flush=True,
        )
    return {
        "seeds": seeds,
        "interval_share": float(np.mean(inside)),
        "worst_focal_percent": 100 * max(focal),
        "worst_principal_point_px": max(centre_px),
        "worst_centre_percent": 100 * max(centre),
    }
