"""Cameras are judged once a run, and again when the silhouettes are others."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from calibration.foundation.once import keeping
from vivarig.results import camera_check


def test_cameras_are_judged_once_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording: Any = SimpleNamespace(results=tmp_path)
    judged: list[Any] = []
    monkeypatch.setattr(camera_check, "judge_cameras", lambda one: judged.append(one) or len(judged))
    file = tmp_path / "silhouettes.h5"
    file.write_bytes(b"first")
    kept: dict[str, Any] = {}

    def keeper(name: str, make: Any) -> Any:
        return kept[name] if name in kept else kept.setdefault(name, make())

    with keeping(keeper):
        assert [camera_check.judge_cameras_once(recording) for _ in range(2)] == [1, 1]
        file.write_bytes(b"edited since")
        assert camera_check.judge_cameras_once(recording) == 2
