"""What the views left of each other's silhouettes: a sound camera that sees ghosts, and one that looks elsewhere."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from example_rigs import ring
from walking_body import FRAMES, seen

from calibration.foundation.arrays import Floats
from capture.camera_checks.left_over import left_px, stays_far
from capture.camera_checks.outlines import Outlines, join_outlines
from capture.camera_checks.sentences import far_alone, unclear

EVERY = np.arange(FRAMES)


def changed(outlines: Outlines, change: Callable[[int, Floats], Floats]) -> Outlines:
    """Return outlines whose corners of each frame are changed."""
    frames = np.split(outlines.pixels, outlines.starts[1:-1])
    return join_outlines([change(frame, corners) for frame, corners in enumerate(frames)])


def test_a_ghost_that_the_views_took_away_is_no_doubt_about_the_camera() -> None:
    rig = ring(4)
    sound = seen(rig)
    ghost = changed(sound[0], lambda _, corners: np.concatenate([corners, [[20.0, 20.0], [30.0, 460.0]]]))
    px = left_px(rig, [ghost, *sound[1:]], sound, EVERY)
    assert px.max() < 0.3 and not stays_far(px).any()
    said = far_alone("cam1", 30.0, px[0])
    assert "30.0 px" in said and "0.2 px are left" in said and "cannot tell" not in said


def test_a_camera_of_which_the_views_leave_nothing_is_far_off() -> None:
    rig = ring(4)
    sound = seen(rig)
    for kept, gone in ((FRAMES // 3, True), (FRAMES - FRAMES // 3, False)):
        few = changed(sound[1], lambda frame, corners, kept=kept: corners if frame < kept else np.zeros((0, 2)))  # type: ignore[misc]
        px = left_px(rig, sound, [sound[0], few, *sound[2:]], EVERY)
        assert np.isinf(px).tolist() == [False, gone, False, False]
        assert stays_far(px).tolist() == [False, gone, False, False]
    assert "the other views see nothing" in unclear("cam2", 30.0, np.inf) and "calibrate again" in unclear(
        "cam2", 30.0, np.inf
    )


def test_a_camera_of_which_the_views_leave_a_part_is_far_off() -> None:
    rig = ring(4)
    sound = seen(rig)
    part = changed(sound[2], lambda _, corners: corners.mean(axis=0) + 0.5 * (corners - corners.mean(axis=0)))
    px = left_px(rig, sound, [*sound[:2], part, sound[3]], EVERY)
    assert stays_far(px).tolist() == [False, False, True, False]
    assert f"{px[2]:.1f} px when the views have mended" in unclear("cam3", 30.0, px[2])


def test_what_is_not_known_is_not_far() -> None:
    assert stays_far(np.array([np.nan, np.nan, np.nan])).tolist() == [False, False, False]
    assert stays_far(np.array([9.0, 9.0])).tolist() == [False, False], "of two that disagree none can be named"
    assert stays_far(np.array([1.9, 0.1, 0.1])).tolist() == [False, False, False]
    assert stays_far(np.array([np.inf, np.nan, 0.1, 0.1])).tolist() == [True, False, False, False]
