"""What was written a moment ago is in the very next answer, however long the interval is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from served import SRC, Served

from fleettui.serve.app import ENDPOINTS

FILE = """\
name: {name}
role: gpu-host
hardware: {{gpu: [{{model: RTX 4090, vram_gb: 24}}]}}
network: {{hostname: {name}.lan}}
models: [llama3.1:8b]
ssh: {{host: 127.0.0.1, port: 9}}
answer: on
version: 1.10
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "machines"
    path.mkdir()
    return path


@pytest.fixture
def served(folder: Path, tmp_path: Path) -> Iterator[Served]:
    """A server that looks at the folder by itself once a minute."""
    options = ("--machines", str(folder), "--state-dir", str(tmp_path / "state"), "--interval", "60")
    with Served(tmp_path / "stderr", {}, *options) as served:
        yield served


def names(served: Served, path: str) -> list[str]:
    return [machine["name"] for machine in served.json(path)["machines"]]


def run(*arguments: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "fleettui", *arguments],
        env={**os.environ, "PYTHONPATH": SRC}, cwd="/", stdin=subprocess.DEVNULL, capture_output=True,
        timeout=60, check=True,
    )  # fmt: skip


def test_files_that_come_change_and_go(served: Served, folder: Path) -> None:
    assert served.json("/api/machines")["total"] == 0
    (folder / "bora.yaml").write_text(FILE.format(name="bora"))
    assert names(served, "/api/machines") == ["bora"]
    (folder / "ada.yml").write_text(FILE.format(name="ada"))
    assert names(served, "/api/infrastructure") == ["ada", "bora"]
    assert served.json("/api/machines/ada")["status"] == "offline"

    answer = served.ask("/api/machines")
    assert b'"version":1.10,' in answer.body  # as the operator wrote it
    assert answer.json["machines"][0]["answer"] == "on"

    (folder / "ada.yml").write_text(FILE.format(name="ada").replace("gpu-host", "spare"))
    assert served.json("/api/infrastructure")["machines"][0]["role"] == "spare"

    (folder / "ada.yml").write_text("name: [")
    document = served.json("/api/infrastructure")
    assert [machine["role"] for machine in document["machines"]] == ["spare", "gpu-host"]
    assert [error["file"] for error in document["errors"]] == [str(folder / "ada.yml")]

    (folder / "bora.yaml").unlink()
    assert names(served, "/api/machines") == ["ada"]
    assert served.ask("/api/machines/bora").status == 404


def test_decisions_of_other_processes(served: Served, folder: Path, tmp_path: Path) -> None:
    (folder / "ada.yaml").write_text(FILE.format(name="ada"))
    assert served.json("/api/machines/ada")["maintenance"]["on"] is False
    where = ("--machines", str(folder), "--state-dir", str(tmp_path / "state"))
    run("maintenance", "on", "ada", "--reason", "fan swap", *where)
    told = served.json("/api/machines/ada")["maintenance"]
    assert (told["on"], told["reason"]) == (True, "fan swap")
    answer = served.ask("/api/route", model="llama3.1:8b")
    assert answer.status == 503
    assert "maintenance" in answer.json["rejected"][0]["codes"]
    run("maintenance", "off", "ada", *where)
    assert served.json("/api/infrastructure")["machines"][0]["maintenance"]["on"] is False


def test_no_answer_has_a_secret(folder: Path, tmp_path: Path) -> None:
    """A key for an engine stands in the environment; files and answers have the name of the variable."""
    engines = "engines: [{kind: vllm, port: 9, api_key_env: RACK_KEY}]\n"
    (folder / "ada.yaml").write_text(FILE.format(name="ada").replace("port: 9}", "port: 9}\n" + engines, 1))
    options = ("--machines", str(folder), "--state-dir", str(tmp_path / "other"), "--interval", "0.5")
    with Served(tmp_path / "log", {"RACK_KEY": "hunter2-hunter2"}, *options) as served:
        assert b"RACK_KEY" in served.ask("/api/machines").body
        for endpoint in ENDPOINTS:
            if endpoint.media_type == "application/json":
                path = endpoint.path.replace("{name:path}", "ada")
                answer = served.ask(path, **({"model": "x"} if path == "/api/route" else {}))
                assert b"hunter2" not in answer.body
    assert "hunter2" not in served.log.read_text()


def test_nobody_answers_and_nothing_to_plan(served: Served, folder: Path) -> None:
    answer = served.ask("/api/route", model="llama3.1:8b")
    assert (answer.status, answer.json["error"]["code"]) == (503, "no_telemetry")
    answer = served.ask("/api/plan")
    assert (answer.status, answer.json["error"]["code"]) == (503, "no_roles")
