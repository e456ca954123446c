"""`fleettui --print-completion`: the shells themselves are asked what they would complete."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_runner import SRC, Cli, write_machine

from fleettui.model.gpu import GpuCard, GpuReading
from fleettui.model.lease import Lease
from fleettui.model.machine import EngineEndpoint, Machine
from fleettui.model.readings import EngineReading, InstalledModel, LoadedModel, ModelTraits
from fleettui.model.snapshot import FleetSnapshot, LinkStatus, MachineSnapshot
from fleettui.store.database import Store
from fleettui.store.leases import take_lease
from fleettui.store.snapshots import save_snapshot

ASK_BASH = """
eval "$(fleettui --print-completion bash)"
COMP_LINE=$1; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9
_python_argcomplete fleettui
printf '%s\\n' "${COMPREPLY[@]}"
"""
needs_zsh = pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh")
needs_fish = pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish")


@pytest.fixture
def shell_environment(tmp_path: Path, machines_dir: Path) -> dict[str, str]:
    """`fleettui` in the PATH, three machine files and a snapshot that is a day old."""
    folder = tmp_path / "bin"
    folder.mkdir()
    tool = folder / "fleettui"
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m fleettui "$@"\n')
    tool.chmod(0o755)
    write_machine(machines_dir, "ada")
    write_machine(machines_dir, "app-host")
    (machines_dir / "other.yaml").write_text('# a note\nname: "bora"  # its name\nrole: [broken\n')
    (machines_dir / "nameless.yaml").write_text("role: x\n")
    engine = EngineReading(
        kind="ollama",
        port=11434,
        state="ok",
        loaded=(LoadedModel("llama3.1:8b", "ollama", traits=ModelTraits(adapters=("sql-lora",))),),
        installed=(InstalledModel("llama3.1:70b", "ollama"), InstalledModel("qwen3:8b", "ollama")),
    )
    machine = MachineSnapshot(
        Machine("ada", "gpu-host", "ada.lan", tags=("edge",), engines=(EngineEndpoint("ollama", 11434),)),
        link=LinkStatus("up", since=1.0),
        engines=(engine,),
        gpu=GpuReading((GpuCard(0), GpuCard(1))),
        health="healthy",
    )
    written_at = time.time() - 86_400
    fleet = FleetSnapshot(1, written_at, 2.0, (machine,), (), str(machines_dir))
    store = Store.open(str(tmp_path / "state"))
    save_snapshot(store, fleet, {"ada"}, written_at=written_at)
    until = time.time() + 600
    lease = Lease("k7qm3x9dtw", "ada", 11434, "ollama", "llama3.1:8b", "resident", time.time(), until)
    take_lease(store, str(machines_dir), lambda *_: lease)
    store.close()
    catalog = tmp_path / "catalog"
    catalog.mkdir()
    names = "{ollama: QWEN3:8b, vllm: org/voice}"
    (catalog / "models.yaml").write_text(f"models: {{voice: {{names: {names}}}}}\n")
    return {
        **os.environ,
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PYTHONPATH": SRC,
        "FLEETTUI_MACHINES": str(machines_dir),
        "FLEETTUI_STATE_DIR": str(tmp_path / "state"),
        "FLEETTUI_CATALOG": str(catalog),
    }


def run(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("fleettui ma", {"machines", "maintenance"}),
        ("fleettui machines ap", {"approve "}),
        ("fleettui config ", {"path", "print", "validate", "schema"}),
        ("fleettui logs ", {"ada", "app-host", "bora", "nameless"}),
        ("fleettui logs ad", {"ada "}),
        ("fleettui status ada ap", {"app-host "}),
        ("fleettui route x --exclude bo", {"bora "}),
        ("fleettui route x --tag ", {"edge "}),
        ("fleettui route ll", {"llama3.1:8b", "llama3.1:70b"}),
        ("fleettui --route q", {"qwen3:8b "}),
        ("fleettui route vo", {"voice "}),
        ("fleettui pick or", {"org/voice "}),
        ("fleettui fit sq", {"sql-lora "}),
        ("fleettui pick ll", {"llama3.1:8b", "llama3.1:70b"}),
        ("fleettui pick --format u", {"url "}),
        ("fleettui --route=q", {"qwen3:8b "}),
        ("fleettui --readonly --route llama3.1:7", {"70b "}),
        ("fleettui --route x --format t", {"tsv "}),
        ("fleettui --route x --min", {"--min-free-vram "}),
        ("fleettui --rou", {"--route "}),
        ("fleettui route --release ", {"k7qm3x9dtw "}),
        ("fleettui status --fi", {"--filter "}),
        ("fleettui placement plan --without bo", {"bora "}),
        ("fleettui placement plan --disable ada:", {"0", "1"}),
        ("fleettui --print-completion z", {"zsh "}),
        ("fleettui demo --seed ", {""}),
        ("fleettui drain ", {"start", "status", "cancel"}),
        ("fleettui drain start --force-class ", {"last-copy", "cannot", "unmanaged"}),
    ],
)
def test_bash(line: str, wanted: set[str], shell_environment: dict[str, str]) -> None:
    answer = run(["bash", "--norc", "-c", ASK_BASH, "bash", line], shell_environment)
    assert {item.rstrip() for item in answer.splitlines()} == {item.rstrip() for item in wanted}


def test_another_folder_on_the_line_is_looked_into(shell_environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "others").mkdir()
    write_machine(tmp_path / "others", "zoe")
    line = f"fleettui --machines {tmp_path / 'others'} logs "
    assert run(["bash", "--norc", "-c", ASK_BASH, "bash", line], shell_environment).split() == ["zoe"]


@needs_fish
def test_fish(shell_environment: dict[str, str]) -> None:
    def ask(line: str) -> set[str]:
        script = "fleettui --print-completion fish | source; complete -C $argv[1]"
        answer = run(["fish", "--no-config", "-c", script, line], shell_environment)
        return {item.partition("\t")[0] for item in answer.splitlines()}

    assert ask("fleettui ma") == {"machines", "maintenance"}
    assert ask("fleettui logs a") == {"ada", "app-host"}
    assert ask("fleettui --route ll") == {"llama3.1:8b", "llama3.1:70b"}


@needs_zsh
@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("fleettui logs ap", "fleettui logs app-host"),
        ("fleettui config va", "fleettui config validate"),
        ("fleettui --route q", "fleettui --route qwen3:8b"),
    ],
)
def test_zsh(typed: str, wanted: str, shell_environment: dict[str, str], tmp_path: Path) -> None:
    """A zsh at a terminal, Tab pressed."""
    environment = {**shell_environment, "TERM": "dumb", "ZDOTDIR": str(tmp_path), "PS1": "$ "}
    child, terminal = pty.fork()
    if child == 0:
        os.execvpe("zsh", ["zsh", "-f", "-i"], environment)  # noqa: S606
    try:
        os.write(
            terminal,
            b"unsetopt zle_bracketed_paste prompt_sp; autoload -U compinit; compinit -D -u; "
            b'eval "$(fleettui --print-completion zsh)"; echo rea""dy\n',
        )
        read_until(terminal, "ready\r\n")
        # The widget's result is printed by zsh itself, so that nothing depends on how it redraws the line.
        os.write(
            terminal,
            b'show() { print -r -- "[$BUFFER]" >&2 }; zle -N show; bindkey \'^X\' show; echo se""t\n',
        )
        read_until(terminal, "set\r\n")
        os.write(terminal, typed.encode() + b"\t\x18")
        assert f"[{wanted}".replace("\\", "") in read_until(terminal, "]").replace("\\", "")
    finally:
        os.close(terminal)
        os.waitpid(child, 0)


def read_until(terminal: int, text: str, timeout_s: float = 30.0) -> str:
    """What the terminal showed up to a text."""
    seen = ""
    deadline = time.monotonic() + timeout_s
    while text not in seen:
        left = deadline - time.monotonic()
        assert left > 0, f"{text!r} did not come: {seen!r}"
        if select.select([terminal], [], [], left)[0]:
            seen += os.read(terminal, 65536).decode(errors="replace")
    return seen


def test_wrong_settings_and_missing_folders_complete_to_nothing(
    shell_environment: dict[str, str], tmp_path: Path
) -> None:
    environment = {**shell_environment, "FLEETTUI_MACHINES": str(tmp_path / "none")}
    assert run(["bash", "--norc", "-c", ASK_BASH, "bash", "fleettui logs "], environment).split() == []
    environment = {**shell_environment, "FLEETTUI_INTERVAL_S": "x"}
    assert run(["bash", "--norc", "-c", ASK_BASH, "bash", "fleettui logs "], environment).split() == []


def test_an_unknown_shell_is_a_usage_error(cli: Cli) -> None:
    done = cli("--print-completion", "tcsh")
    assert (done.returncode, done.stdout) == (2, "")
