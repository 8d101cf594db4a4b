"""Every command line of the documentation is executed: by the story below, or by a test that is named.

What is run here is run word for word, but for what a small recording does not have and what would learn for minutes.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from motion_examples import write_human_walk, write_rat_points
from small_recordings import cut_recording

from vivarig.cli import main
from vivarig.viewer import Viewer

REPOSITORY = Path(__file__).resolve().parent.parent
PAGES = [
    REPOSITORY / "README.md",
    *sorted((REPOSITORY / "docs").rglob("*.md")),
    *sorted(REPOSITORY.glob("sample_data/**/*.md")),
]


def command_lines(text: str) -> list[str]:
    """Return the command lines of a page, in fenced and in indented blocks, comments left out."""
    found, fenced = [], False
    for line in text.replace("\\\n", " ").splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            words = " ".join(line.split("#")[0].split())
            if words.startswith("vivarig ") and "->" not in words and ">" not in words:
                found.append(words)
    return found


_CALIBRATE = "tests/vivarig/commands/test_command_calibrate.py"
_PROJECTS = "tests/vivarig/commands/test_calibrate_projects.py"
_SCANS, _TRAIN = "tests/vivarig/commands/test_scan_subjects.py", "tests/vivarig/commands/test_train.py"
_SCORES, _POSES = "tests/vivarig/commands/test_evaluate.py", "tests/vivarig/commands/test_pose_model_commands.py"
_WAND, _TWO = "tests/calibration/solving/test_wand.py", "tests/vivarig/commands/test_several_subjects.py"
_OWN, _BEADS = "tests/vivarig/commands/test_own_bodies.py", "tests/vivarig/commands/test_command_xray.py"
_TABLES, _INIT = "tests/vivarig/statistics/test_tables.py", "tests/vivarig/commands/test_command_init.py"
_SURVEY, _STUDIO = "tests/calibration/solving/test_surveyed.py", "tests/capture/studio/test_studio_recording.py"
_CLI, _CLUSTER = "tests/vivarig/test_cli.py", "tests/vivarig/pipeline/test_cluster.py"
_TAUGHT, _LIKE = "tests/vivarig/commands/test_train_meshes.py", "tests/vivarig/commands/test_humaneva_like.py"
#: Lines that another test runs, with the same verb and the same flags, on data of its own.
ELSEWHERE = {
    "vivarig calibrate my_session --floor-frame 0 --json calibration.json": _CALIBRATE,
    "vivarig calibrate my_session --floor-frame 12": _CALIBRATE,
    "vivarig calibrate OUT --marks wand.csv --wand 0,150,400 --intrinsics lenses.toml": _WAND,
    "vivarig calibrate OUT --marks points.csv --baseline 812 --intrinsics lenses.toml": _WAND,
    "vivarig calibrate OUT --marks tracks.csv --refine rig.toml": _WAND,
    "vivarig calibrate lens_pictures --lenses-only": _PROJECTS,
    "vivarig calibrate --points scene.toml --marks clicks.csv --intrinsics lens_pictures/results/lenses": _SURVEY,
    "vivarig calibrate my_anipose_project": _PROJECTS,
    "vivarig compare all.csv --joint left_knee --value inner_deg -o knee.png": _TABLES,
    "vivarig table day1/* day2/* -o strides.csv --rows strides": _TABLES,
    "vivarig compare strides.csv --value length_mm --foot left_hind -o length.png": _TABLES,
    "vivarig silhouettes two_mice --subjects 2": _TWO,
    "vivarig hull two_mice": _TWO,
    "vivarig track two_mice --which 1": _TWO,
    "vivarig subject subjects/m8 --body mouse --recording mouse_08 --frame 120": _SCANS,
    "vivarig subject subjects/horse --mesh horse.obj --unit-mm 1000 --up y --joints horse.toml": _OWN,
    "vivarig subject subjects/horse --mesh horse.obj --unit-mm 1000 --up y --joints subjects/horse/joints.toml": _OWN,
    "vivarig subject subjects/horse --mesh horse.obj --unit-mm 1000 --up y --suggest-joints": _OWN,
    "vivarig skeleton anna_walk": _SCANS,
    "vivarig export anna_walk anna_walk.glb": _SCANS,
    "vivarig export anna_walk troll.glb --onto subjects/troll": _SCANS,
    "vivarig init monday --subject mouse --square 14": _INIT,
    "vivarig run monday": "tests/vivarig/pipeline/test_pipeline.py",
    "vivarig convert HumanEva_I s1_walking --humaneva S1 Walking_1": _SCORES,
    "vivarig evaluate s1_walking --humaneva HumanEva_I S1 Walking_1 --set validate --csv errors.csv "
    "--plot errors.png": _SCORES,
    "vivarig evaluate s1_walking --humaneva HumanEva_I S1 Walking_1 --set validate --mode relative": _SCORES,
    "vivarig evaluate s4_combo --humaneva HumanEva_II S4 Combo_4 --submission s4_combo.xml --first-image 2": _SCORES,
    "vivarig evaluate mouse_test": _SCORES,
    "vivarig train --skeleton mouse mouse_01 mouse_02 mouse_03 -o mice.npz": _POSES,
    "vivarig train --rig subjects/m7 --recording mouse_07 --frames 10,50,120,300,412 --latent 3 -o m7.npz "
    "--save-poses keys.toml": _TRAIN,
    "vivarig train --rig subjects/m7 --recording mouse_07 --frames 10,50,90 --linear --latent 2 --save-poses keys.toml "
    "-o m7.npz": _SCANS,
    "vivarig train --rig subjects/m7 --key-poses keys.toml --linear --latent 2 -o m7.npz": _SCANS,
    "vivarig train --rig subjects/horse --recording ride_01 --frames 10,50,90 --linear --latent 2 "
    "-o subjects/horse/prior.npz": _SCANS,
    "vivarig subject subjects/anna --body human --mesh anna.obj --unit-mm 1000 --up y": _SCANS,
    "vivarig subject subjects/anna --body human --mesh key_meshes/frame_000.obj --up y": _SCANS,
    "vivarig track --meshes scans --subject subjects/anna --unit-mm 1000 --up y --rate-hz 30 -o anna_walk": _SCANS,
    "vivarig track --meshes scans --subject human --up y -o walk": _SCANS,
    "vivarig track --meshes scans --subject human --data hull -o walk": _SCANS,
    "vivarig train --meshes key_meshes --subject subjects/anna --up y --latent 14 -o subjects/anna_taught": _TAUGHT,
    "vivarig run day1/* --cluster tcp://login1:8786": _CLUSTER,
    "vivarig run day1/* --cluster tls://login1:8786 --cluster-security certificates/": _CLUSTER,
    # 1,200 frames to film and to track: there they come from elsewhere
    "vivarig evaluate he_like --humaneva-like cmu": _LIKE,
    "vivarig demo": _CLI,
    "vivarig init rat_xray --units cm": _BEADS,
    "vivarig run rat_xray": _BEADS,
    "vivarig xray undistort rat_xray": _BEADS,
    "vivarig xray calibrate rat_xray": _BEADS,
    "vivarig xray track rat_xray": _BEADS,
    "vivarig xray triangulate rat_xray": _BEADS,
    "vivarig xray undistort sample_data/rat_xray": _BEADS,
    "vivarig xray calibrate sample_data/rat_xray": _BEADS,
    "vivarig xray track sample_data/rat_xray": _BEADS,
    "vivarig xray triangulate sample_data/rat_xray": _BEADS,
}


def mouse(place: Path) -> None:
    """A few frames of the sample mouse, without recording.toml."""
    cut_recording(place / "mouse_07", frames=4, cameras=3, first=30)
    (place / "mouse_07" / "recording.toml").unlink()


def quick(place: Path) -> None:
    """Settings that make tracking quick, as a user would write them."""
    with open(place / "mouse_07" / "recording.toml", "a") as file:
        file.write("\n[track]\nscale = 1.06\nadapt = false\ntexture = false\n")


def days(place: Path) -> None:
    """Copies of what is done so far, which arrived an hour ago, another recording that is not begun, and a rig."""
    for copy in ("day1/mouse_07", "day1/mouse_08", "day2/mouse_07", "mouse_08"):
        shutil.copytree(place / "mouse_07", place / copy)
    for path in (place / "day1").rglob("*"):
        os.utime(path, (time.time() - 3600.0,) * 2)
    shutil.copytree(place / "mouse_07", place / "s1_walking", ignore=shutil.ignore_patterns("results"))
    shutil.copy(REPOSITORY / "sample_data" / "mouse" / "rig.toml", place)


def motions(place: Path) -> None:
    """Motion files as others bring them."""
    for number, name in enumerate(("walks/a.bvh", "walks/b.bvh", "walk_01.bvh", "walk_02.bvh")):
        write_human_walk(place / name, number)
    write_rat_points(place / "points.trc")


#: Lines that are run here one after the other, in one folder; functions make what the pages take for granted.
STORY: tuple[str | Callable[[Path], None], ...] = (
    mouse,
    "vivarig init mouse_07 --subject mouse",
    quick,
    "vivarig run mouse_07",
    "vivarig film mouse_07",
    "vivarig film mouse_07 --slow 4",
    "vivarig film mouse_07 --frames 100:400 --slow 4",
    "vivarig report mouse_07",
    "vivarig view mouse_07",
    "vivarig export mouse_07 mouse_07.c3d",
    "vivarig export mouse_07 mouse_07.nwb",
    "vivarig export mouse_07 mouse_07.osim",
    "vivarig export mouse_07 mouse_07.glb --frames 0:400 --every 2",
    "vivarig export mouse_07 surface/mouse.ply --trusted-only",
    days,
    "vivarig run day1/mouse_07 day1/mouse_08 --workers 4",
    "vivarig run day1/* --workers 8",
    "vivarig watch day1",
    "vivarig view mouse_07 mouse_08",
    "vivarig run s1_walking --set silhouettes.model=mixture",
    "vivarig table day1/* day2/* -o all.csv",
    "vivarig convert rig.toml rig_video.toml --crop 1280x720+0+40 --scale 0.5",
    "vivarig convert rig.toml rig_video.toml --camera cam02 --rotate 90",
    "vivarig convert rig.toml rig_video.toml --scale 640x360 --pad 0,60,0,60",
    "vivarig run mouse_07 --set hull.voxel=2",
    "vivarig run mouse_07 --until skeleton",
    "vivarig run mouse_07 --again track",
    "vivarig silhouettes mouse_07 --sheet look.png",
    "vivarig hull mouse_07 --posture posture.csv",
    "vivarig subject subjects/m7 --body mouse --length 1.05 --girth 0.95",
    "vivarig subject subjects/stout --body mouse --girth-of lumbar=1.5 --girth-of thoracic=1.5",
    "vivarig track mouse_07",
    "vivarig track mouse_07 --no-adapt",
    "vivarig track mouse_07 --scale 1.06 --start 120",
    "vivarig track mouse_07 --subject subjects/m7",
    "vivarig track mouse_07 --no-redraw",
    "vivarig track mouse_07 --no-texture",
    "vivarig track mouse_07 --data hull",
    "vivarig sync mouse_07 --write",
    "vivarig board my_session --kind charuco --columns 7 --rows 10 --square 24",
    "vivarig board my_session",
    "vivarig simulate mouse_test --body mouse --motion turn --cameras 8 --radius 260 --height 150 230 --field 225 "
    "--option shadows=0.6 --option texture=0.4 --option noise=2",
    "vivarig run mouse_test",
    motions,
    "vivarig train --skeleton human walks/ --unit-mm 56.444 --drop-first -o walks.npz --picture modes.png",
    "vivarig train --rig human walk_01.bvh walk_02.bvh --unit-mm 56.444 --drop-first --latent 10 -o walks.npz "
    "--picture walks.png",
    "vivarig train --rig rat points.trc --up z --latent 6 -o rat.npz",
    "vivarig train --rig mouse --made-up walk,rear,groom --seed 7 -o mouse.npz",
)
#: What is written in place of words that want more frames, or other pictures, than this small recording has.
SMALLER = {
    "--frames 100:400": "--frames 1:3",
    "--frames 0:400": "--frames 0:4",
    "--start 120": "--start 2",
    "--crop 1280x720+0+40": "--crop 640x400+0+40",
    "--workers 4": "--workers 1",
    "--workers 8": "--workers 1",
    "--cameras 8": "--cameras 3 --frames 2",
    "run mouse_test": "run mouse_test --until silhouettes",
    "model=mixture": "model=mixture --until silhouettes",
    "--latent 10 ": "--latent 3 --linear ",
    "--latent 6 ": "--latent 2 --poses 12 --restarts 1 ",
    "--seed 7 ": "--seed 7 --linear --seconds 1 ",
}


def test_every_line_is_run_somewhere() -> None:
    """A new line in a page is added to the story, or says who runs it."""
    lines = {line for page in PAGES for line in command_lines(page.read_text())}
    told = {line for line in STORY if isinstance(line, str)} | set(ELSEWHERE)
    assert lines - told == set() and told - lines == set()


@pytest.mark.parametrize("line", ELSEWHERE)
def test_lines_run_elsewhere_are_run_with_their_flags(line: str) -> None:
    text = (REPOSITORY / ELSEWHERE[line]).read_text()
    verb, *words = line.split()[1:]
    wanted = [f'"{verb}"', *(f'"{word}"' for word in words if re.match(r"--?[a-z]", word))]
    assert [word for word in wanted if word not in text] == []


def words_of(line: str) -> list[str]:
    """Return the words of a line as the shell gives them to the program, less frames than the page has."""
    for words, fewer in SMALLER.items():
        line = line.replace(words, fewer)
    return [part for word in shlex.split(line)[1:] for part in (sorted(map(str, Path().glob(word))) or [word])]


def look_and_leave(viewer: Viewer) -> None:
    """Stand in for a user who opens the viewer's page once and then presses Ctrl-C."""
    with urllib.request.urlopen(viewer.address) as answer:
        assert answer.status == 200
    raise KeyboardInterrupt


def no_more(_: float) -> None:
    """Stand in for a user who presses Ctrl-C while nothing is left to do."""
    raise KeyboardInterrupt


@pytest.mark.slow
def test_lines_of_the_documentation_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a folder of videos on, in the order a reader would; 1 is a result below its own threshold, as said."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)  # in this process: nothing is imported and compiled again
    monkeypatch.setattr(Viewer, "run_forever", look_and_leave)
    monkeypatch.setattr("webbrowser.open", lambda address: True)
    monkeypatch.setattr("vivarig.commands.watch.time", SimpleNamespace(sleep=no_more))
    for step in STORY:
        if not isinstance(step, str):
            step(tmp_path)
            continue
        code = main(words_of(step))
        assert code in ((130,) if step.startswith("vivarig watch") else (0, 1)), step
    for made in ("mouse_07/results/report.html", "mouse_07.osim", "all.csv", "surface", "posture.csv", "look.png"):
        assert (tmp_path / made).exists(), made
    for made in ("day1/vivarig-status.html", "s1_walking/results/silhouettes.h5", "modes.png", "walks.npz", "rat.npz"):
        assert (tmp_path / made).exists(), made
