"""What a shell completes: taken from the parsers, tried in bash itself."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from vivarig.cli import VERBS, main


def completed(script: str, *words: str) -> list[str]:
    """Return what bash offers for the last of some words."""
    line = " ".join(f'"{word}"' for word in ("vivarig", *words))
    program = f'{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words)}; _vivarig; printf "%s\\n" "${{COMPREPLY[@]}}"'
    out = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True).stdout
    return out.split()


@pytest.fixture(scope="module")
def scripts() -> dict[str, str]:
    from contextlib import redirect_stdout
    from io import StringIO

    made = {}
    for shell in ("bash", "zsh", "fish"):
        with redirect_stdout(StringIO()) as out:
            assert main(["completion", shell]) == 0
        made[shell] = out.getvalue()
    return made


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_verbs_options_and_choices(scripts: dict[str, str]) -> None:
    assert completed(scripts["bash"], "calib") == ["calibrate"]
    assert set(VERBS) <= set(completed(scripts["bash"], ""))
    assert completed(scripts["bash"], "export", "--trus") == ["--trusted-only"]
    assert completed(scripts["bash"], "export", "--points", "j") == ["joints"]


def test_the_other_shells_know_every_verb(scripts: dict[str, str]) -> None:
    for verb in VERBS:
        assert f"-a {verb} " in scripts["fish"] and f"    {verb})" in scripts["zsh"]
    assert "-l trusted-only" in scripts["fish"] and scripts["zsh"].startswith("#compdef vivarig")
