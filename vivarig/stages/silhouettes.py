"""Silhouettes: the subject cut out of the videos, as a whole or in parts.

In parts, the models are learnt once from the whole recording, then any frames are cut out with them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibration.cameras.rig import save_rig
from calibration.foundation.errors import InputError
from calibration.foundation.result_files import open_results, read_parameters
from calibration.foundation.spans import Span
from capture.recordings.mask_copying import copy_masks
from capture.recordings.masks import MaskFlag, read_agreement, read_flags
from capture.recordings.recording import Recording
from capture.recordings.video import probe
from capture.silhouettes import Cleaning, ModelOptions, segment_recording
from capture.silhouettes.plausible import hull_volume, implausible, impossible_hull, low_agreement, mask_figures
from capture.silhouettes.segment import SilhouetteReport, check_frames, learn_model, learn_models, subjects_of
from capture.silhouettes.sheets import contact_sheet
from capture.silhouettes.subjects.subject_recordings import drop_subjects, split_subjects, subject_recordings
from vivarig.console.progress import progress_callback
from vivarig.console.reporting import CommandReport
from vivarig.jobs.first_looks import PHASE, Looked, look_frames
from vivarig.jobs.free_memory import give_back
from vivarig.jobs.job import Job
from vivarig.jobs.seen_looks import frames_to_keep, keep_seen, seen_lent
from vivarig.jobs.seen_shown import frames_to_show, keep_shown
from vivarig.results.camera_check import judge_cameras_once
from vivarig.stages.options import SilhouetteOptions

__all__ = ["check_sheet", "extract", "join", "learn", "look", "prepare", "run", "summary", "uneven_footage", "work"]

_SHEETS = (".png", ".jpg", ".jpeg")


def model_options(options: SilhouetteOptions) -> ModelOptions:
    """Return how silhouettes are wanted."""
    cleaning = (
        Cleaning() if options.threshold is None else Cleaning(low=0.45 * options.threshold, high=options.threshold)
    )
    return ModelOptions(
        options.model,
        cleaning,
        options.shadow_floor,
        options.repair,
        options.margin_px,
        options.subjects,
        options.matte,
    )


def run(recording: Recording, options: SilhouetteOptions, workers: int | None = None) -> CommandReport:
    """Cut out a whole recording in this process, on so many threads."""
    check_sheet(options)
    check_frames(recording, options.start, options.stop)
    drop_subjects(recording)
    chosen = model_options(options)
    with progress_callback("learning silhouettes, cameras") as on_learnt:
        models = learn_models(recording, chosen, workers=workers, on_progress=on_learnt)
    give_back()  # of large images that is more than all that follows needs
    with progress_callback("silhouettes") as on_progress:
        report = segment_recording(
            recording,
            options=chosen,
            start=options.start,
            stop=options.stop,
            models=models,
            workers=workers,
            on_progress=on_progress,
        )
    return summary(options, recording, report, workers)


def check_sheet(options: SilhouetteOptions) -> None:
    """Refuse a contact sheet of an unknown kind before the work begins."""
    if options.sheet is not None and options.sheet.suffix.lower() not in _SHEETS:
        raise InputError(f"--sheet {options.sheet}: wanted a file name that ends in {', '.join(_SHEETS)}")


def learn(job: Job, camera: int, looked: Looked) -> None:
    """Learn one of the light cameras by itself; kept for `prepare`.

    Images that ``looked`` asks for, and those that the report shows, are kept, too.
    """
    options = model_options(job.options(SilhouetteOptions))
    seen = learn_model(job.recording, options, camera, [*frames_to_keep(job, looked), *frames_to_show(job)[camera]])
    if seen is not None:
        filmed, taken = seen
        keep_seen(job, looked, camera, taken)
        keep_shown(job, camera, filmed)


def prepare(job: Job, threads: int, looked: Looked) -> object:
    """Learn the models."""
    return learn_models(job.recording, model_options(job.options(SilhouetteOptions)), workers=threads)


def work(job: Job, phase: str, span: Span) -> None:
    """Cut out the frames of one part."""
    options = job.options(SilhouetteOptions)
    with progress_callback(f"silhouettes {span}") as on_progress:
        segment_recording(
            job.recording,
            job.path("silhouettes", phase, span),
            model_options(options),
            start=options.start + span.first,
            stop=options.start + span.stop,
            models=job.prepared("silhouettes"),
            workers=1,
            on_progress=on_progress,
        )


def look(job: Job, span: Span, parts: int) -> None:
    """Cut out the frames of one part that are looked at before all others, where so many parts are."""
    options = job.options(SilhouetteOptions)
    frames = [options.start + frame for frame in look_frames(job, span, parts)]
    path, settings = job.path("silhouettes", PHASE, span), model_options(options)
    with seen_lent(job, [span]):
        segment_recording(
            job.recording, path, settings, start=frames[0], stop=frames[-1] + 1, only=frames,
            models=job.prepared("silhouettes"), workers=1,
        )  # fmt: skip


def extract(job: Job, span: Span) -> None:
    """Cut one part out of the finished silhouettes, for the stages that read parts."""
    path = job.path("silhouettes", "masks", span)
    copy_masks([(job.recording.results / "silhouettes.h5", span)], path, {})


def join(job: Job) -> CommandReport:
    """Put the parts together."""
    options = job.options(SilhouetteOptions)
    drop_subjects(job.recording)
    target = job.recording.results / "silhouettes.h5"
    spans = job.spans("silhouettes")
    pieces = [(job.path("silhouettes", "masks", span), Span(0, len(span))) for span in spans]
    area = copy_masks(pieces, target, {"start": options.start}, look=False)
    with open_results(target, stage="silhouettes") as file:
        cameras = read_parameters(file)["cameras"]
    models = tuple(str(camera["model"]) for camera in cameras.values())
    report = SilhouetteReport(tuple(cameras), models, read_agreement(target), read_flags(target), area)
    return summary(options, job.recording, report)


def summary(
    options: SilhouetteOptions, recording: Recording, report: SilhouetteReport, workers: int | None = None
) -> CommandReport:
    """Say how the silhouettes came out, tell subjects apart and draw them if asked."""
    frames = len(report.flags)
    lines = [f"{frames} frames, {len(report.names)} cameras: results/silhouettes.h5"]
    found = (report.flags & (MaskFlag.NO_FRAME | MaskFlag.EMPTY | MaskFlag.FULL)) == 0
    contradicted = (report.flags & MaskFlag.CONTRADICTED) != 0
    means = [float(np.nanmean(column)) if np.isfinite(column).any() else float("nan") for column in report.agreement.T]
    width = max(map(len, report.names))
    figures = mask_figures(recording.results / "silhouettes.h5")
    for index, name in enumerate(report.names):
        agreement = "no rig" if np.isnan(means[index]) else f"agreement {means[index]:.3f} IoU"
        lines.append(
            f"  {name:<{width}}  {report.models[index]:<8} found in {100 * found[:, index].mean():5.1f} % of frames, "
            f"{100 * figures.share[index]:.2g} % of the image in {figures.pieces[index]:.0f} "
            f"{'piece' if figures.pieces[index] == 1 else 'pieces'}, {agreement}, "
            f"contradicted in {100 * contradicted[:, index].mean():.1f} %"
        )
    cameras = judge_cameras_once(recording)
    mended = recording.results / "mended_rig.toml"
    if cameras.mended is not None:
        save_rig(cameras.mended, mended)
    elif recording.rig_file != mended:
        mended.unlink(missing_ok=True)  # of a run before
    lines += [f"  {line}" for line in cameras.lines]
    lines += [f"  note: {text}" for text in uneven_footage(recording)]
    if options.sheet is not None:
        contact_sheet(recording.from_frame(options.start), options.sheet)
        lines.append(f"  contact sheet: {options.sheet}")
    share = float(found.mean())
    numbers = {
        "frames": frames,
        "cameras": list(report.names),
        "models": list(report.models),
        "found_share": found.mean(axis=0),
        "agreement_iou": means,
        "contradicted_share": contradicted.mean(axis=0),
        "mean_area_px": report.area.mean(axis=0),
        "image_share": figures.share,
        "pieces": figures.pieces,
        "sides_touched": figures.sides,
        "camera_checks": cameras.numbers,
    }
    few = "" if share >= 0.5 else f"the subject was found in {100 * share:.0f} % of the images only"
    count = subjects_of(recording, model_options(options))
    wrong = implausible(figures) or low_agreement(report.names, means)
    if recording.rig is not None and len(report.names) > 2:
        volume = hull_volume(recording.results / "silhouettes.h5", recording.rig)
        numbers["hull_ml"] = volume / 1e3
        lines.append(f"  common hull: {volume / 1e3:.4g} ml in the median")
        wrong = wrong or impossible_hull(volume, recording.subject, count, figures)
    reason = "; ".join(text for text in (few, wrong, cameras.reason) if text)
    if count > 1:
        said, numbers["subjects"] = _told_apart(recording, count, workers)
        lines += said
    return CommandReport(lines, numbers, not reason, reason)


def uneven_footage(recording: Recording) -> list[str]:
    """Say where cameras do not fit together: one that ends before the others, one of another frame rate."""
    light = [recording.footage[index] for index in recording.of_kind("light")]
    found = {footage.name: probe(footage.source) for footage in light}
    ends = {footage.name: found[footage.name].frames - round(footage.offset_frames) for footage in light}
    least, most = min(ends.values()), max(ends.values())
    said = []
    if least < most:
        first = [name for name, end in ends.items() if end == least]
        said.append(
            f"{', '.join(first)} ends after {least} frames, the longest camera after {most}: the last {most - least} "
            "are left out"
        )
    rates = {name: info.rate_hz for name, info in found.items() if info.rate_hz is not None}
    stated = recording.rate_hz
    other = [name for name, rate in rates.items() if not 0.98 < rate / stated < 1.02]
    if other:
        said.append(
            f"recording.toml says rate_hz = {stated:g}, the video of {', '.join(other)} {rates[other[0]]:g}: speeds "
            "and times follow recording.toml; right only if the file's own rate is that of playing, not of filming"
        )
    if rates and max(rates.values()) > 1.01 * min(rates.values()):
        words = ", ".join(f"{name} {rate:g}" for name, rate in rates.items())
        said.append(
            f"the video files name different frame rates (Hz: {words}); frames are paired by number, so results are "
            "right only if all cameras took them at the same moments"
        )
    return said


def _told_apart(recording: Recording, count: int, workers: int | None) -> tuple[list[str], list[dict[str, Any]]]:
    """Make a recording of each subject, with its own silhouettes; return what to say of each, in words and numbers."""
    with progress_callback("subjects") as on_progress:
        split = split_subjects(recording, count, workers=workers, on_progress=on_progress)
    lines, numbers = [], []
    for subject, one in enumerate(subject_recordings(recording)):
        segment_recording(one, workers=workers)
        found, touching = (float(column[:, subject].mean()) for column in (split.found, split.touching))
        unsure = np.flatnonzero(split.unsure[:, subject]).tolist()
        lines.append(
            f"  subject {subject + 1}: seen in {100 * found:.1f} % of frames, touching another in "
            f"{100 * touching:.1f} %, identity unsure from {len(unsure)} frames on{_some(unsure)}: "
            f"results/{one.folder.name}"
        )
        numbers.append({"found_share": found, "touching_share": touching, "unsure_frames": unsure})
    return lines, numbers


def _some(frames: list[int]) -> str:
    return f" ({', '.join(map(str, frames[:5]))}{', ...' if len(frames) > 5 else ''})" if frames else ""
