"""Compiling without waste: what is linked into a kernel is not made callable, and computes the same."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest

SOURCE = """
import numba
import numpy as np
from calibration.foundation.compiled import compiled

@compiled
def scaled(x, factor):
    out = np.zeros(x.size)
    for i in range(x.size):
        out[i] = factor * x[i]
    return out

@compiled
def twice_and_thrice(x):
    return scaled(x, 2) + scaled(x, x.size)

@compiled
def power(base, exponent):
    return 1 if exponent == 0 else base * power(base, exponent - 1)

@compiled
def powers(base):
    return power(base, 2) + power(base, 3)

@compiled
def positive(x):
    if x < 0:
        raise ValueError("below zero")
    return x

@compiled
def root(x):
    return np.sqrt(positive(x))

@numba.njit
def foreign(x):
    return 2 * x

@compiled
def through_foreign(x):
    return foreign(x) + 1

@compiled
def put(out, x):
    out[1:] = x
"""


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module of kernels that nothing has compiled yet."""
    (tmp_path / "lean_kernels.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("lean_kernels", None)
    return importlib.import_module("lean_kernels")


def machine_code(kernel: Any) -> list[bool]:
    """Return for each set of types whether a kernel has machine code of its own."""
    return [getattr(made.library, "_waits", None) is None for made in kernel.overloads.values()]


def test_what_is_linked_into_a_kernel_has_no_machine_code_of_its_own(kernels: ModuleType) -> None:
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(kernels.twice_and_thrice(x), 4 * x)
    assert machine_code(kernels.twice_and_thrice) == [True]
    assert machine_code(kernels.scaled) == [False]


def test_a_constant_and_a_number_are_one_type_to_a_kernel(kernels: ModuleType) -> None:
    kernels.twice_and_thrice(np.ones(3))
    assert len(kernels.scaled.overloads) == 1


def test_what_was_linked_can_still_be_called(kernels: ModuleType) -> None:
    x = np.array([1.0, 2.0])
    kernels.twice_and_thrice(x)
    np.testing.assert_array_equal(kernels.scaled(x, 5), 5 * x)
    np.testing.assert_array_equal(kernels.scaled(x, 6), 6 * x)
    assert machine_code(kernels.scaled) == [True]


def test_what_was_called_can_still_be_linked(kernels: ModuleType) -> None:
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(kernels.scaled(x, 5), 5 * x)
    np.testing.assert_array_equal(kernels.twice_and_thrice(x), 4 * x)
    assert machine_code(kernels.scaled) == [True]


def test_a_function_may_call_itself(kernels: ModuleType) -> None:
    assert kernels.powers(3) == 36


def test_an_error_in_a_linked_function_is_raised(kernels: ModuleType) -> None:
    assert kernels.root(4.0) == 2.0
    with pytest.raises(ValueError, match="below zero"):
        kernels.root(-4.0)


def test_an_array_that_does_not_fit_is_refused(kernels: ModuleType) -> None:
    out = np.zeros(3)
    kernels.put(out, np.ones(2))
    np.testing.assert_array_equal(out, [0, 1, 1])
    with pytest.raises(ValueError, match="different size"):
        kernels.put(out, np.ones(4))


def test_functions_that_others_compile_are_numbas_own(kernels: ModuleType) -> None:
    @numba.njit
    def inner(x: Any) -> Any:
        return np.zeros(x.size).sum() + x.sum()

    scaled = kernels.scaled

    @numba.njit
    def outer(x: Any) -> Any:
        return inner(scaled(x, 2))

    x = np.arange(3.0)
    kernels.twice_and_thrice(x)
    assert kernels.through_foreign(3) == 7
    assert kernels.foreign(3) == 6
    assert outer(x) == 6.0
    assert inner(x) == 3.0
    assert machine_code(inner) == [True]
    first_class = numba.njit(lambda function, value: function(value))
    square = numba.njit("float64(float64)")(lambda value: value * value)
    assert first_class(square, 3.0) == 9.0


def test_a_numba_that_the_hooks_do_not_know_compiles_as_it_does(tmp_path: Path) -> None:
    (tmp_path / "lean_kernels.py").write_text(SOURCE, encoding="utf-8")
    said = """
import sys, numba
numba.__version__ = "0.61.2"
import numpy as np
import lean_kernels as k
assert k.twice_and_thrice(np.ones(3)).tolist() == [5.0, 5.0, 5.0]
assert k.scaled(np.ones(2), 4).tolist() == [4.0, 4.0]
assert "calibration.foundation.kernels.lean" not in sys.modules
"""
    paths = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    subprocess.run([sys.executable, "-c", said], check=True, env={**os.environ, "PYTHONPATH": paths})
