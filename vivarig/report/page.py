"""The HTML of the report: a few elements, everything escaped, style and scripts inside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

from vivarig.report.assets import asset

__all__ = ["Page"]

NUMBER = " class=n"
#: Nothing is fetched, whatever a file's name or text says.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


@dataclass
class Page:
    """A page, or a section of one, being written part by part; text is escaped as it comes in.

    Attributes:
        title: of the page.
        parts: what stands in it, in order.
        data: numbers for its scripts.
        beside: files that belong to it, by name.
    """

    title: str
    parts: list[str] = field(default_factory=list)
    data: str = ""
    beside: dict[str, str] = field(default_factory=dict)

    def add(self, section: Page) -> None:
        """Add a section that was made by itself."""
        self.parts += section.parts
        self.data = self.data or section.data
        self.beside |= section.beside

    def heading(self, text: str) -> None:
        """Begin a section."""
        self.parts.append(f"<h2>{escape(text)}</h2>")

    def note(self, text: str) -> None:
        """Add a paragraph of explanation."""
        self.parts.append(f'<p class="note">{escape(text)}</p>')

    def picture(self, uri: str, meaning: str, *, still: bool = False) -> None:
        """Add a picture given as a data URI, with words for those who cannot see it.

        ``still``: only where scripts do not run; else the explorer shows the same.
        """
        image = f'<img src="{uri}" alt="{escape(meaning, quote=True)}">'
        self.parts.append(f"<noscript>{image}</noscript>" if still else image)

    def cards(self, items: Iterable[tuple[str, str, str]]) -> None:
        """Add headline figures: (figure with unit, what it is, "good", "warn", "bad" or "")."""
        cards = [
            f'<div class="card {escape(mood, quote=True)}"><b>{escape(figure)}</b><span>{escape(what)}</span></div>'
            for figure, what, mood in items
        ]
        self.parts.append(f'<div class="cards">{"".join(cards)}</div>')

    def verdict(self, answer: str, mood: str, lines: Sequence[str], advice: Sequence[str]) -> None:
        """Add the answer to "can I trust this", what is behind it, and what to do."""
        said = "".join(f"<p>{escape(line)}</p>" for line in lines)
        todo = "".join(f"<li>{escape(line)}</li>" for line in advice)
        listed = f"<p><b>What to do</b></p><ul>{todo}</ul>" if todo else ""
        self.parts.append(
            f'<div class="verdict {escape(mood, quote=True)}"><p><b>Can I trust this?</b></p>'
            f'<b class="answer">{escape(answer)}</b>{said}{listed}</div>'
        )

    def markup(self, html: str) -> None:
        """Add HTML that was escaped where it was made."""
        self.parts.append(html)

    def table(self, header: Sequence[str], rows: Iterable[Sequence[str]], *, words: bool = False) -> None:
        """Add a table; columns after the first are numbers, or ``words``."""
        head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
        body = "".join(
            "<tr>" + "".join(f'<td{NUMBER if i and not words else ""}>{escape(cell)}</td>'
                             for i, cell in enumerate(row)) + "</tr>"
            for row in rows
        )  # fmt: skip
        self.parts.append(f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>')

    def html(self) -> str:
        """Return the whole page."""
        scripts = ""
        if self.data:
            plots, explorer = asset("uPlot.iife.min.js"), asset("explorer.js")
            scripts = (
                f'<script type="application/json" id="data">{self.data}</script>'
                f"<script>/* {asset('uPlot.LICENSE.txt')} */\n{plots}</script><script>{explorer}</script>"
            )
        style = asset("report.css") + (asset("uPlot.min.css") if self.data else "")
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(self.title)}</title><style>{style}</style></head><body>"
            f"<h1>{escape(self.title)}</h1>{''.join(self.parts)}{scripts}</body></html>\n"
        )
