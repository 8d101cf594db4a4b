"""``vivarig evaluate``: score results against truth, the HumanEva way."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from calibration.foundation.errors import InputError
from calibration.foundation.trust import Trust
from capture.recordings.humaneva_folder import open_sequence
from capture.recordings.recording import Recording, load_recording
from skeleton.analysis.humaneva_sets import SETS, frames_of_set
from skeleton.analysis.scoring import JointScores, score_joints
from tracking.priors.cmu import load_cmu
from vivarig import api
from vivarig.commands.stage_arguments import real
from vivarig.console.reporting import CommandReport
from vivarig.evaluation.beads import bead_errors
from vivarig.evaluation.humaneva_like import ACTIONS
from vivarig.evaluation.humaneva_runs import run_action, table_lines, table_numbers
from vivarig.evaluation.humaneva_scores import humaneva_scores
from vivarig.evaluation.scores import (
    JointSeries,
    cage_estimate,
    common_joints,
    load_estimate,
    load_joint_map,
    load_truth,
    score_lines,
    write_score_plot,
    write_score_table,
)
from vivarig.evaluation.submission import write_submission
from vivarig.stages.options import SilhouetteOptions

HELP = (
    "Score a recording's skeleton against truth: mean 3D joint error in mm over all frames, doubtful and lost ones "
    "included, with median, SD, per-joint and per-frame tables. Truth is the recording's truth.h5, a C3D, TRC or CSV "
    "file, X-ray beads, or a sequence in HumanEva's folder layout."
)
EXAMPLE = """  vivarig evaluate mouse_07
  vivarig evaluate walk --truth walk.c3d --map joints.toml --csv errors.csv --plot errors.png
  vivarig evaluate s4 --humaneva HumanEva_II S4 Combo_4 --mode relative --set 1
  vivarig evaluate rat_03 --truth beads
  vivarig evaluate he_like --humaneva-like cmu"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recording", type=Path, help="recording folder with results/skeleton.h5")
    parser.add_argument("--truth", metavar="FILE", help="truth file, or the word 'beads' (default: truth.h5)")
    parser.add_argument("--map", type=Path, metavar="TOML", help='lines of: truth_joint = "estimated_joint"')
    parser.add_argument(
        "--offset", type=real(), default=0.0, metavar="FRAMES", help="truth frame at the recording's first frame"
    )
    parser.add_argument("--align", choices=("none", "rigid", "similarity"), default="none", help="per frame; stated")
    parser.add_argument("--relative", metavar="JOINT", help="positions relative to this joint, e.g. pelvis")
    parser.add_argument(
        "--humaneva", nargs=3, metavar=("ROOT", "SUBJECT", "ACTION"), help="official error against this sequence"
    )
    parser.add_argument(
        "--humaneva-like", type=Path, metavar="CMU", help="film, run and score a set in HumanEva's layout made of the "
        "CMU motions in this folder (poses_15hz.npz); RECORDING is the folder to do it in. Its images are rendered",
    )  # fmt: skip
    parser.add_argument(
        "--mode", choices=("absolute", "relative", "relative_as_coded"), default="absolute",
        help="of the official HumanEva error",
    )  # fmt: skip
    parser.add_argument(
        "--first-image", type=int, default=1, metavar="N", help="HumanEva image number of the recording's frame 0"
    )
    parser.add_argument("--set", dest="frame_set", choices=SETS, help="only the frames of this HumanEva set")
    parser.add_argument(
        "--pck", type=real(above=0), default=None, metavar="MM", help="also the share of joints within MM"
    )
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the errors of every frame and joint")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the errors (.png, .pdf, .svg)")
    parser.add_argument("--submission", type=Path, metavar="XML", help="write HumanEva's submission file")


def run(args: argparse.Namespace) -> CommandReport:
    """Score and report."""
    _check_options(args)
    if args.humaneva_like is not None:
        return _rendered_set(args)
    recording = load_recording(args.recording)
    if args.truth == "beads":
        return _beads(recording)
    estimate = load_estimate(recording.results)
    submitted = [] if args.submission is None else _submit(args, recording, estimate)
    if submitted and args.humaneva is not None and open_sequence(*args.humaneva).truth is None:
        return CommandReport([*submitted, "not scored: HumanEva withholds the truth of this sequence"])
    if args.humaneva is not None:
        scores = _humaneva(args, estimate)
        lines = score_lines(f"HumanEva, {args.mode}", scores)
        numbers = scores.numbers()
    else:
        scores, lines, numbers = _plain(args, recording, estimate)
    if not scores.valid.any():
        raise InputError(
            f"no frame can be scored: of {len(scores.valid)} frames of the results none has a truth for all joints; is "
            "it the truth of this recording, and does it begin with it (--offset, --first-image)?"
        )
    if args.pck is not None:
        lines.append(f"  PCK at {args.pck:g} mm: {100 * scores.pck(args.pck):.1f} %")
        numbers["pck"] = scores.pck(args.pck)
    trusted = estimate.trust == Trust.TRUSTED
    both = trusted & scores.valid
    of_trusted = float(np.nanmean(scores.per_frame[both])) if both.any() else float("nan")
    share = float(trusted.mean() if args.frame_set is None else trusted[scores.valid].mean())
    lines.append(f"  trusted frames: {100 * share:.1f} %, their mean error {of_trusted:.2f} mm")
    numbers |= {"trusted_share": share, "trusted_mean_mm": of_trusted}
    lines += submitted
    if args.csv is not None:
        write_score_table(args.csv, scores, estimate.trust)
        lines.append(f"wrote {args.csv}")
    if args.plot is not None:
        write_score_plot(args.plot, scores, estimate.trust, recording.name)
        lines.append(f"wrote {args.plot}")
    return CommandReport(lines, numbers)


def _check_options(args: argparse.Namespace) -> None:
    """Refuse options that the wanted error has no place for, rather than leave them aside."""
    if args.humaneva is None:
        given = [("--set", args.frame_set), ("--mode", None if args.mode == "absolute" else args.mode)]
        way = "belongs to --humaneva ROOT SUBJECT ACTION"
    else:
        aligned = None if args.align == "none" else args.align
        given = [("--truth", args.truth), ("--map", args.map), ("--align", aligned), ("--relative", args.relative),
                 ("--offset", args.offset or None)]  # fmt: skip
        way = "is no part of the official error of --humaneva; give the C3D file with --truth instead"
    if args.humaneva_like is not None:
        others = ("--humaneva", args.humaneva), ("--csv", args.csv), ("--plot", args.plot), ("--pck", args.pck)
        given += [*others, ("--truth", args.truth), ("--submission", args.submission)]
        way = "is not for --humaneva-like, which scores a set of its own"
    if args.truth == "beads":
        given += [("--csv", args.csv), ("--plot", args.plot), ("--pck", args.pck)]
        way = "is not for X-ray beads; --json FILE writes their errors"
    for name, value in given:
        if value is not None:
            raise InputError(f"{name} {way}")


def _submit(args: argparse.Namespace, recording: Recording, estimate: JointSeries) -> list[str]:
    subject, action = args.humaneva[1:] if args.humaneva is not None else (recording.name, "")
    dataset = "HumanEvaII" if (subject, action) in (("S2", "Combo_1"), ("S4", "Combo_4")) else "HumanEvaI"
    first = args.first_image + estimate.first
    write_submission(args.submission, subject, action, estimate, first_frame=first, dataset=dataset)
    return [f"wrote {args.submission}: images {first} to {first + len(estimate.positions) - 1}"]


def _plain(
    args: argparse.Namespace, recording: Recording, estimate: JointSeries
) -> tuple[JointScores, list[str], dict[str, object]]:
    path = Path(args.truth) if args.truth else recording.folder / "truth.h5"
    if not path.is_file():
        raise InputError(f"{path}: no such truth file; name one with --truth")
    truth, joint_map = load_truth(path), load_joint_map(args.map)

    def score(series: JointSeries) -> JointScores:
        names, e, t = common_joints(series, truth, joint_map, offset_frames=args.offset)
        return score_joints(names, e, t, relative_to=args.relative, alignment=args.align)

    scores = score(estimate)
    lines, numbers = score_lines("skeleton", scores), scores.numbers()
    if truth.turned_from:
        lines.append(f"  truth turned from {truth.turned_from} up, as its file says, to z up")
    cage = cage_estimate(recording.results)
    if cage is not None and set(cage.names) & set(truth.names):
        beside = score(cage)
        lines += score_lines("joints carried by the cage", beside)
        numbers["cage"] = beside.numbers()
    return scores, lines, numbers


def _humaneva(args: argparse.Namespace, estimate: JointSeries) -> JointScores:
    root, subject, action = args.humaneva
    scores = humaneva_scores(
        open_sequence(root, subject, action), estimate, mode=args.mode, first_image=args.first_image
    )
    if args.frame_set is None:
        return scores
    chosen = frames_of_set(subject, action, args.frame_set)
    images = args.first_image + estimate.first + np.arange(len(scores.valid))
    inside = (images >= chosen.first) & (images <= chosen.last)
    if not inside.any():
        raise InputError(
            f"no frame is in set '{args.frame_set}' (images {chosen.first} to {chosen.last}); is --first-image right?"
        )
    return replace(scores, valid=scores.valid & inside)


def _rendered_set(args: argparse.Namespace) -> CommandReport:
    """Film what is missing of the rendered set, run and score it."""
    folder: Path = args.recording
    table = load_cmu(args.humaneva_like)

    def run_mixture(place: Path) -> object:
        return api.run(place, until="skeleton", silhouettes=SilhouetteOptions(model="mixture"))

    scores = {name: run_action(table, name, folder, run_mixture) for name in ACTIONS}
    return CommandReport(table_lines(scores), table_numbers(scores))


def _beads(recording: Recording) -> CommandReport:
    errors = bead_errors(recording)
    lines = [
        f"skin against bone: {errors.mean_mm:.3f} mm mean over {len(errors.names)} beads, {errors.frames} frames "
        "(distance of each X-ray bead from where the markerless skeleton carries it)"
    ]
    lines += [f"  {joint:<24} {mm:.3f} mm" for joint, mm in errors.per_joint().items()]
    lines.append("by bead:")
    lines += [f"  {name:<24} {segment:<16} {mm:.3f} mm" for name, segment, mm in errors.rows()]
    return CommandReport(lines, errors.numbers())
