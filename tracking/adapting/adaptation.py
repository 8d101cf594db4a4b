"""What the search for a subject's shape found: the body, the frames that told it, how well it fits frames held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.foundation.arrays import Floats
from tracking.adapting.scale_search import Found
from tracking.subjects.garments import Skirt
from tracking.subjects.shape import BodyShape
from tracking.subjects.subject import Subject

__all__ = ["Adaptation"]

CLOTHED, LOOSE = ("arm", "thigh", "shank"), 1.3
"""Parts that clothes make wide, and the girth, against the size, from which on they do: of bare people at most 1.2."""


@dataclass(frozen=True, eq=False)
class Adaptation:
    """What the search for a shape found.

    Attributes:
        shape: lengths and girths; those of the body it began with where they were not kept.
        subject: the body in that shape; None for the plain body.
        fitted, held: frames that the shape was estimated from, and those that decided.
        before, after: mean overlap in the frames held out, with the plain and with the new body; NaN where untried.
        why: why the plain body stays; empty where it does not.
        found: where the subject is in the frames looked at, with the body kept; ``lead`` is NaN where no rival was
            looked for.
        sigma: 1 sigma of the logarithms (K,), lengths first.
        skin: (V,) how far out the vertices of the outline template lie, mm; None where the body's own was kept.
        skirt: that the subject wears; None for a bare body.
        spread: (V,) how loosely outlines lie around the outline template, mm; None where that is not looked for.
    """

    shape: BodyShape
    subject: Subject | None
    fitted: tuple[int, ...]
    held: tuple[int, ...]
    before: float
    after: float
    why: str
    found: tuple[Found, ...]
    sigma: Floats
    skin: Floats | None = None
    skirt: Skirt | None = None
    spread: Floats | None = None

    @property
    def loosely_dressed(self) -> bool:
        """Whether a limb is thicker than people's are: clothes lie otherwise in each frame, and all are wanted."""
        limbs = [girth for part, girth in self.shape.girths.items() if part in CLOTHED]
        return max(limbs, default=0.0) > LOOSE * self.shape.scale

    def as_table(self) -> dict[str, Any]:
        """Return plain values, to be written with the results; None where nothing was tried."""
        tried = bool(np.isfinite(self.before))
        return {
            "body": self.shape.body,
            "lengths": self.shape.lengths,
            "girths": self.shape.girths,
            "sigma": self.sigma.tolist() if not self.why else None,
            "kept": not self.why,
            "fitted": list(self.fitted),
            "held": list(self.held),
            "why": self.why,
            "before": self.before if tried else None,
            "after": self.after if tried else None,
            "skin": None if self.skin is None else self.skin.tolist(),
            "skirt": None if self.skirt is None else self.skirt.as_table(),
            "spread": None if self.spread is None else self.spread.tolist(),
        }
