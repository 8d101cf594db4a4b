"""Gaussian spots fitted to an X-ray image, compiled: damped weighted least squares on the attenuation.

Along a ray, attenuations add, so a bead is a bump *added* to whatever lies behind it in the logarithm of the
image, also across the edge of a bone; in the image itself the bump would be taller on the brighter side and
the centre would be drawn there. The noise of the logarithm is that of the photon count: variance as 1/intensity.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Bytes, Floats, Singles
from calibration.foundation.compiled import compiled

__all__ = ["fit_each_spot", "fit_spot_group", "window_radius"]

#: Terms of the background under a spot: 1, u, v, u^2, uv, v^2.
BACKGROUND = 6
#: Steps of the damped least squares; spots that deserve to converge do so in five to ten.
MAX_STEPS = 25


class Window(NamedTuple):
    """Pixels that a fit looks at, (n,) each: place, px, attenuation, and weight of mean 1."""

    x: Floats
    y: Floats
    value: Floats
    weight: Floats


@compiled
def window_radius(sigma: float) -> float:
    """Return the radius of the fit window for a spot of this sigma, px."""
    return max(3.2 * sigma, sigma + 3.5)


# Over 80 lines: one Levenberg-Marquardt loop whose arrays are made once; its steps share all of them.
@compiled
def fit_spot_group(
    image: NDArray[Any],
    table: Singles,
    start: Floats,
    prior_weight: Floats,
    radius: float,
    max_shift: float,
    blind: Bytes,
) -> tuple[Floats, Floats, float]:
    """Fit Gaussian spots that may overlap, on one smooth background, by damped weighted least squares.

    Model of the attenuation: ``sum_k a_k exp(-|p - c_k|^2 / (2 s_k^2)) + quadratic(p)``, over the pixels within
    ``radius`` of any start. A spot that is half hidden by another is held by its own past: ``prior_weight`` adds
    ``w_s (s - s_0)^2 + w_a (a - a_0)^2``, in units of the fit's own noise.

    Args:
        image: (H, W) grey values.
        table: attenuation of each grey value.
        start: (k, 4) x, y, sigma, contrast.
        prior_weight: (k, 2) inverse variances of sigma and contrast about their start (0: free).
        radius: px.
        max_shift: px a centre may move from its start; beyond, the spot counts as failed.
        blind: (H, W) non-zero where the image is not exposed (see `blind_rim`), or `NOTHING_BLIND`: such pixels do not
            count, and a spot with one within 1.5 sigma of its centre is half hidden and counts as failed.

    Returns:
        (k, 4) fitted values (NaN: failed), (k, 2, 2) covariance of the centres, and the noise (1 sigma) of the fit.
    """
    height, width = image.shape
    count = start.shape[0]
    size = BACKGROUND + 4 * count
    failed = np.full((count, 4), np.nan)
    nowhere = np.full((count, 2, 2), np.nan)
    x0 = max(int(np.floor(start[:, 0].min() - radius)), 0)
    x1 = min(int(np.ceil(start[:, 0].max() + radius)), width - 1)
    y0 = max(int(np.floor(start[:, 1].min() - radius)), 0)
    y1 = min(int(np.ceil(start[:, 1].max() + radius)), height - 1)
    if x1 - x0 < 3 or y1 - y0 < 3:
        return failed, nowhere, np.nan
    window = _window(image, table, start, radius, blind, (x0, x1, y0, y1))
    n = window.x.shape[0]
    if n < size + 4:
        return failed, nowhere, np.nan
    u = (window.x - start[:, 0].mean()) / radius
    w = (window.y - start[:, 1].mean()) / radius
    state = _start_state(window, start)
    normal = np.zeros((size, size))
    gradient = np.zeros(size)
    damping = 1e-3
    best = np.inf
    noise2 = 1.0
    trial = state.copy()
    accepted_normal = normal.copy()
    accepted_gradient = gradient.copy()
    for _ in range(MAX_STEPS):
        cost = _linearise(window, u, w, trial, normal, gradient)
        if best == np.inf:
            noise2 = max(cost / (n - size), 1e-12)
        cost = _add_priors(trial, start, prior_weight, noise2, cost, normal, gradient)
        for j in range(size):
            for m in range(j):
                normal[m, j] = normal[j, m]
        done = False
        if cost < best:
            done = best < np.inf and best - cost < 1e-6 * best
            best = cost
            state[:] = trial
            accepted_normal[:] = normal
            accepted_gradient[:] = gradient
            damping = max(damping * 0.2, 1e-9)
        else:
            damping *= 8.0
            if damping > 1e6:
                break
        if done:
            break
        damped = accepted_normal.copy()
        for j in range(size):
            damped[j, j] += damping * (accepted_normal[j, j] + 1e-9)
        step = np.linalg.solve(damped, accepted_gradient)
        trial[:] = state + step
        for k in range(count):
            b = BACKGROUND + 4 * k
            trial[b + 2] = min(max(trial[b + 2], 0.4), 3.0 * start[k, 2])
    fitted = np.empty((count, 4))
    covariance = np.empty((count, 2, 2))
    noise2 = max(best / (n - size), 1e-12)
    for j in range(size):
        accepted_normal[j, j] += 1e-12
    inverse = np.linalg.inv(accepted_normal)
    for k in range(count):
        b = BACKGROUND + 4 * k
        shift2 = (state[b] - start[k, 0]) ** 2 + (state[b + 1] - start[k, 1]) ** 2
        ok = shift2 <= max_shift * max_shift and state[b + 3] > 0.0 and state[b + 2] < 2.9 * start[k, 2]
        ok = ok and not _half_hidden(blind, state[b], state[b + 1], 1.5 * state[b + 2])
        for j in range(4):
            fitted[k, j] = state[b + j] if ok else np.nan
        for j in range(2):
            for m in range(2):
                covariance[k, j, m] = noise2 * inverse[b + j, b + m] if ok else np.nan
    return fitted, covariance, np.sqrt(noise2)


@compiled
def _window(
    image: NDArray[Any],
    table: Singles,
    start: Floats,
    radius: float,
    blind: Bytes,
    bounds: tuple[int, int, int, int],
) -> Window:
    """Return the exposed pixels within ``radius`` of any start, of those from x0 to x1 and y0 to y1 of ``bounds``."""
    x0, x1, y0, y1 = bounds
    most = (x1 - x0 + 1) * (y1 - y0 + 1)
    px = np.empty(most)
    py = np.empty(most)
    value = np.empty(most)
    weight = np.empty(most)
    n = 0
    masked = blind.size > 0
    for y in range(y0, y1 + 1):
        for x in range(x0, x1 + 1):
            if masked and blind[y, x] != 0:
                continue
            near = 1e30
            for k in range(start.shape[0]):
                d2 = (x - start[k, 0]) ** 2 + (y - start[k, 1]) ** 2
                near = min(near, d2)
            if near <= radius * radius:
                v = float(table[image[y, x]])
                px[n] = x
                py[n] = y
                value[n] = v
                # Photon noise (variance of the log is 1 / intensity), and a rim that fades so that the fit
                # does not jump as pixels enter and leave.
                weight[n] = np.exp(-v) * np.exp(-1.5 * near / (radius * radius)) + 1e-6
                n += 1
    if n > 0:
        scale = n / weight[:n].sum()
        for i in range(n):
            weight[i] *= scale
    return Window(px[:n], py[:n], value[:n], weight[:n])


@compiled
def _start_state(window: Window, start: Floats) -> Floats:
    """Return the unknowns (6 + 4 k,) at the start: a flat background, the weighted mean of what the spots leave."""
    px, py, value, weight = window
    count, n = start.shape[0], px.shape[0]
    state = np.zeros(BACKGROUND + 4 * count)
    for k in range(count):
        for j in range(4):
            state[BACKGROUND + 4 * k + j] = start[k, j]
    total = 0.0
    for i in range(n):
        rest = value[i]
        for k in range(count):
            d2 = (px[i] - start[k, 0]) ** 2 + (py[i] - start[k, 1]) ** 2
            rest -= start[k, 3] * np.exp(-0.5 * d2 / start[k, 2] ** 2)
        total += weight[i] * rest
    state[0] = total / n
    return state


@compiled
def _linearise(window: Window, u: Floats, w: Floats, trial: Floats, normal: Floats, gradient: Floats) -> float:
    """Fill the lower triangle of the normal matrix and the gradient at ``trial``; return the cost.

    ``u`` and ``w`` (n,) are the pixels' places in which the background is quadratic.
    """
    px, py, value, weight = window
    size = trial.shape[0]
    row = np.zeros(size)
    normal[:] = 0.0
    gradient[:] = 0.0
    cost = 0.0
    for i in range(px.shape[0]):
        row[0] = 1.0
        row[1] = u[i]
        row[2] = w[i]
        row[3] = u[i] * u[i]
        row[4] = u[i] * w[i]
        row[5] = w[i] * w[i]
        model = 0.0
        for j in range(BACKGROUND):
            model += row[j] * trial[j]
        for b in range(BACKGROUND, size, 4):
            dx = px[i] - trial[b]
            dy = py[i] - trial[b + 1]
            s2 = trial[b + 2] * trial[b + 2]
            g = np.exp(-0.5 * (dx * dx + dy * dy) / s2)
            ag = trial[b + 3] * g
            model += ag
            row[b] = ag * dx / s2
            row[b + 1] = ag * dy / s2
            row[b + 2] = ag * (dx * dx + dy * dy) / (s2 * trial[b + 2])
            row[b + 3] = g
        r = value[i] - model
        wi = weight[i]
        cost += wi * r * r
        for j in range(size):
            wj = wi * row[j]
            gradient[j] += wj * r
            for m in range(j + 1):
                normal[j, m] += wj * row[m]
    return cost


@compiled
def _add_priors(
    trial: Floats, start: Floats, prior_weight: Floats, noise2: float, cost: float, normal: Floats, gradient: Floats
) -> float:
    """Add what is known of sigma and contrast to the normal equations; return the cost with it."""
    for k in range(start.shape[0]):
        b = BACKGROUND + 4 * k
        for j in range(2):
            lam = prior_weight[k, j] * noise2
            d = trial[b + 2 + j] - start[k, 2 + j]
            cost += lam * d * d
            gradient[b + 2 + j] -= lam * d
            normal[b + 2 + j, b + 2 + j] += lam
    return cost


@compiled
def _half_hidden(blind: Bytes, x: float, y: float, core: float) -> bool:
    """Return whether any pixel within ``core`` px of a place is not exposed."""
    height, width = blind.shape
    for j in range(max(int(y - core), 0), min(int(y + core) + 2, height)):
        for i in range(max(int(x - core), 0), min(int(x + core) + 2, width)):
            if blind[j, i] != 0 and (i - x) ** 2 + (j - y) ** 2 < core * core:
                return True
    return False


@compiled
def fit_each_spot(
    image: NDArray[Any], table: Singles, start: Floats, max_shift: float, radius: float, blind: Bytes
) -> tuple[Floats, Floats, Floats]:
    """Run `fit_spot_group` on each row of ``start`` alone; negative ``max_shift`` or ``radius`` follow sigma."""
    n = start.shape[0]
    values = np.full((n, 4), np.nan)
    covariance = np.full((n, 2, 2), np.nan)
    noise = np.full(n, np.nan)
    free = np.zeros((1, 2))
    for i in range(n):
        shift = max_shift if max_shift >= 0.0 else 2.0 * start[i, 2]
        reach = radius if radius > 0.0 else window_radius(start[i, 2])
        fitted, cov, noise[i] = fit_spot_group(image, table, start[i : i + 1], free, reach, shift, blind)
        values[i] = fitted[0]
        covariance[i] = cov[0]
    return values, covariance, noise
