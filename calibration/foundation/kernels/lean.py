"""Numba without the work that a kernel does not need: a first run compiles some 400 functions.

Most of them are called by other kernels alone, and linked into these. Numba yet makes each of them callable from Python
and from C, optimises it as if it stood alone, and turns it into machine code that nobody runs. Here what is compiled on
the way to a kernel (an *inner* function: one of ours, or one of numba's own) stays in LLVM's language until it is
linked. The kernel as a whole is optimised as before.

The hooks below act while one of our kernels is being compiled, which numba does under a lock, and are numba's own code
at all other times, but for two that are quicker ways to the same answer: who compiles functions of his own in the same
process notices nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from llvmlite.binding import ffi
from numba.core import errors, ir
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen, RuntimeLinker
from numba.core.environment import lookup_environment
from numba.core.lowering import Lower
from numba.core.targetconfig import ConfigStack, TargetConfig
from numba.extending import overload
from numba.np import arrayobj

from calibration.foundation.kernels.compiling import OURS

__all__ = ["lean"]

_ENVIRONMENT = "_ZN08NumbaEnv"
"""How numba names the place of a function's Python constants."""


_NO_VARIABLES = frozenset({str, int, float, bool, type(None), ir.Loc})


class _Depth:
    """How many of our kernels are being compiled, one for the other."""

    now = 0


@contextlib.contextmanager
def lean() -> Iterator[None]:
    """Compile what is compiled inside without waste."""
    # every call of LLVM, thousands of them in a kernel's compiling, is announced to timers that nobody reads
    callbacks = ffi.lib._lock._cblist
    announced, callbacks[:] = list(callbacks), []
    complaint, arrayobj.raise_with_shape_context = arrayobj.raise_with_shape_context, _shapes_differ
    _Depth.now += 1
    try:
        yield
    finally:
        _Depth.now -= 1
        callbacks[:] = announced
        arrayobj.raise_with_shape_context = complaint


def _shapes_differ(source: Any, target: Any) -> None:
    raise NotImplementedError


@overload(_shapes_differ)  # type: ignore[untyped-decorator]
def _complain(source: Any, target: Any) -> Callable[..., None]:
    """Say that an array does not fit the slice it is assigned to; numba's own sentence, with both, takes seconds."""

    def raised(source: Any, target: Any) -> None:
        raise ValueError("cannot assign slice from input of different size")

    return raised


def _is_part() -> bool:
    """Return whether what numba is compiling now, in one of our kernels, is linked into something else."""
    return _Depth.now > 0 and len(ConfigStack()) > 1


def _nothing(library: Any) -> None:
    """Do nothing."""


def _hook(owner: type, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Put a function in the place of a method; it is given that method first."""
    before = getattr(owner, name)

    def install(function: Callable[..., Any]) -> Callable[..., Any]:
        def method(self: Any, *args: Any, **options: Any) -> Any:
            return function(before, self, *args, **options)

        setattr(owner, name, method)
        return function

    return install


@_hook(Lower, "create_cpython_wrapper")
def _callable_from_python(before: Callable[..., None], self: Any, *args: Any, **options: Any) -> None:
    # another's function may be called from Python later, and numba takes it that it can be
    if not (_is_part() and self.func_ir.func_id.func in OURS):
        before(self, *args, **options)


@_hook(Lower, "create_cfunc_wrapper")
def _callable_from_c(before: Callable[..., None], self: Any) -> None:
    if not _Depth.now:
        before(self)


@_hook(JITCodeLibrary, "add_linking_library")
def _link(before: Callable[..., None], self: Any, library: Any) -> None:
    library._is_linked = _Depth.now > 0
    before(self, library)


@_hook(JITCodeLibrary, "_optimize_final_module")
def _optimise(before: Callable[..., None], self: Any) -> None:
    if _is_part() or getattr(self, "_is_linked", False):
        self._optimise_later = before
    else:
        before(self)


@_hook(JITCodeLibrary, "_finalize_final_module")
def _finish(before: Callable[..., None], self: Any) -> None:
    """Leave a library as it is until someone asks where a function of it lies in memory."""
    module = self._final_module
    loaded = self._object_caching_enabled and self._compiled_object is not None
    # a function that calls itself is found by its place in memory
    recursive = any(variable.name.startswith(RuntimeLinker.PREFIX) for variable in module.global_variables)
    if not _Depth.now or loaded or recursive:
        before(self)
        return
    self._finalize_dynamic_globals()
    self._verify_declare_only_symbols()
    self._finalized = True
    self._waits = before


@_hook(JITCodeLibrary, "get_pointer_to_function")
def _place_of(before: Callable[..., int], self: Any, name: str) -> int:
    self._ensure_finalized()
    finish = getattr(self, "_waits", None)
    if finish is not None:
        if not any(function.name == name for function in self.get_defined_functions()):
            return 0
        self._waits = None
        getattr(self, "_optimise_later", _nothing)(self)
        finish(self)
        for variable in self._final_module.global_variables:
            if variable.name.startswith(_ENVIRONMENT):
                environment = lookup_environment(variable.name)
                if environment is not None:
                    self.codegen.set_env(variable.name, environment)
    return before(self, name)


@_hook(JITCPUCodegen, "set_env")
def _set_environment(before: Callable[..., None], self: Any, name: str, environment: Any) -> None:
    # an inner function has no place in memory yet: the kernel that it is linked into sets its constants
    if not _Depth.now or self._engine.is_symbol_defined(name):
        before(self, name, environment)


@_hook(JITCodeLibrary, "serialize_using_object_code")
def _serialise(before: Callable[..., Any], self: Any) -> Any:
    self._ensure_finalized()
    return self.serialize_using_bitcode() if getattr(self, "_waits", None) is not None else before(self)


@cache
def _defaults(kind: Any) -> dict[str, Any]:
    return {name: option.default for name, option in kind.options.items()}


def _options(self: Any) -> dict[str, Any]:
    kind: Any = type(self)
    return {**_defaults(kind), **self._values}


# The options of the compiler are part of the key under which numba looks up each function of its own, some hundred
# thousand times a run, and are collected one by one each time.
TargetConfig.values = _options
TargetConfig.__hash__ = lambda self: hash(type(self))


@_hook(ir.Inst, "_rec_list_vars")
def _variables(before: Callable[..., list[Any]], self: Any, value: Any) -> list[Any]:
    # asked of every word of every instruction eight times over; most are names, places and nothing
    kind = type(value)
    if kind in _NO_VARIABLES:
        return []
    if kind is ir.Var:
        return [value]
    return before(self, value)


if hasattr(errors, "HighlightColorScheme"):

    @_hook(errors.HighlightColorScheme, "_markup")
    def _coloured(before: Callable[..., str], self: Any, message: str, *args: Any, **options: Any) -> str:
        # a function of numba's that does not fit the types is told so in colours, though the next one fits
        return message if _Depth.now else before(self, message, *args, **options)
