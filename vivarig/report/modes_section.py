"""How many numbers a frame hold the subject's motion, and what its first modes look like."""

from __future__ import annotations

import numpy as np

from calibration.foundation.errors import InputError
from calibration.foundation.trust import Trust
from calibration.geometry.transforms import rotation_from_quaternion
from skeleton.pose_spaces.mode_pictures import modes_figure
from skeleton.pose_spaces.principal_geodesics import learn_pose_space
from skeleton.pose_spaces.rotation_tree import RotationTree, local_rotations
from vivarig.report.page import Page
from vivarig.report.plots import figure_uri
from vivarig.results.findings import SkeletonFindings

__all__ = ["add_modes"]

#: Trusted frames that a pose space is learnt from at least, and about how many at most.
_LEAST, _MOST = 30, 2_000
_SHOWN = 4


def add_modes(page: Page, skeleton: SkeletonFindings) -> dict[str, int]:
    """Add the section; return how many numbers hold 95 and 99 %, nothing where too few frames are trusted."""
    good = np.flatnonzero((skeleton.trust == int(Trust.TRUSTED)) & np.isfinite(skeleton.rotations[:, 0, 0]))
    if len(good) < _LEAST:
        return {}
    some = good[:: max(1, len(good) // _MOST)]
    rotations = local_rotations(skeleton.parents, rotation_from_quaternion(skeleton.rotations[some]))
    try:
        space = learn_pose_space(rotations, skeleton.joint_names, body=skeleton.body)
    except InputError:  # a subject that never turned a joint has no modes to show
        return {}
    counts = {"modes95": space.modes_for(0.95), "modes99": space.modes_for(0.99)}
    page.heading("Modes of motion")
    page.note(
        f"{counts['modes99']} {'number' if counts['modes99'] == 1 else 'numbers'} a frame hold 99 % of how this "
        f"subject turned its joints, {counts['modes95']} hold 95 % ({len(some)} trusted frames; the root's own path "
        "and digits are left out). Fewer numbers: a simpler or shorter motion. To compare animals, compare recordings "
        "of the same length and task."
    )
    tree = RotationTree(skeleton.joint_names, skeleton.parents, skeleton.offsets)
    page.picture(
        figure_uri(modes_figure(space, tree, modes=_SHOWN)), "the first modes, two standard deviations either way"
    )
    return counts
