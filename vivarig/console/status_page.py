"""A small page that says how the recordings of a folder stand; a browser loads it again by itself."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from calibration.foundation.files import write_text

__all__ = ["RecordingStatus", "write_status_page"]

COLOURS = {
    "done": "#2a8f4e",
    "look": "#c07a10",
    "failed": "#b3261e",
    "working": "#1f6f8b",
    "arriving": "#777",
    "stopped": "#777",
    "busy": "#777",
}
WORDS = {
    "done": "done", "look": "done: look at it", "failed": "failed", "working": "working", "arriving": "still arriving",
    "stopped": "stopped", "busy": "waiting",
}  # fmt: skip


@dataclass(frozen=True)
class RecordingStatus:
    """How one recording stands: ``state`` a key of `WORDS`, and what there is to say; ``report`` if it has one."""

    name: str
    state: str
    text: str = ""
    report: Path | None = None


def write_status_page(path: Path, title: str, when: str, rows: Sequence[RecordingStatus]) -> None:
    """Write the page, the newest rows last."""
    counted = ", ".join(
        f"{sum(row.state == state for row in rows)} {word}"
        for state, word in WORDS.items()
        if any(row.state == state for row in rows)
    )
    lines = []
    for row in rows:
        name = html.escape(row.name)
        if row.report is not None:
            name = f'<a href="{html.escape(row.report.as_posix())}">{name}</a>'
        state = f'<td style="color:{COLOURS[row.state]};font-weight:600">{WORDS[row.state]}</td>'
        lines.append(f"<tr><td>{name}</td>{state}<td>{html.escape(row.text)}</td></tr>")
    write_text(
        path,
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="5">'
        f"<title>{html.escape(title)}</title><style>body{{font:16px/1.5 system-ui,sans-serif;margin:2em auto;"
        "max-width:60em;padding:0 1em}table{border-collapse:collapse;width:100%}td{padding:.4em .8em .4em 0;"
        "border-top:1px solid #ddd;vertical-align:top}</style></head><body>"
        f"<h1>{html.escape(title)}</h1><p>{counted or 'no recording yet'}; {html.escape(when)}</p>"
        f"<table>{''.join(lines)}</table></body></html>\n",
    )
