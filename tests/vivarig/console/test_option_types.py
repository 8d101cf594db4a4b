"""Numbers of the command line."""

from __future__ import annotations

import pytest

from calibration.foundation.errors import InputError
from vivarig.cli import main
from vivarig.console.option_types import number, whole_number


def test_numbers_within_their_bounds() -> None:
    assert whole_number(1)("3") == 3 and whole_number(0)("0") == 0
    assert number(above=0)("0.5") == 0.5 and number(least=0, most=1)("1") == 1 and number()("-2") == -2


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "many"])
def test_whole_numbers_beyond_them(text: str) -> None:
    with pytest.raises(InputError, match=f"wanted a whole number of 1 or more, got '{text}'"):
        whole_number(1)(text)


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "1.01", "much"])
def test_numbers_beyond_them(text: str) -> None:
    with pytest.raises(InputError, match=f"wanted a number above 0 up to 1, got '{text}'"):
        number(above=0, most=1)(text)


@pytest.mark.parametrize(
    "words",
    [
        ["silhouettes", "r", "--workers", "-1"],
        ["silhouettes", "r", "--threshold", "0"],
        ["silhouettes", "r", "--shadow-floor", "5"],
        ["silhouettes", "r", "--margin", "-5"],
        ["hull", "r", "--workers", "0"],
        ["track", "r", "--workers", "-1"],
        ["track", "r", "--smooth", "-1"],
        ["skeleton", "r", "--cutoff", "0"],
        ["skeleton", "r", "--smooth", "-1"],
        ["evaluate", "r", "--pck", "-1"],
        ["evaluate", "r", "--offset", "nan"],
        ["calibrate", "r", "--workers", "0"],
        ["sync", "r", "--workers", "0"],
        ["simulate", "r", "--workers", "0"],
    ],
)
def test_the_verbs_refuse_them(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert f"argument {words[2]}: wanted a" in capsys.readouterr().err


def test_a_sheet_of_an_unknown_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["silhouettes", "r", "--sheet", "look.foo"]) == 2
    assert "--sheet look.foo: wanted a file name that ends in .png, .jpg, .jpeg" in capsys.readouterr().err
