"""`fleettui logs` on real sshd: the journal, what stands in its place, following, and that nothing stays."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest
from doctor_runs import put_tool
from links import open_link, until
from sshd_rig import SshdRig, SshdServer, why_no_namespace
from test_ssh_fleet import machine, running, write_machine_file
from test_ssh_fleet import until as until_snapshot

from fleettui.fleet.machine_log import LogQuery, LogUnavailable, follow_log, open_link_of, read_log
from fleettui.model.log import LogLine
from fleettui.net.connector import Connector
from fleettui.net.errors import LinkError

SRC = Path(__file__).resolve().parents[2] / "src"

JOURNAL = r"""
echo "$*" >>"$FLEETTUI_RIG_DIR/asked"
case "$*" in
*-F*_SYSTEMD_UNIT*)
    printf '%s.service\n' ssh ollama llama-server@qwen nvidia-persistenced ;;
*-F*CONTAINER_NAME*) printf 'vllm-main\nweb\n' ;;
*)
    echo '-- Logs begin at Mon 2026-03-09 08:00:00 UTC. --'
    echo '2026-03-10T09:15:30+0000 ada kernel: NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.'
    printf '2026-03-10T09:15:31+0000 ada ollama[174]: level=INFO \033[31mred\033[0m\007 quote '"'"' $(id)\n'
    echo '                                          goes on'
    printf '2026-03-10T10:15:32+01:00 ada systemd[1]: ollama.service: A process was killed by the OOM.\n'
    head -c 40000 /dev/zero | tr '\0' x | sed 's/^/2026-03-10T09:15:33+0000 ada ollama[174]: /'
    echo
    case "$*" in
    *-f*) while echo "2026-03-10T09:16:00+0000 ada ollama[174]: tick"; do sleep 0.05; done ;;
    esac
    ;;
esac
"""


def asked(server: SshdServer) -> list[str]:
    path = server.folder / "asked"
    return path.read_text().splitlines() if path.exists() else []


async def texts(connector: Connector, machine: object, query: LogQuery) -> tuple[LogLine, ...]:
    link, _ = await open_link(connector, machine)
    try:
        return (await read_log(link, query)).lines
    finally:
        await link.close()


async def test_the_default_selection_is_kernel_engines_and_nvidia(
    sshd_rig: SshdRig, connect: Callable[..., Connector]
) -> None:
    server = sshd_rig.start()
    put_tool(server, "journalctl", JOURNAL)
    lines = await texts(connect(), sshd_rig.machine(server), LogQuery(900))
    assert asked(server)[-1] == (
        "--no-pager -o short-iso --since -900s _TRANSPORT=kernel "
        "+ _SYSTEMD_UNIT=ollama.service + _PID=1 UNIT=ollama.service "
        "+ _SYSTEMD_UNIT=llama-server@qwen.service + _PID=1 UNIT=llama-server@qwen.service "
        "+ _SYSTEMD_UNIT=nvidia-persistenced.service + _PID=1 UNIT=nvidia-persistenced.service "
        "+ CONTAINER_NAME=vllm-main"
    )
    assert [(line.source, line.group, line.text[:40]) for line in lines] == [
        ("kernel", "gpu", "NVRM: Xid (PCI:0000:01:00): 79, GPU has "),
        ("ollama", "engine", "level=INFO red quote ' $(id)"),
        ("ollama", "engine", "goes on"),
        ("systemd", "engine", "ollama.service: A process was killed by "),
        ("ollama", "engine", "x" * 40),
    ]
    assert [line.at for line in lines] == [1773134130, 1773134131, 1773134131, 1773134132, 1773134133]
    assert max(len(line.text) for line in lines) == 1000
    await until(lambda: not server.remote_processes())


@pytest.mark.parametrize(
    ("unit", "match"), [("kernel", "_TRANSPORT=kernel"), ("vllm@Q2.service", "-u vllm@Q2.service")]
)
async def test_one_unit(sshd_rig: SshdRig, connect: Callable[..., Connector], unit: str, match: str) -> None:
    server = sshd_rig.start()
    put_tool(server, "journalctl", JOURNAL)
    assert await texts(connect(), sshd_rig.machine(server), LogQuery(60, unit))
    assert asked(server) == [f"--no-pager -o short-iso --since -60s {match}"]


@pytest.mark.parametrize("unit", ["-u", "a b", "$(id)", "x;id", "a'b", "*", "../x", ""])
async def test_what_is_no_unit_never_reaches_the_machine(
    sshd_rig: SshdRig, connect: Callable[..., Connector], unit: str
) -> None:
    server = sshd_rig.start()
    put_tool(server, "journalctl", JOURNAL)
    link, _ = await open_link(connect(), sshd_rig.machine(server))
    try:
        with pytest.raises(ValueError, match="no unit"):
            await read_log(link, LogQuery(60, unit))
    finally:
        await link.close()
    assert asked(server) == []


HINT = """
echo 'Hint: You are currently not seeing messages from other users and the system.' >&2
echo "      Users in groups 'adm', 'systemd-journal' can see all messages." >&2
echo '-- No entries --'
"""
BUFFER = "echo '[    1.500000] NVRM: loading NVIDIA UNIX x86_64 Kernel Module'"


def uptime_s() -> float:
    return float(Path("/proc/uptime").read_text().split()[0])


async def test_without_rights_it_says_so_and_shows_what_may_be_read(
    sshd_rig: SshdRig, connect: Callable[..., Connector]
) -> None:
    server = sshd_rig.start()
    put_tool(server, "journalctl", HINT)
    put_tool(server, "dmesg", BUFFER)
    booted_at = 1_000_000.0 - uptime_s()
    link, _ = await open_link(connect(), sshd_rig.machine(server))
    try:
        log = await read_log(link, LogQuery(366 * 86_400), clock=lambda: 1_000_000.0)
        kernel = [line for line in log.lines if line.source == "kernel"]
        assert [line.text for line in kernel] == ["NVRM: loading NVIDIA UNIX x86_64 Kernel Module"]
        assert isinstance(kernel[0].at, float)
        assert abs(kernel[0].at - booted_at - 1.5) < 60
        assert "may not read the system's journal" in log.notes[0]
        assert "usermod -aG systemd-journal" in log.notes[0]
        put_tool(
            server, "dmesg", "echo 'dmesg: read kernel buffer failed: Operation not permitted' >&2; exit 1"
        )
        with pytest.raises(LogUnavailable) as refused:
            await read_log(link, LogQuery(900, "kernel"))
        assert "may not read the system's journal, nor dmesg" in refused.value.text
        assert "usermod" in refused.value.hint
        with pytest.raises(LogUnavailable, match="may not read"):
            await read_log(link, LogQuery(900, "ollama"))
    finally:
        await link.close()


@pytest.mark.skipif(why_no_namespace() is not None, reason=str(why_no_namespace()))
async def test_without_a_journal_the_kernels_buffer_is_shown(
    sshd_rig: SshdRig, connect: Callable[..., Connector]
) -> None:
    server = sshd_rig.start()
    put_tool(server, "journalctl", "exit 127")
    put_tool(server, "dmesg", BUFFER)
    link, _ = await open_link(connect(), sshd_rig.machine(server))
    try:
        log = await read_log(link, LogQuery(366 * 86_400))
        assert (log.source, log.lines[0].text[:13]) == ("dmesg and files", "NVRM: loading")
        assert log.notes[0].startswith("there is no journalctl; shown is what dmesg and log files tell")
        with pytest.raises(LogUnavailable, match="there is no journalctl"):
            async with aclosing(follow_log(link, LogQuery(60))) as lines:
                await anext(lines)
    finally:
        await link.close()
    await until(lambda: not server.remote_processes())


async def test_following_ends_with_the_reader_and_leaves_nothing(
    sshd_rig: SshdRig, connect: Callable[..., Connector]
) -> None:
    server = sshd_rig.start()
    put_tool(server, "journalctl", JOURNAL)
    link, _ = await open_link(connect(), sshd_rig.machine(server))
    try:
        found: list[LogLine] = []
        async with asyncio.timeout(20), aclosing(follow_log(link, LogQuery(60))) as lines:
            async for line in lines:
                found.append(line)
                if len(found) == 20:
                    break
        assert [line.text for line in found[5:]] == ["tick"] * 15
        assert found[0].group == "gpu"
        await until(lambda: not server.remote_processes())
        assert len(server.processes()) > 1, "the connection stays: others use it"
    finally:
        await link.close()


async def test_following_notes_missing_rights_and_says_why_it_ended(
    sshd_rig: SshdRig, connect: Callable[..., Connector]
) -> None:
    server = sshd_rig.start()
    put_tool(server, "journalctl", HINT + "\nsleep 0.3")
    notes: list[str] = []
    link, _ = await open_link(connect(), sshd_rig.machine(server))
    try:
        with pytest.raises(LogUnavailable, match="may not read the system's journal"):
            async with aclosing(follow_log(link, LogQuery(60), notes.append)) as lines:
                await anext(lines)
    finally:
        await link.close()
    assert len(notes) == 1
    assert "usermod" in notes[0]


async def test_a_connection_that_breaks_ends_the_following(
    sshd_rig: SshdRig, connect: Callable[..., Connector]
) -> None:
    server = sshd_rig.start()
    put_tool(server, "journalctl", JOURNAL)
    link, losses = await open_link(connect(), sshd_rig.machine(server))
    try:
        async with asyncio.timeout(20), aclosing(follow_log(link, LogQuery(60))) as lines:
            await anext(lines)
            server.drop_connections()
            with pytest.raises(LogUnavailable):
                [line async for line in lines]
        assert isinstance(losses[0], LinkError)
    finally:
        await link.close()


async def test_a_running_service_reads_over_the_connection_it_has(sshd_rig: SshdRig, tmp_path: Path) -> None:
    server = sshd_rig.start()
    put_tool(server, "journalctl", JOURNAL)
    write_machine_file(tmp_path / "machines", "ada", server, sshd_rig.user)
    async with running(sshd_rig, tmp_path / "machines") as service:
        with pytest.raises(LogUnavailable, match="not connected"):
            open_link_of(service.pollers, "bora")
        await until_snapshot(service, lambda s: machine(s).cpu is not None, what="connected")
        link = open_link_of(service.pollers, "ada")
        assert len((await read_log(link, LogQuery())).lines) == 5
        async with asyncio.timeout(20), aclosing(follow_log(link, LogQuery())) as lines:
            assert (await anext(lines)).group == "gpu"
        seq = machine(service.snapshot).seq
        await until_snapshot(service, lambda s: machine(s).seq > seq + 2, what="polling goes on")
    assert server.log_text().count("Accepted publickey") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_command_that_is_ended_leaves_nothing(
    sshd_rig: SshdRig, tmp_path: Path, number: signal.Signals
) -> None:
    server = sshd_rig.start()
    put_tool(server, "journalctl", JOURNAL)
    folder = tmp_path / "machines"
    write_machine_file(folder, "ada", server, sshd_rig.user)
    environment = {**os.environ, "PYTHONPATH": str(SRC), "FLEETTUI_MACHINES": str(folder)}
    command = [sys.executable, "-m", "fleettui", "logs", "ada", "--follow"]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        while b"tick" not in running.stdout.readline():
            assert running.poll() is None, running.stderr.read()
        assert server.remote_processes()
        running.send_signal(number)
        said = running.stderr.read()
    assert running.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}.get(number, -9)
    assert said == b""
    asyncio.run(until(lambda: not server.remote_processes(), 10))
    asyncio.run(until(lambda: len(server.processes()) == 1, 10))


def test_one_login_and_no_question_before_approval(sshd_rig: SshdRig, tmp_path: Path) -> None:
    folder = tmp_path / "machines"
    known, unknown = sshd_rig.start(), sshd_rig.start(is_trusted=False)
    put_tool(known, "journalctl", JOURNAL)
    write_machine_file(folder, "ada", known, sshd_rig.user)
    write_machine_file(folder, "bora", unknown, sshd_rig.user)
    environment = {**os.environ, "PYTHONPATH": str(SRC), "FLEETTUI_MACHINES": str(folder)}

    def run(name: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "fleettui", "logs", name]
        return subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
            check=False,
        )  # fmt: skip

    done = run("ada")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "-- GPU driver --"
    assert "\x1b" not in done.stdout
    assert known.log_text().count("Accepted publickey") == 1
    done = run("bora")
    assert (done.returncode, done.stdout) == (4, "")
    assert "approve" in done.stderr
    assert "Accepted publickey" not in unknown.log_text()
