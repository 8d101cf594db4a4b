"""Failure drill on the crane sequence, 4 views: blank cameras, a cut to another part, a wrong pose to start from.

Recording: frames 0-59 of the sequence, then a cut to frames 110-139. Three of the four cameras are blank in frames
20 to 39. The tracker is started at frame 10 from a wrong guess: the pose of frame 150, turned by 100 degrees.
"""

from __future__ import annotations

import numpy as np

from benchmarks.crane.runs import CRANE, CraneSubject, crane_observations, frame_errors
from benchmarks.crane.sequence import UP, Crane
from calibration.foundation.arrays import Floats
from calibration.foundation.trust import Trust
from calibration.geometry.transforms import rotation_from_vector
from tracking.fitting.solver import FrameSolver
from tracking.observations.contours import Observation, observe
from tracking.priors.prior import LinearPrior
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.tracker import Tracker

__all__ = ["failure_drill"]

BLANK = range(20, 40)
CUT = 60
OTHER = 110
AFTER = 30
START = 10


def failure_drill(crane: Crane, subject: CraneSubject) -> dict[str, float]:
    """Run the drill, print what happened, return the figures."""
    rig, looks = crane_observations(crane, "4view", 0, CUT)
    looks += crane_observations(crane, "4view", OTHER, OTHER + AFTER)[1]
    truth = np.concatenate([np.arange(CUT), np.arange(OTHER, OTHER + AFTER)])
    for frame in BLANK:
        looks[frame] = _blank(looks[frame], keep=1)
    prior = subject.prior()
    solver = FrameSolver(
        subject.cage_rig, subject.template, rig.packed(), [camera.size for camera in rig], prior, settings=CRANE
    )
    track = Tracker(solver, rig, up=UP).track(
        lambda frame: looks[frame], len(looks), start=START, guess=_wrong_guess(subject, prior)
    )
    errors = np.concatenate(
        [
            frame_errors(crane, subject, track, truth[:CUT])[1],
            frame_errors(crane, subject, track, truth[CUT:], OTHER - CUT)[1],
        ]
    )
    trusted = track.trust == Trust.TRUSTED
    usual = float(np.median(errors[np.isfinite(errors)]))
    seen = np.ones(len(truth), bool)
    seen[list(BLANK)] = False

    def recovery(first: int) -> int:
        """Frames of good data until one is trusted and right."""
        good = np.flatnonzero(trusted[first:] & (errors[first:] < 2 * usual))
        return int(good[0]) if len(good) else len(truth)

    figures = {
        "median_mm": usual,
        "blank_frames_trusted": int(trusted[list(BLANK)].sum()),
        "worst_trusted_mm": float(errors[trusted].max()),
        "worst_trusted_over_median": float(errors[trusted].max() / usual),
        "frames_to_recover_after_start": recovery(START),
        "frames_to_recover_after_blank": recovery(BLANK.stop),
        "frames_to_recover_after_cut": recovery(CUT),
        "trusted_share_of_seen": float(trusted[seen].mean()),
    }
    for name, value in figures.items():
        print(f"{name:<32} {value:.4g}")
    return figures


def _blank(look: Observation, keep: int) -> Observation:
    """Leave only the first ``keep`` cameras something to see."""
    nothing = observe([np.zeros(view.size[::-1], bool) for view in look.views])
    return Observation(look.views[:keep] + nothing.views[keep:])


def _wrong_guess(subject: CraneSubject, prior: LinearPrior) -> tuple[QuadPose, Floats]:
    pose = subject.keys[-2]
    turn = rotation_from_vector(np.deg2rad(100.0) * UP)
    middle = pose.centres.mean(axis=0)
    wrong = QuadPose(turn @ pose.rotations, (pose.centres - middle) @ turn.T + middle)
    return wrong, prior.back(prior.chart.to_vector(wrong.rotations, wrong.centres)[1])
