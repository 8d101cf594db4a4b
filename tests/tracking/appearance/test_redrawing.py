"""Silhouettes drawn again gain what they lack and lose what is not the subject; a wrong template is not followed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from pale_footed_mouse import Filmed, filmed, placed

from calibration.foundation.arrays import Bools
from tracking.appearance.feet import View
from tracking.appearance.held_views import Verdict, agreement_of_view, judged
from tracking.appearance.redrawing import redrawn
from tracking.appearance.witnesses import Seen, Teacher, Witnesses, lesson
from tracking.observations.contours import observe
from tracking.quads.oriented_quads import QuadPose


def with_stool(scene: Filmed) -> list[list[View]]:
    """The views with a pale thing beside the animal that silhouettes hold, too; no template explains it."""
    views = []
    for frame in scene.views:
        row = []
        for view in frame:
            columns = np.flatnonzero(view.mask.any(axis=0))
            lines = np.flatnonzero(view.mask[:, columns[-1] - 4 : columns[-1] + 1].any(axis=1))
            image, mask = view.image.copy(), view.mask.copy()
            thing = np.s_[lines[0] : lines[0] + 14, columns[-1] - 2 : columns[-1] + 20]
            image[thing], mask[thing] = (70, 110, 70), True
            row.append(replace(view, image=image, mask=mask))
        views.append(row)
    return views


def drawn_again(scene: Filmed, views: list[list[View]], poses: list[QuadPose], frame: int) -> list[Bools]:
    """A frame's silhouettes drawn again, by what the other frames teach with such a template."""
    teacher = Teacher(scene.solver, scene.rig)
    masks = [[view.mask for view in row] for row in views]
    out = []
    for camera in range(len(scene.rig)):
        lessons = []
        for other in range(len(views)):
            seen = Seen(views[other][camera])
            pose = teacher.without([camera], observe(list(masks[other])), poses[other], scene.latents[other])
            drawn = teacher.drawn(pose, camera, seen.window)
            if other == frame:
                here = (seen, drawn)
            else:
                lessons.append(lesson(seen, drawn))
        out.append(redrawn(masks[frame][camera], here[0], Witnesses.learnt(lessons), here[1]))
    return out


def overlap(ours: list[Bools], true: list[Bools]) -> float:
    """Mean IoU."""
    return float(np.mean([(a & b).sum() / (a | b).sum() for a, b in zip(ours, true, strict=True)]))


def bitten(scene: Filmed) -> list[list[View]]:
    """The views with a bite out of each silhouette's back."""
    views = []
    for frame in scene.views:
        row = []
        for view in frame:
            mask = view.mask.copy()
            column = int(np.flatnonzero(mask.any(axis=0)).mean())
            top = int(np.flatnonzero(mask[:, column])[0])
            mask[top - 6 : top + 6, column - 10 : column + 10] = False
            row.append(replace(view, mask=mask))
        views.append(row)
    return views


def test_what_silhouettes_lack_is_given_back() -> None:
    scene = filmed()
    views = bitten(scene)
    lost = [a.mask & ~b.mask for a, b in zip(scene.views[2], views[2], strict=True)]
    ours = drawn_again(scene, views, scene.poses, 2)
    assert sum((a & b).sum() for a, b in zip(ours, lost, strict=True)) > 0.7 * sum(one.sum() for one in lost)
    assert overlap(ours, scene.whole[2]) > overlap([view.mask for view in views[2]], scene.whole[2]) + 0.01


def test_what_no_template_explains_is_taken_off() -> None:
    scene = filmed()
    views = with_stool(scene)
    stools = [a.mask & ~b.mask & ~w for a, b, w in zip(views[2], scene.views[2], scene.whole[2], strict=True)]
    ours = drawn_again(scene, views, scene.poses, 2)
    left = sum((a & b).sum() for a, b in zip(ours, stools, strict=True)) / sum(one.sum() for one in stools)
    assert left < 0.3
    assert overlap(ours, scene.whole[2]) > overlap([view.mask for view in views[2]], scene.whole[2])


def displaced(scene: Filmed, pose: QuadPose) -> QuadPose:
    """A template beside the animal."""
    return QuadPose(pose.rotations, pose.centres + np.array([25.0, 20.0, 10.0]))


def turned_round(scene: Filmed, pose: QuadPose) -> QuadPose:
    """A template whose head is where the tail is."""
    x, y, _ = pose.centres.mean(axis=0)
    return placed(pose, np.pi, (float(x), float(y)))


def leg_elsewhere(scene: Filmed, pose: QuadPose) -> QuadPose:
    """A template with one leg stretched out to the side."""
    centres = pose.centres.copy()
    centres[scene.limbs.chains[int(scene.feet.legs[0])]] += np.array([18.0, 18.0, 12.0])
    return QuadPose(pose.rotations, centres)


@pytest.mark.parametrize("wrong", [displaced, turned_round, leg_elsewhere])
@pytest.mark.parametrize("everywhere", [True, False])
def test_a_wrong_template_is_not_followed(wrong: Callable[[Filmed, QuadPose], QuadPose], everywhere: bool) -> None:
    """Wrong in all frames, or in the one that is drawn; held there, not fitted, as a fit might mend it."""
    scene = filmed()
    poses = [wrong(scene, pose) if everywhere or k == 2 else pose for k, pose in enumerate(scene.poses)]
    teacher = Teacher(scene.solver, scene.rig)
    for camera, view in enumerate(scene.views[2]):
        lessons = []
        for other in (0, 1, 3, 4):
            seen = Seen(scene.views[other][camera])
            lessons.append(lesson(seen, teacher.drawn(poses[other], camera, seen.window)))
        seen = Seen(view)
        drawn = teacher.drawn(poses[2], camera, seen.window)
        ours = redrawn(view.mask, seen, Witnesses.learnt(lessons), drawn)
        true = scene.whole[2][camera]
        assert overlap([ours], [true]) > overlap([view.mask], [true]) - 0.004
        follows = np.zeros_like(true)
        follows[seen.window] = drawn.body
        # Of what the wrong template has beyond the animal little is taken over.
        beyond = follows & ~true
        assert (ours & beyond).sum() < 0.1 * beyond.sum() + 5


def test_a_camera_left_out_tells_when_the_others_lose_a_part() -> None:
    scene = filmed()
    whole = scene.whole[0]
    cut = []
    for mask in whole:
        lines = np.flatnonzero(mask.any(axis=1))
        less = mask.copy()
        less[: lines[0] + len(lines) // 2] = False
        cut.append(less)
    wide = [np.roll(mask, 12, axis=1) | mask for mask in whole]
    right = agreement_of_view(whole, scene.rig, 0)
    for spoilt in (cut, wide):
        assert agreement_of_view([whole[0], *spoilt[1:]], scene.rig, 0) < right - 0.05
    assert np.isnan(agreement_of_view([whole[0], *(np.zeros_like(one) for one in whole[1:])], scene.rig, 0))


def test_a_rise_must_be_large_and_sure() -> None:
    before = np.full(16, 0.7)
    assert judged(before, before + 0.03) is not None
    assert Verdict(0.70, 0.73, 0.004).better
    assert not Verdict(0.70, 0.73, 0.02).better
    assert not Verdict(0.70, 0.705, 0.0001).better
    assert not Verdict(0.70, 0.65, 0.001).better
    assert judged(np.array([0.7, np.nan]), np.array([0.8, 0.8])) is None
