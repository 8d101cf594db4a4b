"""Views on one line, views of different instants and late clocks: left out, refused or said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from board_scenes import CHARUCO, film, ring_rig, waved_board

from calibration.boards.sightings import Sightings
from calibration.cameras.rig import Rig
from calibration.foundation.errors import SolveError
from calibration.solving.rig_solver import SolveOptions, solve_rig
from calibration.solving.view_checks import late_clocks, refuse_misfit, without_lines


@pytest.fixture(scope="module")
def scene() -> tuple[Rig, Sightings]:
    """Three cameras, a board waved through 16 frames."""
    rng = np.random.default_rng(3)
    rig = ring_rig(3, rng)
    return rig, film(rig, waved_board(16, rng, CHARUCO), CHARUCO, two_sided=True)


def test_a_view_of_corners_on_one_line_is_left_out_and_the_rest_solved(scene: tuple[Rig, Sightings]) -> None:
    rig, sightings = scene
    (camera, frame, board), rows = next((key, rows) for key, rows in sightings.views().items() if len(rows) == 35)
    off = [row for row in rows if sightings.corner[row] >= 7]  # leaves the first row of corners
    spoilt = sightings.where(~np.isin(np.arange(len(sightings)), off))
    mended, notes = without_lines(spoilt)
    assert len(spoilt) - len(mended) == 7 and (camera, frame, board) not in mended.views()
    assert "1 views" in notes[0] and f"{rig.names[camera]} frame {frame}" in notes[0]
    assert without_lines(sightings) == (sightings, [])
    refuse_misfit(solve_rig(mended, SolveOptions(clocks="off")))


def test_views_of_different_instants_make_no_rig(scene: tuple[Rig, Sightings]) -> None:
    _, sightings = scene
    # the second camera was shown other poses under the same numbers
    other = (sightings.frame + 5 * (sightings.camera == 1)) % 16
    solution = solve_rig(replace(sightings, frame=other).sorted(), SolveOptions(clocks="off"))
    with pytest.raises(SolveError, match="must show one instant"):
        refuse_misfit(solution)


def test_late_clocks_are_said_with_their_offset(scene: tuple[Rig, Sightings]) -> None:
    solution = solve_rig(scene[1], SolveOptions(clocks="off"))
    assert late_clocks(solution) == []
    bundle = solution.bundle.bundle
    late = replace(bundle, offsets=np.array([0.0, 1.2, 0.3]))
    told = replace(
        solution,
        bundle=replace(solution.bundle, bundle=late),
        freedoms=tuple(replace(one, clock=True) for one in solution.freedoms),
    )
    (line,) = late_clocks(told)
    assert "cam2 is +1.20 frames late" in line and "offset = 1 under [cameras.cam2]" in line
