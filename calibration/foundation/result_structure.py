"""What each kind of result file holds: the shapes and types that its readers rely on, checked when it is opened.

A shape is written as words: a number stands for itself, a letter for a length that is the same wherever it stands in
the file, ``*`` for any. Datasets that are not listed are none of its business; ``?`` marks those that may be missing.
"""

from __future__ import annotations

import h5py
import numpy as np

from calibration.foundation.arrays import measured
from calibration.foundation.errors import InputError, nearest

__all__ = ["check_structure"]

_KINDS = {"f": "fiu", "i": "iu", "b": "biu", "s": "SO"}
#: Kind of file -> dataset -> (type, shape).
_STRUCTURE: dict[str, dict[str, tuple[str, str]]] = {
    "silhouettes": {"names": ("s", "C")},
    "hull": {
        "names": ("s", "C"), "vertices?": ("f", "* 3"), "faces?": ("i", "* 3"), "vertex_start?": ("i", "T+1"),
        "face_start?": ("i", "T+1"), "vertex_count?": ("i", "T"), "face_count?": ("i", "T"),
        "volume": ("f", "T"), "views_used": ("b", "T C"), "agreement": ("f", "T C"),
        "flags": ("i", "T"), "parts?": ("s", "P"), "part_first?": ("i", "P+1"),
    },
    "track": {
        "marker_names?": ("s", "M"), "quad_names?": ("s", "Q"), "cage_joint_names?": ("s", "J"),
        "reasons?": ("s", "*"), "faces?": ("i", "* 3"), "rotations?": ("f", "T Q 3 3"), "centres?": ("f", "T Q 3"),
        "latent?": ("f", "T *"), "overlap?": ("f", "T *"), "agreement?": ("f", "T"), "residual?": ("f", "T"),
        "trust?": ("i", "T"), "reason?": ("i", "T"), "cage_joints?": ("f", "T J 3"), "vertices?": ("f", "T V 3"),
        "markers?": ("f", "T M 3"), "marker_sigma?": ("f", "T M"),
    },
    "skeleton": {
        "joint_names": ("s", "J"), "joint_parents": ("i", "J"), "joint_offsets": ("f", "J 3"),
        "coordinate_names": ("s", "D"), "positions": ("f", "T J 3"), "rotations": ("f", "T J 4"),
        "coordinates": ("f", "T D"), "sigma": ("f", "T J"), "trust": ("i", "T"), "landmark_names": ("s", "L"),
        "landmarks": ("f", "T L 3"), "marker_names?": ("s", "M"), "marker_residuals?": ("f", "T M"),
        "cage_joint_names?": ("s", "K"), "cage_joints?": ("f", "T K 3"), "contacts/names?": ("s", "F"),
        "contacts/planted?": ("b", "T F"),
    },
    "clean": {
        "joint_names": ("s", "J"), "coordinate_names": ("s", "D"), "positions": ("f", "T J 3"),
        "rotations": ("f", "T J 4"), "coordinates": ("f", "T D"), "raw/positions": ("f", "T J 3"),
        "raw/coordinates": ("f", "T D"), "constraints/residual_mm": ("f", "T K"), "contacts/names": ("s", "F"),
        "contacts/planted": ("b", "T F"),
    },
    "beads": {
        "names": ("s", "B"), "cameras?": ("s", "C"), "bead_bones?": ("s", "B"), "positions": ("f", "T B 3"),
        "covariance?": ("f", "T B 3 3"), "pixels?": ("f", "T C B 2"), "filtered?": ("f", "T B 3"),
    },
    "xray track": {
        "names": ("s", "B"), "cameras": ("s", "C"), "pixels": ("f", "T C B 2"), "covariance": ("f", "T C B 2 2"),
        "status": ("i", "T C B"), "sigma": ("f", "C B"), "contrast": ("f", "C B"),
    },
    "simulate": {
        "joints/names?": ("s", "J"), "joints/positions?": ("f", "T J 3"), "joints/rotations?": ("f", "T J 4"),
        "joints/coordinates?": ("f", "* *"), "landmarks/names?": ("s", "L"), "landmarks/positions?": ("f", "T L 3"),
        "skin/vertices?": ("f", "T V 3"), "skin/faces?": ("i", "* 3"), "markers/names?": ("s", "M"),
        "markers/positions?": ("f", "T M 3"), "beads/names?": ("s", "B"), "beads/positions?": ("f", "T B 3"),
        "contacts/names?": ("s", "K"), "contacts/planted?": ("b", "* *"),
    },
}  # fmt: skip
_MASK_CAMERA = {"masks": ("i", "T * *"), "agreement": ("f", "T"), "flags": ("i", "T"), "area?": ("i", "T"),
                "matte?": ("i", "*"), "matte_start?": ("i", "T+1")}  # fmt: skip
_BLOCK = 1 << 24
_MOST_LOOKED_AT = 1 << 28
"""Bytes: the numbers of larger datasets are not looked at one by one."""
_POINTERS = {"vertex_start": "vertices", "face_start": "faces"}


def check_structure(file: h5py.File, stage: str, *, numbers: bool = True) -> None:
    """Refuse a result file whose datasets are missing or of another type or shape than its readers rely on.

    With ``numbers``, for a file that no digest vouches for, also one that holds infinite or absurd ones.
    """
    lengths: dict[str, int] = {}
    for name, (kind, shape) in _STRUCTURE.get(stage, {}).items():
        _check(file, name, kind, shape, lengths)
        if numbers and kind == "f" and name.rstrip("?") in file:
            _check_numbers(file[name.rstrip("?")], name.rstrip("?"))
    if stage == "silhouettes":
        _check_masks(file)
    if stage == "skeleton":
        parents = file["joint_parents"][()]
        if any(not -1 <= parent < index for index, parent in enumerate(parents)):
            raise InputError("'joint_parents' is not a tree")
    if stage == "hull":
        _check_hulls(file)


def _check_hulls(file: h5py.File) -> None:
    """Refuse hulls that lie neither in this file nor in parts, or that point outside of where they lie."""
    if "parts" in file and "part_first" in file:
        _check_starts(file["part_first"], len(file["volume"]), "part_first")
        return
    for name in (*_POINTERS, *_POINTERS.values()):
        if name not in file:
            raise InputError(f"'{name}' is missing")
    for start, rows in _POINTERS.items():
        _check_starts(file[start], len(file[rows]), start)
        _check_counts(file, start, start.replace("start", "count"))


def _check(group: h5py.Group, name: str, kind: str, shape: str, lengths: dict[str, int]) -> None:
    plain = name.rstrip("?")
    if plain not in group:
        if name != plain:
            return
        raise InputError(f"'{plain}' is missing")
    node = group[plain]
    words = shape.split()
    if not isinstance(node, h5py.Dataset) or node.dtype.kind not in _KINDS[kind] or node.ndim != len(words):
        raise InputError(f"'{plain}' is not what it should be")
    for word, length in zip(words, node.shape, strict=True):
        label, _, more = word.partition("+")
        wanted = int(word) if word.isdigit() else lengths.setdefault(label, length - int(more or 0)) + int(more or 0)
        if word != "*" and length != wanted:
            raise InputError(f"'{plain}' has {length} rows where {wanted} were due")


def _check_numbers(node: h5py.Dataset, name: str) -> None:
    if node.dtype.kind != "f" or not node.size or node.nbytes > _MOST_LOOKED_AT:
        return
    rows = max(1, _BLOCK * len(node) // node.nbytes)
    for first in range(0, len(node), rows):
        measured(np.asarray(node[first : first + rows]), f"'{name}'")


def _check_masks(file: h5py.File) -> None:
    names = [name.decode("utf-8") for name in file["names"][()]]
    lengths: dict[str, int] = {}
    for name in names:
        group = file["cameras"].get(name)
        if not isinstance(group, h5py.Group):
            raise InputError(f"camera '{name}' is missing; {nearest(name, list(file['cameras']))}")
        for key, (kind, shape) in _MASK_CAMERA.items():
            _check(group, key, kind, shape, lengths)
        width, height = int(group.attrs["width"]), int(group.attrs["height"])
        if group["masks"].dtype != "u1" or group["masks"].shape[1:] != (height, -(-width // 8)):
            raise InputError(f"the silhouettes of camera '{name}' are not of {width} x {height} px")
        if "matte_start" in group:
            _check_starts(group["matte_start"], len(group["matte"]), "matte_start")


def _check_counts(file: h5py.File, start: str, count: str) -> None:
    if count not in file:
        return  # of a version whose frames follow each other without gaps
    rows = file[count][()].astype(np.int64)
    if (rows < 0).any() or (rows > np.diff(file[start][()].astype(np.int64))).any():
        raise InputError(f"'{count}' does not fit '{start}'")


def _check_starts(starts: h5py.Dataset, rows: int, name: str) -> None:
    """Where each frame's rows begin must rise and stay within the rows there are."""
    values = starts[()]
    if len(values) and (values[0] < 0 or values[-1] > rows or (values[1:] < values[:-1]).any()):
        raise InputError(f"'{name}' points outside of its rows")
