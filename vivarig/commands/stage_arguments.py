"""Typed options of a stage as arguments of its verb, and back."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

from calibration.foundation.errors import InputError
from vivarig.console.option_types import number, whole_number
from vivarig.stages.options import StageOptions, flag_of

__all__ = ["add_options", "add_workers", "options_from", "reader", "real", "whole"]

O = TypeVar("O", bound=StageOptions)  # noqa: E741


def reader(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a reader whose refusal argparse shows as it is."""

    def reading(text: str) -> Any:
        try:
            return read(text)
        except InputError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return reading


def whole(least: int) -> Callable[[str], int]:
    """Return argparse's reader of whole numbers of at least ``least``."""
    return reader(whole_number(least))


def real(**bounds: float) -> Callable[[str], float]:
    """Return argparse's reader of numbers within bounds (`vivarig.console.option_types.number`)."""
    return reader(number(**bounds))


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Declare ``--workers``."""
    parser.add_argument("--workers", type=whole(1), metavar="N", help="processes to use (default: all cores)")


def add_options(parser: argparse.ArgumentParser, kind: type[StageOptions]) -> None:
    """Declare the options of a stage."""
    for one in fields(kind):
        told, flag = one.metadata, f"--{flag_of(one)}"
        if isinstance(one.default, bool):
            parser.add_argument(flag, dest=one.name, action="store_const", const=not one.default, help=told["help"])
        elif told["choices"]:
            parser.add_argument(flag, dest=one.name, choices=told["choices"], help=told["help"])
        else:
            parser.add_argument(
                flag, dest=one.name, type=reader(told["read"]), metavar=told["metavar"], help=told["help"]
            )


def options_from(args: argparse.Namespace, start: O) -> O:
    """Return the options as given on the command line, the others as they are in ``start``."""
    given = {one.name: getattr(args, one.name) for one in fields(start)}
    values = {name: value for name, value in given.items() if value is not None}
    return type(start)(**{**{one.name: getattr(start, one.name) for one in fields(start)}, **values})
