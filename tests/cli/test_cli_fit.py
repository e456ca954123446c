"""`fleettui fit MODEL` on the demo fleet: verdicts, figures, exit codes, what is kept."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from cli_runner import Cli, write_machine

from fleettui.demo.launcher import DemoFleet
from fleettui.demo.models import CATALOG, need_bytes

GIB = 1 << 30
CODER = "qwen3-coder:30b"


def test_figures_are_those_of_the_simulated_engines(demo_cli: Cli) -> None:
    done = demo_cli("fit", CODER, "--context", "8k", "--parallel", "1", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    found = {item["name"]: item for item in document["machines"]}
    assert len(found) == 8
    real = need_bytes(CATALOG[CODER], 8192)
    item = found["dora"]
    assert item["verdict"] == "one_gpu", item
    assert abs(item["needed_bytes"] - 512 * (1 << 20) - real) <= 0.02 * real, "CUDA context aside"
    assert item["need"]["basis"] in ("tensors", "other machine")
    assert item["ollama"]["predicted_bytes"] < item["needed_bytes"], "half of the cache: heads of 64"
    assert item["use"]["context"] == 8192
    assert all(item["use"]["is_parallel_known"] for item in found.values() if item["use"])
    assert found["app-host"]["gpus"] == []
    assert document["model"]["architecture"] == "qwen3moe"


def test_the_shape_is_kept_for_the_next_run(demo_fleet: DemoFleet, demo_cli: Cli) -> None:
    assert demo_cli("fit", CODER).returncode == 0
    path = Path(demo_fleet.environment["FLEETTUI_STATE_DIR"]) / "state.db"
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT digest FROM model_shapes").fetchall()
    assert (CATALOG[CODER].digest,) in rows


def test_text(demo_cli: Cli) -> None:
    done = demo_cli("fit", "llama3.1:70b", "--context", "8192")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("fit llama3.1:70b (context 8192; 8 machines")
    assert lines[2].split()[:5] == ["MACHINE", "FITS", "NEED", "FREE", "OLLAMA"]
    ada = next(line for line in lines if line.split()[1:2] == ["ada"])
    assert "on 2 GPUs" in ada
    assert "resident with ctx 8192" in ada
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(
    ("words", "exit_code", "text"),
    [
        (("nope:7b",), 3, "nothing is known of 'nope:7b'"),
        (("  ",), 2, "the model's name is empty"),
        ((CODER, "--context", "lots"), 2, "'lots' is not a number of tokens"),
        ((CODER, "--parallel", "0"), 2, "not a number of requests from 1 to 1024"),
        ((CODER, "--machine", "zoe"), 3, "zoe"),
        ((CODER, "--context", "256k", "--machine", "enno", "--parallel", "64"), 1, "fits on no machine now"),
    ],
)
def test_failures_say_what_and_why(demo_cli: Cli, words: tuple[str, ...], exit_code: int, text: str) -> None:
    done = demo_cli("fit", *words)
    assert done.returncode == exit_code, (done.stdout, done.stderr)
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_no_machine_answers(cli: Cli, machines_dir: Path, tmp_path: Path) -> None:
    write_machine(machines_dir, "gone", network="{hostname: 127.0.0.1, port: 1}", ssh="{port: 1}")
    done = cli(
        "fit", "m", "--json", "--machines", str(machines_dir), "--state-dir", str(tmp_path / "s"),
        "--deadline", "2",
    )  # fmt: skip
    assert done.returncode == 4
    document = json.loads(done.stdout)
    assert (document["exit_code"], document["machines"][0]["verdict"]) == (4, "unknown")
