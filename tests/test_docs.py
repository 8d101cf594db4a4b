"""The documentation: every command in it is one that the program takes, every link leads somewhere."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from vivarig.cli import VERBS

REPOSITORY = Path(__file__).resolve().parent.parent
PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "CONTRIBUTING.md",
    REPOSITORY / "SECURITY.md",
    *sorted((REPOSITORY / "docs").rglob("*.md")),
    *sorted(REPOSITORY.glob("sample_data/**/*.md")),
]


def mentions(text: str) -> list[str]:
    """Return the commands named in the sentences of a page, often without their files: ``vivarig track --meshes``."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return [" ".join(words.split()) for words in re.findall(r"`(vivarig [a-z][^`]*)`", prose)]


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
    verb_parser(words[0]).parse_args(words[1:])


def verb_parser(verb: str) -> argparse.ArgumentParser:
    """Return the parser of a verb as the command line makes it."""
    parser = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False)
    importlib.import_module(f"vivarig.commands.{verb}").add_arguments(parser)
    parser.add_argument("--json")
    parser.add_argument("--quiet", action="store_true")
    return parser


def flags_of(parser: argparse.ArgumentParser) -> set[str]:
    """Return every flag of a parser and of its steps."""
    flags = {flag for action in parser._actions for flag in action.option_strings}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            flags |= {flag for step in action.choices.values() for flag in flags_of(step)}
    return flags


MENTIONS = [(page, line) for page in PAGES for line in mentions(page.read_text())]


@pytest.mark.parametrize(("page", "line"), MENTIONS, ids=[f"{page.stem}:{line[:60]}" for page, line in MENTIONS])
def test_verbs_and_flags_in_sentences_exist(page: Path, line: str) -> None:
    verb, *words = line.split()[1:]
    assert verb in VERBS, line
    unknown = [
        word for word in words if word.startswith("--") and word.split("=")[0] not in flags_of(verb_parser(verb))
    ]
    assert unknown == [], line


def test_many_commands_are_seen() -> None:
    """So that a change of the pages' form does not leave them unread."""
    assert len(CASES) >= 30 and len(MENTIONS) >= 50


PATHS = re.compile(
    r"(?<![\w/.])((?:calibration|skeleton|capture|tracking|vivarig|tests|benchmarks|docs)/[\w/-]+\.(?:py|toml|npz|md))"
)
MODULES = re.compile(r"`((?:calibration|skeleton|capture|tracking|vivarig|benchmarks)(?:\.[a-z_0-9]+)+)")


def test_every_path_and_module_that_is_named_exists() -> None:
    """In the pages, and in the docstrings and comments of the sources."""
    sources = [f for top in ("calibration", "skeleton", "capture", "tracking", "vivarig", "benchmarks", "tests")
               for f in sorted((REPOSITORY / top).rglob("*.py"))]  # fmt: skip
    missing = []
    for file in [*PAGES, *sources]:
        text = file.read_text()
        missing += [
            f"{file.name}: {path}"
            for path in PATHS.findall(text)
            if "NAME" not in path and not (REPOSITORY / path).exists()
        ]
        if file.name == Path(__file__).name:
            continue
        for name in MODULES.findall(text):
            if not _module_or_member(name):
                missing.append(f"{file.name}: {name}")
    assert not missing, "; ".join(missing)


def _module_or_member(name: str) -> bool:
    """Whether a dotted name is a folder or module of ours, or a name in one; files of results are none of them."""
    if name.rsplit(".", 1)[-1] in ("h5", "html", "toml"):
        return True
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        place = REPOSITORY.joinpath(*parts[:length])
        if place.with_suffix(".py").is_file() or (length == len(parts) and place.is_dir()):
            source = place.with_suffix(".py") if place.with_suffix(".py").is_file() else None
            return length == len(parts) or source is None or parts[length] in source.read_text()
        if place.is_dir():
            return length >= len(parts) or parts[length] in (place / "__init__.py").read_text()
    return False


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


def test_the_site_names_every_page_and_builds_without_a_warning(tmp_path: Path) -> None:
    """Links, pictures and generated pages, as `make docs` does it; a warning is an error."""
    pytest.importorskip("material", reason="needs mkdocs-material: pip install -e '.[docs]'")
    path = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    environment = dict(os.environ, PYTHONPATH=path, NO_MKDOCS_2_WARNING="1")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(words, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "site" / "reference" / "commands.html").read_text()
    assert all(f'id="{verb}"' in page for verb in VERBS)
    fetched = re.findall(r'(?:src|href)="(https?://[^"]*)"', (tmp_path / "site" / "index.html").read_text())
    assert [address for address in fetched if "squidfunk" not in address] == [], "a page that fetches from elsewhere"
