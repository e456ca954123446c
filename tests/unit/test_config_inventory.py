"""Inventory files: both forms, errors with line and key, keys of the operator, written as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fleettui.config.inventory_file import (
    Inventory,
    inventory_text,
    load_inventory,
    read_inventory,
    write_inventory,
)
from fleettui.model.profile import Profile, ProfileCpu, ProfileDisk, ProfileGpu
from fleettui.model.unknown import Unknown
from fleettui.view.problems import problem_line

KEYS = st.sampled_from([
    "name", "nodes", "cpu", "gpus", "disks", "memory_gb", "memory_kb", "index", "compute_cap", "size_gb",
    "unified", "disabled", "collected_at", "cores", "cpu_roles", "note",
])  # fmt: skip
EXAMPLE = """\
name: pve-ada
cpu: {model: "...", cores: 8, threads: 16}
memory_gb: 64
disks: [{name: nvme0n1, size_gb: 256, rotational: false}]
gpus:
- {index: 0, name: "NVIDIA RTX 4000 Ada Generation", memory_gb: 20, compute_cap: 8.9, driver: "..."}
"""


def read_good(text: str) -> Inventory:
    inventory, problems = read_inventory(text.encode(), "inventory.yaml")
    assert problems == ()
    assert inventory is not None
    return inventory


def test_one_document() -> None:
    inventory = read_good(EXAMPLE)
    assert not inventory.is_list
    (node,) = inventory.profiles
    unread = Unknown("not in the profile")
    assert node == Profile(
        "pve-ada",
        ProfileCpu("...", 8, 16),
        64,
        unread,
        (ProfileDisk("nvme0n1", 256, False),),
        (ProfileGpu(0, "NVIDIA RTX 4000 Ada Generation", 20, unread, (8, 9), "..."),),
        unread,
    )


def test_a_list_with_keys_of_the_operator_comes_back_as_it_was() -> None:
    text = (
        "site: attic\nnodes:\n- {name: a, gpus: [{index: 1, compute_cap: 8.10, disabled: true, bay: 0x1F}, "
        "{index: 0, compute_cap: '8.9'}], cpu_roles: false, since: 2026-01-02, price: 1.10}\n"
        "- {name: b, gpus: []}\n"
    )
    inventory = read_good(text)
    a, b = inventory.profiles
    assert not isinstance(a.gpus, Unknown)
    assert [(gpu.index, gpu.compute_cap) for gpu in a.gpus] == [(0, (8, 9)), (1, (8, 10))]
    assert a.gpus[1].keys == {"disabled": True, "bay": "0x1F"}
    assert b.gpus == ()
    written = inventory_text(inventory)
    assert read_good(written) == inventory
    assert written.startswith("site: attic\nnodes:\n- name: a\n")
    assert "compute_cap: '8.10'" in written
    assert "since: '2026-01-02'" in written
    assert "price: 1.10" in written


def test_no_gpus_and_gpus_that_nobody_read_are_two_things() -> None:
    none, unread = read_good("nodes: [{name: a, gpus: []}, {name: b}]").profiles
    assert none.gpus == ()
    assert isinstance(unread.gpus, Unknown)
    assert "gpus: null" in inventory_text(Inventory((unread,), False))


def test_every_error_at_once() -> None:
    text = (
        "nodes:\n"
        "- {name: a, memory_gb: 64 GB, gpus: [{name: X}, {index: 0}, {index: 0}]}\n"
        "- {name: a, gpus: [{index: -1, memory_gb: -2, compute_cap: new}]}\n"
        "- {cpu: 8}\n"
        "- b\n"
    )
    inventory, problems = read_inventory(text.encode(), "i.yaml")
    assert inventory is None
    assert [problem_line(problem) for problem in problems] == [
        "i.yaml:2: nodes[0].memory_gb: nodes[0].memory_gb must be a number without quotes or unit; "
        "write `memory_gb: 64`.",
        "i.yaml:2: nodes[0].gpus[0].index: nodes[0].gpus[0].index is missing; add `index: 0`.",
        "i.yaml:2: nodes[0].gpus[2].index: nodes[0].gpus[2].index is 0, as another GPU has; "
        "correct one of the two.",
        "i.yaml:3: nodes[1].gpus[0].index: nodes[1].gpus[0].index must be a whole number, 0 or more; "
        "write the number that nvidia-smi prints.",
        "i.yaml:3: nodes[1].gpus[0].memory_gb: nodes[1].gpus[0].memory_gb must be a number, 0 or more; "
        "write it without unit.",
        "i.yaml:3: nodes[1].gpus[0].compute_cap: nodes[1].gpus[0].compute_cap must be a compute capability; "
        "write for example 8.9.",
        "i.yaml:3: nodes[1].name: nodes[1].name is a, as another node is called; keep one of the two.",
        "i.yaml:4: nodes[2].name: nodes[2].name is missing; add `name: pve-ada`.",
        "i.yaml:4: nodes[2].cpu: nodes[2].cpu must be a map of keys, not a number; "
        'write `cpu: {model: "…", cores: 8, threads: 16}`.',
        "i.yaml:5: nodes[3]: nodes[3] must be a map of keys, not text; correct it.",
    ]


@pytest.mark.parametrize("text", ["", "- a", "nodes: 3", "a: [", "nodes: [{name: a}, {name: a}]"])
def test_what_is_no_inventory(text: str) -> None:
    inventory, problems = read_inventory(text.encode(), "i.yaml")
    assert inventory is None
    assert problems


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 99)
    | st.floats()
    | st.sampled_from(["", "8.9", "8.10", "x", "0"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, VALUES, max_size=6))
def test_any_document_is_an_inventory_or_told(document: dict[str, object]) -> None:
    for text in (yaml.safe_dump(document), yaml.safe_dump({"nodes": [{"name": "a", **document}]})):
        inventory, problems = read_inventory(text.encode(), "i.yaml")
        assert (inventory is None) == bool(problems)
        if inventory is not None:
            assert read_inventory(inventory_text(inventory).encode(), "i.yaml") == (inventory, ())


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_any_text_is_an_inventory_or_told(text: str) -> None:
    inventory, problems = read_inventory(text.encode("utf-8", "replace"), "i.yaml")
    assert (inventory is None) == bool(problems)


def test_other_readers_of_yaml_see_the_same_numbers() -> None:
    document = yaml.safe_load(inventory_text(read_good(EXAMPLE)))
    assert document["gpus"][0]["compute_cap"] == 8.9
    assert document["disks"] == [{"name": "nvme0n1", "size_gb": 256, "rotational": False}]


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "inventory.yaml"
    assert load_inventory(str(path)) == (None, ())
    first = read_good(EXAMPLE)
    write_inventory(str(path), first)
    path.chmod(0o640)
    link = tmp_path / "link.yaml"
    link.symlink_to(path)
    write_inventory(str(link), Inventory((Profile("b"), Profile("c"))))
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    loaded, problems = load_inventory(str(path))
    assert problems == ()
    assert loaded is not None
    assert [node.name for node in loaded.profiles] == ["b", "c"]
    assert sorted(item.name for item in tmp_path.iterdir()) == ["inventory.yaml", "link.yaml"]


def test_a_folder_is_no_inventory(tmp_path: Path) -> None:
    inventory, (problem,) = load_inventory(str(tmp_path))
    assert inventory is None
    assert problem_line(problem) == f"{tmp_path}: This is a folder; name a file."
