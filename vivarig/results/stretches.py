"""Stretches of frames in which the body, or a limb of it, is not to be trusted: where, how much, and why."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Bools, Floats, Ints
from calibration.foundation.trust import Trust
from vivarig.results.findings import TrackFindings

__all__ = ["WHOLE", "Stretch", "find_stretches", "runs"]

WHOLE = "whole body"
_GAP_S = 0.1
"""Trusted moments shorter than this do not end a stretch: nobody can use them."""


@dataclass(frozen=True)
class Stretch:
    """Frames in a row in which something is not trusted.

    Attributes:
        first, last: frames.
        frames: how many of them are not trusted.
        limbs: which limbs, or `WHOLE`.
        level: the worst of them.
        reasons: why, the most frequent first.
        worst: the frame that shows it best.
    """

    first: int
    last: int
    frames: int
    limbs: tuple[str, ...]
    level: Trust
    reasons: tuple[str, ...]
    worst: int

    @property
    def name(self) -> str:
        """The limbs in words."""
        return ", ".join(limb.replace("_", " ") for limb in self.limbs)


def runs(held: Bools, gap: int = 0) -> list[tuple[int, int]]:
    """Return first and last index of each run of True, runs with at most ``gap`` False between them as one.

    >>> runs(np.array([1, 1, 0, 1, 0, 0, 0, 1], bool), gap=1)
    [(0, 3), (7, 7)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[0], held.astype(np.int8), [0]])))
    found: list[tuple[int, int]] = []
    for start, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if found and start - found[-1][1] - 1 <= gap:
            found[-1] = (found[-1][0], stop - 1)
        else:
            found.append((start, stop - 1))
    return found


def find_stretches(track: TrackFindings, rate_hz: float) -> list[Stretch]:
    """Return the stretches, gravest first: the whole body's, then what remains of each limb.

    Limbs that are doubted over the same frames for the same reason stand together.
    """
    gap = round(_GAP_S * rate_hz)
    if track.limb_trust is None or track.limb_reason is None:
        whole = track.trust > Trust.TRUSTED
        found = [_stretch(track, span, (WHOLE,), track.trust, track.reason) for span in runs(whole, gap)]
        return sorted(found, key=_gravity)
    whole = (track.limb_trust > Trust.TRUSTED).all(axis=1) | (track.trust == Trust.LOST)
    found = [_stretch(track, span, (WHOLE,), track.trust, _telling(track, whole)) for span in runs(whole, gap)]
    for limb, name in enumerate(track.limb_names):
        trust = np.where(whole, 0, track.limb_trust[:, limb])
        for span in runs(trust > Trust.TRUSTED, gap):
            found.append(_stretch(track, span, (name,), trust, track.limb_reason[:, limb]))
    return sorted(_together(found), key=_gravity)


def _telling(track: TrackFindings, whole: Bools) -> Ints:
    """(T,) reason of the frame; where that only says "a limb", the most frequent one of the limbs."""
    assert track.limb_reason is not None
    reason = track.reason.copy()
    vague = {code for code, word in enumerate(track.reasons) if word == "a limb"}
    for frame in np.flatnonzero(whole & np.isin(reason, list(vague))):
        reason[frame] = np.bincount(track.limb_reason[frame]).argmax()
    return reason


def _stretch(track: TrackFindings, span: tuple[int, int], limbs: tuple[str, ...], trust: Ints, reason: Ints) -> Stretch:
    here = slice(span[0], span[1] + 1)
    bad = trust[here] > Trust.TRUSTED
    level = Trust(int(trust[here].max()))
    codes, counts = np.unique(reason[here][bad], return_counts=True)
    words = [track.reasons[code] if code < len(track.reasons) else f"reason {code}" for code in codes]
    order = np.argsort(-counts, kind="stable")
    candidates = span[0] + np.flatnonzero(trust[here] == level)
    return Stretch(
        span[0], span[1], int(bad.sum()), limbs, level, tuple(words[k] for k in order),
        _most_telling(candidates, track.agreement),
    )  # fmt: skip


def _most_telling(frames: Ints, agreement: Floats) -> int:
    """Return the frame of the least agreement; of equal ones the middle one."""
    values = agreement[frames]
    known = np.isfinite(values)
    if not known.any():
        return int(frames[len(frames) // 2])
    return int(frames[np.argmin(np.where(known, values, np.inf))])


def _together(found: list[Stretch]) -> list[Stretch]:
    """Join stretches of several limbs that are the same otherwise."""
    joined: dict[tuple[object, ...], Stretch] = {}
    for one in found:
        key = (one.first, one.last, one.level, one.reasons[:1])
        other = joined.get(key)
        joined[key] = one if other is None else Stretch(
            one.first, one.last, max(one.frames, other.frames), (*other.limbs, *one.limbs), one.level,
            tuple(dict.fromkeys((*other.reasons, *one.reasons))), other.worst,
        )  # fmt: skip
    return list(joined.values())


def _gravity(one: Stretch) -> tuple[int, int, int]:
    return -int(one.level), -one.frames * (3 if one.limbs == (WHOLE,) else len(one.limbs)), one.first
