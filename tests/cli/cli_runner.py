"""Runs the real command in a process of its own, and writes machine files for it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

SRC = str(Path(__file__).resolve().parents[2] / "src")


@dataclass(frozen=True)
class Cli:
    """Calls `fleettui …`; the environment of a fleet is added to each call.

    Where no folder is named it is one without `./machines` and `./catalog`, as the checkout has them.
    """

    environment: dict[str, str] = field(default_factory=dict)

    def __call__(
        self, *arguments: str, cwd: Path | None = None, timeout_s: float = 60.0, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, **self.environment, **variables, "PYTHONPATH": SRC}
        return subprocess.run(
            [sys.executable, "-m", "fleettui", *arguments],
            capture_output=True, text=True, timeout=timeout_s, env=environment, cwd=cwd or "/", check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def shell(self, line: str) -> subprocess.CompletedProcess[str]:
        """The command with redirections, through `sh -c`."""
        environment = {**os.environ, **self.environment, "PYTHONPATH": SRC}
        return subprocess.run(
            ["/bin/sh", "-c", f"exec {sys.executable} -m fleettui {line}"],
            capture_output=True, text=True, timeout=60.0, env=environment, cwd="/", check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip


def write_machine(folder: Path, name: str, **lines: str) -> Path:
    """A small valid machine file; keyword arguments replace or add top-level lines."""
    document = {
        "role": "gpu-host",
        "hardware": "{}",
        "network": "{hostname: 127.0.0.1, port: 11434}",
        "models": "[]",
        **lines,
    }
    path = folder / f"{name}.yaml"
    path.write_text(f"name: {name}\n" + "".join(f"{key}: {value}\n" for key, value in document.items()))
    return path
