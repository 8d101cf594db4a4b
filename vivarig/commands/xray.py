"""``vivarig xray undistort|calibrate|track|triangulate``: beads in biplanar X-ray."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from calibration.arrays import Floats
from calibration.cameras import LensCamera
from calibration.errors import InputError, SolveError
from calibration.files import read_text
from calibration.rig import Rig, save_rig
from calibration.rig_formats import write_rig
from calibration.transforms import RigidTransform, mean_rigid
from calibration.xray_cube import CubeCalibration, CubeImage, calibrate_with_cube, draw_cube, load_cube
from calibration.xray_grid import draw_grid, find_grid
from calibration.xray_spots import Spots
from calibration.xray_undistortion import AnyMap, DistortionMap, MovingMap, fit_undistortion, map_at
from capture.recording import load_recording
from capture.video import read_image
from skeleton.motion_files.c3d import write_c3d
from skeleton.motion_files.motions import MarkerSeries
from skeleton.motion_files.trc import write_trc
from tracking.beads.bones import pair_distances
from tracking.beads.filtering import Smoothed, smooth_trajectories
from tracking.beads.session import BeadSession, follow_beads, reconstruct
from tracking.beads.store import load_maps, load_tracks, save_beads, save_maps, save_tracks
from tracking.beads.tracks import PointStatus
from tracking.beads.xmalab_files import (
    PixelConvention,
    read_points_2d,
    write_points_2d,
    write_points_3d,
    write_rigid_body,
)
from vivarig.progress import progress, progress_callback
from vivarig.reporting import CommandReport
from vivarig.xray_recording import XrayFolder, open_clip, write_picture

__all__ = ["EXAMPLE", "HELP", "add_arguments", "run"]

HELP = "Biplanar X-ray: undistort images, calibrate on a bead cube, track beads, triangulate them."
EXAMPLE = """  vivarig xray undistort rat_xray
  vivarig xray calibrate rat_xray
  vivarig xray track rat_xray                       # or: --start labels.csv --corrections fixed.csv
  vivarig xray triangulate rat_xray --bones bones.csv"""

#: Held-out error of an undistortion above which the command says so, px.
GOOD_GRID_PX = 0.1
#: Reprojection error of a cube calibration above which the command says so, px.
GOOD_CUBE_PX = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("step", choices=("undistort", "calibrate", "track", "triangulate"))
    parser.add_argument("recording", type=Path, help="recording folder with cameras of kind xray")
    parser.add_argument(
        "--session", type=Path, metavar="FOLDER", help="grid/, cube/ and cube.csv (default: calibration/xray)"
    )
    parser.add_argument("--model", help="undistort: distortion model (default: chosen by cross-validation)")
    parser.add_argument("--unit", default="mm", choices=("mm", "cm", "m"), help="calibrate: unit of cube.csv")
    parser.add_argument(
        "--guess", action="store_true", help="calibrate: the recording's rig is roughly right: start from it"
    )
    parser.add_argument(
        "--references",
        type=Path,
        metavar="CSV",
        help="calibrate: camera,position,bead,x,y of some beads, where the cube looks alike from two sides",
    )
    parser.add_argument(
        "--start", type=Path, metavar="CSV", help="track: XMALab 2D points; its first labelled frame starts the beads"
    )
    parser.add_argument("--corrections", type=Path, metavar="CSV", help="track: XMALab 2D points that are kept exactly")
    parser.add_argument("--one-based", action="store_true", help="track: those files count pixels from 1")
    parser.add_argument("--y-up", action="store_true", help="track: in those files y grows upwards")
    parser.add_argument("--cameras", help="track: views to use, comma-separated (default: the X-ray ones)")
    parser.add_argument("--bead-sigma", type=float, metavar="PX", help="track: Gaussian radius of a bead in the image")
    parser.add_argument("--bright", action="store_true", help="beads are brighter than their surroundings")
    parser.add_argument(
        "--bones",
        type=Path,
        metavar="CSV",
        help="triangulate: lines 'bead,bone' (default: found from rigid groups); bones named like segments of the body"
        " hold them in `vivarig skeleton`",
    )
    parser.add_argument(
        "--names", type=Path, metavar="CSV", help="triangulate: lines 'bead,new name', to rename beads found by itself"
    )
    parser.add_argument("--filter", default="butterworth", choices=("butterworth", "spline"))
    parser.add_argument(
        "--cutoff", type=float, metavar="HZ", help="triangulate: of the filter (default: by residual analysis)"
    )
    parser.add_argument("--max-gap", type=int, default=8, metavar="FRAMES", help="triangulate: longest gap bridged")


def run(args: argparse.Namespace) -> CommandReport:
    """Run one step."""
    folder = XrayFolder.of(load_recording(args.recording), args.session)
    steps = {"undistort": _undistort, "calibrate": _calibrate, "track": _track, "triangulate": _triangulate}
    return steps[str(args.step)](args, folder)


def _undistort(args: argparse.Namespace, folder: XrayFolder) -> CommandReport:
    maps: dict[str, AnyMap] = {}
    lines: list[str] = []
    numbers: dict[str, object] = {}
    worst = 0.0
    for name in progress(folder.cameras, "undistort", total=len(folder.cameras)):
        files = folder.grid_images(name)
        stills: dict[int, DistortionMap] = {}
        for k, path in enumerate(files):
            image = read_image(path)
            picture = folder.results / f"grid_{name}{'' if len(files) == 1 else f'_{k + 1:02d}'}.png"
            try:
                sighting = find_grid(image, who=f"camera '{name}'")
            except SolveError as error:
                spots = error.report if isinstance(error.report, np.ndarray) else np.empty((0, 2))
                write_picture(picture, draw_cube(image, spots[:400]))
                raise SolveError(f"{error}; what was found: {picture}", error.report) from None
            one, report = fit_undistortion(sighting, model=args.model)
            kept = np.isfinite(report.heldout).all(axis=1)
            error_px = report.heldout_rms_px[report.model]
            write_picture(picture, draw_grid(image, sighting, report.heldout))
            if len(files) > 1 and not path.stem.isdigit():
                raise InputError(
                    f"{path}: several grid images are of a moving C-arm; name each after its frame in the film, such as"
                    " 000250.png"
                )
            stills[int(path.stem) if len(files) > 1 else 0] = one
            worst = max(worst, error_px)
            lines.append(
                f"{name}: {len(sighting)} nodes of a {sighting.kind} grid ({sighting.polarity}), {report.model}:"
                f" held-out error {error_px:.3f} px RMS, distortion up to {report.largest_shift_px:.1f} px,"
                f" {report.rejected} nodes rejected"
            )
            numbers[picture.stem] = {
                "nodes": len(sighting),
                "used": int(kept.sum()),
                "model": report.model,
                "heldout_rms_px": report.heldout_rms_px,
                "largest_shift_px": report.largest_shift_px,
                "round_trip_px": report.round_trip_px,
            }
        frames = tuple(sorted(stills))
        maps[name] = MovingMap(frames, tuple(stills[f] for f in frames)) if len(stills) > 1 else stills[frames[0]]
    save_maps(folder.maps, maps, {"model": args.model})
    lines.append(f"maps: {folder.maps}; pictures with residuals (100 times) beside them")
    good = worst <= GOOD_GRID_PX
    numbers["worst_heldout_px"] = worst
    return CommandReport(lines, numbers, good, "" if good else f"held-out error {worst:.3f} px above {GOOD_GRID_PX} px")


def _calibrate(args: argparse.Namespace, folder: XrayFolder) -> CommandReport:
    recording = folder.recording
    cube = load_cube(folder.session / "cube.csv", unit=args.unit)
    # The cube is photographed where the first grid was; a C-arm moves during the film.
    maps = {name: map_at(one, 0) for name, one in load_maps(folder.maps).items()}
    light: dict[str, LensCamera] = {}
    guess: dict[str, LensCamera] = {}
    images: list[CubeImage] = []
    hints = _references(args.references)
    for footage in recording.footage:
        own = recording.rig[footage.name] if recording.rig is not None else None
        if footage.kind == "light":
            # A light camera takes part where it saw the cube; its lens must be known.
            if not (folder.session / "cube" / footage.name).is_dir() or not isinstance(own, LensCamera):
                continue
            light[footage.name] = own
        elif args.guess and isinstance(own, LensCamera):
            guess[footage.name] = own
        for k, path in enumerate(folder.cube_images(footage.name)):
            position = int(path.stem) - 1 if path.stem.isdigit() else k
            images.append(
                CubeImage(
                    footage.name,
                    position,
                    read_image(path),
                    hints.get((footage.name, position)),
                    "bright" if args.bright else "dark",
                )
            )
    left_out: list[str] = []
    while True:
        try:
            result = calibrate_with_cube(images, cube, maps=maps, light=light, guess=guess)
            break
        except SolveError as error:
            where = _failure_pictures(folder, images, error)
            # Bead balls are hard to see by light: such a view is left out, and said; an X-ray view may not fail.
            lost = next((name for name in light if f"camera '{name}'" in str(error)), None)
            if lost is None:
                raise SolveError(f"{error}; what was found: {where}", error.report) from None
            left_out.append(f"{lost}: left out: {error}; what was found: {where}")
            images = [item for item in images if item.camera != lost]
            del light[lost]
    rig = _with_others(result, recording.rig)
    save_rig(rig, folder.rig_file, {"made_by": "vivarig xray calibrate"})
    xray = Rig(tuple(camera for camera in rig if camera.kind == "xray"))
    for label in ("mayacam2", "mayacam1"):
        write_rig(xray, folder.results / label, label, lossy=True)
    bundle = result.bundle
    lines, numbers = list(left_out), dict[str, object]()
    for c, camera in enumerate(result.cameras):
        rows = (result.observations.camera == c) & bundle.used
        rms = float(np.sqrt(np.mean(bundle.residual[rows] ** 2)))
        spread = np.sqrt(np.diagonal(bundle.centre_covariance[c]))
        focal = camera.lens.intrinsics[0, 0]
        lines.append(
            f"{camera.name} ({camera.kind}): {int(rows.sum())} bead images, reprojection {rms:.3f} px RMS,"
            f" focal length {focal:.1f} +- {bundle.lens_sigma[c, 0]:.1f} px,"
            f" centre +- {spread[0]:.2f}, {spread[1]:.2f}, {spread[2]:.2f} mm"
        )
        numbers[camera.name] = {
            "beads": int(rows.sum()),
            "rms_px": rms,
            "centre_mm": camera.centre,
            "centre_sigma_mm": spread,
        }
    for item in images:
        c = [camera.name for camera in result.cameras].index(item.camera)
        positions = sorted({one.position for one in images})
        pose = bundle.cube_poses[positions.index(item.position)]
        at = result.cameras[c].project(pose.apply(cube.points))
        at = maps[item.camera].distort(at) if item.camera in maps else at
        spots = result.spots[item.camera, item.position].pixels
        write_picture(
            folder.results / f"cube_{item.camera}_{item.position + 1:02d}.png",
            draw_cube(item.image, spots, at, cube.names),
        )
    lines.append(f"rig: {folder.rig_file}; MayaCam 1 and 2 and pictures beside it")
    numbers["rms_px"] = bundle.rms_px
    good = bundle.rms_px <= GOOD_CUBE_PX
    return CommandReport(
        lines, numbers, good, "" if good else f"reprojection {bundle.rms_px:.2f} px above {GOOD_CUBE_PX} px"
    )


def _references(path: Path | None) -> dict[tuple[str, int], dict[str, Floats]]:
    """Read camera,position,bead,x,y lines (position from 1)."""
    hints: dict[tuple[str, int], dict[str, Floats]] = {}
    if path is None:
        return hints
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        cells = [cell.strip() for cell in line.split(",")]
        if not line.strip() or cells[0] == "camera":
            continue
        try:
            camera, position, bead, x, y = cells
            hints.setdefault((camera, int(position) - 1), {})[bead] = np.array([float(x), float(y)])
        except ValueError:
            raise InputError(f"{path}: line {number}: wanted camera,position,bead,x,y") from None
    return hints


def _failure_pictures(folder: XrayFolder, images: list[CubeImage], error: SolveError) -> Path:
    """Draw the spots that a failed identification was given over its image."""
    for item in images:
        if f"'{item.camera}', cube position {item.position + 1}:" in str(error):
            spots = error.report.pixels if isinstance(error.report, Spots) else error.report
            found = spots if isinstance(spots, np.ndarray) and spots.ndim == 2 else np.empty((0, 2))
            path = folder.results / f"cube_{item.camera}_{item.position + 1:02d}.png"
            return write_picture(path, draw_cube(item.image, found))
    return folder.results


def _with_others(result: CubeCalibration, old: Rig | None) -> Rig:
    """Return the new cameras in the frame of the old rig's light cameras, if there are any, with its order."""
    new = {camera.name: camera for camera in result.cameras}
    if old is None:
        return Rig(result.cameras)
    shared = [c for c in old if c.name in new and c.kind == "light" and isinstance(c, LensCamera)]
    if shared:
        # Old world from the cube's first frame, by each light camera that has both poses.
        moves = [c.camera_from_world.inverse() @ new[c.name].camera_from_world for c in shared]
        together = RigidTransform(np.stack([m.rotation for m in moves]), np.stack([m.translation for m in moves]))
        back = mean_rigid(together).inverse()
        new = {
            name: LensCamera(name, camera.lens, camera.camera_from_world @ back, camera.kind)
            for name, camera in new.items()
        }
    if not shared and any(camera.kind == "light" for camera in old):
        # No light camera saw the cube: nothing ties the two frames together, so the rig holds X-ray views alone.
        return Rig(tuple(new.values()))
    return Rig(tuple(new.get(camera.name, camera) for camera in old))


def _track(args: argparse.Namespace, folder: XrayFolder) -> CommandReport:
    recording = folder.recording
    names = tuple(args.cameras.split(",")) if args.cameras else folder.cameras
    rig = folder.rig().subset(names)
    maps = load_maps(folder.maps)
    clip = open_clip(recording, names)
    height = clip.stacks[0].size[1]
    convention = PixelConvention(first=1 if args.one_based else 0, y_up=args.y_up, height=height)
    starts: Floats | None = None
    start_frame, beads = 0, None
    if args.start is not None:
        beads, _, labelled = _labels(args.start, convention, len(names), len(clip))
        seen = np.isfinite(labelled[..., 0]).any(axis=(1, 2))
        if not seen.any():
            raise InputError(f"{args.start}: no labelled frame")
        start_frame = int(np.flatnonzero(seen)[0])
        starts = labelled[start_frame]
    given: dict[int, Floats] = {}
    if args.corrections is not None:
        labels, _, fixed = _labels(args.corrections, convention, len(names), len(clip))
        if beads is None:
            raise InputError("--corrections needs --start, whose bead names they use")
        for t in np.flatnonzero(np.isfinite(fixed[..., 0]).any(axis=(1, 2))):
            row = np.full((len(names), len(beads), 2), np.nan)
            for b, label in enumerate(labels):
                if label not in beads:
                    raise InputError(f"{args.corrections}: unknown bead '{label}'; the start has {', '.join(beads)}")
                row[:, beads.index(label)] = fixed[t, :, b]
            given[int(t)] = row
    with progress_callback("beads") as on_progress:
        tracks = follow_beads(
            clip,
            rig,
            maps,
            starts=starts,
            start_frame=start_frame,
            names=beads,
            given=given,
            polarity=["bright" if args.bright else "dark"] * len(names),
            sigma_px=args.bead_sigma,
            on_progress=on_progress,
        )
    save_tracks(folder.results / "tracks.h5", tracks, {"start": str(args.start) if args.start else "automatic"})
    write_points_2d(folder.results / "points_2d.csv", tracks.names, tracks.pixels)
    shown = int(np.argmax(tracks.found.sum(axis=(1, 2))))
    for c, (name, image) in enumerate(zip(names, clip.block(shown, shown + 1)[0], strict=True)):
        at = tracks.pixels[shown, c]
        write_picture(
            folder.results / f"beads_{name}.png", draw_cube(image, at[tracks.found[shown, c]], at, tracks.names)
        )
    share = tracks.found.mean(axis=0)
    lines = [f"{len(tracks.names)} beads in {len(tracks)} frames of {', '.join(names)}"]
    for b, bead in enumerate(tracks.names):
        lines.append(f"  {bead}: " + ", ".join(f"{n} {100 * share[c, b]:.0f} %" for c, n in enumerate(names)))
    lines.append(f"tracks: {folder.results / 'tracks.h5'}, points_2d.csv (XMALab: 0-based, y down, distorted)")
    lines.append(f"  which bead is which: beads_CAMERA.png beside them (frame {shown})")
    found = float(tracks.found.mean())
    numbers = {
        "beads": list(tracks.names),
        "frames": len(tracks),
        "found_share": found,
        "overlapping": int((tracks.status == PointStatus.OVERLAPPING).sum()),
    }
    good = found >= 0.5
    return CommandReport(lines, numbers, good, "" if good else f"beads found in only {100 * found:.0f} % of the images")


def _labels(
    path: Path, convention: PixelConvention, views: int, frames: int
) -> tuple[tuple[str, ...], tuple[str, ...], Floats]:
    """Read XMALab 2D points and check that they are of these views and frames."""
    names, cameras, pixels = read_points_2d(path, convention)
    if len(cameras) != views:
        raise InputError(f"{path}: points of {len(cameras)} cameras for {views} views")
    if len(pixels) > frames:
        raise InputError(f"{path}: {len(pixels)} rows for {frames} frames")
    return names, cameras, pixels


def _triangulate(args: argparse.Namespace, folder: XrayFolder) -> CommandReport:
    recording = folder.recording
    tracks = load_tracks(folder.results / "tracks.h5")
    if args.names is not None:
        tracks = replace(tracks, names=_renamed(args.names, tracks.names))
    bones = _bones(args.bones, tracks.names)
    session = reconstruct(tracks, folder.rig(), load_maps(folder.maps), bones=bones, max_gap=args.max_gap)
    motion = session.motion
    smoothed = smooth_trajectories(motion.positions, recording.rate_hz, method=args.filter, cutoff_hz=args.cutoff)
    save_beads(
        recording.results / "beads.h5",
        session,
        smoothed,
        recording.rate_hz,
        {"filter": args.filter, "cutoff": args.cutoff},
        bones=bones,
    )
    write_points_3d(folder.results / "points_3d.csv", motion.names, motion.positions)
    for old in folder.results.glob("*_transformation.csv"):
        old.unlink()  # of bones that this run may not find again
    for bone in session.bones:
        write_rigid_body(folder.results / f"{bone.name}_transformation.csv", bone.name, bone.pose)
    series = MarkerSeries(motion.names, smoothed.positions, recording.rate_hz)
    write_trc(series, folder.results / "beads.trc")
    write_c3d(series, folder.results / "beads.c3d")
    return _motion_report(session, _filter_line(smoothed, args.cutoff), recording.results / "beads.h5")


def _pairs(path: Path, names: tuple[str, ...], second: str) -> list[tuple[str, str]]:
    """Read 'bead,SECOND' lines, each of a bead of ``names``, with or without a header."""
    pairs: list[tuple[str, str]] = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        cells = [cell.strip() for cell in line.split(",")]
        if not line.strip() or cells[0] == "bead":
            continue
        if len(cells) != 2 or cells[0] not in names or not cells[1]:
            raise InputError(f"{path}: line {number}: wanted BEAD,{second} with a bead of {', '.join(names)}")
        if cells[0] in (bead for bead, _ in pairs):
            raise InputError(f"{path}: line {number}: bead '{cells[0]}' comes a second time")
        pairs.append((cells[0], cells[1]))
    return pairs


def _bones(path: Path | None, names: tuple[str, ...]) -> dict[str, list[str]] | None:
    """Read 'bead,bone' lines."""
    if path is None:
        return None
    bones: dict[str, list[str]] = {}
    for bead, bone in _pairs(path, names, "BONE"):
        bones.setdefault(bone, []).append(bead)
    return bones


def _renamed(path: Path, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names with those changed that 'bead,new name' lines change."""
    changes = dict(_pairs(path, names, "NAME"))
    new = tuple(changes.get(name, name) for name in names)
    double = next((name for name in new if new.count(name) > 1), None)
    if double is not None:
        raise InputError(f"{path}: two beads would be called '{double}'")
    return new


def _filter_line(smoothed: Smoothed, given_hz: float | None) -> str:
    """Say how the trajectories beside the triangulated ones were filtered."""
    if smoothed.method == "spline":
        return "  filtered: cubic smoothing spline, stiffness of each coordinate by generalised cross-validation"
    used = smoothed.cutoff_hz[np.isfinite(smoothed.cutoff_hz)]
    if not len(used):
        return "  not filtered: no bead is seen for long enough without a gap"
    kind = "  filtered: fourth-order zero-phase Butterworth, cut-off"
    if given_hz is not None:
        return f"{kind} {given_hz:g} Hz as given"
    return f"{kind} {used.min():.1f} to {used.max():.1f} Hz by residual analysis"


def _motion_report(session: BeadSession, filter_line: str, path: Path) -> CommandReport:
    motion = session.motion
    seen = np.isfinite(motion.positions[..., 0])
    direct = seen & ~motion.bridged
    pairs = [p for group in session.groups for p in pair_distances(motion.positions, motion.names, group)]
    sigma = float(np.nanmedian(np.where(direct, motion.sigma_mm, np.nan))) if direct.any() else float("nan")
    lines = [
        f"{len(motion.names)} beads in {len(seen)} frames: {100 * direct.mean():.1f} % triangulated,"
        f" {100 * motion.bridged.mean():.1f} % bridged, {100 * (~seen).mean():.1f} % gaps",
        f"  typical error {1000 * sigma:.0f} um per coordinate, reprojection"
        f" {float(np.nanmedian(motion.residual_px)) if direct.any() else float('nan'):.2f} px (median)",
    ]
    for group, bone in ((b.beads, b) for b in session.bones):
        scale = float(np.nanmedian(bone.scale))
        beads = ", ".join(motion.names[b] for b in group)
        lines.append(f"  {bone.name}: {beads}; pose in {int(bone.used.any(axis=1).sum())} frames, scale {scale:.4f}")
    for pair in pairs:
        lines.append(f"  {pair.first} - {pair.second}: {pair.mean_mm:.3f} mm, SD {1000 * pair.sd_mm:.0f} um")
    lines.append(filter_line)
    lines.append(f"beads: {path}")
    numbers = {
        "triangulated_share": float(direct.mean()),
        "bridged_share": float(motion.bridged.mean()),
        "sigma_mm": sigma,
        "interbead_sd_mm": {f"{p.first} {p.second}": p.sd_mm for p in pairs},
    }
    return CommandReport(lines, numbers)
