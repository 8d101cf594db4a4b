"""HumanEva's sets: which image frames of which sequence are for training, validation and test.

Frame numbers are the data set's own, from 1, both ends included. HumanEva-I's are those of its support code (first
frame 6 where there is video, because the codec repeats the first ones; trials 3 have motion capture only). HumanEva-II
has one sequence each of two subjects, all test; the literature scores its frames up to 350 (set 1, walking), up to 700
(set 2, with jogging) and all (set 3).
"""

from __future__ import annotations

from dataclasses import dataclass

from calibration.foundation.errors import InputError

__all__ = ["SETS", "FrameSet", "frames_of_set"]

SETS = ("all", "train", "validate", "test", "1", "2", "3")

#: HumanEva-I: subject, action, last frame of validation and of training in trial 1, last test frame of trial 2.
_ONE = {
    ("S1", "Walking"): (590, 1203, 1004), ("S1", "Jog"): (367, 740, 874), ("S1", "ThrowCatch"): (473, 945, 951),
    ("S1", "Gestures"): (395, 801, 1070), ("S1", "Box"): (385, 789, 606), ("S1", "Combo"): (0, 0, 2602),
    ("S2", "Walking"): (438, 876, 1093), ("S2", "Jog"): (398, 795, 727), ("S2", "ThrowCatch"): (550, 1128, 1399),
    ("S2", "Gestures"): (500, 901, 1062), ("S2", "Box"): (382, 734, 989), ("S2", "Combo"): (0, 0, 2054),
    ("S3", "Walking"): (448, 939, 805), ("S3", "Jog"): (401, 842, 864), ("S3", "ThrowCatch"): (493, 1027, 1000),
    ("S3", "Gestures"): (533, 1102, 553), ("S3", "Box"): (512, 1021, 753), ("S3", "Combo"): (0, 0, 1798),
    ("S4", "Walking"): (0, 0, 667), ("S4", "Jog"): (0, 0, 590), ("S4", "ThrowCatch"): (0, 0, 773),
    ("S4", "Gestures"): (0, 0, 459), ("S4", "Box"): (0, 0, 574), ("S4", "Combo"): (0, 0, 1102),
}  # fmt: skip
_FIRST = 6
#: HumanEva-II: first and last frame.
_TWO = {("S2", "Combo_1"): (1, 1202), ("S4", "Combo_4"): (2, 1258)}
_UP_TO = {"1": 350, "2": 700}


@dataclass(frozen=True)
class FrameSet:
    """Frames ``first`` to ``last``, both included, of a sequence of one of the two data sets."""

    dataset: str
    partition: str
    first: int
    last: int


def frames_of_set(subject: str, action: str, wanted: str) -> FrameSet:
    """Return the frames of a sequence (e.g. "S1", "Walking_1") that belong to a set (one of `SETS`)."""
    if wanted not in SETS:
        raise InputError(f"HumanEva: no set '{wanted}'; the sets are {', '.join(SETS)}")
    if (subject, action) in _TWO:
        first, last = _TWO[subject, action]
        if wanted in ("train", "validate"):
            raise InputError(f"HumanEva-II {subject}/{action} is all test; its sets are 1, 2, 3")
        return FrameSet("HumanEvaII", "Test", first, min(last, _UP_TO.get(wanted, last)))
    kind, _, trial = action.rpartition("_")
    if (subject, kind) not in _ONE or trial not in ("1", "2"):
        raise InputError(f"HumanEva: no frames are known for {subject}/{action}; give --first-image and no --set")
    validate, train, test = _ONE[subject, kind]
    spans = {"validate": (_FIRST, validate), "train": (validate + 1, train), "all": (_FIRST, train)}
    if trial == "2":
        spans = {"test": (_FIRST, test), "all": (_FIRST, test)}
    if wanted not in spans or spans[wanted][1] == 0:
        raise InputError(f"HumanEva-I {subject}/{action} has no set '{wanted}'; it has {', '.join(spans)}")
    names = {"validate": "Validate", "train": "Train", "test": "Test", "all": "All"}
    return FrameSet("HumanEvaI", names[wanted], *spans[wanted])
