"""Digests of results: small ones by all they hold, large ones by blocks all over them."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibration.foundation import digests
from calibration.foundation.digests import digest_of_path, digest_of_result


def test_a_large_result_is_told_by_its_size_and_its_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.h5"
    path.write_bytes(bytes(range(250)) * 40)
    assert digest_of_result(path) == digest_of_path(path)
    monkeypatch.setattr(digests, "_MOST_READ", 1000)
    monkeypatch.setattr(digests, "_BLOCK", 1600)  # blocks of 100 bytes
    monkeypatch.setattr(digests, "_SPREAD", 11)
    large = digest_of_result(path)
    assert large == digest_of_result(path) != digest_of_path(path)
    content = bytearray(path.read_bytes())
    for place in (0, 5000, 9999):
        changed = content.copy()
        changed[place] ^= 1
        path.write_bytes(changed)
        assert digest_of_result(path) != large
    path.write_bytes(content + b"x")
    assert digest_of_result(path) != large
