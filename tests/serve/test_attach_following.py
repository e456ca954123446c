"""`status --watch` and `events --follow` on a server that is killed and comes back, over its Unix socket."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from served import SRC, Served

from fleettui.demo.launcher import DemoFleet

PATIENCE_S = 60.0


@contextmanager
def running(log: Path, *arguments: str, **variables: str) -> Iterator[tuple[Path, Path]]:
    """A command that stays; its stdout and stderr."""
    out, err = log.with_suffix(".out"), log.with_suffix(".err")
    with out.open("w") as stdout, err.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "fleettui", *arguments],
            env={**os.environ, **variables, "PYTHONPATH": SRC}, cwd="/",
            stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
        )  # fmt: skip
    try:
        yield out, err
        assert process.poll() is None, err.read_text()
    finally:
        process.kill()
        process.wait()


def wait_for(path: Path, text: str, count: int = 1) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while path.read_text().count(text) < count:
        assert time.monotonic() < deadline, path.read_text()
        time.sleep(0.05)


def test_who_follows_a_server_waits_for_it(fleet: DemoFleet, tmp_path: Path) -> None:
    own = {**fleet.environment, "FLEETTUI_STATE_DIR": str(tmp_path / "server")}
    nothing = {"FLEETTUI_MACHINES": str(tmp_path / "none"), "FLEETTUI_STATE_DIR": str(tmp_path / "state")}
    socket = tmp_path / "api.sock"
    options = own, "--interval", "0.5", "--socket", str(socket)
    server = f"unix:{socket}"
    with Served(tmp_path / "first", *options) as first:
        first.json("/api/route", model="llama3.1:70b")
        with (
            running(
                tmp_path / "watch", "status", "--watch", "--json", "--server", server, **nothing
            ) as watch,
            running(tmp_path / "follow", "events", "--follow", "--server", server, **nothing) as follow,
        ):
            wait_for(watch[0], "\n", 2)
            wait_for(follow[1], f"via server {server}")
            first.process.send_signal(signal.SIGKILL)
            first.process.wait()
            wait_for(watch[1], "asked again until it is back")
            wait_for(follow[1], "asked again until it is back")
            told = watch[0].read_text().count("\n")
            with Served(tmp_path / "second", *options):
                wait_for(watch[1], "is back")
                wait_for(follow[1], "is back")
                wait_for(watch[0], "\n", told + 2)
            documents = [json.loads(line) for line in watch[0].read_text().splitlines()]
            assert all(len(document["machines"]) == 8 for document in documents)
            assert watch[1].read_text().count("cannot be reached") >= 1
    assert not (tmp_path / "state").exists()
