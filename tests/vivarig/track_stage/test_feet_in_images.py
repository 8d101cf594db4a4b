"""Images of a recording are asked for feet only where silhouettes lack them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import cv2
import numpy as np
from pale_footed_mouse import filmed

from calibration.foundation.spans import Span
from capture.recordings.recording import Footage
from tracking.adapting.scale_search import Found
from tracking.limbs.evidence import LimbRecord
from tracking.sequence.limb_trust import PLACES, RODENTS
from tracking.sequence.track import Track
from vivarig.jobs.job import PartMasks
from vivarig.track_stage.feet_in_images import _legs_around, learn_feet, with_feet


def test_feet_are_learnt_and_looked_for_where_silhouettes_lack_them(tmp_path: Path) -> None:
    scene = filmed()
    footage = [Footage(camera.name, tmp_path / camera.name) for camera in scene.rig]
    for camera, one in enumerate(footage):
        one.source.mkdir()
        for frame, views in enumerate(scene.views):
            cv2.imwrite(str(one.source / f"{frame:03d}.png"), views[camera].image)
    lacking = cast(PartMasks, lambda names, frame: [view.mask for view in scene.views[frame]])
    whole = cast(PartMasks, lambda names, frame: scene.whole[frame])
    found = [
        Found(frame, pose, latent, 1.0)
        for frame, (pose, latent) in enumerate(zip(scene.poses, scene.latents, strict=True))
    ]
    assert learn_feet(footage, whole, scene.rig, scene.solver, found) is None
    assert learn_feet(footage, lacking, scene.rig, scene.solver, found[:3]) is None
    known = learn_feet(footage, lacking, scene.rig, scene.solver, found)
    assert known is not None and all(ground is not None for ground in known.ground)

    nothing = LimbRecord.empty(1, len(scene.limbs))
    doubted = replace(nothing, bad=np.full_like(nothing.bad, 1.3 * RODENTS.doubt), views=np.full_like(nothing.views, 3))
    pose = scene.poses[2]
    rows: dict[str, Any] = {
        "rotations": pose.rotations[None], "centres": pose.centres[None], "limb_record": doubted,
    }  # fmt: skip
    others = {name: None for name in Track.__dataclass_fields__ if name not in rows}
    track = Track(**rows, **others)
    seen = with_feet(track, known, footage, lacking, scene.solver, scene.rig, Span(2, 3)).limb_record.shown
    legs = scene.feet.legs
    assert (seen[0, legs] < PLACES).all() and np.isnan(np.delete(seen[0], legs)).all()
    for verdict in (
        {"bad": np.zeros_like(doubted.bad)},  # believed as it is
        {"weak": np.full_like(doubted.weak, 100.0)},  # held from one side: whatever the images show
    ):
        told = replace(track, limb_record=replace(doubted, **verdict))
        assert with_feet(told, known, footage, lacking, scene.solver, scene.rig, Span(2, 3)) is told
    away = replace(track, centres=track.centres + np.array([0.0, 30.0, 0.0]))  # no foot in another's place
    seen = with_feet(away, known, footage, lacking, scene.solver, scene.rig, Span(2, 3)).limb_record.shown
    assert not (seen[0, legs] < PLACES).any()


def test_a_leg_is_looked_at_in_the_frames_around_those_in_which_it_is_asked_for() -> None:
    told = np.zeros((9, 2), np.bool_)
    told[3, 0] = told[8, 1] = True
    around = _legs_around(told)
    assert np.flatnonzero(around[:, 0]).tolist() == [1, 2, 3, 4, 5]
    assert np.flatnonzero(around[:, 1]).tolist() == [6, 7, 8]
