"""Runs a real shell loop in a process group of its own, as sshd does, and speaks frames with it."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from fleettui.probes.frames import Frame, FrameReader, Section, request_line
from fleettui.probes.loops import LoopKind, loop_command

TOKEN = "0123456789abcdef"
SHELLS = ("dash", "bash", "busybox ash")


def find_shell(name: str) -> str:
    """Path of a shell (with `ash` for busybox); skips the test where it is not installed."""
    program, _, applet = name.partition(" ")
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is not installed here")
    return f"{path} {applet}".strip()


class Loop:
    """One channel: `ask` sends a request and waits for its frame."""

    def __init__(
        self,
        kind: LoopKind,
        shell: str = "/bin/sh",
        *,
        path: Path | None = None,
        login: tuple[str, ...] = ("/bin/sh", "-c"),
        changes: tuple[tuple[str, str], ...] = (),
    ) -> None:
        command = loop_command(kind, TOKEN).replace("exec /bin/sh", f"exec {shell}", 1)
        for old, new in changes:
            assert old in command, f"the script has no {old!r} any more"
            command = command.replace(old, new)
        env = dict(os.environ)
        if path is not None:
            env["PATH"] = f"{path}:{env['PATH']}"
        self.process = subprocess.Popen(
            [*login, command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=env,
            start_new_session=True,
        )
        self.reader = FrameReader(TOKEN)
        self._seq = 0

    def send(self, *sections: str) -> None:
        assert self.process.stdin is not None
        self._seq += 1
        self.process.stdin.write(request_line(self._seq, sections))
        self.process.stdin.flush()

    def receive(self, limit_s: float = 30.0) -> Frame:
        assert self.process.stdout is not None
        pipe = self.process.stdout.fileno()
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            if not select.select([pipe], [], [], 0.5)[0]:
                continue
            data = os.read(pipe, 65536)
            assert data, f"the loop ended; noise: {self.reader.noise}"
            frames = self.reader.receive_data(data)
            if frames:
                assert [frame.seq for frame in frames] == [self._seq]
                return frames[0]
        raise AssertionError(f"no frame; noise: {self.reader.noise}")

    def ask(self, *sections: str) -> dict[str, Section]:
        self.send(*sections)
        return self.receive().sections

    def session_pids(self) -> list[int]:
        """Living processes of the loop's session."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    fields = (entry / "stat").read_text().rpartition(") ")[2].split()
                except OSError:
                    continue
                if int(fields[3]) == self.process.pid and fields[0] not in "ZX":
                    found.append(int(entry.name))
        return found

    def forks(self) -> int:
        """Processes the kernel has started since boot."""
        text = Path("/proc/stat").read_text()
        return int(next(line for line in text.splitlines() if line.startswith("processes ")).split()[1])

    def close(self) -> None:
        """End of input; returns when the shell is gone."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        if not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            self.process.wait(10)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait(5)
            self.process.stdout.close()


def write_tool(folder: Path, name: str, body: str) -> Path:
    """A stand-in program: a shell script of that name."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def wait_until(condition: object, limit_s: float = 10.0) -> None:
    """Waits for a condition (a function) to become true."""
    assert callable(condition)
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, "the condition did not come true"
        time.sleep(0.02)
