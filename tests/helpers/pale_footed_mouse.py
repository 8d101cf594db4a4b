"""A black mouse with pale feet on a grey floor, filmed by four cameras; its silhouettes lack the feet."""

from __future__ import annotations

from functools import lru_cache

import cv2
import numpy as np
from example_rigs import looking_at_origin

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Bytes
from calibration.geometry.transforms import rotation_from_vector
from tracking.adapting.scale_search import make_solver
from tracking.appearance.feet import FeetInImages, FootPixels, View
from tracking.appearance.ground import ground_of
from tracking.fitting.pale_parts import pale_vertices
from tracking.limbs.chains import Limbs, limbs_of
from tracking.observations.rasteriser import cast_masks
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.limb_mending import LimbMender
from tracking.subjects.subject import builtin_subject

PLACES_OF_FRAMES = ((0.0, 0.0, 0.0), (0.9, 15.0, -25.0), (2.2, -30.0, 15.0), (3.4, 25.0, 30.0), (5.0, -20.0, -30.0))
"""Heading, rad, and where it stands, mm."""


def rig() -> Rig:
    """Four cameras around the origin, 0.6 m away, a little above."""
    lens = PinholeLens((360, 300), np.array([[900.0, 0, 180], [0, 900.0, 150], [0, 0, 1]]), np.zeros(5))
    places = [600.0 * np.array([np.cos(a), np.sin(a), 0.35]) for a in (0.3, 1.9, 3.4, 5.0)]
    return Rig(tuple(LensCamera(f"cam{k}", lens, looking_at_origin(at)) for k, at in enumerate(places)))


def placed(pose: QuadPose, heading: float, shift: tuple[float, float]) -> QuadPose:
    """A pose turned about the vertical through its middle, and moved over the floor."""
    turn, middle = rotation_from_vector(np.array([0.0, 0.0, heading])), pose.centres.mean(axis=0)
    return QuadPose(turn @ pose.rotations, (pose.centres - middle) @ turn.T + np.array([*shift, 0.0]))


class Filmed:
    """The scene, five frames of it: images, silhouettes without feet (in ``views``) and with them (``whole``)."""

    def __init__(self) -> None:
        mouse, self.rig = builtin_subject("mouse"), rig()
        self.solver = make_solver(mouse, self.rig)
        self.limbs: Limbs = limbs_of(self.solver.cage_rig.quads)
        self.poses = [placed(mouse.cage_rig.quads.rest, a, (x, y)) for a, x, y in PLACES_OF_FRAMES]
        self.latents = [LimbMender(self.solver).search.latent_of(pose) for pose in self.poses]
        template = self.solver.template
        pale = pale_vertices(self.solver.cage_rig.quads, template.binding)
        assert pale is not None
        bare = pale[template.faces].all(axis=1)
        noise = np.random.default_rng(0)
        height, width = 300, 360
        rows, columns = np.mgrid[:height, :width]
        floor = 140.0 + 15.0 * np.sin(columns / 17.0) + 10.0 * np.cos(rows / 23.0)
        scene = floor[:, :, None] * np.array([0.97, 1.0, 1.02])
        self.views: list[list[View]] = []
        self.whole: list[list[Bools]] = []
        images: list[list[Bytes]] = [[] for _ in self.rig]
        masks: list[list[Bools]] = [[] for _ in self.rig]
        for pose in self.poses:
            surface = self.solver.deform(pose)
            fur = cast_masks(self.rig, surface, np.ascontiguousarray(template.faces[~bare]))
            feet = cast_masks(self.rig, surface, np.ascontiguousarray(template.faces[bare]))
            self.whole.append([body | foot for body, foot in zip(fur, feet, strict=True)])
            for camera, (body, foot) in enumerate(zip(fur, feet, strict=True)):
                shade = cv2.GaussianBlur(cv2.dilate((body | foot).view(np.uint8), np.ones((25, 25))) * 1.0, (0, 0), 6)
                picture = scene * (1.0 - 0.4 * shade[:, :, None])
                picture[foot] = (120.0, 125.0, 165.0)
                picture[body] = (28.0, 28.0, 30.0)
                picture += noise.normal(0.0, 2.0, picture.shape)
                images[camera].append(np.clip(np.rint(picture), 0, 255).astype(np.uint8))
                masks[camera].append(body)
        grounds = [ground_of(images[camera], masks[camera]) for camera in range(len(self.rig))]
        for frame in range(len(self.poses)):
            self.views.append([View(images[c][frame], masks[c][frame], grounds[c]) for c in range(len(self.rig))])
        self.feet = FeetInImages(self.solver, self.limbs, self.rig)

    def learnt_with(self, poses: list[QuadPose]) -> list[FootPixels]:
        """Pixels of feet as a template that stands like this has them."""
        pixels = []
        for frame, (pose, latent) in enumerate(zip(poses, self.latents, strict=True)):
            masks = [view.mask for view in self.views[frame]]
            for camera, view in enumerate(self.views[frame]):
                pixels.append(self.feet.pixels(frame, camera, view, masks, pose, latent))
        return [one for one in pixels if one is not None]

    def shown(self, known: list[FootPixels], frame: int, pose: QuadPose) -> np.ndarray:
        """What a frame's images show of the feet of a pose, by colours of the other frames."""
        colours, every = self.feet.colours(known, range(frame, frame + 1)), np.ones(len(self.feet.legs), np.bool_)
        return self.feet.shown(self.feet.scores(self.views[frame], colours, pose, every)[None], pose)


@lru_cache(maxsize=1)
def filmed() -> Filmed:
    """The scene, made once."""
    return Filmed()
