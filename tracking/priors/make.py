"""Make the built-in priors (needs the extra ``train``)::

    python -m tracking.priors.make mouse rat
    python -m tracking.priors.make human --cmu FOLDER     # of the table of CMU poses

Those of the rodents are trained on made-up motions of the built-in body and on their mirror images; never on the kind
of motion that the body's sample recording shows, nor on its seeds, so that a score on a sample is a score on something
new. That of the human is trained on captured motion (`tracking.priors.captured`).

The quads here are one per joint and end point: the prior is one of the skeleton's poses, and a subject's own quads
take it over (`tracking.priors.scaling`).
"""

from __future__ import annotations

import argparse
import logging
from dataclasses import replace
from pathlib import Path

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from skeleton.bodies import BODIES, load_body
from skeleton.motions import make_motion, motion_names
from skeleton.tree.joint_tree import Skeleton
from tracking.priors.captured import train_captured
from tracking.priors.cmu import ACKNOWLEDGEMENT, HELD_OUT, load_cmu
from tracking.priors.files import builtin_prior_path, save_prior
from tracking.priors.gplvm import GplvmPrior
from tracking.priors.gplvm_training import GplvmOptions, train_gplvm
from tracking.priors.prior import fit_linear_prior
from tracking.priors.training_poses import TrainingPoses, joined, mirrored, poses_from_skeleton, reconstruction_error
from tracking.quads.attachment import QuadAttachment, attach_quads
from tracking.quads.oriented_quads import QuadRig, Region

__all__ = ["LEFT_OUT", "TEST_SEED", "TRAINING_SEEDS", "joint_quads", "made_up_poses", "train_builtin"]

TRAINING_SEEDS = (70101, 70102, 70103)
TEST_SEED = 70999
#: The motion of each body's sample recording.
LEFT_OUT = {"mouse": "explore", "rat": "walk"}
LATENT_DIM = 14
POSES = 300
"""Training poses in all; of the rat 200 of the motions and 200 of the postures, so that its walk is not crowded out.
The real mouse, which sits, was found better (fewer heads turned) with poses chosen from both together."""
POSTURES = ("postures",) * 3
SECONDS, RATE_HZ = 8.0, 15.0

_log = logging.getLogger(__name__)


def joint_quads(skeleton: Skeleton) -> QuadRig:
    """One square quad at each joint and at each end of the body, as wide as half its bone."""
    rest = skeleton.forward(skeleton.rest()).positions[0]
    inner = {int(parent) for parent in skeleton.parents if parent >= 0}
    places: dict[str, tuple[Floats, float]] = {}
    regions: dict[int, list[str]] = {}
    for index, (joint, parent) in enumerate(zip(skeleton.joints, skeleton.parents, strict=True)):
        bone = rest[index] - rest[parent] if parent >= 0 else rest[1] - rest[index]
        places[joint.name] = (rest[index], float(np.linalg.norm(bone)))
        regions.setdefault(index, []).append(joint.name)
        if parent >= 0:
            regions[int(parent)].append(joint.name)
    for site in skeleton.sites:
        carrier = skeleton.index(site.segment)
        if carrier not in inner:
            places[site.name] = (rest[carrier] + site.offset, float(np.linalg.norm(site.offset)))
            regions[carrier].append(site.name)
    names = tuple(places)
    size = float(np.median([bone for _, bone in places.values() if bone > 0]))
    extents = np.array([[0.5 * min(max(bone, 0.5 * size), 2.0 * size)] * 4 for _, bone in places.values()])
    return QuadRig(
        name=skeleton.name,
        quad_names=names,
        rotations=np.broadcast_to(np.eye(3), (len(names), 3, 3)),
        centres=np.array([centre for centre, _ in places.values()]),
        extents=extents,
        regions=tuple(
            Region(skeleton.joint_names[index], tuple(names.index(quad) for quad in quads))
            for index, quads in regions.items()
            if len(quads) > 1
        ),
        root=0,
    )


def made_up_poses(attachment: QuadAttachment, motions: tuple[str, ...], seed: int) -> TrainingPoses:
    """Poses of made-up motions of one seed."""
    skeleton = attachment.skeleton
    clips = []
    for number, name in enumerate(motions):
        rng = np.random.default_rng([seed, number])
        motion = make_motion(skeleton, name, rate_hz=RATE_HZ, rng=rng, seconds=SECONDS)
        clips.append(poses_from_skeleton(attachment, skeleton.forward(motion.coordinates), f"{name}-{seed}"))
    return joined(clips)


def train_builtin(body: str) -> tuple[GplvmPrior, TrainingPoses, str]:
    """Train a rodent's prior on made-up motion; returns it with its training poses and one line on its quality."""
    skeleton = load_body(body)
    attachment = attach_quads(joint_quads(skeleton), skeleton)
    motions = tuple(name for name in motion_names(skeleton) if name != LEFT_OUT[body])
    kinds = {"mouse": [motions + POSTURES], "rat": [motions, POSTURES]}.get(body, [motions])
    sets = [joined([made_up_poses(attachment, kind, seed) for seed in TRAINING_SEEDS]) for kind in kinds]
    count = POSES if len(sets) == 1 else 200
    chosen = joined([joined([one, mirrored(attachment, one)]).representative(count) for one in sets])
    chart = chosen.chart()
    vectors = chosen.vectors(chart)
    searches = (2, 400) if body == "rat" else (1, 300)
    options = GplvmOptions(latent_dim=LATENT_DIM, restarts=searches[0], iterations=searches[1])
    quads = chosen.rig.quad_names
    trained = train_gplvm(vectors, chart, options, np.random.default_rng(0), rig_name=body, quad_names=quads)
    prior = replace(trained.prior, training_segments=chosen.segments)
    held_out = made_up_poses(attachment, (LEFT_OUT[body],), TEST_SEED)
    error = reconstruction_error(prior, held_out)
    linear = fit_linear_prior(vectors, LATENT_DIM, chart, rig_name=body, quad_names=quads)
    flat = reconstruction_error(linear, held_out)
    quality = (
        f"{body}: {len(chosen)} of {2 * sum(map(len, sets))} poses, {len(quads)} quads, log-likelihood "
        f"{trained.report.log_likelihood:.0f}; poses of '{LEFT_OUT[body]}', not trained on: quads "
        f"{error.centre_mm:.2f} mm, {error.rotation_deg:.1f} deg off "
        f"(principal components {flat.centre_mm:.2f} mm, {flat.rotation_deg:.1f} deg)"
    )
    return prior, chosen, quality


def main() -> None:
    """Train and write the priors named on the command line, or all."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bodies", nargs="*", default=list(BODIES), help=f"some of {', '.join(BODIES)} (default: all)")
    parser.add_argument("--cmu", type=Path, metavar="FOLDER", help="folder of the CMU table, for the human")
    parser.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="where to write (default: the package)")
    args = parser.parse_args()
    try:
        for body in args.bodies:
            prior, quality, notes = _trained(body, args.cmu)
            path = builtin_prior_path(body)
            path = path if args.output is None else args.output / path.name
            save_prior(prior, path, notes=notes)
            _log.info("%s; %d kB", quality, path.stat().st_size // 1000)
    except InputError as error:
        raise SystemExit(f"error: {error}") from None


def _trained(body: str, cmu: Path | None) -> tuple[GplvmPrior, str, dict[str, str]]:
    """A body's prior, one line on its quality, and what its file is to say of it."""
    if body != "human":
        prior, _, quality = train_builtin(body)
        return prior, quality, {}
    if cmu is None:
        raise InputError("the human prior is made of captured motion; give the folder of the CMU table with --cmu")
    skeleton = load_body(body)
    prior, quality = train_captured(load_cmu(cmu), attach_quads(joint_quads(skeleton), skeleton))
    notes = {"acknowledgement": ACKNOWLEDGEMENT, "held_out_subjects": " ".join(HELD_OUT), "quality": quality}
    return prior, quality, notes


if __name__ == "__main__":
    main()
