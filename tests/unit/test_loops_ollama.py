"""The section `ollama` in real shells: only names that are wanted ever leave the machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from loop_runner import SHELLS, Loop, find_shell, wait_until, write_tool

from fleettui.model.ollama_settings import OllamaSettings
from fleettui.probes.engines.ollama_environment import parse_ollama_settings
from fleettui.probes.frames import Section

UNIT = """echo LoadState=loaded
echo 'Environment=OLLAMA_NUM_PARALLEL=4 OPENAI_KEY=sk-secret "NOTE=a b" OLLAMA_KV_CACHE_TYPE=q8_0'"""


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return find_shell(request.param)


def ask(shell: str, tools: Path) -> Section:
    loop = Loop("facts", shell, path=tools)
    try:
        return loop.ask("ollama")["ollama"]
    finally:
        loop.close()


def test_the_environment_of_the_service(shell: str, tmp_path: Path) -> None:
    write_tool(tmp_path / "bin", "systemctl", UNIT)
    answer = ask(shell, tmp_path / "bin")
    assert answer.payload.decode().split() == ["OLLAMA_NUM_PARALLEL=4", "OLLAMA_KV_CACHE_TYPE=q8_0"]
    assert parse_ollama_settings(answer.payload, answer.exit_code) == OllamaSettings(
        parallel=4, cache_type="q8_0"
    )


def test_files_that_the_unit_names(shell: str, tmp_path: Path) -> None:
    file = tmp_path / "ollama.env"
    file.write_text("# comment\nOLLAMA_CONTEXT_LENGTH=8192\nAPI_TOKEN=secret\nOLLAMA_ORIGINS=*\n")
    write_tool(tmp_path / "bin", "systemctl", f"{UNIT}\necho 'EnvironmentFiles={file} (ignore_errors=yes)'")
    answer = ask(shell, tmp_path / "bin")
    told = parse_ollama_settings(answer.payload, answer.exit_code)
    assert told == OllamaSettings(parallel=4, cache_type="q8_0", context=8192)
    assert b"secret" not in answer.payload
    assert b"ORIGINS" not in answer.payload


@pytest.mark.parametrize(
    "body",
    ["echo LoadState=not-found; echo Environment=", "exit 1", "sleep 60", "head -c 300000 /dev/zero"],
)
def test_where_nothing_can_be_read(body: str, tmp_path: Path) -> None:
    write_tool(tmp_path / "bin", "systemctl", body)
    begun = time.monotonic()
    answer = ask("/bin/sh", tmp_path / "bin")
    assert (answer.exit_code, answer.payload) == (1, b"")
    assert time.monotonic() - begun < 6, "a hung tool must not pass for a silent machine"


def test_a_unit_without_settings_has_the_defaults(tmp_path: Path) -> None:
    write_tool(tmp_path / "bin", "systemctl", "echo LoadState=loaded; echo Environment=PATH=/usr/bin")
    answer = ask("/bin/sh", tmp_path / "bin")
    assert parse_ollama_settings(answer.payload, answer.exit_code) == OllamaSettings()


@pytest.fixture
def own_ollama(tmp_path: Path) -> Iterator[int]:
    """A process of ours of that name, as a user starts the server."""
    program = tmp_path / "ollama"
    shutil.copy("/bin/sleep", program)
    environment = {"OLLAMA_NUM_PARALLEL": "2", "OLLAMA_HOST": "0.0.0.0:11999", "HF_TOKEN": "hf_secret"}
    process = subprocess.Popen([program, "60"], env={"PATH": os.environ["PATH"], **environment})
    wait_until(lambda: (Path("/proc") / str(process.pid) / "comm").read_text() == "ollama\n")
    yield process.pid
    process.kill()
    process.wait(5)


def test_the_environment_of_our_own_process_comes_first(shell: str, own_ollama: int, tmp_path: Path) -> None:
    write_tool(tmp_path / "bin", "systemctl", UNIT)
    answer = ask(shell, tmp_path / "bin")
    assert parse_ollama_settings(answer.payload, answer.exit_code) == OllamaSettings(11999, 2)
    assert b"secret" not in answer.payload
