"""Pages that the site makes of the program itself: every verb's --help, and the docstrings of the Python API.

Links out of docs/ (to the sources, the README) are taken out: a site has no files beside its pages.
"""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

from mkdocs.structure.files import File, Files


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages."""
    for name, text in (("reference/commands.md", commands_page()), ("reference/python.md", python_page())):
        known = files.get_file_from_path(name)
        if known is not None:
            files.remove(known)
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Keep the words of links that lead out of the pages."""
    return re.sub(r"\[([^\]]+)\]\(((?:\.\./){2,}[^)]*|\.\./[A-Z][A-Za-z.]*)\)", r"\1", markdown)


def commands_page() -> str:
    """Return every verb with its help."""
    from vivarig.cli import VERBS, parser_of

    parts = ["# Commands\n\nWhat `vivarig VERB --help` says of each verb.\n"]
    for verb, words in VERBS.items():
        parser = parser_of(verb, importlib.import_module(f"vivarig.commands.{verb}"))
        parts.append(f"## {verb}\n\n{words[0].upper()}{words[1:]}.\n\n```text\n{parser.format_help().rstrip()}\n```\n")
    return "\n".join(parts)


def python_page() -> str:
    """Return the names of `import vivarig` with their signatures and docstrings."""
    api = importlib.import_module("vivarig.api")
    parts = ["# Python\n\n`import vivarig` gives these names; options are typed, errors are `vivarig.VivarigError`.\n"]
    for name in api.__all__:
        thing = getattr(api, name)
        text = inspect.cleandoc(inspect.getdoc(thing) or "")
        if inspect.isclass(thing) or inspect.isfunction(thing):
            try:
                signature = str(inspect.signature(thing))
            except ValueError:
                signature = "(...)"
            parts.append(f"## {name}\n\n```python\n{name}{signature}\n```\n\n```text\n{text}\n```\n")
    return "\n".join(parts)
