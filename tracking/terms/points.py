"""Points that another program marked in the images as data: pulled to their pixels, robustly.

A mark that several cameras agree on may pull a limb from far away; a lone one only from near, and with half the say.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibration.foundation.arrays import Floats, Singles
from tracking.observations.marks import Marks
from tracking.quads.deformation import CageRig
from tracking.quads.oriented_quads import QuadPose
from tracking.subjects.body_points import BodyPoints
from tracking.terms.texture import match_pixels

__all__ = ["PointTerm"]

FAR, CLOSE = 8.0, 2.0
"""Distances at which a mark counts a quarter, in the outlines' robust scale: a confirmed one, a lone one."""
COMMON = 3.0
"""By how much outlines err together beyond what their energy counts (see `tracking.fitting.markers`)."""
LONE = 0.5
"""Say of a lone mark."""
ELSEWHERE = 3.0
"""Sigmas from which on a point is elsewhere."""


class PointTerm:
    """Marked points of one subject seen by one rig of cameras."""

    def __init__(self, cage_rig: CageRig, points: BodyPoints, camera_rows: Floats, unit: float) -> None:
        self.cage_rig, self.camera_rows, self.unit = cage_rig, camera_rows, unit
        self.place(points)

    def place(self, points: BodyPoints) -> None:
        """Take points as they are known now."""
        self.points = points
        self._binding: Singles = np.ascontiguousarray(points.binding, np.float32)
        self._by_carrier = self.cage_rig.by_carrier(self._binding)
        self._sigma: Floats = points.sigma * self.unit

    def rows(self, seen: Marks, pose: QuadPose, scale: float) -> tuple[Singles, Floats]:
        """Derivatives (2 S, 6 Q) of the weighted residuals of S marks, and these (2 S,).

        Args:
            seen: marks.
            pose: quads.
            scale: robust scale of the outlines, thousandths of the size.
        """
        if seen.places is not None:
            return self._place_rows(seen, pose, scale)
        # Points without say leave no rows: the fit is then that of the outlines to the last bit.
        told = np.isfinite(self._sigma[seen.owner])
        seen = replace(
            seen, owner=seen.owner[told], views=seen.views[told], pixels=seen.pixels[told], weight=seen.weight[told],
            confirmed=seen.confirmed[told],
        )  # fmt: skip
        at = self.cage_rig.deform(self._binding, pose)[seen.owner]
        matches = match_pixels(at, seen.views, seen.pixels, self.camera_rows)
        away = np.sqrt(np.sum(matches.residuals.reshape(-1, 2) ** 2, axis=1))
        reach = scale * self.unit * np.where(seen.confirmed, FAR, CLOSE)
        say = seen.weight * np.where(seen.confirmed, 1.0, LONE)
        root = np.sqrt(say) / (1.0 + (away / reach) ** 2) / self._sigma[seen.owner]
        weights = np.repeat(root, 2) * np.sqrt(matches.weights)
        owner = np.repeat(seen.owner, 2)
        jacobian = self.cage_rig.outline_jacobian(
            self._by_carrier, np.stack([owner, owner], axis=1), matches.directions, weights,
            self.cage_rig.derivatives(pose),
        )  # fmt: skip
        return jacobian, weights * matches.residuals

    def _place_rows(self, seen: Marks, pose: QuadPose, scale: float) -> tuple[Singles, Floats]:
        """The same for points whose place in space is known: three rows each.

        Outlines of one body err together, which their energy does not count (`COMMON`); steadied points do not.
        """
        assert seen.places is not None and seen.place_sigma is not None
        known = np.flatnonzero(np.isfinite(seen.places).all(axis=1) & np.isfinite(seen.place_sigma))
        away = self.cage_rig.deform(self._binding, pose)[known] - seen.places[known]
        far = np.linalg.norm(away, axis=1) / (FAR * scale * self.unit)
        root = np.repeat(COMMON / seen.place_sigma[known] / (1.0 + far**2), 3)
        owner = np.repeat(known, 3)
        jacobian = self.cage_rig.outline_jacobian(
            self._by_carrier, np.stack([owner, owner], axis=1), np.tile(np.eye(3), (len(known), 1)), root,
            self.cage_rig.derivatives(pose),
        )  # fmt: skip
        return jacobian, root * away.ravel()

    def off(self, seen: Marks | None, pose: QuadPose) -> float:
        """How many points, about, are elsewhere by the marks that cameras agree on."""
        return float(np.nansum(self.missed(seen, pose)))

    def missed(self, seen: Marks | None, pose: QuadPose) -> Floats:
        """(P,) how surely each point is elsewhere by the marks that cameras agree on, 0 to 1; NaN without any."""
        share = np.full(len(self._sigma), np.nan)
        if seen is None or not seen.confirmed.any():
            return share
        owner = seen.owner[seen.confirmed]
        at = self.cage_rig.deform(self._binding, pose)[owner]
        residuals = match_pixels(
            at, seen.views[seen.confirmed], seen.pixels[seen.confirmed], self.camera_rows
        ).residuals
        square = np.sum(residuals.reshape(-1, 2) ** 2, axis=1)
        limit = (ELSEWHERE * self._sigma[owner]) ** 2
        missed = np.where(np.isfinite(limit), square / (square + limit), 0.0)
        counts = np.bincount(owner, minlength=len(share))
        share[counts > 0] = np.bincount(owner, missed, minlength=len(share))[counts > 0] / counts[counts > 0]
        return share
