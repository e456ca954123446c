"""`fleettui status` and `fleettui` without a terminal, on the demo fleet and on unreachable machines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runner import SRC, Cli, write_machine

from fleettui.demo.launcher import DemoFleet

NAMES = ["ada", "app-host", "bora", "cleo", "dora", "enno", "fips", "spark"]


def test_text_has_a_line_per_machine_gpu_and_copy(demo_cli: Cli) -> None:
    done = demo_cli("status")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("8/8 up · 11 GPUs")
    assert [line.split()[0] for line in lines[1:] if line and line[0] != " "] == NAMES
    assert sum(line.startswith("  [") for line in lines) == 11
    assert any("[0] NVIDIA GeForce RTX 4090 | " in line and "/ 24.0 GiB" in line for line in lines)
    assert any("llama3.1:70b" in line and "100 % GPU" in line for line in lines)
    assert "\x1b" not in done.stdout


def test_without_a_command_and_without_a_terminal_it_is_status(demo_cli: Cli) -> None:
    done = demo_cli()
    assert done.returncode == 0
    assert done.stdout.startswith("8/8 up")


def test_names_choose_machines(demo_cli: Cli) -> None:
    done = demo_cli("status", "spark", "ada")
    assert [line.split()[0] for line in done.stdout.splitlines()[1:] if line and line[0] != " "] == [
        "ada",
        "spark",
    ]


def test_unknown_name_exits_3_with_the_nearest(demo_cli: Cli) -> None:
    done = demo_cli("status", "adda")
    assert (done.returncode, done.stdout) == (3, "")
    assert "ada" in done.stderr


def test_json_has_the_documented_shape(demo_cli: Cli) -> None:
    document = json.loads(demo_cli("status", "--json").stdout)
    assert document["schema"] == 1
    machines = {machine["name"]: machine for machine in document["machines"]}
    assert list(machines) == NAMES
    ada = machines["ada"]
    assert ada["status"] == "online"
    assert ada["health"] == "healthy"
    assert ada["network"]["hostname"] == "127.0.0.1"
    assert ada["file"]["name"] == "ada"
    assert len(ada["telemetry"]["gpu"]) == 2
    assert ada["telemetry"]["ram_total_gb"] == 125.7
    assert "llama3.1:70b" in ada["loaded_models"]
    assert ada["sources"]["gpu"]["state"] == "ok"
    assert "gpu" not in machines["app-host"]["telemetry"], "absent on CPU-only machines"
    assert machines["fips"]["health"] == "unhealthy"
    assert machines["fips"]["status"] == "online", "reachable, though its GPU is not"
    assert machines["spark"]["telemetry"]["gpu"][0]["unified"] is True
    enno = {copy["name"]: copy for copy in machines["enno"]["loaded"]}
    assert enno["qwen3:32b"]["gpu_percent"] == 83


def test_unreachable_machines_exit_4_and_the_fleet_is_printed_with_the_reason(
    cli: Cli, machines_dir: Path
) -> None:
    write_machine(machines_dir, "ada", ssh="{port: 1}")
    done = cli("status", "--machines", str(machines_dir))
    assert done.returncode == 4
    assert "✗ offline" in done.stdout
    assert "127.0.0.1:1: connection refused" in done.stdout
    document = json.loads(cli("status", "--json", "--machines", str(machines_dir)).stdout)
    (machine,) = document["machines"]
    assert (machine["status"], machine["health"], machine["last_seen"]) == ("offline", "offline", None)


def test_without_machines_it_exits_2_and_says_what_next(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "bad.yaml").write_text("name: bad\n")
    (tmp_path / "empty").mkdir()
    for name in ("empty", "missing", "broken"):
        done = cli("status", "--machines", str(tmp_path / name))
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count(str(tmp_path / name)) >= 1
        assert "fleettui demo" in done.stderr
        as_json = cli("status", "--json", "--machines", str(tmp_path / name))
        assert (as_json.returncode, json.loads(as_json.stdout)["machines"]) == (2, [])
        assert bool(json.loads(as_json.stdout)["errors"]) == (name != "empty")
        assert "bad.yaml" not in as_json.stderr


def test_a_broken_file_is_named_on_stderr_and_the_rest_is_printed(
    cli: Cli, machines_dir: Path, demo_fleet: DemoFleet
) -> None:
    (machines_dir / "ada.yaml").write_bytes((demo_fleet.machines_dir / "ada.yaml").read_bytes())
    (machines_dir / "bad.yaml").write_text("name: bad\nrole: x\n")
    done = cli("status", "--machines", str(machines_dir))
    assert done.returncode == 0
    assert "ada" in done.stdout
    assert "bad.yaml" in done.stderr
    assert "bad.yaml" not in done.stdout
    assert "network" in done.stderr


def test_watch_prints_one_json_document_a_line_and_ends_on_interrupt(
    demo_fleet: DemoFleet, tmp_path: Path
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "fleettui", "status", "--watch", "--json", "--interval", "0.5"],
        env={**os.environ, **demo_fleet.environment, "FLEETTUI_STATE_DIR": str(tmp_path), "PYTHONPATH": SRC},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    documents = [json.loads(process.stdout.readline()) for _ in range(3)]
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=15)
    assert all(len(document["machines"]) == 8 for document in documents)
    assert "Traceback" not in errors
    assert process.returncode == 130


def test_a_closed_pipe_is_no_traceback(demo_fleet: DemoFleet) -> None:
    done = subprocess.run(
        ["sh", "-c", f"'{sys.executable}' -m fleettui status | head -n 1"],
        capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, **demo_fleet.environment, "PYTHONPATH": SRC},
    )  # fmt: skip
    assert done.stdout.startswith("8/8 up")
    assert done.stderr == ""


@pytest.mark.parametrize("encoding", ["ascii"])
def test_a_terminal_without_unicode_gets_question_marks_instead_of_an_error(
    demo_cli: Cli, encoding: str
) -> None:
    done = demo_cli("status", "ada", PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    assert done.returncode == 0
    assert "ada" in done.stdout


def test_demo_without_a_terminal_prints_the_fleet_and_one_routed_answer(cli: Cli) -> None:
    done = cli("demo", "--machines", "3")
    assert done.returncode == 0
    assert done.stdout.startswith("3/3 up")
    assert "$ fleettui --route " in done.stdout
    assert done.stdout.splitlines()[-1].startswith("127.0.0.1:")


def test_demo_serve_only_prints_what_to_export_and_stops_on_terminate(cli: Cli) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "fleettui", "demo", "--serve-only", "--calm", "--machines", "2"],
        env={**os.environ, "PYTHONPATH": SRC}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(2)]
    exported = dict(line.removeprefix("export ").strip().split("=", 1) for line in lines)
    assert set(exported) == {"FLEETTUI_MACHINES", "FLEETTUI_STATE_DIR"}
    assert Cli(exported)("status").stdout.startswith("2/2 up")
    process.terminate()
    process.communicate(timeout=15)
    assert process.returncode == 0
    assert not Path(exported["FLEETTUI_MACHINES"]).exists(), "nothing of the demo is left behind"
