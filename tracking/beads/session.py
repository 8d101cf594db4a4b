"""From a clip of calibrated views to bead tracks and motion: start, follow, look again, triangulate, doubt, bridge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration.cameras.camera import Camera
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Floats
from calibration.xray.attenuation import Polarity
from calibration.xray.undistortion import AnyMap
from tracking.beads.bones import Bone, fit_bone, group_beads
from tracking.beads.clip import Clip, recover_lost, track_clip
from tracking.beads.gathering import gather_beads
from tracking.beads.reconstruction import (
    BeadMotion,
    anchor_bridges,
    bridge_gaps,
    geometry_of,
    raw_pixels,
    triangulate_beads,
)
from tracking.beads.starting import find_starts
from tracking.beads.tracks import BeadTracks, PointStatus, unique_names

__all__ = ["BeadSession", "follow_beads", "reconstruct"]

#: Share of a jump that a second view must show for it to be motion: less means within 20 degrees of that view's ray.
ONE_SIDED = 0.35


@dataclass(frozen=True, eq=False)
class BeadSession:
    """Beads in space, with the bones they make up.

    Attributes:
        tracks: beads in the images; points that contradict their bone are taken out.
        motion: beads in space, gaps bridged where that can be trusted.
        bones: groups of three or more beads.
        groups: all groups of beads that keep their distances, by bead number.
    """

    tracks: BeadTracks
    motion: BeadMotion
    bones: tuple[Bone, ...]
    groups: tuple[tuple[int, ...], ...]


def follow_beads(
    clip: Clip,
    rig: Rig,
    maps: Mapping[str, AnyMap],
    *,
    starts: Floats | None = None,
    start_frame: int = 0,
    names: Sequence[str] | None = None,
    given: Mapping[int, Floats] | None = None,
    polarity: Sequence[Polarity] | None = None,
    sigma_px: float | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> BeadTracks:
    """Follow beads through a clip of calibrated views, from given places or found automatically.

    What was lost is then looked for again where its bone, or the other views and the times before and after,
    expect it.
    """
    geometry = geometry_of(rig, maps)
    sides: list[Polarity] = list(polarity) if polarity is not None else ["dark"] * len(rig)

    def follow(places: Floats, frame: int, speeds: Floats | None = None) -> BeadTracks:
        return track_clip(
            clip,
            places,
            start_frame=frame,
            speeds=speeds,
            names=names if names is not None else unique_names(places.shape[1]),
            cameras=rig.names,
            polarity=sides,
            sigma_px=sigma_px,
            geometry=geometry,
            given=given,
            on_progress=on_progress,
        )

    if starts is None:
        sets = find_starts(clip, geometry, cameras=rig.names, polarity=sides, sigma_px=sigma_px)
        tracks = without_islands(gather_beads(sets, follow))
    else:
        tracks = without_islands(follow(starts, start_frame))
    for _ in range(2):
        session = reconstruct(tracks, rig, maps)
        expected = np.full(tracks.pixels.shape, np.nan)
        for c, camera in enumerate(rig):
            expected[:, c] = raw_pixels(camera.name, camera.project(session.motion.positions), maps)
        again = recover_lost(clip, session.tracks, expected, polarity=sides)
        if int(again.found.sum()) == int(session.tracks.found.sum()):
            return session.tracks
        tracks = again
    return reconstruct(tracks, rig, maps).tracks


def without_islands(tracks: BeadTracks, shortest: int = 4) -> BeadTracks:
    """Take out finds of fewer than ``shortest`` frames between two losses: a lost bead that returns stays.

    A spot that only looks like the bead for a moment is the commonest wrong point; a true one that falls with it
    is found again where the bead's path or bone expects it.
    """
    found = tracks.found
    drop = np.zeros_like(found)
    for c, b in np.ndindex(found.shape[1:]):
        edges = np.diff(np.concatenate([[0], found[:, c, b].astype(np.int8), [0]]))
        for start, stop in zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), strict=True):
            # A run at either end of the clip has one neighbour in time only, and counts the same.
            if stop - start < shortest and stop - start < len(found):
                drop[start:stop, c, b] = True
    return _dropped(tracks, drop)


def find_bones(
    motion: BeadMotion, bones: Mapping[str, Sequence[str]] | None = None
) -> tuple[tuple[Bone, ...], tuple[tuple[int, ...], ...]]:
    """Fit the bones: those the user named with their beads, or groups of beads that keep their distances."""
    noise = float(np.nanmedian(motion.sigma_mm)) if np.isfinite(motion.positions).any() else 0.05
    tolerance = max(5.0 * noise, 0.05)
    if bones is not None:
        named = {bone: tuple(motion.names.index(bead) for bead in beads) for bone, beads in bones.items()}
    else:
        # Distances of two beads vary by the noise of both, 1.4 times that of one; neighbours that move little against
        # each other, such as two vertebrae, by hardly more.
        groups = group_beads(motion.positions, tolerance_mm=max(2.0 * noise, 0.03))
        named = {f"bone{k + 1:02d}": group for k, group in enumerate(groups)}
    fitted = tuple(
        fit_bone(motion.positions, beads, name=name, tolerance_mm=tolerance)
        for name, beads in named.items()
        if len(beads) >= 3
    )
    return fitted, tuple(named.values())


def reconstruct(
    tracks: BeadTracks,
    rig: Rig,
    maps: Mapping[str, AnyMap],
    *,
    bones: Mapping[str, Sequence[str]] | None = None,
    max_gap: int = 8,
) -> BeadSession:
    """Triangulate tracks, take out points that contradict their bone, and bridge gaps that can be trusted."""
    motion = triangulate_beads(tracks, rig, maps)
    spikes = find_spikes(tracks, motion.positions, [rig[name] for name in tracks.cameras])
    if spikes.any():
        # What is left of a short return once its jumps are out was no return.
        tracks = without_islands(_dropped(tracks, spikes))
        motion = triangulate_beads(tracks, rig, maps)
    fitted, groups = find_bones(motion, bones)
    wrong = np.zeros(motion.positions.shape[:2], dtype=bool)
    for bone in fitted:
        known = np.isfinite(bone.residual_mm)
        wrong[:, bone.beads] |= known & ~bone.used & np.isfinite(bone.pose.translation[:, :1])
    if wrong.any():
        tracks = _without(tracks, wrong)
        motion = triangulate_beads(tracks, rig, maps)
        fitted, groups = find_bones(motion, bones)
    bridged = bridge_gaps(motion, fitted, max_frames=max_gap, named=bones is not None)
    return BeadSession(tracks, anchor_bridges(bridged, tracks, rig, maps), fitted, groups)


def find_spikes(tracks: BeadTracks, positions: Floats, cameras: Sequence[Camera], *, least_mm: float = 0.15) -> Bools:
    """Find (T, C, B) points that throw their bead off its path.

    A position is compared with the cubic through two frames before and two after; beyond six robust sigmas of that
    bead's usual distance, and ``least_mm``, the worst of its surroundings is suspected. A limb that lands or turns
    leaves its path too: two views show that, or one shows it with a fit as good as ever and less than a bead's width
    away. A view that alone shows a jump has taken something else for the bead; where all jump, by far and back again
    (neither the frames before nor those after lead there), it was another bead.
    """
    frames, views, beads = tracks.status.shape
    wrong = np.zeros((frames, views, beads), dtype=bool)
    width = 2.0 * np.nanmedian(tracks.sigma, axis=1)
    blur = np.trace(tracks.covariance, axis1=3, axis2=4)
    track = positions.copy()
    for _ in range(3):
        middle, before, after = (np.full(track.shape, np.nan) for _ in range(3))
        middle[2:-2] = (4.0 * (track[1:-3] + track[3:-1]) - track[:-4] - track[4:]) / 6.0
        before[3:] = 3.0 * track[2:-1] - 3.0 * track[1:-2] + track[:-3]
        after[:-3] = 3.0 * track[1:-2] - 3.0 * track[2:-1] + track[3:]
        distance = np.linalg.norm(track - middle, axis=2)
        aside = np.fmin(np.linalg.norm(track - before, axis=2), np.linalg.norm(track - after, axis=2))
        for bead in range(beads):
            column = distance[:, bead]
            if not np.isfinite(column).any():
                continue
            limit = max(6.0 * float(np.nanmedian(column)) / 1.5, least_mm)
            for t in np.flatnonzero(np.nan_to_num(column) > limit):
                if column[t] < np.nanmax(column[max(t - 2, 0) : t + 3]):
                    continue
                pair = np.stack([track[t, bead], middle[t, bead]])
                jump = np.array([float(np.hypot(*np.diff(camera.project(pair), axis=0)[0])) for camera in cameras])
                jump = np.where(tracks.found[t, :, bead], jump, 0.0)
                first, second = np.argsort(-jump)[:2]
                if jump[second] < ONE_SIDED * jump[first]:
                    usual = float(np.nanmedian(blur[:, first, bead]))
                    if jump[first] > width[first] or blur[t, first, bead] > 2.0 * usual:
                        wrong[t, first, bead] = True
                elif (jump > 2.0 * width).any() and not aside[t, bead] < 0.6 * column[t]:
                    wrong[t, :, bead] = True
                track[t, bead] = np.where(wrong[t, :, bead].any(), np.nan, track[t, bead])
    return wrong


def _without(tracks: BeadTracks, wrong: Bools) -> BeadTracks:
    """Return the tracks without points of (T, B) wrong positions, save those that the user gave."""
    return _dropped(tracks, np.broadcast_to(wrong[:, None, :], tracks.status.shape))


def _dropped(tracks: BeadTracks, drop: Bools) -> BeadTracks:
    """Return the tracks without (T, C, B) points, save those that the user gave."""
    drop = drop & (tracks.status != PointStatus.GIVEN)
    return replace(
        tracks,
        pixels=np.where(drop[..., None], np.nan, tracks.pixels),
        covariance=np.where(drop[..., None, None], np.nan, tracks.covariance),
        status=np.where(drop, np.uint8(PointStatus.LOST), tracks.status),
    )
