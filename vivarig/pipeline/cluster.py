"""Work spread over a Dask cluster: the parts of each recording are its tasks, done by the same code as locally.

A recording's folder must be seen under the same path by every worker (a shared file system). A worker that dies loses
nothing but the parts it was in: they are tried again elsewhere.
"""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from calibration.foundation.errors import InputError, SolveError, VivarigError, one_line
from capture.recordings.recording import load_recording
from vivarig.console.progress import relay_progress
from vivarig.pipeline import RunOptions, StageOutcome, run_recording

__all__ = ["ClusterTrust", "DaskWorkers", "run_on_cluster"]

_AT_ONCE = 16
"""Recordings that are coordinated at the same time."""
_PATIENCE_S = 60.0
"""How long a scheduler may take to answer: those of busy login nodes are slow."""


class DaskWorkers:
    """Runs tasks on a Dask cluster."""

    def __init__(self, client: Any) -> None:
        self._client = client
        # not pure: the outcome is in files, so that the same call must run again
        self._executor = client.get_executor(pure=False)

    @property
    def capacity(self) -> int:
        """Tasks to hand out at a time: twice the threads of the workers there are now, so that none waits for us."""
        return 2 * max(1, sum(int(count) for count in self._client.nthreads().values()))

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Run a task on any worker."""
        future: Future[Any] = self._executor.submit(_quietly, function, *args)
        return future


def _quietly(function: Callable[..., Any], *args: Any) -> Any:
    """Run a task without a progress bar on the worker's terminal."""
    relay_progress(lambda label, done, total: None)
    return function(*args)


@dataclass(frozen=True)
class ClusterTrust:
    """Whom to trust: whoever reaches a plain Dask scheduler can run any code as its user.

    Attributes:
        certificates: folder with ``ca.pem``, ``cert.pem`` and ``key.pem`` for TLS; None: none.
        insecure: use a plain address of another machine all the same (a network that nobody else is on).
    """

    certificates: Path | None = None
    insecure: bool = False

    def check(self, address: str) -> None:
        """Refuse a plain address of another machine unless that was said to be right."""
        scheme, _, rest = address.rpartition("://")
        try:
            parts = urlsplit(f"//{rest}")
            host, port = parts.hostname, parts.port
        except ValueError:
            host = port = None
        if host is None or port is None:
            raise InputError(f"--cluster wants an address like tcp://login1:8786, got {address!r}")
        if self.certificates is not None and scheme != "tls":
            raise InputError(f"--cluster {address}: with --cluster-security the address begins with tls://")
        if self.certificates is None and scheme == "tls":
            raise InputError(f"--cluster {address}: TLS needs --cluster-security FOLDER (ca.pem, cert.pem, key.pem)")
        if self.certificates is None and not self.insecure and not _is_here(host):
            raise InputError(
                f"--cluster {address}: a plain scheduler runs anyone's code who reaches it; use TLS "
                "(--cluster-security FOLDER, tls://...), or --insecure on a network of your own "
                "(docs/tutorials/cluster.md)"
            )

    def security(self) -> Any:
        """Return Dask's own description of the certificates, None without."""
        if self.certificates is None:
            return None
        files = {name: self.certificates / f"{name}.pem" for name in ("ca", "cert", "key")}
        for path in files.values():
            if not path.is_file():
                raise InputError(
                    f"--cluster-security {self.certificates}: no {path.name}; wanted ca, cert and key .pem"
                )
        from distributed.security import Security

        return Security(
            require_encryption=True, tls_ca_file=str(files["ca"]), tls_client_cert=str(files["cert"]),
            tls_client_key=str(files["key"]),
        )  # fmt: skip


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@contextmanager
def dask_workers(address: str, trust: ClusterTrust | None = None) -> Iterator[DaskWorkers]:
    """Yield the workers of the Dask scheduler at ``address``."""
    trust = trust or ClusterTrust()
    trust.check(address)
    try:
        import distributed
    except ImportError:
        raise InputError("running on a cluster needs Dask: in the clone, pip install -e '.[cluster]'") from None
    try:
        client = distributed.Client(address, timeout=_PATIENCE_S, security=trust.security())
    except OSError:
        certified = trust.certificates is not None
        way = f"or it does not take the certificates of {trust.certificates}" if certified else "start one"
        raise InputError(f"no Dask scheduler answers at {address}; {way} (`dask scheduler`)") from None
    except ValueError as error:
        raise InputError(f"--cluster wants an address like tcp://login1:8786, got {address!r} ({error})") from None
    try:
        if not client.nthreads():  # they may come later, as jobs of a queue do
            sys.stderr.write(f"{address}: no workers yet; waiting for some (`dask worker {address}`)\n")
        yield DaskWorkers(client)
    finally:
        client.close()


def run_on_cluster(
    folders: Sequence[Path],
    options: RunOptions,
    *,
    address: str,
    trust: ClusterTrust | None = None,
    on_done: Callable[[int, int], None] | None = None,
) -> dict[Path, list[StageOutcome] | str]:
    """Run recordings on the cluster at ``address``; their outcomes, or the error, by folder."""
    with dask_workers(address, trust) as workers, ThreadPoolExecutor(min(_AT_ONCE, len(folders))) as pool:

        def one(folder: Path) -> list[StageOutcome] | str:
            try:
                return run_recording(load_recording(folder), options, workers=workers, show=False)
            except (VivarigError, OSError) as error:
                return one_line(error)
            except RuntimeError as error:
                return str(SolveError(f"a worker failed: {error}"))

        outcomes: dict[Path, list[StageOutcome] | str] = {}
        for done, (folder, result) in enumerate(zip(folders, pool.map(one, folders), strict=True), 1):
            outcomes[folder] = result
            if on_done is not None:
                on_done(done, len(folders))
        return outcomes
