"""A recording whose track is made, not tracked: markers of a mouse that sways, five frames lost."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from calibration.foundation.result_files import create_results, text_array
from skeleton.bodies import load_body
from skeleton.bodies.marker_sets import builtin_markers


def write_tracked_mouse(folder: Path) -> Path:
    """Write recording.toml and results/track.h5 of 40 frames; return the folder."""
    (folder / "results").mkdir(parents=True)
    (folder / "a.mp4").write_bytes(b"")
    (folder / "recording.toml").write_text(
        'name = "m"\nrate_hz = 100.0\nsubject = "mouse"\n[cameras.a]\nvideo = "a.mp4"\n'
    )
    body, markers = load_body("mouse"), builtin_markers("mouse")
    rng = np.random.default_rng(2)
    time = np.arange(40) / 100.0
    q = 0.08 * np.sin(2 * np.pi * (time[:, None] + rng.random(body.dimension)))
    q[:, :3] = 5.0 * time[:, None]
    q = body.clamp(q)
    segments = np.array([body.index(name) for name in markers.segments])
    points = body.forward(q).points(segments, markers.offsets) + rng.normal(0.0, 0.1, (40, len(segments), 3))
    points[20:25] = np.nan
    with create_results(folder / "results" / "track.h5", stage="track", parameters={}) as file:
        file["markers"] = points
        file["marker_sigma"] = np.where(np.isfinite(points[..., 0]), 0.1, np.nan)
        file["marker_names"] = text_array(list(markers.names))
        trust = np.where(np.isfinite(points[:, 0, 0]), 0, 2).astype(np.uint8)
        trust[5] = 1
        file["trust"] = trust
        carried = body.landmarks(body.forward(q))[1][:, [0, 2]]  # nose and neck
        file["cage_joints"] = carried + rng.normal(0.0, 0.1, carried.shape)
        file["cage_joint_names"] = text_array(["nose", "neck"])
        file["truth"] = body.landmarks(body.forward(q))[1]
    return folder
