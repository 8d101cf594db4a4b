"""Videos and image folders as streams: what is written is read, from any frame on, the same bytes each time."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import av
import cv2
import numpy as np
import pytest

from calibration.foundation.errors import InputError
from capture.recordings import decoding
from capture.recordings.video import pass_frames, probe, read_frames, write_video


def clip(count: int, colour: bool) -> list[np.ndarray]:
    """Return frames whose grey level tells their number."""
    frames = [np.full((48, 64), 2 * index % 250, np.uint8) for index in range(count)]
    return [np.repeat(frame[..., None], 3, axis=2) for frame in frames] if colour else frames


@pytest.mark.parametrize(("codec", "suffix"), [("h264", ".mp4"), ("ffv1", ".mkv")])
@pytest.mark.parametrize("colour", [False, True])
def test_round_trip_and_seeking(codec: str, suffix: str, colour: bool, tmp_path: Path) -> None:
    path, frames = tmp_path / f"a{suffix}", clip(120, colour)
    assert write_video(path, frames, 120.0, codec=codec, quality=4) == 120
    first = path.read_bytes()
    write_video(path, frames, 120.0, codec=codec, quality=4)
    assert path.read_bytes() == first
    info = probe(path)
    assert info.frames == 120 and info.size == (64, 48) and info.rate_hz == pytest.approx(120)
    # colour H.264 goes through limited-range YUV and back: up to 5 levels near black; FFV1 is exact
    tolerance = 0.0 if codec == "ffv1" else 5.0 if colour else 0.6
    for start, stop, step in ((0, None, 1), (2, 9, 3), (50, 60, 1), (119, None, 1), (60, None, 7)):
        found = list(read_frames(path, start, stop, step))
        assert [index for index, _ in found] == list(range(start, 120 if stop is None else stop, step))
        for index, image in found:
            assert abs(float(image.mean()) - frames[index].mean()) <= tolerance
    assert next(read_frames(path, gray=True))[1].ndim == 2


def test_image_folder_in_natural_order(tmp_path: Path) -> None:
    for index in (1, 2, 10, 11):
        cv2.imwrite(str(tmp_path / f"frame-{index}.png"), np.full((8, 9), index, np.uint8))
    assert [int(image[0, 0]) for _, image in read_frames(tmp_path)] == [1, 2, 10, 11]
    assert probe(tmp_path).frames == 4


def test_bad_videos(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such video"):
        probe(tmp_path / "none.mp4")
    (tmp_path / "text.mp4").write_text("not a video")
    with pytest.raises(InputError, match="cannot be opened as a video"):
        list(read_frames(tmp_path / "text.mp4"))
    with pytest.raises(InputError, match="no image"):
        probe(tmp_path)
    with pytest.raises(InputError, match="no frame to write"):
        write_video(tmp_path / "empty.mp4", [], 30.0)
    assert not (tmp_path / "empty.mp4").exists()


def test_an_index_that_is_wrong_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stamps that the file's index promises and its frames do not have: the packets are read instead."""
    path, frames = tmp_path / "a.mp4", clip(120, False)
    write_video(path, frames, 120.0, quality=4)
    real, asked = decoding._time_stamps.__wrapped__, []

    def stamps(path: Path, size: int, changed: int, trusting: bool) -> tuple[np.ndarray | None, bool]:
        asked.append(trusting)
        found, even = real(path, size, changed, trusting)
        return (found + 1, True) if trusting else (found, even)

    monkeypatch.setattr(decoding, "_time_stamps", stamps)
    found = list(read_frames(path, 60, 70))
    assert [index for index, _ in found] == list(range(60, 70)) and asked == [True, False]
    assert all(abs(float(image.mean()) - frames[index].mean()) <= 0.6 for index, image in found)


def test_a_video_is_counted_once_and_again_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    for count in (60, 90):
        write_video(path, clip(count, False), 120.0)
        assert probe(path).frames == count == probe(path).frames
        assert [index for index, _ in read_frames(path, 50)] == list(range(50, count))


def test_frames_that_nothing_rests_on_are_decoded_only_if_wanted(tmp_path: Path) -> None:
    path, frames = tmp_path / "a.mp4", clip(120, False)
    write_video(path, frames, 120.0, quality=4)
    with decoding.open_video(path) as container:
        wanted = range(60, 120, 10)
        decoded = [index for index, _ in decoding._sought(path, container, container.streams.video[0], wanted)]
    assert set(wanted) <= set(decoded) and len(decoded) < 90  # of 120
    assert decoded == sorted(decoded)


def filmed(path: Path, apart: int, *, leading: bool) -> None:
    """Write 120 frames of noise with a key frame every so often; ``leading``: some before it, put out, rest on it."""
    rng = np.random.default_rng(5)
    ground = rng.integers(0, 255, (48, 64), dtype=np.uint8)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=30)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "gray"
        opened = int(leading)
        stream.options = {"x264-params": f"keyint={apart}:min-keyint={apart}:scenecut=0:bframes=3:open-gop={opened}"}
        for k in range(120):
            image = np.roll(ground, 2 * k, axis=1) // 2 + np.uint8(k)
            for packet in stream.encode(av.VideoFrame.from_ndarray(image, format="gray")):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)


@pytest.mark.parametrize("leading", [False, True])
@pytest.mark.parametrize("suffix", [".mp4", ".mkv"])
def test_what_lies_before_the_next_key_frame_is_not_decoded(suffix: str, leading: bool, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    filmed(path, 12, leading=leading)
    every = dict(read_frames(path))
    assert len(every) == 120
    cases: tuple[Collection[int], ...] = ([3, 40, 70, 119], [50, 51, 52, 118], range(0, 120, 31), range(60, 130, 30))
    for wanted in (*cases, [11, 12, 13, 35, 36], [100]):
        with decoding.open_video(path) as container:
            stream = container.streams.video[0]
            stream.thread_type = "NONE"
            decoded = [index for index, _ in decoding._sought(path, container, stream, wanted)]
        assert {index for index in wanted if index < 120} <= set(decoded)
        assert decoded == sorted(decoded) and len(decoded) <= 12 * len(wanted)
        found = list(read_frames(path, only=[index for index in wanted if index < 120]))
        assert [index for index, _ in found] == [index for index in wanted if index < 120]
        for index, image in found:
            np.testing.assert_array_equal(image, every[index])


def test_images_are_made_when_they_are_called_for(tmp_path: Path) -> None:
    path = tmp_path / "film.mp4"
    write_video(path, (np.full((16, 16, 3), 20 * k, np.uint8) for k in range(6)), 30.0)
    whole = dict(read_frames(path))
    passed = list(pass_frames(path))
    assert [index for index, _ in passed] == list(whole)
    for index in (4, 1):  # in any order, others not at all
        np.testing.assert_array_equal(passed[index][1](), whole[index])
    folder = tmp_path / "folder"
    folder.mkdir()
    for k in range(3):
        cv2.imwrite(str(folder / f"{k}.png"), whole[k])
    (folder / "1.png").write_bytes(b"no image")
    (_, first), (_, broken), (_, last) = pass_frames(folder)
    np.testing.assert_array_equal(first(), whole[0])
    np.testing.assert_array_equal(last(), whole[2])
    with pytest.raises(InputError):
        broken()


def test_some_frames_are_those_of_the_whole_video(tmp_path: Path) -> None:
    path, frames = tmp_path / "a.mp4", clip(120, True)
    write_video(path, frames, 120.0, quality=4)
    every = dict(read_frames(path))
    some = [119, 3, 40, 41, 97]
    found = list(read_frames(path, 2, None, only=some, ahead=False))
    assert [index for index, _ in found] == sorted(some)
    assert all((image == every[index]).all() for index, image in found)
    assert [index for index, _ in read_frames(path, 4, 98, only=some)] == [40, 41, 97]
    assert not list(read_frames(path, only=[]))


@pytest.mark.parametrize("suffix", [".mp4", ".avi"])
def test_a_piece_goes_on_where_the_one_before_stopped(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"a{suffix}"
    write_video(path, clip(120, True), 120.0, quality=4)
    every = dict(read_frames(path))
    opened: list[Path] = []
    real = decoding.open_video
    monkeypatch.setattr(decoding, "open_video", lambda one: opened.append(one) or real(one))
    list(read_frames(path, 50, 60, ahead=False))
    at_first = len(opened)
    for first, stop in ((60, 75), (75, 76), (90, 100)):  # the last after a gap
        # the one who asked for a piece may leave with its last frame
        for _, (index, image) in zip(range(first, stop), read_frames(path, first, stop, ahead=False), strict=False):
            np.testing.assert_array_equal(image, every[index])
    assert index == 99 and len(opened) == at_first
    # one that goes back, one that somebody left half-way, and a file that was written anew are opened again
    assert [index for index, _ in read_frames(path, 60, 62, ahead=False)] == [60, 61] and len(opened) > at_first
    next(read_frames(path, 62, 80, ahead=False))
    at_last = len(opened)
    assert [index for index, _ in read_frames(path, 63, 65, ahead=False)] == [63, 64] and len(opened) > at_last
    write_video(path, clip(90, True), 120.0, quality=4)
    assert [index for index, _ in read_frames(path, 65, 99, ahead=False)] == list(range(65, 90))
    decoding.close_aside()
    assert not decoding._aside
