"""Recordings on Dask workers: the same bytes as a local run, and a dying worker survived."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from small_recordings import cut_recording, differences

from calibration.foundation.errors import InputError
from vivarig.cli import main
from vivarig.pipeline import RunOptions, cluster, run_recording, tasks
from vivarig.pipeline.cluster import ClusterTrust, DaskWorkers, run_on_cluster

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # Dask warns of its own closing order

UNTIL = RunOptions("hull", workers=1, part_frames=2)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small recording done locally."""
    place = tmp_path_factory.mktemp("cluster") / "local"
    run_recording(cut_recording(place, frames=6, cameras=3), UNTIL)
    return place


def copies(finished: Path, tmp_path: Path, count: int) -> list[Path]:
    targets = [tmp_path / f"r{index}" for index in range(count)]
    for target in targets:
        shutil.copytree(finished, target, ignore=shutil.ignore_patterns("results"))
    return targets


def test_parts_of_two_recordings_on_two_workers_one_of_which_dies(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker that takes the first part is killed in the middle of it; Dask gives the part to the other."""
    targets = copies(finished, tmp_path, 2)
    victims: list[int] = []
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as local:
        submit = DaskWorkers.submit

        def deadly(self: DaskWorkers, function: Any, /, *args: Any) -> Any:
            if not victims and args[0] is tasks.part:
                victims.append(next(iter(local.workers.values())).pid)
                os.kill(victims[0], signal.SIGKILL)
            return submit(self, function, *args)

        monkeypatch.setattr(DaskWorkers, "submit", deadly)
        outcomes = run_on_cluster([*targets, tmp_path / "none"], UNTIL, address=local.scheduler_address)
        another = str(copies(finished, tmp_path / "more", 1)[0])
        assert main(["run", another, "--cluster", local.scheduler_address, "--until", "silhouettes"]) == 0
    assert victims
    assert "no such file" in str(outcomes[tmp_path / "none"])
    for target in targets:
        assert isinstance(outcomes[target], list), outcomes[target]
        assert not differences(target, finished)


def certificates(folder: Path) -> Path:
    """Make an authority of our own and a certificate that it signs."""
    folder.mkdir()
    for words in (
        "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=lab -keyout cakey.pem -out ca.pem",
        "req -newkey rsa:2048 -nodes -subj /CN=127.0.0.1 -keyout key.pem -out cert.csr",
        "x509 -req -in cert.csr -CA ca.pem -CAkey cakey.pem -CAcreateserial -days 2 -out cert.pem",
    ):
        subprocess.run(["openssl", *words.split()], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes certificates with openssl")
def test_a_scheduler_with_certificates_is_used_and_others_are_not_let_in(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, another = copies(finished, tmp_path, 2)
    ours, others = certificates(tmp_path / "ours"), certificates(tmp_path / "others")
    names = {"ca_file": "ca.pem", "scheduler_cert": "cert.pem", "scheduler_key": "key.pem", "worker_cert": "cert.pem",
             "worker_key": "key.pem", "client_cert": "cert.pem", "client_key": "key.pem"}  # fmt: skip
    security = distributed.Security(
        require_encryption=True, **{f"tls_{name}": str(ours / file) for name, file in names.items()}
    )
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None, protocol="tls://", security=security
    ) as local:
        address = local.scheduler_address
        assert address.startswith("tls://127.0.0.1:")
        with monkeypatch.context() as patched, pytest.raises(InputError, match="does not take the certificates"):
            patched.setattr(cluster, "_PATIENCE_S", 5.0)  # of one that never comes in
            run_on_cluster([target], UNTIL, address=address, trust=ClusterTrust(others))
        outcomes = run_on_cluster([target], UNTIL, address=address, trust=ClusterTrust(ours))
        words = ["--cluster", address, "--cluster-security", str(ours), "--until", "silhouettes"]
        assert main(["run", str(another), *words]) == 0 and (another / "results" / "silhouettes.h5").is_file()
    assert isinstance(outcomes[target], list), outcomes[target]
    assert not differences(target, finished)


def test_no_scheduler_is_said(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_PATIENCE_S", 2.0)
    with pytest.raises(InputError, match="no Dask scheduler answers"):
        run_on_cluster([finished], UNTIL, address="tcp://127.0.0.1:9")


def test_no_address_is_said(finished: Path) -> None:
    with pytest.raises(InputError, match="wants an address like tcp://login1:8786, got 'nowhere'"):
        run_on_cluster([finished], UNTIL, address="nowhere")


@pytest.mark.parametrize(
    ("address", "trust", "said"),
    [
        ("tcp://login1:8786", ClusterTrust(), "runs anyone's code"),
        ("10.0.0.7:8786", ClusterTrust(), "runs anyone's code"),
        ("tls://login1:8786", ClusterTrust(), "--cluster-security FOLDER"),
        ("tcp://login1:8786", ClusterTrust(Path("nowhere")), "begins with tls://"),
    ],
)
def test_a_scheduler_that_trusts_everybody_is_refused(address: str, trust: ClusterTrust, said: str) -> None:
    with pytest.raises(InputError, match=said):
        trust.check(address)


def test_loopback_insecure_and_certificates_pass(tmp_path: Path) -> None:
    for address in ("tcp://127.0.0.1:8786", "localhost:8786", "tcp://[::1]:8786"):
        ClusterTrust().check(address)
    ClusterTrust(insecure=True).check("tcp://login1:8786")
    ClusterTrust(tmp_path).check("tls://login1:8786")
    with pytest.raises(InputError, match=r"no ca\.pem"):
        ClusterTrust(tmp_path).security()
    for name in ("ca", "cert", "key"):
        (tmp_path / f"{name}.pem").write_text("x")
    assert ClusterTrust(tmp_path).security().require_encryption
