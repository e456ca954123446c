"""`fleettui inventory collect` on the demo fleet, in processes: YAML, files that keep keys, exit codes."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

from cli_runner import Cli, write_machine

from fleettui.config.inventory_file import load_inventory, read_inventory
from fleettui.demo.launcher import DemoFleet
from fleettui.model.unknown import Unknown
from fleettui.store.database import Store
from fleettui.store.profiles import load_profiles, save_profiles


def test_profiles_of_the_fleet_as_yaml_with_progress_on_stderr(demo_cli: Cli, tmp_path: Path) -> None:
    done = demo_cli("inventory", "collect", FLEETTUI_STATE_DIR=str(tmp_path))
    assert done.returncode == 1, "the driver of fips fails"
    inventory, problems = read_inventory(done.stdout.encode(), "stdout")
    assert problems == ()
    assert inventory is not None
    ada, spark, fips, app_host = (inventory.find(name) for name in ("ada", "spark", "fips", "app-host"))
    assert ada is not None
    assert not isinstance(ada.gpus, Unknown)
    assert [(gpu.index, gpu.memory_gb, gpu.compute_cap) for gpu in ada.gpus] == [
        (0, 24, (8, 9)),
        (1, 24, (8, 9)),
    ]
    assert (ada.cpu.cores, ada.cpu.threads, ada.memory_gb, ada.memory_kb) == (16, 32, 126, 131781380)
    assert spark is not None
    assert not isinstance(spark.gpus, Unknown)
    assert spark.gpus[0].is_unified
    assert spark.gpus[0].memory_gb == spark.memory_gb
    assert fips is not None
    assert isinstance(fips.gpus, Unknown)
    assert app_host is not None
    assert app_host.gpus == ()
    lines = done.stderr.splitlines()
    assert len(lines) == 8
    assert sorted(line.split()[0] for line in lines) == [f"[{number}/8]" for number in range(1, 9)]
    (failed,) = [line for line in lines if " fips: " in line]
    assert "; not read: gpus: NVIDIA driver/library version mismatch" in failed


def test_a_file_that_is_there_keeps_the_keys_of_its_owner(demo_cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "inventory.yaml"
    path.write_text(
        "site: attic\nnodes:\n"
        "- {name: elsewhere, gpus: [], note: mine}\n"
        "- name: ada\n  gpus:\n"
        "  - {index: 0, name: NVIDIA GeForce RTX 3090, memory_gb: 24, disabled: true}\n"
        "  - {index: 3, name: Tesla T4, memory_gb: 15}\n"
        "  cpu_roles: false\n"
    )
    words = ("inventory", "collect", "ada", "bora", "--output", str(path))
    done = demo_cli(*words, FLEETTUI_STATE_DIR=str(tmp_path / "state"))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines()[2:] == [
        "ada: GPU 0 was NVIDIA GeForce RTX 3090, is NVIDIA GeForce RTX 4090 now; still: disabled",
        "ada: GPU 3 (Tesla T4) is gone",
        f"{path}: 3 machines",
    ]
    inventory, problems = load_inventory(str(path))
    assert problems == ()
    assert inventory is not None
    assert inventory.keys == {"site": "attic"}
    assert [node.name for node in inventory.profiles] == ["elsewhere", "ada", "bora"]
    elsewhere, ada, bora = inventory.profiles
    assert elsewhere.keys == {"note": "mine"}
    assert ada.keys == {"cpu_roles": False}, "tags of the machine file are for new ones only"
    assert bora.keys == {"tags": ["secondary", "gpu", "office"]}
    assert not isinstance(ada.gpus, Unknown)
    assert [(gpu.name, gpu.is_disabled) for gpu in ada.gpus] == [
        ("NVIDIA GeForce RTX 4090", True), ("NVIDIA GeForce RTX 4090", False),
    ]  # fmt: skip


def test_what_is_no_ordinary_file_is_not_written_and_nobody_is_asked(demo_cli: Cli, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path, pipe):
        done = demo_cli("inventory", "collect", "-o", str(path))
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            f"fleettui inventory: {path} is no ordinary file; name another, or leave -o out to print\n"
        )


def test_a_file_with_an_error_is_left_alone_and_nobody_is_asked(demo_cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "inventory.yaml"
    path.write_text("name: ada\ngpus: [{name: X}]\n")
    done = demo_cli("inventory", "collect", "ada", "-o", str(path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"fleettui inventory: {path} is no sound inventory, and nothing of it may be lost\n"
        f"  {path}:2: gpus[0].index: gpus[0].index is missing; add `index: 0`.\n"
    )
    assert path.read_text() == "name: ada\ngpus: [{name: X}]\n"
    document = json.loads(demo_cli("inventory", "collect", "ada", "-o", str(path), "--json").stdout)
    (error,) = document["errors"]
    assert (document["nodes"], error["file"], error["line"], error["key"]) == (
        [], str(path), 2, "gpus[0].index",
    )  # fmt: skip
    done = demo_cli("inventory", "collect", "ada", "-o", str(tmp_path / "none" / "i.yaml"))
    assert (done.returncode, done.stdout) == (2, "")


def test_a_machine_that_does_not_answer_keeps_its_last_profile(
    cli: Cli, machines_dir: Path, tmp_path: Path
) -> None:
    write_machine(machines_dir, "here", ssh="local")
    words = ("inventory", "collect", "--machines", str(machines_dir), "--state-dir", str(tmp_path / "state"))
    first = cli(*words)
    assert first.returncode == 0
    assert first.stdout.startswith("name: here\ncpu: ")
    with Store.open(str(tmp_path / "state")) as store:
        assert list(load_profiles(store, str(machines_dir))) == ["here"]
    write_machine(machines_dir, "here", ssh="{host: 127.0.0.1, port: 1}")
    again = cli(*words)
    assert again.returncode == 4
    assert again.stdout == first.stdout
    told = again.stderr.splitlines()
    assert told[0].startswith("[1/1] here: not read: 127.0.0.1:1: ")
    assert told[1].startswith("here: its profile of ")
    write_machine(machines_dir, "new", ssh="{host: 127.0.0.1, port: 1}")
    done = cli(*words, "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["exit_code"], document["schema"]) == (4, 4, 1)
    assert [node["name"] for node in document["nodes"]] == ["here"]
    here, new = document["errors"]
    assert (here["name"], here["part"], new["name"], new["kept_from"]) == ("here", None, "new", None)
    assert here["kept_from"] == document["nodes"][0]["collected_at"]


def test_this_computer_needs_no_machine_file(cli: Cli, machines_dir: Path, tmp_path: Path) -> None:
    words = ("inventory", "collect", "--local", "--machines", str(machines_dir), "--state-dir", str(tmp_path))
    done = cli(*words, "--json")
    assert done.returncode == 0
    (node,) = json.loads(done.stdout)["nodes"]
    assert node["memory_kb"] == int(Path("/proc/meminfo").read_text().split()[1])
    assert cli(*words, "ada").returncode == 2


def test_keys_of_the_file_count_in_the_state_database_too(
    cli: Cli, machines_dir: Path, tmp_path: Path
) -> None:
    path = tmp_path / "inventory.yaml"
    state = str(tmp_path / "state")
    write_machine(machines_dir, "here", ssh="local")
    words = ("inventory", "collect", "--machines", str(machines_dir), "--state-dir", state, "-o", str(path))
    for keys, expected in (("tags: [attic]", {"tags": ["attic"]}), ("note: mine", {"note": "mine"})):
        path.write_text(f"name: here\n{keys}\n")
        assert cli(*words).returncode == 0
        with Store.open(state) as store:
            assert load_profiles(store, str(machines_dir))["here"].keys == expected


def test_a_file_that_cannot_be_written_says_where_the_profiles_are(
    cli: Cli, machines_dir: Path, tmp_path: Path
) -> None:
    write_machine(machines_dir, "here", ssh="local")
    words = ("inventory", "collect", "--machines", str(machines_dir), "-o", "/proc/inventory.yaml")
    done = cli(*words, "--state-dir", str(tmp_path / "state"))
    assert done.returncode == 2
    assert "; the profiles are kept in the state database\n" in done.stderr
    done = cli(*words, "--state-dir", "/proc/state")
    assert done.returncode == 2
    assert "\nthe profiles are not kept: /proc/state/state.db: " in done.stderr
    assert "; the profiles are kept nowhere\n" in done.stderr


def test_unknown_names_and_an_empty_folder(demo_cli: Cli, cli: Cli, machines_dir: Path) -> None:
    done = demo_cli("inventory", "collect", "adda")
    assert (done.returncode, done.stdout) == (3, "")
    assert "did you mean ada" in done.stderr
    assert cli("inventory", "collect", "--machines", str(machines_dir)).returncode == 2
    assert cli("inventory").returncode == 2


def test_a_card_that_is_gone_since_the_profile_degrades_its_machine(
    demo_cli: Cli, demo_fleet: DemoFleet, tmp_path: Path
) -> None:
    state = {"FLEETTUI_STATE_DIR": str(tmp_path)}
    folder = demo_fleet.environment["FLEETTUI_MACHINES"]
    demo_cli("inventory", "collect", "ada", **state)
    with Store.open(str(tmp_path)) as store:
        profile = load_profiles(store, folder)["ada"]
        assert not isinstance(profile.gpus, Unknown)
        assert not isinstance(profile.collected_at, Unknown)
        third = replace(profile.gpus[1], index=2)
        more = replace(profile, gpus=(*profile.gpus, third), collected_at=profile.collected_at + 1)
        save_profiles(store, folder, [more])
    (ada,) = json.loads(demo_cli("status", "ada", "--json", **state).stdout)["machines"]
    assert ada["health"] == "degraded"
    assert ada["reasons"][0].startswith("1 GPU missing (RTX 4090): 3 in the profile of 20")
