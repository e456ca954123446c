"""The loops under real shells: facts, request forms, login shells, what stays behind."""

from __future__ import annotations

import http.server
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from loop_runner import SHELLS, TOKEN, Loop, find_shell, wait_until, write_tool

from fleettui.model.unknown import Unknown
from fleettui.probes import cpu, disks, memory, net, system
from fleettui.probes.engines.answers import parse_http_text
from fleettui.probes.loops import LoopKind, loop_command, parse_loop_command

KINDS: tuple[LoopKind, ...] = ("facts", "gpu", "engine", "doctor")


@pytest.mark.parametrize("kind", KINDS)
def test_command_passes_every_login_shell(kind: LoopKind) -> None:
    command = loop_command(kind, TOKEN)
    assert parse_loop_command(command) == (kind, TOKEN)
    assert command.startswith("exec /bin/sh -c '")
    words = command.split("'")
    assert len(words) % 2 == 1, "each quote is closed"
    assert max(len(word) for word in words) < 8000, "csh: Word too long."
    assert not set(command) & set("!\n\r\t")
    # fish reads \\ and \' inside single quotes; csh has trouble with a backslash before ! and newline.
    assert all(command[at + 1] in "n0" for at, char in enumerate(command) if char == "\\")
    assert command.isascii()


def test_other_commands_are_no_loops() -> None:
    assert parse_loop_command("uptime") is None
    assert parse_loop_command(f"exec /bin/sh -c 'x' fleettui-other {TOKEN}") is None
    assert parse_loop_command("exec /bin/sh -c 'x' fleettui-gpu 0123") is None
    with pytest.raises(ValueError, match="16"):
        loop_command("gpu", "ABCDEF0123456789")


@pytest.mark.parametrize(
    "login", ["sh -c", "bash -c", "fish -c", "tcsh -c", "csh -c", "bsd-csh -c", "zsh -c", "mksh -c"]
)
def test_login_shells_hand_the_script_over(login: str) -> None:
    program, flag = login.split()
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed here")
    loop = Loop("facts", login=(program, flag))
    try:
        assert loop.ask("load")["load"].exit_code == 0
    finally:
        loop.close()


@pytest.mark.parametrize("shell", SHELLS)
def test_facts(shell: str) -> None:
    loop = Loop("facts", find_shell(shell))
    try:
        first = loop.ask("stat", "load", "uptime", "mem", "net")
        again = loop.ask("stat", "load", "uptime", "mem", "net")
        slow = loop.ask("disks", "uname", "os", "cpu", "bogus:argument")
    finally:
        loop.close()
    assert all(section.exit_code == 0 for section in (first | again).values())
    _, times = cpu.parse_cpu(first["stat"].payload, first["load"].payload, first["uptime"].payload, None)
    reading, _ = cpu.parse_cpu(again["stat"].payload, again["load"].payload, again["uptime"].payload, times)
    assert not isinstance(reading.load, Unknown)
    assert not isinstance(reading.uptime_s, Unknown)
    memory_now = memory.parse_memory(again["mem"].payload)
    assert f"MemTotal: {memory_now.total_kib} kB" in " ".join(Path("/proc/meminfo").read_text().split())
    assert not isinstance(memory_now.available_kib, Unknown)
    names = [item.name for item in net.parse_net(again["net"].payload, 1.0, None)[0].interfaces]
    assert "lo" not in names
    assert slow["disks"].exit_code == 0
    assert not isinstance(disks.parse_disks(slow["disks"].payload), Unknown)
    about = system.parse_system(slow["uname"].payload, slow["os"].payload, slow["cpu"].payload)
    assert about.kernel == Path("/proc/sys/kernel/osrelease").read_text().strip()
    assert not isinstance(about.cores, Unknown)
    assert slow["bogus"].exit_code == 64


@pytest.mark.parametrize("shell", SHELLS)
def test_a_fact_tick_starts_no_process(shell: str) -> None:
    loop = Loop("facts", find_shell(shell))
    try:
        loop.ask("stat")
        # The machine is shared: other processes start some. The least of several runs is ours.
        counts = []
        for _ in range(12):
            before = loop.forks()
            loop.ask("stat", "load", "uptime", "mem", "net")
            counts.append(loop.forks() - before)
    finally:
        loop.close()
    assert min(counts) == 0


@pytest.mark.parametrize("shell", SHELLS)
def test_hanging_df_costs_its_limit_and_nothing_else(shell: str, tmp_path: Path) -> None:
    write_tool(tmp_path / "bin", "df", "exec sleep 1000")
    loop = Loop("facts", find_shell(shell), path=tmp_path / "bin", changes=((":+$T 3} df", ":+$T 1} df"),))
    try:
        answer = loop.ask("disks", "load")
    finally:
        loop.close()
    assert answer["load"].exit_code == 0
    found = disks.parse_disks(answer["disks"].payload, answer["disks"].exit_code)
    assert isinstance(found, Unknown)
    assert "time limit" in found.reason


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("kind", KINDS)
def test_end_of_input_ends_the_loop(shell: str, kind: LoopKind) -> None:
    loop = Loop(kind, find_shell(shell))
    loop.ask("bogus")
    assert len(loop.session_pids()) >= 2
    loop.close()
    wait_until(lambda: not loop.session_pids())


def test_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "TMPDIR"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.chdir(tmp_path)
    for kind in KINDS:
        loop = Loop(kind)
        loop.ask("stat", "gpu", "apps", "ps", "find", "disks", "get:1/api/ps")
        loop.close()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["HOME", "TMPDIR"]


class OllamaHandler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b'{"models":[]}' if self.path == "/api/ps" else b'{"version":"0.12.4"}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server_port() -> Iterator[int]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), OllamaHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()
    thread.join(5)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("tool", ["curl", "wget"])
def test_engine_is_asked_by_the_machine_itself(shell: str, tool: str, server_port: int) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed here")
    changes = (("command -v curl", f"command -v {'curl' if tool == 'curl' else 'no-such-tool'}"),)
    loop = Loop("engine", find_shell(shell), changes=changes)
    try:
        answer = loop.ask(f"get:{server_port}/api/ps")["get"]
        refused = loop.ask("get:1/api/ps")["get"]
        foreign = loop.ask(f"get:{server_port}/api/generate")["get"]
    finally:
        loop.close()
    assert answer.exit_code == 0
    parsed = parse_http_text(answer.payload, 1.0)
    assert parsed is not None
    assert (parsed.status, parsed.body.strip()) == (200, b'{"models":[]}')
    assert refused.exit_code != 0
    assert (foreign.exit_code, foreign.payload) == (64, b"")
