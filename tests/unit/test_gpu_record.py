"""What one machine's GPU answers become over time: refusals, drivers, stale cards, MIG, condition."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from smi_stand_in import CARD, NEW_FIELDS
from test_nvidia_condition import H100, LIST, MEMORY, xml_with

from fleettui.fleet.gpu_record import GpuRecord
from fleettui.fleet.needs import EVERYTHING, ROUTING
from fleettui.fleet.questions import Questions
from fleettui.model.gpu import GpuReading
from fleettui.model.machine import NvidiaSmi
from fleettui.model.unknown import Unknown
from fleettui.probes.frames import Frame, Section
from fleettui.probes.loops_gpu import FAST_FIELDS

NOW = 1000.0


class Driver:
    """Answers questions of the GPU loop as a driver that knows some fields does."""

    def __init__(self, refuses: Sequence[str] = (), **changes: str) -> None:
        self.refuses = tuple(refuses)
        self.card = {**CARD, **{name.replace("__", "."): value for name, value in changes.items()}}
        self.texts: dict[str, tuple[str, int]] = {}
        self.asked: list[str] = []

    def answer(self, sections: Sequence[str]) -> dict[str, Section]:
        answers = {}
        for section in sections:
            name, _, rest = section.partition(":")
            self.asked.append(name)
            if name in self.texts:
                text, code = self.texts[name]
            elif name in ("gpu", "condition"):
                text, code = self._rows(rest)
            else:
                text, code = "", 0
            answers[name] = Section(code, text.encode())
        return answers

    def _rows(self, rest: str) -> tuple[str, int]:
        fields = rest.split(":") if rest else list(FAST_FIELDS)
        for field in fields:
            if field in self.refuses:
                return f'Field "{field}" is not a valid field to query.\n', 2
        return ", ".join(self.card[field] for field in fields) + "\n", 0


class Machine:
    """A record and its questions, asked in turn as the poller does."""

    def __init__(self, driver: Driver, needs: object = EVERYTHING) -> None:
        self.driver = driver
        self.record = GpuRecord()
        self.questions = Questions(needs)  # type: ignore[arg-type]
        self.rounds = 0

    def tick(self, now: float) -> GpuReading:
        """One tick with everything that follows from its answers; returns the reading."""
        sections = self.questions.gpu_due(now, self.record.refused_fields)
        while sections:
            self.rounds += 1
            assert self.rounds < 60, "it asks without end"
            self.questions.note_asked(sections, now)
            self.record.ask(sections, now)
            frame = Frame(1, self.driver.answer(sections))
            if not self.record.take(frame, now, is_gpu_expected=True):
                sections = self.questions.gpu_due(now, self.record.refused_fields)
            elif self.record.has_cards:
                sections = self.questions.condition_due(now, self.record.condition)
            else:
                sections = ()
        assert self.record.reading is not None
        return self.record.reading


def test_several_unknown_fields_are_left_out_at_once_and_remembered() -> None:
    machine = Machine(Driver(NEW_FIELDS))
    reading = machine.tick(NOW)
    (card,) = reading.cards
    assert (card.total_mib, card.utilisation_percent, card.fault, card.is_mig) == (81559, 97, None, False)
    assert reading.condition is not None
    (condition,) = reading.condition.cards
    assert condition.throttle == ()  # by the field's older name
    assert condition.has_persistence is True
    assert isinstance(condition.compute_cap, Unknown)
    # Two refusals of the fast query, three of the condition, and one more answer each.
    assert machine.driver.asked.count("gpu") == 3
    assert machine.driver.asked.count("condition") == 4
    machine.driver.asked.clear()
    for tick in range(1, 20):
        machine.tick(NOW + 2 * tick)
    assert machine.driver.asked.count("gpu") == 19
    assert machine.driver.asked.count("condition") == 0
    machine.tick(NOW + 62)
    assert machine.driver.asked.count("condition") == 1


def test_another_driver_is_asked_for_everything_again() -> None:
    machine = Machine(Driver(NEW_FIELDS, driver_version="440.64"))
    machine.tick(NOW)
    assert "gpu_recovery_action" in machine.record.refused_fields
    machine.driver = Driver(driver_version="580.95.05", gpu_recovery_action="Reset")
    machine.tick(NOW + 2)  # tells the new driver
    reading = machine.tick(NOW + 4)
    assert machine.record.refused_fields == frozenset()
    assert reading.cards[0].fault is not None
    assert "needs reset" in reading.cards[0].fault.text
    assert reading.condition is not None
    assert reading.condition.cards[0].compute_cap == "9.0"


@pytest.mark.parametrize("field", ["gpu_name", "index", "x"])
def test_a_tool_that_refuses_what_was_not_asked_is_not_asked_without_end(field: str) -> None:
    driver = Driver()
    driver.texts = {"gpu": (f'Field "{field}" is not a valid field to query.', 2)}
    machine = Machine(driver)
    reading = machine.tick(NOW)
    assert machine.rounds == 1
    assert reading.problem is not None
    assert reading.problem.code == "usage_error"
    machine = Machine(Driver())
    machine.driver.texts = {"condition": (f'Field "{field}" is not a valid field to query.', 2)}
    assert machine.tick(NOW).cards
    assert machine.driver.asked.count("condition") == 1


def test_a_tool_that_refuses_everything_ends_too() -> None:
    machine = Machine(Driver(tuple(CARD)))
    reading = machine.tick(NOW)
    assert reading.problem is not None
    assert reading.problem.code == "usage_error"


LOST = "Unable to determine the device handle for GPU0000:3B:00.0: GPU is lost.  Reboot the system\n"


def test_a_lost_card_alone_keeps_the_last_cards_as_stale() -> None:
    machine = Machine(Driver())
    machine.tick(NOW)
    good = machine.driver
    machine.driver = Driver()
    machine.driver.texts = {"gpu": (LOST, 15)}
    reading = machine.tick(NOW + 2)
    assert (reading.is_stale, reading.problem, [card.index for card in reading.cards]) == (True, None, [0])
    (fault,) = reading.faults
    assert (fault.bus_id, fault.code, fault.index) == ("0000:3B:00.0", "lost", 0)
    source = machine.record.sources["gpu"]
    assert (source.state, source.read_at) == ("error", NOW)
    assert "lost, reboot needed" in str(source.error)
    machine.driver = good
    reading = machine.tick(NOW + 4)
    assert (reading.is_stale, reading.faults, machine.record.sources["gpu"].state) == (False, (), "ok")


def test_a_lost_card_that_was_never_seen_is_a_fault_without_cards() -> None:
    machine = Machine(Driver())
    machine.driver.texts = {"gpu": (LOST, 15)}
    reading = machine.tick(NOW)
    assert (reading.cards, reading.is_stale, len(reading.faults)) == ((), False, 1)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.161", 18),
        ("No devices were found", 6),
        ("", 137),
        ("hung 935 D", 75),
        ("", 124),
    ],
)
def test_last_cards_stay_as_stale_and_clear_by_themselves(text: str, code: int) -> None:
    machine = Machine(Driver())
    machine.tick(NOW)
    machine.driver.texts = {"gpu": (text, code)}
    reading = machine.tick(NOW + 2)
    assert (reading.is_stale, len(reading.cards)) == (True, 1)
    assert reading.problem is not None
    assert machine.record.sources["gpu"].read_at == NOW
    machine.driver.texts = {}
    assert machine.tick(NOW + 4).is_stale is False


def test_one_odd_exit_without_output_is_no_news_and_two_are() -> None:
    machine = Machine(Driver())
    machine.tick(NOW)
    machine.driver.texts = {"gpu": ("", 255)}
    assert machine.tick(NOW + 2).is_stale is False
    assert machine.record.sources["gpu"].state == "ok"
    assert machine.tick(NOW + 4).is_stale is True
    assert machine.record.sources["gpu"].state == "error"


def test_sleeping_cards_keep_their_values_and_their_state() -> None:
    machine = Machine(Driver())
    machine.tick(NOW)
    asleep = ("/sys/bus/pci/drivers/nvidia/0000:01:00.0/power/runtime_status:suspended\n", 76)
    machine.driver.texts = dict.fromkeys(("gpu", "apps", "condition"), asleep)
    reading = machine.tick(NOW + 20)
    assert reading.problem is not None
    assert (reading.problem.code, len(reading.cards)) == ("asleep", 1)
    assert (machine.record.sources["gpu"].state, machine.record.sources["processes"].state) == ("ok", "ok")


def mig_driver() -> Driver:
    driver = Driver(mig__mode__current="Enabled", utilization__gpu="[N/A]", uuid=H100)
    driver.texts = {"list": (LIST.decode(), 0), "xml": (xml_with(MEMORY).decode(), 0)}
    return driver


@pytest.mark.parametrize("needs", [EVERYTHING, ROUTING])
def test_instances_come_with_the_first_tick_and_then_once_a_minute(needs: object) -> None:
    machine = Machine(mig_driver(), needs)
    (card,) = machine.tick(NOW).cards
    assert card.is_mig
    assert [part.total_mib for part in card.mig] == [40448, 20096, 9984, 9984]
    assert isinstance(card.utilisation_percent, Unknown)
    for tick in range(1, 31):
        (card,) = machine.tick(NOW + 2 * tick).cards
        assert len(card.mig) == 4
    assert machine.driver.asked.count("xml") == machine.driver.asked.count("list") == 2
    assert ("condition" in machine.driver.asked) == (needs is EVERYTHING)


def test_instances_go_when_mig_is_switched_off() -> None:
    machine = Machine(mig_driver())
    machine.tick(NOW)
    machine.driver = Driver(uuid=H100)
    (card,) = machine.tick(NOW + 2).cards
    assert (card.is_mig, card.mig) == (False, ())


def test_instances_that_cannot_be_listed_leave_the_rest_alone() -> None:
    machine = Machine(mig_driver())
    machine.driver.texts = {"list": ("", 124), "xml": ("Unable to …", 255)}
    (card,) = machine.tick(NOW).cards
    assert (card.is_mig, card.mig, card.total_mib) == (True, (), 81559)


def test_xids_keep_their_moment() -> None:
    machine = Machine(Driver())
    line = "[  512.204417] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus."
    machine.driver.texts = {"xid": (f"900.00\n{line}\n", 0)}
    first = machine.tick(NOW).condition
    machine.driver.texts = {"xid": (f"960.90\n{line}\n", 0)}  # a clock that goes another way
    second = machine.tick(NOW + 60).condition
    assert first is not None
    assert second is not None
    assert not isinstance(first.xids, Unknown)
    assert first.xids[0].at == round(NOW - 900 + 512.204417)
    assert second.xids == first.xids


def test_an_unchanged_condition_is_the_same_object() -> None:
    machine = Machine(Driver())
    first = machine.tick(NOW).condition
    assert all(machine.tick(NOW + 2 * tick).condition is first for tick in range(1, 40))


def test_a_slow_tool_is_asked_one_thing_at_a_time() -> None:
    machine = Machine(Driver())
    machine.driver.texts = {"took": ("350", 0)}
    record = machine.record
    record.take(Frame(1, {"took": Section(0, b"350")}), NOW, is_gpu_expected=True)
    assert record.condition.is_slow
    due = machine.questions.condition_due(NOW, record.condition)
    assert [name.partition(":")[0] for name in due] == ["condition"]
    quick = Frame(2, machine.driver.answer(("gpu",)))
    record.take(quick, NOW, is_gpu_expected=True)
    assert not record.condition.is_slow


def test_a_version_that_is_not_known_is_asked_once() -> None:
    machine = Machine(Driver())
    machine.driver.texts = {"version": ("NVIDIA System Management Interface -- v470.182.03\n…", 2)}
    for tick in range(40):
        machine.tick(NOW + 3 * tick)
    assert machine.driver.asked.count("version") == 1


def test_wsl_has_no_process_list() -> None:
    machine = Machine(Driver())
    machine.driver.texts = {"apps": ("", 77)}
    machine.tick(NOW)
    source = machine.record.sources["processes"]
    assert (source.state, source.error) == ("unsupported", "process list not available here (WSL)")
    assert machine.record.processes is None


def test_processes_come_back_with_the_tool() -> None:
    machine = Machine(Driver())
    record = machine.record
    nothing = Frame(1, {"gpu": Section(127, b""), "apps": Section(127, b"")})
    record.take(nothing, NOW, is_gpu_expected=False)
    assert record.sources["processes"].state == "unsupported"
    assert machine.tick(NOW + 60).cards
    assert record.sources["processes"].state == "ok"


def test_the_operators_wishes_stand_in_front_of_the_question() -> None:
    questions = Questions(ROUTING)
    assert questions.gpu_due(NOW, ()) == ("gpu",)
    assert questions.gpu_due(NOW, (), NvidiaSmi("/opt/nvidia/nvidia-smi", True)) == (
        "tool:/opt/nvidia/nvidia-smi",
        "wake",
        "gpu",
    )


LEFT = tuple(name for name in FAST_FIELDS if name not in NEW_FIELDS)


def test_an_answer_has_the_columns_of_its_own_question() -> None:
    """Answers are read a little after they came; by then the same may have been asked once more."""
    machine = Machine(Driver(NEW_FIELDS))
    record, questions, driver = machine.record, machine.questions, machine.driver
    waiting = []
    for tick in range(2):
        sections = questions.gpu_due(NOW + tick, record.refused_fields)
        record.ask(sections, NOW + tick)
        waiting.append((Frame(tick, driver.answer(sections)), record.asked))
    for frame, asked in waiting:
        assert record.take(frame, NOW + 2, is_gpu_expected=True, asked=asked) is False
    assert record.refused_fields == {"gpu_recovery_action"}
    section = "gpu:" + ":".join(LEFT)
    record.ask((section,), NOW + 3)
    asked = record.asked
    record.ask(("gpu",), NOW + 4)
    good = Frame(9, driver.answer((section,)))
    assert record.take(good, NOW + 5, is_gpu_expected=True, asked=asked)
    assert record.reading is not None
    assert (len(record.reading.cards), record.reading.problem) == (1, None)


def test_the_same_condition_under_another_driver_is_asked_once() -> None:
    machine = Machine(Driver(driver_version="570.1"))
    machine.tick(NOW)
    machine.driver = Driver(driver_version="580.1")
    machine.rounds = 0
    machine.tick(NOW + 2)
    machine.tick(NOW + 4)
    assert machine.driver.asked.count("condition") == 1
    assert not machine.record.condition.must_ask_again
