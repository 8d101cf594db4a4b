"""Functions of OpenSim's joint axes: constants, lines, splines, polynomials, as piecewise cubics."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import numpy as np

from calibration.foundation.arrays import HUGE, Floats
from calibration.foundation.errors import InputError
from skeleton.tree.articulation import Piecewise

__all__ = ["axis_function", "number_of", "numbers_of", "simm_spline", "text_of", "vector_of"]


def numbers_of(text: str | None, who: str, *, endless: bool = False) -> Floats:
    """Return the numbers of a text; infinite ones only where ``endless``: bounds that do not bind."""
    try:
        values = np.array([float(word) for word in (text or "").split()])
    except ValueError:
        values = np.array([np.nan])
    if not (np.abs(values) < HUGE).all() and not (endless and np.isinf(values).any() and not np.isnan(values).any()):
        raise InputError(f"{who}: wanted numbers, got '{(text or '').strip()[:40]}'")
    return values


def number_of(element: Element, tag: str, fallback: str, who: str) -> float:
    """Return the one number in a child element."""
    values = numbers_of(text_of(element, tag, fallback), f"{who}: {tag}")
    if len(values) != 1:
        raise InputError(f"{who}: {tag} must be one number, got {len(values)}")
    return float(values[0])


def vector_of(element: Element | None, tag: str, who: str) -> Floats:
    found = None if element is None else element.find(tag)
    values = np.zeros(3) if found is None else numbers_of(found.text, f"{who}: {tag}")
    if values.shape != (3,):
        raise InputError(f"{who}: {tag} must be 3 numbers, got {len(values)}")
    return values


def text_of(element: Element, tag: str, fallback: str = "") -> str:
    found = element.find(tag)
    return fallback if found is None or found.text is None else found.text.strip()


def simm_spline(x: Floats, y: Floats) -> Piecewise:
    """Return the cubic spline through (x, y) whose third derivative at either end is that of the outermost
    four points.

    The end condition of Forsythe, Malcolm and Moler (1977), which SIMM and OpenSim use; two points give a
    line.
    """
    count = len(x)
    if count < 2 or (np.diff(x) <= 0).any():
        raise InputError(f"spline: wanted 2 or more ascending x, got {count}")
    step, slope = np.diff(x), np.diff(y) / np.diff(x)
    if count == 2:
        return Piecewise(x[:1], np.array([[y[0], slope[0], 0.0, 0.0]]))
    # Unknown c_i = y''_i / 6: continuity of y' inside, divided differences at the ends.
    matrix, right = np.zeros((count, count)), np.zeros(count)
    for i in range(1, count - 1):
        matrix[i, i - 1 : i + 2] = step[i - 1], 2.0 * (step[i - 1] + step[i]), step[i]
        right[i] = slope[i] - slope[i - 1]
    matrix[0, :2] = -step[0], step[0]
    matrix[-1, -2:] = step[-1], -step[-1]
    if count > 3:
        second = np.diff(slope) / (x[2:] - x[:-2])
        third = np.diff(second) / (x[3:] - x[:-3])
        right[0], right[-1] = step[0] ** 2 * third[0], -(step[-1] ** 2) * third[-1]
    c = np.linalg.solve(matrix, right)
    pieces = np.stack([y[:-1], slope - step * (c[1:] + 2.0 * c[:-1]), 3.0 * c[:-1], np.diff(c) / step], axis=1)
    return Piecewise(np.array(x[:-1]), pieces)


def axis_function(element: Element | None, who: str) -> Piecewise:
    """Return a function element as a piecewise cubic in the file's units."""
    if element is None:
        return Piecewise(np.zeros(1), np.array([[0.0, 1.0, 0.0, 0.0]]))
    match element.tag:
        case "Constant":
            return Piecewise(np.zeros(1), np.array([[number_of(element, "value", "0", who), 0.0, 0.0, 0.0]]))
        case "LinearFunction":
            slope, start = numbers_of(text_of(element, "coefficients", "1 0"), who)[:2]
            return Piecewise(np.zeros(1), np.array([[start, slope, 0.0, 0.0]]))
        case "SimmSpline" | "NaturalCubicSpline" | "GCVSpline":
            return simm_spline(numbers_of(text_of(element, "x"), who), numbers_of(text_of(element, "y"), who))
        case "PiecewiseLinearFunction":
            x, y = numbers_of(text_of(element, "x"), who), numbers_of(text_of(element, "y"), who)
            slope_all = np.diff(y) / np.diff(x)
            zero = np.zeros(len(slope_all))
            return Piecewise(x[:-1], np.stack([y[:-1], slope_all, zero, zero], axis=1))
        case "PolynomialFunction":
            powers = numbers_of(text_of(element, "coefficients"), who)[::-1]
            if len(powers) > 4:
                raise InputError(f"{who}: a polynomial of degree {len(powers) - 1}; up to 3 is supported")
            return Piecewise(np.zeros(1), np.pad(powers, (0, 4 - len(powers)))[None])
        case "MultiplierFunction":
            inner = element.find("function")
            if inner is None or not len(inner):
                raise InputError(f"{who}: MultiplierFunction without a function")
            base = axis_function(inner[0], who)
            return Piecewise(base.breaks, base.pieces * number_of(element, "scale", "1", who))
        case other:
            raise InputError(f"{who}: function '{other}' is not supported")
