"""``vivarig xray`` from files to files, and what it says, and draws, of bad input."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import cv2
import h5py
import numpy as np
import pytest
import tifffile
from xmalab_example import write_xmalab_project

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig, save_rig
from calibration.geometry.transforms import RigidTransform, rotation_from_vector
from capture.recordings.recording import load_recording
from tracking.beads.store import load_maps
from tracking.beads.xmalab_files import PixelConvention, read_points_3d, write_points_2d
from vivarig.cli import main
from vivarig.results.findings import load_findings
from vivarig.viewer import Viewer

SIZE = 400
CUBE = np.round(np.random.default_rng(5).uniform(0, 54, (32, 3)), 1)


def camera(eye, name):
    eye = np.asarray(eye, dtype=float)
    z = CUBE.mean(0) - eye
    z /= np.linalg.norm(z)
    x = np.cross(z, [0.0, 0.0, 1.0])
    x /= np.linalg.norm(x)
    rotation = np.stack([x, np.cross(z, x), z])
    k = np.array([[2300.0, 0, SIZE / 2 - 4], [0, 2300.0, SIZE / 2 + 6], [0, 0, 1.0]])
    return LensCamera(name, PinholeLens((SIZE, SIZE), k), RigidTransform(rotation, -rotation @ eye), "xray")


CAMERAS = (camera([820, 330, 290], "left"), camera([300, -800, 330], "right"))
FRAMES = 16


def motion():
    """Four beads of one bone that turns: (T, 4, 3) mm."""
    shape = np.random.default_rng(4).uniform(-14, 14, (4, 3))
    turns = rotation_from_vector(np.linspace(0, 0.6, FRAMES)[:, None] * np.array([0.3, 0.8, -0.5]))
    return shape @ turns.transpose(0, 2, 1) + CUBE.mean(0) + np.linspace(0, 5, FRAMES)[:, None, None]


def picture(pixels, seed):
    y, x = np.mgrid[0:SIZE, 0:SIZE].astype(float)
    depth = 0.2 + 0.2 * np.tanh((x - 150 + 0.3 * y) / 8.0)
    for px, py in pixels:
        s = np.s_[max(int(py) - 8, 0) : int(py) + 10, max(int(px) - 8, 0) : int(px) + 10]
        depth[s] += 0.7 * np.exp(-0.5 * ((x[s] - px) ** 2 + (y[s] - py) ** 2) / 1.5**2)
    light = np.random.default_rng(seed).poisson(190 * np.exp(-depth) * 30) / 30
    return np.clip(np.rint(light), 0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def pictures():
    """Pictures of the cube, (camera: image), and films of the bone, (camera: (T, H, W))."""
    cube = {c.name: picture(c.project(CUBE), 7) for c in CAMERAS}
    films = {
        c.name: np.stack([picture(at, [k, t]) for t, at in enumerate(c.project(motion()))])
        for k, c in enumerate(CAMERAS)
    }
    return cube, films


@pytest.fixture
def recording(tmp_path: Path, pictures) -> Path:
    """One view as a TIFF stack, the other as a folder of images; a cube in one position; no grid, no distortion."""
    folder = tmp_path / "bone"
    cube, films = pictures
    (folder / "right").mkdir(parents=True)
    tifffile.imwrite(folder / "left.tif", films["left"], photometric="minisblack")
    for t, image in enumerate(films["right"]):
        cv2.imwrite(str(folder / "right" / f"{t:03d}.png"), image)
    for name, image in cube.items():
        place = folder / "calibration" / "xray" / "cube" / name
        place.mkdir(parents=True)
        cv2.imwrite(str(place / "01.png"), image)
    lines = "\n".join(",".join(f"{v:g}" for v in point) for point in CUBE)
    (folder / "calibration" / "xray" / "cube.csv").write_text("x y z\n" + lines + "\n")
    (folder / "recording.toml").write_text(
        'name = "bone"\nrate_hz = 200.0\n'
        '[cameras.left]\nvideo = "left.tif"\nkind = "xray"\n[cameras.right]\nimages = "right"\nkind = "xray"\n'
    )
    return folder


def failed(recording: Path, step: str, capsys) -> str:
    assert main(["xray", step, str(recording)]) == 2
    said = capsys.readouterr().err.strip()
    assert len(said.splitlines()) == 1
    return said


def drawn(recording: Path, said: str, name: str) -> np.ndarray:
    """Return the picture that the message names."""
    path = recording / "results" / "xray" / name
    assert str(path) in said
    image = cv2.imread(str(path))
    assert image is not None
    return image


def cube_file(recording: Path, camera: str) -> Path:
    return recording / "calibration" / "xray" / "cube" / camera / "01.png"


def red(image: np.ndarray) -> int:
    """Return the number of pixels of pure red, which marks what was found."""
    return int(((image[..., 2] > 200) & (image[..., 1] < 60) & (image[..., 0] < 60)).sum())


def test_wrong_cube_file_is_said_with_what_was_found(recording: Path, capsys) -> None:
    other = np.random.default_rng(77).uniform(0, 54, (32, 3))
    lines = "\n".join(",".join(f"{v:.1f}" for v in point) for point in other)
    (recording / "calibration" / "xray" / "cube.csv").write_text("x y z\n" + lines + "\n")
    said = failed(recording, "calibrate", capsys)
    assert "wrong cube file" in said and "cube position 1" in said
    assert red(drawn(recording, said, "cube_left_01.png")) > 100


def test_mirrored_image_is_said_with_what_was_found(recording: Path, capsys) -> None:
    path = cube_file(recording, "left")
    cv2.imwrite(str(path), cv2.imread(str(path))[:, ::-1])
    said = failed(recording, "calibrate", capsys)
    assert "camera 'left'" in said and "mirrored" in said
    assert red(drawn(recording, said, "cube_left_01.png")) > 100


def test_too_few_cube_beads_are_said_with_what_was_found(recording: Path, capsys) -> None:
    cv2.imwrite(str(cube_file(recording, "right")), picture(CAMERAS[1].project(CUBE[:5]), 3))
    said = failed(recording, "calibrate", capsys)
    assert "camera 'right', cube position 1: 5 cube beads visible, wanted at least 6" in said
    assert 40 < red(drawn(recording, said, "cube_right_01.png")) < 600


def test_missing_grid_is_said_with_what_was_found(recording: Path, capsys) -> None:
    grid = recording / "calibration" / "xray" / "grid"
    grid.mkdir()
    for name in ("left", "right"):
        cv2.imwrite(str(grid / f"{name}.png"), picture(CAMERAS[0].project(CUBE), 9))
    said = failed(recording, "undistort", capsys)
    assert "camera 'left': no grid found" in said
    drawn(recording, said, "grid_left.png")
    (grid / "left.png").unlink()
    assert "no image of the undistortion grid" in failed(recording, "undistort", capsys)


def test_a_grid_becomes_a_map(recording: Path, capsys) -> None:
    """A square lattice of beads, bent like a pincushion by 4 px in the corners."""
    at = np.stack(np.meshgrid(np.arange(-160, 161, 16.0), np.arange(-160, 161, 16.0)), axis=-1).reshape(-1, 2)
    bent = at * (1 + 3.5e-7 * (at**2).sum(axis=1, keepdims=True)) + SIZE / 2
    (recording / "calibration" / "xray" / "grid").mkdir()
    for name in ("left", "right"):
        cv2.imwrite(str(recording / "calibration" / "xray" / "grid" / f"{name}.png"), picture(bent, 5))
    assert main(["xray", "undistort", str(recording)]) in (0, 1)
    assert "maps:" in capsys.readouterr().out
    flat = load_maps(recording / "results" / "xray" / "distortion.h5")["left"].undistort(bent)
    steps, bent_steps = (np.linalg.norm(np.diff(rows.reshape(21, 21, 2), axis=1), axis=2) for rows in (flat, bent))
    assert steps.std() < 0.1 < bent_steps.std()


def test_views_of_different_length_are_said_with_their_ends(recording: Path, capsys) -> None:
    (recording / "right" / "015.png").unlink()
    save_rig(Rig(CAMERAS), recording / "rig.toml")
    text = (recording / "recording.toml").read_text()
    (recording / "recording.toml").write_text(text.replace("rate_hz", 'rig = "rig.toml"\nrate_hz'))
    said = failed(recording, "track", capsys)
    assert "views of different length: left 16, right 15 frames" in said
    assert drawn(recording, said, "lengths.png").shape[:2] == (768, 768)


def test_from_cube_and_labels_to_named_bones(recording: Path, capsys) -> None:
    """Labels counted from 1 with y up, one correction; then names and bones by CSV."""
    assert main(["xray", "calibrate", str(recording)]) == 0
    truth = Rig(CAMERAS).project(motion()).transpose(1, 0, 2, 3)
    labels = np.full_like(truth, np.nan)
    labels[3] = truth[3]
    counted = PixelConvention(first=1, y_up=True, height=SIZE)
    write_points_2d(recording / "labels.csv", ["p", "q", "r", "s"], labels, counted)
    fixed = np.full_like(truth, np.nan)
    fixed[8, 1, 2] = truth[8, 1, 2] + [0.4, -0.3]
    write_points_2d(recording / "fixed.csv", ["p", "q", "r", "s"], fixed, counted)
    track = ["xray", "track", str(recording), "--start", str(recording / "labels.csv")]
    assert main([*track, "--corrections", str(recording / "fixed.csv"), "--one-based", "--y-up"]) == 0
    with h5py.File(recording / "results" / "xray" / "tracks.h5") as file:
        error = np.linalg.norm(file["pixels"][:] - truth, axis=-1)
        np.testing.assert_allclose(file["pixels"][8, 1, 2], fixed[8, 1, 2], atol=1e-6)
    assert np.nanmedian(error) < 0.1 and np.nanmax(error) < 0.8  # two beads merge in one frame, 1.2 px apart
    assert (recording / "results" / "xray" / "beads_left.png").is_file()
    (recording / "names.csv").write_text("bead,name\np,head\n")
    (recording / "bones.csv").write_text("head,left_hip\nq,left_hip\nr,left_hip\ns,left_hip\n")
    bones = ["--bones", str(recording / "bones.csv")]
    names = ["--names", str(recording / "names.csv")]
    capsys.readouterr()
    assert main(["xray", "triangulate", str(recording), *names, *bones]) == 0
    said = capsys.readouterr().out
    assert "left_hip: head, q, r, s; pose in 16 frames" in said and "no segment" not in said
    read, points = read_points_3d(recording / "results" / "xray" / "points_3d.csv")
    assert read == ("head", "q", "r", "s")
    # The world of the calibration is the cube's frame, as is the truth's.
    assert np.nanmedian(np.linalg.norm(points - motion(), axis=-1)) < 0.1
    with h5py.File(recording / "results" / "beads.h5") as file:
        assert [b.decode() for b in file["bead_bones"][:]] == ["left_hip"] * 4
    assert main(["xray", "triangulate", str(recording), "--cutoff", "30"]) == 0
    assert "cut-off 30 Hz as given" in capsys.readouterr().out
    assert main(["xray", "triangulate", str(recording), "--filter", "spline"]) == 0
    assert "smoothing spline" in capsys.readouterr().out
    assert main(["xray", "triangulate", str(recording), "--filter", "spline", *bones]) == 2
    assert "line 1: wanted BEAD,BONE with a bead of p, q, r, s" in capsys.readouterr().err
    (recording / "names.csv").write_text("p,q\n")
    assert main(["xray", "triangulate", str(recording), *names]) == 2
    assert "two beads would be called 'q'" in capsys.readouterr().err


def test_one_xray_view_and_one_light_camera(recording: Path, capsys) -> None:
    save_rig(Rig((CAMERAS[0], replace(CAMERAS[1], kind="light"))), recording / "rig.toml")
    text = (recording / "recording.toml").read_text().replace('images = "right"\nkind = "xray"', 'images = "right"')
    (recording / "recording.toml").write_text(text.replace("rate_hz", 'rig = "rig.toml"\nrate_hz'))
    truth = Rig(CAMERAS).project(motion()).transpose(1, 0, 2, 3)
    write_points_2d(recording / "labels.csv", ["p", "q", "r", "s"], truth[:1])
    start = ["--start", str(recording / "labels.csv"), "--cameras", "left,right"]
    assert main(["xray", "track", str(recording), *start]) == 0
    assert main(["xray", "triangulate", str(recording)]) == 0
    _, points = read_points_3d(recording / "results" / "xray" / "points_3d.csv")
    assert np.nanmedian(np.linalg.norm(points - motion(), axis=-1)) < 0.05


@pytest.fixture
def project(tmp_path: Path, recording: Path) -> Path:
    """The same bone as an XMALab project on disk: films, and project.xma with cube, markers and one rigid body."""
    folder = tmp_path / "xmalab"
    (folder / "films").mkdir(parents=True)
    shutil.move(recording / "left.tif", folder / "films" / "trial_left.tif")
    shutil.move(recording / "right", folder / "films" / "right")
    films = {"left": "D:\\lab\\films\\trial_left.tif", "right": "\n".join(
        f"D:\\lab\\films\\right\\{t:03d}.png" for t in range(FRAMES))}  # fmt: skip
    at = np.stack([c.project(motion()) for c in CAMERAS], axis=1)  # (T, C, 4, 2)
    at[0, :, 2] = np.nan  # not marked in the first frame: the second is where all start
    markers = {f"bead {'abcd'[b]}": at[:, :, b] for b in range(4)}
    pictures = {name: [cube_file(recording, name)] for name in ("left", "right")}
    write_xmalab_project(folder / "p.xma", films, CUBE, pictures, markers=markers, bones={"jaw": [1, 2, 3, 4]})
    return folder


def test_an_xmalab_project_becomes_a_report_with_two_commands(project: Path, capsys) -> None:
    """No file by hand; cube in centimetres, markers and bone by their names, beads where they are."""
    assert main(["init", str(project), "--units", "cm"]) == 0
    assert "cube of 32 beads" in (out := capsys.readouterr().out) and "in cm" in out and "bones: jaw" in out
    assert main(["run", str(project)]) == 0
    names, found = read_points_3d(project / "results" / "xray" / "points_3d.csv")
    assert names == ("bead_a", "bead_b", "bead_c", "bead_d")
    apart, truth = (np.linalg.norm(points[:, :1] - points[:, 1:], axis=2) for points in (found, motion()))
    assert np.abs(apart - truth).max() < 0.2
    page = (project / "results" / "report.html").read_text()
    assert "X-ray bead report" in page and "Can I trust this?" in page and "bead_c - bead_d" in page
    viewer = Viewer(load_findings(load_recording(project)), "127.0.0.1", 8977)
    try:
        viewer._toggles["images"].value = True
        viewer.show(2)
        assert all(viewer._handles[f"camera/{name}"].image is not None for name in ("left", "right"))
        assert "beads" in viewer._handles
    finally:
        viewer.stop()
    capsys.readouterr()
    assert main(["run", str(project)]) == 0
    assert capsys.readouterr().out.count("kept from before") == 4
    assert main(["run", str(project), "--set", "hull.voxel=2"]) == 2
    assert "X-ray cameras alone" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("spoil", "words", "message"),
    [
        (lambda f: (f / "films" / "trial_left.tif").unlink(), [], "trial_left.tif, the film of camera 'left', is not"),
        (
            lambda f: (f / "p.xma").write_bytes((f / "p.xma").read_bytes()[:900]),
            [],
            "not an XMALab project",
        ),
        (lambda f: shutil.copy(f / "p.xma", f / "q.xma"), [], "several XMALab projects (p.xma, q.xma)"),
        (lambda f: None, ["--trial", "b"], "no trial 'b'; there are trial"),
    ],
)
def test_a_project_that_cannot_be_laid_out_is_one_line(project: Path, capsys, spoil, words, message) -> None:
    spoil(project)
    assert main(["init", str(project), *words]) == 2
    said = capsys.readouterr().err.strip()
    assert message in said and len(said.splitlines()) == 1
    assert not (project / "recording.toml").exists() and not (project / "calibration").exists()
