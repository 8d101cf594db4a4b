"""One recording drawn into a scene: cameras with images, hull, surface, skeleton, markers, beads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import trimesh

from calibration.cameras.camera import Camera, LensCamera
from calibration.cameras.rig import load_rig
from calibration.foundation.arrays import Floats, Ints
from calibration.geometry.transforms import quaternion_from_rotation
from capture.hull.store import read_hull
from vivarig.report.pictures import overlay
from vivarig.results.findings import Findings
from vivarig.results.vertex_limbs import nearest_markers, vertex_trust
from vivarig.xray.recording import XrayFolder

__all__ = ["MM", "Layers"]

MM = 1e-2  # the scene is in decimetres: browsers' cameras are tuned for sizes near 1
_DOT = 0.009
"""Size of a point against the subject's."""
_LOOKS = 1000
_TRUST = np.array([(120, 160, 200), (240, 190, 70), (220, 90, 70)])
_BONES = np.array([(40, 40, 60), (235, 140, 0), (210, 40, 40)])
_ERRORS = np.array([(60, 120, 190), (110, 190, 120), (240, 200, 70), (215, 60, 50)])
"""Colours of small to large errors."""
_LIGHT, _XRAY = (31, 111, 139), (150, 60, 160)


class Layers:
    """What is drawn of one recording; ``prefix`` names it in the scene, ``offset`` (3,) mm is where its origin is."""

    def __init__(self, server: Any, findings: Findings, on: Callable[[str], bool], prefix: str = "") -> None:
        self.server, self.findings, self._on, self._prefix = server, findings, on, prefix
        self.handles: dict[str, Any] = {}
        self._labels: dict[str, Any] = {}
        self.offset: Floats = np.zeros(3)
        self.colours = "trust"
        self._dot = 0.02
        self._markers: Ints | None = None
        self.told = ""

    def path(self, name: str) -> str:
        """Return the name of a node in the scene."""
        return f"{self._prefix}/{name}"

    def at(self, points: Floats) -> Floats:
        """Return places in the scene of points in mm."""
        return np.asarray((points + self.offset) * MM)

    def whereabouts(self) -> Floats | None:
        """Return points (n, P, 3) of the subject in frames all over the recording, mm; None if unknown."""
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
            whole = points[np.isfinite(points).all(axis=2)][None]
        if not whole.size:
            return None
        self._dot = _DOT * MM * float(np.median(np.linalg.norm(np.ptp(whole, axis=1), axis=1)))
        return whole

    def draw_cameras(self, middle: Floats) -> None:
        """Draw each camera, as large as it is far from the ``middle`` of the scene, mm; X-ray views are purple."""
        for camera in _cameras(self.findings):
            turn, height = _stance(camera)
            self.handles[f"camera/{camera.name}"] = self.server.scene.add_camera_frustum(
                self.path(f"cameras/{camera.name}"), fov=float(2 * np.arctan(height / 2)),
                aspect=camera.size[0] / camera.size[1],
                scale=0.06 * MM * float(np.linalg.norm(camera.centre + self.offset - middle)),
                color=_XRAY if camera.kind == "xray" else _LIGHT, wxyz=quaternion_from_rotation(turn),
                position=self.at(camera.centre),
            )  # fmt: skip

    def show(self, frame: int) -> None:
        """Draw one frame."""
        frame = min(frame, self.findings.frames - 1)
        self._cameras(frame)
        self._hull(frame)
        self._template(frame)
        self._skeleton(frame)
        self._names(frame)
        self._points(frame)

    def _put(self, key: str, make: Callable[[], Any] | None) -> None:
        old = self.handles.pop(key, None)
        if old is not None:
            old.remove()
        if make is not None:
            self.handles[key] = make()

    def _cameras(self, frame: int) -> None:
        """Draw the cameras, and in them their images, bare or with silhouettes and what drawing those again changed."""
        what = ("silhouette", "redrawn") if self._on("silhouettes") else ()
        shown = self._on("images") or bool(what)
        for key, handle in self.handles.items():
            if key.startswith("camera/"):
                handle.visible = self._on("cameras")
                image = overlay(self.findings, key.removeprefix("camera/"), frame, what) if shown else None
                handle.image = None if image is None else image[::2, ::2, ::-1]

    def _hull(self, frame: int) -> None:
        make = None
        if self.findings.hull is not None and self._on("hull"):
            hull = read_hull(self.findings.hull.path, frame)
            if not hull.is_empty:
                make = lambda: self.server.scene.add_mesh_simple(  # noqa: E731
                    self.path("hull"), self.at(hull.vertices), hull.faces, color=(230, 200, 120), opacity=0.4
                )
        self._put("hull", make)

    def _template(self, frame: int) -> None:
        """Draw the surface: see-through in the colour of each limb's trust, or coloured by its expected error."""
        track = self.findings.track
        self.told = ""
        pieces: dict[str, Callable[[], Any] | None] = dict.fromkeys(("template", "template_1", "template_2"))
        if track is not None and self._on("template"):
            vertices = track.vertices_at(frame)
            if np.isfinite(vertices).all():
                if self._markers is None:
                    self._markers = nearest_markers(track)
                if self.colours == "error" and track.sigma is not None:
                    mesh = trimesh.Trimesh(self.at(vertices), track.faces, process=False)
                    mesh.visual.vertex_colors = self._error_colours(np.asarray(track.sigma[frame])[self._markers])
                    pieces["template"] = partial(self.server.scene.add_mesh_trimesh, self.path("template"), mesh)
                else:
                    level = vertex_trust(track, self._markers, frame)[track.faces].max(axis=1)
                    for key, trust in zip(pieces, np.unique(level).tolist(), strict=False):
                        pieces[key] = partial(
                            self.server.scene.add_mesh_simple, self.path(key), self.at(vertices),
                            track.faces[level == trust], color=tuple(_TRUST[trust].tolist()), opacity=0.6,
                        )  # fmt: skip
        for key, make in pieces.items():
            self._put(key, make)

    def _error_colours(self, sigma: Floats) -> Ints:
        """(V, 3) colours from blue, no error, to red, four times the usual one or more."""
        track = self.findings.track
        assert track is not None and track.sigma is not None
        most = 4.0 * float(np.nanmedian(np.asarray(track.sigma[:: max(1, track.frames // 50)])))
        self.told = f"error: blue 0 to red {most:.1f} mm or more (1 sigma)"
        share = np.clip(np.nan_to_num(sigma / most, nan=1.0), 0.0, 1.0) * (len(_ERRORS) - 1)
        low = np.minimum(share.astype(int), len(_ERRORS) - 2)
        part = (share - low)[:, None]
        return np.asarray((1 - part) * _ERRORS[low] + part * _ERRORS[low + 1], np.uint8)

    def _skeleton(self, frame: int) -> None:
        skeleton, make = self.findings.skeleton, None
        if skeleton is not None and self._on("skeleton"):
            at, trust = self.at(skeleton.positions[frame]), skeleton.joint_trust[frame]
            ends = [(joint, parent) for joint, parent in enumerate(skeleton.parents) if parent >= 0]
            bones = np.array([[at[joint], at[parent]] for joint, parent in ends])
            colours = np.array([[_BONES[max(trust[joint], trust[parent])]] * 2 for joint, parent in ends], np.uint8)
            if np.isfinite(bones).all():
                make = lambda: self.server.scene.add_line_segments(  # noqa: E731
                    self.path("skeleton"), bones, colors=colours, thickness=4.0, thickness_units="screen"
                )
        self._put("skeleton", make)

    def _names(self, frame: int) -> None:
        """Write the joints' names beside them."""
        skeleton = self.findings.skeleton
        if skeleton is None or not self._on("names"):
            self._put("names", None)  # the labels are its children
            self._labels.clear()
            return
        if "names" not in self.handles:
            self.handles["names"] = self.server.scene.add_frame(self.path("names"), show_axes=False)
        for name, place in zip(skeleton.joint_names, self.at(skeleton.positions[frame]), strict=True):
            if name not in self._labels:
                self._labels[name] = self.server.scene.add_label(
                    self.path(f"names/{name}"), name.replace("_", " "), font_screen_scale=0.7, anchor="bottom-left"
                )
            seen = bool(np.isfinite(place).all())
            self._labels[name].visible = seen
            if seen:
                self._labels[name].position = place

    def pointed_at(self, frame: int, origin: Floats, direction: Floats) -> tuple[float, str, Floats] | None:
        """Return how far beside a ray the nearest named point is (as a share of its distance), its name and place."""
        found, named = self.findings, []
        if found.skeleton is not None:
            named.append((found.skeleton.joint_names, found.skeleton.positions))
        if found.track is not None and self._on("markers"):
            named.append((found.track.marker_names, found.track.markers))
        if found.beads is not None and self._on("beads"):
            named.append((found.beads.names, found.beads.positions))
        best: tuple[float, str, Floats] | None = None
        for names, points in named:
            if frame >= len(points):
                continue
            for name, place in zip(names, self.at(np.asarray(points[frame])), strict=True):
                depth = float((place - origin) @ direction)
                if np.isfinite(depth) and depth > 0:
                    beside = float(np.linalg.norm(place - origin - depth * direction)) / depth
                    if best is None or beside < best[0]:
                        best = (beside, name.replace("_", " "), place)
        return best

    def _points(self, frame: int) -> None:
        found = self.findings
        sets = {
            "markers": (None if found.track is None else found.track.markers, (40, 160, 60)),
            "beads": (None if found.beads is None else found.beads.positions, (230, 120, 20)),
        }
        for name, (points, colour) in sets.items():
            make = None
            if points is not None and self._on(name):
                here = self.at(points[frame][np.isfinite(points[frame]).all(1)])
                if len(here):
                    make = lambda n=name, h=here, c=colour: self.server.scene.add_point_cloud(  # noqa: E731
                        self.path(n), h, colors=c, point_size=self._dot * (1.0 if n == "markers" else 1.6),
                        point_shape="circle",
                    )  # fmt: skip
            self._put(name, make)


def _cameras(findings: Findings) -> Iterable[Camera]:
    """Return the recording's cameras; of X-ray views alone, which have no rig.toml, those that their cube gave."""
    if findings.recording.rig is not None:
        return findings.recording.rig
    found = XrayFolder.of(findings.recording).rig_file
    return load_rig(found) if found.is_file() else ()


def _stance(camera: Any) -> tuple[Floats, float]:
    """Return world-from-camera rotation, and height of the image at distance 1; of an X-ray view by its rays."""
    if isinstance(camera, LensCamera):
        return camera.camera_from_world.inverse().rotation, float(camera.size[1] / camera.lens.intrinsics[1, 1])
    width, height = camera.size
    corners = np.array([[width / 2, height / 2], [width, height / 2], [width / 2, height], [width / 2, 0]], float)
    middle, right, down, up = np.asarray(camera.rays(corners)[1])
    z = middle / np.linalg.norm(middle)
    x = right - (right @ z) * z
    x /= np.linalg.norm(x)
    y = np.cross(z, x)
    if y @ (down - up) < 0:  # a mirrored view cannot be drawn as a turned one
        y = -y
        x = np.cross(y, z)
    return np.stack([x, y, z], axis=1), float(abs((down / (down @ z) - up / (up @ z)) @ y))
