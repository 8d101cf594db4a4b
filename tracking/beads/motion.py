"""Where a bead should be next: constant-velocity Kalman filters in the image, one per view and bead."""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Floats

__all__ = ["PixelFilters", "heavy_tailed"]

#: Floor under a fit's own error, px: the background is never quite the quadratic of its model.
FLOOR_PX = 0.15
#: Squared Mahalanobis distance from which surprises are taken as a change of motion rather than as another bead.
USUAL2 = 4.0


def heavy_tailed(distance2: Floats) -> Floats:
    """Return the price of squared distances: as they are up to two sigmas, growing with their logarithm beyond.

    Limbs mostly glide and now and then start, land and turn, with accelerations thirty times the usual: their
    distribution has heavy tails, and a bead that looks right and agrees with the other view is believed there.
    """
    surprise = np.maximum(distance2 / USUAL2, 1.0)
    return np.asarray(np.minimum(distance2, USUAL2) + USUAL2 * np.log(surprise))


class PixelFilters:
    """Filters of (C, B) points with state (x, y, vx, vy), px and px per frame; NaN: not started.

    Attributes:
        mean: (C, B, 4).
        cov: (C, B, 4, 4).
    """

    def __init__(self, views: int, beads: int, *, acceleration_px: float, start_speed_px: float) -> None:
        self.mean: Floats = np.full((views, beads, 4), np.nan)
        self.cov: Floats = np.zeros((views, beads, 4, 4))
        self._speed2 = start_speed_px**2
        self._step = np.eye(4)
        self._step[0, 2] = self._step[1, 3] = 1.0
        # White acceleration, constant within a frame (Bar-Shalom, discrete white-noise acceleration model).
        gain = np.array([[0.5, 0.0], [0.0, 0.5], [1.0, 0.0], [0.0, 1.0]])
        self._noise = acceleration_px**2 * gain @ gain.T
        self._before = (self.mean.copy(), self.cov.copy())

    def start(self, view: int, bead: int, pixel: Floats, spread_px: float, speed: Floats | None = None) -> None:
        """Begin at a pixel, at a speed (px per frame), or at rest as far as is known."""
        if speed is None or not np.isfinite(speed).all():
            self.mean[view, bead] = [pixel[0], pixel[1], 0.0, 0.0]
            self.cov[view, bead] = np.diag([spread_px**2, spread_px**2, self._speed2, self._speed2])
        else:
            self.mean[view, bead] = [pixel[0], pixel[1], speed[0], speed[1]]
            self.cov[view, bead] = np.diag([spread_px**2, spread_px**2, 2.0**2, 2.0**2])

    def predict(self) -> None:
        """Move by one frame, and remember that state for `undo`."""
        self.mean = self.mean @ self._step.T
        self.cov = self._step @ self.cov @ self._step.T + self._noise
        self._before = (self.mean.copy(), self.cov.copy())

    def started(self, view: int, bead: int) -> bool:
        """Whether the filter has ever had a point."""
        return bool(np.isfinite(self.mean[view, bead, 0]))

    def spread(self, view: int, bead: int) -> float:
        """Return the standard deviation of the prediction in its worse direction, px."""
        cov = self.cov[view, bead]
        half = 0.5 * (cov[0, 0] + cov[1, 1])
        return float(np.sqrt(half + np.hypot(0.5 * (cov[0, 0] - cov[1, 1]), cov[0, 1])))

    def distance2(self, view: int, bead: int, pixels: Floats, noise_px: float) -> Floats:
        """Return the squared Mahalanobis distance of (n, 2) pixels from the prediction, (n,)."""
        cov = self.cov[view, bead]
        a, b, d = cov[0, 0] + noise_px**2, cov[0, 1], cov[1, 1] + noise_px**2
        x = pixels[..., 0] - self.mean[view, bead, 0]
        y = pixels[..., 1] - self.mean[view, bead, 1]
        return np.asarray((d * x * x - 2.0 * b * x * y + a * y * y) / (a * d - b * b))

    def update(self, view: int, bead: int, pixel: Floats, cov: Floats) -> None:
        """Take in a measured pixel with its (2, 2) covariance."""
        if not self.started(view, bead):
            self.start(view, bead, pixel, 0.5)
            return
        prior = self.cov[view, bead]
        a, b = prior[0, 0] + cov[0, 0] + FLOOR_PX**2, prior[0, 1] + cov[0, 1]
        d = prior[1, 1] + cov[1, 1] + FLOOR_PX**2
        gain = prior[:, :2] @ (np.array([[d, -b], [-b, a]]) / (a * d - b * b))
        self.mean[view, bead] += gain @ (pixel - self.mean[view, bead, :2])
        posterior = prior - gain @ prior[:2, :]
        self.cov[view, bead] = 0.5 * (posterior + posterior.T)

    def undo(self, view: int, bead: int) -> None:
        """Take back this frame's update."""
        self.mean[view, bead] = self._before[0][view, bead]
        self.cov[view, bead] = self._before[1][view, bead]
