"""Beads: tracked through crossings and losses, triangulated, grouped into bones, filtered; files both ways."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import RigidTransform, rotation_from_vector
from calibration.xray.undistortion import MARGIN_PX, DistortionMap, MovingMap, net_shape
from tracking.beads.association import NOBODY, associate
from tracking.beads.bones import carry_surface, fit_bone, group_beads, pair_distances
from tracking.beads.clip import ArrayClip, track_beads, track_clip
from tracking.beads.epipolar import epipolar_distance, fit_fundamental
from tracking.beads.filtering import butterworth, choose_cutoff, smooth_trajectories
from tracking.beads.reconstruction import bridge_gaps, geometry_of, triangulate_beads
from tracking.beads.session import find_spikes, follow_beads, reconstruct
from tracking.beads.store import load_maps, save_maps
from tracking.beads.tracks import BeadTracks, PointStatus
from tracking.beads.xmalab_files import (
    PixelConvention,
    read_deeplabcut,
    read_points_2d,
    read_points_3d,
    read_rigid_body,
    write_deeplabcut,
    write_points_2d,
    write_points_3d,
    write_rigid_body,
)

SIZE = 320


def camera(eye, name):
    eye = np.asarray(eye, dtype=float)
    z = -eye / np.linalg.norm(eye)
    x = np.cross(z, [0.0, 0.0, 1.0])
    x /= np.linalg.norm(x)
    rotation = np.stack([x, np.cross(z, x), z])
    k = np.array([[3200.0, 0, SIZE / 2], [0, 3200.0, SIZE / 2], [0, 0, 1.0]])
    return LensCamera(name, PinholeLens((SIZE, SIZE), k), RigidTransform(rotation, -rotation @ eye), "xray")


RIG = Rig((camera([800, 250, 150], "a"), camera([200, -800, 250], "b")))


def motion(frames=40):
    """Two bones of four beads that swing against each other: (T, 8, 3) mm."""
    rng = np.random.default_rng(4)
    shapes = rng.uniform(-12, 12, (2, 4, 3))
    points = np.empty((frames, 8, 3))
    for t in range(frames):
        s = 2 * np.pi * t / 40
        first = rotation_from_vector(np.array([0.3 * np.sin(s), 0.2, 0.3 * np.cos(s)]))
        second = rotation_from_vector(np.array([0.2, 0.4 * np.sin(2 * s), 0.1]))
        points[t, :4] = shapes[0] @ first.T + [6 * np.sin(s), 4, 8]
        points[t, 4:] = shapes[1] @ second.T + [-4, 5 * np.cos(s), -8]
    return points


def film(points, hidden=None, seed=0, pixels=None):
    """Pictures (C) of (T, H, W): beads over a bone edge, photon noise; at (T, C, B, 2) pixels if those are given."""
    y, x = np.mgrid[0:SIZE, 0:SIZE].astype(float)
    views = []
    for c in range(2):
        bone = 0.5 / (1 + np.exp(-(x - 150 + 0.3 * y) / 2.0))
        frames = []
        for t, spots in enumerate(RIG[c].project(points) if pixels is None else pixels[:, c]):
            depth = bone.copy()
            for b, (px, py) in enumerate(spots):
                if hidden is not None and hidden[t, c, b]:
                    continue
                s = np.s_[max(int(py) - 8, 0) : int(py) + 10, max(int(px) - 8, 0) : int(px) + 10]
                depth[s] += 0.7 * np.exp(-0.5 * ((x[s] - px) ** 2 + (y[s] - py) ** 2) / 1.4**2)
            light = np.random.default_rng([seed, c, t]).poisson(200 * np.exp(-depth) * 12) / 12
            frames.append(np.clip(np.rint(light), 0, 255).astype(np.uint8))
        views.append(np.stack(frames))
    return tuple(views)


@pytest.fixture(scope="module")
def scene():
    points = motion()
    hidden = np.zeros((40, 2, 8), dtype=bool)
    rng = np.random.default_rng(9)
    for b in range(8):
        start = int(rng.integers(6, 30))
        hidden[start : start + 4, int(rng.integers(2)), b] = True
    return points, hidden, ArrayClip(film(points, hidden))


def truth_pixels(points):
    return RIG.project(points).transpose(1, 0, 2, 3)


def test_labelled_start_tracks_all_beads_and_never_a_wrong_one(scene):
    points, hidden, clip = scene
    truth = truth_pixels(points)
    names = tuple(f"b{k}" for k in range(8))
    tracks = follow_beads(clip, RIG, {}, starts=truth[0] + 0.5, names=names)
    error = np.linalg.norm(tracks.pixels - truth, axis=-1)
    assert np.nanmedian(error) < 0.15 and np.nanmax(error) < 2.0  # a swap would be 10 px and more
    assert hidden.any() and np.isnan(error[~tracks.found]).all()  # what is painted over is a gap, or within 2 px
    assert tracks.found[~hidden].mean() > 0.93  # two beads cross at 1.6 px in one view


def test_automatic_start_finds_and_matches_the_beads(scene):
    points, _, clip = scene
    truth = truth_pixels(points)
    tracks = follow_beads(clip, RIG, {})
    session = reconstruct(tracks, RIG, {})
    error = np.linalg.norm(session.motion.positions[:, :, None] - points[:, None], axis=-1)
    which = np.nanmedian(error, axis=0).argmin(axis=1)
    assert len(which) >= 7 and len(set(which.tolist())) == len(which)
    own = error[:, np.arange(len(which)), which]
    assert np.nanmedian(own) < 0.05 and np.nanmax(own) < 0.5
    assert np.isfinite(truth).all()


def test_reconstruction_bridges_by_bones_and_measures_distances(scene):
    points, hidden, _ = scene
    rng = np.random.default_rng(0)
    pixels = truth_pixels(points) + rng.normal(size=(40, 2, 8, 2)) * 0.08
    pixels[hidden] = np.nan
    tracks = BeadTracks(
        tuple(f"b{k}" for k in range(8)),
        RIG.names,
        pixels,
        np.where(np.isfinite(pixels)[..., None], np.eye(2) * 0.08**2, np.nan),
        np.where(hidden, 0, 1).astype(np.uint8),
        np.ones((2, 8)),
        np.ones((2, 8)),
    )
    session = reconstruct(tracks, RIG, {})
    assert session.groups == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert session.motion.bridged.sum() == hidden.any(axis=1).sum()
    error = np.linalg.norm(session.motion.positions - points, axis=-1)
    assert error.max() < 0.25
    for group in session.groups:
        for pair in pair_distances(session.motion.positions, session.motion.names, group):
            assert pair.sd_mm < 0.06
    direct = ~session.motion.bridged
    # Sum of squares over the stated variance of three coordinates each; the floor makes it conservative.
    ratio = np.mean(error[direct] ** 2) / np.mean(3 * session.motion.sigma_mm[direct] ** 2)
    assert 0.3 < ratio < 1.3


def test_corrections_are_kept_exactly(scene):
    points, _, clip = scene
    truth = truth_pixels(points)
    fixed = np.full((2, 8, 2), np.nan)
    fixed[0, 3] = truth[10, 0, 3] + [1.25, -0.75]
    tracks = track_clip(
        clip,
        truth[0],
        names=[f"b{k}" for k in range(8)],
        cameras=RIG.names,
        geometry=geometry_of(RIG, {}),
        given={10: fixed},
    )
    assert np.array_equal(tracks.pixels[10, 0, 3], fixed[0, 3])
    assert tracks.status[10, 0, 3] == PointStatus.GIVEN


def test_tracking_backwards_equals_starting_in_the_middle(scene):
    points, _hidden, clip = scene
    truth = truth_pixels(points)
    tracks = track_clip(
        clip,
        truth[20],
        start_frame=20,
        names=[f"b{k}" for k in range(8)],
        cameras=RIG.names,
        geometry=geometry_of(RIG, {}),
    )
    error = np.linalg.norm(tracks.pixels - truth, axis=-1)
    assert len(tracks) == 40 and np.nanmedian(error) < 0.15


def test_crossing_beads_keep_their_names():
    """Two beads cross in one view, and pass at a distance in the other, which tells them apart."""
    t = np.linspace(-1, 1, 30)
    points = np.zeros((30, 2, 3))
    across = RIG[0].camera_from_world.rotation[0]
    along = RIG[0].camera_from_world.rotation[2]
    points[:, 0] = 6 * t[:, None] * across + 4 * along
    points[:, 1] = -6 * t[:, None] * across - 4 * along
    wide = points.repeat(1, axis=0)
    clip = ArrayClip(film(wide, seed=3))
    truth = truth_pixels(points)
    tracks = track_clip(clip, truth[0], names=["p", "q"], cameras=RIG.names, geometry=geometry_of(RIG, {}))
    error = np.linalg.norm(tracks.pixels - truth, axis=-1)
    assert np.nanmax(error) < 2.0
    assert tracks.found[-1].all()


def test_bad_starts_are_refused(scene):
    _, _, clip = scene
    with pytest.raises(InputError, match="2 cameras, 1 beads"):
        track_beads(clip.chunk(0, 2), np.zeros((1, 1, 2)), names=["b"], cameras=["a", "b"])
    with pytest.raises(InputError, match="no bead has a starting point"):
        track_beads(clip.chunk(0, 2), np.full((2, 1, 2), np.nan), names=["b"], cameras=["a", "b"])


def test_association_is_the_exact_minimum():
    """Two beads want one candidate: the total decides, not the first come."""
    costs = [[np.array([1.0, 2.0])], [np.array([1.5])]]
    chosen = associate(costs, [[[0, 1]], [[0]]], lambda *_: 0.0, missing_cost=9.0)
    assert chosen == [(1,), (0,)]
    alone = associate([[np.array([20.0])]], [[[0]]], lambda *_: 0.0, missing_cost=9.0)
    assert alone == [(NOBODY,)]


def test_fundamental_matrix_from_matches():
    rng = np.random.default_rng(0)
    points = rng.uniform(-30, 30, (60, 3))
    pixels = RIG.project(points)
    matrix, spread = fit_fundamental(pixels[0], pixels[1])
    assert spread < 1e-5
    assert epipolar_distance(matrix, pixels[0], pixels[1]).max() < 1e-5
    assert geometry_of(RIG, {}).distance(0, pixels[0], 1, pixels[1]).max() < 1e-6


def test_bone_pose_survives_a_wrong_and_a_missing_bead():
    rng = np.random.default_rng(2)
    shape = rng.uniform(-10, 10, (5, 3))
    poses = [RigidTransform(rotation_from_vector(rng.normal(size=3)), rng.normal(size=3) * 20) for _ in range(12)]
    seen = np.stack([pose.apply(shape) for pose in poses])
    seen[4, 2] += 3.0
    seen[7, 1] = np.nan
    bone = fit_bone(seen, range(5), tolerance_mm=0.3)
    assert not bone.used[4, 2] and not bone.used[7, 1]
    assert np.abs(bone.predicted()[7, 1] - poses[7].apply(shape[1])).max() < 1e-6
    assert np.nanmax(bone.residual_mm[bone.used]) < 1e-6
    assert np.allclose(bone.scale[[0, 1, 2]], 1.0)
    surface = poses[0].apply(np.array([[1.0, 2.0, 3.0]]))
    assert np.allclose(carry_surface(bone, surface, 5), poses[5].apply(np.array([[1.0, 2.0, 3.0]])))
    with pytest.raises(InputError, match="three or more"):
        fit_bone(seen, [0, 1])


def test_groups_by_constant_distance():
    assert group_beads(motion(), tolerance_mm=0.05) == [(0, 1, 2, 3), (4, 5, 6, 7)]


def given_tracks(pixels, sigma_px=0.08):
    """Tracks of (T, C, B, 2) pixels with NaN where lost."""
    seen = np.isfinite(pixels[..., 0])
    beads = pixels.shape[2]
    return BeadTracks(
        tuple(f"b{k}" for k in range(beads)),
        RIG.names,
        pixels,
        np.where(seen[..., None, None], np.eye(2) * sigma_px**2, np.nan),
        seen.astype(np.uint8),
        np.full((2, beads), 1.4),
        np.full((2, beads), 0.7),
    )


def test_spikes_of_one_view_are_taken_out_there_and_real_jerks_kept():
    points = motion()
    points[25, 5] += [0.2, -0.3, 0.25]  # a jerk: both views show it
    pixels = truth_pixels(points)
    ray = RIG[0].camera_from_world.rotation[2]
    pixels[15, 1, 2] = RIG[1].project(points[15, 2] + 2.5 * ray)  # along the epipolar line, which is why it could pass
    pixels[30, :, 6] = pixels[30, :, 3]  # another bead for one frame
    tracks = given_tracks(pixels)
    wrong = find_spikes(tracks, triangulate_beads(tracks, RIG, gate_px=99.0).positions, list(RIG))
    assert wrong[15, 1, 2] and wrong[30, :, 6].all() and wrong.sum() == 3


def test_a_bridge_is_held_to_the_view_that_still_sees_the_bead():
    """A jerk inside a gap of one view: the bridge in time knows nothing of it, the other view shows it."""
    points = motion()[:, :1]
    seen_across = RIG[1].camera_from_world.rotation[0]
    pixels = truth_pixels(points)
    pixels[20, 0] = np.nan
    smooth = reconstruct(given_tracks(pixels), RIG, {})
    assert smooth.motion.bridged[20, 0]
    assert np.linalg.norm(smooth.motion.positions[20, 0] - points[20, 0]) < 0.02
    points[20] += 3.0 * seen_across
    pixels = truth_pixels(points)
    pixels[20, 0] = np.nan
    jerked = reconstruct(given_tracks(pixels), RIG, {})
    assert np.isnan(jerked.motion.positions[20, 0]).all() and not jerked.motion.bridged[20, 0]


def test_a_bead_half_in_the_unexposed_rim_is_a_gap():
    across = np.cross(RIG[0].camera_from_world.rotation[2], RIG[1].camera_from_world.rotation[2])
    points = (np.arange(24)[:, None] * 0.8 * across - 8.0 * across)[:, None]
    views = film(points, seed=5)
    truth = truth_pixels(points)
    for c, view in enumerate(views):
        y, x = np.mgrid[0:SIZE, 0:SIZE]
        edge = truth[12, c, 0]
        way = truth[-1, c, 0] - truth[0, c, 0]
        view[:, (x - edge[0]) * way[0] + (y - edge[1]) * way[1] > 0] = 2
    tracks = track_clip(ArrayClip(views), truth[0], names=["p"], cameras=RIG.names, geometry=geometry_of(RIG, {}))
    error = np.linalg.norm(tracks.pixels - truth, axis=-1)
    assert tracks.found[:9].all() and not tracks.found[12:].any()
    assert np.nanmax(error) < 0.5  # without the mask the rim's edge draws it 2 px aside


def test_a_sudden_start_is_followed():
    """A limb at rest that starts within a frame, five pixels off its prediction."""
    points = np.zeros((20, 1, 3))
    points[10:, 0] = np.arange(1, 11)[:, None] * np.array([1.1, 0.9, 0.3])
    clip = ArrayClip(film(points, seed=6))
    truth = truth_pixels(points)
    assert np.linalg.norm(np.diff(truth, 2, axis=0), axis=-1).max() > 4.0
    tracks = track_clip(clip, truth[0], names=["p"], cameras=RIG.names, geometry=geometry_of(RIG, {}))
    assert tracks.found.all() and np.linalg.norm(tracks.pixels - truth, axis=-1).max() < 0.6


def test_butterworth_passes_slow_and_stops_fast():
    t = np.arange(400) / 200
    slow, fast = np.sin(2 * np.pi * 3 * t)[:, None], np.sin(2 * np.pi * 80 * t)[:, None]
    middle = np.s_[60:-60]
    assert np.abs(butterworth(slow, 200, 20) - slow)[middle].max() < 0.01
    assert np.abs(butterworth(fast, 200, 20))[middle].max() < 0.01
    at_cut = butterworth(np.sin(2 * np.pi * 20 * t)[:, None], 200, 20)[middle]
    assert np.abs(at_cut).max() == pytest.approx(1 / np.sqrt(2), abs=0.03)  # -3 dB after both passes


def test_residual_analysis_takes_a_third_of_white_noise_and_keeps_the_signal():
    rng = np.random.default_rng(1)
    t = np.arange(600) / 200
    clean = np.stack([np.sin(2 * np.pi * 2 * t), np.cos(2 * np.pi * 3 * t), t], axis=1)
    noisy = clean + rng.normal(size=clean.shape) * 0.03
    assert 5 < choose_cutoff(noisy, 200) < 40
    smoothed = smooth_trajectories(noisy[:, None], 200.0)
    assert np.std(smoothed.positions[:, 0] - clean) < 0.7 * 0.03
    gap = noisy[:, None].copy()
    gap[100:110] = np.nan
    assert np.isnan(smooth_trajectories(gap, 200.0, method="spline").positions[100:110]).all()


def test_short_gap_of_a_single_bead_is_bridged_with_its_error():
    points = motion()[:, :1]
    pixels = truth_pixels(points)
    pixels[20:23, 0] = np.nan
    tracks = BeadTracks(
        ("b",), RIG.names, pixels, np.where(np.isfinite(pixels)[..., None], np.eye(2) * 1e-4, np.nan),
        np.isfinite(pixels[..., 0]).astype(np.uint8), np.ones((2, 1)), np.ones((2, 1)),
    )  # fmt: skip
    moved = bridge_gaps(triangulate_beads(tracks, RIG), ())
    assert moved.bridged[20:23].all() and moved.bridged.sum() == 3
    assert np.linalg.norm(moved.positions[20:23] - points[20:23], axis=-1).max() < 0.05


def test_files_round_trip(tmp_path):
    rng = np.random.default_rng(0)
    names = ("skull_a", "jaw b")
    pixels = rng.uniform(0, 300, (5, 2, 2, 2))
    pixels[2, 1, 0] = np.nan
    for convention in (PixelConvention(), PixelConvention(first=1, y_up=True, height=SIZE)):
        write_points_2d(tmp_path / "2d.csv", names, pixels, convention)
        read, cameras, again = read_points_2d(tmp_path / "2d.csv", convention)
        assert read == names and cameras == ("cam1", "cam2")
        assert np.allclose(again, pixels, equal_nan=True)
    write_points_3d(tmp_path / "3d.csv", names, rng.normal(size=(4, 2, 3)))
    assert read_points_3d(tmp_path / "3d.csv")[0] == names
    pose = RigidTransform(rotation_from_vector(rng.normal(size=(3, 3))), rng.normal(size=(3, 3)))
    write_rigid_body(tmp_path / "rb.csv", "jaw", pose)
    name, back = read_rigid_body(tmp_path / "rb.csv")
    assert (
        name == "jaw" and np.allclose(back.rotation, pose.rotation) and np.allclose(back.translation, pose.translation)
    )
    write_deeplabcut(tmp_path / "dlc.csv", names, pixels[:, 0])
    read, points, likelihood = read_deeplabcut(tmp_path / "dlc.csv")
    assert read == names and np.allclose(points, pixels[:, 0], equal_nan=True) and likelihood.min() == 1
    (tmp_path / "bad.csv").write_text("a_cam1_X,a_cam1_Y\n1,2\n3\n")
    with pytest.raises(InputError, match="line 3"):
        read_points_2d(tmp_path / "bad.csv")


def shifted_map(shift):
    """A distortion that shifts the picture and bends it a little."""
    rows, columns = net_shape((SIZE, SIZE), 8.0)
    y, x = np.mgrid[0:rows, 0:columns] * 8.0 - MARGIN_PX
    bend = np.stack([shift + 1.5 * np.sin(y / 90.0), 0.5 * shift + 1.5 * np.sin(x / 90.0)], axis=-1)
    one = DistortionMap((SIZE, SIZE), 8.0, np.zeros_like(bend), bend, np.ones((rows, columns), dtype=bool))
    nodes, back = np.stack([x, y], axis=-1), np.zeros_like(bend)
    for _ in range(20):
        back = nodes - one.distort(nodes + back) + back
    return DistortionMap((SIZE, SIZE), 8.0, back, bend, one.known)


def test_a_moving_c_arm_is_followed_through_the_film(tmp_path):
    """The distortion of one view drifts by 8 px over the film: grids at its ends tell."""
    points = motion(24)
    maps = {"a": MovingMap((0, 23), (shifted_map(0.0), shifted_map(8.0)))}
    save_maps(tmp_path / "maps.h5", maps, {})
    read = load_maps(tmp_path / "maps.h5")
    assert isinstance(read["a"], MovingMap) and read["a"].frames == (0, 23)
    truth = truth_pixels(points)
    truth[:, 0] = np.stack([maps["a"].at(t).distort(frame) for t, frame in enumerate(truth[:, 0])])
    tracks = follow_beads(
        ArrayClip(film(points, pixels=truth)),
        RIG,
        read,
        starts=truth[12],
        start_frame=12,
        names=[f"b{k}" for k in range(8)],
    )
    error = np.linalg.norm(reconstruct(tracks, RIG, read).motion.positions - points, axis=-1)
    assert np.nanmedian(error) < 0.05 and np.isfinite(error).mean() > 0.9
    still = {"a": read["a"].at(12)}
    assert np.nanmedian(np.linalg.norm(triangulate_beads(tracks, RIG, still).positions - points, axis=-1)) > 0.2


def test_one_xray_and_light_views_triangulate_together():
    """Beads seen by one X-ray view with an intensifier's distortion, and by two light cameras with bending lenses."""
    lens = PinholeLens((SIZE, SIZE), RIG[0].lens.intrinsics, np.array([-0.2, 0.1, 0.001, -0.001]))
    light = [camera(eye, name) for eye, name in (([500, 600, 300], "c"), ([-300, 700, 400], "d"))]
    light = [LensCamera(c.name, lens, c.camera_from_world, "light") for c in light]
    rig = Rig((RIG[0], *light))
    points = motion()
    maps = {"a": shifted_map(3.0)}
    rng = np.random.default_rng(0)
    pixels = rig.project(points).transpose(1, 0, 2, 3)
    pixels[:, 0] = maps["a"].distort(pixels[:, 0])
    pixels += rng.normal(size=pixels.shape) * 0.08
    pixels[5:9, 2, 1] = np.nan  # one X-ray and one light view left
    pixels[20, 1:, 3] = np.nan  # the X-ray view alone
    seen = np.isfinite(pixels[..., 0])
    tracks = BeadTracks(
        tuple(f"b{k}" for k in range(8)), rig.names, pixels,
        np.where(seen[..., None, None], np.eye(2) * 0.08**2, np.nan),
        seen.astype(np.uint8), np.full((3, 8), 1.4), np.full((3, 8), 0.7),
    )  # fmt: skip
    motion_3d = triangulate_beads(tracks, rig, maps)
    error = np.linalg.norm(motion_3d.positions - points, axis=-1)
    assert np.isnan(error[20, 3]) and np.isfinite(np.delete(error, 20, axis=0)).all()
    assert np.nanmedian(error) < 0.05 and np.nanmax(error) < 0.2
    assert motion_3d.views[5:9, :2, 1].all() and not motion_3d.views[5:9, 2, 1].any()
