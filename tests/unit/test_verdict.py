"""When a machine is judged anew: at once on news, else within seconds."""

from __future__ import annotations

from builders import NOW, make_card, make_machine
from fleettui.fleet.record import MachineRecord
from fleettui.fleet.verdict import JUDGE_PERIOD_S
from fleettui.model.gpu import GpuProblem, GpuReading


def polled_record(temperature_c: int = 40) -> MachineRecord:
    record = MachineRecord(make_machine("ada", gpus=1))
    record.link_up("192.0.2.1:22", NOW)
    record.last_seen = NOW
    record.gpu.reading = GpuReading(cards=(make_card(0, temperature_c=temperature_c),))
    record.gpu.sources["gpu"].succeed(NOW)
    return record


def heat(record: MachineRecord, temperature_c: int) -> None:
    record.gpu.reading = GpuReading(cards=(make_card(0, temperature_c=temperature_c),))


def test_figures_alone_are_judged_within_the_period() -> None:
    record = polled_record()
    assert record.freeze(NOW, 2.0).health == "healthy"
    heat(record, 95)
    assert record.freeze(NOW + 2, 2.0).health == "healthy"
    hot = record.freeze(NOW + JUDGE_PERIOD_S, 2.0)
    assert (hot.health, [reason.code for reason in hot.reasons]) == ("degraded", ["gpu_hot"])
    heat(record, 40)
    assert record.freeze(NOW + JUDGE_PERIOD_S + 2, 2.0).reasons == hot.reasons
    assert record.freeze(NOW + 2 * JUDGE_PERIOD_S, 2.0).reasons == ()


def test_a_source_that_fails_is_judged_at_once() -> None:
    record = polled_record()
    assert record.freeze(NOW, 2.0).health == "healthy"
    record.facts.sources["disks"].fail("df: no such command", NOW + 0.1)
    assert record.freeze(NOW + 0.1, 2.0).health == "degraded"
    record.facts.sources["disks"].succeed(NOW + 0.2)
    assert record.freeze(NOW + 0.2, 2.0).health == "healthy"


def test_a_problem_of_the_cards_is_judged_at_once() -> None:
    record = polled_record()
    record.freeze(NOW, 2.0)
    record.gpu.reading = GpuReading(problem=GpuProblem("version_mismatch", "mismatch"))
    assert record.freeze(NOW + 0.1, 2.0).health != "healthy"


def test_a_clock_set_back_delays_nothing() -> None:
    record = polled_record()
    record.freeze(NOW, 2.0)
    heat(record, 95)
    assert record.freeze(NOW - 3600, 2.0).health == "degraded"


def test_the_end_of_a_connection_is_no_fault_of_a_source_on_the_next() -> None:
    record = polled_record()
    disks = record.facts.sources["disks"]
    disks.succeed(NOW)
    record.facts.end("ended with the connection", NOW + 10)
    assert record.freeze(NOW + 10, 2.0).health == "degraded"
    record.link_up("192.0.2.1:22", NOW + 20)
    record.facts.sources["cpu"].succeed(NOW + 20)
    assert (disks.freeze().state, disks.freeze().read_at) == ("ok", NOW)
    assert record.freeze(NOW + 20, 2.0).health == "healthy"
    disks.fail("df: hangs", NOW + 30)
    record.link_up("192.0.2.1:22", NOW + 40)
    assert disks.freeze().state == "error", "a fault of its own stays"
