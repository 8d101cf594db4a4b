"""The texture term: the samples tracked with and without the marks that their images show on the skin.

    python -m benchmarks.texture [--frames 50] [--samples mouse,human]

Silhouettes as `vivarig silhouettes` cuts them out, size estimated, built-in templates and priors; the actors that were
filmed are skinned, with lengths and girths of their own. Twist is the turn about its own axis, slide the shift along
it, that is left between the tracked and the true skin of a segment; the part of both that changes over time is given
beside, for no texture tells what is wrong in all frames alike.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np

from benchmarks.measuring.recording_cuts import SAMPLES
from calibration.foundation.arrays import Floats
from calibration.foundation.hdf5_files import words_of
from calibration.geometry.transforms import fit_rigid, vector_from_rotation
from capture.recordings.masks import read_masks
from capture.recordings.recording import load_recording
from capture.recordings.video import read_frames
from capture.silhouettes.segment import segment_recording
from skeleton.actors.actor import build_actor
from tracking.adapting.scale_search import find_scale_and_poses, make_solver
from tracking.fitting.markers import carried_points
from tracking.observations.contours import observe
from tracking.observations.feature_tracks import FeatureTracks, follow
from tracking.sequence.track import Track
from tracking.sequence.tracker import Tracker
from tracking.subjects.subject import Subject, load_subject, scaled_subject

UP = np.array([0.0, 0.0, 1.0])
FEWEST = 25
"""Vertices that a segment must have for its turn to mean something."""


def segment_errors(body: str, vertices: Floats, truth: Path) -> dict[str, float]:
    """Return mean and changing part of twist, degrees, and slide, mm, over the segments of a body.

    Args:
        body: built-in body.
        vertices: (T, V, 3) tracked skin, mm.
        truth: file of the recording.
    """
    actor = build_actor(body)
    with h5py.File(truth) as file:
        skin, joints = (
            file[name][: len(vertices)].astype(np.float64) for name in ("skin/vertices", "joints/positions")
        )
    twists, slides = [], []
    for index in range(len(actor.skeleton.joint_names)):
        own = np.flatnonzero((actor.segments[:, 0] == index) & (actor.weights[:, 0] > 0.6))
        if len(own) < FEWEST:
            continue
        twist, slide = np.empty(len(vertices)), np.empty(len(vertices))
        for frame in range(len(vertices)):
            # From its joint to the middle of its skin: the segment's own direction
            axis = skin[frame, own].mean(axis=0) - joints[frame, index]
            axis /= np.linalg.norm(axis)
            away = fit_rigid(skin[frame, own], vertices[frame, own])
            twist[frame] = np.degrees(vector_from_rotation(away.rotation) @ axis)
            slide[frame] = (vertices[frame, own] - skin[frame, own]).mean(axis=0) @ axis
        twists.append(twist)
        slides.append(slide)
    return {
        "twist_deg": float(np.abs(twists).mean()),
        "twist_change_deg": float(np.std(twists, axis=1).mean()),
        "slide_mm": float(np.abs(slides).mean()),
        "slide_change_mm": float(np.std(slides, axis=1).mean()),
    }


def scores(subject: Subject, track: Track, truth: Path) -> dict[str, float]:
    """Return the errors of a track, mm and degrees."""
    vertices = np.array([subject.cage_rig.deform(subject.template.binding, fit.pose) for fit in track.fits if fit])
    joints = carried_points(subject.cage_rig, subject.joint_binding, track.rotations, track.centres)
    with h5py.File(truth) as file:
        skin = file["skin/vertices"][: len(vertices)].astype(np.float64)
        named = {name: k for k, name in enumerate(words_of(file["landmarks/names"]))}
        places = file["landmarks/positions"][: len(vertices)]
        marker_names = {name: k for k, name in enumerate(words_of(file["markers/names"]))}
        spots = file["markers/positions"][: len(vertices)]
    common = [(k, named[name]) for k, name in enumerate(subject.joint_names) if name in named]
    marked = [
        (int(vertex), marker_names[name])
        for name, vertex in zip(subject.marker_names, subject.marker_vertices, strict=True)
        if name in marker_names
    ]
    away = vertices - skin
    return {
        "joint_mm": float(np.mean([np.linalg.norm(joints[:, a] - places[:, b], axis=1) for a, b in common])),
        "marker_mm": float(np.mean([np.linalg.norm(vertices[:, a] - spots[:, b], axis=1) for a, b in marked])),
        "vertex_mm": float(np.linalg.norm(away, axis=-1).mean()),
        "vertex_change_mm": float(np.linalg.norm(away - away.mean(axis=0), axis=-1).mean()),
        **segment_errors(subject.body, vertices, truth),
    }


def run(name: str, frames: int) -> dict[str, dict[str, float]]:
    """Track a sample both ways."""
    recording = load_recording(SAMPLES / name)
    rig = recording.need_rig()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "silhouettes.h5"
        segment_recording(recording, path, stop=frames)
        masks = [read_masks(path, camera) for camera in rig.names]
    by_frame = [[camera[frame] for camera in masks] for frame in range(frames)]
    looks = [observe(views) for views in by_frame]
    plain = load_subject(name)
    scale, found = find_scale_and_poses(plain, rig, looks.__getitem__, [0, frames - 1], up=UP)
    subject = scaled_subject(plain, scale)
    result = {}
    for way in ("silhouettes", "texture"):
        begun = time.process_time()
        marks: FeatureTracks | None = None
        if way == "texture":
            streams = [read_frames(one.source, 0, frames, gray=True) for one in recording.footage]
            marks = follow(([next(s)[1] for s in streams], views) for views in by_frame)
        followed = time.process_time() - begun
        track = Tracker(make_solver(subject, rig), rig).track(
            looks.__getitem__, frames, start=0, guess=(found[0].pose, found[0].latent), texture=marks
        )
        spent = time.process_time() - begun
        result[way] = {
            **scores(subject, track, SAMPLES / name / "truth.h5"),
            "processor_ms": 1e3 * spent / frames,
            "following_ms": 1e3 * followed / frames,
        }
    return result


def main() -> None:
    """Run, print the table and the JSON line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", type=int, default=50)
    parser.add_argument("--samples", default="mouse,human")
    args = parser.parse_args()
    numbers = {name: run(name, args.frames) for name in args.samples.split(",")}
    for name, ways in numbers.items():
        print(f"{name}, {args.frames} frames: silhouettes only, with texture")
        for key in ways["silhouettes"]:
            print(f"  {key:<18} {ways['silhouettes'][key]:9.3f} {ways['texture'][key]:9.3f}")
    print(json.dumps(numbers))


if __name__ == "__main__":
    main()
