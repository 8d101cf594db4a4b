"""Names for the array types that signatures use, and the checks at the public door."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.foundation.errors import InputError

__all__ = ["Bools", "Bytes", "Floats", "Ints", "SameNumbers", "Singles", "frozen", "measured", "shaped"]

Floats: TypeAlias = NDArray[np.float64]
Singles: TypeAlias = NDArray[np.float32]
Bools: TypeAlias = NDArray[np.bool_]
Ints: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]

HUGE = 1e15  # beyond any pixel or millimetre; products of such numbers would overflow


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view of ``array``'s own copy."""
    copy = array.copy()
    copy.setflags(write=False)
    return copy


class SameNumbers:
    """Arrays as what a cache remembers by: equal to others of the same shapes and numbers."""

    def __init__(self, *arrays: NDArray[Any]) -> None:
        self.arrays = arrays
        self._key = tuple((array.shape, array.dtype.str, array.tobytes()) for array in arrays)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameNumbers) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def shaped(value: ArrayLike, shape: tuple[int | None, ...], what: str) -> Floats:
    """Return ``value`` as a read-only float64 array of ``shape`` (None: any length) with finite entries."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be numbers of shape {_words(shape)}") from None
    fits = array.ndim == len(shape) and all(
        want is None or want == got for want, got in zip(shape, array.shape, strict=True)
    )
    if not fits:
        raise InputError(f"{what} must be {_words(shape)}, got {_words(array.shape)}")
    if not np.isfinite(array).all():
        raise InputError(f"{what} must be finite numbers")
    if array.size and np.abs(array).max() > HUGE:
        raise InputError(f"{what} holds {np.abs(array).max():g}, which no rig has")
    array.setflags(write=False)
    return array


def measured(values: Floats, what: str) -> Floats:
    """Return measured numbers, NaN where not observed; infinite ones and those beyond any millimetre are refused."""
    if np.isinf(values).any() or np.nanmax(np.abs(values), initial=0.0) > HUGE:
        raise InputError(f"{what}: a number is infinite or beyond {HUGE:g}")
    return values


def _words(shape: tuple[int | None, ...]) -> str:
    return (
        "(" + ", ".join("n" if size is None else str(size) for size in shape) + ("," if len(shape) == 1 else "") + ")"
    )
