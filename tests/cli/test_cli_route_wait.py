"""`--wait`, `--check-reachable`, `--warm` and the early answer of `--route`."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_runner import SRC, Cli
from stored_fleet import MODEL, StoredFleet

from fleettui.demo.launcher import DemoFleet


def start(fleet: StoredFleet, *options: str) -> subprocess.Popen[str]:
    """`--route` that goes on while the test does something."""
    return subprocess.Popen(
        [sys.executable, "-m", "fleettui", "--route", MODEL, "--format", "name", *options],
        env={**fleet.environment, "PYTHONPATH": SRC}, stdin=subprocess.DEVNULL, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_a_machine_that_becomes_eligible_ends_the_waiting(tmp_path: Path) -> None:
    fleet = StoredFleet(tmp_path, "ab")
    fleet.set_maintenance("a", "b", is_on=True)
    asker = start(fleet, "--wait", "60s")
    assert asker.stderr is not None
    assert asker.stderr.readline().startswith(f"no machine is eligible for '{MODEL}' yet; waiting up to ")
    fleet.set_maintenance("b", is_on=False)
    answer, reasons = asker.communicate(timeout=60)
    assert (asker.returncode, answer) == (0, "b\n")
    assert reasons.startswith(f"route {MODEL}  (1 eligible of 2")
    assert [lease.machine for lease in fleet.leases()] == ["b"]


def test_waiting_ends_as_the_last_decision_does(tmp_path: Path) -> None:
    fleet = StoredFleet(tmp_path, "ab")
    fleet.set_maintenance("a", "b", is_on=True)
    done = fleet.cli("--route", MODEL, "--wait", "0.5", "-q")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
    document = json.loads(fleet.cli("--route", MODEL, "--wait", "0.5", "-q", "--json").stdout)
    assert (document["chosen"], document["exit_code"]) == (None, 1)


def test_max_age_0_asks_the_machines_while_waiting_too(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        fleet = StoredFleet(tmp_path, "ab")
        fleet.reach_by_ssh(closed.getsockname()[1], interval_s=600.0)
        assert fleet.cli("--route", MODEL, "--wait", "1s", "-q", "--no-lease").returncode == 0
        done = fleet.cli("--route", MODEL, "--wait", "1s", "--max-age", "0")
    assert (done.returncode, done.stdout) == (4, "")
    assert "no answer within 10 s" not in done.stderr, "it waited for one"


def test_nobody_waits_for_a_model_that_nobody_knows(tmp_path: Path) -> None:
    fleet = StoredFleet(tmp_path, "a")
    started_at = time.monotonic()
    done = fleet.cli("--route", "no-such-model", "--wait", "1h", "-q")
    assert (done.returncode, done.stdout) == (3, "")
    assert time.monotonic() - started_at < 60


def test_ctrl_c_ends_the_waiting(tmp_path: Path) -> None:
    fleet = StoredFleet(tmp_path, "a")
    fleet.set_maintenance("a", is_on=True)
    asker = start(fleet, "--wait", "1h")
    assert asker.stderr is not None
    assert "waiting up to" in asker.stderr.readline()
    asker.send_signal(signal.SIGINT)
    answer, said = asker.communicate(timeout=20)
    assert (asker.returncode, answer, said) == (130, "", "")


@pytest.fixture
def ports() -> Iterator[list[int]]:
    """One that nobody listens on, one that takes connections."""
    with socket.socket() as closed, socket.create_server(("127.0.0.1", 0)) as open_one:
        closed.bind(("127.0.0.1", 0))
        yield [closed.getsockname()[1], open_one.getsockname()[1]]


def test_only_what_takes_a_connection_from_here(tmp_path: Path, ports: list[int]) -> None:
    fleet = StoredFleet(tmp_path, "ab", ports)
    assert fleet.route("--no-lease") == "a"
    done = fleet.cli("--route", MODEL, "--check-reachable")
    assert (done.returncode, done.stdout) == (0, f"127.0.0.1:{ports[1]}\n")
    assert f" - a  not_reachable 127.0.0.1:{ports[0]}: connection refused" in done.stderr.splitlines()
    assert [lease.machine for lease in fleet.leases()] == ["b"]


def test_nothing_that_takes_a_connection_is_exit_1(tmp_path: Path, ports: list[int]) -> None:
    fleet = StoredFleet(tmp_path, "a", ports)
    done = fleet.cli("--route", MODEL, "--check-reachable", "--json", "-q")
    document = json.loads(done.stdout)
    assert (done.returncode, document["chosen"]) == (1, None)
    assert document["rejected"][0]["codes"] == ["not_reachable"]
    assert fleet.leases() == ()


@pytest.fixture(scope="module")
def moving_fleet() -> Iterator[DemoFleet]:
    """Three machines without clients of their own, ten times as fast as life."""
    with DemoFleet(machines=3, is_calm=True, speed=10, arguments=["--at", "0"]) as fleet:
        yield fleet


def rows(fleet: DemoFleet, table: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(fleet.state_dir / "state.db")
    try:
        return connection.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608 - a test's own
    finally:
        connection.close()


def test_a_cold_model_is_loaded_before_the_answer(moving_fleet: DemoFleet) -> None:
    cli = Cli(moving_fleet.environment)
    done = cli("--route", "qwen3:8b", "--warm", "--format", "name")
    assert (done.returncode, done.stdout) == (0, "ada\n"), done.stderr
    lines = done.stderr.splitlines()
    assert any(line.startswith("loading qwen3:8b on ada: 0 of ~") for line in lines)
    assert any(line.startswith("qwen3:8b is loaded on ada: ") and " GiB of VRAM, " in line for line in lines)
    again = json.loads(cli("--route", "qwen3:8b", "--json", "-q", "--no-lease").stdout)
    assert (again["chosen"]["name"], again["chosen"]["tier"]) == ("ada", 0)
    assert [row[1] for row in rows(moving_fleet, "load_rates")] == ["ada"]
    (lease,) = rows(moving_fleet, "leases")
    assert (lease[7], lease[8]) == ("resident", 0), "what is loaded reserves nothing"


def test_another_context_is_loaded_too(moving_fleet: DemoFleet) -> None:
    cli = Cli(moving_fleet.environment)
    done = cli("--route", "llama3.1:8b", "--warm", "--context", "2048", "--format", "name", "--no-lease")
    assert done.returncode == 0, done.stderr
    again = cli("--route", "llama3.1:8b", "--context", "2048", "--json", "-q", "--no-lease")
    chosen = json.loads(again.stdout)["chosen"]
    assert (chosen["name"], chosen["tier"], chosen["resident_ctx"]) == (done.stdout.strip(), 0, 2048)


def test_what_is_resident_is_left_alone(moving_fleet: DemoFleet) -> None:
    done = Cli(moving_fleet.environment)("--route", "nomic-embed-text", "--warm", "--no-lease")
    assert done.returncode == 0
    assert "load" not in done.stderr.replace("loaded", "")


def test_a_load_that_fails_is_exit_1_and_gives_the_lease_back(
    moving_fleet: DemoFleet, tmp_path: Path
) -> None:
    cli = Cli({**moving_fleet.environment, "FLEETTUI_STATE_DIR": str(tmp_path)})
    moving_fleet.command("busy cleo on")
    try:
        done = cli("--route", "qwen2.5-coder:32b", "--warm", "--context", "1024")
    finally:
        moving_fleet.command("busy cleo off")
    assert (done.returncode, done.stdout) == (1, "")
    assert "fleettui route: qwen2.5-coder:32b on cleo was not loaded: server busy" in done.stderr
    connection = sqlite3.connect(tmp_path / "state.db")
    assert connection.execute("SELECT count(*) FROM leases").fetchone() == (0,)
    connection.close()


def test_nobody_waits_for_a_machine_that_cannot_be_better(moving_fleet: DemoFleet, tmp_path: Path) -> None:
    """A dashboard left its last snapshot: by that the machine that is silent now has no such model. The copy
    that is asked for is pinned, however long this takes."""
    cli = Cli({**moving_fleet.environment, "FLEETTUI_STATE_DIR": str(tmp_path)})
    environment = {**os.environ, **cli.environment, "PYTHONPATH": SRC}
    watcher = subprocess.Popen(
        [sys.executable, "-m", "fleettui", "status", "--watch", "--json", "--interval", "0.5"],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert watcher.stdout is not None
    for _ in watcher.stdout:
        if (tmp_path / "state.db").exists() and stored(tmp_path):
            break
    watcher.terminate()
    watcher.communicate(timeout=20)
    moving_fleet.command("hold bora")
    try:
        question = ("--route", "nomic-embed-text", "--max-age", "0", "-q", "--json")
        early = json.loads(cli(*question, "--deadline", "60").stdout)
        late = json.loads(cli(*question, "--deadline", "4", "--exhaustive").stdout)
    finally:
        moving_fleet.command("release bora")
    assert (early["chosen"]["tier"], late["chosen"]["tier"]) == (0, 0)
    assert early["took_ms"] < 60_000
    assert late["took_ms"] >= 4000
    texts = [{item["name"]: item["text"] for item in found["rejected"]}["bora"] for found in (early, late)]
    assert texts[0].startswith("timeout: no answer yet"), "nobody missed a deadline"
    assert texts[1].startswith("timeout: no answer within 4 s")


def stored(state_dir: Path) -> bool:
    """A whole snapshot is there."""
    connection = sqlite3.connect(state_dir / "state.db")
    try:
        return connection.execute("SELECT 1 FROM fleet_snapshots").fetchone() is not None
    finally:
        connection.close()
