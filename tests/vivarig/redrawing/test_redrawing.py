"""A recording's silhouettes are drawn again where a camera left out gains by it, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import cv2
import numpy as np
import pytest
from pale_footed_mouse import Filmed, filmed

from calibration.foundation.arrays import Bools
from calibration.foundation.spans import Span
from capture.recordings.masks import create_masks, read_masks
from capture.recordings.recording import Footage
from tracking.adapting.scale_search import Found
from tracking.fitting.solver import FrameFit
from vivarig.jobs.job import Job
from vivarig.redrawing.learning import KnownOutlines, Redrawing, learn_outlines
from vivarig.redrawing.parts import draw_part, found_again, join_parts, redrawn_file
from vivarig.results.outline_words import outline_words
from vivarig.track_stage.track_again import _beside


def stool(view_image: np.ndarray, mask: Bools) -> tuple[np.ndarray, Bools]:
    """An image and a silhouette with a thing to the right of the animal, as high as the image is wide."""
    columns = np.flatnonzero(mask.any(axis=0))
    image, wide = view_image.copy(), mask.copy()
    at = np.s_[90:200, columns[-1] - 3 : columns[-1] + 12]
    image[at], wide[at] = (70, 110, 70), True
    return image, wide


class Stooled:
    """The drawn mouse with stools: footage on disk, silhouettes that hold the stools, where the animal is."""

    def __init__(self, folder: Path) -> None:
        self.scene: Filmed = filmed()
        self.footage = [Footage(camera.name, folder / camera.name) for camera in self.scene.rig]
        self.masks: list[list[Bools]] = []
        for one in self.footage:
            one.source.mkdir()
        for frame, views in enumerate(self.scene.views):
            both = [stool(view.image, view.mask) for view in views]
            self.masks.append([mask for _, mask in both])
            for one, (image, _) in zip(self.footage, both, strict=True):
                cv2.imwrite(str(one.source / f"{frame:03d}.png"), image)
        self.found = [
            Found(frame, pose, latent, 1.0, 0.8)
            for frame, (pose, latent) in enumerate(zip(self.scene.poses, self.scene.latents, strict=True))
        ]

    def __call__(self, names: tuple[str, ...], frame: int) -> list[Bools]:
        known = list(self.scene.rig.names)
        return [self.masks[frame][known.index(name)] for name in names]

    def learnt(self, found: list[Found] | None = None) -> KnownOutlines:
        """What is learnt, and the verdict."""
        scene = self.scene
        return learn_outlines(self.footage, self, scene.rig, scene.solver, self.found if found is None else found)


@pytest.fixture(scope="module")
def stooled(tmp_path_factory: pytest.TempPathFactory) -> Stooled:
    """The scene, made once."""
    return Stooled(tmp_path_factory.mktemp("stools"))


@pytest.fixture(scope="module")
def known(stooled: Stooled) -> KnownOutlines:
    """What is learnt from it."""
    return stooled.learnt()


def test_stools_are_parted_from_the_animal(stooled: Stooled, known: KnownOutlines) -> None:
    assert known.helps and known.verdict is not None and known.verdict.after > known.verdict.before + 0.01
    scene = stooled.scene
    again = found_again(Redrawing(known, scene.solver, scene.rig), stooled.footage, stooled, scene.rig, stooled.found)
    names = tuple(scene.rig.names)
    extra = [a & ~b for a, b in zip(stooled.masks[1], scene.whole[1], strict=True)]
    left = [a & b for a, b in zip(again(names, 1), extra, strict=True)]
    assert sum(one.sum() for one in left) < 0.4 * sum(one.sum() for one in extra)
    assert "drawn again" in outline_words({**known.as_table(), "added_and_taken_off": {"cam0": [0.01, 0.03]}})


def test_a_frame_is_drawn_by_what_others_taught(known: KnownOutlines) -> None:
    assert known.frames == ((0, 2, 4), (1, 3))
    for frame in range(5):
        assert known.beside(frame) is known.witnesses[1 - frame % 2]


def test_silhouettes_stay_where_there_is_nothing_to_gain(stooled: Stooled, tmp_path: Path) -> None:
    """Too few frames, a template that fits as it is, masks that somebody brought; and silhouettes without stools."""
    assert not stooled.learnt(stooled.found[:3]).helps
    fits = stooled.learnt([replace(one, agreement=0.97) for one in stooled.found])
    assert not fits.helps and "fits" in fits.why and fits.verdict is None
    brought = [replace(one, masks=tmp_path) for one in stooled.footage]
    scene = stooled.scene
    assert not learn_outlines(brought, stooled, scene.rig, scene.solver, stooled.found).helps

    def right(names: tuple[str, ...], frame: int) -> list[Bools]:
        return list(scene.whole[frame])

    plain = [Footage(camera.name, tmp_path / camera.name) for camera in scene.rig]
    for camera, one in enumerate(plain):
        one.source.mkdir()
        for frame, views in enumerate(scene.views):
            cv2.imwrite(str(one.source / f"{frame:03d}.png"), views[camera].image)
    kept = learn_outlines(plain, right, scene.rig, scene.solver, stooled.found)
    assert not kept.helps and kept.verdict is not None and kept.ground == ()
    assert "kept as they were cut out" in outline_words(kept.as_table())


def test_parts_are_drawn_and_put_together(stooled: Stooled, known: KnownOutlines, tmp_path: Path) -> None:
    """A part with what lies beyond its end, a frame in it that is not tracked, and a part that is not drawn at all."""
    scene = stooled.scene
    rig, names = scene.rig, tuple(scene.rig.names)
    spans = (Span(0, 3), Span(3, 5))
    recording = SimpleNamespace(results=tmp_path / "results")
    job = cast(
        Job,
        SimpleNamespace(
            recording=recording, whole=Span(0, 5), spans=lambda stage: spans,
            path=lambda stage, phase, span: tmp_path / stage / f"{phase}-{span}.h5",
            beside=lambda stage, phase, span, what: tmp_path / stage / f"{phase}-{span}+{what}.h5",
        ),
    )  # fmt: skip
    recording.results.mkdir()
    (tmp_path / "silhouettes").mkdir()
    (tmp_path / "track").mkdir()
    for span in spans:
        with create_masks(job.path("silhouettes", "masks", span), names, [c.size for c in rig], len(span), {}) as to:
            for row in range(len(span)):
                for name, mask in zip(names, stooled.masks[span.first + row], strict=True):
                    told = np.full(1, np.nan, np.float32), np.zeros(1, np.uint16)
                    to.write(name, row, np.packbits(mask, axis=-1)[None], *told)
    wide = [(spans[0], Span(0, 4)), (spans[1], Span(2, 5))]
    assert join_parts(job, rig, wide, 0) is None
    places = zip(scene.poses[:4], scene.latents[:4], strict=True)
    fits = [cast(FrameFit, SimpleNamespace(pose=pose, latent=latent)) for pose, latent in places]
    redrawing = Redrawing(known, scene.solver, rig)
    draw_part(
        redrawn_file(job, spans[0]), redrawing, stooled.footage, stooled, rig, [fits[0], None, *fits[2:]], Span(0, 4)
    )
    changed = join_parts(job, rig, wide, 7)
    assert changed is not None and (changed[:, 1] > 0).all()
    file = recording.results / "redrawn.h5"
    for camera, name in enumerate(names):
        after = read_masks(file, name)
        assert len(after) == 5
        same = [np.array_equal(after[frame], stooled.masks[frame][camera]) for frame in range(5)]
        assert same == [False, True, False, True, True]
    redrawn_file(job, spans[0]).unlink()
    assert join_parts(job, rig, wide, 7) is None and not file.exists()


def test_silhouettes_mended_by_hand_are_taken_as_mended() -> None:
    edited, redrawn = np.zeros((2, 2), bool), np.ones((2, 2), bool)
    masks = _beside(lambda name, row: edited, lambda name, row: redrawn, np.array([3, 4]))
    assert [masks("cam0", row) is edited for row in range(2, 6)] == [False, True, True, False]
