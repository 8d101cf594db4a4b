"""Light leaving a surface point: matte (Lambert) reflection of the lamps and of light from everywhere."""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Bools, Floats, Ints, Singles
from calibration.foundation.compiled import compiled
from capture.studio.scene.options import StudioOptions
from capture.studio.scene.stage import Lamp, Stage
from capture.studio.scene.texture import fractal_noise

__all__ = ["blocked_light", "interpolate_hits", "lamp_light", "reduce_channels", "skin_reflectance"]

#: Weights of red, green, blue in a monochrome sensor.
LUMINANCE = np.array([0.30, 0.59, 0.11], dtype=np.float32)


def reduce_channels(light: Singles, options: StudioOptions) -> Singles:
    """Turn red, green, blue (..., 3) into what the sensor has: BGR (..., 3) or one channel (..., 1)."""
    if options.colour:
        return light[..., ::-1]
    return np.asarray((light @ LUMINANCE)[..., None], dtype=np.float32)


def lamp_light(lamp: Lamp, points: Floats, normals: Floats) -> Singles:
    """Return the light (n, 3) of a lamp on ``points`` with unit ``normals`` (n, 3), without shadows."""
    towards = lamp.position - points
    distance = np.sqrt(np.einsum("ij,ij->i", towards, towards))
    cosine = np.maximum(np.einsum("ij,ij->i", towards, normals) / distance, 0.0)
    strength = cosine * (lamp.distance / distance) ** 2
    return np.asarray(strength[:, None] * lamp.colour, dtype=np.float32)


@compiled
def interpolate_hits(
    triangle: Ints,
    barycentric: Singles,
    faces: Ints,
    vertices: Floats,
    normals: Floats,
    rest: Floats,
    colours: Floats,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return points, unit normals, rest-pose points and colours (n, 3) at hits of a mesh."""
    count = triangle.shape[0]
    out = np.empty((4, count, 3))
    for n in range(count):
        a, b, c = faces[triangle[n], 0], faces[triangle[n], 1], faces[triangle[n], 2]
        v, w = barycentric[n, 0], barycentric[n, 1]
        u = 1.0 - v - w
        length = 0.0
        for axis in range(3):
            out[0, n, axis] = u * vertices[a, axis] + v * vertices[b, axis] + w * vertices[c, axis]
            out[1, n, axis] = u * normals[a, axis] + v * normals[b, axis] + w * normals[c, axis]
            out[2, n, axis] = u * rest[a, axis] + v * rest[b, axis] + w * rest[c, axis]
            out[3, n, axis] = u * colours[a, axis] + v * colours[b, axis] + w * colours[c, axis]
            length += out[1, n, axis] ** 2
        length = max(np.sqrt(length), 1e-12)
        for axis in range(3):
            out[1, n, axis] /= length
    return out[0], out[1], out[2], out[3]


def skin_reflectance(stage: Stage, rest: Floats, colours: Floats) -> Singles:
    """Return the reflectance (n, 3) of skin painted ``colours`` at rest-pose points (n, 3)."""
    amount = stage.options.texture
    paint = colours.astype(np.float32)
    if amount > 0.0:
        # Patches a thirtieth of the body across down to an eighth of that: enough for optical flow to hold on.
        noise = fractal_noise(rest, scale=stage.scale / 30.0, octaves=4, seed=stage.options.seed + 23)
        paint = paint * np.exp(np.float32(amount) * noise)[:, None]
    return np.clip(paint, 0.01, 0.95)


def blocked_light(blocked: Bools, options: StudioOptions) -> Singles:
    """Return the share (n,) of a lamp's light that arrives where ``blocked`` says whether it is hidden."""
    return 1.0 - np.float32(options.shadows) * blocked.astype(np.float32)
