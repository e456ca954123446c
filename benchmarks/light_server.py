"""Many machines in one light SSH server: canned answers, no forks, so that a benchmark measures its client.

    python benchmarks/light_server.py FOLDER [--machines 256] [--cards 8]

Makes keys and one machine file per machine in FOLDER, prints one JSON line ({"port", "machines_dir", "pid"})
and serves until its standard input closes. All machines are one loopback port.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import asyncssh

from fleettui.demo.fleet_plan import plan_fleet
from fleettui.demo.machine import SimulatedMachine
from fleettui.demo.probe_answers import answer_section
from fleettui.probes.frames import Section, encode_frame, parse_request
from fleettui.probes.loops import parse_loop_command

ENGINE_PORT = 11434
USER = "bench"
KEY_NAME = "id_ed25519"
MODEL = "llama3.1:8b"
SIZE = 6_900_000_000
ANSWERS = {
    "/api/version": {"version": "0.33.0"},
    "/api/ps": {
        "models": [
            {
                "name": MODEL, "model": MODEL, "size": SIZE, "digest": "46e0c10c039e" * 5 + "0000",
                "details": {"family": "llama", "parameter_size": "8.0B", "quantization_level": "Q4_K_M"},
                "expires_at": "2099-01-01T00:00:00Z", "size_vram": SIZE, "context_length": 8192,
            }
        ]
    },
    "/api/tags": {
        "models": [
            {
                "name": MODEL, "model": MODEL, "size": 4_920_753_328, "digest": "46e0c10c039e" * 5 + "0000",
                "modified_at": "2026-01-01T00:00:00Z",
                "details": {"family": "llama", "parameter_size": "8.0B", "quantization_level": "Q4_K_M"},
            }
        ]
    },
}  # fmt: skip

BODIES = {path: json.dumps(document).encode() for path, document in ANSWERS.items()}


class CannedMachine:
    """One simulated machine that never changes; each answer is made once."""

    def __init__(self, cards: int) -> None:
        plan = plan_fleet(9, 7, cards)[-1]
        self._machine = SimulatedMachine(replace(plan, absence=None), 7, has_traffic=False)
        self.sections = cache(self._sections)

    def answer(self, names: tuple[str, ...]) -> dict[str, Section]:
        """Sections of a frame; a clock that stood still would be told as wrong."""
        return self._sections(names) if "clock" in names else self.sections(names)

    def _sections(self, names: tuple[str, ...]) -> dict[str, Section]:
        answers: dict[str, Section] = {}
        for name in names:
            answer = answer_section(self._machine, name, 0.0)
            if answer is not None:
                exit_code, text = answer
                answers[name.partition(":")[0]] = Section(exit_code, text.encode())
        return answers


class LoopSession(asyncssh.SSHServerSession[bytes]):
    """Stands for the `sh` loops: a frame for each line."""

    def __init__(self, machine: CannedMachine) -> None:
        self._machine = machine
        self._token = ""
        self._rest = b""

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self._channel = chan

    def exec_requested(self, command: str) -> bool:
        found = parse_loop_command(command)
        if found is None:
            return False
        self._token = found[1]
        return True

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if request := parse_request(line):
                seq, names = request
                self._channel.write(encode_frame(self._token, seq, self._machine.answer(names)))

    def eof_received(self) -> bool:
        self._channel.exit(0)
        return False


class EngineSession(asyncssh.SSHTCPSession[bytes]):
    """Stands for Ollama behind a forwarded channel."""

    def connection_made(self, chan: asyncssh.SSHTCPChannel[bytes]) -> None:
        self._channel = chan
        self._rest = b""

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        *requests, self._rest = (self._rest + data).split(b"\r\n\r\n")
        for request in requests:
            path = request.split(b" ", 2)[1].decode() if b" " in request else ""
            body = BODIES.get(path)
            status = b"200 OK" if body is not None else b"404 Not Found"
            body = body or b"{}"
            head = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            self._channel.write(head % (status, len(body)) + body)


class LightServer(asyncssh.SSHServer):
    """Accepts the one key, loops and forwarded channels to the engine."""

    def __init__(self, machine: CannedMachine) -> None:
        self._machine = machine

    def begin_auth(self, username: str) -> bool:
        return True

    def session_requested(self) -> LoopSession:
        return LoopSession(self._machine)

    def connection_requested(
        self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
    ) -> EngineSession | bool:
        return EngineSession() if dest_port == ENGINE_PORT else False


def machine_file(name: str, cards: int, port: int, key: Path, fingerprint: str) -> str:
    """The YAML of one machine."""
    gpus = "".join("    - {model: L40S, vram_gb: 48}\n" for _ in range(cards))
    return (
        f"name: {name}\nrole: gpu-host\nhardware:\n  gpu:\n{gpus}"
        f"network:\n  hostname: 127.0.0.1\n  port: {ENGINE_PORT}\nmodels: [{MODEL}]\n"
        f"ssh:\n  host: 127.0.0.1\n  port: {port}\n  user: {USER}\n"
        f"  identity: {json.dumps(str(key))}\n  host_key: {fingerprint}\n"
    )


def write_files(folder: Path, machines: int, cards: int, port: int, fingerprint: str) -> Path:
    """One machine file each; returns their folder."""
    machines_dir = folder / "machines"
    machines_dir.mkdir(exist_ok=True)
    for number in range(1, machines + 1):
        name = f"light-{number:03d}"
        text = machine_file(name, cards, port, folder / KEY_NAME, fingerprint)
        (machines_dir / f"{name}.yaml").write_text(text, encoding="utf-8")
    return machines_dir


def make_user_key(folder: Path) -> asyncssh.SSHKey:
    """A fresh key for the clients, its private half in the folder."""
    key = asyncssh.generate_private_key("ssh-ed25519")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / KEY_NAME).touch(0o600)
    key.write_private_key(str(folder / KEY_NAME))
    return key


async def serve(folder: Path, machines: int, cards: int) -> None:
    """Listen, write the machine files, say where, and stay until standard input ends."""
    host_key = asyncssh.generate_private_key("ssh-ed25519")
    user_key = make_user_key(folder)
    machine = CannedMachine(cards)
    listener = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_factory=lambda: LightServer(machine),
        server_host_keys=[host_key],
        authorized_client_keys=asyncssh.import_authorized_keys(user_key.export_public_key().decode()),
        encoding=None,
        line_editor=False,
        backlog=1024,
        login_timeout=120,
        gss_host=None,
    )
    port = listener.get_port()
    machines_dir = write_files(folder, machines, cards, port, host_key.get_fingerprint())
    print(json.dumps({"port": port, "machines_dir": str(machines_dir), "pid": os.getpid()}), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)
    listener.close()


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--machines", type=int, default=256)
    parser.add_argument("--cards", type=int, default=8)
    options = parser.parse_args()
    # Clients that end at once leave frames behind; asyncio would warn of each.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    asyncio.run(serve(options.folder, options.machines, options.cards))


if __name__ == "__main__":
    main()
