"""Put the report of a recording together from what its results hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from calibration.foundation.arrays import Bools, Floats
from calibration.foundation.errors import InputError
from calibration.foundation.files import write_text
from calibration.foundation.trust import Trust
from capture.hull.result import flag_words
from capture.recordings.masks import MaskFlag, read_masks
from capture.recordings.recording import Recording
from skeleton.analysis.cycles import CycleCurve, cycles_table
from skeleton.analysis.scoring import JointScores, score_joints
from vivarig.evaluation.scores import cage_estimate, common_joints, load_estimate, load_truth
from vivarig.report.bead_report import build_bead_report
from vivarig.report.explorer import add_explorer
from vivarig.report.gait_section import add_gait
from vivarig.report.modes_section import add_modes
from vivarig.report.motion import MotionCurves, motion_curves
from vivarig.report.page import Page
from vivarig.report.pictures import contact_sheet, data_uri
from vivarig.report.plots import angle_plot, quality_plot, rig_picture, score_plot
from vivarig.report.provenance import add_provenance
from vivarig.report.verdict import add_stretches, add_verdict
from vivarig.results.camera_check import CameraVerdict, judge_cameras_once
from vivarig.results.findings import Findings, SkeletonFindings, TrackFindings, load_findings
from vivarig.results.outline_words import outline_words
from vivarig.results.stretches import Stretch, find_stretches

__all__ = ["build_report"]

_WORST = 4
_WORST_VIEWS = 4
_REDRAWN_LOOKS = 24
"""Frames among which the one is looked for whose silhouettes changed most."""
_LOOKED_AT = 5_000
"""Frames, at least, that the median of the joints' sigma is taken over."""


def build_report(recording: Recording, path: Path) -> dict[str, object]:
    """Write the report of a recording and return its headline figures."""
    findings = load_findings(recording)
    if findings.frames == 0:
        raise InputError(f"{recording.folder}: no results yet; run `vivarig run {recording.folder.name}` first")
    if findings.beads is not None and findings.silhouettes is None and findings.skeleton is None:
        return build_bead_report(findings, path)
    page = Page(f"{recording.name}: motion capture report")
    scores = _scores(findings)
    stretches = find_stretches(findings.track, recording.rate_hz) if findings.track is not None else []
    cameras = (
        judge_cameras_once(findings.recording)
        if findings.silhouettes is not None and recording.rig is not None
        else None
    )
    numbers = _headline(page, findings, scores, stretches, cameras)
    add_stretches(page, findings, stretches)
    curves = motion_curves(findings.skeleton) if findings.skeleton is not None else None
    add_explorer(page, findings, curves, stretches)
    if scores is not None:
        _truth_section(page, findings, scores)
    _quality_section(page, findings, curves)
    _tracking_section(page, findings)
    _silhouette_section(page, findings)
    _angles_section(page, findings, curves)
    cycles: list[CycleCurve] = []
    if findings.skeleton is not None and curves is not None:
        numbers |= add_modes(page, findings.skeleton)
        cycles = add_gait(page, findings.skeleton, curves, recording)
    _rig_section(page, findings, curves, cameras)
    add_provenance(page, findings)
    if cycles:
        write_text(path.with_name("gait_cycles.csv"), cycles_table(cycles))
    write_text(path, page.html())
    return numbers


def _scores(findings: Findings) -> JointScores | None:
    truth_file = findings.recording.folder / "truth.h5"
    if findings.skeleton is None or not truth_file.is_file():
        return None
    names, estimate, truth = common_joints(load_estimate(findings.recording.results), load_truth(truth_file), {})
    return score_joints(names, estimate, truth)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _headline(
    page: Page,
    findings: Findings,
    scores: JointScores | None,
    stretches: Sequence[Stretch],
    cameras: CameraVerdict | None,
) -> dict[str, object]:
    recording = findings.recording
    seconds = findings.frames / recording.rate_hz
    page.note(
        f"{findings.frames} frames at {recording.rate_hz:g} Hz ({seconds:.2f} s), {len(recording.footage)} cameras, "
        f"subject: {recording.subject or 'none named'}. All lengths in millimetres."
        + (f" Frame 0 here is frame {findings.first} of the recording." if findings.first else "")
    )
    add_verdict(page, findings, stretches, [cameras.reason] if cameras is not None and cameras.reason else [])
    cards: list[tuple[str, str, str]] = []
    numbers: dict[str, object] = {"frames": findings.frames}
    if scores is not None:
        cards.append((f"{scores.mean:.2f} mm", "mean joint error against the truth, all frames", ""))
        numbers |= {"mean_joint_error_mm": scores.mean, "median_joint_error_mm": scores.median}
    if findings.track is not None:
        trusted = float((findings.track.trust == Trust.TRUSTED).mean())
        mood = "good" if trusted >= 0.9 else "warn" if trusted >= 0.5 else "bad"
        cards.append((_percent(trusted), "of frames trusted; limb by limb above", mood))
        numbers["trusted_share"] = trusted
    if findings.hull is not None:
        share = float((findings.hull.volume > 0).mean())
        cards.append((_percent(share), "of frames have a visual hull", "good" if share > 0.95 else "warn"))
        numbers["hull_share"] = share
    if findings.silhouettes is not None:
        known = findings.silhouettes.agreement[np.isfinite(findings.silhouettes.agreement)]
        if known.size:
            cards.append((f"{known.mean():.3f}", "agreement of silhouettes with images and other views", ""))
            numbers["silhouette_agreement_iou"] = float(known.mean())
    sigma = _typical_sigma(findings.skeleton)
    if np.isfinite(sigma):
        cards.append((f"{sigma:.2f} mm", "1 sigma of a joint (median), if the template fits", ""))
        numbers["joint_sigma_mm"] = sigma
    page.cards(cards)
    return numbers


def _typical_sigma(skeleton: SkeletonFindings | None) -> float:
    """Return the median standard deviation of the joints, mm, over frames spread evenly; NaN where there is none."""
    if skeleton is None:
        return float("nan")
    some = np.array(skeleton.sigma[:: max(1, len(skeleton.sigma) // _LOOKED_AT)])
    known = some[~np.isnan(some)]
    return float(np.median(known)) if np.isfinite(known).any() else float("nan")


def _truth_section(page: Page, findings: Findings, scores: JointScores) -> None:
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


def _quality_section(page: Page, findings: Findings, curves: MotionCurves | None) -> None:
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


def _cameras(findings: Findings) -> list[str]:
    if findings.silhouettes is not None:
        return findings.silhouettes.names
    return [footage.name for footage in findings.recording.footage]


def _tracking_section(page: Page, findings: Findings) -> None:
    if findings.track is None:
        return
    page.heading("Tracked surface and skeleton")
    middle = findings.frames // 2
    page.note(
        f"Over the cameras' own images, around the subject, frame {middle} "
        f"({_trust_words(findings, middle)}): orange the tracked surface; bones are white where trusted, "
        "orange where doubtful, red where lost."
    )
    sheet = contact_sheet(findings, _cameras(findings), [middle], ("template", "surface"), near=True)
    page.picture(data_uri(sheet), f"all cameras at frame {middle} with the tracked surface")
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


def _silhouette_section(page: Page, findings: Findings) -> None:
    if findings.silhouettes is None:
        return
    page.heading("Silhouettes and hull")
    page.note("Around the subject. Green: silhouette. Blue: outline of the visual hull.")
    shown = np.flatnonzero(_has_images(findings))
    frames = sorted({int(shown[0]), int(shown[len(shown) // 2]), int(shown[-1])}) if len(shown) else [0]
    sheet = contact_sheet(findings, findings.silhouettes.names, frames, ("silhouette", "hull"), near=True)
    page.picture(data_uri(sheet), "silhouettes and hulls")
    rows = []
    for index, name in enumerate(findings.silhouettes.names):
        column, flags = findings.silhouettes.agreement[:, index], findings.silhouettes.flags[:, index]
        known = column[np.isfinite(column)]
        mean = f"{known.mean():.3f}" if known.size else "-"
        found = float((flags & int(MaskFlag.NO_FRAME | MaskFlag.EMPTY | MaskFlag.FULL) == 0).mean())
        contradicted = float((flags & int(MaskFlag.CONTRADICTED) != 0).mean())
        rows.append((name, _percent(found), mean, _percent(contradicted)))
    page.table(("camera", "subject found", "agreement IoU", "contradicted"), rows)


def _angles_section(page: Page, findings: Findings, curves: MotionCurves | None) -> None:
    skeleton = findings.skeleton
    if skeleton is None or curves is None:
        return
    if curves.angles:
        page.heading("Joint angles")
        page.note(
            "Inner angle of each limb joint in degrees, 180 for a straight one; lost frames are left out, doubtful "
            "ones are thin and grey on yellow."
        )
        degrees = np.degrees(np.stack(list(curves.angles.values()), axis=1))
        plot = angle_plot(list(curves.angles), degrees, skeleton.rate_hz, skeleton.trust)
        page.picture(plot, "joint angles over time", still=True)


def _rig_section(page: Page, findings: Findings, curves: MotionCurves | None, cameras: CameraVerdict | None) -> None:
    rig = findings.recording.rig
    if rig is None:
        return
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
