"""The sections of a report, each made by itself from what the results hold."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from calibration.foundation.arrays import Bools, Floats
from calibration.foundation.trust import Trust
from capture.hull.result import flag_words
from capture.recordings.masks import MaskFlag, read_masks
from skeleton.analysis.scoring import JointScores, score_joints
from vivarig.evaluation.scores import cage_estimate, common_joints, load_estimate, load_truth
from vivarig.report.motion import MotionCurves, motion_curves
from vivarig.report.page import Page
from vivarig.report.pictures import contact_sheet, data_uri, share_images
from vivarig.report.plots import angle_plot, quality_plot, rig_picture, score_plot
from vivarig.results.camera_check import CameraVerdict, judge_cameras_once
from vivarig.results.findings import Findings, TrackFindings
from vivarig.results.outline_words import outline_words
from vivarig.results.stretches import Stretch, find_stretches

__all__ = [
    "Section",
    "Shown",
    "angles_section",
    "percent",
    "quality_section",
    "rig_section",
    "silhouette_section",
    "surface_section",
    "tracking_section",
    "truth_section",
]

_WORST = 4
_WORST_VIEWS = 4
_REDRAWN_LOOKS = 24
"""Frames among which the one is looked for whose silhouettes changed most."""


class Shown:
    """What the sections of a report show; worked out where it is asked for.

    Attributes:
        findings: what the results hold.
    """

    def __init__(self, findings: Findings) -> None:
        self.findings = findings

    @cached_property
    def stretches(self) -> list[Stretch]:
        """Stretches of frames that are not trusted."""
        track = self.findings.track
        return find_stretches(track, self.findings.recording.rate_hz) if track is not None else []

    @cached_property
    def scores(self) -> JointScores | None:
        """Errors against the truth, where there is one."""
        return _scores(self.findings)

    @cached_property
    def curves(self) -> MotionCurves | None:
        """Curves of the motion, where there is a skeleton."""
        return motion_curves(self.findings.skeleton) if self.findings.skeleton is not None else None

    @cached_property
    def cameras(self) -> CameraVerdict | None:
        """What the silhouettes say of the cameras."""
        if self.findings.silhouettes is None or self.findings.recording.rig is None:
            return None
        return judge_cameras_once(self.findings.recording)


#: A section adds to the page, and returns its headline figures.
Section = Callable[[Page, Shown], dict[str, object]]


def _scores(findings: Findings) -> JointScores | None:
    truth_file = findings.recording.folder / "truth.h5"
    if findings.skeleton is None or not truth_file.is_file():
        return None
    names, estimate, truth = common_joints(load_estimate(findings.recording.results), load_truth(truth_file), {})
    return score_joints(names, estimate, truth)


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def truth_section(page: Page, shown: Shown) -> dict[str, object]:
    findings, scores = shown.findings, shown.scores
    if scores is None:
        return {}
    page.heading("Error against the truth")
    page.note(
        "This recording has a truth file. Error of a frame: mean distance over its joints, doubtful and lost frames "
        "included, no alignment."
    )
    assert findings.skeleton is not None
    trust = findings.track.trust if findings.track is not None else findings.skeleton.trust
    page.picture(score_plot(scores, trust), "joint error over time and per joint")
    rows = [("skeleton (inverse kinematics)", f"{scores.mean:.2f}", f"{scores.median:.2f}", f"{scores.sd:.2f}")]
    cage = cage_estimate(findings.recording.results)
    truth = load_truth(findings.recording.folder / "truth.h5")
    if cage is not None and set(cage.names) & set(truth.names):
        beside = score_joints(*common_joints(cage, truth, {}))
        rows.append(("joints carried by the cage", f"{beside.mean:.2f}", f"{beside.median:.2f}", f"{beside.sd:.2f}"))
    page.table(("joints", "mean mm", "median mm", "SD mm"), rows)
    return {}


def quality_section(page: Page, shown: Shown) -> dict[str, object]:
    findings, curves = shown.findings, shown.curves
    page.heading("Quality over time")
    page.picture(
        quality_plot(findings, None if curves is None else curves.sigma), "quality of each stage over time", still=True
    )
    if curves is not None:
        page.note(
            "Sigma is of errors beside a joint's constant offset: others may say that the joint lies elsewhere in the "
            "limb, throughout the recording, and sigma does not hold that distance."
        )
    rows = []
    if findings.track is not None:
        words = findings.track.reasons
        for code in np.unique(findings.track.reason[findings.track.trust > Trust.TRUSTED]):
            text = words[code] if code < len(words) else f"reason {code}"
            count = int(((findings.track.reason == code) & (findings.track.trust > Trust.TRUSTED)).sum())
            rows.append((f"tracking: {text}", str(count)))
        rows += _limb_rows(findings.track)
    if findings.hull is not None:
        for bit in range(16):
            count = int((findings.hull.flags & (1 << bit) != 0).sum())
            if count:
                rows.append((f"hull: {flag_words(1 << bit)[0]}", str(count)))
    if findings.silhouettes is not None:
        for flag in MaskFlag:
            count = int((findings.silhouettes.flags & int(flag) != 0).any(1).sum())
            if count:
                rows.append((f"silhouettes: {(flag.name or '').lower().replace('_', ' ')} in some view", str(count)))
    if rows:
        page.table(("what was noticed", "frames"), rows)
    return {}


def _cameras(findings: Findings) -> list[str]:
    if findings.silhouettes is not None:
        return findings.silhouettes.names
    return [footage.name for footage in findings.recording.footage]


def surface_section(page: Page, shown: Shown) -> dict[str, object]:
    findings = shown.findings
    if findings.track is None:
        return {}
    page.heading("Tracked surface and skeleton")
    middle = findings.frames // 2
    page.note(
        f"Over the cameras' own images, around the subject, frame {middle} "
        f"({_trust_words(findings, middle)}): orange the tracked surface; bones are white where trusted, "
        "orange where doubtful, red where lost."
    )
    share_images(findings, _cameras(findings), middle)
    sheet = contact_sheet(findings, _cameras(findings), [middle], ("template", "surface"), near=True)
    page.picture(data_uri(sheet), f"all cameras at frame {middle} with the tracked surface")
    return {}


def tracking_section(page: Page, shown: Shown) -> dict[str, object]:
    findings = shown.findings
    if findings.track is None:
        return {}
    middle = findings.frames // 2
    share_images(findings, _cameras(findings), middle)
    sheet = contact_sheet(findings, _cameras(findings), [middle], ("template", "skeleton"), near=True)
    page.picture(data_uri(sheet), f"all cameras at frame {middle} with template outline and skeleton")
    _outlines_told(page, findings)
    if findings.track.overlap is not None:
        page.note(
            "Overlap of the template's outline with the silhouette, by camera: a view that stands apart is suspect."
        )
        page.table(("camera", "median IoU", "worst tenth below"), _overlap_rows(findings, findings.track.overlap))
    per_frame = findings.track.agreement
    worst = _worst_frames(per_frame, _has_images(findings))
    page.note(
        "Worst frames, by agreement of the template with the silhouettes (green"
        + ("; white where they were drawn again): " if findings.redrawn is not None else "): ")
        + ", ".join(f"{frame} (IoU {per_frame[frame]:.3f}, {_trust_words(findings, frame)})" for frame in worst)
        + ("." if len(_cameras(findings)) <= _WORST_VIEWS else f". Shown: the first {_WORST_VIEWS} cameras.")
    )
    few = _cameras(findings)[:_WORST_VIEWS]
    sheet = contact_sheet(findings, few, worst, ("silhouette", "redrawn", "template", "skeleton"), near=True)
    page.picture(data_uri(sheet), "worst frames")
    return {}


def _outlines_told(page: Page, findings: Findings) -> None:
    """Say whether the silhouettes were drawn again, and show what that changed where it changed most."""
    outlines = None if findings.track is None else findings.track.parameters.get("outlines")
    if not outlines:
        return
    words = outline_words(outlines)
    page.note(f"{words[0].upper()}{words[1:]}.")
    if findings.redrawn is None or findings.silhouettes is None:
        return
    names = findings.silhouettes.names
    looked = np.linspace(0, findings.frames - 1, min(findings.frames, _REDRAWN_LOOKS)).astype(int)
    changed = [
        sum(int(np.logical_xor(*_before_and_after(findings, name, int(frame))).sum()) for name in names)
        for frame in looked
    ]
    frame = int(looked[int(np.argmax(changed))])
    page.note(
        f"Frame {frame}, where that changed most of {len(looked)} frames looked at. Green: as cut out; white: "
        "the outline as drawn again, which the track lies on; red: taken off; blue: added."
    )
    sheet = contact_sheet(findings, names, [frame], ("silhouette", "redrawn"), near=True)
    page.picture(data_uri(sheet), f"silhouettes before and after they were drawn again, frame {frame}")


def _before_and_after(findings: Findings, camera: str, frame: int) -> tuple[Bools, Bools]:
    assert findings.silhouettes is not None and findings.redrawn is not None
    before, after = (read_masks(path, camera, frame)[0] for path in (findings.silhouettes.path, findings.redrawn))
    return before, after


def _overlap_rows(findings: Findings, overlap: Floats) -> list[tuple[str, str, str]]:
    rows = []
    for name, column in zip(_cameras(findings), overlap.T, strict=True):
        known = column[np.isfinite(column)]
        figures = (f"{np.median(known):.3f}", f"{np.percentile(known, 10):.3f}") if known.size else ("-", "-")
        rows.append((name, *figures))
    return rows


def _limb_rows(track: TrackFindings) -> list[tuple[str, str]]:
    """Rows of a table: each limb, each reason why it is not trusted, and in how many frames."""
    if track.limb_trust is None or track.limb_reason is None:
        return []
    rows = []
    for limb, name in enumerate(track.limb_names):
        codes = track.limb_reason[track.limb_trust[:, limb] > Trust.TRUSTED, limb]
        for code in np.unique(codes):
            rows.append((f"{name.replace('_', ' ')}: {track.reasons[code]}", str(int((codes == code).sum()))))
    return rows


def _trust_words(findings: Findings, frame: int) -> str:
    assert findings.track is not None
    words = ("trusted", "doubtful", "lost")[int(findings.track.trust[frame])]
    code = int(findings.track.reason[frame])
    known = findings.track.reasons
    return f"{words}: {known[code]}" if words != "trusted" and 0 < code < len(known) else words


def _has_images(findings: Findings) -> Bools:
    """Return (T,) whether any camera has an image of the frame."""
    if findings.silhouettes is None:
        return np.ones(findings.frames, dtype=bool)
    return np.asarray((findings.silhouettes.flags & int(MaskFlag.NO_FRAME) == 0).any(axis=1))


def _worst_frames(agreement: Floats, shown: Bools) -> list[int]:
    """Return the frames of the least agreement, lost ones first, each apart from the others in time.

    Of those with images (T,): one that the cameras did not take shows nothing.
    """
    order = np.argsort(np.where(np.isfinite(agreement), agreement, -1.0), kind="stable")
    order = order[shown[order]]
    apart = max(1, len(order) // (4 * _WORST))
    chosen: list[int] = []
    for frame in order:
        if all(abs(int(frame) - other) >= apart for other in chosen):
            chosen.append(int(frame))
        if len(chosen) == _WORST:
            break
    return chosen


def silhouette_section(page: Page, shown: Shown) -> dict[str, object]:
    findings = shown.findings.outlines  # whether or not it is made before the subject is tracked, it looks the same
    if findings.silhouettes is None:
        return {}
    page.heading("Silhouettes and hull")
    page.note("Around the subject. Green: silhouette. Blue: outline of the visual hull.")
    filmed = np.flatnonzero(_has_images(findings))
    frames = sorted({int(filmed[0]), int(filmed[len(filmed) // 2]), int(filmed[-1])}) if len(filmed) else [0]
    if findings.frames // 2 in frames:
        share_images(findings, findings.silhouettes.names, findings.frames // 2)
    sheet = contact_sheet(findings, findings.silhouettes.names, frames, ("silhouette", "hull"), near=True)
    page.picture(data_uri(sheet), "silhouettes and hulls")
    rows = []
    for index, name in enumerate(findings.silhouettes.names):
        column, flags = findings.silhouettes.agreement[:, index], findings.silhouettes.flags[:, index]
        known = column[np.isfinite(column)]
        mean = f"{known.mean():.3f}" if known.size else "-"
        found = float((flags & int(MaskFlag.NO_FRAME | MaskFlag.EMPTY | MaskFlag.FULL) == 0).mean())
        contradicted = float((flags & int(MaskFlag.CONTRADICTED) != 0).mean())
        rows.append((name, percent(found), mean, percent(contradicted)))
    page.table(("camera", "subject found", "agreement IoU", "contradicted"), rows)
    return {}


def angles_section(page: Page, shown: Shown) -> dict[str, object]:
    skeleton, curves = shown.findings.skeleton, shown.curves
    if skeleton is None or curves is None:
        return {}
    if curves.angles:
        page.heading("Joint angles")
        page.note(
            "Inner angle of each limb joint in degrees, 180 for a straight one; lost frames are left out, doubtful "
            "ones are thin and grey on yellow."
        )
        degrees = np.degrees(np.stack(list(curves.angles.values()), axis=1))
        plot = angle_plot(list(curves.angles), degrees, skeleton.rate_hz, skeleton.trust)
        page.picture(plot, "joint angles over time", still=True)
    return {}


def rig_section(page: Page, shown: Shown) -> dict[str, object]:
    rig, curves, cameras = shown.findings.recording.rig, shown.curves, shown.cameras
    if rig is None:
        return {}
    page.heading("Cameras")
    apart: dict[str, float] = {}
    if cameras is not None:
        apart = cameras.numbers.get("disagreement_px", {})
        for line in cameras.lines:
            page.note(line)
    page.picture(rig_picture(rig, None if curves is None else curves.root), "camera layout")
    page.note("Red: path of the subject's root joint.")
    rows = [
        (
            camera.name,
            f"{camera.size[0]} x {camera.size[1]}",
            camera.kind,
            ", ".join(str(round(n)) for n in camera.centre),
            f"{apart[camera.name]:.2f}" if np.isfinite(apart.get(camera.name, np.nan)) else "-",
        )
        for camera in rig
    ]
    page.table(("camera", "pixels", "kind", "centre x, y, z (mm)", "outlines off the others' (px)"), rows)
    return {}
