"""Builds the wheel with a compact copy of the sample mouse in it, so that `vivarig demo` runs from anywhere.

All that is static stands in pyproject.toml. The sample lies outside of the packages, once; only its videos, rig, truth
and description go along, not its calibration footage.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SAMPLE = Path("sample_data") / "mouse"
PARTS = ("README.md", "recording.toml", "rig.toml", "truth.h5", "videos")


class BuildWithSample(build_py):
    """Copies the sample beside the packages that are built; an editable install reads it where it lies."""

    def run(self) -> None:
        super().run()
        if self.editable_mode or not SAMPLE.is_dir():
            return
        target = Path(self.build_lib) / "vivarig" / "samples" / "mouse"
        for name in PARTS:
            source = SAMPLE / name
            if source.is_dir():
                shutil.copytree(source, target / name, dirs_exist_ok=True)
            else:
                target.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target / name)


setup(cmdclass={"build_py": BuildWithSample})
