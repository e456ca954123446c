"""The catalog on the command line: checked, followed by routing, and never in its way."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from cli_runner import Cli, write_machine

from builders import make_copy, make_engine, make_snapshot
from fleettui.config.catalog_folder import load_catalog_files
from fleettui.model.snapshot import FleetSnapshot
from fleettui.store.database import Store
from fleettui.store.snapshots import save_snapshot

HF = "meta-llama/Llama-3.1-70B-Instruct"
GOOD = f"models: {{big: {{vram_gb: 40.5, names: {{ollama: 'llama3.1:70b', vllm: {HF}}}}}}}\n"
BROKEN = "models:\n  big: {vram_gb: 40 GB, engine: [vlm]}\n"


@pytest.fixture
def catalog_dir(tmp_path: Path) -> Path:
    """A folder with a small catalog."""
    folder = tmp_path / "catalog"
    folder.mkdir()
    (folder / "models.yaml").write_text(GOOD)
    return folder


def test_check_counts_models_and_names_what_is_wrong(cli: Cli, machines_dir: Path, catalog_dir: Path) -> None:
    write_machine(machines_dir, "ada")
    words = ("machines", "check", "--machines", str(machines_dir), "--catalog", str(catalog_dir))
    done = cli(*words)
    good = f"1 machine in {machines_dir}, 1 model in {catalog_dir}/models.yaml: no problem found\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, good, "")
    (catalog_dir / "models.yaml").write_text(BROKEN)
    done = cli(*words)
    assert (done.returncode, done.stderr) == (2, "")
    path = catalog_dir / "models.yaml"
    assert done.stdout.splitlines() == [
        f"{path}:2: models.big.vram_gb: models.big.vram_gb must be a number without quotes or unit; "
        "write `vram_gb: 6.5`.",
        f"{path}:2: models.big.engine: models.big.engine is no key that is read; write engines if that is "
        "meant, else another word.",
        f"2 problems in 1 file; 1 machine in {machines_dir} can be used",
    ]
    errors = json.loads(cli(*words, "--json").stdout)["errors"]
    assert [(error["file"], error["line"], error["key"]) for error in errors] == [
        (str(path), 2, "models.big.vram_gb"), (str(path), 2, "models.big.engine"),
    ]  # fmt: skip


def test_validate_judges_the_catalog_in_use_or_the_one_named(
    cli: Cli, tmp_path: Path, catalog_dir: Path
) -> None:
    done = cli("config", "validate", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1:] == [f"{catalog_dir}/models.yaml: fine"]
    (catalog_dir / "roles.yaml").write_text("roles: {chat: {share_with: chat}}\n")
    done = cli("config", "validate", str(catalog_dir / "roles.yaml"), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (
        2,
        f"{catalog_dir}/roles.yaml:1: roles.chat.share_with: roles.chat.share_with names the role itself; "
        "name another role, or remove the key.\n",
    )
    (catalog_dir / "roles.yaml").write_text("roles: {chat: {}}\n")
    done = cli("config", "validate", cwd=tmp_path)
    assert done.stdout.splitlines()[1:] == [
        f"{catalog_dir}/{name}.yaml: fine" for name in ("models", "roles")
    ]
    (catalog_dir / "models.yaml").write_text(BROKEN)
    for words in ((), (str(catalog_dir / "models.yaml"),)):
        done = cli("config", "validate", *words, cwd=tmp_path)
        assert done.returncode == 2
        assert len(done.stdout.splitlines()) == 2
        assert done.stderr == "fleettui config validate: 2 errors\n  keys and values: docs/catalog.md\n"


def test_a_cold_route_reads_the_file(demo_cli: Cli, catalog_dir: Path) -> None:
    done = demo_cli("--catalog", str(catalog_dir), "--route", HF, "--format", "name", "--no-lease")
    assert (done.returncode, done.stdout) == (0, "ada\n")
    assert ", as llama3.1:70b" in done.stderr
    done = demo_cli("route", HF, "-q")
    assert done.returncode == 3


def test_a_broken_catalog_is_told_and_stops_nobody(demo_cli: Cli, catalog_dir: Path) -> None:
    (catalog_dir / "models.yaml").write_text(BROKEN)
    done = demo_cli(
        "route", "llama3.1:70b", "--format", "name", "--no-lease", FLEETTUI_CATALOG=str(catalog_dir)
    )
    assert (done.returncode, done.stdout) == (0, "ada\n")
    assert f"{catalog_dir}/models.yaml:2: models.big.vram_gb:" in done.stderr
    done = demo_cli("status", FLEETTUI_CATALOG=str(catalog_dir))
    assert done.returncode == 0
    assert f"{catalog_dir}/models.yaml:2: models.big.vram_gb:" in done.stderr


@pytest.fixture
def stored(machines_dir: Path, catalog_dir: Path, tmp_path: Path) -> tuple[str, ...]:
    """Options for a fleet that a dashboard stored this moment, with the catalog; a vLLM has the model."""
    write_machine(machines_dir, "ada")
    engine = make_engine(kind="vllm", port=8000, loaded=[make_copy(HF, engine="vllm")])
    now = time.time()
    machine = make_snapshot("ada", engines=(engine,), sources={}, last_seen=now)
    catalog = load_catalog_files(str(catalog_dir)).catalog
    fleet = FleetSnapshot(1, now, 600.0, (machine,), (), str(machines_dir), catalog=catalog)
    with Store.open(str(tmp_path / "state")) as store:
        save_snapshot(store, fleet, {"ada"}, written_at=now)
    return ("--machines", str(machines_dir), "--state-dir", str(tmp_path / "state"))


def test_a_warm_route_knows_the_stored_catalog_without_yaml(
    cli: Cli, stored: tuple[str, ...], machines_dir: Path
) -> None:
    done = cli("--route", "big", "--format", "name", *stored, cwd=machines_dir, PYTHONPROFILEIMPORTTIME="1")
    assert (done.returncode, done.stdout) == (0, "ada\n")
    assert f", as {HF}" in done.stderr
    assert " fleettui.store.catalog\n" in done.stderr
    for heavy in ("yaml", "pydantic", "asyncssh"):
        assert f" {heavy}\n" not in done.stderr


def test_a_catalog_of_the_command_s_own_goes_first(cli: Cli, stored: tuple[str, ...], tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "models.yaml").write_text(GOOD.replace("big", "mine"))
    done = cli("route", "mine", "--format", "name", *stored, "--catalog", str(own))
    assert (done.returncode, done.stdout) == (0, "ada\n")
    done = cli("route", "big", "--format", "name", *stored, "--catalog", str(own))
    assert done.returncode == 3
    done = cli("route", "big", "--format", "name", *stored, "--catalog", str(tmp_path / "none"))
    assert (done.returncode, done.stdout) == (0, "ada\n")
    assert f"{tmp_path}/none: The catalog's folder does not exist" in done.stderr
    done = cli("fit", "mine", *stored, "--catalog", str(own))
    assert done.returncode != 3
    assert cli("fit", "big", *stored, "--catalog", str(own)).returncode == 3
