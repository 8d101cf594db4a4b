"""Parts of a track that was never computed: quads that move evenly, or lie beside where they should be."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from calibration.foundation.result_files import create_results, text_array

FRAMES, QUADS, VIEWS, UNIT = 20, 3, 4, 1.0


def truth() -> np.ndarray:
    """Return centres (T, Q, 3) that move 3 mm a frame."""
    return np.arange(FRAMES)[:, None, None] * 3.0 + np.arange(QUADS)[None, :, None] * 50.0 + np.zeros(3)


def part(
    path: Path,
    first: int,
    last: int,
    *,
    shift: float = 0.0,
    overlap: float = 0.9,
    lead: float = 0.1,
    empty: float = 0.0,
) -> Path:
    """Write a part of frames ``first`` to ``last`` - 1 whose quads are ``shift`` mm beside the truth.

    ``empty``: share of its limb that stands in empty air.
    """
    count = last - first
    with create_results(path, stage="track", parameters={}) as file:
        for key, value in (
            ("subject", "ball"),
            ("body", "ball"),
            ("rate_hz", 10.0),
            ("start_frame", 1),
        ):
            file.attrs[key] = value
        file["quad_names"] = text_array(list("abc"))
        for name in ("marker_names", "cage_joint_names", "reasons", "limb_names", "limb_joint_names"):
            file[name] = text_array(["a"])
        for name in ("limb_joints", "marker_limbs", "cage_joint_limbs"):
            file[name] = np.zeros((1, 1), np.uint8)
        for name, value in {"views": 4.0, "lead": 1.0, "outside": empty, "bad": empty}.items():
            file[f"limb_{name}"] = np.full((count, 1), value, np.float32)
        for name in ("missing", "residual", "weak"):
            file[f"limb_{name}"] = np.zeros((count, 1), np.float32)
        file["limb_trust"], file["limb_reason"] = np.zeros((count, 1), np.uint8), np.zeros((count, 1), np.uint8)
        file["faces"] = np.zeros((1, 3), np.int32)
        file["centres"] = truth()[first:last] + shift
        file["rotations"] = np.broadcast_to(np.eye(3), (count, QUADS, 3, 3))
        file["latent"] = np.zeros((count, 2))
        file["overlap"] = np.full((count, VIEWS), overlap)
        file["agreement"] = np.full(count, overlap)
        file["departure"] = np.ones(count)
        file["lead"] = np.full(count, lead)
        file["trust"], file["reason"] = np.zeros(count, np.uint8), np.zeros(count, np.uint8)
        file.create_dataset("vertices", data=np.full((count, 5, 3), shift, np.float32), chunks=(1, 5, 3))
    return path
