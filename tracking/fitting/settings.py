"""How the solver weighs its terms against each other, and in which steps it goes from coarse to fine."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["COMMON", "OWN_POSES", "Settings"]

COMMON = 3.0
"""By how much outlines err together beyond what the energy takes for one independent sample: the curvature's sigma is
multiplied by it. Chosen, with the floor, so that 68 % of the true errors lie within 1.88 sigma (a ball of one sigma per
axis) on the crane sequence and the sample mouse; the sample human is better than stated."""


@dataclass(frozen=True)
class Settings:
    """How the terms weigh against each other. Lengths are in thousandths of the subject's size (mm for a person).

    Attributes:
        contour_sigma: 1 sigma of an outline sample, beside the template's own spread where that is known.
        contour_length: length of outline whose errors are one and the same.
        robust: robust scales of the local steps, first to last; a residual of this size counts a quarter.
        latent_robust: robust scales of the latent steps.
        sketch: robust scales of the steps by which several starts are compared.
        calm: after a step the robust scale is at most this many times its length.
        warm: robust scale of the first step from a frame beside.
        settled: a step at the last scale that is shorter ends the fit.
        samples: outline samples per view.
        coarse_samples: samples per view of the steps before the last scale.
        reach: pairs further apart are not made, as a multiple of the robust scale.
        shift_sigma, turn_sigma: how far a quad lies from the prior's, rad for the turn.
        variance_weight: weight of log sigma^2(x).
        pair_weight: weight of the neighbours' Gaussians learned from the training poses; None takes them at their word
            where the poses were captured in great number, and for less where they were made up.
        pair_shift, pair_turn: their floors, thousandths and rad.
        bone_weight: weight of the lengths of bones, where these are known (`tracking.terms.bone_lengths`).
        bend, length, twist: weights of the rigidity term, 1 / (sigma in thousandths).
        predict_shift, predict_turn: how far the next frame lies from the prediction.
        mark_sigma: 1 sigma of a mark of the skin's texture.
        mark_robust: a mark this far from its spot counts a quarter.
        hull: fit to the observation's surface (hull or mesh) instead of the outlines.
        one_sided: leave out the pairs from observed to model outline or surface.
    """

    contour_sigma: float = 8.0
    contour_length: float = 25.0
    robust: tuple[float, ...] = (60.0, 45.0, 32.0, 24.0, 20.0, 20.0)
    latent_robust: tuple[float, ...] = (120.0, 90.0, 70.0)
    sketch: tuple[float, ...] = (60.0, 40.0, 28.0)
    calm: float = 3.0
    warm: float = 32.0
    settled: float = 1.5
    samples: int = 160
    coarse_samples: int = 100
    reach: float = 4.0
    shift_sigma: float = 30.0
    turn_sigma: float = 0.2
    variance_weight: float = 1.0
    pair_weight: float | None = None
    pair_shift: float = 4.0
    pair_turn: float = 0.04
    bone_weight: float = 1.0
    bend: float = 0.01
    length: float = 0.05
    twist: float = 0.005
    predict_shift: float = 200.0
    predict_turn: float = 1.5
    mark_sigma: float = 2.0
    mark_robust: float = 10.0
    hull: bool = False
    one_sided: bool = False


OWN_POSES = Settings(
    contour_sigma=4.5,
    shift_sigma=6.0,
    turn_sigma=0.045,
    pair_weight=7.0,
    robust=(60.0, 45.0, 36.0, 30.0, 28.0, 28.0),
)
"""For a subject whose poses were learned from meshes of itself: they deserve more trust than those of others, above all
in how far and how turned neighbouring quads are, which holds in poses that the meshes do not show."""
