"""`machines doctor` on real sshd servers: what works, and what the machine itself has wrong."""

from __future__ import annotations

import asyncio

import pytest
from doctor_runs import examine, link_for, put_persistent_smi, put_readable_journal, put_tool
from links import until
from sshd_rig import OllamaStandIn, SshdRig, SshdServer, free_port

from fleettui.fleet.doctor.run import doctor_settings, run_doctor
from fleettui.model.doctor import Checkup
from fleettui.model.machine import DeclaredGpu, Machine, SshSettings
from fleettui.model.record import replace
from fleettui.net.connector import Connector


@pytest.fixture
def server(sshd_rig: SshdRig) -> SshdServer:
    started = sshd_rig.start()
    put_persistent_smi(started)
    put_readable_journal(started)
    return started


@pytest.fixture
def ollama(sshd_rig: SshdRig) -> OllamaStandIn:
    return sshd_rig.ollama("0.0.0.0")


def with_gpus(machine: Machine, count: int = 2) -> Machine:
    return replace(machine, gpus=(DeclaredGpu("RTX 4090", 24.0),) * count)


async def test_a_machine_in_order_passes_every_check_with_one_login(
    sshd_rig: SshdRig, server: SshdServer, ollama: OllamaStandIn
) -> None:
    machine = with_gpus(sshd_rig.machine(server, engine_port=ollama.port))
    (found,) = await examine(sshd_rig.settings(), machine)
    assert found.checkup.verdict == "pass"
    assert set(found.states().values()) == {"pass"}, found.checkup
    assert [result.id for result in found.checkup.results] == [
        "file", "name", "tcp", "host_key", "authentication", "shell", "forwarding", "gpu_tool", "driver",
        "persistence", f"engine:ollama:{ollama.port}", "address", "clock", "journal", "disk",
    ]  # fmt: skip
    assert all(result.hint is None for result in found.checkup.results)
    assert found["tcp"].evidence == server.where
    assert found["host_key"].evidence == f"ED25519 {server.fingerprint()}, in known_hosts"
    assert found["authentication"].evidence.startswith(f"as {sshd_rig.user}, OpenSSH_")
    assert found["shell"].evidence.startswith(f"runs commands as {sshd_rig.user}")
    assert found["gpu_tool"].evidence.startswith(f"{server.folder}/bin/nvidia-smi in ")
    assert found["driver"].evidence == "550.54.15, 2 GPUs: NVIDIA GeForce RTX 4090"
    assert found["persistence"].evidence == "on"
    assert found["journal"].evidence == "kernel log readable, Ollama's too"
    log = server.log_text()
    assert log.count("Accepted publickey") == 1
    assert log.count("Connection from") == 1
    await until(lambda: not server.remote_processes())


async def test_cpu_only_machines_have_no_gpu_to_check(sshd_rig: SshdRig, server: SshdServer) -> None:
    machine = replace(sshd_rig.machine(server), gpus=())
    (found,) = await examine(sshd_rig.settings(), machine)
    assert found.skipped_for("declared CPU-only") == ["gpu_tool", "driver", "persistence"]
    assert not (server.folder / "gpu-calls").exists()


async def test_this_machine_has_no_ssh_to_check(sshd_rig: SshdRig) -> None:
    machine = Machine("here", "gpu-host", "127.0.0.1", 1, ssh=SshSettings(is_local=True))
    (found,) = await examine(sshd_rig.settings(), machine)
    assert found.skipped_for("ssh: local") == ["name", "tcp", "host_key", "authentication", "forwarding"]
    assert found["shell"].state == "pass"
    assert found["clock"].state == "pass"


async def test_engines_that_are_down_or_something_else(sshd_rig: SshdRig, server: SshdServer) -> None:
    port = free_port("127.0.0.1")
    grafana = sshd_rig.ollama("0.0.0.0")
    grafana.answers = {"/api/ps": b"<html><title>Grafana</title></html>"}
    down, other = await examine(
        sshd_rig.settings(),
        sshd_rig.machine(server, "down", engine_port=port),
        sshd_rig.machine(server, "other", engine_port=grafana.port),
    )
    engine = down[f"engine:ollama:{port}"]
    assert engine.state == "fail"
    assert "nothing listens" in engine.evidence
    assert engine.hint == "start Ollama there, or correct its port in the machine file"
    assert down["forwarding"].evidence == f"allowed; nothing listens on port {port}"
    assert down["forwarding"].state == "pass"
    assert down["address"].evidence == f"needs Ollama :{port}"
    engine = other[f"engine:ollama:{grafana.port}"]
    assert engine.state == "fail"
    assert "Grafana" in engine.evidence
    assert engine.evidence.endswith("this is no Ollama")
    assert other["address"].state == "skip"


async def test_an_engine_that_never_answers_costs_its_limit(sshd_rig: SshdRig, server: SshdServer) -> None:
    hung = sshd_rig.ollama("0.0.0.0")
    hung.gate.clear()
    (found,) = await examine(sshd_rig.settings(), sshd_rig.machine(server, engine_port=hung.port))
    engine = found[f"engine:ollama:{hung.port}"]
    assert (engine.state, engine.evidence) == ("fail", "accepts connections and gives no answer within 3 s")
    assert found["disk"].state == "pass"


async def test_loopback_only_is_a_warning_with_the_remedy(sshd_rig: SshdRig, server: SshdServer) -> None:
    bound = sshd_rig.ollama("127.0.0.1")
    (found,) = await examine(sshd_rig.settings(), sshd_rig.machine(server, engine_port=bound.port))
    address = found["address"]
    assert found[f"engine:ollama:{bound.port}"].state == "pass"
    assert address.state == "warn"
    assert address.evidence == (
        f"Ollama listens on 127.0.0.1 only, and scripts get {server.address}:{bound.port} from --route"
    )
    assert address.hint is not None
    assert "OLLAMA_HOST=0.0.0.0" in address.hint
    assert "only trusted networks" in address.hint
    assert found.checkup.verdict == "warn"


async def test_refused_forwarding_is_told_and_the_engine_asked_straight(
    sshd_rig: SshdRig, ollama: OllamaStandIn
) -> None:
    server = sshd_rig.start(options={"AllowTcpForwarding": "no"})
    (found,) = await examine(sshd_rig.settings(), sshd_rig.machine(server, engine_port=ollama.port))
    assert (found["forwarding"].state, found["forwarding"].evidence) == (
        "warn",
        "SSH port forwarding is refused there",
    )
    assert "AllowTcpForwarding yes" in (found["forwarding"].hint or "")
    engine = found[f"engine:ollama:{ollama.port}"]
    assert engine.state == "pass"
    assert engine.evidence.endswith("asked straight from here")


SENTENCES = {
    "mismatch": (
        "echo 'Failed to initialize NVML: Driver/library version mismatch'; "
        "echo 'NVML library version: 535.161'; exit 18",
        "version mismatch",
        "reboot",
    ),
    "no devices": ("echo 'No devices were found'; exit 6", "sees no GPU", "lspci"),
    "permission": (
        "echo 'Failed to initialize NVML: Insufficient Permissions'; exit 4",
        "no permission for the GPU devices",
        "group of /dev/nvidia",
    ),
    "no driver": (
        "echo 'NVIDIA-SMI has failed because it couldn'\"'\"'t communicate with the NVIDIA driver.'; exit 9",
        "driver not running",
        "modprobe nvidia",
    ),
}


@pytest.mark.parametrize("case", SENTENCES)
async def test_what_nvidia_smi_complains_of_is_the_drivers(sshd_rig: SshdRig, case: str) -> None:
    body, evidence, hint = SENTENCES[case]
    server = sshd_rig.start(gpu="absent")
    put_tool(server, "nvidia-smi", body)
    (found,) = await examine(sshd_rig.settings(), with_gpus(sshd_rig.machine(server)))
    assert found["gpu_tool"].state == "pass"
    assert found["driver"].state == "fail"
    assert evidence in found["driver"].evidence
    assert hint in (found["driver"].hint or "")
    assert found["persistence"].evidence == "needs driver"
    assert found["disk"].state == "pass"


async def test_nvidia_smi_that_is_not_there(sshd_rig: SshdRig) -> None:
    server = sshd_rig.start(gpu="absent")
    declared, open_ = await examine(
        sshd_rig.settings(),
        with_gpus(sshd_rig.machine(server, "declared")),
        sshd_rig.machine(server, "open"),
    )
    assert declared["gpu_tool"].state == "fail"
    assert (
        "no nvidia-smi in PATH and the usual places; the file declares 2 GPUs"
        in declared["gpu_tool"].evidence
    )
    assert declared.skipped_for("needs GPU tool") == ["driver", "persistence"]
    assert open_["gpu_tool"].state == "skip"
    assert open_["gpu_tool"].evidence == "no GPU tool found, and the file declares no GPU"
    assert "fail" not in {open_[name].state for name in ("gpu_tool", "driver", "persistence")}


async def test_fewer_cards_than_declared_and_persistence_off(sshd_rig: SshdRig) -> None:
    server = sshd_rig.start()
    put_persistent_smi(server, "Disabled")
    (found,) = await examine(sshd_rig.settings(), with_gpus(sshd_rig.machine(server), 3))
    assert found["driver"].state == "warn"
    assert found["driver"].evidence.endswith("the file declares 3")
    assert found["persistence"].state == "warn"
    assert "nvidia-smi -pm 1" in (found["persistence"].hint or "")


async def test_a_hung_nvidia_smi_costs_3_s_and_is_not_left_behind(sshd_rig: SshdRig) -> None:
    server = sshd_rig.start(gpu="hang")
    (found,) = await examine(sshd_rig.settings(), with_gpus(sshd_rig.machine(server)))
    tool = found["gpu_tool"]
    assert tool.state == "fail"
    assert tool.evidence.endswith("/bin/nvidia-smi did not answer within 3 s and was ended")
    assert "may only be slow: turn persistence mode on" in (tool.hint or "")
    assert tool.took_ms is not None
    assert tool.took_ms >= 2900
    assert found["disk"].state == "pass"
    assert (server.folder / "gpu-calls").read_text().count("\n") == 1, "never a second one"
    await until(lambda: not server.remote_processes())


async def test_a_server_that_allows_one_session_is_told(sshd_rig: SshdRig) -> None:
    server = sshd_rig.start(options={"MaxSessions": "1"})
    (found,) = await examine(sshd_rig.settings(), with_gpus(sshd_rig.machine(server)))
    assert found["shell"].state == "pass"
    assert found["gpu_tool"].state == "fail"
    assert "limits sessions" in found["gpu_tool"].evidence
    assert "MaxSessions" in (found["gpu_tool"].hint or "")
    assert found["disk"].state == "pass"


async def test_a_journal_that_may_not_be_read_names_the_group(sshd_rig: SshdRig) -> None:
    server = sshd_rig.start()
    hint = "echo 'Hint: You are currently not seeing messages from other users and the system.' >&2"
    put_tool(server, "journalctl", f"{hint}; echo '-- No entries --'")
    put_tool(server, "id", '[ "$1" = -un ] && echo ops || echo ops users')
    (found,) = await examine(sshd_rig.settings(), sshd_rig.machine(server))
    assert (found["journal"].state, found["journal"].evidence) == (
        "warn",
        "ops may not read the system's journal",
    )
    assert "usermod -aG systemd-journal ops" in (found["journal"].hint or "")


async def test_a_clock_that_is_behind_and_a_full_disk(sshd_rig: SshdRig) -> None:
    server = sshd_rig.start()
    put_tool(server, "date", 'exec /usr/bin/date -d "90 seconds ago" "$@"')
    put_tool(
        server,
        "df",
        "echo 'Filesystem 1024-blocks Used Available Capacity Mounted on'\n"
        "echo '/dev/sda1 100000000 97000000 3000000 97% /'",
    )
    (found,) = await examine(sshd_rig.settings(), sshd_rig.machine(server))
    assert found["clock"].state == "warn"
    assert found["clock"].evidence.startswith(("90.0 s behind ours", "90.1 s behind ours"))
    assert found["disk"].state == "warn"
    assert found["disk"].evidence == "/ is 97 % full (2.9 GiB free)"


async def test_cancelling_leaves_nothing_on_the_machine(sshd_rig: SshdRig) -> None:
    server = sshd_rig.start(gpu="hang")
    connector = Connector(doctor_settings(sshd_rig.settings()))
    machine = with_gpus(sshd_rig.machine(server))
    task = asyncio.create_task(run_doctor([machine], connector, link_for(connector), lambda _: None))
    await until((server.folder / "gpu-calls").exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not server.remote_processes())
    assert len(server.processes()) == 1, "the listener alone"


async def test_a_dead_machine_does_not_delay_the_others(sshd_rig: SshdRig, server: SshdServer) -> None:
    hung = sshd_rig.start(gpu="hang")
    done: list[str] = []

    def note(checkup: Checkup) -> None:
        if checkup.is_done:
            done.append(checkup.name)

    machines = [with_gpus(sshd_rig.machine(hung, "a-hung")), sshd_rig.machine(server, "b-fine")]
    connector = Connector(doctor_settings(sshd_rig.settings()))
    checkups = await run_doctor(machines, connector, link_for(connector), note)
    assert done == ["b-fine", "a-hung"]
    assert [checkup.name for checkup in checkups] == ["a-hung", "b-fine"]
