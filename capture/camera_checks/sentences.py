"""What is wrong with a camera in one sentence, with the way out."""

from __future__ import annotations

import numpy as np

from capture.camera_checks.faults import Fault

__all__ = ["far_alone", "sentence", "unclear"]

_LEAST_DEGREES = 0.05


def sentence(fault: Fault, offset: float = 0.0) -> str:
    """Return a fault in words; ``offset`` is what recording.toml gives the camera already, frames."""
    apart = f"its outlines lie {fault.before_px:.1f} px off the others', {fault.after_px:.1f} px when put right"
    who = fault.camera
    if fault.kind == "late":
        late = "late" if fault.frames > 0 else "early"
        more = " more than its offset says" if offset else ""
        wanted = round(offset + fault.frames)
        return (
            f"{who} is {abs(fault.frames):.1f} frames {late}{more} ({apart}): write offset = {wanted} under "
            f"[cameras.{who}] in recording.toml and run again"
        )
    if fault.kind in ("turned", "moved"):
        shift = float(np.linalg.norm(fault.shift_mm))
        moved = f" and moved by about {shift:.0f} mm" if fault.kind == "moved" else ""
        return (
            f"{who} is turned by {np.linalg.norm(fault.degrees):.1f} degrees{moved} against its calibration "
            f"({_directions(fault)}; {apart}): calibrate again; for this recording copy results/mended_rig.toml, in "
            "which it is put right, beside recording.toml and name it there as rig, or leave the camera out"
        )
    if fault.kind == "exchanged":
        return f"{who} and {fault.other} are exchanged ({apart}): swap their videos in recording.toml"
    how = {"mirrored": "left to right", "flipped": "top to bottom", "upside down": "by half a turn"}[fault.kind]
    verb = "turned" if fault.kind == "upside down" else "mirrored"
    return (
        f"{who} is {verb} {how} against its calibration ({apart}): turn its video back, or calibrate with videos of "
        "the same kind"
    )


def unclear(who: str, off_px: float, left_px: float) -> str:
    """Return that a camera is far off the others and stays so though no fault is known that explains it."""
    apart = f"cannot tell whether {who} is right: its outlines lie {off_px:.1f} px off the others'"
    if np.isinf(left_px):
        return (
            f"{apart}, and where it sees the subject the other views see nothing, in most frames: as a rule it was "
            "turned or moved since it was calibrated, though by how much the outlines do not tell: look at its "
            "silhouettes (--sheet FILE), calibrate again, or leave the camera out"
        )
    after = f", {left_px:.1f} px when the views have mended each other" if np.isfinite(left_px) else ""
    return (
        f"{apart}{after}, and no turn or delay of the camera explains that; its silhouettes may lack a part of the "
        "subject, or hold more than it: look at them (--sheet FILE)"
    )


def far_alone(who: str, off_px: float, left_px: float) -> str:
    """Return that what was wrong with a camera's silhouettes the other views have mended."""
    return (
        f"{who} by itself sees more than the subject, say its mirror image, or less (its outlines lie {off_px:.1f} px "
        f"off the others'); the other views mended that, {left_px:.1f} px are left"
    )


def _directions(fault: Fault) -> str:
    """Return the parts of a turn that matter, in words."""
    names = (("up", "down"), ("to the right", "to the left"), ("clockwise", "counter-clockwise"))
    parts = [
        f"{abs(value):.1f} {words[0] if value > 0 else words[1]}"
        for value, words in zip(fault.degrees.tolist(), names, strict=True)
        if abs(value) >= _LEAST_DEGREES
    ]
    return ", ".join(parts)
