"""`fleettui machines list|check`."""

from __future__ import annotations

import json
from pathlib import Path

from cli_runner import Cli, write_machine

GUIDE = Path(__file__).resolve().parents[1] / "fixtures" / "machines"


def test_list_json_returns_the_files_unmodified(cli: Cli) -> None:
    done = cli("machines", "list", "--json", "--machines", str(GUIDE))
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert document["schema"] == 1
    assert document["total"] == 2
    assert document["errors"] == []
    app_host, workstation = document["machines"]
    assert app_host["name"] == "app-host"
    assert app_host["hardware"]["gpu"] == []
    assert app_host["_config_file"] == str(GUIDE / "app-host.yaml")
    assert workstation["hardware"]["gpu"] == [
        {"model": "24GB consumer GPU", "vram_gb": 24},
        {"model": "24GB consumer GPU", "vram_gb": 24},
    ]
    assert workstation["tags"] == ["primary", "gpu", "training"]


def test_numbers_and_words_of_a_file_stand_in_json_as_written(cli: Cli, machines_dir: Path) -> None:
    write_machine(machines_dir, "ada", rack="1.10", power="on", bought="2026-01-02", note="x")
    done = cli("machines", "list", "--json", "--machines", str(machines_dir))
    assert '"rack": 1.10' in done.stdout
    machine = json.loads(done.stdout)["machines"][0]
    assert (machine["power"], machine["bought"], machine["note"]) == ("on", "2026-01-02", "x")


def test_a_broken_file_is_named_with_line_and_key_and_hides_nobody(cli: Cli, machines_dir: Path) -> None:
    write_machine(machines_dir, "ada")
    bad = write_machine(machines_dir, "bora", network="{port: 11434}")
    done = cli("machines", "list", "--machines", str(machines_dir))
    assert done.returncode == 0
    assert "ada" in done.stdout
    assert f"{bad}:4" in done.stderr
    assert "network.hostname" in done.stderr


def test_check_prints_all_errors_at_once_and_exits_2(cli: Cli, machines_dir: Path) -> None:
    write_machine(machines_dir, "ada", models="7", network="{hostname: a, port: 99999}")
    write_machine(machines_dir, "bora", role="[]")
    (machines_dir / "cleo.yaml").write_text("name: cleo\nname: twice\n")
    write_machine(machines_dir, "dora")
    done = cli("machines", "check", "--machines", str(machines_dir))
    assert done.returncode == 2
    for word in ("models", "network.port", "role", "cleo.yaml:2", "1 machine in"):
        assert word in done.stdout, word
    assert done.stderr == ""


def test_check_of_good_files_exits_0(cli: Cli) -> None:
    done = cli("machines", "check", "--machines", str(GUIDE))
    assert done.returncode == 0
    assert "2 machines" in done.stdout


def test_check_json_is_the_document_with_errors(cli: Cli, machines_dir: Path) -> None:
    bad = write_machine(machines_dir, "ada", models="7")
    done = cli("machines", "check", "--json", "--machines", str(machines_dir))
    assert done.returncode == 2
    (error,) = json.loads(done.stdout)["errors"]
    assert (error["file"], error["line"], error["key"]) == (str(bad), 5, "models")


def test_duplicate_names_name_both_files_and_keep_the_first(cli: Cli, machines_dir: Path) -> None:
    first = write_machine(machines_dir, "ada")
    second = machines_dir / "zz.yaml"
    second.write_text(first.read_text())
    done = cli("machines", "list", "--json", "--machines", str(machines_dir))
    document = json.loads(done.stdout)
    assert [machine["_config_file"] for machine in document["machines"]] == [str(first)]
    assert "ada.yaml" in document["errors"][0]["message"]
    assert document["errors"][0]["file"] == str(second)
