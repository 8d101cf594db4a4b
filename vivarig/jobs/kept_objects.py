"""Objects kept on disk between runs, read back only if this user wrote them.

They are pickles, and a pickle from a stranger's folder could run anything: so each is signed with a key that lies in
the user's own cache folder. One that is signed otherwise (another user's, damaged, for other inputs) is made again.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import pickle
import secrets
from functools import lru_cache
from pathlib import Path
from typing import Any

from calibration.foundation.files import write_bytes

__all__ = ["is_ours", "load_object", "load_object_anew", "save_object"]

_KEY_BYTES = _MAC_BYTES = 32


def save_object(path: Path, value: object, rests_on: str) -> None:
    """Keep an object that was made from what ``rests_on`` is the digest of."""
    content = pickle.dumps(value)
    write_bytes(path, _signature(content, path.name, rests_on) + content)


def is_ours(path: Path, rests_on: str) -> bool:
    """Return whether an object is there, unharmed, written by this user and made from the same inputs."""
    try:
        content = path.read_bytes()
    except OSError:
        return False
    wanted = _signature(content[_MAC_BYTES:], path.name, rests_on)
    return hmac.compare_digest(content[:_MAC_BYTES], wanted)


def load_object(path: Path) -> Any:
    """Return an object whose origin was checked when the run began (`is_ours`), or that this run wrote."""
    return _unpickled(path, path.stat().st_mtime_ns)


def load_object_anew(path: Path) -> Any:
    """Return an object as `load_object` does, without remembering it: one that is large and seldom asked for."""
    return pickle.loads(path.read_bytes()[_MAC_BYTES:])


@lru_cache(maxsize=1)  # a worker that goes on to the next stage no longer needs what the parts of the last one shared
def _unpickled(path: Path, stamp: int) -> Any:
    return load_object_anew(path)


def _signature(content: bytes, name: str, rests_on: str) -> bytes:
    told = f"{name}\0{rests_on}\0".encode()
    return hmac.new(_key(), told + content, hashlib.blake2b).digest()[:_MAC_BYTES]


@lru_cache(maxsize=1)
def _key() -> bytes:
    """Return this user's key, made on first use; where it cannot be kept, one for this process alone."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    path = Path(base) / "vivarig" / "key"
    try:
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(secrets.token_bytes(_KEY_BYTES))
        key = path.read_bytes()
        return key if len(key) == _KEY_BYTES else secrets.token_bytes(_KEY_BYTES)
    except FileExistsError:  # another process made it just now
        return path.read_bytes() or secrets.token_bytes(_KEY_BYTES)
    except (OSError, RuntimeError):
        return secrets.token_bytes(_KEY_BYTES)
