"""Damaged and hostile files: refused in one line, nothing outside of them is read, nothing huge is believed."""

import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from calibration.foundation.errors import InputError
from calibration.foundation.files import read_text
from calibration.foundation.hdf5_files import open_hdf5
from calibration.foundation.npz_files import read_npz
from calibration.foundation.result_files import create_results, open_results


def external_link(file: h5py.File, secret: Path) -> None:
    file["leak"] = h5py.ExternalLink(str(secret), "/secret")


def nested_external_link(file: h5py.File, secret: Path) -> None:
    file.create_group("a/b")["leak"] = h5py.ExternalLink(str(secret), "/secret")


def external_storage(file: h5py.File, secret: Path) -> None:
    file.create_dataset("leak", (4,), "u1", external=[(str(secret), 0, 4)])


def virtual(file: h5py.File, secret: Path) -> None:
    layout = h5py.VirtualLayout((3,), "i8")
    layout[:] = h5py.VirtualSource(str(secret), "secret", (3,))
    file.create_virtual_dataset("leak", layout)


def bomb(file: h5py.File, secret: Path) -> None:
    file.create_dataset("huge", (1 << 40,), "f8", chunks=(1 << 16,), compression="gzip")


@pytest.mark.parametrize("spoil", [external_link, nested_external_link, external_storage, virtual, bomb])
@pytest.mark.parametrize("own", [True, False])
def test_what_leads_out_of_a_file_or_is_not_in_it_is_refused(
    tmp_path: Path, spoil: Callable[[h5py.File, Path], None], own: bool
) -> None:
    secret = tmp_path / "secret.h5"
    with h5py.File(secret, "w") as file:
        file["secret"] = [1, 2, 3]
    path = tmp_path / "stranger.h5"
    with h5py.File(path, "w") as file:
        file.attrs["stage"] = "beads"
        spoil(file, secret)
    with pytest.raises(InputError, match=r"not followed|declares"):
        if own:
            with open_results(path, stage="beads"):
                pass
        else:
            with open_hdf5(path, "a stranger's file"):
                pass


def made(path: Path) -> Path:
    with create_results(path, stage="beads", parameters={"a": 1}) as file:
        file["names"] = np.array([b"one", b"two"])
        file["positions"] = np.zeros((50, 2, 3))
    return path


def test_every_changed_byte_of_a_result_is_seen(tmp_path: Path) -> None:
    path = made(tmp_path / "beads.h5")
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(whole) - 32, 60):
        content = bytearray(whole)
        content[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(content)
        with pytest.raises(InputError, match="damaged since it was written; delete it and run `vivarig beads` again"):
            with open_results(path, stage="beads"):
                pass


def test_same_content_same_bytes_and_other_programs_read_it(tmp_path: Path) -> None:
    one, two = made(tmp_path / "a.h5"), made(tmp_path / "b.h5")
    assert one.read_bytes() == two.read_bytes()
    with h5py.File(one) as file:
        assert file["positions"].shape == (50, 2, 3)
    with h5py.File(one, "r+") as file:  # taken up by another program: the digest is gone, the structure decides
        file.attrs["note"] = "mine"
    with open_results(one, stage="beads") as file:
        assert len(file["names"]) == 2


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("positions", np.zeros((50, 3, 3)), "3 rows where 2 were due"),
        ("positions", np.zeros((50, 2)), "not what it should be"),
        ("positions", np.array([b"x"]), "not what it should be"),
        ("names", None, "'names' is missing"),
    ],
)
def test_a_result_of_another_structure_is_refused(tmp_path: Path, name: str, value: object, said: str) -> None:
    path = made(tmp_path / "beads.h5")
    with h5py.File(path, "r+") as file:
        del file[name]
        if value is not None:
            file[name] = value
    with pytest.raises(InputError, match=f"{said}.*run `vivarig beads` again"):
        with open_results(path, stage="beads"):
            pass


@pytest.mark.parametrize("cut", [0, 7, 100, 900])
def test_a_cut_result_is_refused(tmp_path: Path, cut: int) -> None:
    path = made(tmp_path / "beads.h5")
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(InputError, match="damaged"):
        with open_results(path, stage="beads"):
            pass


def test_a_missing_dataset_met_later_is_the_files_fault_and_our_errors_stay_ours(tmp_path: Path) -> None:
    path = made(tmp_path / "beads.h5")
    with pytest.raises(InputError, match="damaged"), open_results(path, stage="beads") as file:
        file["nowhere"]
    with pytest.raises(KeyError), open_results(path, stage="beads"):
        {}["ours"]


def test_pipes_devices_and_folders_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place, said in ((tmp_path / "pipe", "this is a pipe"), (Path("/dev/zero"), "device"), (tmp_path, "folder")):
        with pytest.raises(InputError, match=said):
            read_text(place)
        with pytest.raises(InputError, match=said), open_hdf5(place, "a file"):
            pass


def test_archives_with_objects_bombs_or_absurd_numbers_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, a=np.arange(6.0).reshape(2, 3), b=np.asfortranarray(np.arange(6).reshape(2, 3)), c=np.str_("x"))
    found = read_npz(path, "an archive")
    assert found["a"].tolist() == [[0, 1, 2], [3, 4, 5]] == found["b"].tolist() and found["c"].item() == "x"
    np.savez(path, a=np.array([{}], dtype=object))
    with pytest.raises(InputError, match="Python objects"):
        read_npz(path, "an archive")
    np.savez(path, a=np.array([1e300]))
    with pytest.raises(InputError, match="absurd"):
        read_npz(path, "an archive")
    with zipfile.ZipFile(path, "w") as archive:
        head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776,)}\n"
        archive.writestr("a.npy", b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head)
    with pytest.raises(InputError, match="an array says"):
        read_npz(path, "an archive")
