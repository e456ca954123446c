"""Nodes of a plan: machines as they are now, their profiles beside, and what is told of them."""

from __future__ import annotations

from typing import Any

import pytest

from builders import (
    NOW,
    make_card,
    make_copy,
    make_installed,
    make_machine,
    make_offline,
    make_pending,
    make_process,
    make_snapshot,
)
from fleettui.decide.placement.kinds import kind_of_role, with_likely_models
from fleettui.decide.plan_nodes import (
    loaded_copies,
    loaded_now,
    node_of_profile,
    plan_node,
    plan_nodes,
    plan_notes,
)
from fleettui.model.catalog import Catalog, CatalogModel
from fleettui.model.gpu import CardCondition, GpuCondition, GpuFault, GpuProblem, GpuReading, MigInstance
from fleettui.model.placement import Assignment, ExcludedNode, PlacementPlan, PlanGpu, PlanNode
from fleettui.model.profile import Profile, ProfileGpu
from fleettui.model.readings import MemoryReading
from fleettui.model.record import replace
from fleettui.model.snapshot import DrainFlag, MachineSnapshot, MaintenanceFlag
from fleettui.model.unknown import Unknown

RAM = MemoryReading(total_kib=131_841_024, available_kib=100_000_000)
"""125.7 GiB."""


def machine(*, cards: Any = None, capability: str | None = "8.9", **changes: Any) -> MachineSnapshot:
    """`ada` with two RTX 4090, whose driver tells their capability unless it is None."""
    snapshot = make_snapshot("ada", cards=cards, memory=RAM, **changes)
    assert snapshot.gpu is not None
    if capability is None:
        return snapshot
    told = tuple(CardCondition(card.index, card.uuid, compute_cap=capability) for card in snapshot.gpu.cards)
    return replace(snapshot, gpu=replace(snapshot.gpu, condition=GpuCondition(told)))


def profile(*gpus: ProfileGpu, **changes: Any) -> Profile:
    return Profile("ada", memory_gb=64, memory_kb=66_000_000, gpus=gpus, collected_at=NOW, **changes)


def test_a_machine_as_it_is_now() -> None:
    name = "NVIDIA GeForce RTX 4090"
    assert plan_node(machine()) == PlanNode(
        "ada", 126, (PlanGpu(0, name, 24, (8, 9)), PlanGpu(1, name, 24, (8, 9)))
    )
    assert plan_notes(machine()) == ()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"maintenance": MaintenanceFlag("fan swap", "mia", NOW)}, "maintenance"),
        ({"drain": DrainFlag("running", "move", "mia", NOW)}, "draining"),
        ({"drain": DrainFlag("blocked", "move", "mia", NOW)}, "draining"),
        ({"drain": DrainFlag("drained", "move", "mia", NOW)}, "drained"),
        ({"drain": DrainFlag("planned", "move", "mia", NOW)}, "draining"),
        ({"drain": DrainFlag("failed", "move", "mia", NOW)}, "draining"),
        ({"drain": DrainFlag("cancelled", "move", "mia", NOW)}, "draining"),
        ({"trust": "pending"}, "pending"),
        ({"trust": "key_changed"}, "key changed"),
    ],
)
def test_who_takes_no_copies(changes: dict[str, Any], reason: str) -> None:
    assert plan_node(machine(**changes)).unavailable == reason
    assert plan_node(make_pending()).unavailable == "pending"


def test_capabilities_of_old_drivers_are_those_of_the_profile() -> None:
    card = ProfileGpu(0, "NVIDIA GeForce RTX 4090", 24, 24564, (8, 9))
    other = ProfileGpu(1, "NVIDIA L40S", 45, 46068, (9, 9))
    node = plan_node(machine(capability=None), profile(card, other))
    assert node.gpus[0].cc == (8, 9)
    assert isinstance(node.gpus[1].cc, Unknown), "another card was there"
    assert plan_node(machine(capability="8.10"), profile(card)).gpus[0].cc == (8, 10), (
        "what is told now counts"
    )
    assert isinstance(plan_node(machine(capability="[N/A]")).gpus[0].cc, Unknown)


def test_the_operator_keeps_gpus_and_cpus_out() -> None:
    card = ProfileGpu(0, "NVIDIA GeForce RTX 4090", 24, 24564, (8, 9), keys={"disabled": True})
    node = plan_node(machine(), profile(card, replace(card, index=1, keys={}), keys={"cpu_roles": False}))
    assert [gpu.disabled for gpu in node.gpus] == [True, False]
    assert not node.cpu_roles
    by_file = replace(machine(), machine=make_machine("ada", disabled_gpus=(1,)))
    assert [gpu.disabled for gpu in plan_node(by_file).gpus] == [False, True]
    document = {**by_file.machine.document, "cpu_roles": False}
    assert not plan_node(replace(by_file, machine=replace(by_file.machine, document=document))).cpu_roles


def test_cards_that_cannot_take_all_of_their_memory() -> None:
    fault = GpuFault("00000000:01:00.0", "lost", "is lost")
    parts = tuple(MigInstance(f"{gib}g", "MIG-x", gib * 1024, 0, gib * 1024) for gib in (10, 20))
    cards = [
        make_card(0, fault=fault),
        make_card(1, total_gib=80, mig=parts, is_mig=True),
        make_card(2, total_gib=None, free_gib=None),
        make_card(3, total_gib=80, is_mig=True),
    ]
    snapshot = machine(cards=cards)
    assert [(gpu.index, gpu.memory_gb) for gpu in plan_node(snapshot).gpus] == [(1, 20)]
    assert plan_notes(snapshot) == (
        "ada: GPU 0 is faulty (is lost); planned without it",
        "ada: MIG is on; GPU 1 is planned as the largest of its instances",
        "ada: nobody knows the memory of GPU 2; planned without it",
        "ada: nobody knows the memory of GPU 3; planned without it",
    )


def test_one_memory_counts_once() -> None:
    card = make_card(0, total_gib=None, free_gib=None, name="NVIDIA GB10", is_unified=True)
    node = plan_node(machine(cards=[card]))
    assert node.gpus[0].memory_gb == 126
    assert isinstance(node.memory_gb, Unknown)
    stored = ProfileGpu(0, "NVIDIA GB10", 120, 122_880, (12, 1), is_unified=True)
    assert isinstance(node_of_profile(profile(stored)).memory_gb, Unknown)


def test_a_profile_stands_in_for_what_cannot_be_read() -> None:
    card = ProfileGpu(0, "NVIDIA L40S", 45, 46068, (8, 9))
    away = replace(make_offline("ada"), health="offline")
    node = plan_node(away, profile(card))
    assert node == PlanNode("ada", 64, (PlanGpu(0, "NVIDIA L40S", 45, (8, 9)),), is_offline=True)
    assert plan_notes(away, profile(card)) == (), "every offline node is told of"
    assert plan_node(away).unavailable == "no profile"
    broken = replace(machine(), gpu=GpuReading(problem=GpuProblem("version_mismatch", "driver mismatch")))
    assert plan_node(broken, profile(card)).gpus == node.gpus
    assert plan_notes(broken, profile(card)) == (
        "ada: its GPUs are not known now (driver mismatch); planned by its stored profile",
    )
    assert plan_node(broken).unavailable == "no profile"
    assert "no stored profile" in plan_notes(broken)[0]


def test_a_stored_profile_that_lacks_the_gpus_too() -> None:
    broken = replace(machine(), gpu=GpuReading(problem=GpuProblem("version_mismatch", "driver mismatch")))
    lacking = replace(profile(), gpus=Unknown("driver mismatch"))
    nor = "nor are they in its stored profile"
    assert plan_notes(broken, lacking) == (f"ada: its GPUs are not known now (driver mismatch); {nor}",)
    assert plan_notes(make_offline("ada"), lacking) == (f"ada: its GPUs are not known now; {nor}",)
    assert plan_node(broken, lacking).unavailable == "no profile"


def test_a_gpu_that_is_gone_since_it_was_measured() -> None:
    card = ProfileGpu(0, "NVIDIA GeForce RTX 4090", 24, 24564, (8, 9))
    known = profile(card, replace(card, index=1), replace(card, index=2))
    assert plan_notes(machine(), known) == ("ada: GPU 2 of its profile is missing; planned without it",)


def test_a_machine_without_gpus() -> None:
    node = plan_node(make_snapshot("app", cards=[], gpus=0, memory=RAM))
    assert (node.gpus, node.memory_gb, node.unavailable) == ((), 126, "")
    assert node_of_profile(Profile("app", memory_gb=32)).unavailable == "no profile"
    assert [node.name for node in plan_nodes([machine(), make_offline("bora")])] == ["ada", "bora"]


def test_what_is_loaded_goes_by_the_names_of_the_catalog() -> None:
    catalog = Catalog((CatalogModel("llama-70b", names=(("ollama", ("llama3.1:70b",)),)),))
    copies = [make_copy(), make_copy("other:1b", gib=1), make_copy("old:7b", state="stopping")]
    snapshot = machine(loaded=copies[:1], processes=[make_process(0), make_process(1, pid=4243)])
    only = loaded_copies(snapshot, catalog)
    assert [(copy.node, copy.model, copy.gpus, copy.engine) for copy in only] == [
        ("ada", "llama-70b", (0, 1), "ollama")
    ]
    assert only[0].size_gb == pytest.approx(39.6)
    several = loaded_copies(machine(loaded=copies, installed=[make_installed()]), catalog)
    assert [(copy.model, copy.gpus) for copy in several] == [("llama-70b", ()), ("other:1b", ())]


def test_what_is_on_machines_that_are_not_planned_is_left_alone() -> None:
    here = machine(loaded=[make_copy()])
    away = replace(make_offline("bora"), engines=here.engines)
    assert [copy.node for copy in loaded_now([here, away], PlacementPlan())] == ["ada"]
    out = PlacementPlan(excluded_nodes=(ExcludedNode("ada", "maintenance"),))
    assert loaded_now([here, away], out) == ()


KINDS = Catalog(
    (
        CatalogModel("chat", "llm", 20.0),
        CatalogModel("bge", "embedding", 1.0),
        CatalogModel("voice", "tts", 4.0),
    )
)


@pytest.mark.parametrize(
    ("role", "kind"),
    [
        ("embed", "embedding"),
        ("Embed-EU", "embedding"),
        ("llm-main", "llm"),
        ("tts", "tts"),
        ("gpu-flex", ""),
        ("e", ""),
        ("-", ""),
    ],
)
def test_the_kind_of_a_role_by_its_name(role: str, kind: str) -> None:
    assert kind_of_role(role, KINDS) == kind


def test_likely_models_alone() -> None:
    def planned(*rows: tuple[str, tuple[str, ...]]) -> PlacementPlan:
        return PlacementPlan(tuple(Assignment(role, 0, "n", models_fitting=models) for role, models in rows))

    everything = ("chat", "voice", "bge")
    before = planned(("embed", everything), ("gpu-flex", everything), ("tts", ("chat",)))
    assert with_likely_models(before, KINDS) == planned(
        ("embed", ("bge",)), ("gpu-flex", everything), ("tts", ("chat",))
    )
