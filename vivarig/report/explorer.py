"""What the page can be asked by hand: curves, the body in space, images; packed small, for `assets/explorer.js`."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.result_files import open_results
from capture.recordings.recording import Recording
from vivarig.report.motion import MotionCurves
from vivarig.report.page import Page
from vivarig.report.pictures import contact_sheet, data_uri, expect_images
from vivarig.report.surface_sampling import coarse_surface
from vivarig.results.findings import Findings
from vivarig.results.shown_frames import strip_frames, strip_views
from vivarig.results.stretches import Stretch
from vivarig.results.vertex_limbs import nearest_markers

__all__ = ["add_explorer", "explorer_plot", "explorer_points", "show_explorer"]

_POINTS = 4_000
"""Values of a curve at most; of longer ones the least and the greatest of each short stretch are kept."""
_POSES = 3_000
"""Skeletons at most."""
_VERTICES = 700
_SURFACE_BYTES = 900_000
_WORST = 8
"""Images of the gravest stretches in the strip, at most."""
_STEPS = 65_534
"""Places are whole numbers of two bytes within the box that the body moves in; the last one means missing."""


_STAGE = """
<div class="stage"><div><canvas id="space" role="img" aria-label="the body in space"></canvas>
<label><input type="checkbox" id="skin" checked> surface</label>
<label><input type="checkbox" id="bones" checked> skeleton</label></div>
<div class="look"><img id="look" alt=""><span>The nearest image of the strip.</span></div></div>
<div class="time"><button id="play">Play</button><input type="range" id="frame" min="0" value="0" aria-label="frame">
<output id="said"></output><button id="whole" hidden>Whole recording</button></div>
"""


def add_explorer(page: Page, findings: Findings, curves: MotionCurves | None, stretches: Sequence[Stretch]) -> None:
    """Add plots, body and images that share one frame; without scripts, the strip of images alone."""
    show_explorer(
        page, findings.recording, findings.frames, _strip(findings, stretches), _plots(findings, curves),
        _body(findings), _surface(findings), _stretches_of(findings),
    )  # fmt: skip


def show_explorer(
    page: Page,
    recording: Recording,
    frames: int,
    strip: Sequence[tuple[int, str]],
    plots: Sequence[dict[str, Any]],
    body: dict[str, Any] | None,
    surface: dict[str, Any] | None = None,
    trust: str = "",
) -> None:
    """Add the explorer of so many frames: images by frame, plots, points in space, their surface, trust of frames."""
    data: dict[str, Any] = {
        "frames": frames,
        "rate": recording.rate_hz,
        "trust": trust,
        "plots": list(plots),
        "strip": [{"frame": frame} for frame, _ in strip],  # the pictures themselves stand in the page
        "body": body,
        "surface": surface,
    }
    # "<" never stands in a page's script as it is: "</script>" in a name would end it
    page.data = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    page.heading("Look for yourself")
    page.markup(f'<section id="explorer">{_STAGE}</section>')
    pictures = "".join(
        f'<figure><img src="{uri}" alt="frame {frame}"><figcaption>{frame}</figcaption></figure>'
        for frame, uri in strip
    )
    page.markup(f'<div id="strip">{pictures}</div><div id="plots"></div>')
    page.markup(
        '<p class="note"><span class="scripted">Move over a plot to see that moment, drag to zoom, double-click for '
        "the whole; turn the body with the mouse; arrow keys step. Yellow is doubtful, red is lost.</span></p>"
    )
    if frames > _POINTS:
        page.note(
            "A long recording, of which this page holds a part: curves are the least and the greatest of each "
            f"{frames / (_POINTS // 2):.0f} frames, the body is shown in {min(frames, _POSES)} of {frames} of them. "
            "The files beside this page hold every frame."
        )


def _packed(values: Floats | Ints, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode("ascii")


def _stretches_of(findings: Findings) -> str:
    """Trust of each frame, a byte each, of at most `_POINTS` stretches the worst of each."""
    if findings.track is None:
        return ""
    trust = findings.track.trust
    edges = np.linspace(0, len(trust), min(len(trust), _POINTS) + 1).astype(int)[:-1]
    return _packed(np.maximum.reduceat(trust, edges), "u1")


def thinned(values: Floats) -> tuple[Floats, Floats]:
    """Return frames and values of a curve (T,), of a long one the least and the greatest of short stretches."""
    count = len(values)
    if count <= _POINTS:
        return np.arange(count, dtype=float), values
    edges = np.linspace(0, count, _POINTS // 2 + 1).astype(int)
    low, high = (reduce.reduceat(values, edges[:-1]) for reduce in (np.fmin, np.fmax))
    middle = (edges[:-1] + edges[1:]) // 2
    return np.stack([edges[:-1], middle], axis=1).ravel().astype(float), np.stack([low, high], axis=1).ravel()


def explorer_plot(
    title: str, unit: str, curves: Mapping[str, Floats], *, one_at_a_time: bool = False
) -> dict[str, Any]:
    packed = {name: thinned(values) for name, values in curves.items()}
    frames = next(iter(packed.values()))[0]
    return {
        "title": title,
        "unit": unit,
        "x": _packed(frames, "<f4"),
        "names": list(packed),
        "y": [_packed(values, "<f4") for _, values in packed.values()],
        "choose": one_at_a_time,
    }


def _plots(findings: Findings, curves: MotionCurves | None) -> list[dict[str, Any]]:
    plots = []
    if findings.track is not None:
        overlap = {"all cameras": findings.track.agreement}
        if findings.track.overlap is not None and findings.silhouettes is not None:
            overlap |= dict(zip(findings.silhouettes.names, findings.track.overlap.T, strict=False))
        plots.append(explorer_plot("Overlap of the tracked surface with the silhouettes", "IoU", overlap))
    if curves is not None:
        plots.append(explorer_plot("1 sigma of the joints, median", "mm", {"sigma": curves.sigma}))
        if curves.angles:
            degrees = {name.replace("_", " "): np.degrees(values) for name, values in curves.angles.items()}
            plots.append(explorer_plot("Joint angles, 180 is straight", "degrees", degrees, one_at_a_time=True))
    if findings.silhouettes is not None and np.isfinite(findings.silhouettes.agreement).any():
        agreement = findings.silhouettes.agreement.astype(float).T
        between = dict(zip(findings.silhouettes.names, agreement, strict=True))
        plots.append(explorer_plot("Agreement of the silhouettes with images and other views", "IoU", between))
    if findings.hull is not None:
        plots.append(explorer_plot("Volume of the visual hull", "ml", {"volume": findings.hull.volume / 1000}))
    return plots


def _chosen(count: int, most: int) -> Ints:
    return np.unique(np.linspace(0, count - 1, min(count, max(most, 1))).astype(np.int64))


def _places(points: Floats) -> dict[str, Any]:
    """Pack places (n, P, 3): whole steps in their box, missing ones the highest number."""
    known = points[np.isfinite(points).all(axis=2)]
    low, high = (known.min(axis=0), known.max(axis=0)) if len(known) else (np.zeros(3), np.ones(3))
    step = max(float((high - low).max()), 1e-6) / _STEPS
    whole = np.where(np.isfinite(points), np.round((points - low) / step), _STEPS + 1)
    return {"low": low.tolist(), "step": step, "at": _packed(whole, "<u2")}


def _body(findings: Findings) -> dict[str, Any] | None:
    skeleton = findings.skeleton
    if skeleton is None:
        return None
    return explorer_points(skeleton.positions, skeleton.joint_names, skeleton.parents, skeleton.joint_trust)


def explorer_points(positions: Floats, names: Sequence[str], parents: Ints, trust: Ints) -> dict[str, Any]:
    """Pack named points (T, P, 3) in space with the point that each hangs on (-1: none) and their trust (T, P)."""
    frames = _chosen(len(positions), _POSES)
    return {
        "frames": _packed(frames, "<i4"),
        "names": [name.replace("_", " ") for name in names],
        "parents": parents.tolist(),
        "trust": _packed(trust[frames], "u1"),
        **_places(np.asarray(positions[frames])),
    }


def _surface(findings: Findings) -> dict[str, Any] | None:
    track = findings.track
    if track is None:
        return None
    tracked = np.flatnonzero(track.tracked)
    if not len(tracked):
        return None
    middle = int(tracked[len(tracked) // 2])
    shape = track.vertices_at(middle)
    kept, faces = coarse_surface(shape, track.faces, _VERTICES)
    frames = _chosen(track.frames, _SURFACE_BYTES // (6 * len(kept)))
    with open_results(track.path, stage="track") as file:
        points = np.stack([file["vertices"][frame][kept] for frame in frames.tolist()])
    limbs, trust = np.zeros(len(kept), np.int64), track.trust[:, None]
    if track.limb_trust is not None and track.marker_limbs is not None:
        limbs = track.marker_limbs[nearest_markers(track, kept)]
        trust = track.limb_trust
    return {
        "frames": _packed(frames, "<i4"), "faces": _packed(faces, "<u2"), "limbs": _packed(limbs, "u1"),
        "trust": _packed(trust[frames], "u1"), **_places(points),
    }  # fmt: skip


def _strip(findings: Findings, stretches: Sequence[Stretch]) -> list[tuple[int, str]]:
    """Return pictures of frames all over the recording, and of the gravest stretches, in order."""
    recording = findings.recording
    if not any(footage.has_images for footage in recording.footage):
        return []
    names = findings.silhouettes.names if findings.silhouettes is not None else [f.name for f in recording.footage]
    views, what = strip_views(names), ("template", "skeleton")
    frames = sorted({*strip_frames(findings.frames), *(one.worst for one in stretches[:_WORST])})
    expect_images(findings, views, frames)
    return [(frame, data_uri(contact_sheet(findings, views, [frame], what, near=True), 72)) for frame in frames]
