"""The timeline of a fleet of real servers: recorded by one process, followed by another."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fleettui.demo.launcher import DemoFleet

SRC = str(Path(__file__).resolve().parents[2] / "src")
LIMIT_S = 40.0


class Command:
    """A `fleettui …` that keeps running; its JSON lines arrive in `lines`."""

    def __init__(self, environment: dict[str, str], *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fleettui", *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **environment, "PYTHONPATH": SRC},
        )  # fmt: skip
        self.lines: queue.Queue[str] = queue.Queue()
        self.said: queue.Queue[str] = queue.Queue()
        for stream, lines in ((self.process.stdout, self.lines), (self.process.stderr, self.said)):
            threading.Thread(target=self._read, args=(stream, lines), daemon=True).start()

    def end(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(20)

    @staticmethod
    def _read(stream: Any, lines: queue.Queue[str]) -> None:
        for line in stream:
            lines.put(line)


class Timeline:
    """Events as `events --follow --json` printed them."""

    def __init__(self, command: Command) -> None:
        self._command = command
        self.seen: list[dict[str, Any]] = []

    def wait_for(self, machine: str, kind: str, **details: Any) -> dict[str, Any]:
        """The next event of that kind; what came before it stays in `seen`."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            left = deadline - time.monotonic()
            assert left > 0, f"no {kind} of {machine}; seen: {[event['text'] for event in self.seen]}"
            try:
                event = json.loads(self._command.lines.get(timeout=left))
            except queue.Empty:
                continue
            self.seen.append(event)
            if (event["machine"], event["kind"]) == (machine, kind) and details.items() <= event[
                "details"
            ].items():
                return event  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def fleet() -> Iterator[DemoFleet]:
    """Three machines that do only what they are told to."""
    with DemoFleet(machines=3, is_calm=True, speed=4, arguments=["--at", "0"]) as running:
        yield running


def events(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fleettui", "events", *arguments],
        capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, **environment, "PYTHONPATH": SRC},
    )  # fmt: skip


def test_what_happens_is_recorded_followed_and_remembered(fleet: DemoFleet, tmp_path: Path) -> None:
    environment = {**fleet.environment, "FLEETTUI_STATE_DIR": str(tmp_path / "state")}
    follow = Command(environment, "events", "--follow", "--json")
    timeline = Timeline(follow)
    watch = Command(environment, "status", "--watch", "--json", "--interval", "1")
    try:
        assert "nobody records at the moment" in follow.said.get(timeout=20)
        assert "recorded by status --watch" in follow.said.get(timeout=20)
        for _ in range(4):  # by then every machine was read
            watch.lines.get(timeout=20)

        fleet.command("load ada llama3.1:8b")
        assert timeline.wait_for("ada", "loaded", model="llama3.1:8b")["severity"] == "note"
        assert {event["kind"] for event in timeline.seen} <= {"loaded", "evicted"}, "a start tells nothing"
        fleet.command("unload ada llama3.1:8b")
        timeline.wait_for("ada", "unloaded", model="llama3.1:8b")
        fleet.command("load ada qwen3:8b 20s")
        timeline.wait_for("ada", "loaded", model="qwen3:8b")
        timeline.wait_for("ada", "expired", model="qwen3:8b")

        fleet.command("load cleo gemma3:27b")
        assert timeline.wait_for("cleo", "evicted")["details"]["for"] == ["gemma3:27b"]
        timeline.wait_for("cleo", "loaded", model="gemma3:27b")

        fleet.command("engine cleo off")
        timeline.wait_for("cleo", "engine_down", port=fleet.ready["machines"][2]["engine_port"])
        fleet.command("stop bora")
        assert timeline.wait_for("bora", "offline")["details"]["from"] in ("healthy", "degraded")
        fleet.command("engine cleo on")
        timeline.wait_for("cleo", "engine_up")
        fleet.command("start bora")
        assert timeline.wait_for("bora", "back")["details"]["after_s"] > 0

        path = fleet.machines_dir / "bora.yaml"
        text = path.read_text()
        path.write_text(text + "note: moved to rack 4\n")
        assert "note" in timeline.wait_for("bora", "file")["details"]["keys"]
        path.write_text(text + "role: [\n")
        timeline.wait_for("bora", "file", change="broken")
        path.write_text(text)
        timeline.wait_for("bora", "file", change="mended")
        assert watch.end() == 128 + signal.SIGTERM

        fleet.command("load ada llama3.1:8b")
        assert "nobody records at the moment" in follow.said.get(timeout=30)
        watch = Command(environment, "status", "--watch", "--json", "--interval", "1")
        unseen = timeline.wait_for("ada", "unseen")
        assert [item["model"] for item in unseen["details"]["events"]] == ["llama3.1:8b"]
        assert follow.end(signal.SIGINT) == 130
    finally:
        watch.end()
        follow.end()

    document = json.loads(events(environment, "--json").stdout)
    assert document["recorded_by"] is None
    recorded = [(event["machine"], event["kind"]) for event in document["events"]]
    assert {(event["machine"], event["kind"]) for event in timeline.seen} <= set(recorded)
    loaded: dict[str, int] = {}
    for event in document["events"]:
        if event["kind"] in ("loaded", "unloaded", "expired", "evicted"):
            key = f"{event['machine']} {event['details']['model']}"
            loaded[key] = loaded.get(key, 0) + (1 if event["kind"] == "loaded" else -1)
    assert set(loaded.values()) <= {-1, 0, 1}

    narrowed = events(environment, "bora", "--kind", "offline", "--kind", "back")
    lines = narrowed.stdout.splitlines()
    assert [line.split()[1] for line in lines] == ["bora", "bora"]
    assert "offline: " in lines[0]
    assert "back after " in lines[1]
    assert "nobody records at the moment" in narrowed.stderr
    assert "\x1b" not in narrowed.stdout
