"""HumanEva's folder layout: where its cameras, synchronisation, truth and images lie.

    S1/Image_Data/Walking_1_(C1).avi        or a folder of BMP of that name
    S1/Calibration_Data/C1.cal
    S1/Sync_Data/Walking_1_(C1).ofs         image start, mocap start, mocap frames per image frame
    S1/Mocap_Data/Walking_1.c3d
    Background/...                          plates

Sizes are not in the files: HumanEva-I has colour cameras C1-C3 of 640x480 and grey BW1-BW4 of 644x488,
HumanEva-II colour cameras C1-C4 of 656x490.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from calibration.cameras.rig import Rig
from calibration.foundation.errors import InputError
from calibration.foundation.files import read_text
from calibration.rig_formats import ReadOptions, read_rig
from capture.recordings.video import probe

__all__ = ["HumanEvaSequence", "find_sequences", "open_sequence"]


@dataclass(frozen=True)
class Sync:
    """How image frames and motion-capture frames correspond: ``mocap = mocap_start + (image - image_start) * scale``.

    Frames are numbered from 1, as in the data set.
    """

    image_start: float
    mocap_start: float
    scale: float

    def mocap_frame(self, image_frame: float) -> float:
        """Return the (fractional) motion-capture frame of an image frame."""
        return self.mocap_start + (image_frame - self.image_start) * self.scale


@dataclass(frozen=True, eq=False)
class HumanEvaSequence:
    """One action of one subject.

    Attributes:
        subject: e.g. "S1".
        action: e.g. "Walking_1".
        images: per camera, video or image folder.
        sync: per camera.
        rig: the cameras, in the order of ``images``.
        truth: C3D of the motion capture, None for the withheld test parts.
        backgrounds: per camera, where one is found.
    """

    subject: str
    action: str
    images: dict[str, Path]
    sync: dict[str, Sync]
    rig: Rig
    truth: Path | None
    backgrounds: dict[str, Path]


def find_sequences(root: Path | str) -> list[tuple[str, str]]:
    """Return (subject, action) of every sequence below a HumanEva root, sorted."""
    place = Path(root)
    found = set()
    for folder in place.glob("S*/Image_Data"):
        for entry in folder.iterdir():
            match = re.fullmatch(r"(.+)_\((\w+)\)(\.\w+)?", entry.name)
            if match:
                found.add((folder.parent.name, match[1]))
    if not found:
        raise InputError(f"{place}: no HumanEva sequences; wanted S1/Image_Data/Walking_1_(C1).avi and the like")
    return sorted(found)


def _sync(file: Path) -> Sync:
    numbers = read_text(file).split()
    try:
        start, mocap, scale = (float(word) for word in numbers[:3])
    except ValueError:
        raise InputError(f"{file}: wanted three numbers (image start, mocap start, scale)") from None
    if scale <= 0:
        raise InputError(f"{file}: the scale must be above 0, got {scale:g}")
    return Sync(start, mocap, scale)


def open_sequence(root: Path | str, subject: str, action: str) -> HumanEvaSequence:
    """Read where everything of one sequence lies, with its cameras and synchronisation."""
    known = find_sequences(root)
    if (subject, action) not in known:
        names = ", ".join(f"{s}/{a}" for s, a in known)
        raise InputError(f"{root}: no sequence {subject}/{action}; there are {names}")
    place = Path(root) / subject
    images: dict[str, Path] = {}
    for entry in sorted((place / "Image_Data").iterdir()):
        match = re.fullmatch(re.escape(action) + r"_\((\w+)\)(\.\w+)?", entry.name)
        if match:
            images[match[1]] = entry
    cameras, sync, backgrounds = [], {}, {}
    for name, source in images.items():
        calibration = place / "Calibration_Data" / f"{name}.cal"
        cameras += list(read_rig(calibration, "humaneva", ReadOptions(size=probe(source).size)))
        sync[name] = _sync(place / "Sync_Data" / f"{action}_({name}).ofs")
        plates = sorted((Path(root) / "Background").glob(f"*({name})*")) if (Path(root) / "Background").is_dir() else []
        if plates:
            backgrounds[name] = plates[0]
    truth = place / "Mocap_Data" / f"{action}.c3d"
    return HumanEvaSequence(
        subject, action, images, sync, Rig(tuple(cameras)), truth if truth.is_file() else None, backgrounds
    )
