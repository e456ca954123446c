"""The whole core against real sshd: pollers, recovery, isolation of a bad machine, trust."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sshd_rig import OllamaStandIn, SshdRig, SshdServer, wait_until

from fleettui.fleet.service import FleetService, FleetSettings
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.model.unknown import Unknown
from fleettui.net.connector import Connector

INTERVAL_S = 1.0
PS = {
    "models": [
        {
            "name": "llama3.1:8b", "model": "llama3.1:8b", "size": 5_000_000_000, "size_vram": 5_000_000_000,
            "digest": "d" * 64, "details": {}, "expires_at": "2318-01-01T00:00:00Z", "context_length": 8192,
        }
    ]
}  # fmt: skip


def write_machine_file(
    folder: Path,
    name: str,
    server: SshdServer,
    user: str,
    engine_port: int = 11434,
    gpus: int = 1,
    **ssh: str,
) -> Path:
    """A machine file as an operator would write it."""
    folder.mkdir(exist_ok=True)
    gpu = "[" + ", ".join(["{model: RTX 4090, vram_gb: 24}"] * gpus) + "]"
    extra = "".join(f", {key}: '{value}'" for key, value in ssh.items())
    path = folder / f"{name}.yaml"
    path.write_text(
        f"name: {name}\nrole: gpu-host\nhardware: {{gpu: {gpu}}}\n"
        f"network: {{hostname: {server.address}, port: {engine_port}}}\nmodels: []\n"
        f"ssh: {{user: {user}, port: {server.port}{extra}}}\n"
    )
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "machines"
    path.mkdir()
    return path


@asynccontextmanager
async def running(
    rig: SshdRig, folder: Path, interval_s: float = INTERVAL_S, **settings: object
) -> AsyncIterator[FleetService]:
    service = FleetService(FleetSettings(str(folder), interval_s), Connector(rig.settings(**settings)))
    await service.start()
    try:
        yield service
    finally:
        await service.stop()


async def until(
    service: FleetService,
    condition: Callable[[FleetSnapshot], object],
    timeout_s: float = 15.0,
    what: str = "",
) -> FleetSnapshot:
    """The first snapshot for which the condition holds."""
    found: asyncio.Future[FleetSnapshot] = asyncio.get_running_loop().create_future()

    def look(snapshot: FleetSnapshot) -> None:
        if not found.done() and condition(snapshot):
            found.set_result(snapshot)

    unsubscribe = service.subscribe(look)
    look(service.snapshot)
    try:
        return await asyncio.wait_for(found, timeout_s)
    except TimeoutError:
        raise AssertionError(
            f"{what or 'condition'}: not within {timeout_s} s; last: {service.snapshot}"
        ) from None
    finally:
        unsubscribe()


def machine(snapshot: FleetSnapshot, name: str = "ada") -> MachineSnapshot:
    found = snapshot.find(name)
    assert found is not None
    return found


def is_complete(snapshot: FleetSnapshot, name: str = "ada") -> bool:
    """Every source of the machine answered well."""
    found = snapshot.find(name)
    return found is not None and bool(found.sources) and all(s.state == "ok" for s in found.sources.values())


async def test_first_poll_fills_every_source(sshd_rig: SshdRig, folder: Path) -> None:
    server, ollama = sshd_rig.start(), sshd_rig.ollama()
    ollama.answers["/api/ps"] = PS
    write_machine_file(folder, "ada", server, sshd_rig.user, ollama.port)
    async with running(sshd_rig, folder) as service:
        snapshot = await until(service, is_complete, what="all sources ok")
    ada = machine(snapshot)
    assert ada.trust == "approved"
    assert ada.link.address == server.where
    assert ada.gpu is not None
    assert ada.gpu.cards
    assert ada.gpu.problem is None
    assert ada.memory is not None
    assert not isinstance(ada.memory.total_kib, Unknown)
    assert ada.cpu is not None
    assert ada.disks is not None
    assert ada.disks.disks
    assert ada.net is not None
    assert ada.system is not None
    assert [copy.name for copy in ada.loaded] == ["llama3.1:8b"]
    assert ada.loaded[0].is_pinned
    assert ada.engines[0].version == "0.12.3"


async def test_a_frozen_machine_delays_nobody_and_comes_back(sshd_rig: SshdRig, folder: Path) -> None:
    """10 s of SIGSTOP: the others' age stays under 1.5 intervals, by the product's own time stamps."""
    names = ["ada", "bora", "cleo"]
    servers = {name: sshd_rig.start() for name in names}
    for name, server in servers.items():
        write_machine_file(folder, name, server, sshd_rig.user)
    gaps: dict[str, list[float]] = {name: [] for name in names}
    async with running(sshd_rig, folder, silence_s=6.0) as service:
        await until(service, lambda s: all(machine(s, name).cpu is not None for name in names), what="all up")
        last = {name: machine(service.snapshot, name).last_seen or 0.0 for name in names}

        def note(snapshot: FleetSnapshot) -> None:
            for name in names:
                seen = machine(snapshot, name).last_seen or 0.0
                if seen > last[name]:
                    gaps[name].append(seen - last[name])
                    last[name] = seen

        service.subscribe(note)
        servers["bora"].freeze()
        frozen_at = time.time()
        offline = await until(service, lambda s: machine(s, "bora").health == "offline", 12.0, "bora offline")
        assert 5.0 < offline.taken_at - frozen_at < 11.0
        assert machine(offline, "bora").cpu is not None, "last good values stay"
        await asyncio.sleep(max(0.0, 10.0 - (time.time() - frozen_at)))
        servers["bora"].thaw()
        await until(service, lambda s: machine(s, "bora").health != "offline", 40.0, "bora back")
    for name in ("ada", "cleo"):
        assert len(gaps[name]) >= 6
        assert max(gaps[name]) < 1.5 * INTERVAL_S + 0.5, gaps[name]


async def test_a_killed_and_restarted_sshd_is_back_within_two_intervals(
    sshd_rig: SshdRig, folder: Path
) -> None:
    server = sshd_rig.start()
    write_machine_file(folder, "ada", server, sshd_rig.user)
    async with running(sshd_rig, folder, interval_s=2.0) as service:
        await until(service, lambda s: machine(s).cpu is not None, what="up")
        server.kill()
        lost = await until(service, lambda s: machine(s).health == "offline", what="offline")
        assert machine(lost).link.next_try_at is not None
        assert machine(lost).link.next_try_at <= lost.taken_at + 2.0, "first retry within one interval"
        await asyncio.sleep(0.5)
        server.start()
        up_again = time.time()
        back = await until(service, lambda s: machine(s).link.state == "up", what="back")
        assert back.taken_at - up_again < 4.0 + 1.0


async def test_an_unreachable_machine_backs_off_and_says_when_it_is_tried_again(
    sshd_rig: SshdRig, folder: Path
) -> None:
    server = sshd_rig.start()
    write_machine_file(folder, "ada", server, sshd_rig.user)
    server.kill()
    async with running(sshd_rig, folder) as service:
        snapshot = await until(service, lambda s: machine(s).link.state == "failed", what="failed")
    ada = machine(snapshot)
    assert ada.health == "offline"
    assert ada.link.stage == "connect"
    assert server.where in (ada.link.error or "")
    assert "refused" in (ada.link.error or "")
    assert ada.cpu is None, "a source never read stays unread"


async def test_an_unknown_host_key_means_no_login_and_no_command(sshd_rig: SshdRig, folder: Path) -> None:
    server = sshd_rig.start(is_trusted=False)
    write_machine_file(folder, "ada", server, sshd_rig.user)
    async with running(sshd_rig, folder) as service:
        snapshot = await until(service, lambda s: machine(s).trust == "pending", what="pending")
        ada = machine(snapshot)
        assert ada.link.offer is not None
        assert ada.link.offer.fingerprint == server.fingerprint()
        assert ada.link.offer.expected == ()
        assert ada.link.next_try_at is None, "no retry by itself"
        log = server.log_text()
        assert "userauth" not in log.lower(), "nothing authenticates before approval"
        assert "Starting session" not in log
        # The operator's own approval, e.g. by `ssh` once: polling begins without a restart.
        sshd_rig.trust(server)
        await until(service, lambda s: machine(s).cpu is not None, what="approved and polled")


async def test_a_changed_host_key_stops_polling_and_shows_both(sshd_rig: SshdRig, folder: Path) -> None:
    server = sshd_rig.start()
    write_machine_file(folder, "ada", server, sshd_rig.user)
    old = server.fingerprint()
    async with running(sshd_rig, folder) as service:
        await until(service, lambda s: machine(s).cpu is not None, what="up")
        server.kill()
        server.write_host_keys(number=77)
        server.clear_log()
        server.start()
        snapshot = await until(service, lambda s: machine(s).trust == "key_changed", what="key changed")
        ada = machine(snapshot)
        assert ada.link.offer is not None
        assert ada.link.offer.fingerprint == server.fingerprint()
        assert ada.link.offer.expected == (old,)
        assert ada.health == "offline"
        await asyncio.sleep(2 * INTERVAL_S)
        assert "userauth" not in server.log_text().lower()


async def test_a_refused_login_is_not_retried_until_something_changes(
    sshd_rig: SshdRig, folder: Path
) -> None:
    server = sshd_rig.start()
    keys = server.folder / "authorized_keys"
    allowed = keys.read_text()
    keys.write_text("")
    write_machine_file(folder, "ada", server, sshd_rig.user)
    async with running(sshd_rig, folder) as service:
        snapshot = await until(service, lambda s: machine(s).link.state == "failed", what="refused")
        assert machine(snapshot).link.stage == "authentication"
        assert machine(snapshot).link.next_try_at is None
        connections = server.log_text().count("Connection from")
        await asyncio.sleep(4 * INTERVAL_S)
        assert server.log_text().count("Connection from") == connections
        keys.write_text(allowed)
        service.poll_now("ada")
        await until(service, lambda s: machine(s).cpu is not None, what="after the operator's retry")


@pytest.mark.parametrize(
    ("mode", "code"),
    [("mismatch", "version_mismatch"), ("lost", None), ("not_available", None), ("absent", "no_tool")],
)
async def test_gpu_trouble_leaves_the_other_sources_alone(
    sshd_rig: SshdRig, folder: Path, mode: str, code: str | None
) -> None:
    server = sshd_rig.start(gpu=mode)
    write_machine_file(folder, "ada", server, sshd_rig.user)
    async with running(sshd_rig, folder) as service:
        snapshot = await until(
            service, lambda s: machine(s).gpu is not None and machine(s).cpu is not None, what="gpu answered"
        )
    ada = machine(snapshot)
    assert ada.gpu is not None
    if code is not None:
        assert ada.gpu.problem is not None
        assert ada.gpu.problem.code == code
        assert ada.health == "unhealthy"
    elif mode == "not_available":
        assert ada.gpu.cards
        assert all(isinstance(card.utilisation_percent, Unknown) for card in ada.gpu.cards)
    else:
        assert ada.gpu.faults
        assert ada.health == "unhealthy"
    assert ada.memory is not None
    assert ada.sources["memory"].state == "ok"


async def test_a_hanging_nvidia_smi_freezes_nothing_and_is_never_started_twice(
    sshd_rig: SshdRig, folder: Path
) -> None:
    server, ollama = sshd_rig.start(gpu="hang"), sshd_rig.ollama()
    write_machine_file(folder, "ada", server, sshd_rig.user, ollama.port)
    async with running(sshd_rig, folder) as service:
        await until(service, lambda s: machine(s).sources["gpu"].state == "late", what="gpu late")
        first = machine(service.snapshot).sources["cpu"].read_at or 0.0
        await until(
            service,
            lambda s: (machine(s).sources["cpu"].read_at or 0.0) > first + 3 * INTERVAL_S,
            what="cpu goes on",
        )
        ada = machine(service.snapshot)
        assert ada.health != "offline"
        assert ada.sources["ollama"].state == "ok"
        tools = [line for line in server.remote_commands() if "nvidia-smi" in " ".join(line[:2])]
        calls = [line for line in tools if "--query-gpu" in " ".join(line)]
        assert len(calls) <= 2, "the tool and its time limit, nothing more"


async def test_refused_forwarding_is_answered_another_way(sshd_rig: SshdRig, folder: Path) -> None:
    """Direct HTTP does not reach the loopback of a 127.77 machine here, so the machine's own curl answers."""
    server, ollama = sshd_rig.start(options={"AllowTcpForwarding": "no"}), sshd_rig.ollama()
    ollama.answers["/api/ps"] = PS
    write_machine_file(folder, "ada", server, sshd_rig.user, ollama.port)
    async with running(sshd_rig, folder) as service:
        snapshot = await until(service, lambda s: len(machine(s).loaded) == 1, what="copies seen")
    assert machine(snapshot).engines[0].path == "remote"
    assert machine(snapshot).link.state == "up"


async def test_refused_forwarding_is_answered_directly_where_the_port_is_open(
    sshd_rig: SshdRig, folder: Path
) -> None:
    server = sshd_rig.start(options={"AllowTcpForwarding": "no"})
    ollama = OllamaStandIn(server.address)
    ollama.answers["/api/ps"] = PS
    try:
        write_machine_file(folder, "ada", server, sshd_rig.user, ollama.port)
        async with running(sshd_rig, folder) as service:
            snapshot = await until(service, lambda s: len(machine(s).loaded) == 1, what="copies seen")
    finally:
        ollama.close()
    assert machine(snapshot).engines[0].path == "direct"


async def test_machine_files_are_read_again_without_a_restart(sshd_rig: SshdRig, folder: Path) -> None:
    ada, bora = sshd_rig.start(), sshd_rig.start()
    path = write_machine_file(folder, "ada", ada, sshd_rig.user)
    async with running(sshd_rig, folder) as service:
        await until(service, lambda s: machine(s).cpu is not None, what="ada up")
        write_machine_file(folder, "bora", bora, sshd_rig.user)
        await until(
            service, lambda s: s.find("bora") is not None and machine(s, "bora").cpu is not None, what="added"
        )
        connections = ada.log_text().count("Connection from")
        path.write_text(path.read_text() + "tags: [edge]\n")
        await until(service, lambda s: machine(s).machine.tags == ("edge",), what="edited")
        assert ada.log_text().count("Connection from") == connections, "a new tag needs no new connection"
        path.write_text("name: [broken\n")
        broken = await until(service, lambda s: s.problems, what="problem shown")
        assert machine(broken).machine.tags == ("edge",), "the last good version stays in use"
        path.unlink()
        await until(service, lambda s: s.find("ada") is None, what="removed")
        assert service.snapshot.find("bora") is not None


def test_after_sigkill_of_the_client_nothing_runs_on_the_machine(sshd_rig: SshdRig, folder: Path) -> None:
    server = sshd_rig.start(gpu="hang")
    write_machine_file(folder, "ada", server, sshd_rig.user)
    client = subprocess.Popen(
        [sys.executable, "-m", "fleettui", "status", "--watch", "--json", "--machines", str(folder)],
        env={**os.environ, "HOME": str(sshd_rig.home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert client.stdout is not None
        while not any(
            m["telemetry"] and m["telemetry"]["ram_total_gb"]
            for m in json.loads(client.stdout.readline())["machines"]
        ):
            continue
        wait_until(lambda: len(server.remote_processes()) >= 3, what="loops and the hanging tool run")
        client.send_signal(signal.SIGKILL)
        wait_until(lambda: not server.remote_processes(), 10.0, "everything of ours ended")
    finally:
        client.kill()
        client.wait()
        assert client.stdout is not None
        client.stdout.close()
