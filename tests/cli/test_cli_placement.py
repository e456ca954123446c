"""`fleettui placement plan`: on an inventory to the byte, on the demo fleet with the shipped catalog."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from cli_runner import Cli, write_machine

from builders import NOW, make_copy, make_fleet, make_offline, make_snapshot
from fleettui.model.profile import Profile, ProfileGpu
from fleettui.model.record import replace
from fleettui.model.snapshot import MaintenanceFlag
from fleettui.store.database import Store
from fleettui.store.flags import change_maintenance
from fleettui.store.profiles import save_profiles
from fleettui.store.snapshots import save_snapshot

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = str(ROOT / "catalog")
Planner = Callable[..., subprocess.CompletedProcess[str]]

MODELS = """\
engines:
  pytorch: {min_cc: 7.5, cpu: true}
  vllm: {min_cc: 7.0}
models:
  chat-a: {vram_gb: 20, engines: [vllm]}
  chat-b: {vram_gb: 21, engines: [vllm]}
  voice: {kind: tts, vram_gb: 4, engines: [pytorch]}
  rank: {kind: reranker, vram_gb: 2, engines: [pytorch]}
"""
ROLES = """\
roles:
  chat: {needs: {engine: vllm, min_vram_gb: 20}, prefer: largest, count: 2, priority: 1}
  embed: {needs: {engine: pytorch, min_vram_gb: 4}, priority: 2, cpu_fallback: true}
  tts: {needs: {engine: pytorch, min_vram_gb: 4}, share_with: chat, priority: 3}
  rerank: {needs: {engine: pytorch, gpu: false}, priority: 4}
"""
INVENTORY = """\
nodes:
- {name: n3, memory_gb: 256, gpus: []}
- name: n1
  memory_gb: 64
  gpus:
  - {index: 1, name: GTX 1080, memory_gb: 12, compute_cap: "6.1"}
  - {index: 0, name: RTX 3090, memory_gb: 24, compute_cap: 8.6}
- {name: n2, memory_gb: 128, gpus: [{index: 0, name: RTX 4090, memory_gb: 24, compute_cap: 8.9}]}
"""
TEXT = """\
plan: 5 of 5 copies placed, 2 of 3 GPUs taken
copies on GPUs: greedy 3, optimal 3

n1  64 GB RAM
   0  RTX 3090   24 GB ▕██████████▏  chat/0    20 GB  chat-a
                                     tts/0      4 GB  with chat, voice
   1  GTX 1080   12 GB ▕          ▏  free
n2  128 GB RAM
   0  RTX 4090   24 GB ▕████████▍ ▏  chat/1    20 GB  chat-b +1
n3  256 GB RAM
  CPU                                embed/0          no GPU free, voice +1
                                     rerank/0         rank
"""
YAML = """\
schema: 1
method: greedy
copies_on_gpus: {greedy: 3, optimal: 3}
assignments:
- role: chat
  copy: 0
  node: n1
  gpu_index: 0
  slots: 1
  models_fitting: [chat-a]
- role: chat
  copy: 1
  node: n2
  gpu_index: 0
  slots: 1
  models_fitting: [chat-b, chat-a]
- role: embed
  copy: 0
  node: n3
  fallback: true
  slots: 1
  models_fitting: [voice, rank]
- role: tts
  copy: 0
  node: n1
  gpu_index: 0
  shared_with: chat
  slots: 1
  models_fitting: [voice, rank]
- role: rerank
  copy: 0
  node: n3
  slots: 1
  models_fitting: [voice, rank]
unplaced: []
disabled_gpus: []
excluded_nodes: []
switched_off: []
warnings: []
"""
WITHOUT_N2 = """\
diff: 1 to remove, 4 stay

CHANGE  COPY      MODEL   FROM  TO
keep    chat/0    chat-a  n1/0  n1/0
keep    embed/0   voice   n3    n3
keep    tts/0     voice   n1/0  n1/0
keep    rerank/0  rank    n3    n3
remove  chat/1    chat-b  n2/0
"""
LOSSES = """\
N-1: 2 of 3 machines cannot be spared: n1, n2

WITHOUT  COPIES  LEFT UNPLACED
n1            2  chat
n2            1  chat
n3            2  none
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The example of docs/placement.md as files."""
    catalog = tmp_path / "catalog"
    catalog.mkdir()
    (catalog / "models.yaml").write_text(MODELS)
    (catalog / "roles.yaml").write_text(ROLES)
    (tmp_path / "fleet.yaml").write_text(INVENTORY)
    return tmp_path


@pytest.fixture
def plan(cli: Cli, folder: Path) -> Planner:
    """`placement plan` on that inventory, in that folder."""

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        return cli(
            "placement", "plan", "--catalog", "catalog", "--inventory", "fleet.yaml", *options, cwd=folder
        )

    return run


def test_an_inventory_is_planned_to_the_byte(plan: Planner, folder: Path) -> None:
    done = plan()
    assert (done.returncode, done.stdout, done.stderr) == (0, TEXT, "")
    done = plan("--yaml")
    assert (done.returncode, done.stdout, done.stderr) == (0, YAML, "")
    done = plan("--json", "--strict")
    assert (done.returncode, json.loads(done.stdout), done.stderr) == (0, yaml.safe_load(YAML), "")
    nodes = yaml.safe_load(INVENTORY)["nodes"]
    (folder / "fleet.yaml").write_text(json.dumps({"nodes": nodes[::-1]}))
    assert plan("--yaml").stdout == YAML, "the order of an inventory means nothing"


def test_an_output_that_has_only_ascii(cli: Cli, folder: Path) -> None:
    options = ("--catalog", "catalog", "--inventory", "fleet.yaml", "--without", "n2")
    done = cli("placement", "plan", *options, cwd=folder, PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert "?" not in done.stdout


def test_a_plan_is_read_back_to_compare_with_it_and_to_keep_it(plan: Planner, folder: Path) -> None:
    (folder / "plan.yaml").write_text(plan("--yaml").stdout)
    (folder / "plan.json").write_text(plan("--json").stdout)
    done = plan("--diff", "plan.json", "--detailed-exitcode")
    assert done.returncode == 0
    assert done.stdout.startswith("diff: nothing to do, 5 copies stay\n")
    optimal = plan("--diff", "plan.json", "--optimal")
    assert optimal.stdout.splitlines()[1] == "copies on GPUs: greedy 3, optimal 3"
    document = json.loads(plan("--diff", "plan.json", "--keep", "plan.json", "--json").stdout)
    assert document["copies_on_gpus"] == {"greedy": 3, "optimal": 3, "kept": 3}
    done = plan("--diff", "plan.yaml", "--without", "n2", "--detailed-exitcode")
    assert (done.returncode, done.stdout, done.stderr) == (1, WITHOUT_N2, "")
    assert plan("--diff", "plan.yaml", "--without", "n2").returncode == 0
    gone = plan("--diff", "plan.yaml", *(f"--without=n{number}" for number in (1, 2, 3))).stdout
    assert "\nremove  rerank/0  rank    n3\n" in gone, "what it serves, not the largest model that fits there"
    document = json.loads(plan("--diff", "plan.yaml", "--without", "n2", "--json").stdout)
    assert document["counts"] == {"keep": 4, "move": 0, "add": 0, "remove": 1}
    assert document["has_changes"] is True
    (folder / "more.yaml").write_text(
        '{name: a0, memory_gb: 64, gpus: [{index: 0, memory_gb: 80, compute_cap: "9.0"}]}'
    )
    moved = json.loads(plan("--with", "more.yaml", "--json").stdout)["assignments"][0]
    assert (moved["node"], moved["copy"]) == ("a0", 0), "a larger card comes first"
    kept = json.loads(plan("--with", "more.yaml", "--keep", "plan.json", "--json").stdout)
    stands = yaml.safe_load(YAML)["assignments"]
    assert kept["assignments"][:2] == stands[:2], "chat stays where it was"
    assert kept["copies_on_gpus"] == {"greedy": 4, "optimal": 4, "kept": 4}
    text = plan("--with", "more.yaml", "--keep", "plan.json").stdout
    assert text.splitlines()[1] == "copies on GPUs: kept 4, greedy 4, optimal 4"
    assert (kept["assignments"][2]["role"], kept["assignments"][2]["node"]) == ("embed", "a0")


def test_what_an_inventory_does_not_tell_is_told(plan: Planner, folder: Path) -> None:
    (folder / "fleet.yaml").write_text("nodes:\n- {name: n1, gpus: [{index: 0}]}\n- {name: n2}\n")
    assert json.loads(plan("--json").stdout)["warnings"][:2] == [
        "n1: nobody knows the memory of GPU 0; planned without it",
        "n2: its profile does not tell its GPUs, so nothing is planned on it",
    ]
    (folder / "more.yaml").write_text("{name: n2, gpus: []}")
    warnings = json.loads(plan("--with", "more.yaml", "--without", "n1", "--json").stdout)["warnings"]
    assert warnings == [
        "embed: no model of the catalog fits on n2",
        "rerank: no model of the catalog fits on n2",
    ]


def test_what_has_no_place_is_told(plan: Planner) -> None:
    done = plan("--without", "n2", "--disable", "n1:0", "--strict")
    assert (done.returncode, done.stderr) == (1, "")
    assert "✗ chat: 2 copies unplaced" in done.stdout
    assert "n1/0 were enabled" in done.stdout
    assert "disabled\n" in done.stdout
    assert plan("--without", "n2", "--disable", "n1:0").returncode == 0
    document = json.loads(plan("--without", "n2", "--disable", "n1:0", "--json").stdout)
    assert document["disabled_gpus"] == [{"node": "n1", "gpu_index": 0, "name": "RTX 3090"}]
    assert [item["role"] for item in document["unplaced"]] == ["chat", "tts"]
    assert len(document["unplaced"][0]["per_gpu"]) == 2, "a reason for each GPU of the inventory"


def test_the_loss_of_each_machine(plan: Planner, folder: Path) -> None:
    done = plan("--n-1")
    assert (done.returncode, done.stdout, done.stderr) == (0, LOSSES, "")
    assert plan("--check", "n-1").returncode == 1
    document = json.loads(plan("--check", "n-1", "--json").stdout)
    assert [(row["node"], row["is_safe"]) for row in document["nodes"]] == [
        ("n1", False), ("n2", False), ("n3", True),
    ]  # fmt: skip
    (folder / "spare.yaml").write_text(
        '{name: n9, memory_gb: 64, gpus: [{index: 0, memory_gb: 24, compute_cap: "8.9"}]}'
    )
    done = plan("--check", "n-1", "--with", "spare.yaml")
    assert done.returncode == 0
    assert done.stdout.startswith("N-1: each of 4 machines can be spared, every role keeps its copies\n")


def test_lint(plan: Planner, folder: Path) -> None:
    done = plan("--lint", "--strict")
    assert (done.returncode, done.stdout) == (0, "lint: nothing to say\n")
    (folder / "catalog" / "roles.yaml").write_text(
        "roles:\n  chat: {needs: {engine: vllm, min_vram_gb: 24.5}}\n"
    )
    done = plan("--lint", "--strict")
    assert done.returncode == 1
    assert "hair_above\n  role chat: min_vram_gb 24.5 is a hair above the 24 GB of 2 GPUs" in done.stdout
    found = json.loads(plan("--lint", "--json").stdout)["findings"]
    assert {item["code"] for item in found} == {"hair_above", "unused_engine"}


def test_all_errors_of_the_catalog_at_once(plan: Planner, folder: Path) -> None:
    (folder / "catalog" / "roles.yaml").write_text(
        "roles:\n"
        "  chat: {needs: {engine: vlm}, count: -1}\n"
        "  embed: {share_with: chats, prefer: biggest}\n"
        "  tts: {needs: {min_cc: 9.0, max_cc: 8.0}, share_with: tts}\n"
    )
    done = plan()
    assert (done.returncode, done.stdout) == (2, "")
    assert "errors in the catalog" in done.stderr
    for place in (":2:", ":3:", ":4:"):
        assert f"roles.yaml{place}" in done.stderr
    done = plan("--json")
    document = json.loads(done.stdout)
    keys = {item["key"] for item in document["errors"]}
    assert {"roles.chat.needs.engine", "roles.embed.share_with", "roles.embed.prefer"} <= keys, keys
    assert (done.returncode, document["exit_code"], document["assignments"]) == (2, 2, [])


@pytest.mark.parametrize(
    ("options", "exit_code", "text"),
    [
        (("--without", "zoe"), 3, "no machine is called 'zoe'; there are n1, n2, n3"),
        (("--disable", "n1:7"), 3, "n1 has no GPU 7; it has 0, 1"),
        (("--disable", "n1"), 2, "'n1' is not a machine and the number of its GPU, as in ada:1"),
        (("--detailed-exitcode",), 2, "--detailed-exitcode goes with --diff FILE or --diff-loaded"),
        (("--diff-loaded",), 2, "--inventory asks no machine"),
        (("--diff", "nope.json"), 2, "nope.json: No such file or directory"),
        (("--keep", "catalog/roles.yaml"), 2, "catalog/roles.yaml: no plan: assignments is missing"),
        (("--keep", "fleet.yaml", "--optimal"), 2, "and --optimal moves them: choose one"),
        (("--keep", "fleet.yaml", "--n-1"), 2, "leave out --keep"),
        (("--lint", "--optimal"), 2, "leave out --optimal"),
        (("--lint", "--include-unavailable"), 2, "leave out --include-unavailable"),
        (("--n-1", "--strict"), 2, "to exit 1 where a machine cannot be spared: --check n-1"),
        (("--max-age", "0"), 2, "--max-age is for asking machines, and --inventory asks none"),
        (("--without", "n1", "--disable", "n1:0"), 2, "leave out --disable n1:"),
        (("--inventory", "nope.yaml"), 2, "nope.yaml: there is no such file"),
        (("--inventory", "catalog/roles.yaml"), 2, "in the inventory"),
        (("--catalog", "."), 2, "no roles.yaml in"),
    ],
)
def test_failures_say_what_and_why(
    plan: Planner, options: tuple[str, ...], exit_code: int, text: str
) -> None:
    done = plan(*options)
    assert (done.returncode, done.stdout) == (exit_code, "")
    assert text in done.stderr
    assert "Traceback" not in done.stderr


# -- live machines ----------------------------------------------------------------------------------


def test_the_demo_fleet_with_the_shipped_catalog(demo_cli: Cli) -> None:
    done = demo_cli("placement", "plan", "--catalog", SHIPPED, "--json", "--strict")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    places = {
        f"{item['role']}/{item['copy']}": (item["node"], item["gpu_index"])
        for item in document["assignments"]
    }
    assert places == {
        "llm-main/0": ("spark", 0),
        "llm-main/1": ("dora", 0),
        "llm-small/0": ("ada", 0),
        "llm-small/1": ("ada", 1),
        "embed/0": ("bora", 0),
        "rerank/0": ("bora", 0),
        "tts/0": ("bora", 1),
        "gpu-flex/0": ("dora", 1),
    }
    assert document["excluded_nodes"] == [{"node": "fips", "reason": "no profile"}]
    assert [text.partition(":")[0] for text in document["warnings"]] == ["fips"]
    again = demo_cli("placement", "plan", "--catalog", SHIPPED, "--json", "--strict")
    assert again.stdout == done.stdout, "the same machines give the same bytes"


def test_the_docs_show_what_a_newcomer_will_see(demo_cli: Cli) -> None:
    page = (ROOT / "docs" / "placement.md").read_text(encoding="utf-8")
    for command in ("plan", "plan --without dora --n-1", "plan --diff-loaded"):
        shown = page.partition(f"    $ fleettui placement {command}\n")[2].partition("…")[0].rstrip()
        printed = demo_cli("placement", *command.split(), "--catalog", SHIPPED).stdout.splitlines()
        expected = [line.removeprefix("    ") for line in shown.splitlines()]
        assert len(expected) > 3
        if command == "plan":
            assert printed[: len(expected)] == expected
        missing = [line for line in expected if line not in printed]
        assert not missing, (command, missing)


def test_the_worked_example_can_be_pasted_into_a_shell(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "placement.md").read_text(encoding="utf-8").partition("## A worked example\n")[2]
    script = page.partition("```sh\n")[2].partition("```")[0]
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["/bin/sh", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert done.stdout == page.partition("```\n\nThe plan:\n\n```\n")[2].partition("```")[0]


def test_from_what_is_loaded_on_the_demo_fleet(demo_cli: Cli) -> None:
    done = demo_cli(
        "placement", "plan", "--catalog", SHIPPED, "--diff-loaded", "--detailed-exitcode", "--json"
    )
    assert (done.returncode, done.stderr) == (1, "")
    document = json.loads(done.stdout)
    by_copy = {f"{item['role']}/{item['copy']}": item for item in document["changes"] if item["role"]}
    assert (by_copy["llm-main/1"]["kind"], by_copy["llm-main/1"]["model"]) == ("keep", "gpt-oss-120b")
    added = by_copy["rerank/0"]
    assert (added["kind"], added["model"], added["load_gb"]) == ("add", "bge-reranker-v2-m3", 1.4)
    gone = {(item["from"]["node"], item["model"]) for item in document["changes"] if item["kind"] == "remove"}
    assert ("ada", "llama3.1-70b") in gone
    assert not [node for node, _ in gone if node == "fips"], "it is not planned, so it is left alone"
    assert document["counts"] == {"keep": 3, "move": 3, "add": 2, "remove": 10}


class _Stored:
    """A fleet that was stored a moment ago, and the command that plans it."""

    def __init__(self, folder: Path, *, age_s: float = 0.0) -> None:
        self.machines_dir, self.state_dir = folder / "machines", folder / "state"
        self.machines_dir.mkdir()
        shift = NOW - time.time() + age_s
        ada = make_snapshot("ada", loaded=[make_copy(gib=20)], age_s=shift)
        bora = replace(make_offline("bora"), health="offline")
        self.machines = (ada, bora)
        for name in ("ada", "bora"):
            write_machine(self.machines_dir, name, ssh="{host: 127.0.0.1, port: 1}")
        fleet = replace(
            make_fleet(*self.machines, machines_dir=str(self.machines_dir)),
            taken_at=time.time() - age_s,
            interval_s=600.0,
        )
        with Store.open(str(self.state_dir)) as store:
            save_snapshot(store, fleet, {"ada", "bora"}, written_at=time.time() - age_s)
            save_profiles(store, str(self.machines_dir), [self.profile])
        self.cli = Cli(
            {"FLEETTUI_MACHINES": str(self.machines_dir), "FLEETTUI_STATE_DIR": str(self.state_dir)}
        )

    @property
    def profile(self) -> Profile:
        gpus = (
            ProfileGpu(0, "NVIDIA L40S", 45, 46068, (8, 9)),
            ProfileGpu(1, "NVIDIA L40S", 45, 46068, (8, 9), keys={"disabled": True}),
        )
        return Profile("bora", memory_gb=252, gpus=gpus, collected_at=time.time() - 86_400)

    def plan(self, folder: Path, *options: str) -> dict[str, object]:
        done = self.cli(
            "placement", "plan", "--catalog", str(folder / "catalog"), "--json", "--deadline", "2", *options
        )
        assert done.returncode == 0, done.stderr
        document: dict[str, object] = json.loads(done.stdout)
        return document


def _places(document: dict[str, object]) -> list[tuple[str, int, str]]:
    assignments = document["assignments"]
    assert isinstance(assignments, list)
    return [(item["role"], item["copy"], item["node"]) for item in assignments]


SIMPLE = "roles:\n  chat: {needs: {min_vram_gb: 20}, count: 3, prefer: largest}\n"


def test_a_stored_fleet_an_offline_machine_and_maintenance(folder: Path) -> None:
    (folder / "catalog" / "roles.yaml").write_text(SIMPLE)
    stored = _Stored(folder)
    document = stored.plan(folder)
    assert _places(document) == [("chat", 0, "bora"), ("chat", 1, "ada"), ("chat", 2, "ada")]
    assert document["disabled_gpus"] == [{"node": "bora", "gpu_index": 1, "name": "NVIDIA L40S"}]
    assert "bora is offline: planned by its stored profile" in document["warnings"]  # type: ignore[operator]
    flag = MaintenanceFlag("fan swap", "mia", time.time())
    with Store.open(str(stored.state_dir)) as store:
        change_maintenance(store, str(stored.machines_dir), {"bora": lambda _: flag})
    document = stored.plan(folder)
    assert _places(document) == [("chat", 0, "ada"), ("chat", 1, "ada")]
    assert document["excluded_nodes"] == [{"node": "bora", "reason": "maintenance"}]
    document = stored.plan(folder, "--include-unavailable")
    assert _places(document)[0] == ("chat", 0, "bora")


def test_profiles_alone(folder: Path) -> None:
    (folder / "catalog" / "roles.yaml").write_text(SIMPLE)
    document = _Stored(folder).plan(folder, "--stored")
    assert _places(document) == [("chat", 0, "bora")]
    assert document["excluded_nodes"] == [{"node": "ada", "reason": "no profile"}]


def test_machines_that_do_not_answer_are_as_they_last_were(folder: Path) -> None:
    (folder / "catalog" / "roles.yaml").write_text(SIMPLE)
    document = _Stored(folder, age_s=7200).plan(folder)
    assert _places(document) == [("chat", 0, "bora"), ("chat", 1, "ada"), ("chat", 2, "ada")]
    assert len([text for text in document["warnings"] if "offline" in text]) == 2  # type: ignore[attr-defined]


def test_no_machine_answers_and_none_was_measured(cli: Cli, machines_dir: Path, folder: Path) -> None:
    write_machine(machines_dir, "gone", ssh="{host: 127.0.0.1, port: 1}")
    done = cli(
        "placement", "plan", "--machines", str(machines_dir), "--state-dir", str(folder / "s"),
        "--catalog", str(folder / "catalog"), "--deadline", "2", "--json",
    )  # fmt: skip
    assert done.returncode == 4
    assert "no machine gave usable data, and none has a stored profile" in done.stderr
    assert json.loads(done.stdout)["exit_code"] == 4
