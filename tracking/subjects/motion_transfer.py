"""The motion of one subject given to another whose quads bear the same names (Duveau et al. 2012).

A mesh that lies inside the tracked subject's own cage needs no transfer: its points are bound to that cage
(`CageRig.bind`) and carried (`carried_points`). Another body, of other lengths, takes the rotations of the quads, and
its bones, of its own lengths, point where those of the tracked subject do.
"""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from tracking.quads.oriented_quads import QuadPose, QuadRig

__all__ = ["transferred"]


def transferred(source: QuadRig, target: QuadRig, rotations: Floats, centres: Floats) -> QuadPose:
    """Carry quads of one subject over to another.

    Args:
        source: the tracked subject's quads at rest.
        target: the other's, with the same names.
        rotations: (T, Q, 3, 3) of the tracked quads; NaN where not tracked.
        centres: (T, Q, 3) mm.

    Returns:
        The other's quads. Its root goes where the tracked one goes, its height over the origin scaled as the bodies.

    Raises:
        InputError: the quads differ.
    """
    if source.quad_names != target.quad_names:
        missing = [name for name in target.quad_names if name not in source.quad_names]
        raise InputError(
            f"motion of rig '{source.name}' cannot be given to rig '{target.name}': their quads differ"
            + (f" ('{missing[0]}')" if missing else "")
            + "; both must be made from the same built-in body"
        )
    # Both rest poses are one pose of the body; what a quad's frame differs by there is its own.
    turned = rotations @ (np.swapaxes(source.rotations, -1, -2) @ target.rotations)
    size = _spread(target) / _spread(source)
    result = np.empty_like(centres)
    result[:, source.root] = centres[:, source.root] * np.array([1.0, 1.0, size])
    done, queue = {source.root}, [source.root]
    pairs = source.neighbours
    while queue:
        quad = queue.pop(0)
        for a, b in pairs:
            other = int(b) if a == quad else int(a) if b == quad else -1
            if other < 0 or other in done:
                continue
            own = float(np.linalg.norm(target.centres[other] - target.centres[quad]))
            theirs = float(np.linalg.norm(source.centres[other] - source.centres[quad]))
            result[:, other] = result[:, quad] + own / max(theirs, 1e-9) * (centres[:, other] - centres[:, quad])
            done.add(other)
            queue.append(other)
    return QuadPose(turned, result)


def _spread(rig: QuadRig) -> float:
    return float(np.linalg.norm(rig.centres - rig.centres.mean(axis=0), axis=1).mean())
