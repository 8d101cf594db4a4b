"""A page in a headless Chromium, looked at and clicked through its debugging port."""

from __future__ import annotations

import base64
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


def wait_for(what: Callable[[], Any], patience_s: float = PATIENCE_S) -> Any:
    """Return what is there as soon as it is; fail when it never comes."""
    end = time.monotonic() + patience_s
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

    def _mouse(self, what: str, element: str, at: tuple[float, float], buttons: int = 0) -> None:
        x, y, width, height = self.value(f"(r => [r.x, r.y, r.width, r.height])({element}.getBoundingClientRect())")
        where = {"x": x + at[0] * width, "y": y + at[1] * height}
        button = "none" if what == "mouseMoved" and not buttons else "left"
        self._call("Input.dispatchMouseEvent", type=what, button=button, buttons=buttons, clickCount=1, **where)

    def bring(self, element: str) -> None:
        """Scroll to an element and wait until it stands still."""
        self.value(f"{element}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        places: list[float] = [-1.0, -2.0]
        while places[-1] != places[-2]:
            time.sleep(0.2)
            places.append(self.value(f"{element}.getBoundingClientRect().y"))

    def press(self, element: str, across: float) -> None:
        """Press the mouse on an element that stays where it is, at a share of its width."""
        for what in ("mousePressed", "mouseReleased"):
            self._mouse(what, element, (across, 0.5))

    def hover(self, element: str, across: float, down: float = 0.5) -> None:
        """Move the mouse over an element, at shares of its width and height."""
        self._call("Input.dispatchMouseEvent", type="mouseMoved", x=0, y=0)
        self._mouse("mouseMoved", element, (across, down))

    def drag(self, element: str, path: list[float] | list[tuple[float, float]]) -> None:
        """Press on an element, go along a path of shares of its width (and height), and let go."""
        places = [(at, 0.5) if isinstance(at, float) else at for at in path]
        self._mouse("mouseMoved", element, places[0])
        self._mouse("mousePressed", element, places[0], 1)
        for at in places[1:]:
            self._mouse("mouseMoved", element, at, 1)
        self._mouse("mouseReleased", element, places[-1])

    def picture(self, path: Path) -> None:
        """Write what is to be seen as PNG, for people."""
        answer = self._call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(answer["result"]["data"]))


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
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{number}/json") as answer:
                        pages = [tab for tab in json.load(answer) if tab["type"] == "page"]
                except OSError:  # not yet
                    return ""
                return pages[0].get("webSocketDebuggerUrl", "") if pages else ""

            with connect(wait_for(debugger), max_size=None, open_timeout=PATIENCE_S) as connection:
                yield Page(connection)
        finally:
            process.terminate()
