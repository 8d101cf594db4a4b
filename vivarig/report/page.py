"""The HTML of the report: a few elements, everything escaped, style inside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

__all__ = ["Page"]

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;color:#222;max-width:1080px;margin:24px auto;padding:0 16px;background:#fafafa}
h1{font-size:26px;margin:0 0 4px}h2{font-size:19px;margin:34px 0 8px;border-bottom:2px solid #1f6f8b;padding-bottom:3px}
p.note{color:#555;margin:4px 0 10px}img{max-width:100%;display:block;margin:8px 0;border-radius:4px}
table{border-collapse:collapse;margin:8px 0}td,th{padding:3px 12px 3px 0;text-align:left;border-bottom:1px solid #ddd}
td.n{text-align:right;font-variant-numeric:tabular-nums}th{font-weight:600}
.cards{display:flex;flex-wrap:wrap;gap:12px;margin:14px 0}
.card{background:#fff;border:1px solid #ddd;border-radius:8px;padding:10px 16px;min-width:150px}
.card b{display:block;font-size:22px}.card span{color:#555;font-size:13px}
.good b{color:#2e8b57}.warn b{color:#b9770e}.bad b{color:#c0392b}
"""


NUMBER = " class=n"


@dataclass
class Page:
    """A page being written, part by part; text is escaped as it comes in."""

    title: str
    parts: list[str] = field(default_factory=list)

    def heading(self, text: str) -> None:
        """Begin a section."""
        self.parts.append(f"<h2>{escape(text)}</h2>")

    def note(self, text: str) -> None:
        """Add a paragraph of explanation."""
        self.parts.append(f'<p class="note">{escape(text)}</p>')

    def picture(self, uri: str, meaning: str) -> None:
        """Add a picture given as a data URI, with words for those who cannot see it."""
        self.parts.append(f'<img src="{uri}" alt="{escape(meaning, quote=True)}">')

    def cards(self, items: Iterable[tuple[str, str, str]]) -> None:
        """Add headline figures: (figure with unit, what it is, "good", "warn", "bad" or "")."""
        cards = [
            f'<div class="card {escape(mood, quote=True)}"><b>{escape(figure)}</b><span>{escape(what)}</span></div>'
            for figure, what, mood in items
        ]
        self.parts.append(f'<div class="cards">{"".join(cards)}</div>')

    def table(self, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Add a table; columns after the first are numbers."""
        head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
        body = "".join(
            "<tr>" + "".join(f'<td{NUMBER if i else ""}>{escape(cell)}</td>'
                             for i, cell in enumerate(row)) + "</tr>"
            for row in rows
        )  # fmt: skip
        self.parts.append(f"<table><tr>{head}</tr>{body}</table>")

    def html(self) -> str:
        """Return the whole page."""
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            f"<title>{escape(self.title)}</title><style>{STYLE}</style></head><body>"
            f"<h1>{escape(self.title)}</h1>{''.join(self.parts)}</body></html>\n"
        )
