"""A few machines of a demo fleet with a folder and a state of their own: several drains side by side."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fleettui.demo.launcher import DemoFleet

SRC = str(Path(__file__).resolve().parents[2] / "src")
SMALL = "llama3.1:8b"
LIMIT_S = 150.0
"""Of every wait: far more than any of them takes, also on a machine with much else to do."""


def wait_until(is_met: Callable[[], bool], what: str, limit_s: float = LIMIT_S) -> None:
    """Waits for a condition; fails when it does not come true."""
    deadline = time.monotonic() + limit_s
    while not is_met():
        assert time.monotonic() < deadline, f"{what}: it never came true"
        time.sleep(0.02)


class Run:
    """A `fleettui` that works while the test does something."""

    def __init__(self, arguments: Sequence[str], environment: dict[str, str], log: Path):
        self.arguments = arguments
        self._log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "fleettui", *arguments], stdin=subprocess.DEVNULL,
                stdout=file, stderr=subprocess.STDOUT, env=environment, cwd="/",
            )  # fmt: skip

    @property
    def said(self) -> str:
        """What it printed so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def wait(self, limit_s: float = LIMIT_S) -> int:
        """Its exit code."""
        try:
            return self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.arguments} did not end: {self.said[-1500:]}") from None

    def kill(self) -> None:
        """SIGKILL; it is gone when this returns."""
        self.process.kill()
        self.process.wait()

    def interrupt(self) -> None:
        """Ctrl+C."""
        self.process.send_signal(signal.SIGINT)


class Arena:
    """Machines of a fleet, empty at the start, seen by a `fleettui` that knows no others."""

    def __init__(self, fleet: DemoFleet, folder: Path, *names: str, settings: dict[str, str] | None = None):
        self.fleet = fleet
        self.names = names
        self.folder = folder
        self._runs: list[Run] = []
        (folder / "machines").mkdir(parents=True)
        (folder / "state").mkdir()
        for name in names:
            shutil.copy(fleet.machines_dir / f"{name}.yaml", folder / "machines")
            fleet.command(f"reset {name}")
        self.environment = {
            **os.environ, "PYTHONPATH": SRC, "FLEETTUI_MACHINES": str(folder / "machines"),
            "FLEETTUI_STATE_DIR": str(folder / "state"), **(settings or {}),
        }  # fmt: skip

    # --- the machines

    def load(self, name: str, *models: str, keep_alive: str = "-1", context: int | None = None) -> None:
        """Has these models resident there, one after the other; `context`: another than its own."""
        for model in models:
            self.fleet.command(f"install {name} {model}")
            self.fleet.command(f"load {name} {model} {keep_alive} {context or ''}")
            self.fleet.command(f"hurry {name}")
            wait_until(lambda: not self.fleet.command(f"state {name}")["loading"], f"{model} on {name}")
            assert model in self.loaded(name)

    def install(self, name: str, *models: str) -> None:
        """Puts their files on its disk."""
        for model in models:
            self.fleet.command(f"install {name} {model}")

    def loaded(self, name: str) -> set[str]:
        """What its Ollama lists, apart from what still loads."""
        state = self.fleet.command(f"state {name}")
        return {item["name"] for item in state["loaded"]} - set(state["loading"])

    def copy_on(self, name: str, model: str) -> dict[str, Any]:
        """The entry of its Ollama's list."""
        rows = self.fleet.command(f"state {name}")["loaded"]
        return next(dict(row) for row in rows if row["name"] == model)

    # --- the program

    def start(self, *arguments: str) -> Run:
        """Begins a command."""
        run = Run(arguments, self.environment, self.folder / f"run{len(self._runs)}.log")
        self._runs.append(run)
        return run

    def drain(self, *machines: str, options: Sequence[str] = ()) -> Run:
        """Begins a drain that asks nothing and hardly waits for idle copies."""
        words = ["drain", "start", *machines, "--reason", "PSU swap", "--yes", "--idle-wait", "0.5"]
        return self.start(*words, *options)

    def call(self, *arguments: str) -> Run:
        """A command, once it has ended."""
        run = self.start(*arguments)
        run.wait()
        return run

    def route(self, model: str) -> str:
        """Who is chosen now; else why nobody is."""
        words = ("--json", "-q", "--no-lease", "--max-age", "0", "--deadline", "60")
        run = self.call("--route", model, *words)
        chosen = json.loads(run.said)["chosen"]
        return str(chosen["name"]) if chosen else run.said

    def close(self) -> None:
        """Ends what still runs."""
        for run in self._runs:
            if run.process.poll() is None:
                run.kill()

    # --- the state

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Of the state database; nothing before there is one."""
        path = self.folder / "state" / "state.db"
        if not path.exists():
            return []
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)
        try:
            return list(connection.execute(query))
        except sqlite3.OperationalError:  # its tables are not made yet
            return []
        finally:
            connection.close()

    def journal(self) -> list[tuple[str, str, str, str]]:
        """Step, copy, target and result of each entry, oldest first."""
        return [tuple(row) for row in
                self.rows("SELECT step, copy, target, result FROM drain_journal ORDER BY seq")]  # type: ignore[misc]  # fmt: skip

    def steps(self) -> list[str]:
        return [entry[0] for entry in self.journal()]

    def wait_for(self, step: str, run: Run) -> None:
        """Until that step is in the journal."""
        self.wait_during(run, lambda: step in self.steps(), step)

    def wait_for_load(self, name: str, run: Run) -> None:
        """Until its Ollama loads something."""
        self.wait_during(
            run, lambda: bool(self.fleet.command(f"state {name}")["loading"]), f"a load on {name}"
        )

    def wait_during(self, run: Run, is_met: Callable[[], bool], what: str) -> None:
        """Until that is so, while the program runs."""

        def is_there() -> bool:
            is_over = run.process.poll() is not None
            if is_met():
                return True
            assert not is_over, f"ended before {what}: {self.told(run)}"
            return False

        wait_until(is_there, what)

    def state_of(self, name: str) -> tuple[str, str] | None:
        """State and text of its drain as stored."""
        rows = self.rows(f"SELECT state, text FROM drains WHERE machine = '{name}'")  # noqa: S608 - a test's
        return (str(rows[0][0]), str(rows[0][1])) if rows else None

    def told(self, run: Run) -> str:
        """All that explains a failure."""
        lines = [" ".join(entry) for entry in self.journal()]
        return f"{run.said[-2000:]}\njournal:\n" + "\n".join(lines)


MakeArena = Callable[..., Arena]
"""By the numbers of its machines."""
