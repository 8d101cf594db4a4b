"""``vivarig train``: learn a pose prior from motion files, markers, key poses or made-up motions."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from calibration.foundation.errors import InputError
from calibration.foundation.hdf5_files import words_of
from calibration.foundation.result_files import open_results
from calibration.foundation.trust import Trust
from capture.recordings.recording import load_recording
from capture.rhythm import key_frames
from skeleton.actors.actor import build_actor
from skeleton.bodies import BODIES, load_body
from skeleton.bodies.marker_sets import MarkerSet, builtin_markers, load_marker_set
from skeleton.motion_files import CoordinateSeries, JointMotion, MarkerSeries, read_motion
from skeleton.motions import make_motion, motion_names
from tracking.adapting.mesh_subject import teach
from tracking.priors.files import save_prior
from tracking.priors.gplvm import GplvmPrior
from tracking.priors.gplvm_training import GplvmOptions, require_torch, train_gplvm
from tracking.priors.key_poses import load_key_poses, save_key_poses
from tracking.priors.mocap_points import known_points
from tracking.priors.motion_mapping import HUMAN_SEGMENTS
from tracking.priors.picture import draw_latent_space
from tracking.priors.prior import LinearPrior, fit_linear_prior
from tracking.priors.training_poses import (
    TrainingPoses,
    joined,
    mirrored,
    poses_from_markers,
    poses_from_motion,
    poses_from_skeleton,
    reconstruction_error,
)
from tracking.quads.attachment import QuadAttachment, attach_alike, attach_posed_quads, attach_quads
from tracking.quads.body_rig import builtin_attachment
from tracking.quads.oriented_quads import QuadRig, load_quad_rig
from tracking.subjects.mesh_files import mesh_paths, read_mesh
from tracking.subjects.skeleton import load_subject_skeleton
from tracking.subjects.subject import load_subject, save_subject
from vivarig.console.progress import progress_callback
from vivarig.console.reporting import CommandReport
from vivarig.results.findings import load_track
from vivarig.stages.pose_models import train_pose_model
from vivarig.stages.silhouette_rhythm import recording_rhythm

HELP = (
    "Train a pose prior: poses of the subject's quads, from motion files (each quad rides on a segment), from "
    "markers or beads, from key poses, or from made-up motions, become a latent space of 2 to 12 dimensions. Meshes of "
    "the subject itself (--meshes) teach it its poses, the sizes of its quads and how far its outlines stray."
)
EXAMPLE = (
    "  vivarig train --rig human walk.amc run.amc --rate-hz 120 --latent 8 -o human_walk.npz --picture latent.png\n"
    "  vivarig train --rig human 07_*.bvh --unit-mm 56.444 --drop-first -o walks.npz\n"
    "  vivarig train --rig mouse --made-up walk,rear,groom --seed 7 -o mouse.npz\n"
    "  vivarig train --skeleton human walks/ --unit-mm 56.444 --drop-first -o walks.npz --picture modes.png\n"
    "  vivarig train --skeleton mouse mouse_01 mouse_02 --poses 20000 -o mice.npz\n"
    "  vivarig train --meshes key_meshes --subject subjects/anna --up y -o subjects/anna_taught"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "motions", nargs="*", type=Path, help="motion files: .bvh, .amc (joints) or points (.c3d, .trc, .csv, ...)"
    )
    parser.add_argument("--rig", help="mouse, rat, human, a subject folder, or a quad rig .toml")
    parser.add_argument(
        "--skeleton",
        metavar="BODY",
        help="instead of --rig: a pose space of the skeleton of mouse, rat or human, from motion files, recordings or "
        "folders of them; with --poses a library of so many poses",
    )
    parser.add_argument(
        "--meshes", type=Path, metavar="DIR",
        help="instead of --rig: folder of meshes of one subject in several poses, vertex by vertex its template; what "
        "is written is a subject folder",
    )  # fmt: skip
    parser.add_argument("--subject", metavar="DIR", help="with --meshes: its folder, made of one of them")
    parser.add_argument("--body", help="built-in body whose skeleton carries the quads (default: the rig's name)")
    parser.add_argument("-o", "--output", type=Path, required=True, help="prior to write (.npz); with --meshes, folder")
    parser.add_argument("--key-poses", type=Path, action="append", default=[], help="key pose file (.toml)")
    parser.add_argument("--recording", type=Path, help="tracked recording whose frames become key poses")
    parser.add_argument(
        "--frames",
        metavar="A,B,...",
        help="its frames, or auto: those that tell a cycle apart, from the silhouettes (default: all trusted ones)",
    )
    parser.add_argument("--keys", type=int, default=4, help="how many frames auto chooses (default 4; 8 for walks)")
    parser.add_argument("--made-up", metavar="NAMES", help="made-up motions, separated by commas, or 'all'")
    parser.add_argument("--seconds", type=float, default=6.0, help="length of each made-up motion (default 6)")
    parser.add_argument("--latent", type=int, default=8, help="latent dimensions, 2 to 12 (default 8)")
    parser.add_argument("--poses", type=int, help="most training poses, chosen to cover all (default with --rig: 150)")
    parser.add_argument("--inducing", type=int, help="sparse (FITC) form with so many inducing points")
    parser.add_argument("--linear", action="store_true", help="principal components (needs no PyTorch)")
    parser.add_argument("--mirror", action="store_true", help="add each pose reflected left to right")
    parser.add_argument("--step", type=int, default=4, help="use every so many frames of a file (default 4)")
    parser.add_argument(
        "--held-out",
        type=float,
        default=0.2,
        metavar="SHARE",
        help="end of each motion kept aside for the error (default 0.2)",
    )
    parser.add_argument("--restarts", type=int, default=3, help="training restarts (default 3)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the restarts and made-up motions")
    parser.add_argument("--picture", type=Path, help="picture of the latent space with poses (.png, .svg, .pdf)")
    parser.add_argument("--save-poses", type=Path, help="write the training poses as an editable key pose file (.toml)")
    parser.add_argument("--rate-hz", type=float, help="frame rate, for files that do not hold it")
    parser.add_argument(
        "--unit-mm", type=float, help="millimetres per file unit, if not in the file (CMU .bvh: 56.444)"
    )
    parser.add_argument("--up", choices=("x", "y", "z"), help="vertical axis, for files that do not hold it")
    parser.add_argument("--drop-first", action="store_true", help="the first frame of a .bvh is a T-pose, not motion")
    parser.add_argument("--marker-set", type=Path, help="where points sit on the segments (.toml), for files of points")


def run(args: argparse.Namespace) -> CommandReport:
    """Train a prior and write it."""
    if args.meshes is not None:
        return _train_meshes(args)
    if (args.rig is None) == (args.skeleton is None):
        raise InputError("train: give --rig for the tracker's prior or --skeleton for a pose space, one of them")
    if args.skeleton is not None:
        return _train_skeleton(args)
    if not args.linear:
        require_torch()
    if not 0 <= args.held_out < 1:
        raise InputError(f"--held-out must lie from 0 to below 1, got {args.held_out}")
    target = _target(args.rig, args.body)
    rig = target.rig
    train, held_out = _gather(args, target)
    train = train.representative(150 if args.poses is None else args.poses)
    chart = train.chart()
    vectors = train.vectors(chart)
    linear = fit_linear_prior(vectors, args.latent, chart, rig_name=rig.name, quad_names=rig.quad_names)
    lines = [f"{len(train)} training poses of {len(rig)} quads ({chart.dimension} numbers each)"]
    numbers: dict[str, object] = {
        "rig_name": rig.name,
        "quad_names": list(rig.quad_names),
        "poses": len(train),
        "dimension": chart.dimension,
        "latent_dim": args.latent,
        "length_scale_mm": chart.length_scale,
    }
    prior: LinearPrior | GplvmPrior = linear
    if not args.linear:
        options = GplvmOptions(latent_dim=args.latent, restarts=args.restarts, inducing=args.inducing)
        with progress_callback("training") as advance:
            trained = train_gplvm(
                vectors,
                chart,
                options,
                np.random.default_rng(args.seed),
                rig_name=rig.name,
                quad_names=rig.quad_names,
                on_progress=advance,
            )
        prior = trained.prior
        if args.inducing is None and train.segments is not None:
            prior = replace(trained.prior, training_segments=train.segments)
        lines.append(
            f"{args.latent} latent dimensions, log-likelihood {trained.report.log_likelihood:.0f} "
            f"(restarts {', '.join(f'{value:.0f}' for value in trained.report.restarts)})"
        )
        numbers |= {
            "log_likelihood": trained.report.log_likelihood,
            "restarts": list(trained.report.restarts),
            "noise": trained.prior.kernel.noise,
        }
    if held_out is not None:
        for key, one in (("held_out", prior), ("held_out_linear", linear)):
            error = reconstruction_error(one, held_out)
            numbers[key] = {
                "centre_mm": error.centre_mm,
                "rotation_deg": error.rotation_deg,
                "corner_mm": error.corner_mm,
            }
            if key == "held_out" or not args.linear:
                kind = "principal components" if one is linear else "this prior"
                lines.append(
                    f"{len(held_out)} poses kept aside, shown by {kind}: quads {error.centre_mm:.1f} mm and "
                    f"{error.rotation_deg:.1f} deg off, corners {error.corner_mm:.1f} mm (root mean square)"
                )
    save_prior(prior, args.output)
    lines.append(f"prior written to {args.output}")
    if args.picture is not None:
        draw_latent_space(prior, rig, args.picture, sources=train.sources)
        lines.append(f"picture of the latent space in {args.picture}")
    if args.save_poses is not None:
        save_key_poses(train, args.save_poses)
        lines.append(f"training poses in {args.save_poses}")
    return CommandReport(lines, numbers)


def _train_meshes(args: argparse.Namespace) -> CommandReport:
    """Teach a subject its own poses, and write it as a new folder."""
    if args.subject is None or args.rig is not None or args.skeleton is not None:
        raise InputError(
            "train --meshes: wanted --subject FOLDER (of `vivarig subject --mesh`), and no --rig, --skeleton"
        )
    subject = load_subject(args.subject)
    paths = mesh_paths(args.meshes)
    unit_mm, up = float(args.unit_mm or 1.0), str(args.up or "z")
    with progress_callback("key poses") as advance:
        advance(0, len(paths))
        found = teach(subject, [read_mesh(path, unit_mm=unit_mm, up=up)[0] for path in paths], latent=args.latent)
        advance(len(paths), len(paths))
    save_subject(found.subject, args.output)
    sizes, spread = found.subject.sizes, found.subject.template.spread
    numbers = {
        "meshes": len(paths),
        "away_mm": found.away.tolist(),
        "latent_dim": found.subject.prior.latent_dim,
        "sizes": None if sizes is None else sizes.tolist(),
        "spread_mm": None if spread is None else float(np.sqrt(np.mean(spread**2))),
    }
    lines = [
        f"{len(paths)} meshes: the template lies {found.away.mean():.2f} mm from them (worst {found.away.max():.2f})",
        f"prior of {found.subject.prior.latent_dim} dimensions, sizes of {len(subject.cage_rig.quads)} quads, outlines "
        f"stray by {numbers['spread_mm']:.2f} mm",
        f"subject written to {args.output}: name it in recording.toml, or `vivarig track --subject {args.output}`",
    ]
    return CommandReport(lines, numbers)


def _train_skeleton(args: argparse.Namespace) -> CommandReport:
    """Learn a pose space or library; it needs neither PyTorch nor a latent space."""
    reading = {"rate_hz": args.rate_hz, "unit_mm": args.unit_mm, "up": args.up, "drop_first": args.drop_first or None}
    report = train_pose_model(
        args.skeleton, args.motions, args.output, poses=args.poses, picture=args.picture, reading=reading
    )
    if args.inducing is not None:
        report.lines.append(
            "--inducing has no use here: the library of poses itself measures better than a sparse latent model "
            "(docs/reference/pose-spaces.md)"
        )
    return report


@dataclass(frozen=True, eq=False)
class _Target:
    """The quads to train for; with the skeleton that can carry them, unless they come as a bare file."""

    rig: QuadRig
    attachment: QuadAttachment | None


def _target(name: str, body: str | None) -> _Target:
    """Quads of a built-in body, of a subject folder, or of a quad rig file (in a body's rest pose)."""
    path = Path(name)
    if name in BODIES:
        attachment = builtin_attachment(name)
        return _Target(attachment.rig, attachment)
    if (path / "cage_quads.toml").is_file():
        rig = load_quad_rig(path / "cage_quads.toml")
        bones = load_subject_skeleton(path)
        if bones.own is not None:
            return _Target(rig, attach_posed_quads(rig, bones.skeleton, bones.pose))
        return _Target(rig, attach_alike(rig, bones.skeleton, bones.pose, builtin_attachment(bones.body)))
    if not path.is_file():
        raise InputError(
            f"--rig {name}: neither a built-in body ({', '.join(BODIES)}) nor a subject folder of `vivarig subject` "
            "nor a quad rig .toml"
        )
    rig = load_quad_rig(path)
    body = body or (rig.name if rig.name in BODIES else None)
    return _Target(rig, None if body is None else attach_quads(rig, load_body(body)))


def _gather(args: argparse.Namespace, target: _Target) -> tuple[TrainingPoses, TrainingPoses | None]:
    """Training poses, and those kept aside: the end of each motion."""
    sets = [load_key_poses(path, target.rig) for path in args.key_poses]
    if args.recording is not None:
        sets.append(_tracked(args.recording, args.frames, target.rig, args.keys))
    clips: list[TrainingPoses] = []
    mirror: list[TrainingPoses] = []
    if args.motions or args.made_up:
        attachment = target.attachment
        if attachment is None:
            raise InputError(f"rig '{target.rig.name}': which body carries its quads? give --body {'|'.join(BODIES)}")
        clips += [_from_file(path, args, attachment) for path in args.motions]
        clips += _made_up(args, attachment)
    kept = [max(1, round(len(clip) * (1 - args.held_out))) for clip in clips]
    train = [clip.subset(range(count)) for clip, count in zip(clips, kept, strict=True)]
    if args.mirror and target.attachment is not None:
        mirror = [mirrored(target.attachment, clip) for clip in train]
    rest = [clip.subset(range(count, len(clip))) for clip, count in zip(clips, kept, strict=True)]
    rest = [clip for clip in rest if len(clip)]
    if not sets and not train:
        raise InputError("nothing to train on: give motion files, --key-poses, --recording, or --made-up")
    # A hundred poses measure the error well; projecting each takes time.
    return joined(sets + train + mirror), joined(rest).representative(100) if rest else None


def _tracked(recording: Path, frames: str | None, rig: QuadRig, keys: int) -> TrainingPoses:
    """Quads of tracked frames: those asked for, or all that are trusted."""
    track = load_track(recording / "results" / "track.h5")
    trust = track.trust
    rotations, centres = track.quads(np.arange(track.frames))
    # The subject was tracked at its own size; poses are learned at the size of its template.
    centres = centres / float(track.parameters.get("scale", 1.0))
    if track.quad_names != rig.quad_names:
        raise InputError(f"{recording}: tracked with other quads than rig '{rig.name}' has; track it with this subject")
    if frames is None:
        chosen = np.flatnonzero(trust == Trust.TRUSTED)
    elif frames == "auto":
        chosen = np.array(key_frames(recording_rhythm(load_recording(recording)), keys), np.int64)
    else:
        try:
            chosen = np.array([int(word) for word in frames.split(",")], np.int64)
        except ValueError:
            raise InputError(f"--frames: wanted numbers separated by commas, got '{frames}'") from None
        if not ((chosen >= 0) & (chosen < len(trust))).all():
            raise InputError(f"--frames: {recording} has frames 0 to {len(trust) - 1}, got {frames}")
    chosen = chosen[np.isfinite(centres[chosen]).all(axis=(1, 2))]
    if not len(chosen):
        raise InputError(f"{recording}: none of these frames is tracked; run `vivarig track` first, or choose others")
    return TrainingPoses(rig, rotations[chosen], centres[chosen], tuple(f"{recording.name}:{f}" for f in chosen))


def _from_file(path: Path, args: argparse.Namespace, attachment: QuadAttachment) -> TrainingPoses:
    if path.name == "beads.h5":
        return _from_beads(path, args, attachment)
    options = {"rate_hz": args.rate_hz, "unit_mm": args.unit_mm, "up": args.up, "drop_first": args.drop_first or None}
    motion = read_motion(path, **options)
    if isinstance(motion, JointMotion):
        if attachment.skeleton.name != "human":
            raise InputError(f"{path}: files of joint rotations are mapped to the human body only; give points instead")
        return poses_from_motion(attachment, motion, HUMAN_SEGMENTS, path.name, step=args.step)
    if isinstance(motion, CoordinateSeries):
        raise InputError(f"{path}: holds named coordinates; give joint rotations (.bvh, .amc) or points")
    markers: MarkerSeries = motion if motion.up in ("z", "") else motion.with_z_up()
    marker_set = load_marker_set(args.marker_set) if args.marker_set else None
    if marker_set is None and not set(builtin_markers(attachment.skeleton.name).names) & set(markers.names):
        marker_set = known_points(attachment.skeleton, markers.names)
    return poses_from_markers(attachment, markers, path.name, marker_set=marker_set, step=args.step)


def _from_beads(path: Path, args: argparse.Namespace, attachment: QuadAttachment) -> TrainingPoses:
    """X-ray beads of `vivarig xray triangulate`; by default named as those of the built-in body."""
    with open_results(path, stage="beads") as file:
        names = words_of(file["names"])
        beads = MarkerSeries(names, file["filtered"][:], float(file.attrs["rate_hz"]), up="z")
    if args.marker_set:
        marker_set = load_marker_set(args.marker_set)
    else:
        known = build_actor(attachment.skeleton.name).implanted_beads
        carriers = tuple(attachment.skeleton.joint_names[segment] for segment in known.segments)
        # A bead sits in its bone: only the measurement and the body's own shape make it stray.
        marker_set = MarkerSet(known.names, carriers, known.offsets, np.full(len(known.names), 0.5))
    return poses_from_markers(attachment, beads, path.parent.parent.name, marker_set=marker_set, step=args.step)


def _made_up(args: argparse.Namespace, attachment: QuadAttachment) -> list[TrainingPoses]:
    if not args.made_up:
        return []
    skeleton = attachment.skeleton
    wanted = motion_names(skeleton) if args.made_up == "all" else tuple(args.made_up.split(","))
    clips = []
    for number, name in enumerate(wanted):
        rng = np.random.default_rng([args.seed, number])
        motion = make_motion(skeleton, name.strip(), rate_hz=30.0, rng=rng, seconds=args.seconds)
        clips.append(poses_from_skeleton(attachment, skeleton.forward(motion.coordinates), name.strip()))
    return clips
