"""Environments of the programs we measure against.

A peer brings builds of its own (another OpenCV over ``cv2``, an older numpy), so each lives in a virtual environment
``.bench/<peer>``, made on first use, and runs as a subprocess on arrays saved to a file.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["peer_python", "run_peer"]

ROOT = Path(__file__).resolve().parents[2] / ".bench"

#: What pip installs for each peer. Pinned, so that a ratio means the same next month.
PEERS = {
    "aniposelib": ["aniposelib==0.8.0"],
    "caliscope": ["caliscope==0.11.8"],
    "gpy": ["GPy==1.15.0"],
    "opensim": ["opensim==4.6"],
    "manifold3d": ["manifold3d==3.5.4", "numpy"],
    "opencv": ["opencv-python==5.0.0.93", "numpy"],
    "colmap": ["pycolmap==4.2.1", "opencv-python==5.0.0.93", "numpy"],
}


def peer_python(peer: str) -> Path:
    """Return the interpreter of a peer's environment, making it first if needed."""
    folder = ROOT / peer
    python = folder / "bin" / "python"
    stamp = folder / "installed.json"
    wanted = json.dumps(PEERS[peer])
    if stamp.is_file() and stamp.read_text() == wanted:
        return python
    print(f"making the environment of {peer} (once) ...", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PEERS[peer]], check=True)
    stamp.write_text(wanted)
    return python


def run_peer(peer: str, script: str, arrays: dict[str, Any], timeout_s: float = 900) -> dict[str, np.ndarray]:
    """Run a script in a peer's environment.

    The script sees ``given`` (the arrays, by name) and must fill the dictionary ``out`` with arrays; it times itself,
    so that start-up does not count.
    """
    head = "import sys, numpy as np\ngiven = dict(np.load(sys.argv[1], allow_pickle=False))\nout = {}\n"
    tail = "\nnp.savez(sys.argv[2], **out)\n"
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "given.npz", Path(folder) / "out.npz"
        program = Path(folder) / "peer.py"
        np.savez(source, **arrays)
        program.write_text(head + script + tail)
        subprocess.run(
            [str(peer_python(peer)), str(program), str(source), str(target)],
            check=True,
            timeout=timeout_s,
            stdout=subprocess.DEVNULL,
        )
        with np.load(target) as stored:
            return dict(stored)
