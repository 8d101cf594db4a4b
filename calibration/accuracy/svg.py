"""Small drawings as SVG text, for reports that need no other file."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from calibration.cameras.camera import LensCamera
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Floats, Ints

__all__ = ["colour", "heat_map", "link_graph", "position_errors", "rig_plan", "scatter"]

PALETTE = np.array([[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]], float)
INK, FAINT, BLUE, RED = "#1c2430", "#d5dbe3", "#2b6cb0", "#c0392b"


def colour(value: float) -> str:
    """Return a colour for 0..1, dark to bright, that stays readable in grey."""
    at = float(np.clip(value, 0, 1)) * (len(PALETTE) - 1)
    low = min(int(at), len(PALETTE) - 2)
    rgb = PALETTE[low] + (at - low) * (PALETTE[low + 1] - PALETTE[low])
    return "#" + "".join(f"{round(v):02x}" for v in rgb)


def _open(width: float, height: float) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="system-ui,sans-serif" font-size="11">'
    )


def _nice(span: float, count: int = 5) -> float:
    raw = max(span, 1e-9) / count
    power = 10 ** np.floor(np.log10(raw))
    return float(next(m for m in (1, 2, 5, 10) if m * power >= raw) * power)


def rig_plan(rig: Rig, boards: Floats, axes: tuple[int, int], size: tuple[int, int] = (520, 420)) -> str:
    """Draw cameras with their fields of view and board positions, along two world axes at one scale."""
    cameras = [c for c in rig if isinstance(c, LensCamera)]
    centres = np.stack([c.centre for c in cameras])
    everything = np.concatenate([centres, boards])[:, axes]
    low, high = everything.min(0), everything.max(0)
    reach = max(float(np.max(high - low)), 1.0)
    low, high = low - 0.18 * reach, high + 0.18 * reach
    scale = min(size[0] / (high[0] - low[0]), size[1] / (high[1] - low[1]))
    middle = (low + high) / 2

    def place(p: Floats) -> tuple[float, float]:
        x = size[0] / 2 + scale * (p[axes[0]] - middle[0])
        y = size[1] / 2 - scale * (p[axes[1]] - middle[1])
        return float(x), float(y)

    out = [_open(*size), f'<rect width="{size[0]}" height="{size[1]}" fill="#fafbfc" stroke="{FAINT}"/>']
    step = _nice(max(high - low))
    for axis, length in ((0, size[0]), (1, size[1])):
        half = length / scale / 2
        for k in range(int(np.ceil((middle[axis] - half) / step)), int(np.floor((middle[axis] + half) / step)) + 1):
            at = np.zeros(3)
            at[axes[axis]] = k * step
            x, y = place(at)
            heavy = INK if k == 0 else FAINT
            if axis == 0:
                out.append(
                    f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{size[1]}" stroke="{heavy}" stroke-width="0.6"/>'
                )
                out.append(f'<text x="{x + 3:.1f}" y="{size[1] - 4}" fill="#5a6675">{k * step:g}</text>')
            else:
                out.append(
                    f'<line y1="{y:.1f}" y2="{y:.1f}" x1="0" x2="{size[0]}" stroke="{heavy}" stroke-width="0.6"/>'
                )
                out.append(f'<text x="3" y="{y - 3:.1f}" fill="#5a6675">{k * step:g}</text>')
    for b in boards[:: max(1, len(boards) // 300)]:
        x, y = place(b)
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="{BLUE}" fill-opacity="0.45"/>')
    for camera in cameras:
        w, h = camera.size
        _, rays = camera.rays(np.array([[0.1 * w, h / 2], [0.9 * w, h / 2], [w / 2, 0.1 * h], [w / 2, 0.9 * h]]))
        ends = [place(camera.centre + 0.14 * reach * r) for r in rays if np.isfinite(r).all()]
        x, y = place(camera.centre)
        for ex, ey in ends:
            out.append(
                f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{ex:.1f}" y2="{ey:.1f}" stroke="{RED}" stroke-opacity="0.7"/>'
            )
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{RED}"/>')
        out.append(f'<text x="{x + 7:.1f}" y="{y - 6:.1f}" fill="{INK}" font-weight="600">{escape(camera.name)}</text>')
    return "".join(out) + "</svg>"


def link_graph(names: Sequence[str], shared: Ints, size: int = 300) -> str:
    """Draw cameras on a circle, linked by lines as thick as the number of views they share."""
    count = len(names)
    angle = 2 * np.pi * np.arange(count) / max(count, 1) - np.pi / 2
    room = 8.0 * max((len(name) for name in names), default=0)  # beside the circle, for the names
    width_px = size + 2 * room
    x, y = width_px / 2 + 0.34 * size * np.cos(angle), size / 2 + 0.34 * size * np.sin(angle)
    most = max(int(shared.max()), 1) if count else 1
    out = [_open(width_px, size)]
    for a in range(count):
        for b in range(a + 1, count):
            if shared[a, b]:
                width = 0.6 + 5 * np.sqrt(shared[a, b] / most)
                out.append(
                    f'<line x1="{x[a]:.1f}" y1="{y[a]:.1f}" x2="{x[b]:.1f}" y2="{y[b]:.1f}" stroke="{BLUE}" '
                    f'stroke-opacity="0.45" stroke-width="{width:.1f}"/>'
                )
                if count <= 8:
                    mx, my = 0.62 * x[a] + 0.38 * x[b], 0.62 * y[a] + 0.38 * y[b]
                    out.append(f'<text x="{mx:.1f}" y="{my:.1f}" text-anchor="middle">{int(shared[a, b])}</text>')
    for i, name in enumerate(names):
        out.append(f'<circle cx="{x[i]:.1f}" cy="{y[i]:.1f}" r="7" fill="{RED}"/>')
        across, down = np.cos(angle[i]), np.sin(angle[i])
        anchor = "middle" if abs(across) < 0.2 else "start" if across > 0 else "end"
        tx, ty = width_px / 2 + 0.38 * size * across, size / 2 + 0.4 * size * down
        out.append(
            f'<text x="{tx:.1f}" y="{ty + 4:.1f}" text-anchor="{anchor}" font-weight="600">{escape(name)}</text>'
        )
    return "".join(out) + "</svg>"


def heat_map(value: Floats, count: Ints, size: tuple[int, int], width: int = 260) -> str:
    """Draw residuals per image cell; the number of corners is printed in each, never-seen cells stay white."""
    rows, columns = value.shape
    height = width * size[1] / size[0]
    finite = value[np.isfinite(value)]
    top = max(float(np.percentile(finite, 95)), 1e-9) if len(finite) else 1.0
    w, h = width / columns, height / rows
    out = [_open(width, height + 18)]
    for r in range(rows):
        for c in range(columns):
            fill = colour(value[r, c] / top) if np.isfinite(value[r, c]) else "#ffffff"
            out.append(f'<rect x="{c * w:.1f}" y="{r * h:.1f}" width="{w:.1f}" height="{h:.1f}" fill="{fill}"/>')
            if count[r, c]:
                ink = "#ffffff" if np.isfinite(value[r, c]) and value[r, c] < 0.6 * top else "#000000"
                out.append(
                    f'<text x="{(c + 0.5) * w:.1f}" y="{(r + 0.5) * h + 3:.1f}" text-anchor="middle" font-size="7" '
                    f'fill="{ink}">{int(count[r, c])}</text>'
                )
    out.append(f'<rect width="{width}" height="{height:.1f}" fill="none" stroke="{INK}" stroke-width="0.8"/>')
    for i in range(20):
        out.append(f'<rect x="{i * 5}" y="{height + 5:.1f}" width="5" height="8" fill="{colour(i / 19)}"/>')
    out.append(f'<text x="106" y="{height + 13:.1f}">0 to {top:.2f} px</text>')
    return "".join(out) + "</svg>"


def scatter(residual: Floats, inlier: Bools, size: int = 170) -> str:
    """Draw residuals around zero with a ring at their RMS; the scale is four times the RMS of the inliers."""
    good = residual[inlier]
    rms = float(np.sqrt((good**2).sum(1).mean())) if len(good) else 1.0
    span = max(4 * rms, 1e-9)
    half = size / 2
    out = [_open(size, size), f'<rect width="{size}" height="{size}" fill="#fafbfc" stroke="{FAINT}"/>']
    out.append(f'<line x1="0" x2="{size}" y1="{half}" y2="{half}" stroke="{FAINT}"/>')
    out.append(f'<line y1="0" y2="{size}" x1="{half}" x2="{half}" stroke="{FAINT}"/>')
    for chosen, ink, r in ((inlier, BLUE, 1.0), (~inlier, RED, 1.4)):
        dots = residual[chosen]
        dots = dots[np.isfinite(dots).all(1)][:: max(1, len(dots) // 1200)]
        for u, v in np.clip(dots / span, -1, 1):
            x, y = half + u * half, half + v * half
            out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" fill="{ink}" fill-opacity="0.5"/>')
    out.append(f'<circle cx="{half}" cy="{half}" r="{half * rms / span:.1f}" fill="none" stroke="{INK}"/>')
    out.append(f'<text x="4" y="{size - 5}">&#177;{span:.2f} px</text>')
    return "".join(out) + "</svg>"


def position_errors(points: Floats, errors: Floats, size: tuple[int, int] = (330, 260)) -> str:
    """Draw errors (n,) mm at points (n, 3) mm, seen along y and along z, as discs coloured and sized by error."""
    out = [_open(2 * size[0] + 20, size[1])]
    top = max(float(errors.max()), 1e-9)
    for i, (a, b, words) in enumerate(((0, 1, "x, y"), (0, 2, "x, z"))):
        left = i * (size[0] + 20)
        flat = points[:, [a, b]]
        low, high = flat.min(0), flat.max(0)
        span = max(float((high - low).max()), 1.0) * 1.2
        middle = (low + high) / 2
        scale = min(size) / span
        out.append(f'<rect x="{left}" width="{size[0]}" height="{size[1]}" fill="#fafbfc" stroke="{FAINT}"/>')
        for (x, y), e in zip(flat, errors, strict=True):
            px = left + size[0] / 2 + scale * (x - middle[0])
            py = size[1] / 2 - scale * (y - middle[1])
            out.append(
                f'<circle cx="{px:.1f}" cy="{py:.1f}" r="{3 + 6 * e / top:.1f}" fill="{colour(e / top)}" '
                f'stroke="{INK}" stroke-width="0.4"/>'
            )
        step = _nice(span, 4)
        end, low_y = left + 8 + scale * step, size[1] - 8
        out.append(f'<line x1="{left + 8}" x2="{end:.1f}" y1="{low_y}" y2="{low_y}" stroke="{INK}"/>')
        out.append(f'<text x="{left + 8}" y="{size[1] - 13}">{step:g} mm ({words})</text>')
    out.append(f'<text x="6" y="14">largest {top:.3f} mm</text>')
    return "".join(out) + "</svg>"
