"""The report's section on gait: strides, footfalls and curves over the cycle, or why there are none."""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.trust import Trust
from capture.recordings.recording import Recording
from skeleton.analysis.belts import Ground
from skeleton.analysis.cycles import CycleCurve, cycle_curves
from skeleton.analysis.gait import Gait, GaitPaths, gait_of
from vivarig.report.gait_plots import MOST_SECONDS, cycle_plot, footfall_plot
from vivarig.report.motion import MotionCurves
from vivarig.report.page import Page
from vivarig.results.findings import SkeletonFindings
from vivarig.results.ground import ground_under

__all__ = ["add_gait", "no_gait", "recording_cycles"]

_WALK = 0.5
"""Trunk lengths that a subject's root goes at least over the ground before its steps are called gait."""


def add_gait(page: Page, skeleton: SkeletonFindings, curves: MotionCurves, recording: Recording) -> list[CycleCurve]:
    """Add gait, where every frame has a pose: strides need whole sequences. Return the curves over the cycle."""
    paths = curves.gait
    if paths is None or len(curves.root) < 3:
        return []
    page.heading("Gait")
    ground = ground_under(recording, paths.feet, skeleton.rate_hz)
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
    first = f" (the first {MOST_SECONDS:.0f} s)" if len(skeleton.trust) > MOST_SECONDS * skeleton.rate_hz else ""
    page.picture(footfall_plot(gait.contacts, skeleton.trust), f"footfalls{first}: bars are stances")
    found = _cycles(curves, gait, ground.path(paths.root, skeleton.rate_hz))
    if found:
        page.note(
            "Over the gait cycle, from touch-down to touch-down of the foot of the same side: mean of the strides and "
            "1 standard deviation. The numbers are in gait_cycles.csv."
        )
        page.picture(cycle_plot(found), "curves over the gait cycle")
    return found


def recording_cycles(skeleton: SkeletonFindings, curves: MotionCurves, recording: Recording) -> list[CycleCurve]:
    """Return the curves over the cycle that the report shows; none where there is no gait to speak of."""
    paths = curves.gait
    if paths is None or len(curves.root) < 3:
        return []
    ground = ground_under(recording, paths.feet, skeleton.rate_hz)
    if no_gait(skeleton.trust, paths, ground, skeleton.rate_hz):
        return []
    gait = gait_of(paths, skeleton.rate_hz, belt=ground)
    return _cycles(curves, gait, ground.path(paths.root, skeleton.rate_hz))


def _words(gait: Gait, trust: Ints) -> str:
    lost = int((trust > Trust.TRUSTED).sum())
    pitch, spread = gait.trunk_pitch_deg
    text = (
        f"From contacts with the ground: low, slow feet, their ends where the speed turns its corner. Speed over the "
        f"ground {gait.speed_mm_s:.0f} mm/s, trunk pitch {pitch:.1f} +- {spread:.1f} degrees."
    )
    text += f" {gait.belt.words()}".rstrip()
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


def no_gait(trust: Ints, paths: GaitPaths, belt: Ground | None = None, rate_hz: float = 1.0) -> str:
    """Return why there is no gait to speak of in frames of this trust (T,); empty where there is."""
    untrusted = float((trust > Trust.TRUSTED).mean())
    if untrusted > 0.5:
        return (
            f"Not given: {100 * untrusted:.1f} % of the frames are not trusted, and strides made of them mean nothing."
        )
    trunk = float(np.median(paths.trunk))
    root = paths.root if belt is None else belt.path(paths.root, rate_hz)
    moved = float(np.linalg.norm(np.ptp(root, axis=0)))
    if moved < _WALK * trunk:
        return (
            f"The subject did not walk: its root stayed within {moved:.0f} mm, its trunk is {trunk:.0f} mm long. Small "
            "movements of the feet are no strides."
        )
    return ""
