"""The viewer's door: no token, another page's Origin or a strange Host, and nobody comes in."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import viser
from headless_browser import PATIENCE_S, open_page, wait_for
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as connect_in_seconds

from vivarig.viewer.door import Door


def connect(address: str, **options: Any) -> ClientConnection:
    """Connect, on a busy machine too."""
    return connect_in_seconds(address, open_timeout=PATIENCE_S, **options)


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Door, int]]:
    door = Door("127.0.0.1", lambda asked: {"heard": asked})
    with door.watching():
        server = viser.ViserServer(host="127.0.0.1", port=8975, verbose=False)
    yield door, int(server.get_port())
    server.stop()


def test_the_page_wants_its_token(served: tuple[Door, int]) -> None:
    door, port = served
    for wrong in (f"http://127.0.0.1:{port}/", f"http://127.0.0.1:{port}/?token=x"):
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(wrong)
    with urllib.request.urlopen(door.address(port)) as answer:
        assert answer.status == 200 and door.token in answer.headers["Set-Cookie"]
        assert "SameSite=Strict" in answer.headers["Set-Cookie"] and "HttpOnly" in answer.headers["Set-Cookie"]


def test_the_mending_desk_is_behind_the_same_door(served: tuple[Door, int]) -> None:
    door, port = served
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/mend")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/mend?token={door.token}") as answer:
        assert answer.status == 200 and "text/html" in answer.headers["Content-Type"]
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert b"Mend by hand" in answer.read()
    cookie = {"Cookie": f"vivarig_view={door.token}"}
    address = f"ws://127.0.0.1:{port}/mend"
    with connect(address, additional_headers=cookie, origin=f"http://127.0.0.1:{port}") as desk:
        desk.send('{"do": "open"}')
        assert desk.recv(timeout=PATIENCE_S) == '{"heard": {"do": "open"}}'
        desk.send("no JSON")
        assert desk.recv(timeout=PATIENCE_S) == '{"heard": null}'
    for headers, origin in (({}, f"http://127.0.0.1:{port}"), (cookie, "https://evil.example")):
        with pytest.raises(InvalidStatus, match="403"):
            connect(address, additional_headers=headers, origin=origin)


@pytest.mark.parametrize(
    ("with_token", "origin", "comes_in"),
    [(True, "own", True), (True, None, True), (False, "own", False), (True, "https://evil.example", False),
     (True, "http://127.0.0.1:1", False), (False, None, False), (True, "null", False)],
)  # fmt: skip
def test_a_websocket_wants_token_and_origin(
    served: tuple[Door, int], with_token: bool, origin: str | None, comes_in: bool
) -> None:
    door, port = served
    headers = {"Cookie": f"vivarig_view={door.token}"} if with_token else {}
    own = f"http://127.0.0.1:{port}" if origin == "own" else origin
    address = f"ws://127.0.0.1:{port}/"
    if comes_in:
        connect(address, additional_headers=headers, origin=own).close()
        return
    with pytest.raises(InvalidStatus, match="403"):
        connect(address, additional_headers=headers, origin=own)


def test_names_that_are_not_ours_are_refused() -> None:
    door = Door("127.0.0.1")
    path = f"/?token={door.token}"
    for host in ("127.0.0.1:8080", "localhost:8080", "[::1]:8080"):
        assert door.refusal(path, {"Host": host}) == ""
    assert "name" in door.refusal(path, {"Host": "evil.example:8080"})
    assert "name" in door.refusal(path, {"Host": "10.0.0.7:8080"})
    wide = Door("0.0.0.0")
    assert not wide.refusal(f"/?token={wide.token}", {"Host": "10.0.0.7:8080"})
    assert wide.address(8080).startswith("http://127.0.0.1:8080/?token=")


class _Evil(BaseHTTPRequestHandler):
    """A page of somebody else on this machine."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<p>hello</p>")

    def log_message(self, *words: object) -> None:
        """Say nothing."""


@pytest.mark.slow
def test_another_page_in_the_same_browser_cannot_connect(served: tuple[Door, int], tmp_path: Path) -> None:
    door, port = served
    other = HTTPServer(("127.0.0.1", 0), _Evil)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    try:
        with open_page(f"http://127.0.0.1:{other.server_port}/", tmp_path / "profile") as page:
            wait_for(lambda: page.value("document.body && document.body.innerText") == "hello")
            for number, address in enumerate((f"ws://127.0.0.1:{port}/", f"ws://127.0.0.1:{port}/?token={door.token}")):
                page.value(
                    f"window.said{number} = ''; s = new WebSocket('{address}', 'viser-v1'); "
                    f"s.onopen = () => window.said{number} = 'open'; "
                    f"s.onerror = () => window.said{number} = 'refused'; 1"
                )
                assert wait_for(lambda number=number: page.value(f"window.said{number}")) == "refused"  # type: ignore[misc]
    finally:
        other.shutdown()
        other.server_close()
