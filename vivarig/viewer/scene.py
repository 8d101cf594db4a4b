"""The viewer: one recording, or two side by side, in 3D in the browser, built on viser."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np

from calibration.foundation.arrays import Bytes, Floats
from calibration.geometry.transforms import rotation_from_quaternion
from vivarig.results.findings import Findings
from vivarig.results.reason_words import reason_words
from vivarig.viewer.desk import Desk
from vivarig.viewer.door import Door
from vivarig.viewer.layers import MM, Layers

__all__ = ["Viewer"]

_LAYERS = ("cameras", "images", "silhouettes", "hull", "template", "skeleton", "names", "markers", "beads")
_OFF = ("hull", "images", "silhouettes", "names")
_NEAR = 0.015
"""How far beside a ray a point is still meant, as a share of its distance."""
_LINE = np.array([(196, 215, 183), (41, 180, 240), (43, 57, 192)], np.uint8)
"""Colours of the line of trust, BGR."""


class Viewer:
    """A server with a scene of one recording, or of two side by side; the first one can be mended."""

    def __init__(self, findings: Findings, host: str, port: int, beside: Findings | None = None) -> None:
        import viser

        self.findings = findings
        self.desk = Desk(findings, self._replaced)
        self.door = Door(host, self._answer)
        with self.door.watching():
            self.server = viser.ViserServer(host=host, port=port, verbose=False)
        self.server.scene.set_up_direction("+z")
        self._lock = threading.Lock()
        self._toggles: dict[str, Any] = {}
        self.layers = [Layers(self.server, findings, self._on)]
        if beside is not None:
            self.layers.append(Layers(self.server, beside, self._on, "/beside"))
        self._build_controls()
        self._stand_back()
        self._pointed: Any = None
        self.server.scene.on_click()(lambda event: self.point_at(event.ray_origin, event.ray_direction))
        self.show(0)

    @property
    def _handles(self) -> dict[str, Any]:
        return self.layers[0].handles

    @property
    def frames(self) -> int:
        """Frames of the longer recording."""
        return max(layers.findings.frames for layers in self.layers)

    @property
    def port(self) -> int:
        """The port in use."""
        return int(self.server.get_port())

    @property
    def address(self) -> str:
        """Where to look, with the token that lets one in."""
        return self.door.address(self.port)

    def _build_controls(self) -> None:
        gui = self.server.gui
        last = max(self.frames - 1, 1)  # a slider needs two ends
        self.slider = gui.add_slider("frame", min=0, max=last, step=1, initial_value=0)
        self.lines = [
            gui.add_image(
                _line_of_trust(layers.findings, 0)[..., ::-1], label=f"trust: {layers.findings.recording.name}"
            )
            for layers in self.layers
            if layers.findings.track is not None
        ]
        self.play = gui.add_checkbox("play", initial_value=False)
        for name in _LAYERS:
            self._toggles[name] = gui.add_checkbox(name, initial_value=name not in _OFF)
            self._toggles[name].on_update(lambda _: self.show(int(self.slider.value)))
        self.colours = gui.add_dropdown("surface shows", ("trust", "error"), initial_value="trust")
        self.colours.on_update(lambda _: self.show(int(self.slider.value)))
        self.slider.on_update(lambda _: self.show(int(self.slider.value)))
        self.words = gui.add_markdown("")
        gui.add_markdown("[Mend by hand](/mend): silhouettes, key poses, cameras, names, lost stretches")

    def _replaced(self, findings: Findings) -> None:
        """Show results that were made again."""
        self.findings = self.layers[0].findings = findings
        self.show(int(self.slider.value))

    def _on(self, name: str) -> bool:
        return bool(self._toggles[name].value)

    def _stand_back(self) -> None:
        """Let new visitors look at where the subjects went, from their whole range away; draw a floor below."""
        seen = [layers.whereabouts() for layers in self.layers]
        known = [points for points in seen if points is not None]
        if len(known) == 2:  # the second one to the right of the first
            right = known[0].max(axis=(0, 1))[0] - known[1].min(axis=(0, 1))[0]
            size = max(float(np.ptp(points, axis=(0, 1)).max()) for points in known)
            self.layers[1].offset = np.array([right + 0.5 * size, 0.0, 0.0])
            known[1] = known[1] + self.layers[1].offset
        if not known:
            for layers in self.layers:
                layers.draw_cameras(np.zeros(3))
            return
        low = np.min([points.min(axis=(0, 1)) for points in known], axis=0)
        high = np.max([points.max(axis=(0, 1)) for points in known], axis=0)
        for layers in self.layers:
            layers.draw_cameras((low + high) / 2)
        middle, reach = MM * (low + high) / 2, max(MM * float(np.linalg.norm(high - low)), 0.1)
        self.server.initial_camera.look_at = middle
        self.server.initial_camera.position = middle + reach * np.array([0.5, -0.75, 0.4])
        step = 10.0 ** np.floor(np.log10(reach))
        self.server.scene.add_grid(
            "/floor", width=4 * reach, height=4 * reach, cell_size=step / 2, section_size=step,
            position=(float(middle[0]), float(middle[1]), min(MM * float(low[2]), 0.0)),
        )  # fmt: skip

    def show(self, frame: int) -> None:
        """Draw one frame; the slider of a recording with one frame goes beyond it."""
        with self._lock:
            if self._pointed is not None:
                self._pointed.remove()
                self._pointed = None
            for layers in self.layers:
                layers.colours = str(self.colours.value)
                layers.show(frame)
            tracked = (layers.findings for layers in self.layers if layers.findings.track is not None)
            for line, findings in zip(self.lines, tracked, strict=True):
                line.image = _line_of_trust(findings, frame)[..., ::-1]
            self.words.content = "\n\n".join(_said(layers.findings, frame) for layers in self.layers) + (
                f"\n\n{self.layers[0].told}" if self.layers[0].told else ""
            )

    def _met(self, origin: Sequence[float] | Floats, direction: Sequence[float] | Floats) -> tuple[str, Floats]:
        """Return name and place of the joint, marker or bead that a ray meets; an empty name for none."""
        start, way = np.asarray(origin, dtype=np.float64), np.asarray(direction, dtype=np.float64)
        way = way / max(float(np.linalg.norm(way)), 1e-12)
        frame = int(self.slider.value)
        met = [one for layers in self.layers if (one := layers.pointed_at(frame, start, way)) is not None]
        beside, name, place = min(met, key=lambda one: one[0], default=(np.inf, "", start))
        return ("", start) if beside > _NEAR else (name, place)

    def point_at(self, origin: Sequence[float], direction: Sequence[float]) -> str:
        """Write the name of what a ray meets beside it, to stay, and return it: what a click does."""
        with self._lock:
            name, place = self._met(origin, direction)
            if self._pointed is not None:
                self._pointed.remove()
                self._pointed = None
            if name:
                self._pointed = self.server.scene.add_label("/pointed", name, position=place, anchor="bottom-left")
            return name

    def _answer(self, asked: Any) -> dict[str, Any]:
        """Answer what a page asks: the scene's for names under its mouse, the desk's for all else."""
        if not isinstance(asked, dict) or asked.get("do") != "name":
            return self.desk.answer(asked)
        shares = [asked.get(key) for key in ("x", "y", "aspect")]
        if not all(isinstance(one, int | float) and 0 <= one < 100 for one in shares):
            return {"name": ""}
        return {"name": self.name_under(*(float(one) for one in shares if one is not None))}

    def name_under(self, across: float, down: float, aspect: float) -> str:
        """Return the name under the mouse, given as shares of a picture's width and height.

        Of several visitors the one is meant whose picture has that ``aspect`` and was moved last.
        """
        seen = [client.camera for client in self.server.get_clients().values() if client.camera.update_timestamp > 0]
        if not seen:
            return ""
        camera = min(seen, key=lambda one: (round(abs(one.aspect - aspect), 2), -one.update_timestamp))
        half = np.tan(camera.fov / 2)
        ray = np.array([(2 * across - 1) * half * camera.aspect, (2 * down - 1) * half, 1.0])
        with self._lock:
            return self._met(camera.position, rotation_from_quaternion(np.asarray(camera.wxyz)) @ ray)[0]

    def run_forever(self) -> None:
        """Serve until interrupted, advancing the slider while play is on."""
        while True:
            time.sleep(1 / 15)
            if self.play.value:
                self.slider.value = (int(self.slider.value) + 1) % max(self.frames, 1)

    def stop(self) -> None:
        """Close the server."""
        self.desk.close()
        self.server.stop()


def _line_of_trust(findings: Findings, frame: int) -> Bytes:
    """Return a picture (h, w, 3) BGR of the trust of every frame, a row for all and for each limb, and a cursor."""
    track = findings.track
    assert track is not None
    rows = [track.trust] if track.limb_trust is None else [track.trust, *track.limb_trust.T]
    picture = _LINE[np.stack(rows)]
    out = np.asarray(cv2.resize(picture, (420, 12 * len(rows)), interpolation=cv2.INTER_NEAREST))
    at = min(419, int(420 * (min(frame, track.frames - 1) + 0.5) / track.frames))
    out[:, max(at - 1, 0) : at + 1] = 30
    for row in range(1, len(rows)):
        out[12 * row] = 255
    return out


def _said(findings: Findings, frame: int) -> str:
    """Return what to say of a frame: its time, how far to trust it, and why not."""
    text = f"**{_plain(findings.recording.name)}**, time {frame / findings.recording.rate_hz:.3f} s"
    track = findings.track
    if frame >= findings.frames:
        return f"{text}, ended"
    if track is None:
        return text
    text += f", tracking {('trusted', 'doubtful', 'lost')[int(track.trust[frame])]}"
    if track.trust[frame] and 0 < track.reason[frame] < len(track.reasons):
        text += f": {reason_words(track.reasons[track.reason[frame]]).means}"
    if track.limb_trust is not None and track.limb_reason is not None:
        for limb, name in enumerate(track.limb_names):
            level = int(track.limb_trust[frame, limb])
            if level:
                why = reason_words(track.reasons[track.limb_reason[frame, limb]])
                text += f"\n- {name.replace('_', ' ')} {('', 'doubtful', 'lost')[level]}: {why.means}"
    return text


def _plain(name: str) -> str:
    """Return a name without the signs that mean something in Markdown."""
    return "".join(letter if letter.isalnum() or letter in " -." else "_" for letter in name).replace("_", "\\_")
