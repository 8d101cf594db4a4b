"""The documentation: every command in it is one that the program takes, every link leads somewhere."""

from __future__ import annotations

import argparse
import importlib
import re
import shlex
from pathlib import Path

import pytest

from vivarig.cli import VERBS

REPOSITORY = Path(__file__).resolve().parent.parent
PAGES = [
    REPOSITORY / "README.md",
    *sorted((REPOSITORY / "docs").glob("*.md")),
    *sorted(REPOSITORY.glob("sample_data/**/*.md")),
]


def commands(text: str) -> list[str]:
    """Return the vivarig command lines in the code blocks of a page, continued lines joined."""
    found = []
    for block in re.findall(r"```(?:sh|bash|console)?\n(.*?)```", text, flags=re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            for part in line.split("#")[0].split("&&"):
                words = part.strip().removeprefix("$ ")
                if words.startswith("vivarig "):
                    found.append(words)
    return found


CASES = [(page, line) for page in PAGES for line in commands(page.read_text())]


@pytest.mark.parametrize(("page", "line"), CASES, ids=[f"{page.stem}:{line[:60]}" for page, line in CASES])
def test_commands_are_taken(page: Path, line: str) -> None:
    words = shlex.split(line)[1:]
    assert words[0] in VERBS, line
    module = importlib.import_module(f"vivarig.commands.{words[0]}")
    parser = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False)
    module.add_arguments(parser)
    parser.add_argument("--json")
    parser.parse_args(words[1:])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_no_path_of_a_machine_and_no_unfinished_words() -> None:
    for page in PAGES:
        text = page.read_text()
        assert not re.search(r"/(work|root|home)/", text), page.name
        assert "TODO" not in text and "RESULTS_TABLES" not in text, page.name
