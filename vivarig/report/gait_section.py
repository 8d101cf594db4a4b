"""The report's section on gait: strides, footfalls and curves over the cycle, or why there are none."""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.trust import Trust
from skeleton.analysis.belts import Belt, given_belt
from skeleton.analysis.contacts import ground_of
from skeleton.analysis.cycles import CycleCurve, cycle_curves
from skeleton.analysis.gait import Gait, GaitPaths, gait_of, ground_path
from vivarig.report.gait_plots import cycle_plot, footfall_plot
from vivarig.report.motion import MotionCurves
from vivarig.report.page import Page
from vivarig.results.findings import SkeletonFindings

__all__ = ["add_gait", "ground_under", "no_gait", "recording_cycles"]

_WALK = 0.5
"""Trunk lengths that a subject's root goes at least over the ground before its steps are called gait."""


def add_gait(
    page: Page, skeleton: SkeletonFindings, curves: MotionCurves, belt: tuple[float, float] | None
) -> list[CycleCurve]:
    """Add gait, where every frame has a pose: strides need whole sequences. Return the curves over the cycle."""
    paths = curves.gait
    if paths is None or len(curves.root) < 3:
        return []
    page.heading("Gait")
    ground = ground_under(paths, skeleton.rate_hz, belt)
    without = no_gait(skeleton.trust, paths, ground, skeleton.rate_hz)
    if without:
        page.note(without)
        return []
    gait = gait_of(paths, skeleton.rate_hz, belt=ground)
    page.note(_words(gait, skeleton.trust))
    rows = []
    for name, foot in gait.feet.items():
        cells = ["-"] * 4
        if foot.strides:
            means = (foot.length_mm, foot.stride_s, foot.stance_s, foot.duty_factor)
            cells = [f"{float(v.mean()):.3g}" for v in means]
        phase = gait.phase[name]
        rows.append((name, str(foot.strides), *cells, "-" if np.isnan(phase) else f"{phase:.2f}"))
    page.table(("foot", "whole strides", "length mm", "stride s", "stance s", "duty factor", "phase"), rows)
    page.picture(footfall_plot(gait.contacts, skeleton.trust), "footfalls: bars are stances")
    found = _cycles(curves, gait, ground_path(paths.root, ground, skeleton.rate_hz))
    if found:
        page.note(
            "Over the gait cycle, from touch-down to touch-down of the foot of the same side: mean of the strides and "
            "1 standard deviation. The numbers are in gait_cycles.csv."
        )
        page.picture(cycle_plot(found), "curves over the gait cycle")
    return found


def recording_cycles(
    skeleton: SkeletonFindings, curves: MotionCurves, belt: tuple[float, float] | None
) -> list[CycleCurve]:
    """Return the curves over the cycle that the report shows; none where there is no gait to speak of."""
    paths = curves.gait
    if paths is None or len(curves.root) < 3:
        return []
    ground = ground_under(paths, skeleton.rate_hz, belt)
    if no_gait(skeleton.trust, paths, ground, skeleton.rate_hz):
        return []
    gait = gait_of(paths, skeleton.rate_hz, belt=ground)
    return _cycles(curves, gait, ground_path(paths.root, ground, skeleton.rate_hz))


def ground_under(paths: GaitPaths, rate_hz: float, belt: tuple[float, float] | None) -> Belt:
    """Return how the ground moves: as a given belt does, else as the feet say."""
    if belt is not None:
        return given_belt(np.array(belt), len(paths.root))
    return ground_of(paths.feet, rate_hz)


def _words(gait: Gait, trust: Ints) -> str:
    lost = int((trust > Trust.TRUSTED).sum())
    pitch, spread = gait.trunk_pitch_deg
    text = (
        f"From contacts with the ground: low, slow feet, their ends where the speed turns its corner. Speed over the "
        f"ground {gait.speed_mm_s:.0f} mm/s, trunk pitch {pitch:.1f} +- {spread:.1f} degrees."
    )
    if gait.belt.moves:
        where = "named in recording.toml" if gait.belt.given else "found from the feet"
        vx, vy = gait.belt.velocity.mean(axis=0)
        text += f" The ground is a belt, {where}: velocity ({vx:.0f}, {vy:.0f}) mm/s; strides are told in its frame."
    return text + (f" {lost} frames are not trusted." if lost else "")


def _cycles(curves: MotionCurves, gait: Gait, root: Floats) -> list[CycleCurve]:
    """Return the curves of the signals whose side has a foot."""
    foot_of = {}
    for name in curves.signals:
        side = name.split("_")[0]
        fore = any(word in name for word in ("shoulder", "elbow", "wrist", "scapula"))
        wanted = [f"{side}_{'fore' if fore else 'hind'}", f"{side}_foot"]
        foot = next((place for place in wanted if place in gait.contacts), None)
        if foot is not None:
            foot_of[name] = foot
    return cycle_curves({name: curves.signals[name] for name in foot_of}, foot_of, gait.contacts, root)


def no_gait(trust: Ints, paths: GaitPaths, belt: Belt | None = None, rate_hz: float = 1.0) -> str:
    """Return why there is no gait to speak of in frames of this trust (T,); empty where there is."""
    untrusted = float((trust > Trust.TRUSTED).mean())
    if untrusted > 0.5:
        return (
            f"Not given: {100 * untrusted:.1f} % of the frames are not trusted, and strides made of them mean nothing."
        )
    trunk = float(np.median(paths.trunk))
    root = paths.root if belt is None else ground_path(paths.root, belt, rate_hz)
    moved = float(np.linalg.norm(np.ptp(root, axis=0)))
    if moved < _WALK * trunk:
        return (
            f"The subject did not walk: its root stayed within {moved:.0f} mm, its trunk is {trunk:.0f} mm long. Small "
            "movements of the feet are no strides."
        )
    return ""
