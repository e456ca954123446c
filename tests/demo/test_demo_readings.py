"""What the demo fleet prints is read by the parsers of the real tools, whole and without a doubt."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import fields

import pytest

from fleettui.demo.clock import DemoClock
from fleettui.demo.engine_api import EngineApi
from fleettui.demo.machine import SimulatedMachine
from fleettui.demo.probe_answers import answer_section
from fleettui.demo.replies import JSON_TYPE
from fleettui.demo.simulation import Simulation
from fleettui.model.unknown import Unknown
from fleettui.probes.clock import find_skew_s
from fleettui.probes.cpu import parse_cpu
from fleettui.probes.disks import parse_disks
from fleettui.probes.engines.ollama import parse_ps, parse_tags, parse_version
from fleettui.probes.lsblk import parse_blocks
from fleettui.probes.memory import parse_memory
from fleettui.probes.memory_details import parse_memory_details
from fleettui.probes.net import parse_net, parse_uncounted
from fleettui.probes.nvidia import parse_gpus, query_fields
from fleettui.probes.nvidia_condition import condition_fields, condition_section, parse_condition
from fleettui.probes.nvidia_lists import parse_version as parse_tool_version
from fleettui.probes.processes import parse_apps, parse_owners, with_owners
from fleettui.probes.system import parse_runtime, parse_system

JSON = (("content-type", JSON_TYPE),)


@pytest.fixture(scope="module")
def simulation() -> Simulation:
    simulation = Simulation(20)
    simulation.advance(75)
    return simulation


def read(machine: SimulatedMachine, section: str) -> tuple[bytes, int]:
    code, text = answer_section(machine, section, machine.now)
    return text.encode(), code


def payload(machine: SimulatedMachine, section: str) -> bytes:
    return read(machine, section)[0]


def with_cards(simulation: Simulation) -> Iterator[SimulatedMachine]:
    for machine in simulation.machines.values():
        if machine.cards and not machine.plan.has_driver_failure:
            yield machine


def unknown_fields(reading: object) -> set[str]:
    return {
        field.name
        for field in fields(reading)  # type: ignore[arg-type]
        if isinstance(getattr(reading, field.name), Unknown)
    }


def fields_known_to(machine: SimulatedMachine) -> tuple[str, ...]:
    """What is asked once its driver has refused what it does not know."""
    refused: set[str] = set()
    while True:
        fields = query_fields(refused)
        reading = parse_gpus(*read(machine, "gpu:" + ":".join(fields)), fields)
        if not reading.unsupported_fields:
            assert len(refused) <= 1
            return fields
        refused.update(reading.unsupported_fields)


def test_cards(simulation: Simulation) -> None:
    for machine in with_cards(simulation):
        fields = fields_known_to(machine)
        reading = parse_gpus(*read(machine, "gpu:" + ":".join(fields)), fields)
        assert [card.index for card in reading.cards] == list(range(len(machine.cards)))
        assert (reading.problem, reading.faults, reading.warnings) == (None, (), ())
        for card, gauge in zip(reading.cards, machine.cards, strict=True):
            missing = set() if gauge.kind.has_fan else {"fan_percent"}
            if gauge.kind.is_unified:
                missing |= {"total_mib", "used_mib", "free_mib", "power_limit_w"}
            assert unknown_fields(card) == missing, machine.plan.name
            assert card.suspect == ()
            assert card.is_unified == gauge.kind.is_unified


def test_condition_of_cards(simulation: Simulation) -> None:
    for machine in with_cards(simulation):
        refused: set[str] = set()
        while True:
            fields = condition_fields(refused)
            answer = parse_condition(*read(machine, condition_section(refused)), fields)
            if answer.refused is None:
                break
            refused.add(answer.refused)
        assert refused <= {"clocks_event_reasons.active", "addressing_mode"}
        assert [card.index for card in answer.cards] == list(range(len(machine.cards)))
        for card in answer.cards:
            assert (card.has_persistence, card.throttle) == (True, ())
            assert card.pcie_width == card.pcie_width_max
        driver, cuda = parse_tool_version(payload(machine, "version"))
        assert driver == machine.plan.host.driver
        assert not isinstance(cuda, Unknown)


def test_machines_without_cards_say_why(simulation: Simulation) -> None:
    for name, code in (("fips", "version_mismatch"), ("app-host", "no_tool")):
        reading = parse_gpus(*read(simulation.machines[name], "gpu"))
        assert reading.problem is not None
        assert (reading.problem.code, reading.cards) == (code, ())


def test_processes_fill_no_more_than_the_cards(simulation: Simulation) -> None:
    for machine in with_cards(simulation):
        apps = parse_apps(*read(machine, "apps"))
        assert not isinstance(apps, Unknown)
        processes = with_owners(apps, parse_owners(payload(machine, "ps"))).processes
        assert len(processes) == len(machine.processes())
        for card in parse_gpus(*read(machine, "gpu")).cards:
            held = [item.used_mib for item in processes if item.gpu_uuid == card.uuid]
            assert not any(isinstance(mib, Unknown) for mib in held)
            if not card.is_unified:
                assert not isinstance(card.used_mib, Unknown)
                assert sum(mib for mib in held if not isinstance(mib, Unknown)) <= card.used_mib
        for process in processes:
            assert not isinstance(process.user, Unknown)
            assert not isinstance(process.command, Unknown)
            assert process.command.startswith(process.name)


def test_host_facts(simulation: Simulation) -> None:
    for machine in simulation.machines.values():
        host = machine.plan.host
        details = parse_memory_details(
            *(payload(machine, name) for name in ("arc", "psi", "swaps", "cgroup"))
        )
        memory = parse_memory(payload(machine, "mem"), details)
        assert unknown_fields(memory) == set()
        assert (memory.limits, memory.is_available_low) == ((), False)
        assert unknown_fields(details) == {"arc_kib", "arc_shrinkable_kib", "limit_cache_kib"}
        assert memory.total_kib == host.memory_kib
        disks = parse_disks(*read(machine, "disks"))
        assert not isinstance(disks, Unknown)
        assert "/" in [disk.mount for disk in disks.disks]
        system = parse_system(*(payload(machine, section) for section in ("uname", "os", "cpu", "host")))
        assert unknown_fields(system) == {"container_runtime", "clock_skew_s", "block_devices"}
        assert (system.container, system.core_limit) == (None, None)
        assert parse_runtime(*read(machine, "runtime")) == "Docker 28.5.1"
        assert find_skew_s(payload(machine, "clock"), time.time() - 30, time.time() + 30) == 0
        blocks = parse_blocks(*read(machine, "blocks"))
        assert not isinstance(blocks, Unknown)
        assert {mount for disk in blocks for mount in disk.mounts} >= {"/"}
        assert parse_uncounted(payload(machine, "links")) == {"docker0"}
        assert (system.cores, system.os, system.kernel) == (host.threads, host.os, host.kernel)


def test_rates_follow_from_two_samples() -> None:
    machine = Simulation(1).machines["ada"]
    sections = ("stat", "load", "uptime")
    machine.advance_to(50)
    cpu, times = parse_cpu(*(payload(machine, section) for section in sections), None)
    net, counters = parse_net(payload(machine, "net"), machine.now, None)
    # between two steps of the simulation the counters run on
    machine.advance_to(50.5)
    cpu, _ = parse_cpu(*(payload(machine, section) for section in sections), times)
    net, _ = parse_net(payload(machine, "net"), machine.now, counters)
    assert unknown_fields(cpu) == set()
    assert cpu.busy_percent == pytest.approx(machine.counters.busy_share * 100, abs=1.5)
    rates = {item.name: item.rx_bytes_s for item in net.interfaces}
    assert rates["enp5s0"] == pytest.approx(machine.counters.rx_bytes_s, rel=0.05)


def test_engine_answers(simulation: Simulation) -> None:
    for machine in simulation.machines.values():
        api = EngineApi(machine, DemoClock(is_frozen=True, start_s=machine.now))
        answer = parse_ps(200, JSON, api.read("/api/ps").body, time.time())
        assert not isinstance(answer.loaded, Unknown)
        copies = {copy.name: copy for copy in answer.loaded}
        runners = list(machine.scheduler.runners.values())
        assert set(copies) == {runner.model.name for runner in runners}
        for runner in runners:
            copy = copies[runner.model.name]
            assert copy.size_bytes == runner.placement.size_bytes
            assert copy.vram_bytes == runner.placement.vram_bytes
            assert copy.context == runner.context
            assert copy.is_pinned == math.isinf(runner.keep_alive_s)
        tags = parse_tags(200, JSON, api.read("/api/tags").body)
        assert not isinstance(tags.installed, Unknown)
        assert [model.name for model in tags.installed] == list(machine.plan.installed)
        assert parse_version(200, JSON, api.read("/api/version").body) == machine.plan.version
