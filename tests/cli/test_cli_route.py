"""`fleettui route MODEL` and `fleettui --route MODEL` on the demo fleet: answers, reasons, exit codes."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_runner import SRC, Cli, write_machine

from fleettui.demo.launcher import DemoFleet


@pytest.fixture
def demo_cli(demo_fleet: DemoFleet, tmp_path: Path) -> Cli:
    """With a state folder of its own: leases of one test are no matter of another."""
    return Cli({**demo_fleet.environment, "FLEETTUI_STATE_DIR": str(tmp_path / "own-state")})


def address_of(fleet: DemoFleet, name: str) -> str:
    port = next(machine["engine_port"] for machine in fleet.machines if machine["name"] == name)
    return f"127.0.0.1:{port}"


def test_the_answer_alone_stands_on_stdout_and_the_reasons_on_stderr(
    demo_fleet: DemoFleet, demo_cli: Cli
) -> None:
    done = demo_cli("--route", "llama3.1:70b")
    assert (done.returncode, done.stdout) == (0, f"{address_of(demo_fleet, 'ada')}\n")
    lines = done.stderr.splitlines()
    assert lines[0].startswith("route llama3.1:70b  (2 eligible of 8")
    assert lines[1].split()[:3] == ["1", "ada", "tier"]
    assert len([line for line in lines if line.startswith(" -")]) == 6, "a line for each rejected machine"


@pytest.mark.parametrize(
    "words", [("route", "LLAMA3.1:70B"), ("--route=llama3.1:70b",), ("--no-lease", "--route", "llama3.1:70b")]
)
def test_every_spelling_gives_the_same_answer(
    demo_fleet: DemoFleet, demo_cli: Cli, words: tuple[str, ...]
) -> None:
    done = demo_cli(*words, "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{address_of(demo_fleet, 'ada')}\n", "")


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("address", "{address}\n"),
        ("host", "127.0.0.1\n"),
        ("name", "ada\n"),
        ("url", "http://{address}\n"),
        ("env", "export OLLAMA_HOST={address}\n"),
    ],
)
def test_formats(demo_fleet: DemoFleet, demo_cli: Cli, form: str, text: str) -> None:
    address = address_of(demo_fleet, "ada")
    done = demo_cli("route", "llama3.1:70b", "-q", "--format", form)
    assert done.stdout == text.format(address=address)


def test_tsv_is_name_host_port_and_tier(demo_fleet: DemoFleet, demo_cli: Cli) -> None:
    """Its clients ask all the time: whether the copy is seen at work depends on the moment."""
    fields = demo_cli("route", "llama3.1:70b", "-q", "--format", "tsv").stdout.removesuffix("\n").split("\t")
    assert fields[:3] == ["ada", "127.0.0.1", address_of(demo_fleet, "ada").rpartition(":")[2]]
    assert fields[3] in ("0", "1")


def test_a_name_without_tag_is_latest(demo_cli: Cli) -> None:
    done = demo_cli("route", "nomic-embed-text", "-q", "--format", "name")
    assert (done.returncode, done.stdout) == (0, "cleo\n")


def test_json_is_one_document_with_candidates_and_rejections(demo_fleet: DemoFleet, demo_cli: Cli) -> None:
    done = demo_cli("route", "llama3.1:70b", "--json", "-q")
    document = json.loads(done.stdout)
    assert document["schema"] == 1
    assert document["model"]["canonical"] == "llama3.1:70b"
    assert document["chosen"]["name"] == "ada"
    assert document["chosen"]["url"] == f"http://{address_of(demo_fleet, 'ada')}"
    assert document["chosen"]["tier"] in (0, 1), "its clients ask all the time"
    assert {item["name"] for item in document["rejected"]} == {
        "app-host", "cleo", "dora", "enno", "fips", "spark",
    }  # fmt: skip
    assert all(item["codes"] for item in document["rejected"])


def test_nobody_eligible_exits_1_with_an_empty_stdout(demo_cli: Cli) -> None:
    done = demo_cli("route", "llama3.1:70b", "--require-loaded", "--min-free-vram", "500")
    assert (done.returncode, done.stdout) == (1, "")
    assert "free_vram" in done.stderr


def test_json_is_printed_on_failure_too(demo_cli: Cli) -> None:
    done = demo_cli("route", "llama3.1:70b", "--exclude", "ada", "--exclude", "bora", "--json", "-q")
    document = json.loads(done.stdout)
    assert (done.returncode, document["chosen"]) == (1, None)
    assert {"name": "ada", "codes": ["excluded"]}.items() <= document["rejected"][0].items()


def test_unknown_model_exits_3_and_names_the_nearest(demo_cli: Cli) -> None:
    done = demo_cli("route", "llama3.1:71b", "--exclude", "none")
    assert (done.returncode, done.stdout) == (3, "")
    assert "nearest: llama3.1:70b" in done.stderr


def test_a_cold_choice_says_how_its_need_was_found(demo_cli: Cli) -> None:
    done = demo_cli("route", "qwen3:8b")
    assert done.returncode == 0
    assert "file size x 1.2 (assumed)" in done.stderr


def test_min_free_vram_takes_units_and_excludes_by_card(demo_cli: Cli) -> None:
    plenty = demo_cli("route", "gpt-oss:120b", "-q", "--format", "name", "--min-free-vram", "10GiB")
    mib = demo_cli("route", "gpt-oss:120b", "-q", "--format", "name", "--min-free-vram", "10240MiB")
    assert plenty.stdout == mib.stdout != ""


def test_no_machine_answers_exits_4(cli: Cli, machines_dir: Path) -> None:
    write_machine(machines_dir, "ada", ssh="{port: 1, host_key: 'SHA256:" + "A" * 43 + "'}")
    done = cli("route", "m", "--machines", str(machines_dir))
    assert (done.returncode, done.stdout) == (4, "")
    assert "offline" in done.stderr
    assert "127.0.0.1:1" in done.stderr
    assert "refused" in done.stderr


@pytest.fixture
def watching(demo_fleet: DemoFleet, tmp_path: Path) -> Iterator[dict[str, str]]:
    """A running `status --watch` with a state folder of its own; gives the environment of its readers."""
    environment = {
        **os.environ,
        **demo_fleet.environment,
        "FLEETTUI_STATE_DIR": str(tmp_path / "state"),
        "PYTHONPATH": SRC,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "fleettui", "status", "--watch", "--json", "--interval", "1"],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        for line in process.stdout:
            document = json.loads(line)
            if all(machine["last_seen"] for machine in document["machines"]) and _is_stored(tmp_path):
                break
        yield {name: environment[name] for name in ("FLEETTUI_MACHINES", "FLEETTUI_STATE_DIR")}
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


def _is_stored(tmp_path: Path) -> bool:
    """A snapshot is in the state file; the file itself is there from the start."""
    connection = sqlite3.connect(tmp_path / "state" / "state.db")
    try:
        return connection.execute("SELECT 1 FROM fleet_snapshots").fetchone() is not None
    finally:
        connection.close()


def test_a_fresh_stored_snapshot_answers_without_polling(
    demo_fleet: DemoFleet, watching: dict[str, str]
) -> None:
    cli = Cli(watching)
    done = cli("route", "llama3.1:70b", "-q", PYTHONPROFILEIMPORTTIME="1")
    assert (done.returncode, done.stdout) == (0, f"{address_of(demo_fleet, 'ada')}\n")
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert not loaded & {"asyncssh", "asyncio", "httpx", "pydantic", "textual", "yaml"}


def test_max_age_0_polls_although_a_snapshot_is_fresh(
    demo_fleet: DemoFleet, watching: dict[str, str]
) -> None:
    done = Cli(watching)("route", "llama3.1:70b", "-q", "--max-age", "0", PYTHONPROFILEIMPORTTIME="1")
    assert (done.returncode, done.stdout) == (0, f"{address_of(demo_fleet, 'ada')}\n")
    assert "asyncssh" in {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}


def test_stored_snapshots_are_kept_apart_by_machines_folder(
    watching: dict[str, str], machines_dir: Path
) -> None:
    """The same state folder, another fleet: nothing of the demo fleet may answer."""
    write_machine(machines_dir, "other", ssh="{port: 1}")
    done = Cli({**watching, "FLEETTUI_MACHINES": str(machines_dir)})("route", "llama3.1:70b")
    assert (done.returncode, done.stdout) == (4, "")
    assert "other" in done.stderr
    assert "ada" not in done.stderr
