"""Limbs of a rig of quads: the chains that hang on the trunk, and which points of the body are theirs.

A region between three or more quads is a place where chains meet. A chain that leads from there to an end of the body
is a limb (arms, legs, head, tail); all that lies between such places is the trunk, the first limb of the list.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from tracking.quads.oriented_quads import QuadPose, QuadRig

__all__ = ["Limbs", "limbs_of"]

#: What a limb is called by the quad that it begins with, in people and in animals.
_NAMES = {"shoulder": ("arm", "fore_limb"), "hip": ("leg", "hind_limb"), "neck": ("head", "head")}


@dataclass(frozen=True, eq=False)
class Limbs:
    """Limbs of a rig.

    Attributes:
        names: (L,) the trunk first.
        chains: per limb its quads, from the trunk outwards.
        parents: (L,) the quad of the trunk that each hangs on; the root for the trunk itself.
        of_quad: (Q,) limb of each quad.
    """

    names: tuple[str, ...]
    chains: tuple[Ints, ...]
    parents: Ints
    of_quad: Ints

    def __len__(self) -> int:
        return len(self.names)

    def nearest_quads(self, binding: Floats) -> Ints:
        """Return the quad (P,) that carries most of each point bound to the cage (P, 4 Q + F)."""
        return np.asarray(np.argmax(self._shares(binding), axis=1), np.int64)

    def of_points(self, binding: Floats) -> Ints:
        """Return the limb (P,) of points bound to the cage: that whose quads carry most of them."""
        share = self._shares(binding)
        by_limb = np.stack([share[:, self.of_quad == limb].sum(axis=1) for limb in range(len(self))], axis=1)
        return np.asarray(np.argmax(by_limb, axis=1), np.int64)

    def of_markers(self, binding: Floats) -> Ints:
        """Return the limb (P,) by which a point of the skin is judged: what a tail's root carries is the trunk's.

        The rump goes with the trunk however the tail is bent.
        """
        owner = self.of_points(binding)
        for limb, name in enumerate(self.names):
            if name == "tail":
                owner[self.nearest_quads(binding) == self.chains[limb][0]] = 0
        return owner

    def _shares(self, binding: Floats) -> Floats:
        quads = len(self.of_quad)
        return np.asarray(np.abs(binding[:, : 4 * quads]).reshape(len(binding), quads, 4).sum(axis=2))

    def moved(self, pose: QuadPose, limb: int, other: QuadPose) -> QuadPose:
        """Return a pose with one limb as it hangs on the trunk in another pose."""
        parent, chain = int(self.parents[limb]), self.chains[limb]
        turn = pose.rotations[parent] @ other.rotations[parent].T
        rotations, centres = pose.rotations.copy(), pose.centres.copy()
        rotations[chain] = turn @ other.rotations[chain]
        centres[chain] = pose.centres[parent] + (other.centres[chain] - other.centres[parent]) @ turn.T
        return QuadPose(rotations, centres)


def limbs_of(rig: QuadRig) -> Limbs:
    """Find the limbs of a rig."""
    beside: list[list[int]] = [[] for _ in rig.quad_names]
    for number, region in enumerate(rig.regions):
        for quad in region.quads:
            beside[quad].append(number)
    crossings = {number for number, region in enumerate(rig.regions) if len(region.quads) > 2}
    chains: list[tuple[int, list[int]]] = []
    for number in sorted(crossings):
        for quad in rig.regions[number].quads:
            chain, at = [quad], number
            while True:
                onward = [other for other in beside[chain[-1]] if other != at]
                if not onward or onward[0] in crossings:
                    break
                at = onward[0]
                chain += [other for other in rig.regions[at].quads if other != chain[-1]]
            if not onward and rig.root not in chain:
                chains.append((number, chain))
    of_quad = np.zeros(len(rig), np.int64)
    for limb, (_, chain) in enumerate(chains, start=1):
        of_quad[chain] = limb
    trunk = np.flatnonzero(of_quad == 0)
    parents = [rig.root]
    for number, _ in chains:
        held = [quad for quad in rig.regions[number].quads if of_quad[quad] == 0]
        parents.append(held[0] if held else rig.root)
    names = ("trunk", *(_limb_name(rig, chain[0]) for _, chain in chains))
    return Limbs(names, (trunk, *(np.array(chain, np.int64) for _, chain in chains)), np.array(parents), of_quad)


def _limb_name(rig: QuadRig, quad: int) -> str:
    name = rig.quad_names[quad]
    side = next((word for word in ("left_", "right_") if name.startswith(word)), "")
    person = any(word.endswith("hand") for word in rig.quad_names)
    base = name.removeprefix(side)
    return side + _NAMES.get(base, (base.removesuffix("_base"),) * 2)[0 if person else 1]
