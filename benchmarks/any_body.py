"""Animals that are not built in: a mesh, a list of joints, eight virtual cameras, and nothing edited by hand.

    python -m benchmarks.any_body                  # all animals and motions
    python -m benchmarks.any_body --animals rat --motions walk --frames 20

The skins are moved by weights and joints of their own, never by a cage; silhouettes are cast without error. Error: of
the same vertices, all frames, against the length of the body (longest side of the mesh). A frame is right if its mean
error is below 4 % of that; ``trusted_right`` is the share of frames that are trusted and right, ``wrong_trusted`` the
number that are trusted and not right.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from benchmarks.animals.drawn_animals import ANIMALS, drawn_plan, moving_drawn
from benchmarks.animals.moving_skin import MovingSkin
from benchmarks.animals.rat import moving_rat
from benchmarks.crane.runs import one_thread
from benchmarks.crane.sequence import data_folder
from calibration.foundation.arrays import Floats
from tracking.adapting.scale_search import make_solver
from tracking.own_bodies.joints_file import BodyPlan, load_joints
from tracking.own_bodies.making import own_subject
from tracking.own_bodies.mending import mended
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.tracker import Tracker
from tracking.subjects.mesh_files import joined
from tracking.subjects.subject import Subject, load_subject, save_subject

HERE = Path(__file__).parent / "animals"
MOTIONS = {"rat": ("walk", "turn", "rear"), **dict.fromkeys(ANIMALS, ("walk", "play"))}
RIGHT = 0.04


def moving(animal: str, motion: str, frames: int, data: Path) -> MovingSkin:
    """Return an animal through a motion."""
    if animal in ANIMALS:
        return moving_drawn(animal, motion, frames)
    return moving_rat(data / "rat_model", motion, frames)


def plan_of(animal: str) -> BodyPlan:
    """Return the joints of an animal, mm: those of a drawn one as a person would place them, else of its file."""
    if animal in ANIMALS:
        return drawn_plan(animal)
    plan = load_joints(HERE / f"{animal}.toml")
    return plan.moved(1000.0 * plan.places)


def made(animal: str, skin: MovingSkin, folder: Path) -> tuple[Subject, np.ndarray]:
    """Make the subject as `vivarig subject` does; return it and the skin's vertex that each of its vertices is."""
    plan = plan_of(animal)
    vertices, faces = joined(skin.rest, skin.faces)
    subject, check = own_subject(folder / animal, vertices, faces, plan, f"{animal}.obj")
    for note in check.notes:
        print(f"  {note}")
    print(
        f"  {100 * check.outside:.0f} % of the vertices hang on the cage by anchors, by up to {check.outside_mm:.0f} mm"
    )
    save_subject(subject, folder / animal)
    closed = mended(vertices, faces, animal)
    return load_subject(str(folder / animal)), np.asarray(cKDTree(skin.rest).query(closed.vertices)[1])


def tracked_errors(subject: Subject, which: np.ndarray, skin: MovingSkin) -> tuple[Floats, np.ndarray, Floats]:
    """Track a motion; return the error (T,) in body lengths, the trust (T,) and the overlap (T,)."""
    rig = skin.cameras()
    look = lru_cache(maxsize=256)(lambda frame: skin.observe(rig, frame))
    track = Tracker(make_solver(subject, rig), rig).track(look, len(skin.vertices))
    errors = np.full(len(skin.vertices), np.inf)
    for frame, fit in enumerate(track.fits):
        if fit is not None:
            pose = QuadPose(track.rotations[frame], track.centres[frame])
            found = subject.cage_rig.deform(subject.template.binding, pose)
            errors[frame] = np.linalg.norm(found - skin.vertices[frame, which], axis=1).mean() / skin.length
    return errors, track.trust, track.agreement


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--animals", default=",".join(MOTIONS), help="which")
    parser.add_argument("--motions", help="which motions (default: all)")
    parser.add_argument("--frames", type=int, default=40, help="frames of each motion")
    parser.add_argument("--data", type=Path, help="folder of shared data (default: $VIVARIG_DATA)")
    parser.add_argument("--keep", type=Path, help="folder to leave the subjects in")
    args = parser.parse_args()
    one_thread()
    data = args.data or data_folder()
    result: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or Path(scratch)
        for animal in args.animals.split(","):
            wanted = args.motions.split(",") if args.motions else MOTIONS[animal]
            shown, right, wrong, cost = [], [], 0, 0.0
            subject = None
            for motion in wanted:
                skin = moving(animal, motion, args.frames, data)
                if subject is None:
                    print(animal)
                    subject, which = made(animal, skin, folder)
                begun = time.process_time()
                errors, trust, agreement = tracked_errors(subject, which, skin)
                cost += time.process_time() - begun
                good = errors < RIGHT
                shown.append(errors)
                right.append((trust == 0) & good)
                wrong += int(((trust == 0) & ~good).sum())
                print(
                    f"  {motion:<8} same vertex {100 * errors.mean():.2f} % of body length (median "
                    f"{100 * np.median(errors):.2f}, worst frame {100 * errors.max():.2f}); trusted "
                    f"{np.mean(trust == 0):.2f}, trusted and right {right[-1].mean():.2f}; overlap "
                    f"{np.nanmean(agreement):.3f}",
                    flush=True,
                )
            result |= {
                f"{animal}_vertex_share": float(np.concatenate(shown).mean()),
                f"{animal}_trusted_right": float(np.concatenate(right).mean()),
                f"{animal}_wrong_trusted": wrong,
                f"{animal}_cpu_s_per_frame": cost / sum(map(len, shown)),
            }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
