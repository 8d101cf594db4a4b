"""The command line: help, unknown verbs, one-line errors, exit codes."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from example_rigs import ring

from calibration.cameras.rig import save_rig
from vivarig.cli import VERBS, main
from vivarig.console.reporting import CommandReport

REPOSITORY = Path(__file__).resolve().parents[2]


def test_overview_names_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    modules = {file.stem for file in (REPOSITORY / "vivarig" / "commands").glob("*.py")} - {
        "__init__",
        "stage_arguments",
    }
    assert {line.split()[0] for line in out.splitlines() if line.startswith("  ")} == modules


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([verb, "--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert f"vivarig {verb}" in importlib.import_module(f"vivarig.commands.{verb}").EXAMPLE
    assert "example:" in out


def test_python_m_is_the_same_command() -> None:
    done = subprocess.run([sys.executable, "-m", "vivarig", "calibrat"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "vivarig: unknown verb 'calibrat'; did you mean 'calibrate'?\n")


def test_unknown_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrat"]) == 2
    assert capsys.readouterr().err == "vivarig: unknown verb 'calibrat'; did you mean 'calibrate'?\n"


def test_bad_input_is_one_line_and_exit_2(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["convert", str(tmp_path / "nothing.toml"), str(tmp_path / "out.toml")]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "no such file" in err


def test_convert_writes_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_rig(ring(12), tmp_path / "rig.toml")
    code = main(
        [
            "convert",
            str(tmp_path / "rig.toml"),
            str(tmp_path / "maya"),
            "--to",
            "mayacam2",
            "--json",
            str(tmp_path / "n.json"),
        ]
    )
    assert code == 0
    assert json.loads((tmp_path / "n.json").read_text())["cameras"][10] == "cam11"
    assert "wrote" in capsys.readouterr().out


def test_an_interrupt_while_the_verb_is_imported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("vivarig.cli.importlib.import_module", interrupted)
    assert main(["run", "mouse_07"]) == 130
    assert "stopped; run it again" in capsys.readouterr().err


def test_a_reader_that_stops_early_is_no_failure(tmp_path: Path) -> None:
    code = "import sys; from vivarig.cli import main; sys.exit(main(['board', 'printed']))"
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=writer, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    os.close(writer)
    assert done.returncode == 0 and done.stderr == "", done.stderr


def test_a_demo_killed_while_it_copies_the_sample_copies_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = shutil.copytree

    def killed(source: Path, target: Path, **options: object) -> None:
        target.mkdir(parents=True)
        raise KeyboardInterrupt

    monkeypatch.setattr("vivarig.commands.demo.run_command.run", lambda args: CommandReport([]))
    monkeypatch.setattr("vivarig.commands.demo.shutil.copytree", killed)
    assert main(["demo", "--folder", str(tmp_path)]) == 130
    monkeypatch.setattr("vivarig.commands.demo.shutil.copytree", real)
    assert main(["demo", "--folder", str(tmp_path)]) == 0
    assert (tmp_path / "mouse" / "videos" / "cam08.mp4").is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["mouse"]


def test_quiet_says_nothing_but_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_rig(ring(3), tmp_path / "rig.toml")
    words = ["convert", str(tmp_path / "rig.toml"), str(tmp_path / "out.yml"), "--lossy"]
    assert main(words) == 0 and "wrote" in capsys.readouterr().out
    assert main([*words, "--quiet"]) == 0
    assert capsys.readouterr() == ("", "") and (tmp_path / "out.yml").is_file()
    assert main(["convert", str(tmp_path / "none.toml"), str(tmp_path / "o.yml"), "--quiet"]) == 2
    assert "no such file" in capsys.readouterr().err
