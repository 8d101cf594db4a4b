"""How fast the studio films, on one core, and how much memory it takes.

``python -m benchmarks.studio``: a mouse of 7,000 vertices, 640x480, two lamps with cast shadows, textures and noise,
no motion blur. Images per second of processor time, so that a busy machine does not change the answer much; the time
of a fixed reference kernel is printed beside it to compare machines.
"""

from __future__ import annotations

import json
import resource
import time

import cv2
import numpy as np

from benchmarks.measuring.reference_kernel import reference_kernel_s
from calibration.cameras.ring import ring_rig
from capture.studio.films.acting import perform
from capture.studio.films.film import film_cameras
from capture.studio.scene.options import StudioOptions
from skeleton.actors.actor import sample_actor
from skeleton.motions import make_motion

CAMERAS, FRAMES = 4, 12
OPTIONS = StudioOptions(
    seed=1, lamps=2, shadows=0.6, texture=0.4, floor_texture=0.15, uneven_light=0.1, noise=2.0, vignetting=0.2
)


def main() -> None:
    """Measure and print."""
    cv2.setNumThreads(1)
    actor = sample_actor("mouse", 7)
    motion = make_motion(actor.skeleton, "walk", rate_hz=120.0, frames=FRAMES, rng=np.random.default_rng(1))
    performance = perform(actor, motion.coordinates, 120.0)
    rig = ring_rig(CAMERAS, radius=260.0, height=[150.0, 230.0], target=(0.0, 0.0, 22.0), field_mm=225.0,
                   distortion=(-0.18, 0.06, 0.0006, -0.0004, 0.0), jitter=0.02, seed=3)  # fmt: skip
    films = film_cameras(rig, performance.surface, OPTIONS)
    begun = time.process_time()
    for film in films:
        film.image(0)  # compiles, and renders what stands still: once per camera, not per frame
    setup = time.process_time() - begun
    rates, covered = [], []
    for film in films:
        begun = time.process_time()
        for frame in range(1, FRAMES):
            covered.append(float(film.image(frame)[1].mean()))
        rates.append((FRAMES - 1) / (time.process_time() - begun))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    reference = reference_kernel_s()
    fps = float(np.median(rates))
    print(
        f"{len(actor.bind_vertices)} vertices, {len(actor.faces)} faces, 640x480, 2 lamps with shadows, noise, no blur"
    )
    print(f"subject covers {100 * np.mean(covered):.1f} % of the image")
    print(f"images per second and core   {fps:8.1f}   (wanted: 8 or more)")
    print(f"once per camera (plates)     {setup / CAMERAS:8.1f} s")
    print(f"peak memory                  {peak:8.0f} MB (wanted: below 1000)")
    print(f"reference kernel             {reference:8.3f} s")
    numbers = {
        "fps_per_core": fps,
        "peak_rss_mb": peak,
        "plate_s": setup / CAMERAS,
        "reference_kernel_s": reference,
        "subject_share": float(np.mean(covered)),
    }
    print(json.dumps(numbers))


if __name__ == "__main__":
    main()
