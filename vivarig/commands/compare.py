"""``vivarig compare``: groups of animals beside each other, from a table of ``vivarig table``."""

from __future__ import annotations

import argparse
from pathlib import Path

from calibration.foundation.errors import InputError
from vivarig.console.reporting import CommandReport
from vivarig.statistics.comparing import compare_cycles, compare_values
from vivarig.statistics.group_plots import comparison_lines, draw_comparison
from vivarig.statistics.table_files import read_table

__all__ = ["EXAMPLE", "HELP", "add_arguments", "run"]

HELP = (
    "Draw groups of animals beside each other from a table: with --joint a curve over the gait cycle (of joints), "
    "else one number (table of strides or recordings). Strides of an animal are averaged first: an animal counts once. "
    "Two groups are told apart by a permutation test."
)
EXAMPLE = """  vivarig table day1/* day2/* -o all.csv
  vivarig compare all.csv --joint left_knee --value inner_deg -o knee.png
  vivarig table day1/* day2/* -o strides.csv --rows strides
  vivarig compare strides.csv --value length_mm -o length.png"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("table", type=Path, help="table of `vivarig table`, .csv or .parquet")
    parser.add_argument("--value", required=True, metavar="COLUMN", help="column to compare, e.g. inner_deg, length_mm")
    parser.add_argument("--joint", metavar="NAME", help="draw this joint's values over the gait cycle")
    parser.add_argument("--foot", metavar="NAME", help="strides: only this foot's")
    parser.add_argument("--by", default="group", metavar="COLUMN", help="column that names the groups (group)")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="OUT", help="picture: .png, .svg or .pdf")


def run(args: argparse.Namespace) -> CommandReport:
    """Compare and draw."""
    if args.joint is not None:
        if args.foot is not None:
            raise InputError("--foot is for a table of strides; the cycle of a joint is that of its own foot")
        wanted = (args.by, "recording", "animal", "joint", "trust", "stride", "phase", args.value)
        found = compare_cycles(read_table(args.table, tuple(dict.fromkeys(wanted))), args.joint, args.value, args.by)
    else:
        wanted = (args.by, "animal", args.value, *(("foot",) if args.foot is not None else ()))
        table = read_table(args.table, tuple(dict.fromkeys(wanted)))
        if args.foot is not None:
            kept = table["foot"] == args.foot
            if not kept.any():
                raise InputError(f"{args.table}: no foot '{args.foot}'")
            table = {name: values[kept] for name, values in table.items()}
        found = compare_values(table, args.value, args.by)
    draw_comparison(found, args.output)
    lines = [f"wrote {args.output}: {found.what} of {len(found.groups)} groups, {found.strides} strides or rows"]
    numbers = {
        "groups": {name: {"animals": found.animals[name], "values": rows} for name, rows in found.groups.items()},
        "p": found.p,
    }
    return CommandReport([*lines, *comparison_lines(found)], numbers)
