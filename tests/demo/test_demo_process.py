"""The demo fleet's process: it starts, says where it is, obeys, and never outlives its parent."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import yaml

from fleettui.demo.launcher import DemoError, DemoFleet

Until = Callable[[Callable[[], bool]], None]
COMMAND = (sys.executable, "-m", "fleettui.demo", "--machines", "1")
PARENT = """
import sys, time
from fleettui.demo.launcher import DemoFleet
fleet = DemoFleet(machines=1).start()
print(fleet.pid, fleet.directory, flush=True)
time.sleep(600)
"""
LOADED = """
import sys
import fleettui.demo.launcher
print([name for name in sys.modules if name.partition(".")[0] in
       ("asyncio", "asyncssh", "cryptography", "yaml", "httpx", "pydantic", "textual")])
"""


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """The process started by hand."""
    process = subprocess.Popen(
        [*COMMAND, "--directory", str(tmp_path / "demo")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        yield process
        process.kill()


def test_folder_is_ready_for_use() -> None:
    with DemoFleet(machines=3, is_frozen=True, arguments=["--pending", "cleo"]) as fleet:
        assert [machine["name"] for machine in fleet.machines] == ["ada", "bora", "cleo"]
        documents = {
            path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))
            for path in fleet.machines_dir.glob("*.yaml")
        }
        assert set(documents) == {"ada", "bora", "cleo"}
        for machine in fleet.machines:
            ssh = documents[machine["name"]]["ssh"]
            assert (ssh["host"], ssh["port"], ssh["user"]) == (
                "127.0.0.1",
                machine["ssh_port"],
                machine["user"],
            )
            assert documents[machine["name"]]["network"]["port"] == machine["engine_port"]
            assert ssh.get("host_key") == (machine["host_key"] if machine["name"] != "cleo" else None)
        assert stat.S_IMODE((fleet.directory / "client_key").stat().st_mode) == 0o600
        assert stat.S_IMODE(fleet.state_dir.stat().st_mode) == 0o700
        known = (fleet.directory / "known_hosts").read_text(encoding="utf-8").splitlines()
        assert len(known) == 2
        shell = ". ./environment && echo $FLEETTUI_MACHINES && echo $FLEETTUI_STATE_DIR"
        said = subprocess.run(
            ["sh", "-c", shell], cwd=fleet.directory, capture_output=True, text=True, check=True
        ).stdout
        assert said.splitlines() == [str(fleet.machines_dir), str(fleet.state_dir)]
        assert fleet.environment["FLEETTUI_MACHINES"] == str(fleet.machines_dir)
        directory = fleet.directory
    assert not directory.exists()


def test_frozen_fleet_moves_only_when_told() -> None:
    with DemoFleet(machines=2, is_frozen=True, is_calm=True) as fleet:
        before = fleet.command("state")
        assert fleet.command("state")["now"] == before["now"]
        assert fleet.command("advance 30")["now"] == before["now"] + 30
        with pytest.raises(DemoError, match="no machine named zoe"):
            fleet.command("stop zoe")
        with pytest.raises(DemoError, match="ada has no llama9"):
            fleet.command("load ada llama9")
        fleet.command("load ada llama3.1:8b 1h")
        assert "llama3.1:8b" in [entry["name"] for entry in fleet.command("state ada")["loaded"]]


def test_schedule_takes_a_machine_away_and_brings_it_back() -> None:
    with DemoFleet(machines=2, is_frozen=True, arguments=["--at", "0"]) as fleet:
        presences = []
        for _ in range(20):
            fleet.command("advance 10")
            presences.append(fleet.command("state bora")["presence"])
    assert presences[13:20] == ["up", "away", "away", "away", "away", "up", "up"]


def test_same_seed_same_pictures() -> None:
    """Two processes at the same simulated time show the same state and the same fingerprints."""
    seen = []
    for _ in range(2):
        with DemoFleet(machines=9, is_frozen=True) as fleet:
            fleet.command("advance 60")
            state = fleet.command("state")["machines"]
            for machine in state:
                for entry in machine["loaded"]:
                    del entry["expires_at"]
            seen.append((state, [machine["host_key"] for machine in fleet.machines]))
    assert seen[0] == seen[1]


def test_start_error_is_told() -> None:
    with pytest.raises(DemoError, match="1 to 300"):
        DemoFleet(machines=301).start()
    with pytest.raises(DemoError, match="no machine named zoe"):
        DemoFleet(machines=1, arguments=["--pending", "zoe"]).start()


def test_process_that_ended_is_told(until: Until) -> None:
    with DemoFleet(machines=1) as fleet:
        os.kill(fleet.pid, signal.SIGKILL)
        with pytest.raises(DemoError, match="ended"):
            fleet.command("state")


def test_many_machines_start_and_answer() -> None:
    with DemoFleet(machines=64, arguments=["--cards-each", "8"]) as fleet:
        assert len(fleet.machines) == 64
        assert len(list(fleet.machines_dir.glob("*.yaml"))) == 64
        for machine in fleet.machines:
            with socket.create_connection(("127.0.0.1", machine["ssh_port"]), timeout=10) as greeting:
                assert greeting.recv(64).startswith(b"SSH-2.0-")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_it_cleanly(alone: subprocess.Popen[str], number: int) -> None:
    assert alone.stdout is not None
    assert json.loads(alone.stdout.readline())["ready"] is True
    alone.send_signal(number)
    assert alone.wait(15) == 0


def test_end_of_stdin_ends_it(alone: subprocess.Popen[str], tmp_path: Path) -> None:
    assert alone.stdout is not None
    assert alone.stdin is not None
    json.loads(alone.stdout.readline())
    alone.stdin.write("state ada\nnonsense\n\n")
    alone.stdin.close()
    answers = [json.loads(line) for line in alone.stdout]
    assert [answer["ok"] for answer in answers] == [True, False, False]
    assert alone.wait(15) == 0
    assert (tmp_path / "demo" / "machines" / "ada.yaml").exists(), "a given folder is kept"


def test_fleet_dies_with_its_parent(until: Until) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        try:
            assert parent.stdout is not None
            pid, directory = parent.stdout.readline().split()
            assert psutil.pid_exists(int(pid))
        finally:
            parent.kill()
        until(lambda: not is_running(int(pid)))
        until(lambda: not Path(directory).exists())


def is_running(pid: int) -> bool:
    """False for zombies: whoever inherits it may reap late."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_launcher_is_light() -> None:
    said = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"
