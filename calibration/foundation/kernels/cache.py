"""The cache of compiled functions on disk, safe where numba's own is not.

Numba keeps one index per function beside numbered data files. Two processes that compile at once may write each other's
number, a process killed in between leaves an index that points at old code, and a function is not compiled again when
one that it calls, in another file, has changed: each runs the wrong machine code without a word. Here a compiled
function is one file whose name is a digest of all that it depends on, put in place atomically and checked when read.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

import numba
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher
from numba.core.serialize import dumps

from calibration.foundation.kernels.compiling import is_inner

__all__ = ["KernelCache"]


_DIGEST_BYTES = 32


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()


@cache
def _content(path: str) -> str:
    return hashlib.blake2b(Path(path).read_bytes(), digest_size=16).hexdigest()


def _names(code: CodeType) -> Iterator[str]:
    """Yield every name that a function, or one nested in it, looks up outside itself."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _dependencies(function: Callable[..., Any], seen: dict[str, str]) -> None:
    """Collect the content of each source file that goes into ``function``, and the constants it freezes."""
    code = function.__code__
    place = f"{code.co_filename}:{function.__qualname__}"
    if place in seen:
        return
    seen[place] = _content(code.co_filename)
    for name in _names(code):
        value = function.__globals__.get(name)
        if isinstance(value, Dispatcher):
            _dependencies(value.py_func, seen)
        elif isinstance(value, int | float | str | tuple):
            seen[f"{place}:{name}"] = repr(value)
        elif isinstance(value, type) and issubclass(value, tuple):
            seen[f"{place}:{name}"] = repr(getattr(value, "_fields", None))


class KernelCache(FunctionCache):  # type: ignore[misc]
    """Saves and loads one function's machine code; ``options`` are those of the compiler."""

    def __init__(self, function: Callable[..., Any], options: str) -> None:
        super().__init__(function)
        self._function = function
        self._options = options

    def _path_and_key(self, signature: Any, codegen: Any, *, inner: bool) -> tuple[Path, str]:
        seen: dict[str, str] = {}
        _dependencies(self._function, seen)
        # names and contents, not folders: a moved checkout keeps its cache
        sources = sorted((os.path.basename(place), content) for place, content in seen.items())
        # numba prints a named tuple without its fields: the same types in another order are other numbers
        fields = [getattr(kind, "fields", None) for kind in signature]
        key = repr((numba.__version__, self._options, inner, signature, fields, codegen.magic_tuple(), sources))
        digest = hashlib.blake2b(key.encode(), digest_size=12).hexdigest()
        return Path(self._cache_path) / f"{self._impl.filename_base}.{digest}.nbk", key

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        # what can be called from Python can be linked too, but not the other way round
        kinds = (True, False) if is_inner() else (False,)
        found = (self._load_kind(sig, target_context, inner=inner) for inner in kinds)
        return next((loaded for loaded in found if loaded is not None), None)

    def _load_kind(self, sig: Any, target_context: Any, *, inner: bool) -> Any:
        path, key = self._path_and_key(sig, target_context.codegen(), inner=inner)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        # checked before it is believed: damaged machine code would crash the process, or worse, not
        if _digest(content[_DIGEST_BYTES:]) != content[:_DIGEST_BYTES]:
            return None  # it is compiled and written again
        stored_key, data = pickle.loads(content[_DIGEST_BYTES:])
        return self._impl.rebuild(target_context, data) if stored_key == key else None

    def _save_overload(self, sig: Any, data: Any) -> None:
        if not self._impl.check_cachable(data):
            return
        self._impl.locator.ensure_cache_path()
        path, key = self._path_and_key(sig, data.codegen, inner=is_inner())
        temporary = path.with_suffix(f".{uuid.uuid4().hex[:12]}.tmp")
        try:
            # without the source with its types beside it, which numba keeps to be printed
            content = dumps((key, self._impl.reduce(data._replace(type_annotation=""))))
            temporary.write_bytes(_digest(content) + content)
            os.replace(temporary, path)
        except OSError:
            return  # a full or read-only disk: the function is compiled again next time
        finally:
            temporary.unlink(missing_ok=True)
