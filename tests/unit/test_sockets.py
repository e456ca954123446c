"""Listening ports and their connections: counted on the machine in every shell, read here."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

import pytest
from loop_runner import Loop, write_tool

from builders import NOW
from fleettui.fleet.facts_questions import FactsQuestions
from fleettui.fleet.needs import AVOIDING_BUSY
from fleettui.model.sockets import ListeningPort, ServerProcess, SocketsReading
from fleettui.model.unknown import Unknown
from fleettui.probes.frames import Section
from fleettui.probes.loops_sockets import LISTENING_KEPT, SERVERS_KEPT
from fleettui.probes.sockets import parse_servers, parse_sockets, with_ours

AS_SH = ("dash", "bash", "busybox", "zsh", "ksh", "mksh", "lksh")
HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
NO_AWK = (" awk -v", " no-such-awk -v")


def row(local: str, remote: str, state: str) -> str:
    return f"   7: {local} {remote} {state} 00000000:00000000 00:00000000 00000000     0        0 12 1\n"


def listening(local: str) -> str:
    return row(local, "0" * len(local.partition(":")[0]) + ":0000", "0A")


@pytest.fixture(params=AS_SH)
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    program = shutil.which(request.param)
    if program is None:
        pytest.skip(f"{request.param} is not installed here")
    folder = tmp_path / "shell"
    folder.mkdir()
    (folder / "sh").symlink_to(program)
    return str(folder / "sh")


def ask(shell: str, section: str, root: Path, *, has_awk: bool = True, path: Path | None = None) -> Section:
    changes = (("/proc/", f"{root}/proc/"),) if has_awk else (("/proc/", f"{root}/proc/"), NO_AWK)
    loop = Loop("facts", shell, changes=changes, path=path)
    try:
        return loop.ask(section)[section]
    finally:
        loop.process.kill()  # it cannot see its own group in another /proc
        loop.close()


def write_tables(root: Path, tcp: str, tcp6: str | None = None) -> None:
    folder = root / "proc/net"
    folder.mkdir(parents=True)
    (folder / "tcp").write_text(HEAD + tcp)
    if tcp6 is not None:
        (folder / "tcp6").write_text(HEAD + tcp6)


ANY6, LOOP6 = "0" * 32, "0" * 24 + "01000000"
TCP = (
    listening("0100007F:2CAA")  # 11434, loopback
    + listening("00000000:0016")
    + row("0100007F:2CAA", "0100007F:D001", "01")  # a client on the machine itself, from the server's side …
    + row("0100007F:D001", "0100007F:2CAA", "01")  # … and from its own
    + row("0100007F:2CAA", "0100007F:D002", "06")  # TIME_WAIT
    + row("0A00000A:0016", "0500000A:C001", "01")
    + row("0A00000A:9C40", "0500000A:01BB", "01")  # the machine is the client
)
TCP6 = (
    listening(f"{ANY6}:1F90")
    + listening(f"{LOOP6}:2CAA")
    + row(f"{LOOP6}:2CAA", f"{LOOP6}:D003", "01")
    + row("0000000000000000FFFF00000A00000A:1F90", "0000000000000000FFFF00000500000A:C002", "01")
)


@pytest.mark.parametrize("has_awk", [True, False])
def test_connections_count_at_the_port_that_is_listened_on(shell: str, tmp_path: Path, has_awk: bool) -> None:
    write_tables(tmp_path, TCP, TCP6)
    reading = parse_sockets(ask(shell, "sockets", tmp_path, has_awk=has_awk).payload)
    assert reading == SocketsReading(
        (ListeningPort(22, False, 1), ListeningPort(8080, False, 1), ListeningPort(11434, True, 2))
    )


@pytest.mark.parametrize("has_awk", [True, False])
def test_without_ipv6(shell: str, tmp_path: Path, has_awk: bool) -> None:
    write_tables(tmp_path, TCP)
    reading = parse_sockets(ask(shell, "sockets", tmp_path, has_awk=has_awk).payload)
    assert reading == SocketsReading((ListeningPort(22, False, 1), ListeningPort(11434, True, 1)))


def test_a_machine_that_shows_no_sockets_at_all(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    section = ask("/bin/sh", "sockets", tmp_path)
    assert (section.exit_code, section.payload) == (1, b"")
    assert isinstance(parse_sockets(section.payload), Unknown)


def test_nobody_listens_and_that_is_known(tmp_path: Path) -> None:
    write_tables(tmp_path, "")
    assert parse_sockets(ask("/bin/sh", "sockets", tmp_path).payload) == SocketsReading()


@pytest.mark.parametrize("has_awk", [True, False])
def test_ten_thousand_connections_are_a_few_bytes(tmp_path: Path, has_awk: bool) -> None:
    clients = "".join(row("0100007F:2CAA", f"0100007F:{port:04X}", "01") for port in range(20_000, 25_000))
    others = "".join(row(f"0100007F:{port:04X}", "0100007F:2CAA", "01") for port in range(20_000, 25_000))
    write_tables(tmp_path, listening("0100007F:2CAA") + clients + others)
    section = ask("/bin/sh", "sockets", tmp_path, has_awk=has_awk)
    assert len(section.payload) < 40
    reading = parse_sockets(section.payload)
    assert not isinstance(reading, Unknown)
    found = reading.find(11434)
    assert found is not None
    if has_awk:
        assert (found.connections, reading.is_cut) == (5000, False)
    else:  # the first rows only, and it says so
        assert 1000 < found.connections < 5000
        assert reading.is_cut


@pytest.mark.parametrize("has_awk", [True, False])
def test_more_ports_than_are_kept(tmp_path: Path, has_awk: bool) -> None:
    ports = LISTENING_KEPT + 50
    write_tables(tmp_path, "".join(listening(f"00000000:{port:04X}") for port in range(9000, 9000 + ports)))
    reading = parse_sockets(ask("/bin/sh", "sockets", tmp_path, has_awk=has_awk).payload)
    assert not isinstance(reading, Unknown)
    assert (len(reading.listening), reading.is_cut) == (LISTENING_KEPT, True)


def test_what_this_machine_says() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)), socket.create_connection(("127.0.0.1", port)):
            loop = Loop("facts")
            try:
                loop.ask(
                    "cgroup", "mem", "links", "host", "disks", "blocks", "servers"
                )  # share its variables
                reading = parse_sockets(loop.ask("sockets")["sockets"].payload)
            finally:
                loop.close()
    assert not isinstance(reading, Unknown)
    assert reading.find(port) == ListeningPort(port, True, 2)


def test_one_port_on_two_addresses_is_reached_from_outside_if_one_of_them_is() -> None:
    reading = parse_sockets(b"0100007F:2CAA 4\n0A00000A:2CAA 4\n2\n")
    assert reading == SocketsReading((ListeningPort(11434, False, 4),))


def test_a_mapped_loopback_address_is_one() -> None:
    reading = parse_sockets(b"0000000000000000FFFF00000100007F:2CAA 0\n1\n")
    assert reading == SocketsReading((ListeningPort(11434, True, 0),))


@pytest.mark.parametrize(
    "line", [b"nonsense 3", b"0100007F:0000 3", b"0100007F:2CAA x", b"0100007F 3", b"zz00007F:2CAA 1"]
)
def test_other_lines_are_no_sockets(line: bytes) -> None:
    assert parse_sockets(line + b"\n0\n") == SocketsReading()


def test_our_own_connections_are_told_apart() -> None:
    reading = SocketsReading((ListeningPort(22, False, 3), ListeningPort(11434, True, 2)))
    told = with_ours(reading, lambda port: 1 if port == 11434 else 0)
    assert told.find(11434) == ListeningPort(11434, True, 2, ours=1)
    assert told.find(22) == ListeningPort(22, False, 3)


def test_never_more_of_ours_than_there_are() -> None:
    """The channel was opened after the machine had counted."""
    reading = SocketsReading((ListeningPort(11434, True, 0),))
    assert with_ours(reading, lambda port: 1) is reading


def test_servers_of_models_with_their_parents(shell: str, tmp_path: Path) -> None:
    for pid, comm in ((11, "ollama"), (12, "bash"), (13, "python3"), (14, "llama-server")):
        folder = tmp_path / f"proc/{pid}"
        folder.mkdir(parents=True)
        (folder / "comm").write_text(f"{comm}\n")
    tools = tmp_path / "tools"
    write_tool(
        tools,
        "ps",
        'case $* in *"-p 11,13,14") ;; *) exit 1;; esac\n'
        'echo "   11      1 /usr/local/bin/ollama serve"\n'
        'echo "   13      1 python3 -m vllm.entrypoints.openai.api_server --port 8001"\n'
        'echo "   14     11 /usr/lib/ollama/llama-server --port 40001"\n'
        'echo "   15      1 python3 train.py"',
    )
    section = ask(shell, "servers", tmp_path, path=tools)
    assert parse_servers(section.payload) == (
        ServerProcess(11, 1, "/usr/local/bin/ollama serve"),
        ServerProcess(13, 1, "python3 -m vllm.entrypoints.openai.api_server --port 8001"),
        ServerProcess(14, 11, "/usr/lib/ollama/llama-server --port 40001"),
    )


def test_a_machine_full_of_them_sends_a_few(tmp_path: Path) -> None:
    (tmp_path / "proc/1").mkdir(parents=True)
    (tmp_path / "proc/1/comm").write_text("ollama\n")
    tools = tmp_path / "tools"
    write_tool(tools, "ps", f'i=0; while [ $i -lt 999 ]; do i=$((i+1)); echo "$i 1 vllm {"x" * 2000}"; done')
    section = ask("/bin/sh", "servers", tmp_path, path=tools)
    assert len(parse_servers(section.payload)) == SERVERS_KEPT
    assert len(section.payload) < SERVERS_KEPT * 510


def test_no_process_is_started_where_nothing_looks_like_a_server(tmp_path: Path) -> None:
    (tmp_path / "proc/1").mkdir(parents=True)
    (tmp_path / "proc/1/comm").write_text("systemd\n")
    tools = tmp_path / "tools"
    write_tool(tools, "ps", f"case $* in *args=*) echo ran >{tmp_path}/ran;; esac")
    assert ask("/bin/sh", "servers", tmp_path, path=tools).payload == b""
    assert not (tmp_path / "ran").exists()


def test_who_polls_once_gets_them_with_the_second_sample() -> None:
    questions = FactsQuestions(AVOIDING_BUSY)
    first = questions.due(NOW)
    assert "sockets" not in first  # no tool is started before the shell has answered
    questions.note_asked(first, NOW)
    second = questions.second_sample()
    assert "sockets" in second
    questions.note_asked(second, NOW + 0.5)
    assert "sockets" not in questions.due(NOW + 2)
    assert "sockets" in questions.due(NOW + 10.5)
