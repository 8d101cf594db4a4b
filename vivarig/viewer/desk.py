"""The mending desk: what the page ``/mend`` asks and says, one message at a time; every change is saved at once."""

from __future__ import annotations

import base64
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import cv2
import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Floats
from calibration.foundation.errors import InputError, nearest
from calibration.foundation.files import write_text
from capture.recordings.masks import read_masks
from capture.recordings.recording import load_recording
from vivarig.edits.edit_file import Drop, Edits, KeyPose, Lost, Stroke, edits_file, load_edits, save_edits
from vivarig.edits.strokes import brushed
from vivarig.mending.unedited import as_made
from vivarig.report.pictures import overlay
from vivarig.results.findings import Findings, load_findings
from vivarig.results.reason_words import reason_words

__all__ = ["Desk"]

_KINDS = ("masks", "drops", "lost", "key_poses")
_LONGEST = 20_000
"""Points of one stroke at most."""


class Desk:
    """Edits of one recording, asked for by a page; frames of its messages are rows of the results."""

    def __init__(self, findings: Findings, on_change: Callable[[Findings], None] | None = None) -> None:
        self.findings = findings
        self._on_change = on_change
        self._lock = threading.Lock()
        self._run: subprocess.Popen[str] | None = None
        self._said = ""

    @property
    def _path(self) -> Any:
        return edits_file(self.findings.recording.folder)

    def answer(self, asked: Any) -> dict[str, Any]:
        """Return the answer to one message; what is wrong with it is said, not raised."""
        if not isinstance(asked, dict):
            return {"error": "wanted a message with 'do'"}
        doors: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "open": self._open, "look": self._look, "stroke": self._stroke, "point": self._point, "drop": self._drop,
            "lost": self._lost, "name": self._name, "undo": self._undo, "run": self._rerun, "state": self._state,
        }  # fmt: skip
        door = doors.get(str(asked.get("do")))
        if door is None:
            return {"error": f"unknown request {asked.get('do')!r}"}
        try:
            with self._lock:
                return {"do": asked["do"], **door(asked)}
        except InputError as error:
            return {"do": asked["do"], "error": str(error)}
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            return {"do": asked["do"], "error": f"that message cannot be read ({type(error).__name__}: {error})"}

    # ---- what is there

    def _open(self, asked: dict[str, Any]) -> dict[str, Any]:
        found = self.findings
        track, skeleton = found.track, found.skeleton
        names = self._cameras()
        return {
            "name": found.recording.name, "cameras": names, "frames": found.frames, "first": found.first,
            "rate": found.recording.rate_hz,
            "limbs": [] if track is None else list(track.limb_names),
            "joints": [] if skeleton is None else list(skeleton.joint_names),
            "parents": [] if skeleton is None else skeleton.parents.tolist(),
            "quads": [] if track is None else list(track.quad_names),
            "trust": [] if track is None else track.trust.tolist(),
            "markers": [] if track is None else list(track.marker_names),
            "beads": [] if found.beads is None else list(found.beads.names),
            **self._edits(),
        }  # fmt: skip

    def _cameras(self) -> list[str]:
        if self.findings.silhouettes is not None:
            return list(self.findings.silhouettes.names)
        return [footage.name for footage in self.findings.recording.footage]

    def _edits(self) -> dict[str, Any]:
        return {"edits": [f"{what}: {where}" for what, where in load_edits(self._path).described()]}

    def _row(self, asked: dict[str, Any], key: str = "frame") -> int:
        row = int(asked[key])
        if not 0 <= row < self.findings.frames:
            raise InputError(f"frame {row + self.findings.first} is not one of the results' {self.findings.frames}")
        return row

    def _camera(self, asked: dict[str, Any]) -> str:
        name, names = str(asked["camera"]), self._cameras()
        if name not in names:
            raise InputError(f"no camera '{name}'; {nearest(name, names)}")
        return name

    def _look(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Return a camera's image, its silhouette with the edits, and where joints and quads are in it."""
        camera, row = self._camera(asked), self._row(asked)
        edits, frame = load_edits(self._path), row + self.findings.first
        image = overlay(self.findings, camera, row, ())
        mask = self._mask(camera, row, edits)
        size = mask.shape if mask is not None else None if image is None else image.shape[:2]
        if size is None:
            raise InputError(f"{camera} has neither image nor silhouette in frame {frame}")
        if image is None:
            image = np.zeros((*size, 3), np.uint8)
        dropped = any(one.camera == camera and one.first <= frame <= one.last for one in edits.drops)
        return {
            "camera": camera, "frame": row, "width": size[1], "height": size[0],
            "image": _uri(image, ".jpg"), "mask": None if mask is None else _uri(mask.view(np.uint8) * 255, ".png"),
            "joints": self._pixels(camera, self._places("joints", row, edits)),
            "quads": self._pixels(camera, self._places("quads", row, edits)),
            "jointTrust": [] if self.findings.skeleton is None else self.findings.skeleton.joint_trust[row].tolist(),
            "dropped": dropped, "said": self._words(row),
        }  # fmt: skip

    def _mask(self, camera: str, row: int, edits: Edits) -> Bools | None:
        path = as_made(self.findings.recording.results, "silhouettes.h5")
        if not path.is_file():
            return None
        frame = row + self.findings.first
        strokes = [one for one in edits.masks if one.camera == camera and one.first <= frame <= one.last]
        return brushed(read_masks(path, camera, row)[0], strokes)

    def _places(self, kind: str, row: int, edits: Edits) -> Floats:
        """Return (n, 3) where the joints or quads are, key poses of this frame included; none where not known."""
        if kind == "joints":
            if self.findings.skeleton is None:
                return np.zeros((0, 3))
            names, places = self.findings.skeleton.joint_names, np.array(self.findings.skeleton.positions[row])
        else:
            if self.findings.track is None:
                return np.zeros((0, 3))
            names, places = self.findings.track.quad_names, self.findings.track.quads(np.array([row]))[1][0].copy()
        for pose in edits.key_poses:
            if pose.frame == row + self.findings.first:
                for name, place in getattr(pose, kind).items():
                    if name in names:
                        places[names.index(name)] = place
        return places

    def _pixels(self, camera: str, places: Floats) -> list[list[float] | None]:
        rig = self.findings.recording.rig
        if rig is None or not len(places):
            return []
        pixels = rig[camera].project(places)
        return [[float(x), float(y)] if np.isfinite([x, y]).all() else None for x, y in pixels]

    def _words(self, row: int) -> str:
        track = self.findings.track
        if track is None:
            return "not tracked"
        if track.trust[row] == 0:
            return "trusted"
        reason = reason_words(track.reasons[track.reason[row]]) if track.reason[row] < len(track.reasons) else None
        words = ("trusted", "doubtful", "lost")[int(track.trust[row])] + (f": {reason.means}" if reason else "")
        if track.limb_trust is not None and track.limb_reason is not None:
            limbs = [
                f"{name.replace('_', ' ')} ({track.reasons[track.limb_reason[row, k]]})"
                for k, name in enumerate(track.limb_names)
                if track.limb_trust[row, k]
            ]
            words += f"; {', '.join(limbs)}" if limbs else ""
        return words

    # ---- what is changed

    def _save(self, edits: Edits) -> dict[str, Any]:
        save_edits(self._path, edits)
        return self._edits()

    def _span(self, asked: dict[str, Any]) -> tuple[int, int]:
        first, last = self._row(asked, "from"), self._row(asked, "to")
        if last < first:
            raise InputError("the last frame comes before the first")
        return first + self.findings.first, last + self.findings.first

    def _stroke(self, asked: dict[str, Any]) -> dict[str, Any]:
        frame = self._row(asked) + self.findings.first
        path = tuple((round(float(x), 1), round(float(y), 1)) for x, y in asked["path"][:_LONGEST])
        radius = float(asked["radius"])
        if not path or not 0 < radius < 2000:
            raise InputError("a stroke wants a path and a radius from 0 to 2000 px")
        stroke = Stroke(self._camera(asked), frame, frame, bool(asked["paint"]), round(radius, 1), path)
        edits = load_edits(self._path)
        said = self._save(replace(edits, masks=(*edits.masks, stroke)))
        return {**said, **self._look(asked)}

    def _point(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Put a joint or quad where it was dragged to in an image, as far from the camera as it was."""
        kind, name = str(asked["kind"]), str(asked["name"])
        if kind not in ("joints", "quads"):
            raise InputError("a key pose is of joints or quads")
        camera, row = self._camera(asked), self._row(asked)
        names = self._open({})[kind]
        if name not in names:
            raise InputError(f"no {kind[:-1]} '{name}'; {nearest(name, names)}")
        edits = load_edits(self._path)
        before = self._places(kind, row, edits)[names.index(name)]
        if not np.isfinite(before).all():
            raise InputError(f"where {name} is in this frame is not known: its depth is needed")
        view = self.findings.recording.need_rig()[camera]
        origins, directions = view.rays(np.array([[float(asked["x"]), float(asked["y"])]]))
        origin, along = np.asarray(origins)[0], np.asarray(directions)[0]
        # the plane through the old place that faces the camera
        facing = (before - origin) / np.linalg.norm(before - origin)
        x, y, z = np.round(origin + along * ((before - origin) @ facing) / (along @ facing), 2).tolist()
        frame = row + self.findings.first
        old = next((one for one in edits.key_poses if one.frame == frame), KeyPose(frame))
        moved = {**getattr(old, kind), name: (x, y, z)}
        new = replace(old, joints=moved) if kind == "joints" else replace(old, quads=moved)
        poses = [one for one in edits.key_poses if one.frame != frame]
        said = self._save(replace(edits, key_poses=tuple(sorted([*poses, new], key=lambda one: one.frame))))
        return {**said, **self._look(asked)}

    def _drop(self, asked: dict[str, Any]) -> dict[str, Any]:
        edits = load_edits(self._path)
        one = Drop(self._camera(asked), *self._span(asked), str(asked.get("note", ""))[:200])
        return self._save(replace(edits, drops=(*edits.drops, one)))

    def _lost(self, asked: dict[str, Any]) -> dict[str, Any]:
        edits = load_edits(self._path)
        limb = str(asked.get("limb", ""))
        limbs = list(self.findings.track.limb_names) if self.findings.track is not None else []
        if limb and limb not in limbs:
            raise InputError(f"no limb '{limb}'; {nearest(limb, limbs)}")
        one = Lost(*self._span(asked), limb, str(asked.get("note", ""))[:200])
        return self._save(replace(edits, lost=(*edits.lost, one)))

    def _name(self, asked: dict[str, Any]) -> dict[str, Any]:
        edits = load_edits(self._path)
        key = {"beads": "bead_names", "markers": "marker_names"}[str(asked["kind"])]
        words: dict[str, str] = dict(getattr(edits, key))
        shown, new = str(asked["old"]), str(asked["new"]).strip()
        # what is shown may be a name given before: the results still hold the old one
        old = next((name for name, word in words.items() if word == shown), shown)
        words[old] = new
        if not new or new == old:
            words.pop(old)
        before = self._path.read_text() if self._path.is_file() else None
        said = self._save(_with(edits, key, words))
        try:
            self._reload()
        except InputError:
            if before is None:
                self._path.unlink(missing_ok=True)
            else:
                write_text(self._path, before)
            raise
        return {**self._open({}), **said}

    def _undo(self, asked: dict[str, Any]) -> dict[str, Any]:
        edits, index = load_edits(self._path), int(asked["index"])
        for kind in _KINDS:
            rows = getattr(edits, kind)
            if 0 <= index < len(rows):
                return self._save(_with(edits, kind, rows[:index] + rows[index + 1 :]))
            index -= len(rows)
        for kind in ("bead_names", "marker_names"):
            words = dict(getattr(edits, kind))
            if 0 <= index < len(words):
                words.pop(list(words)[index])
                return self._save(_with(edits, kind, words))
            index -= len(words)
        raise InputError("holds of `vivarig clean` are taken back in edits.toml")

    # ---- done again

    def _rerun(self, asked: dict[str, Any]) -> dict[str, Any]:
        if self._run is not None and self._run.poll() is None:
            return {"running": True, "said": self._said}
        self._said = "started"
        folder = self.findings.recording.folder.resolve()
        self._run = subprocess.Popen(
            [sys.executable, "-m", "vivarig.cli", "run", str(folder)], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        threading.Thread(target=self._listen, args=(self._run,), daemon=True).start()
        return {"running": True, "said": self._said}

    def _listen(self, run: subprocess.Popen[str]) -> None:
        assert run.stdout is not None
        with run.stdout:
            for line in run.stdout:
                if line.strip():
                    self._said = line.strip()
        code = run.wait()
        with self._lock:
            if code in (0, 1):  # 1: done, with something to say about quality
                self._reload()
            self._said = ("done; " if code == 0 else f"ended with {code}; ") + self._said

    def _state(self, asked: dict[str, Any]) -> dict[str, Any]:
        alive = self._run is not None and (self._run.poll() is None or not self._said.startswith(("done", "ended")))
        return {"running": alive, "said": self._said}

    def _reload(self) -> None:
        self.findings = load_findings(load_recording(self.findings.recording.folder))
        if self._on_change is not None:
            self._on_change(self.findings)

    def close(self) -> None:
        """End a run that this desk started."""
        if self._run is not None and self._run.poll() is None:
            self._run.terminate()


def _with(edits: Edits, kind: str, value: Any) -> Edits:
    changes: dict[str, Any] = {kind: value}
    return replace(edits, **changes)


def _uri(image: Bytes, kind: str) -> str:
    _, encoded = cv2.imencode(kind, image)
    word = "jpeg" if kind == ".jpg" else "png"
    return f"data:image/{word};base64," + base64.b64encode(encoded.tobytes()).decode("ascii")
