"""A page in a headless Chromium, looked at and clicked through its debugging port."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

PATIENCE_S = 120
"""How long a loaded machine may take for what takes a second."""


def wait_for(what: Callable[[], Any]) -> Any:
    """Return what is there as soon as it is; fail when it never comes."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError("what was waited for never came")


class Page:
    """An open page."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._numbers = itertools.count(1)

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._connection.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            answer: dict[str, Any] = json.loads(self._connection.recv(timeout=PATIENCE_S))
            if answer.get("id") == number:
                return answer

    def value(self, script: str) -> Any:
        """Return the value of a JavaScript expression; None while the page is still being loaded."""
        answer = self._call("Runtime.evaluate", expression=script, returnByValue=True)
        return answer.get("result", {}).get("result", {}).get("value")

    def click(self, element: str) -> None:
        """Click on an element, given as a JavaScript expression, wherever it is."""
        self.value(f"{element}.click()")

    def press(self, element: str, across: float) -> None:
        """Press the mouse on an element that stays where it is, at a share of its width."""
        x, y, width, height = self.value(f"(r => [r.x, r.y, r.width, r.height])({element}.getBoundingClientRect())")
        for what in ("mousePressed", "mouseReleased"):
            at = {"x": x + across * width, "y": y + height / 2}
            self._call("Input.dispatchMouseEvent", type=what, button="left", clickCount=1, **at)


@contextmanager
def open_page(address: str, profile: Path) -> Iterator[Page]:
    """Yield a page of a browser of its own; skip the test, loudly, where there is no Chromium."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium on this machine")
    port = profile / "DevToolsActivePort"
    options = (
        "--headless=new", "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-sync", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
        "--remote-debugging-port=0", "--remote-allow-origins=*", "--window-size=900,700",
    )  # fmt: skip
    with subprocess.Popen(
        [browser, *options, f"--user-data-dir={profile}", address], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            number = int(wait_for(lambda: port.is_file() and port.read_text().split("\n")[0]))

            def debugger() -> str:
                with urllib.request.urlopen(f"http://127.0.0.1:{number}/json") as answer:
                    pages = [tab for tab in json.load(answer) if tab["type"] == "page"]
                return pages[0]["webSocketDebuggerUrl"] if pages else ""

            with connect(wait_for(debugger), max_size=None, open_timeout=PATIENCE_S) as connection:
                yield Page(connection)
        finally:
            process.terminate()
