"""Rebuild the sample recordings: ``python -m sample_data.make [mouse] [human] [rat_xray]`` from the repository's root.

Everything is seeded: the same code gives the same videos and the same truth.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np

from calibration.boards.board import Board
from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig
from calibration.cameras.ring import look_at, ring_rig
from calibration.foundation.arrays import Floats
from calibration.geometry.transforms import RigidTransform, rotation_from_vector
from capture.recordings.recording import Recording
from capture.recordings.video import read_frames
from capture.studio.films.acting import Performance, perform
from capture.studio.films.board_sessions import wave_board, write_session
from capture.studio.films.film import film_cameras
from capture.studio.films.recording_writer import write_films
from capture.studio.films.xray_recording import write_cube_session, write_xray_films
from capture.studio.light.light_images import LightView
from capture.studio.light.sensor import Sensor
from capture.studio.scene.options import StudioOptions
from capture.studio.scene.stage import build_stage
from capture.studio.xray.intensifier import Intensifier
from capture.studio.xray.phantoms import GridPlate, bead_box
from capture.studio.xray.xray_images import XrayOptions, XrayView
from skeleton.actors.actor import sample_actor
from skeleton.motions import make_motion

HERE = Path(__file__).parent
PICTURES = HERE.parent / "docs" / "images"
#: Processes that film one camera each.
WORKERS = int(os.environ.get("SAMPLE_WORKERS", "2"))
#: The sample actors and motions; priors and templates must be made from other seeds.
SEEDS = {"mouse": 7, "human": 21, "rat": 11}


def perform_window(
    body: str, motion: str, *, seed: int, start: int, frames: int, rate_hz: float, tail: bool = True
) -> Performance:
    """Take ``frames`` frames of a longer motion from ``start`` on, moved over the middle of the floor.

    Args:
        tail: whether the tail's tip counts for what is brought to the middle.
    """
    actor = sample_actor(body, SEEDS[body])
    whole = make_motion(actor.skeleton, motion, rate_hz=rate_hz, frames=start + frames, rng=np.random.default_rng(seed))
    coordinates = whole.coordinates[start:].copy()
    names, landmarks = actor.skeleton.landmarks(actor.skeleton.forward(coordinates))
    landmarks = landmarks[:, [tail or "tail_tip" not in name for name in names]]
    middle = 0.5 * (landmarks.min(axis=(0, 1)) + landmarks.max(axis=(0, 1)))
    coordinates[:, :2] -= middle[:2]  # the first coordinates are the root's place
    return perform(actor, coordinates, rate_hz, contact_names=whole.feet, contacts=whole.contacts[start:])


def report(label: str) -> Callable[[int, int], None]:
    """Return a progress printer."""
    begun = time.monotonic()

    def show(done: int, total: int) -> None:
        if done % 50 == 0 or done == total:
            print(f"  {label}: {done}/{total} images, {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)

    return show


def cleared(folder: Path, *kept: str) -> Path:
    """Empty a folder but for ``kept`` names and return it."""
    for old in folder.glob("*"):
        if old.name not in kept:
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    return folder


def make_mouse(folder: Path, frames: int, parts: set[str]) -> None:
    """Eight monochrome cameras around a field of some 20 cm, as in the parabolic-flight rig; 120 Hz."""
    performance = perform_window("mouse", "explore", seed=7, start=200, frames=frames, rate_hz=120.0)
    rig = ring_rig(
        8,
        radius=260.0,
        height=[150.0, 230.0],
        target=(0.0, 0.0, 22.0),
        field_mm=225.0,
        distortion=(-0.18, 0.06, 0.0006, -0.0004, 0.0),
        jitter=0.02,
        seed=3,
    )
    options = StudioOptions(
        seed=1, lamps=3, shadows=0.6, texture=0.45, floor_texture=0.12, uneven_light=0.15, noise=2.0, vignetting=0.2
    )
    if "recording" in parts:
        cleared(folder, "README.md", "calibration")
        films = film_cameras(rig, performance.surface, options)
        recording = write_films(
            folder,
            films,
            rig,
            performance.truth(),
            name="mouse",
            subject="mouse",
            quality=16,
            background_frames=16,
            vertex_step=1.0 / 128.0,
            workers=WORKERS,
            on_progress=report("mouse"),
        )
        contact_sheet(recording, [0, frames // 2], "sample_mouse.jpg", columns=4)
    if "calibration" in parts:
        cleared(folder / "calibration")
        board = Board("charuco", 7, 5, 14.0, 10.5, "DICT_4X4_50")
        wave = wave_board(
            board, frames=60, centre=np.array([0.0, 0.0, 55.0]), reach=38.0, turns=2.0, rng=np.random.default_rng(5)
        )
        write_session(
            folder / "calibration",
            rig,
            board,
            wave,
            replace(options, seed=2, motion_blur=0.1),
            scale=performance.surface.extent,
            rate_hz=10.0,
            quality=22,
            on_progress=report("mouse calibration"),
        )


def make_human(folder: Path, frames: int, parts: set[str]) -> None:
    """Four colour cameras in the corners of a room, as in HumanEva II; 60 Hz."""
    performance = perform_window("human", "walk", seed=4, start=30, frames=frames, rate_hz=60.0)
    rig = ring_rig(
        4,
        radius=3600.0,
        height=[1500.0, 1700.0],
        target=(0.0, 0.0, 900.0),
        size=(656, 490),
        field_mm=3400.0,
        distortion=(-0.22, 0.12, 0.0008, -0.0006, 0.0),
        first_angle=np.pi / 4.0,
        jitter=0.02,
        seed=5,
    )
    options = StudioOptions(
        seed=3,
        colour=True,
        lamps=3,
        shadows=0.5,
        texture=0.35,
        floor_texture=0.15,
        uneven_light=0.1,
        noise=2.0,
        vignetting=0.15,
    )
    if "recording" in parts:
        cleared(folder, "README.md", "calibration")
        films = film_cameras(rig, performance.surface, options)
        recording = write_films(
            folder,
            films,
            rig,
            performance.truth(),
            name="human",
            subject="human",
            quality=18,
            background_frames=16,
            vertex_step=1.0 / 16.0,
            workers=WORKERS,
            on_progress=report("human"),
        )
        contact_sheet(recording, [0, frames // 2], "sample_human.jpg", columns=4)
    if "calibration" in parts:
        cleared(folder / "calibration")
        board = Board("charuco", 7, 5, 140.0, 105.0, "DICT_4X4_50")
        wave = wave_board(
            board, frames=50, centre=np.array([0.0, 0.0, 1000.0]), reach=600.0, turns=2.0, rng=np.random.default_rng(6)
        )
        write_session(
            folder / "calibration",
            rig,
            board,
            wave,
            replace(options, seed=4, motion_blur=0.1),
            scale=performance.surface.extent,
            rate_hz=10.0,
            quality=20,
            on_progress=report("human calibration"),
        )


def xray_views() -> list[XrayView]:
    """Two X-ray machines: one from the side, one from above, intensifiers of 300 mm at 1.2 m, 768 px."""
    intrinsics = np.array([[3072.0, 0.0, 383.5], [0.0, 3072.0, 383.5], [0.0, 0.0, 1.0]])
    options = XrayOptions(seed=9, photons=9000.0, scatter=0.15, focal_blur=0.6, oversampling=2)
    places: list[tuple[tuple[float, float, float], Floats, float, float]] = [
        ((-860.0, 40.0, 90.0), np.array([386.0, 381.0]), 0.07, 0.045),
        ((300.0, -120.0, 820.0), np.array([380.5, 385.5]), 0.055, -0.035),
    ]
    views = []
    for number, (eye, centre, pincushion, twist) in enumerate(places):
        pose = look_at(eye, (0.0, 0.0, 38.0))
        camera = LensCamera(f"xray{number + 1}", PinholeLens((768, 768), intrinsics), pose, kind="xray")
        tube = Intensifier((768, 768), centre, 372.0, pincushion=pincushion, twist=twist, vignetting=0.25)
        views.append(XrayView(camera, options, intensifier=tube, number=number))
    return views


def make_rat_xray(folder: Path, frames: int, parts: set[str]) -> None:
    """Two X-ray views and two light cameras of a rat with implanted beads; 200 Hz."""
    performance = perform_window("rat", "walk", seed=2, start=60, frames=frames, rate_hz=200.0, tail=False)
    views = xray_views()
    light = ring_rig(
        2,
        radius=620.0,
        height=[330.0, 420.0],
        target=(0.0, 0.0, 35.0),
        field_mm=430.0,
        distortion=(-0.15, 0.05, 0.0005, -0.0003, 0.0),
        first_angle=-2.2,
        arc=1.3,
        jitter=0.02,
        seed=8,
    )
    lights = [
        replace(camera, name=f"light{n + 1}")
        for n, camera in enumerate(light.cameras)
        if isinstance(camera, LensCamera)
    ]
    rig = Rig(tuple(view.camera for view in views) + tuple(lights))
    options = StudioOptions(
        seed=5, lamps=3, shadows=0.6, texture=0.4, floor_texture=0.12, uneven_light=0.1, noise=2.0, vignetting=0.15
    )
    films = film_cameras(rig, performance.surface, options)
    if "recording" in parts:
        cleared(folder, "README.md", "calibration")
        footage, truth = write_xray_films(
            folder, views, performance, quality=8, workers=WORKERS, on_progress=report("rat X-ray")
        )
        recording = write_films(
            folder,
            films,
            rig,
            performance.truth(),
            name="rat_xray",
            subject="rat",
            quality=18,
            background_frames=16,
            vertex_step=1.0 / 64.0,
            other=footage,
            other_truth=truth,
            workers=WORKERS,
            on_progress=report("rat light"),
        )
        contact_sheet(recording, [0, frames // 2], "sample_rat_xray.jpg", columns=4)
    if "calibration" in parts:
        # In its first pose the cube stands on the middle of the floor, so that its frame is the world's.
        box = bead_box(90.0, count=44, radius=0.8, seed=1)
        shifts = [(0.0, 0.0, 0.0), (18.0, -12.0, 6.0), (-15.0, 14.0, 12.0), (5.0, 6.0, 20.0)]
        turns = [(0.0, 0.0, 0.0), (0.1, -0.15, 0.5), (-0.2, 0.1, -0.4), (0.3, 0.25, 0.9)]
        poses = [
            RigidTransform(rotation_from_vector(np.array(turn)), np.array(shift))
            for turn, shift in zip(turns, shifts, strict=True)
        ]
        plates = [GridPlate(17.0, 9.0, 0.08, (3.0, -2.0)), GridPlate(17.0, 9.0, -0.11, (-4.0, 5.0))]
        stage = build_stage(performance.surface.extent, options)
        pairs = [(LightView(film.camera, stage), Sensor(film.number, film.camera.size, options)) for film in films]
        session = cleared(folder / "calibration")
        write_cube_session(session / "xray", views, plates, box, poses, light_views=pairs)
        board = Board("charuco", 7, 5, 28.0, 21.0, "DICT_4X4_50")
        wave = wave_board(
            board, frames=40, centre=np.array([0.0, 0.0, 110.0]), reach=75.0, turns=0.0, rng=np.random.default_rng(7)
        )
        write_session(
            session / "light",
            rig,
            board,
            wave,
            replace(options, seed=6, motion_blur=0.1),
            scale=performance.surface.extent,
            rate_hz=10.0,
            quality=22,
            on_progress=report("rat calibration"),
        )


def contact_sheet(recording: Recording, frames: list[int], name: str, *, columns: int) -> None:
    """Put the views of some frames side by side into docs/images."""
    tiles = []
    for frame in frames:
        for item in recording.footage:
            _, image = next(iter(read_frames(item.source, frame, frame + 1)))
            colour = image if image.ndim == 3 else cv2.cvtColor(image, cv2.COLOR_GRAY2BGR)
            side = 380 / colour.shape[1]
            tiles.append(cv2.resize(colour, None, fx=side, fy=side, interpolation=cv2.INTER_AREA))
    tall = max(tile.shape[0] for tile in tiles)
    padded = [cv2.copyMakeBorder(t, 0, tall - t.shape[0], 0, 0, cv2.BORDER_CONSTANT) for t in tiles]
    sheet = np.vstack([np.hstack(padded[i : i + columns]) for i in range(0, len(padded), columns)])
    PICTURES.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(PICTURES / name), sheet, [cv2.IMWRITE_JPEG_QUALITY, 82])


def main() -> None:
    """Make the samples named on the command line, or all."""
    makers = {"mouse": (make_mouse, 100), "human": (make_human, 100), "rat_xray": (make_rat_xray, 60)}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("samples", nargs="*", help="mouse, human, rat_xray; all of them without a name")
    parser.add_argument("--frames", type=int, help="fewer frames, to try")
    parser.add_argument("--to", type=Path, default=HERE, help="folder in which the samples are made")
    parser.add_argument("--part", choices=("recording", "calibration"), help="make only this part")
    args = parser.parse_args()
    for name in args.samples or makers:
        if name not in makers:
            parser.error(f"unknown sample '{name}'; valid are {', '.join(makers)}")
        make, frames = makers[name]
        print(f"{name}: filming", file=sys.stderr)
        make(args.to / name, args.frames or frames, {args.part} if args.part else {"recording", "calibration"})
    for name in makers:
        size = sum(f.stat().st_size for f in (args.to / name).rglob("*") if f.is_file()) / 1e6
        print(f"{name}: {size:.1f} MB")


if __name__ == "__main__":
    main()
