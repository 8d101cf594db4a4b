"""The first minute of the report: may this be trusted, what went wrong, where, and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

import numpy as np

from calibration.foundation.arrays import Ints
from calibration.foundation.trust import Trust
from vivarig.edits.edit_file import edits_file, load_edits
from vivarig.report.page import Page
from vivarig.report.pictures import contact_sheet, data_uri, expect_images
from vivarig.results.findings import Findings, TrackFindings
from vivarig.results.limb_words import PART, THROUGHOUT, share_words, usable_words
from vivarig.results.reason_words import reason_words
from vivarig.results.stretches import WHOLE, Stretch, runs

__all__ = ["add_stretches", "add_timeline", "add_verdict"]

_PICTURES = 16
"""Stretches that are shown with a picture; the others stand in a table."""
_ROWS = 60
_COLUMNS = 2000
_LETTER, _LETTERS = 7.8, 26
"""Width of a letter beside the line of trust, on the wide side, and how many of a name are shown."""
_COLOURS = {Trust.DOUBTFUL: "#f0b429", Trust.LOST: "#c0392b"}


def add_verdict(page: Page, findings: Findings, stretches: Sequence[Stretch], warnings: Sequence[str]) -> None:
    """Answer in words whether to trust this, and what to do; ``warnings``: what the camera checks say."""
    track = findings.track
    if track is None:
        page.verdict("Not tracked yet: nothing to trust.", "", [], [f"vivarig run {findings.recording.folder.name}"])
        return
    answer, mood = _answer(track)
    trusted = float((track.trust == Trust.TRUSTED).mean())
    doubtful, lost = (int((track.trust == level).sum()) for level in (Trust.DOUBTFUL, Trust.LOST))
    lines = [
        f"{100 * trusted:.0f} % of {len(track.trust)} frames are trusted"
        + _in_every_limb(track)
        + (f"; {doubtful} doubtful and {lost} lost." if doubtful + lost else ".")
        + _limb_shares(track)
    ]
    if mood == "bad":
        lines.append(
            "The template does not explain what the cameras saw in most of this recording: surface, joints and angles "
            "below show where the fit came to rest, and are no measurement of the subject until the cause is mended."
        )
    count = len(load_edits(edits_file(findings.recording.folder)).described())
    if count:
        lines.append(f"{count} {'edits' if count > 1 else 'edit'} made by hand, listed under How this was made.")
    lines += [f"Cameras: {text}" for text in warnings]
    page.verdict(answer, mood, lines, _advice(stretches))


def _answer(track: TrackFindings) -> tuple[str, str]:
    """Return the answer and its mood: by limb where limbs were judged, the trunk standing for the body."""
    shares = np.array([(track.trust == Trust.TRUSTED).mean()])
    if track.limb_trust is not None:
        shares = (track.limb_trust == Trust.TRUSTED).mean(axis=0)
    if shares[0] < PART:
        return "Not to be trusted as it is.", "bad"
    if (shares >= THROUGHOUT).all():
        return "Yes, but for what is listed below." if (shares < 1).any() else "Yes, throughout.", "good"
    if track.limb_trust is None:
        return "In part: only where it is trusted.", "warn"
    return f"In part: {usable_words(track.limb_names, shares)}.", "warn"


def _in_every_limb(track: TrackFindings) -> str:
    """Return in how many frames no limb is doubted: a limb that is hidden does not make an animal's frame doubtful."""
    if track.limb_trust is None:
        return ""
    whole = (track.trust == Trust.TRUSTED) & (track.limb_trust == Trust.TRUSTED).all(axis=1)
    return f", {100 * float(whole.mean()):.0f} % in every limb"


def _limb_shares(track: TrackFindings) -> str:
    if track.limb_trust is None:
        return ""
    shares = (track.limb_trust == Trust.TRUSTED).mean(axis=0)
    return f" Trusted by limb: {share_words(track.limb_names, shares)}."


def _advice(stretches: Sequence[Stretch]) -> list[str]:
    """Return what to do, for the reasons that cost most first."""
    cost: Counter[str] = Counter()
    limbs: dict[str, set[str]] = {}
    for one in stretches:
        cost[one.reasons[0]] += one.frames * len(one.limbs) * (1 + int(one.level == Trust.LOST))
        limbs.setdefault(one.reasons[0], set()).update(one.limbs)
    told = []
    for reason, _ in cost.most_common(3):
        words = reason_words(reason)
        who = ", ".join(sorted(limb.replace("_", " ") for limb in limbs[reason]))
        told.append(f"{who}: {words.means}. {words.do}")
    return told


def add_timeline(page: Page, findings: Findings) -> None:
    """Add a line of trust for the frame and for each limb: when, at a glance."""
    track = findings.track
    if track is None:
        return
    rows = [("all", track.trust)]
    if track.limb_trust is not None:
        rows += [(name.replace("_", " "), track.limb_trust[:, k]) for k, name in enumerate(track.limb_names)]
    left = 16 + _LETTER * max(len(_short(name)) for name, _ in rows)
    span, row = 980 - left, 20
    height = row * len(rows) + 26
    frames = len(track.trust)
    parts = [
        f'<svg class="trust" id="timeline" data-left="{left:g}" data-span="{span:g}" viewBox="0 0 1000 {height}" '
        f'role="img" aria-label="trust over time, a line for each limb">'
    ]
    edges = np.linspace(0, frames, min(frames, _COLUMNS) + 1).astype(int)
    for k, (name, trust) in enumerate(rows):
        y = 6 + row * k
        parts.append(
            f'<text x="{left - 8:g}" y="{y + 12}" font-size="12" text-anchor="end" fill="#444">'
            f"<title>{escape(name)}</title>{escape(_short(name))}</text>"
            f'<rect x="{left:g}" y="{y}" width="{span:g}" height="{row - 5}" fill="#b7d7c4"/>'
        )
        worst = np.maximum.reduceat(trust, edges[:-1])
        for level, colour in _COLOURS.items():
            for first, last in runs(worst == level):
                x0, x1 = (left + span * edges[at] / frames for at in (first, last + 1))
                parts.append(
                    f'<rect x="{x0:.2f}" y="{y}" width="{max(x1 - x0, 0.8):.2f}" height="{row - 5}" fill="{colour}"/>'
                )
    for k in range(6):
        frame = round((frames - 1) * k / 5)
        x = left + span * (frame + 0.5) / frames
        anchor = "start" if k == 0 else "end" if k == 5 else "middle"
        parts.append(
            f'<text x="{x:.1f}" y="{height - 6}" font-size="11" text-anchor="{anchor}" fill="#666">{frame} '
            f"({frame / findings.recording.rate_hz:.2f} s)</text>"
        )
    parts.append(f'<line id="now" x1="-9" x2="-9" y1="0" y2="{height - 20}" stroke="#222" stroke-width="1.5"/></svg>')
    page.markup(f'<div class="wide">{"".join(parts)}</div>')
    page.markup(
        '<p class="key"><i style="background:#b7d7c4;margin-left:0"></i>trusted<i style="background:#f0b429"></i>'
        'doubtful<i style="background:#c0392b"></i>lost</p>'
    )


def _short(name: str) -> str:
    """Return a name as it stands beside a line: cut where it is very long."""
    return name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}\u2026"


def add_stretches(page: Page, findings: Findings, stretches: Sequence[Stretch]) -> None:
    """Add the list of doubtful and lost stretches, gravest first, each with its picture."""
    if findings.track is None:
        return
    page.heading("What is doubtful or lost")
    add_timeline(page, findings)
    if not stretches:
        page.note("Nothing: every frame and every limb is trusted.")
        return
    count = f"{len(stretches)} stretches, gravest first" if len(stretches) > 1 else "One stretch"
    page.markup(
        f'<p class="note">{count}<span class="scripted">; a click shows it '
        "below</span>. Pictures: the two cameras that fit worst; green the silhouette, orange the tracked outline; "
        "bones are white where trusted, orange where doubtful, red where lost.</p>"
    )
    pictures = _pictures(findings, stretches[:_PICTURES])
    cards = [_card(findings, one, pictures.get(k, "")) for k, one in enumerate(stretches[:_PICTURES])]
    page.markup(f'<div class="stretches" id="stretches">{"".join(cards)}</div>')
    if len(stretches) > _PICTURES:
        rows = "".join(_row(findings, one) for one in stretches[_PICTURES:_ROWS])
        page.markup(f'<div class="wide"><table><tr><th>what</th><th>frames</th><th>why</th></tr>{rows}</table></div>')
    if len(stretches) > _ROWS:
        page.note(f"And {len(stretches) - _ROWS} shorter ones.")


def _where(findings: Findings, one: Stretch) -> str:
    rate = findings.recording.rate_hz
    if one.first == one.last:
        return f"frame {one.first} ({one.first / rate:.2f} s)"
    some = "" if one.frames == one.last - one.first + 1 else f", {one.frames} of {one.last - one.first + 1}"
    return f"frames {one.first} to {one.last} ({one.first / rate:.2f} to {one.last / rate:.2f} s{some})"


def _target(one: Stretch) -> str:
    return f'data-goto="{one.worst}" data-first="{one.first}" data-last="{one.last}"'


def _pictures(findings: Findings, stretches: Sequence[Stretch]) -> dict[int, str]:
    """Return a picture of each stretch, by its number; made in the order of the frames, so that videos are read on."""
    if not any(footage.has_images for footage in findings.recording.footage):
        return {}
    what = ("silhouette", "template", "skeleton")
    views = {one.worst: _telling_cameras(findings, one.worst) for one in stretches}
    for name in {name for names in views.values() for name in names}:
        expect_images(findings, [name], [frame for frame, names in views.items() if name in names])
    out = {}
    for k in sorted(range(len(stretches)), key=lambda k: stretches[k].worst):
        one = stretches[k]
        markers = _markers_of(findings, one)
        sheet = contact_sheet(findings, views[one.worst], [one.worst], what, near=True, markers=markers)
        out[k] = data_uri(sheet, 75)
    return out


def _markers_of(findings: Findings, one: Stretch) -> Ints | None:
    """Return the markers of a stretch's limbs, None for the whole body."""
    track = findings.track
    if track is None or track.marker_limbs is None or one.limbs == (WHOLE,):
        return None
    wanted = [track.limb_names.index(name) for name in one.limbs]
    return np.flatnonzero(np.isin(track.marker_limbs, wanted))


def _card(findings: Findings, one: Stretch, uri: str) -> str:
    words = [reason_words(reason) for reason in one.reasons]
    others = f" Also: {'; '.join(word.means for word in words[1:])}." if words[1:] else ""
    state = one.level.name.lower()
    picture = f'<img src="{uri}" alt="frame {one.worst} in two cameras">' if uri else ""
    name = one.name if one.limbs != (WHOLE,) else WHOLE
    return (
        f'<div class="stretch {state}" {_target(one)}><span class="tag">{state}</span> <b>{escape(name)}</b>, '
        f"{escape(_where(findings, one))}<p>Why: {escape(words[0].means)}.{escape(others)}</p>"
        f'<p class="do">{escape(words[0].do)}</p>{picture}</div>'
    )


def _row(findings: Findings, one: Stretch) -> str:
    cells = (f"{one.level.name.lower()}: {one.name}", _where(findings, one), reason_words(one.reasons[0]).means)
    return f"<tr {_target(one)}>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"


def _telling_cameras(findings: Findings, frame: int) -> list[str]:
    """Return the two cameras in which surface and silhouette overlap least, in the rig's order."""
    if findings.silhouettes is None:
        return [footage.name for footage in findings.recording.footage][:2]
    names = findings.silhouettes.names
    overlap = None if findings.track is None else findings.track.overlap
    if overlap is None:
        return names[:2]
    order = np.argsort(np.where(np.isfinite(overlap[frame]), overlap[frame], np.inf), kind="stable")
    return [names[k] for k in sorted(order[:2].tolist())]
