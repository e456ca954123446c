"""Every rule of health, with the words the operator reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders import (
    GIB,
    NOW,
    judged,
    make_card,
    make_copy,
    make_engine,
    make_machine,
    make_offline,
    make_pending,
    make_process,
    make_snapshot,
)
from fleettui.decide.health import judge_health
from fleettui.model.gpu import GpuFault, GpuProblem, GpuReading
from fleettui.model.machine import EngineEndpoint
from fleettui.model.readings import DisksReading, DiskUse
from fleettui.model.snapshot import LinkStatus, MachineSnapshot, SourceStatus
from fleettui.model.unknown import Unknown


def texts(snapshot: MachineSnapshot, now: float = NOW) -> list[tuple[str, str]]:
    """(severity, text) of each reason."""
    return [(reason.severity, reason.text) for reason in judge_health(snapshot, now, 2.0)[1]]


def with_source(snapshot: MachineSnapshot, name: str, state: Any, **fields: Any) -> MachineSnapshot:
    """The snapshot with one source in another state."""
    return replace(snapshot, sources={**snapshot.sources, name: SourceStatus(state, **fields)})


def with_gpu(snapshot: MachineSnapshot, **fields: Any) -> MachineSnapshot:
    """The snapshot with another GPU reading."""
    return replace(snapshot, gpu=GpuReading(**fields))


def test_a_machine_with_every_source_fine_is_healthy() -> None:
    assert judge_health(make_snapshot(), NOW, 2.0) == ("healthy", ())


def test_never_polled_is_unknown() -> None:
    assert judge_health(MachineSnapshot(make_machine()), NOW, 2.0) == ("unknown", ())
    connecting = MachineSnapshot(make_machine(), link=LinkStatus("connecting", since=NOW - 1))
    assert judge_health(connecting, NOW, 2.0)[0] == "unknown"


def test_one_failed_connect_is_enough_to_be_offline() -> None:
    snapshot = make_offline()
    assert snapshot.health == "offline"
    assert texts(snapshot) == [("offline", "no answer on port 22 (timeout)")]
    assert snapshot.reasons[0].code == "ssh_connect"


def test_a_new_attempt_after_a_failure_stays_offline() -> None:
    link = LinkStatus("connecting", stage="connect", error="no answer on port 22 (timeout)", since=NOW)
    assert judge_health(make_snapshot(link=link), NOW, 2.0)[0] == "offline"


def test_failed_authentication_says_what_to_do() -> None:
    link = LinkStatus("failed", stage="authentication", error="ada.lan:22 refused every key of ops")
    health, reasons = judge_health(make_snapshot(link=link), NOW, 2.0)
    assert health == "offline"
    assert reasons[0].code == "ssh_authentication"
    assert reasons[0].text == (
        "ada.lan:22 refused every key of ops; check user and key; "
        "tried again once file or agent changed, or on your request"
    )


def asked_in_vain(silent_s: float, interval_s: float) -> MachineSnapshot:
    """The fact channel was heard last `silent_s` ago, and the question of the next tick is unanswered."""
    since = NOW - silent_s + interval_s
    return with_source(make_snapshot(age_s=silent_s), "cpu", "late", read_at=NOW - silent_s, since=since)


@pytest.mark.parametrize(("silent_s", "health"), [(1, "healthy"), (5.9, "healthy"), (6.1, "offline")])
def test_a_silent_fact_channel_is_offline_after_three_intervals_and_six_seconds(
    silent_s: float, health: str
) -> None:
    assert judge_health(asked_in_vain(silent_s, 1.0), NOW, 1.0)[0] == health


def test_silence_is_measured_in_intervals_when_they_are_long() -> None:
    assert judge_health(asked_in_vain(29, 10.0), NOW, 10.0)[0] == "degraded"
    assert judge_health(asked_in_vain(31, 10.0), NOW, 10.0)[0] == "offline"


def test_a_machine_that_was_not_asked_is_not_silent() -> None:
    """Hours of pause, or of sleep of this computer, lie between the last answer and now."""
    assert judge_health(make_snapshot(age_s=30_000), NOW, 2.0)[0] == "healthy"
    just_asked = with_source(make_snapshot(age_s=30_000), "cpu", "late", since=NOW - 3)
    assert judge_health(just_asked, NOW, 2.0)[0] == "healthy"


def test_a_fresh_connection_gets_the_same_time_to_say_something() -> None:
    link = LinkStatus("up", since=NOW - 2)
    assert judge_health(make_snapshot(age_s=120, link=link), NOW, 2.0)[0] == "healthy"


def test_a_late_gpu_source_alone_is_never_offline() -> None:
    for late_s in (5, 14.9):
        late = with_source(make_snapshot(), "gpu", "late", read_at=NOW - late_s, since=NOW - late_s)
        assert judge_health(late, NOW, 2.0) == ("healthy", ())
    late = with_source(make_snapshot(), "gpu", "late", read_at=NOW - 300, since=NOW - 300)
    assert texts(late) == [
        ("unhealthy", "nvidia-smi does not answer since 13:58 UTC: a hung driver needs a reboot")
    ]
    _, reasons = judge_health(late, NOW, 2.0, 3600)
    assert "since 14:58:" in reasons[0].text


def test_a_hung_tool_counts_from_the_last_good_reading_however_its_state_flips() -> None:
    problem = GpuProblem("timed_out", "nvidia-smi did not answer within its time limit")
    flipped = replace(make_snapshot(), gpu=GpuReading(cards=(make_card(0), make_card(1)), problem=problem))
    for state in ("late", "error"):
        bad = with_source(flipped, "gpu", state, read_at=NOW - 60, since=NOW - 1, error=problem.text)
        assert texts(bad) == [
            ("unhealthy", "nvidia-smi does not answer since 14:02 UTC: a hung driver needs a reboot")
        ]
        just_now = with_source(flipped, "gpu", state, read_at=NOW - 6, since=NOW - 1, error=problem.text)
        assert texts(just_now) == []


def test_old_cards_beside_an_error_are_no_reading() -> None:
    problem = GpuProblem("version_mismatch", "NVIDIA driver/library version mismatch")
    old = replace(make_snapshot(), gpu=GpuReading(cards=(make_card(0), make_card(1)), problem=problem))
    failed = with_source(old, "gpu", "error", read_at=NOW - 60, since=NOW - 1, error=problem.text)
    assert judge_health(failed, NOW, 2.0)[0] == "unhealthy"


def test_cards_that_sleep_are_no_trouble() -> None:
    asleep = with_gpu(
        make_snapshot(), problem=GpuProblem("asleep", "every GPU sleeps; nvidia-smi would wake them")
    )
    assert judge_health(asleep, NOW, 2.0)[0] == "healthy"
    assert texts(asleep) == [("note", "every GPU sleeps; nvidia-smi would wake them")]


def test_a_late_gpu_source_of_a_machine_that_declares_none_is_degraded() -> None:
    undeclared = make_snapshot(gpus=None, cards=[make_card()])
    late = with_source(undeclared, "gpu", "late", read_at=NOW - 60, since=NOW - 60)
    assert judge_health(late, NOW, 2.0)[0] == "degraded"


def test_a_late_engine_is_degraded_after_fifteen_seconds() -> None:
    early = with_source(make_snapshot(), "ollama", "late", read_at=NOW - 9, since=NOW - 9)
    assert judge_health(early, NOW, 2.0)[0] == "healthy"
    late = with_source(make_snapshot(), "ollama", "late", read_at=NOW - 60, since=NOW - 60)
    assert texts(late) == [("degraded", "Ollama on port 11434 does not answer since 14:02 UTC")]


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (
            GpuProblem("version_mismatch", "driver/library version mismatch; reboot or reload the module"),
            "nvidia-smi: driver/library version mismatch; reboot or reload the module",
        ),
        (GpuProblem("no_tool", "nvidia-smi not found"), "nvidia-smi not found"),
        (GpuProblem("no_devices", "no GPU found"), "nvidia-smi: no GPU found"),
    ],
)
def test_declared_gpus_without_a_reading_are_unhealthy(problem: GpuProblem, text: str) -> None:
    broken = with_gpu(make_snapshot(), problem=problem)
    assert judge_health(broken, NOW, 2.0)[0] == "unhealthy"
    assert texts(broken) == [("unhealthy", text)]


def test_no_gpu_is_fine_where_none_is_declared() -> None:
    for code in ("no_tool", "no_devices"):
        problem = GpuProblem(code, "nothing there")  # type: ignore[arg-type]
        assert (
            judge_health(with_gpu(make_snapshot(gpus=None, cards=[]), problem=problem), NOW, 2.0)[0]
            == "healthy"
        )
    mismatch = GpuProblem("version_mismatch", "driver/library version mismatch")
    assert (
        judge_health(with_gpu(make_snapshot(gpus=None, cards=[]), problem=mismatch), NOW, 2.0)[0]
        == "degraded"
    )


def test_one_odd_exit_code_with_good_rows_changes_nothing() -> None:
    odd = with_source(make_snapshot(), "gpu", "error", read_at=NOW - 3, since=NOW - 1, error="exit code 9")
    assert judge_health(odd, NOW, 2.0) == ("healthy", ())


def test_cards_that_came_with_a_problem_are_degraded_not_unhealthy() -> None:
    half = with_gpu(
        make_snapshot(), cards=(make_card(0), make_card(1)), problem=GpuProblem("nvml_failed", "NVML failed")
    )
    assert judge_health(half, NOW, 2.0)[0] == "degraded"


@pytest.mark.parametrize(
    ("code", "health"), [("lost", "unhealthy"), ("reset", "unhealthy"), ("unknown_error", "degraded")]
)
def test_faults(code: Any, health: str) -> None:
    fault = GpuFault("00000000:02:00.0", code, "GPU is lost: reboot the machine")
    without_row = with_gpu(make_snapshot(), cards=(make_card(0),), faults=(fault,))
    assert judge_health(without_row, NOW, 2.0)[0] == health
    (reason,) = texts(without_row)  # and not missing once more
    assert reason[0] == health
    assert reason[1].startswith("GPU is lost: reboot the machine")
    assert ("--gpu-reset" in reason[1]) == (code == "reset")
    with_row = with_gpu(make_snapshot(), cards=(make_card(0), make_card(1, fault=fault)))
    assert judge_health(with_row, NOW, 2.0)[0] == health


def test_a_fault_of_a_disabled_card_is_a_note() -> None:
    fault = GpuFault("00000000:02:00.0", "lost", "card is lost")
    snapshot = make_snapshot(
        machine=make_machine(disabled_gpus=(1,)), cards=[make_card(0), make_card(1, fault=fault)]
    )
    assert judge_health(snapshot, NOW, 2.0)[0] == "healthy"
    assert texts(snapshot) == [("note", "GPU 1: card is lost")]


def test_gpus_missing_against_the_file() -> None:
    snapshot = make_snapshot(gpus=3, cards=[make_card(0), make_card(2)])
    assert texts(snapshot) == [("degraded", "GPU 1 missing: 3 declared, 2 measured")]
    more = make_snapshot(gpus=1, cards=[make_card(0), make_card(1)])
    assert texts(more) == [
        ("note", "2 GPUs measured, 1 declared: complete `hardware.gpu` in the machine file")
    ]


def test_heat_and_fields_in_error() -> None:
    assert (
        judge_health(make_snapshot(cards=[make_card(temperature_c=89), make_card(1)]), NOW, 2.0)[0]
        == "healthy"
    )
    hot = make_snapshot(gpus=1, cards=[make_card(temperature_c=93, suspect=("power_w",))])
    assert texts(hot) == [
        ("degraded", "GPU 0 is at 93 °C, its thermal limit: check fans and airflow"),
        ("degraded", "GPU 0: implausible power w"),
    ]
    blind = make_snapshot(gpus=1, cards=[make_card(free_gib=None)])
    assert texts(blind) == [
        ("degraded", "GPU 0: free memory is not reported, so nothing new is routed to it")
    ]


@pytest.mark.parametrize(
    ("used", "free", "health"), [(95, 5, "healthy"), (951, 49, "degraded"), (0, 0, "healthy")]
)
def test_disks_over_95_percent(used: int, free: int, health: str) -> None:
    disk = DiskUse("/data", "/dev/sda1", used + free + 10, used, free)
    snap = DiskUse("/snap/core", "/dev/loop3", 100, 100, 0)
    snapshot = make_snapshot(disks=DisksReading((snap, disk)))
    assert judge_health(snapshot, NOW, 2.0)[0] == health


def test_the_fullest_disk_comes_first() -> None:
    disks = (
        DiskUse("/", "/dev/sda1", 100 << 20, 96 << 20, 4 << 20),
        DiskUse("/data", "/dev/sdb1", 100 << 20, 99 << 20, 1 << 20),
    )
    assert texts(make_snapshot(disks=DisksReading(disks))) == [
        ("degraded", "disk /data is 99 % full (1.0 GiB free): remove models or files"),
        ("degraded", "disk / is 96 % full (4.0 GiB free): remove models or files"),
    ]


@pytest.mark.parametrize(
    ("state", "error", "severity", "text"),
    [
        (
            "down",
            "connection refused",
            "degraded",
            "Ollama on port 11434 does not answer: connection refused",
        ),
        (
            "unauthorized",
            None,
            "degraded",
            "Ollama on port 11434: login needed; set `api_key_env` in the machine file",
        ),
        (
            "not_an_engine",
            None,
            "degraded",
            "Ollama on port 11434: something else answers there; correct `network.port`",
        ),
        ("busy", None, "note", "Ollama on port 11434 is busy and answers late"),
    ],
)
def test_engine_states(state: Any, error: str | None, severity: str, text: str) -> None:
    engine = make_engine(state=state, error=error, loaded=())
    assert texts(make_snapshot(engines=(engine,))) == [(severity, text)]


def test_failed_sources() -> None:
    assert texts(with_source(make_snapshot(), "disks", "error", error="df: permission denied")) == [
        ("degraded", "disks: df: permission denied")
    ]
    assert texts(with_source(make_snapshot(), "disks", "late", read_at=NOW - 90, since=NOW - 30)) == [
        ("degraded", "disks: no answer since 14:02 UTC")
    ]
    lost = replace(with_source(make_snapshot(), "ollama", "error", error="forwarding refused"), engines=())
    assert texts(lost) == [("degraded", "Ollama: forwarding refused")]


@pytest.mark.parametrize("source", ["gpu", "ollama", "disks"])
def test_a_silence_that_began_on_another_day_has_its_date(source: str) -> None:
    began = NOW - 2 * 86_400
    ((_, text),) = texts(with_source(make_snapshot(), source, "late", read_at=began, since=began))
    assert "since 2026-11-28 14:03 UTC" in text


def test_notes_on_copies() -> None:
    loaded = [
        make_copy("qwen2.5:32b", gib=16.4, vram_gib=13.6),
        make_copy("phi3:mini", gib=2.2, vram_gib=0),
        make_copy("gpt-oss:120b", gib=82.9, state="stopping", expires_at=NOW - 424),
        make_copy("llama3.1:8b", gib=6),
    ]
    snapshot = make_snapshot(loaded=loaded)
    assert judge_health(snapshot, NOW, 2.0)[0] == "healthy"
    assert texts(snapshot) == [
        ("note", "qwen2.5:32b is only 83 % on the GPU, the rest in RAM: slow"),
        ("note", "phi3:mini fell back to the CPU although the machine has a GPU: restart the engine"),
        ("note", "gpt-oss:120b is stopping since 13:56 UTC and still holds 82.9 GiB of VRAM"),
    ]
    assert texts(make_snapshot(gpus=0, loaded=[loaded[1]])) == []


def test_vram_nobody_accounts_for() -> None:
    hidden = make_snapshot(cards=[make_card(0, free_gib=5.6), make_card(1, free_gib=23.8)])
    assert texts(hidden) == [("note", "18.6 GiB of VRAM on GPU 0 in use by processes not visible here")]
    explained = make_snapshot(
        gpus=1, cards=[make_card(free_gib=4)], loaded=[make_copy(gib=18)], processes=[make_process(gib=19.5)]
    )
    assert texts(explained) == []
    unread = replace(hidden, processes=None)
    assert texts(unread) == []
    unified = make_snapshot(gpus=1, cards=[make_card(total_gib=None, free_gib=None, is_unified=True)])
    assert texts(unified) == []


def test_a_runner_without_a_copy() -> None:
    orphan = make_snapshot(gpus=1, cards=[make_card(free_gib=2.5)], processes=[make_process(gib=21.5)])
    assert texts(orphan) == [
        ("note", "a runner holds 21.5 GiB of VRAM while its engine lists no copy: orphan runner?")
    ]
    engine = make_engine(state="busy", loaded=())
    assert "orphan" not in str(texts(replace(orphan, engines=(replace(engine, loaded=Unknown()),))))


def test_reasons_come_most_severe_first() -> None:
    snapshot = make_snapshot(
        gpus=2,
        cards=[make_card(0)],
        loaded=[make_copy("qwen2.5:32b", gib=16.4, vram_gib=13.6)],
        disks=DisksReading((DiskUse("/", "/dev/sda1", 100, 99, 1),)),
    )
    fault = GpuFault(Unknown(), "reset", "GPU requires a reset")
    broken = with_gpu(snapshot, cards=(make_card(0, fault=fault),))
    health, reasons = judge_health(broken, NOW, 2.0)
    assert health == "unhealthy"
    assert [reason.severity for reason in reasons] == ["unhealthy", "degraded", "degraded", "note"]


def test_trust_comes_before_everything() -> None:
    pending = judged(make_pending())
    assert (pending.health, pending.reasons[0].code) == ("unknown", "pending")
    changed = judged(replace(make_snapshot(), trust="key_changed"))
    assert (changed.health, changed.reasons[0].code) == ("offline", "key_changed")


def test_partial_offload_needs_a_whole_percent() -> None:
    nearly = make_copy(gib=10, vram_bytes=10 * GIB - 1)
    assert texts(make_snapshot(loaded=[nearly])) == []


def test_an_engine_that_is_down_and_holds_vram_may_be_starting() -> None:
    endpoints = (EngineEndpoint("vllm", 8000),)
    engine = make_engine(kind="vllm", port=8000, state="down", error="connection refused", loaded=())
    server = make_process(pid=77, gib=30.5, name="VLLM::EngineCore", command="VLLM::EngineCore")
    machine = make_machine(engines=endpoints)
    snapshot = make_snapshot(machine=machine, engines=(engine,), processes=(server,))
    assert (
        "degraded",
        "vLLM on port 8000 does not answer: connection refused; process 77 holds 30.5 GiB of VRAM: "
        "starting, or down",
    ) in texts(snapshot)
    other = make_engine(kind="vllm", port=8001)
    said = [text for _, text in texts(replace(snapshot, engines=(engine, other)))]
    assert "vLLM on port 8000 does not answer: connection refused" in said, "it may be the other one's"


def test_an_engine_that_works_on_nothing_while_requests_are_queued() -> None:
    engine = make_engine(kind="sglang", port=30000, running=0, waiting=40, stalled_since=NOW - 32)
    assert ("note", "SGLang on port 30000: 0 running with 40 queued for 32 s: stuck?") in texts(
        make_snapshot(engines=(engine,))
    )
    early = replace(engine, stalled_since=NOW - 4)
    assert not [text for _, text in texts(make_snapshot(engines=(early,))) if "stuck" in text]
