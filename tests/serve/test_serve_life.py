"""How the server starts and ends, what it stores, and how it says that it cannot run."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from served import SRC, Served, Stream

from fleettui.demo.launcher import DemoFleet
from fleettui.store.database import Store
from fleettui.store.events import read_writer
from fleettui.store.snapshots import load_for_routing


def run(*arguments: str, code: str | None = None) -> subprocess.CompletedProcess[str]:
    program = ["-m", "fleettui"] if code is None else ["-c", code]
    return subprocess.run(
        [sys.executable, *program, *arguments],
        env={**os.environ, "PYTHONPATH": SRC}, cwd="/", stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip


def folders(tmp_path: Path) -> tuple[str, ...]:
    (tmp_path / "machines").mkdir(exist_ok=True)
    return ("--machines", str(tmp_path / "machines"), "--state-dir", str(tmp_path / "state"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_streams_and_files_in_order(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "machines").mkdir()
    (tmp_path / "machines" / "here.yaml").write_text(
        "name: here\nrole: r\nhardware: {}\nnetwork: {hostname: 127.0.0.1}\nmodels: []\nssh: local\n"
    )
    options = (*folders(tmp_path), "--interval", "0.5")
    with Served(tmp_path / "stderr", {}, *options) as served:
        served.ask("/api/route", model="x")  # every machine has answered, so snapshots are stored
        stream = Stream(served)
        stream.until("machines")
        assert served.json("/api/system")["name"] == "here"
        assert served.end(number) == 128 + number
        while stream.read() is not None:  # to its end, which is no broken chunk
            pass
        with pytest.raises(ConnectionRefusedError):
            served.ask("/health")
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["state.db"]
    said = served.log.read_text().splitlines()
    assert len(said) == 1, said


def test_route_answers_from_what_it_stores(fleet: DemoFleet, served: Served) -> None:
    deadline = time.monotonic() + 60
    stored = None
    while stored is None:  # once an interval
        assert time.monotonic() < deadline
        with Store.open(str(fleet.state_dir)) as store:
            stored = load_for_routing(store, str(fleet.machines_dir))
            writer = read_writer(store, str(fleet.machines_dir))
        time.sleep(0.05)
    assert writer is not None
    assert writer.kind == "serve"
    assert len(stored.fleet.machines) == 8
    assert all(machine.last_seen is not None for machine in stored.fleet.machines)


def test_two_servers_over_one_fleet(fleet: DemoFleet, served: Served, tmp_path: Path) -> None:
    """As beside a dashboard: each polls for itself, one of them records events."""
    with Served(tmp_path / "stderr", fleet.environment) as second:
        chosen = second.json("/api/route", model="llama3.1:70b")["chosen"]["name"]
        assert chosen == served.json("/api/route", model="llama3.1:70b")["chosen"]["name"]
        assert second.json("/api/events")["recorded_by"] == "serve"
        assert second.json("/health")["notices"] == []


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("serve", "--listen", f"127.0.0.1:{port}", *folders(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in done.stderr
    assert "--listen 127.0.0.1:3039" in done.stderr
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("listen", ["0.0.0.0:3038", "[::]:3038"])
def test_addresses_that_others_reach_are_refused(tmp_path: Path, listen: str) -> None:
    done = run("serve", "--listen", listen, *folders(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{listen} can be reached from other machines" in done.stderr
    assert "token" in done.stderr
    assert "ssh -L 3038:127.0.0.1:3038" in done.stderr


def test_no_address_at_all(tmp_path: Path) -> None:
    done = run("serve", "--listen", "anywhere", *folders(tmp_path))
    assert done.returncode == 2
    assert "'anywhere' is no address to listen on; write 127.0.0.1:3038" in done.stderr


@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_without_the_optional_part(tmp_path: Path, missing: str) -> None:
    code = f"""
import importlib.util, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == {missing!r} else find(name, *more)
from fleettui.cli.main import main
raise SystemExit(main(sys.argv[1:]))
"""
    done = run("serve", *folders(tmp_path), code=code)
    assert (done.returncode, done.stdout) == (2, "")
    assert missing in done.stderr
    assert "install fleettui[serve]" in done.stderr
    assert run("serve", "--help", code=code).returncode == 0


def test_wrong_settings_are_told_before_anything_listens(tmp_path: Path, home: Path) -> None:
    settings = home / ".config" / "fleettui" / "settings.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text("intervall_s: 2\n")
    done = run("serve", *folders(tmp_path))
    assert done.returncode == 2
    assert "interval_s" in done.stderr
