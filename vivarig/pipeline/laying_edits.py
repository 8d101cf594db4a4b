"""Lay the edits of a recording over what its stages made."""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Ints
from capture.recordings.masks import first_frame, mask_cameras
from capture.recordings.recording import Recording
from vivarig.edits.edit_file import Drop, Edits, Lost, Stroke
from vivarig.mending.silhouettes import mend_hulls, mend_silhouettes
from vivarig.mending.unedited import set_aside
from vivarig.track_stage.track_again import track_again

__all__ = ["apply_edits"]


def apply_edits(recording: Recording, edits: Edits) -> list[str]:
    """Lay edits over results that are as made; return what was done, in words.

    What a stage made is moved aside first, so that a run that is killed here leaves it whole.
    """
    results = recording.results
    first = first_frame(results / "silhouettes.h5")
    _, frames = mask_cameras(results / "silhouettes.h5")
    said = _beyond(edits, first, frames)
    rows: Ints = np.zeros(0, np.int64)
    if edits.touches_silhouettes:
        raw = set_aside(results, "silhouettes.h5")
        touched = mend_silhouettes(raw, results / "silhouettes.h5", edits, first)
        rows = np.unique(np.array([row for _, row in touched], dtype=np.int64))
        said.append(f"{len(touched)} silhouettes changed in {len(rows)} frames")
        if (results / "hull.h5").is_file():
            raw = set_aside(results, "hull.h5")
            mend_hulls(raw, results / "hull.h5", results / "silhouettes.h5", recording.need_rig(), rows)
    if edits.touches_track and (results / "track.h5").is_file():
        raw = set_aside(results, "track.h5")
        spans = track_again(recording, raw, results / "track.h5", results / "silhouettes.h5", edits, rows, first)
        if spans:
            words = ", ".join(f"{span.first + first} to {span.stop - 1 + first}" for span in spans[:5])
            said.append(f"tracked again: frames {words}{', ...' if len(spans) > 5 else ''}")
        if edits.lost:
            said.append(f"{len(edits.lost)} {'stretches' if len(edits.lost) > 1 else 'stretch'} lost as said")
    return said


def _beyond(edits: Edits, first: int, frames: int) -> list[str]:
    long: list[Stroke | Drop | Lost] = [*edits.masks, *edits.drops, *edits.lost]
    spans = [(one.first, one.last) for one in long] + [(one.frame, one.frame) for one in edits.key_poses]
    count = sum(last < first or start >= first + frames for start, last in spans)
    there = f"frames {first} to {first + frames - 1}"
    return [f"{count} edits lie outside of {there} and are left aside"] if count else []
