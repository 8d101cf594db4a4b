"""What a calibration found, as numbers for machines and as one self-contained HTML page for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from calibration.accuracy import svg
from calibration.accuracy.measures import Coverage, HeldOut, Repeatability, coverage, rig_size_mm
from calibration.boards.co_visibility import CoVisibility
from calibration.boards.frame_choice import FrameChoice
from calibration.bundle.adjustment import OUTLIER_SIGMAS
from calibration.bundle.equations import CLOCK, SHIFT, TURN
from calibration.cameras.camera import LensCamera
from calibration.cameras.camera_row import FX, K1
from calibration.cameras.rig import Rig
from calibration.geometry.transforms import RigidTransform
from calibration.solving.rig_solver import RigSolution
from calibration.solving.world_frame import DistanceCheck

__all__ = ["CalibrationOutcome", "report_html", "report_lines", "report_numbers"]

#: Above these a calibration is called poor: held-out error; board distances as a share of a square, and the
#: repeatability of a camera's place as a share of the rig.
POOR_PX, POOR_SHARE = 1.0, 0.01


@dataclass(frozen=True, eq=False)
class CalibrationOutcome:
    """Everything a calibration produced.

    Attributes:
        title: name of the session.
        rig: the cameras in the world frame.
        solution: the solved bundle, in the frame of the first camera.
        world_from_rig: from that frame to the world.
        world: how the world frame was chosen, in words.
        graph: who saw the board with whom.
        held_out: errors on frames left out of a second solution; None where there were too few.
        repeatability: spread over halves of the frames; None likewise.
        choice: frames used.
        distances: known distances checked.
        notes: what a user should know.
        problems: what is wrong; any makes the quality insufficient.
    """

    title: str
    rig: Rig
    solution: RigSolution
    world_from_rig: RigidTransform
    world: str
    graph: CoVisibility
    held_out: HeldOut | None
    repeatability: Repeatability | None
    choice: FrameChoice
    distances: tuple[DistanceCheck, ...]
    notes: tuple[str, ...]
    problems: tuple[str, ...]

    def shortcomings(self) -> list[str]:
        """Return why the quality is insufficient, one phrase each; empty if it is not."""
        out = list(self.problems)
        if not self.solution.bundle.converged:
            out.append("the bundle adjustment did not converge")
        if self.held_out is not None:
            if self.held_out.rms_px > POOR_PX:
                out.append(f"held-out error {self.held_out.rms_px:.2f} px exceeds {POOR_PX:g} px")
            side = min(board.square_mm for board in self.solution.sightings.boards)
            if self.held_out.square_mm > POOR_SHARE * side:
                off = f"{self.held_out.square_mm:.2f} mm"
                out.append(f"board distances are off by {off}, more than {POOR_SHARE:.0%} of a square")
        if self.repeatability is not None:
            worst = int(np.argmax(self.repeatability.centre_mm))
            spread = float(self.repeatability.centre_mm[worst])
            if spread > POOR_SHARE * rig_size_mm(self.rig):
                out.append(
                    f"camera '{self.rig.names[worst]}' repeats only to {spread:.1f} mm: show it the board more widely"
                )
        for check in self.distances:
            if abs(check.error) > 0.01:
                out.append(
                    f"{check.first}-{check.second} measures {check.measured_mm:.1f} mm, known {check.known_mm:.1f} mm"
                )
        return out


def report_numbers(outcome: CalibrationOutcome) -> dict[str, Any]:
    """Return the numbers of a calibration for ``--json``; units in the keys."""
    solution, bundle = outcome.solution, outcome.solution.bundle
    cameras: dict[str, Any] = {}
    for c, camera in enumerate(outcome.rig):
        assert isinstance(camera, LensCamera)
        sd = bundle.camera_sd(c)
        k = camera.lens.intrinsics
        mine = bundle.bundle.camera == c
        entry: dict[str, Any] = {
            "lens": type(camera.lens).__name__,
            "model": solution.freedoms[c].distortion,
            "focal_px": [k[0, 0], k[1, 1]],
            "focal_sd_px": sd[:2],
            "principal_point_px": [k[0, 2], k[1, 2]],
            "principal_point_sd_px": sd[2:4],
            "distortion": camera.lens.distortion,
            "distortion_sd": sd[5 : 5 + len(camera.lens.distortion)],
            "centre_mm": camera.centre,
            "centre_sd_mm": np.sqrt(np.maximum(np.diag(bundle.centre_covariance(c)), 0)),
            "rotation_sd_deg": np.degrees(sd[TURN:SHIFT]),
            "rms_px": bundle.rms_px(c),
            "corners": int(mine.sum()),
            "outliers": float(1 - bundle.inlier[mine].mean()) if mine.any() else None,
            "coverage": coverage(solution, c).share,
            "time_offset_frames": bundle.bundle.offsets[c],
            "time_offset_sd_frames": sd[CLOCK],
        }
        if outcome.held_out is not None:
            entry["heldout_rms_px"] = outcome.held_out.camera_rms_px[c]
        if outcome.repeatability is not None:
            entry["repeat_centre_mm"] = outcome.repeatability.centre_mm[c]
            entry["repeat_turn_deg"] = outcome.repeatability.turn_deg[c]
            entry["repeat_focal_px"] = outcome.repeatability.focal_px[c]
        choice = solution.choices[c]
        if choice is not None:
            entry["lens_models"] = [
                {"model": _model(m), "heldout_px": h} for m, h in zip(choice.ladder, choice.heldout_px, strict=True)
            ]
        cameras[camera.name] = entry
    numbers: dict[str, Any] = {
        "cameras": cameras,
        "rms_px": bundle.rms_px(),
        "sigma_px": bundle.sigma_px,
        "iterations": bundle.iterations,
        "converged": bundle.converged,
        "outlier_share": float(1 - bundle.inlier.mean()),
        "outlier_rule": outlier_rule(),
        "rig_size_mm": rig_size_mm(outcome.rig),
        "world": outcome.world,
        "units": "mm",
        "frames": {
            "seen": outcome.choice.seen,
            "still": outcome.choice.still,
            "used": outcome.choice.chosen,
            "blurred_views": outcome.choice.blurred_views,
        },
        "co_visibility": outcome.graph.shared,
        "distances": [
            {"between": [d.first, d.second], "known_mm": d.known_mm, "measured_mm": d.measured_mm}
            for d in outcome.distances
        ],
        "notes": outcome.notes,
        "shortcomings": outcome.shortcomings(),
    }
    if outcome.held_out is not None:
        h = outcome.held_out
        numbers["heldout"] = {
            "frames": h.frames,
            "corners": h.corners,
            "rms_px": h.rms_px,
            "raw_rms_px": h.raw_rms_px,
            "left_out": h.left_out,
            "square_mm": h.square_mm,
            "square_bias_mm": h.square_bias_mm,
            "long_mm": h.long_mm,
        }
    return numbers


def outlier_rule() -> str:
    """Return the rule by which corners are left out, in words."""
    return (
        f"a corner farther than {OUTLIER_SIGMAS:g} robust standard deviations of its camera from its prediction is "
        "left out, and a view of which more than half is"
    )


def _model(freedom: Any) -> str:
    return f"{freedom.distortion}, {freedom.focal} f{', centre' if freedom.centre else ''}"


def report_lines(outcome: CalibrationOutcome) -> list[str]:
    """Return the short report for the terminal."""
    bundle = outcome.solution.bundle
    lines = [
        f"{len(outcome.rig)} cameras from {outcome.choice.chosen} frames ({int(bundle.inlier.sum())} corners, "
        f"{1 - bundle.inlier.mean():.1%} left out); {bundle.rms_px():.3f} px RMS",
    ]
    if outcome.held_out is not None:
        h = outcome.held_out
        lines.append(
            f"held out ({h.frames} frames): {h.rms_px:.3f} px; board distances {h.square_mm:.3f} mm RMS, "
            f"{h.square_bias_mm:+.3f} mm bias; longest {h.long_mm:.3f} mm"
        )
    else:
        lines.append("held out: too few shared frames to leave any out, so the accuracy is not measured")
    for c, camera in enumerate(outcome.rig):
        assert isinstance(camera, LensCamera)
        k, sd = camera.lens.intrinsics, bundle.camera_sd(c)
        late = bundle.bundle.offsets[c]
        clock = f", {late:+.2f} frames late" if outcome.solution.freedoms[c].clock and c else ""
        lines.append(
            f"  {camera.name}: f {k[0, 0]:.1f} x {k[1, 1]:.1f} +- {sd[0]:.1f} px, "
            f"{outcome.solution.freedoms[c].distortion}, "
            f"at ({', '.join(f'{v:.1f}' for v in camera.centre)}) mm, {bundle.rms_px(c):.3f} px{clock}"
        )
    lines.append(f"world: {outcome.world}")
    lines += [f"note: {note}" for note in outcome.notes]
    lines += [f"problem: {problem}" for problem in outcome.problems]
    return lines


_STYLE = """
body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1080px;padding:0 1em;color:#1c2430;background:#fff}
h1{font-size:1.6em;margin-bottom:.2em}h2{font-size:1.15em;margin-top:2em;border-bottom:1px solid #d5dbe3}
table{border-collapse:collapse;margin:.6em 0}td,th{padding:.25em .7em;text-align:right;border-bottom:1px solid #e6eaf0}
th{font-weight:600;color:#4a5568}td:first-child,th:first-child{text-align:left}
.tiles{display:flex;flex-wrap:wrap;gap:12px;margin:1em 0}
.tile{border:1px solid #d5dbe3;border-radius:8px;padding:.6em 1em}
.tile b{display:block;font-size:1.45em}.tile span{color:#5a6675;font-size:.85em}
.good{border-left:6px solid #2e8b57}.poor{border-left:6px solid #c0392b}
.verdict{padding:.7em 1em;background:#f5f7fa;border-radius:6px;margin:1em 0}
.pictures{display:flex;flex-wrap:wrap;gap:16px}figure{margin:0}figcaption{color:#5a6675;font-size:.85em}
.warn{color:#a33a12}
"""


def report_html(outcome: CalibrationOutcome) -> str:
    """Return the report as one HTML page without scripts or outside files."""
    short = outcome.shortcomings()
    verdict = (
        '<div class="verdict good"><b>Good.</b> No check failed.</div>'
        if not short
        else f'<div class="verdict poor"><b>Look at this first.</b> {escape("; ".join(short))}.</div>'
    )
    parts = [
        f"<h1>Calibration of {escape(outcome.title)}</h1>",
        f"<p>{len(outcome.rig)} cameras, "
        f"{escape('; '.join(b.describe() for b in outcome.solution.sightings.boards))}. "
        f"World: {escape(outcome.world)}; millimetres.</p>",
        verdict,
        _tiles(outcome),
        "<h2>Where the cameras are</h2>",
        _layout(outcome),
        "<h2>Cameras</h2>",
        _camera_table(outcome),
        "<h2>Who saw the board together</h2>",
        _graph(outcome.graph),
        "<h2>Coverage and residuals in each image</h2>",
        _maps(outcome),
        "<h2>Board distances over the volume</h2>",
        _volume(outcome),
        "<h2>Lens models tried</h2>",
        _ladders(outcome),
        "<h2>Notes</h2>",
        "<ul>" + "".join(f"<li>{escape(n)}</li>" for n in (*outcome.problems, *outcome.notes)) + "</ul>",
        f"<p>Outliers: {escape(outlier_rule())}. Standard deviations (&plusmn;) come from the bundle's covariance "
        "and take corner errors for independent; the repeatability, from solving random halves of the frames, "
        "does not.</p>",
    ]
    title = f"<title>Calibration of {escape(outcome.title)}</title>"
    head = f'<!doctype html><html lang="en"><head><meta charset="utf-8">{title}'
    return head + f"<style>{_STYLE}</style></head><body>" + "\n".join(parts) + "</body></html>\n"


def _tiles(outcome: CalibrationOutcome) -> str:
    bundle = outcome.solution.bundle
    tiles = [(f"{bundle.rms_px():.3f} px", "RMS reprojection of the fit")]
    if outcome.held_out is not None:
        h = outcome.held_out
        tiles += [
            (f"{h.rms_px:.3f} px", f"RMS on {h.frames} held-out frames"),
            (f"{h.square_mm:.3f} mm", "RMS error of neighbouring corners"),
            (f"{h.square_bias_mm:+.3f} mm", "mean of it (scale)"),
            (f"{h.long_mm:.3f} mm", "RMS error of the longest distances"),
        ]
    tiles += [
        (f"{outcome.choice.chosen}", f"frames used of {outcome.choice.seen} with a board"),
        (f"{1 - bundle.inlier.mean():.1%}", "corners left out"),
    ]
    body = "".join(f'<div class="tile"><b>{escape(a)}</b><span>{escape(b)}</span></div>' for a, b in tiles)
    return f'<div class="tiles">{body}</div>'


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{h}</th>" for h in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{top}</tr>{body}</table>"


def _pm(value: float, sd: float, digits: int) -> str:
    return f"{value:.{digits}f}" + (f" &plusmn; {sd:.{digits}f}" if sd > 0 else " (held)")


def _camera_table(outcome: CalibrationOutcome) -> str:
    bundle, rows, more = outcome.solution.bundle, [], []
    for c, camera in enumerate(outcome.rig):
        assert isinstance(camera, LensCamera)
        sd, k = bundle.camera_sd(c), camera.lens.intrinsics
        mine = bundle.bundle.camera == c
        rows.append(
            [
                escape(camera.name),
                f"{camera.size[0]}&times;{camera.size[1]}",
                _pm(k[0, 0], sd[0], 2),
                _pm(k[1, 1], sd[1], 2),
                _pm(k[0, 2], sd[2], 1),
                _pm(k[1, 2], sd[3], 1),
                f"{bundle.rms_px(c):.3f}",
                "" if outcome.held_out is None else f"{outcome.held_out.camera_rms_px[c]:.3f}",
                f"{1 - bundle.inlier[mine].mean():.1%}",
                f"{coverage(outcome.solution, c).share:.0%}",
            ]
        )
        spread = np.sqrt(max(float(np.trace(bundle.centre_covariance(c))), 0.0))
        repeat = outcome.repeatability
        terms = ", ".join(
            f"{v:.4f}" + (f"&plusmn;{s:.4f}" if s > 0 else "")
            for v, s in zip(camera.lens.distortion, sd[K1 - FX : TURN], strict=False)
            if v or s
        )
        clock = outcome.solution.freedoms[c].clock
        more.append(
            [
                escape(camera.name),
                ", ".join(f"{v:.1f}" for v in camera.centre),
                f"{spread:.2f}" if c else "reference",
                "" if repeat is None or not c else f"{repeat.centre_mm[c]:.2f}",
                "" if repeat is None or not c else f"{repeat.turn_deg[c]:.3f}",
                _pm(float(bundle.bundle.offsets[c]), float(sd[CLOCK]), 3) if clock and c else "",
                f"{outcome.solution.freedoms[c].distortion}: {terms or 'none'}",
            ]
        )
    first = ["camera", "size px", "fx px", "fy px", "cx px", "cy px", "RMS px", "held-out px", "left out", "covered"]
    second = ["camera", "centre mm", "&plusmn; mm", "repeat mm", "repeat &deg;", "late, frames", "distortion"]
    return _table(first, rows) + _table(second, more)


def _layout(outcome: CalibrationOutcome) -> str:
    boards = outcome.world_from_rig.apply(outcome.solution.bundle.bundle.translations)
    pictures = []
    for name, axes in (("along z (x right, y up)", (0, 1)), ("along y (x right, z up)", (0, 2))):
        drawing = svg.rig_plan(outcome.rig, boards, axes)
        pictures.append(f"<figure>{drawing}<figcaption>{name}; grid in mm; dots: board positions</figcaption></figure>")
    return f'<div class="pictures">{"".join(pictures)}</div>'


def _graph(graph: CoVisibility) -> str:
    rows = []
    for c, name in enumerate(graph.cameras):
        rows.append([escape(name), *(str(int(n)) for n in graph.shared[c])])
    table = _table(["views shared", *map(escape, graph.cameras)], rows)
    return (
        f'<div class="pictures"><figure>{svg.link_graph(graph.cameras, graph.shared)}</figure><div>{table}</div></div>'
    )


def _maps(outcome: CalibrationOutcome) -> str:
    figures = []
    for c, name in enumerate(outcome.rig.names):
        seen: Coverage = coverage(outcome.solution, c)
        size = outcome.solution.sightings.sizes[c]
        mine = outcome.solution.bundle.bundle.camera == c
        residual = outcome.solution.bundle.bundle.residuals()[mine]
        inlier = outcome.solution.bundle.inlier[mine]
        drawing = svg.heat_map(seen.residual_px, seen.count, size)
        cloud = svg.scatter(residual, inlier)
        figures.append(
            f"<figure>{drawing}{cloud}<figcaption>{escape(name)}: RMS residual per cell in px (white: never seen); "
            "right: all residuals, outliers red</figcaption></figure>"
        )
    return f'<div class="pictures">{"".join(figures)}</div>'


def _volume(outcome: CalibrationOutcome) -> str:
    h = outcome.held_out
    if h is None or not len(h.position_mm):
        return "<p>No held-out frames.</p>"
    where = outcome.world_from_rig.apply(h.positions)
    drawing = svg.position_errors(where, h.position_mm)
    checks = "".join(
        f"<li>{escape(d.first)}&ndash;{escape(d.second)}: {d.measured_mm:.2f} mm measured, {d.known_mm:.2f} mm known "
        f"({d.error:+.2%})</li>"
        for d in outcome.distances
    )
    return (
        f"<figure>{drawing}<figcaption>each held-out board: its place, and the RMS error of its squares</figcaption>"
        "</figure>" + (f"<ul>{checks}</ul>" if checks else "")
    )


def _ladders(outcome: CalibrationOutcome) -> str:
    parts = []
    for name, choice in zip(outcome.rig.names, outcome.solution.choices, strict=True):
        if choice is None:
            parts.append(f"<p>{escape(name)}: the model was given.</p>")
            continue
        rows = [
            [
                ("&#9654; " if m == choice.freedom else "") + escape(_model(m)),
                str(m.lens_parameters),
                f"{h:.4f}",
            ]
            for m, h in zip(choice.ladder, choice.heldout_px, strict=True)
        ]
        parts.append(f"<p>{escape(choice.reason)}</p>" + _table(["model", "numbers", "px on unseen views"], rows))
    return "".join(parts)
