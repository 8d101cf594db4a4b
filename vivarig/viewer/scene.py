"""The viewer: a recording in 3D in the browser, built on viser."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from calibration.cameras.camera import LensCamera
from calibration.geometry.transforms import quaternion_from_rotation
from capture.hull.store import read_hull
from vivarig.report.pictures import overlay
from vivarig.results.findings import Findings
from vivarig.viewer.desk import Desk
from vivarig.viewer.door import Door

__all__ = ["Viewer"]

_MM = 1e-2  # the scene is in decimetres: browsers' cameras are tuned for sizes near 1
_DOT = 0.009
"""Size of a point against the subject's."""
_LOOKS = 1000


class Viewer:
    """A server with one scene per recording: cameras with images, hull, template, skeleton, markers, beads."""

    def __init__(self, findings: Findings, host: str, port: int) -> None:
        import viser

        self.findings = findings
        self.desk = Desk(findings, self._replaced)
        self.door = Door(host, self.desk.answer)
        with self.door.watching():
            self.server = viser.ViserServer(host=host, port=port, verbose=False)
        self.server.scene.set_up_direction("+z")
        self._lock = threading.Lock()
        self._handles: dict[str, Any] = {}
        self._toggles: dict[str, Any] = {}
        self._dot = 0.02
        self._build_controls()
        self._draw_cameras()
        self._stand_back()
        self.show(0)

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
        last = max(self.findings.frames - 1, 1)  # a slider needs two ends
        self.slider = gui.add_slider("frame", min=0, max=last, step=1, initial_value=0)
        self.play = gui.add_checkbox("play", initial_value=False)
        for name in ("cameras", "images", "hull", "template", "skeleton", "markers", "beads"):
            self._toggles[name] = gui.add_checkbox(name, initial_value=name not in ("hull", "images"))
            self._toggles[name].on_update(lambda _: self.show(int(self.slider.value)))
        self.slider.on_update(lambda _: self.show(int(self.slider.value)))
        self.words = gui.add_markdown("")
        gui.add_markdown("[Mend by hand](/mend): silhouettes, key poses, cameras, names, lost stretches")

    def _replaced(self, findings: Findings) -> None:
        """Show results that were made again."""
        self.findings = findings
        self.show(int(self.slider.value))

    def _on(self, name: str) -> bool:
        return bool(self._toggles[name].value)

    def _draw_cameras(self) -> None:
        rig = self.findings.recording.rig
        if rig is None:
            return
        for camera in rig:
            if isinstance(camera, LensCamera):
                world_from_camera = camera.camera_from_world.inverse()
                height = camera.size[1] / camera.lens.intrinsics[1, 1]
                self._handles[f"camera/{camera.name}"] = self.server.scene.add_camera_frustum(
                    f"/cameras/{camera.name}", fov=float(2 * np.arctan(height / 2)),
                    aspect=camera.size[0] / camera.size[1], scale=0.3, color=(31, 111, 139),
                    wxyz=quaternion_from_rotation(world_from_camera.rotation),
                    position=world_from_camera.translation * _MM,
                )  # fmt: skip

    def _stand_back(self) -> None:
        """Let new visitors look at where the subject went, from its whole range away; draw a floor below it."""
        points = self._whereabouts()
        if points is None:
            return
        low, high = points.min(axis=(0, 1)), points.max(axis=(0, 1))
        middle, size = (low + high) / 2, max(float(np.linalg.norm(high - low)), 0.1)
        self._dot = _DOT * float(np.median(np.linalg.norm(np.ptp(points, axis=1), axis=1)))
        self.server.initial_camera.look_at = middle
        self.server.initial_camera.position = middle + size * np.array([0.5, -0.75, 0.4])
        for key, handle in self._handles.items():
            if key.startswith("camera/"):
                handle.scale = 0.1 * float(np.linalg.norm(handle.position - middle))
        step = 10.0 ** np.floor(np.log10(size))
        self.server.scene.add_grid(
            "/floor", width=4 * size, height=4 * size, cell_size=step / 2, section_size=step,
            position=(float(middle[0]), float(middle[1]), min(float(low[2]), 0.0)),
        )  # fmt: skip

    def _whereabouts(self) -> np.ndarray | None:
        """Return points (n, P, 3) of the subject in frames all over the recording, in scene units; None if unknown."""
        found = self.findings
        if found.skeleton is not None:
            points = found.skeleton.positions
        elif found.track is not None:
            points = found.track.markers
        elif found.beads is not None:
            points = found.beads.positions
        elif found.hull is not None and (found.hull.volume > 0).any():
            points = read_hull(found.hull.path, int(np.argmax(found.hull.volume > 0))).vertices[None]
        else:
            return None
        points = np.asarray(points[:: max(1, len(points) // _LOOKS)])
        whole = points[np.isfinite(points).all(axis=(1, 2))]
        if not len(whole):  # beads that are never seen all at once
            seen = points[np.isfinite(points).all(axis=2)]
            whole = seen[None]
        return whole * _MM if whole.size else None

    def show(self, frame: int) -> None:
        """Draw one frame; the slider of a recording with one frame goes beyond it."""
        frame = min(frame, self.findings.frames - 1)
        with self._lock:
            self._cameras(frame)
            self._hull(frame)
            self._template(frame)
            self._skeleton(frame)
            self._points(frame)
            self._say(frame)

    def _cameras(self, frame: int) -> None:
        for key, handle in self._handles.items():
            if key.startswith("camera/"):
                handle.visible = self._on("cameras")
                name = key.removeprefix("camera/")
                image = overlay(self.findings, name, frame, ()) if self._on("images") else None
                handle.image = None if image is None else image[::2, ::2, ::-1]

    def _put(self, key: str, make: Any) -> None:
        old = self._handles.pop(key, None)
        if old is not None:
            old.remove()
        if make is not None:
            self._handles[key] = make()

    def _hull(self, frame: int) -> None:
        make = None
        if self.findings.hull is not None and self._on("hull"):
            hull = read_hull(self.findings.hull.path, frame)
            if not hull.is_empty:
                make = lambda: self.server.scene.add_mesh_simple(  # noqa: E731
                    "/hull", hull.vertices * _MM, hull.faces, color=(230, 200, 120), opacity=0.4
                )
        self._put("hull", make)

    def _template(self, frame: int) -> None:
        track, make = self.findings.track, None
        if track is not None and self._on("template"):
            vertices = track.vertices_at(frame)
            if np.isfinite(vertices).all():
                colour = ((120, 160, 200), (240, 200, 80), (220, 90, 70))[int(track.trust[frame])]
                make = lambda: self.server.scene.add_mesh_simple(  # noqa: E731
                    "/template", vertices * _MM, track.faces, color=colour, opacity=0.6
                )
        self._put("template", make)

    def _skeleton(self, frame: int) -> None:
        skeleton, make = self.findings.skeleton, None
        if skeleton is not None and self._on("skeleton"):
            at = skeleton.positions[frame] * _MM
            bones = np.array([[at[j], at[p]] for j, p in enumerate(skeleton.parents) if p >= 0])
            if np.isfinite(bones).all():
                make = lambda: self.server.scene.add_line_segments(  # noqa: E731
                    "/skeleton", bones, colors=(200, 40, 40), thickness=3.0, thickness_units="screen"
                )
        self._put("skeleton", make)

    def _points(self, frame: int) -> None:
        sets = {
            "markers": (None if self.findings.track is None else self.findings.track.markers, (40, 160, 60)),
            "beads": (None if self.findings.beads is None else self.findings.beads.positions, (230, 120, 20)),
        }
        for name, (points, colour) in sets.items():
            make = None
            if points is not None and self._on(name):
                here = points[frame][np.isfinite(points[frame]).all(1)] * _MM
                if len(here):
                    make = lambda n=name, h=here, c=colour: self.server.scene.add_point_cloud(  # noqa: E731
                        f"/{n}",
                        h,
                        colors=c,
                        point_size=self._dot * (1.0 if n == "markers" else 1.6),
                        point_shape="circle",
                    )
            self._put(name, make)

    def _say(self, frame: int) -> None:
        text = f"time {frame / self.findings.recording.rate_hz:.3f} s"
        if self.findings.track is not None:
            text += f", tracking {('trusted', 'doubtful', 'lost')[int(self.findings.track.trust[frame])]}"
        self.words.content = text

    def run_forever(self) -> None:
        """Serve until interrupted, advancing the slider while play is on."""
        while True:
            time.sleep(1 / 15)
            if self.play.value:
                self.slider.value = (int(self.slider.value) + 1) % max(self.findings.frames, 1)

    def stop(self) -> None:
        """Close the server."""
        self.desk.close()
        self.server.stop()
