"""A function that is compiled for the types it is called with: numba's dispatcher with our cache, and lean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.sigutils import normalize_signature

from calibration.foundation.kernels.cache import KernelCache
from calibration.foundation.kernels.compiling import OURS, is_inner, quickly

__all__ = ["Kernel"]


class Kernel(CPUDispatcher):  # type: ignore[misc]
    """A compiled function; ``options`` are those of the compiler.

    What was compiled for another kernel alone cannot be called from Python (`calibration.foundation.kernels.lean`). It
    is known to kernels, and compiled once more should it be called.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        super().__init__(function, targetoptions={"nopython": True, "boundscheck": None, **options})
        self._cache = KernelCache(function, repr(options))
        self._linked_only: set[Any] = set()
        OURS.add(function)

    def add_overload(self, cres: Any) -> None:
        """Take what was compiled."""
        if is_inner():
            kinds = tuple(cres.signature.args)
            self.overloads[kinds] = cres
            self._linked_only.add(kinds)
        else:
            super().add_overload(cres)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return how a kernel calls this one: with numbers, not with a type for each constant that it hands over."""
        named = {name: types.unliteral(kind) for name, kind in dict(kws).items()}
        return super().get_call_template(tuple(types.unliteral(kind) for kind in args), named)

    def compile(self, sig: Any) -> Any:
        """Compile for the given types, or return what is there for them."""
        kinds = tuple(normalize_signature(sig)[0])
        with global_compiler_lock, quickly():
            if kinds in self._linked_only and not is_inner():
                self._linked_only.remove(kinds)
                del self.overloads[kinds]
            return super().compile(sig)
