"""What makes a synthetic recording hard: one number each, all off by default."""

from __future__ import annotations

from dataclasses import dataclass, fields

from calibration.foundation.errors import InputError

__all__ = ["StudioOptions"]

#: Allowed range of every number: (lowest, highest).
RANGES: dict[str, tuple[float, float]] = {
    "seed": (0, 2**31 - 1),
    "lamps": (1, 8),
    "shadows": (0.0, 1.0),
    "texture": (0.0, 1.0),
    "floor_texture": (0.0, 1.0),
    "uneven_light": (0.0, 1.0),
    "noise": (0.0, 64.0),
    "motion_blur": (0.0, 1.0),
    "defocus": (0.0, 20.0),
    "vignetting": (0.0, 1.0),
    "gain_drift": (0.0, 1.0),
    "flicker": (0.0, 1.0),
    "clutter": (0, 5000),
    "reflections": (0.0, 1.0),
    "dropped_frames": (0.0, 0.5),
    "time_offset": (0.0, 10.0),
}


@dataclass(frozen=True)
class StudioOptions:
    """Difficulty of the light images.

    Attributes:
        seed: of everything random in the pictures: noise, clutter, textures, lamp places, drops.
        colour: three channels (BGR) instead of one.
        lamps: number of lamps around the scene, besides ambient light.
        shadows: share of a lamp's light that a cast shadow takes away, 0 to 1.
        texture: contrast of the skin's pattern, fixed to the skin, 0 to 1.
        floor_texture: contrast of the floor's pattern, 0 to 1.
        uneven_light: relative variation of the light over the scene, 0 to 1.
        noise: standard deviation of the sensor noise at mid grey, grey levels; it grows with the signal.
        motion_blur: share of the frame interval during which the shutter is open, 0 to 1.
        defocus: standard deviation of the lens blur, px.
        vignetting: loss of light in the image corners, 0 to 1.
        gain_drift: relative change of the gain from the first frame to the last.
        flicker: relative amplitude of a 100 Hz mains flicker.
        clutter: number of bedding chips that lie on the floor.
        reflections: share of light that the four transparent walls reflect, 0 to 1.
        dropped_frames: share of the frames that a camera loses; its video is shorter by so many.
        time_offset: largest shift of a camera's clock, in frames; each camera draws its own.
    """

    seed: int = 0
    colour: bool = False
    lamps: int = 2
    shadows: float = 0.0
    texture: float = 0.0
    floor_texture: float = 0.0
    uneven_light: float = 0.0
    noise: float = 0.0
    motion_blur: float = 0.0
    defocus: float = 0.0
    vignetting: float = 0.0
    gain_drift: float = 0.0
    flicker: float = 0.0
    clutter: int = 0
    reflections: float = 0.0
    dropped_frames: float = 0.0
    time_offset: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name == "colour":
                continue
            value = getattr(self, field.name)
            lowest, highest = RANGES[field.name]
            if not isinstance(value, int | float) or not lowest <= value <= highest:
                raise InputError(
                    f"studio option {field.name}: wanted a number of {lowest:g} to {highest:g}, got {value!r}"
                )
