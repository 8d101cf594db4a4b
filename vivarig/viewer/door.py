"""The viewer's door: who may look. A secret in the address, and only pages of the viewer's own may speak to it.

A browser lets any page on the internet open a websocket to this machine. So a visitor must bring the token that the
command printed (in the address, then as a cookie), must have asked for this machine by an address of ours (against DNS
names that turn into 127.0.0.1), and a page that connects must be the viewer's own (its Origin).
"""

from __future__ import annotations

import asyncio
import gzip
import http.cookies
import ipaddress
import json
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, urlsplit

__all__ = ["Door"]

_COOKIE = "vivarig_view"
_WORD = "token"
_DESK = "/mend"
#: The page's own scripts and nothing else; it speaks to its own server alone.
_POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
_ANY = ("0.0.0.0", "::", "")


class Door:
    """Checks each request to the viewer's server."""

    def __init__(self, host: str, desk: Callable[[Any], dict[str, Any]] | None = None) -> None:
        """Guard a server at ``host``; ``desk`` answers the messages of the page ``/mend``, None: no such page."""
        self.host = host
        self.desk = desk
        self.token = secrets.token_urlsafe(24)

    def address(self, port: int) -> str:
        """Return the address to open, token and all."""
        shown = "127.0.0.1" if self.host in _ANY else f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{shown}:{port}/?{_WORD}={self.token}"

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Let a viser server that is started in this block ask us first; viser has no setting for that."""
        import websockets.asyncio.server as module

        serve = module.serve

        def watched(
            handler: Callable[..., Any], *rest: Any, process_request: Callable[..., Any] | None = None, **named: Any
        ) -> Any:
            return serve(self._routed(handler), *rest, process_request=self._checked(process_request), **named)

        module.serve = watched  # type: ignore[assignment,misc]
        try:
            yield
        finally:
            module.serve = serve  # type: ignore[misc]

    def _routed(self, other: Callable[..., Any]) -> Callable[..., Any]:
        """Return a handler of websockets: those of the desk's page go to the desk."""

        async def handle(connection: Any) -> None:
            if self.desk is None or urlsplit(connection.request.path).path != _DESK:
                await other(connection)
                return
            async for message in connection:
                try:
                    asked = json.loads(message)
                except (ValueError, RecursionError):
                    asked = None
                # images are decoded on another thread: the scene's messages go on meanwhile
                await connection.send(json.dumps(await asyncio.to_thread(self.desk, asked)))

        return handle

    def _checked(self, then: Callable[..., Any] | None) -> Callable[..., Any]:
        def check(connection: Any, request: Any) -> Any:
            why = self.refusal(request.path, request.headers)
            if why:
                return connection.respond(403, f"{why}\n")
            if self.desk is not None and urlsplit(request.path).path == _DESK:
                if "Upgrade" in request.headers:
                    return None
                response = connection.respond(200, (files("vivarig.viewer") / "mend.html").read_text(encoding="utf-8"))
                del response.headers["Content-Type"]
                response.headers["Content-Type"] = "text/html; charset=utf-8"
                response.headers["Content-Security-Policy"] = _POLICY
            else:
                response = then(connection, request) if then is not None else None
                if response is not None and urlsplit(request.path).path == "/":
                    _add_names(response)
            if response is not None:
                response.headers["Set-Cookie"] = f"{_COOKIE}={self.token}; HttpOnly; SameSite=Strict; Path=/"
                response.headers["Referrer-Policy"] = "no-referrer"
            return response

        return check

    def refusal(self, path: str, headers: Any) -> str:
        """Return why a request is refused; empty if it is not."""
        asked = headers.get("Host", "")
        if not self._ours(urlsplit(f"//{asked}").hostname or ""):
            return "this viewer does not answer to that name"
        origin = headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != asked:
            return "only the viewer's own page may connect"
        brought = [*parse_qs(urlsplit(path).query).get(_WORD, []), _cookie(headers.get("Cookie", ""))]
        if not any(secrets.compare_digest(word.encode(), self.token.encode()) for word in brought):
            return "open the address that `vivarig view` printed: it ends with a token"
        return ""

    def _ours(self, name: str) -> bool:
        if name in ("localhost", self.host):
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return self.host in _ANY and name == socket.gethostname()
        return address.is_loopback or self.host in _ANY


def _add_names(response: Any) -> None:
    """Add to viser's page the script that shows the name under the mouse."""
    packed = response.headers.get("Content-Encoding") == "gzip"
    body = _with_names(response.body, packed)
    response.body = body
    del response.headers["Content-Length"]
    response.headers["Content-Length"] = str(len(body))


@lru_cache(maxsize=2)
def _with_names(page: bytes, packed: bool) -> bytes:
    script = (files("vivarig.viewer") / "hover.js").read_bytes()
    text = gzip.decompress(page) if packed else page
    head, end, tail = text.rpartition(b"</body>")
    text = head + b"<script>" + script + b"</script>" + end + tail
    return gzip.compress(text, 1) if packed else text


def _cookie(text: str) -> str:
    try:
        found = http.cookies.SimpleCookie(text).get(_COOKIE)
    except http.cookies.CookieError:
        return ""
    return found.value if found is not None else ""
