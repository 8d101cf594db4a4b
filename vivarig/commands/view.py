"""``vivarig view``: look at a recording in 3D in the browser."""

from __future__ import annotations

import argparse
import socket
import sys
import webbrowser
from pathlib import Path

from calibration.foundation.errors import InputError
from capture.recordings.recording import load_recording
from vivarig.console.reporting import CommandReport
from vivarig.results.findings import load_findings
from vivarig.viewer import Viewer

HELP = (
    "Show cameras with their images, hull, template, skeleton, markers and beads of a recording (or of two, side by "
    "side) in the browser, with a line of trust and its reasons; its page Mend paints silhouettes, sets key poses, "
    "leaves cameras out, names beads, says what is lost. Only this machine can connect unless --host says otherwise, "
    "and only with the token in the printed address. From another machine: ssh -L 8080:127.0.0.1:8080 THIS, then open "
    "that address there."
)
EXAMPLE = "  vivarig view mouse_07\n  vivarig view mouse_07 mouse_08\n  vivarig view mouse_07 --port 8090 --no-browser"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recording", type=Path, help="recording folder")
    parser.add_argument("beside", type=Path, nargs="?", help="a second recording, shown side by side with the first")
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to serve on (default: 127.0.0.1, this machine only)"
    )
    parser.add_argument("--port", type=int, default=8080, help="port to serve on (default: 8080)")
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")


def run(args: argparse.Namespace) -> CommandReport:
    """Serve until interrupted."""
    folders = [args.recording] + ([args.beside] if args.beside is not None else [])
    shown = [load_findings(load_recording(folder)) for folder in folders]
    for folder, findings in zip(folders, shown, strict=True):
        if findings.frames == 0:
            raise InputError(f"{folder}: no results to show; run `vivarig run {folder}` first")
    _check_address(args.host, args.port)
    viewer = Viewer(shown[0], args.host, args.port, *shown[1:])
    address = viewer.address
    sys.stderr.write(f"serving {address}; stop with Ctrl-C\n")
    if not args.no_browser:
        webbrowser.open(address)
    try:
        viewer.run_forever()
    except KeyboardInterrupt:
        viewer.stop()
    return CommandReport(["viewer closed"], {"address": address})


def _check_address(host: str, port: int) -> None:
    """Refuse an address that cannot be served on: the server's own thread would die and leave us waiting."""
    if not 1 <= port <= 65535:
        raise InputError(f"--port wants a number from 1 to 65535, got {port}")
    try:
        socket.create_server((host, 0)).close()
    except OSError:
        raise InputError(
            f"--host {host}: not an address of this machine; 127.0.0.1 is for this machine only, 0.0.0.0 for its whole "
            "network"
        ) from None
