"""Functions that fit in the head: at most 80 lines and 10 parameters, or a written reason just above."""

from __future__ import annotations

import ast
import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
MOST_LINES, MOST_PARAMETERS = 80, 10
REASON = re.compile(r"#.*\b(lines|parameters)\b.*:.*\w")


def too_large(source: str) -> list[str]:
    """Return the functions of a source text that are too large and give no reason for it."""
    lines = source.split("\n")
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        parameters = len(node.args.posonlyargs) + len(node.args.args) + len(node.args.kwonlyargs)
        above = lines[min([one.lineno for one in node.decorator_list] + [node.lineno]) - 2]
        if (length > MOST_LINES or parameters > MOST_PARAMETERS) and not REASON.search(above):
            found.append(f"{node.name}: {length} lines, {parameters} parameters")
    return found


def test_functions_fit_in_the_head() -> None:
    found = {}
    for package in ("calibration", "skeleton", "capture", "tracking", "vivarig", "benchmarks"):
        for file in sorted((REPOSITORY / package).rglob("*.py")):
            if names := too_large(file.read_text()):
                found[str(file.relative_to(REPOSITORY))] = names
    assert found == {}


def test_the_check_can_fail() -> None:
    many = ", ".join(f"p{k}" for k in range(11))
    assert too_large(f"\ndef f({many}):\n    pass\n") == ["f: 2 lines, 11 parameters"]
    assert too_large(f"\n# Eleven parameters: each a number of the file.\ndef f({many}):\n    pass\n") == []
    long = "\n    x = 1" * 81
    assert too_large(f"\ndef g():{long}\n") == ["g: 82 lines, 0 parameters"]
