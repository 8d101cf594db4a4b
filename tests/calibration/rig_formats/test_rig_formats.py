"""Every rig format: read, write, read; real files; losses said; thousands of damaged files answered in one line."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from example_rigs import COEFFICIENTS, INTRINSICS, looking_at_origin, one_of_each, ring

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig, load_rig, save_rig
from calibration.foundation.errors import InputError
from calibration.rig_formats import FORMATS, ReadOptions, losses, read_rig, recognise, write_rig
from capture.recordings.recording import load_recording

OPTIONS = ReadOptions(size=(640, 480))
SUFFIX = {
    "anipose": ".toml", "pose2sim": ".toml", "caliscope": ".toml", "opencv": ".yml", "easymocap": "", "jarvis": "",
    "dannce": ".mat", "qualisys": ".qca.txt", "mayacam2": "", "mayacam1": "", "humaneva": "", "dlt": ".csv",
}  # fmt: skip


def fitting(name: str, cameras: int = 12) -> Rig:
    """Return a rig of more than ten cameras with all that a format can hold, and nothing else."""
    holds = FORMATS[name].holds
    out = []
    for k, camera in enumerate(ring(cameras)):
        assert isinstance(camera, LensCamera)
        intrinsics = camera.lens.intrinsics.copy()
        if not holds.skew:
            intrinsics[0, 1] = 0
        if not holds.two_focals:
            intrinsics[1, 1] = intrinsics[0, 0]
        count = max(n for n in (0, 4, 5, 8, 14) if n <= holds.distortion)
        lens = PinholeLens((640, 480), intrinsics, COEFFICIENTS[:count] * (1 + k / 20))
        label = f"cam{k + 1}"
        out.append(replace(camera, name=label, lens=lens, kind="xray" if holds.kind and k == 2 else "light"))
    return Rig(tuple(out))


def same_pixels(a: Rig, b: Rig) -> None:
    assert len(a) == len(b)
    x = np.random.default_rng(5).uniform(-80, 80, (1000, 3))
    assert np.abs(a.project(x) - b.project(x)).max() < 1e-6


@pytest.mark.parametrize("name", FORMATS)
def test_write_read_write_read(name: str, tmp_path: Path) -> None:
    rig = fitting(name)
    target = tmp_path / f"rig{SUFFIX[name]}"
    lost = write_rig(rig, target, name, lossy=True)
    unwritable = [text for text in lost if "image size" not in text and text != "camera names"]
    assert unwritable == []
    found = recognise(target)
    assert found is not None and found.name == name
    again = read_rig(target, options=OPTIONS)
    same_pixels(rig, again)
    if FORMATS[name].holds.names:
        assert again.names == rig.names
    assert [c.size for c in again] == [c.size for c in rig]
    if FORMATS[name].holds.kind:
        assert [c.kind for c in again] == [c.kind for c in rig]
    second = tmp_path / f"again{SUFFIX[name]}"
    write_rig(again, second, name, lossy=True)
    same_pixels(rig, read_rig(second, options=OPTIONS))


def test_rig_toml_holds_every_model(tmp_path: Path) -> None:
    rig = Rig(tuple(one_of_each().values()))
    save_rig(rig, tmp_path / "rig.toml")
    again = load_rig(tmp_path / "rig.toml")
    assert again.names == rig.names
    x = np.random.default_rng(1).uniform(-80, 80, (1000, 3))
    assert np.abs(again.project(x) - rig.project(x)).max() < 1e-9


def test_caliscope_numbers_do_not_collide(tmp_path: Path) -> None:
    rig = fitting("caliscope")
    mixed = Rig(tuple(replace(c, name=n) for c, n in zip(list(rig)[:2], ("cam_1", "left"), strict=True)))
    write_rig(mixed, tmp_path / "camera_array.toml", "caliscope")
    assert read_rig(tmp_path / "camera_array.toml").names == ("cam_1", "left")


def test_losses_are_named_and_refused(tmp_path: Path) -> None:
    rig = Rig(tuple(one_of_each().values()))
    lost = losses(rig, FORMATS["mayacam1"])
    assert any("fisheye" in text for text in lost) and any("skew" in text for text in lost)
    with pytest.raises(InputError, match="--lossy"):
        write_rig(rig, tmp_path / "out", "mayacam1")
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="did you mean 'anipose'"):
        write_rig(rig, tmp_path / "out", "anipos")


def test_formats_without_sizes_ask_for_them(tmp_path: Path) -> None:
    write_rig(fitting("humaneva"), tmp_path / "cal", "humaneva", lossy=True)
    with pytest.raises(InputError, match="--size WIDTHxHEIGHT"):
        read_rig(tmp_path / "cal")


def test_units_are_converted(tmp_path: Path) -> None:
    rig = fitting("mayacam2")
    write_rig(rig, tmp_path / "mm", "mayacam2", lossy=True)
    in_cm = read_rig(tmp_path / "mm", options=ReadOptions(unit_mm=10))
    assert np.allclose(in_cm.centres, 10 * rig.centres)


# Fixtures written by hand from the documented formats, for conventions that a round trip cannot see.


def test_qualisys_by_hand(tmp_path: Path) -> None:
    """A camera at (0, 0, 5 m) looking straight down: Qualisys axes are the world's, as it looks along -z."""
    file = tmp_path / "by_hand.qca.txt"
    file.write_text(
        '<?xml version="1.0"?><calibration><cameras><camera serial="21486" model="Miqus Video">'
        '<fov_video left="0" top="0" right="1919" bottom="1079"/>'
        '<transform x="0" y="0" z="5000" r11="1" r12="0" r13="0" r21="0" r22="1" r23="0" r31="0" r32="0" r33="1"/>'
        '<intrinsic focalLengthU="64000" focalLengthV="64000" centerPointU="61440" centerPointV="34560"'
        ' radialDistortion1="0" radialDistortion2="0" radialDistortion3="0"'
        ' tangentalDistortion1="0" tangentalDistortion2="0"/></camera></cameras></calibration>'
    )
    rig = read_rig(file)
    assert rig[0].size == (1920, 1080)
    # 500 mm to +x is 100 px right of the centre, 500 mm to +y is 100 px up
    assert np.allclose(rig[0].project([[0.0, 0, 0], [500, 0, 0], [0, 500, 0]]), [[960, 540], [1060, 540], [960, 440]])


def test_qualisys_distortion_has_no_unit(tmp_path: Path) -> None:
    """Lengths stand in 1/64 px, coefficients as they are."""
    write_rig(fitting("qualisys"), tmp_path / "a.qca.txt", "qualisys", lossy=True)
    text = (tmp_path / "a.qca.txt").read_text()
    lens = fitting("qualisys")[0].lens  # type: ignore[attr-defined]
    assert f'radialDistortion1="{float(lens.distortion[0])!r}"' in text
    assert f'focalLengthU="{64.0 * float(lens.intrinsics[0, 0])!r}"' in text


def test_mayacam1_by_hand(tmp_path: Path) -> None:
    """A camera at the origin, no turn, f = 2000, centre (500, 400): Maya's looks along -z with y up."""
    (tmp_path / "c_MayaCam.csv").write_text("0,0,0\n0,0,0\n1.1,1.1,-200\n501,624,-2000\n0.1,1024,1024\n")
    camera = read_rig(tmp_path / "c_MayaCam.csv")[0]
    assert camera.name == "c"
    seen = camera.project([[0.0, 0, -100], [10, 0, -100], [0, 10, -100], [0, 0, 100]])
    assert np.allclose(seen[:3], [[500, 400], [700, 400], [500, 200]])
    assert np.isnan(seen[3]).all()


def test_humaneva_by_hand(tmp_path: Path) -> None:
    (tmp_path / "C1.cal").write_text(
        "\n".join(map(str, [800, 810, 320, 240, 0, *[0] * 5, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1000]))
    )
    rig = read_rig(tmp_path, options=OPTIONS)
    assert rig.names == ("C1",)
    assert np.allclose(rig[0].project([[100.0, 100, 0]]), [[400, 321]])


def test_dlt_by_hand(tmp_path: Path) -> None:
    """Column of 11: u = (800 X + 320 Z + 320000) / (Z + 1000), scaled so that the last coefficient is 1."""
    rows = np.array([800, 0, 320, 320_000, 0, 800, 240, 240_000, 0, 0, 1]) / 1000
    file = tmp_path / "dlt.csv"
    file.write_text("".join(f"{n},{n}\n" for n in rows))
    rig = read_rig(file, options=OPTIONS)
    assert rig.names == ("cam1", "cam2")
    assert np.allclose(rig[0].project([[100.0, 50, 0]]), [[400, 280]])
    rows[4:8] = 479 * np.append(rows[8:], 1) - rows[4:8]  # the same camera with y counted from the bottom row
    file.write_text("".join(f"{n},{n}\n" for n in rows))
    up = read_rig(file, options=ReadOptions(size=(640, 480), y_up=True))
    assert np.allclose(up[0].project([[100.0, 50, 0]]), [[400, 280]])
    with pytest.raises(InputError, match="--y-up"):
        read_rig(file, options=OPTIONS)


def test_stereo_pair_of_opencv(tmp_path: Path) -> None:
    matrix = "!!opencv-matrix\n   rows: 3\n   cols: 3\n   dt: d\n   data: [ {} ]\n"
    k = matrix.format("800., 0., 320., 0., 800., 240., 0., 0., 1.")
    t = "!!opencv-matrix\n   rows: 3\n   cols: 1\n   dt: d\n   data: [ -100., 0., 0. ]\n"
    eye = matrix.format("1, 0, 0, 0, 1, 0, 0, 0, 1")
    (tmp_path / "s.yml").write_text(f"%YAML:1.0\n---\nM1: {k}M2: {k}R: {eye}T: {t}")
    rig = read_rig(tmp_path / "s.yml", options=OPTIONS)
    assert np.allclose(rig["right"].centre, [100, 0, 0])


@pytest.mark.realdata
def test_real_files(shared_data: Path, tmp_path: Path) -> None:
    jobs = {
        "mouse_cage/calibration.toml": ("anipose", 4),
        "caliscope/charuco_calibration/camera_array.toml": ("caliscope", 4),
        "caliscope/4_cam_recording/camera_array.toml": ("caliscope", 4),
        "jaw_xray": ("mayacam2", 2),
        "utrecht_room/cam1/config.xml": ("opencv", 1),
        "dannce_mouse/markerless_mouse_1/label3d_dannce.mat": ("dannce", 6),
    }
    for index, (place, (name, count)) in enumerate(jobs.items()):
        found = recognise(shared_data / place)
        assert found is not None and found.name == name, place
        rig = read_rig(shared_data / place, options=OPTIONS)
        assert len(rig) == count
        target = tmp_path / f"{index}{SUFFIX[name]}"
        write_rig(rig, target, name)
        again = read_rig(target, options=OPTIONS)
        x = _in_view(rig)
        assert np.abs(again.project(x) - rig.project(x)).max() < 1e-6
        write_rig(rig, tmp_path / f"{index}_rig.toml", "anipose")
        assert np.abs(load_rig(tmp_path / f"{index}_rig.toml").project(x) - rig.project(x)).max() < 1e-6


def _in_view(rig: Rig) -> np.ndarray:
    """Return at least 1,000 points along rays of the first camera that fall near all cameras' images."""
    rng = np.random.default_rng(0)
    wide, high = rig[0].size
    origins, directions = rig[0].rays(rng.uniform([0.2 * wide, 0.2 * high], [0.8 * wide, 0.8 * high], (200_000, 2)))
    x = origins + directions * rng.uniform(20, 2000, (200_000, 1))
    x = x[(np.abs(rig.project(x)) < 4000).all((0, 2))]
    assert len(x) >= 1000
    return x[:1000]


# Damage: every reader answers with one clean line.

RECORDING = """name = "m"
rate_hz = 120.0
subject = "mouse"
[cameras.cam1]
video = "a.mp4"
offset = 0.5
[cameras.cam2]
images = "frames"
kind = "xray"
"""


def corpus(folder: Path) -> list[Path]:
    """Write one good file of each kind and return them (for folder formats the files inside)."""
    files = []
    for name in FORMATS:
        place = folder / f"{name}{SUFFIX[name]}"
        write_rig(fitting(name, 2), place, name, lossy=True)
        files += [place] if place.is_file() else sorted(place.iterdir())[:1]
    return files


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Return a damaged copy: cut, noise, wrong types, NaN, huge numbers, doubled parts, deep nesting."""
    kind = rng.randrange(9)
    cut = rng.randrange(len(data) + 1)
    if kind == 0:
        return data[:cut]
    if kind == 1:
        return data[:cut] + rng.randbytes(rng.randrange(1, 40)) + data[cut:]
    if kind == 2:
        spoilt = bytearray(data)
        for _ in range(rng.randrange(1, 20)):
            spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
        return bytes(spoilt)
    if kind == 3:
        return rng.randbytes(rng.randrange(0, 400))
    if kind == 4:
        return data[:cut] + data[rng.randrange(len(data)) :]
    if kind == 5:
        return data[:cut] + rng.choice([b"[", b"{", b"(", b"<a>", b"- "]) * 3000 + data[cut:]
    digits = [i for i in range(len(data)) if 48 <= data[i] <= 57] or [0]
    at = rng.choice(digits)
    words = [b"nan", b"inf", b"-1e999", b"1e300", b"'text'", b"true", b"", b"99999999999999999999", b"-", b"[]"]
    end = at + (1 if kind == 6 else rng.randrange(1, 30))
    return data[:at] + rng.choice(words) + data[end:]


def attempt(reader, *arguments) -> bool:
    """Return whether reading worked; anything but one clean line of `InputError` fails the test."""
    try:
        reader(*arguments)
    except InputError as error:
        text = str(error)
        assert text and "\n" not in text, repr(text)
        assert len(text) < 1000
        return False
    return True


def damage(rounds: int, folder: Path, seed: int) -> int:
    """Read ``rounds`` damaged files and return how many were refused."""
    rng = random.Random(seed)
    good = [(file, file.read_bytes()) for file in corpus(folder / "good")]
    place = folder / "recording"
    (place / "frames").mkdir(parents=True)
    (place / "a.mp4").write_bytes(b"")
    good.append((place / "recording.toml", RECORDING.encode()))
    refused = 0
    for turn in range(rounds):
        file, data = good[turn % len(good)]
        file.write_bytes(mutated(data, rng))
        if file.name == "recording.toml":
            refused += not attempt(load_recording, place)
        else:
            name = file.name.split(".")[0] if file.parent.name == "good" else file.parent.name
            refused += not attempt(read_rig, file, name, OPTIONS)
            attempt(read_rig, file, None, OPTIONS)
        file.write_bytes(data)
    return refused


def test_damaged_files_get_one_line(tmp_path: Path) -> None:
    """A small run; VIVARIG_DAMAGE=10000 makes it the full one."""
    rounds = int(os.environ.get("VIVARIG_DAMAGE", "600"))
    assert damage(rounds, tmp_path, seed=1) > rounds / 3


def test_typos_name_the_nearest_key(tmp_path: Path) -> None:
    (tmp_path / "recording.toml").write_text('rate_hz = 1\nsubjct = "mouse"\n[cameras.a]\nvideo = "a.mp4"\n')
    with pytest.raises(InputError, match=r"recording.toml: subjct is not a known key; did you mean 'subject'\?"):
        load_recording(tmp_path)
    (tmp_path / "rig.toml").write_text('[cam_0]\nname = "a"\nsize = [640, 480]\nmatrixx = [1]\n')
    with pytest.raises(InputError, match=r"\[cam_0\] matrix is missing \(there is 'matrixx'\)|rotation is missing"):
        load_rig(tmp_path / "rig.toml")
    pose = looking_at_origin(np.array([500.0, 0, 100]))
    save_rig(Rig((LensCamera("a", PinholeLens((640, 480), INTRINSICS), pose),)), tmp_path / "rig.toml")
    text = (tmp_path / "rig.toml").read_text().replace("    640,\n", '    "640",\n')
    (tmp_path / "rig.toml").write_text(text)
    with pytest.raises(InputError, match=r"rig.toml: \[cam_0\] size must be 2 numbers, got"):
        load_rig(tmp_path / "rig.toml")
