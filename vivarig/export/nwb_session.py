"""What an NWB file says beside the points: animal, day, bones, cameras and their videos."""

from __future__ import annotations

import os
from pathlib import Path

from skeleton.motion_files.nwb import NwbSession
from vivarig.export.motions import joint_edges
from vivarig.results.findings import Findings

__all__ = ["nwb_session", "start_in_words"]

_SPECIES = {"mouse": "Mus musculus", "rat": "Rattus norvegicus", "human": "Homo sapiens"}


def nwb_session(findings: Findings, points: str, target: Path) -> NwbSession:
    """Return what is known of a recording, from recording.toml, the rig and the skeleton."""
    recording = findings.recording
    said = dict(recording.session)
    body = "" if findings.skeleton is None else findings.skeleton.body
    subject: dict[str, str] = {
        key: said[key] for key in ("subject_id", "species", "sex", "age", "weight") if key in said
    }
    if body in _SPECIES:
        subject.setdefault("species", _SPECIES[body])
    if subject and body:
        subject["description"] = f"tracked as '{body}'"
    place = target.resolve().parent
    return NwbSession(
        start=said.get("start"),
        description=said.get("description", f"3D motion capture of {recording.name}"),
        subject=subject,
        people={key: said[key] for key in ("experimenter", "lab", "institution") if key in said},
        edges=joint_edges(findings, points),
        rig=recording.rig,
        videos={
            footage.name: Path(os.path.relpath(footage.source.resolve(), place)).as_posix()
            for footage in recording.footage
            if footage.has_images and footage.source.is_file()
        },
    )


def start_in_words(findings: Findings) -> str:
    """Return what the file says of the day."""
    if "start" in findings.recording.session:
        return f"session of {findings.recording.session['start'].isoformat()}"
    return "start not known, so 1970-01-01 stands in the file: give [session] start in recording.toml"
