"""The restricted key of docs/remote-commands.md on a real sshd: polling works, and nothing else does."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from links import Lines, open_link
from sshd_rig import OllamaStandIn, SshdRig, SshdServer, run_tool
from test_ssh_fleet import PS, folder, is_complete, machine, running, until, write_machine_file

from fleettui.model.unknown import Unknown
from fleettui.net.connector import Connector
from fleettui.probes.commands import LOOP_KINDS
from fleettui.probes.loops import LoopKind, loop_command

__all__ = ["folder"]
ROOT = Path(__file__).resolve().parents[2]
WRAPPER = ROOT / "docs" / "restricted-key.sh"
PAGE = ROOT / "docs" / "remote-commands.md"
TOKEN = "0123456789abcdef"


def key_options() -> str:
    """The options of the line in authorized_keys, as the page shows them."""
    (line,) = (line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("restrict,"))
    return line.partition(" ssh-ed25519 ")[0]


def restrict_key(rig: SshdRig, server: SshdServer, engine_port: int) -> None:
    """The machine as the page tells an operator to set it up, with this engine's port."""
    script = server.folder / "fleettui-only"
    script.write_bytes(WRAPPER.read_bytes())
    script.chmod(0o755)
    options = key_options()
    assert ":11434" in options
    assert "/usr/local/bin/fleettui-only" in options
    options = options.replace(":11434", f":{engine_port}").replace(
        "/usr/local/bin/fleettui-only", str(script)
    )
    public = rig.identity.with_suffix(".pub").read_text()
    (server.folder / "authorized_keys").write_text(f"{options} {public}")


@pytest.fixture
def ollama(sshd_rig: SshdRig) -> OllamaStandIn:
    stand_in = sshd_rig.ollama()
    stand_in.answers["/api/ps"] = PS
    return stand_in


@pytest.fixture
def server(sshd_rig: SshdRig, ollama: OllamaStandIn) -> SshdServer:
    """A machine with a restricted key."""
    found = sshd_rig.start()
    restrict_key(sshd_rig, found, ollama.port)
    return found


def ssh(rig: SshdRig, server: SshdServer, *arguments: str, options: tuple[str, ...] = ()) -> str:
    """OpenSSH's own client with the restricted key; what it printed, and its exit code."""
    command = ["ssh", "-F", "/dev/null", "-i", str(rig.identity), "-p", str(server.port)]
    command += [
        "-o",
        f"UserKnownHostsFile={rig.known_hosts}",
        "-o",
        "BatchMode=yes",
        "-o",
        "ConnectTimeout=10",
    ]
    command += [*options, f"{rig.user}@{server.address}", *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "SSH_AUTH_SOCK"}
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env=environment,
        stdin=subprocess.DEVNULL,
    )
    return f"{done.stdout}{done.stderr}[{done.returncode}]"


async def test_polling_works_whole(
    sshd_rig: SshdRig, folder: Path, server: SshdServer, ollama: OllamaStandIn
) -> None:
    write_machine_file(folder, "ada", server, sshd_rig.user, ollama.port, gpus=2)
    async with running(sshd_rig, folder) as service:
        snapshot = await until(
            service, lambda s: is_complete(s) and len(machine(s).loaded) == 1, what="every source answered"
        )
    ada = machine(snapshot)
    assert ada.cpu is not None
    assert not isinstance(ada.cpu.busy_percent, Unknown)
    assert ada.gpu is not None
    assert [card.used_mib for card in ada.gpu.cards] == [1000, 1500]
    assert ada.processes is not None
    assert ada.engines[0].path == "tunnel"
    assert "/api/ps" in ollama.requests


async def test_without_forwarding_the_engine_is_still_seen(
    sshd_rig: SshdRig, folder: Path, server: SshdServer, ollama: OllamaStandIn
) -> None:
    """The page's advice for who does not want the engine's port to be reached with this key."""
    keys = server.folder / "authorized_keys"
    keys.write_text(keys.read_text().replace("port-forwarding,", ""))
    write_machine_file(folder, "ada", server, sshd_rig.user, ollama.port)
    async with running(sshd_rig, folder) as service:
        snapshot = await until(service, lambda s: len(machine(s).loaded) == 1, what="copies seen")
    assert machine(snapshot).engines[0].path == "remote"


@pytest.mark.parametrize("kind", LOOP_KINDS)
async def test_each_loop_answers_with_any_token(
    sshd_rig: SshdRig, server: SshdServer, connect: Callable[..., Connector], kind: LoopKind
) -> None:
    link, _ = await open_link(connect(), sshd_rig.machine(server))
    try:
        for token in (TOKEN, "ffffffffffffffff"):
            lines = await Lines().open(link, loop_command(kind, token))
            await lines.ask(b"1 nothing\n", f"nothing 64 0\n\x1f{token} 1\n".encode())
    finally:
        await link.close()


FACTS = loop_command("facts", TOKEN)


@pytest.mark.parametrize(
    "command",
    [
        "id",
        "",
        "sh -c 'echo ran'",
        FACTS + "; echo ran",
        FACTS + "\necho ran",
        "echo ran; " + FACTS,
        FACTS.replace("exec /bin/sh", "exec  /bin/sh"),
        FACTS.replace("/proc/stat", "/etc/passwd"),
        FACTS[:-1],
        FACTS + "0",
        FACTS[:-16] + "$(echo ran >&2)1",
        FACTS[:-16] + "`echo ran >&2` ",
        FACTS[:-16] + "0123456789ABCDEF",
        f"exec /bin/sh -c 'echo ran' fleettui-facts {TOKEN}",
        TOKEN,
        "$(echo ran >&2)",
        "a\\nb %s %d " + TOKEN,
    ],
)
def test_any_other_command_is_refused(sshd_rig: SshdRig, server: SshdServer, command: str) -> None:
    answer = ssh(sshd_rig, server, *([command] if command else []))
    assert "fleettui-only: not a command of " in answer
    assert answer.endswith("[126]")
    assert "ran" not in answer.split()


def test_a_subsystem_and_a_terminal_are_refused(sshd_rig: SshdRig, server: SshdServer) -> None:
    assert "subsystem request failed" in ssh(sshd_rig, server, "sftp", options=("-s",))
    assert "PTY allocation request failed" in ssh(sshd_rig, server, options=("-tt",))


def test_only_the_engines_port_is_reached(
    sshd_rig: SshdRig, server: SshdServer, ollama: OllamaStandIn
) -> None:
    other = sshd_rig.ollama()
    refused = "administratively prohibited"
    for target in (f"127.0.0.1:{other.port}", f"{server.address}:{server.port}", f"[::1]:{other.port}"):
        assert refused in ssh(sshd_rig, server, options=("-W", target)), target
    assert refused not in ssh(sshd_rig, server, options=("-W", f"127.0.0.1:{ollama.port}"))
    assert refused not in ssh(sshd_rig, server, options=("-W", f"[::1]:{ollama.port}"))
    assert other.connections == 0


def test_no_port_is_opened_on_the_machine(sshd_rig: SshdRig, server: SshdServer) -> None:
    options = ("-N", "-o", "ExitOnForwardFailure=yes", "-R", "0:127.0.0.1:1")
    assert "remote port forwarding failed" in ssh(sshd_rig, server, options=options)


async def test_a_script_of_another_version_says_so(
    sshd_rig: SshdRig, folder: Path, server: SshdServer
) -> None:
    script = server.folder / "fleettui-only"
    lines = script.read_text().splitlines(keepends=True)
    script.write_text("".join("0" + line if line.endswith("# facts\n") else line for line in lines))
    write_machine_file(folder, "ada", server, sshd_rig.user)
    async with running(sshd_rig, folder) as service:
        snapshot = await until(
            service, lambda s: "another version" in str(machine(s).sources["cpu"].error), what="said"
        )
        assert "not a command of this fleettui" in str(machine(snapshot).sources["cpu"].error)
        await until(service, lambda s: machine(s).gpu is not None, what="the other loop works on")


def test_the_wrapper_is_plain_sh() -> None:
    for shell in ("dash", "bash", "busybox sh"):
        program = shell.split()
        try:
            run_tool(*program, "-n", str(WRAPPER))
        except FileNotFoundError:
            continue
