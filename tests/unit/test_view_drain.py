# ruff: noqa: E501 - lines as the terminal has them
"""Drains in words: the preview and how far a drain is, on wide and narrow terminals, and as JSON."""

from __future__ import annotations

from typing import Any

import pytest

from builders import NOW
from fleettui.model.drain import (
    CopyEngine,
    CopyProgress,
    CopyState,
    Drain,
    DrainClass,
    DrainLock,
    DrainOptions,
    DrainPlan,
    DrainStatus,
    JournalEntry,
    PlannedCopy,
    SourceCopy,
)
from fleettui.model.record import replace
from fleettui.model.route import Eviction, RejectCode, RejectedMachine, Rejection, RouteCandidate, VramNeed
from fleettui.model.snapshot import DrainFlag
from fleettui.model.unknown import Maybe, Unknown
from fleettui.view.cells import Cells, text_of, width_of
from fleettui.view.drain_document import plan_document, preview_document, status_document
from fleettui.view.drain_page import preview_notes
from fleettui.view.drain_status import ended_text, journal_lines, moved_text, progress_text, status_lines
from fleettui.view.drain_text import consequence_text, preview_lines, refused_text, rejected_text


def source(name: str, engine: CopyEngine = "ollama", port: int = 11434, **changes: Any) -> SourceCopy:
    return SourceCopy("ada", engine, port, name, **{"context": 32768, **changes})


def target(name: str, gpus: tuple[int, ...], need: float, free: float, eta: Maybe[float]) -> RouteCandidate:
    return RouteCandidate(
        name, f"{name}.lan", 11434, f"http://{name}.lan:11434", "ollama", 4, "installed", "x",
        free_mib=round(free * 1024), need=VramNeed(round(need * 1024), "tensors+KV"), eta_s=eta, gpus=gpus,
    )  # fmt: skip


def out(name: str, code: RejectCode, text: str) -> RejectedMachine:
    return RejectedMachine(name, (Rejection(code, text),))


EVICTING = replace(target("cleo", (0,), 22.1, 14.0, 14.0), evicts=(Eviction("phi4", 7200.0, 9000),))
PLAN = DrainPlan(
    "ada",
    (
        PlannedCopy(source("nomic-embed-text"), "covered", "also on cleo (same digest)", EVICTING),
        PlannedCopy(source("llama3.1:70b"), "move", target=target("bora", (0, 1), 43.9, 61.2, 29.0),
                    context_there=32768),
        PlannedCopy(source("qwen3:32b"), "move_evicts", target=EVICTING, context_there=4096),
        PlannedCopy(source("gpt-oss:120b"), "last_copy", "will be cold on bora", cold_on=("bora",),
                    rejected=(out("bora", "no_fit", "61.2 < 66.0"), out("cleo", "no_fit", "24.0 < 66.0"))),
        PlannedCopy(source("qwen2-vl", "vllm", 8001), "unmanaged", "started outside: stays"),
    ),
    (out("dora", "maintenance", 'maintenance "fan swap" by mia since 12:03'),),
    66 << 30,
    50.0,
    NOW - 0.4,
)  # fmt: skip


def shown(lines: list[Cells]) -> list[str]:
    return [text_of(line).rstrip() for line in lines]


def test_the_preview_on_a_wide_terminal() -> None:
    assert shown(preview_lines(PLAN, "PSU swap", NOW, 140)) == [
        'drain ada "PSU swap" 5 copies, 66 GiB to load, ~50 s, targets bora (1) cleo (1)',
        "1 copy ends with no resident copy anywhere: gpt-oss:120b",
        'excluded: dora maintenance "fan swap" by mia since 12:03',
        "data 0.4 s old",
        " COVERED      nomic-embed-text     also on cleo (same digest)",
        " MOVE         llama3.1:70b         -> bora GPU 0+1  need 43.9 (tensors+KV)  free 61.2                    "
        "ctx 32768 -> 32768     ~29 s",
        " MOVE+EVICTS  qwen3:32b            -> cleo GPU 0    need 22.1 (tensors+KV)  free 14.0 + phi4 (idle 2 h)  "
        "ctx 32768 -> 4096 (!)  ~14 s",
        " LAST COPY    gpt-oss:120b         will be cold on bora",
        "                                   bora 61.2 < 66.0; cleo 24.0 < 66.0",
        " UNMANAGED    vllm qwen2-vl :8001  started outside: stays",
    ]


def test_the_preview_on_eighty_columns_loses_nothing() -> None:
    assert shown(preview_lines(PLAN, "PSU swap", NOW, 80))[4:] == [
        " COVERED      nomic-embed-text     also on cleo (same digest)",
        " MOVE         llama3.1:70b         -> bora GPU 0+1  ~29 s",
        "                                   need 43.9 (tensors+KV)  free 61.2",
        "                                   ctx 32768 -> 32768",
        " MOVE+EVICTS  qwen3:32b            -> cleo GPU 0  ~14 s",
        "                                   need 22.1 (tensors+KV)",
        "                                   free 14.0 + phi4 (idle 2 h)",
        "                                   ctx 32768 -> 4096 (!)",
        " LAST COPY    gpt-oss:120b         will be cold on bora",
        "                                   bora 61.2 < 66.0; cleo 24.0 < 66.0",
        " UNMANAGED    vllm qwen2-vl :8001  started outside: stays",
    ]


@pytest.mark.parametrize("width", [40, 60, 72, 80, 100, 200, None])
def test_no_line_is_wider_than_the_terminal_and_every_word_is_there(width: int | None) -> None:
    lines = preview_lines(PLAN, "PSU swap", NOW, width)
    assert all(width_of(line) <= max(width or 100, 60) for line in lines)
    words = " ".join(" ".join(shown(lines)).split())
    for wanted in ("43.9", "61.2", "phi4 (idle 2 h)", "32768 -> 4096 (!)", "gpt-oss:120b", "cold on bora"):
        assert wanted in words


def test_what_is_not_known_is_a_dash_and_no_number() -> None:
    blind = target("bora", (), 1.0, 1.0, Unknown("no idea"))
    blind = replace(blind, need=None, free_mib=Unknown("gpu not read"))
    plan = DrainPlan("ada", (PlannedCopy(source("x", context=Unknown("?")), "move", target=blind),))
    assert " MOVE         x  -> bora  need –  free –  ~– s" in shown(preview_lines(plan, width=120))


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        (DrainPlan("ada", ()), "drain ada nothing is loaded: drained at once"),
        (
            DrainPlan("ada", (), problem="offline: no answer"),
            "drain ada not known what is loaded: offline: no answer",
        ),
        (replace(PLAN, copies=PLAN.copies[:1]), "drain ada 1 copy, nothing to load"),
    ],
)
def test_headlines(plan: DrainPlan, text: str) -> None:
    assert shown(preview_lines(plan))[0] == text


def test_hostile_names_cannot_move_the_cursor() -> None:
    plan = DrainPlan("a\x1b[2Jda", (PlannedCopy(source("x\x1b[1m"), "cannot", "no\x07 target"),))
    assert "\x1b" not in "".join(shown(preview_lines(plan, "r\x1b", NOW)))


def test_who_comes_closest_is_told_and_the_rest_is_counted() -> None:
    many = [out(f"m{number}", "stale", "stale 9 s") for number in range(5)]
    away = [out(f"n{number}", "not_installed", "not_installed") for number in range(9)]
    assert rejected_text([away[0], *many]) == (
        "m0 stale 9 s; m1 stale 9 s; m2 stale 9 s; stale on m3, m4; not_installed on n0"
    )
    assert rejected_text(away) == "not_installed on 9 machines"


def test_what_needs_the_operators_word() -> None:
    assert refused_text(PLAN.refused(DrainOptions())) == (
        "1 LAST COPY (gpt-oss:120b), 1 UNMANAGED (vllm qwen2-vl :8001)"
    )
    assert consequence_text(PLAN, DrainOptions()) == (
        "ada takes no requests from now on; 2 copies moved, 1 unloaded because others serve it, "
        "1 unloaded and gone, 1 left, which blocks the drain"
    )
    skipping = DrainOptions(skips=("gpt-oss:120b", "LLAMA3.1:70b"))
    assert refused_text(PLAN.refused(skipping)) == "1 UNMANAGED (vllm qwen2-vl :8001)", (
        "what stays is not lost"
    )
    assert consequence_text(PLAN, skipping) == (
        "ada takes no requests from now on; 1 copy moved, 1 unloaded because others serve it, "
        "3 left, which block the drain"
    )
    worse = replace(PLAN, copies=(replace(PLAN.copies[1], drain_class="degraded"),))
    assert consequence_text(worse, DrainOptions()).endswith("; 1 left, which blocks the drain")
    assert consequence_text(worse, DrainOptions(accept_degraded=True)).endswith("; 1 copy moved")


def test_what_other_machines_lose_stands_above_the_lines() -> None:
    plan = replace(PLAN, evicted_last=("phi4",))
    said = "evicted for it, and then resident nowhere: phi4"
    assert shown(preview_lines(plan, "PSU swap", NOW, 140))[2] == said
    assert (said, "warn") in preview_notes([plan])
    assert plan_document(plan, DrainOptions(), NOW)["evicted_last"] == ["phi4"]


def test_the_preview_as_a_document() -> None:
    options = DrainOptions(forced=("last_copy",))
    document = preview_document([PLAN], options, NOW, reason="PSU swap", exit_code=0)
    assert (document["schema"], document["reason"], document["exit_code"]) == (1, "PSU swap", 0)
    (machine,) = document["machines"]
    assert {key: machine[key] for key in ("name", "load_gb", "seconds", "age_s", "refused", "no_copy_left")} == {
        "name": "ada", "load_gb": 66.0, "seconds": 50.0, "age_s": 0.4, "refused": ["unmanaged"],
        "no_copy_left": ["gpt-oss:120b"],
    }  # fmt: skip
    assert [copy["class"] for copy in machine["copies"]] == [
        "covered", "move", "move_evicts", "last_copy", "unmanaged",
    ]  # fmt: skip
    evicting = machine["copies"][2]
    assert (evicting["context"], evicting["context_there"], evicting["digest"]) == (32768, 4096, None)
    assert evicting["target"]["evicts"] == [{"model": "phi4", "idle_s": 7200.0, "vram_gb": 8.8}]
    assert (evicting["target"]["need_gb"], evicting["target"]["free_vram_gb"]) == (22.1, 14.0)
    assert machine["excluded"][0]["codes"] == ["maintenance"]
    assert document["options"]["forced"] == ["last_copy"]


# -- how far it is ---------------------------------------------------------------------------------------


def progress(
    name: str, drain_class: DrainClass, state: CopyState, since_s: float = 12, **more: Any
) -> CopyProgress:
    return CopyProgress(source(name), drain_class, state, NOW - since_s, **more)


DRAIN = Drain("d1", "ada", "running", "PSU swap", "mia@jump", NOW - 7200, NOW + 3600, revision=3)
STATUS = DrainStatus(
    DRAIN,
    (
        progress("nomic-embed-text", "covered", "gone", target="cleo"),
        progress("llama3.1:70b", "move", "loading", target="bora", eta_s=29.0, text="40 of 61 GiB"),
        progress("qwen3:32b", "move_evicts", "waiting_target", target="bora", eta_s=29.0,
                 text="loads llama3.1:70b first"),
        progress("x", "move", "failed", target="cleo", failures=("cleo: out of memory", "bora: stall"),
                 text="cleo: out of memory; bora: stall"),
    ),
    DrainLock("ada", "mia@jump", 4242, NOW - 20, NOW - 3),
    (
        JournalEntry(NOW - 12, "ada", "d1", "mia@jump", 4242, "load", "llama3.1:70b", "bora", "ok",
                     'POST bora:11434/api/generate {"model": "llama3.1:70b"}'),
        JournalEntry(NOW - 2, "ada", "d1", "mia@jump", 4242, "unload", "x", "", "refused"),
    ),
)  # fmt: skip


def test_how_far_a_drain_is() -> None:
    assert shown(status_lines(STATUS, NOW, 110, utc_offset_s=0)) == [
        'ada: draining (running) "PSU swap" by mia@jump since 12:03, until 15:03',
        " 1 of 4 copies gone; mia@jump works on it (process 4242)",
        " COVERED      nomic-embed-text  -> cleo  gone",
        " MOVE         llama3.1:70b      -> bora  loading 12s, ~17 s left",
        "                                         40 of 61 GiB",
        " MOVE+EVICTS  qwen3:32b         -> bora  waits for its target 12s",
        "                                         loads llama3.1:70b first",
        " MOVE         x                 -> cleo  failed",
        "                                         cleo: out of memory; bora: stall",
    ]
    assert all(width_of(line) <= 60 for line in status_lines(STATUS, NOW, 60))


@pytest.mark.parametrize(
    ("changes", "lock", "said"),
    [
        ({}, None, "nobody works on it now; a dashboard goes on with it, or: fleettui drain status ada --follow"),
        ({}, DrainLock("ada", "jo@desk", 7, NOW, NOW - 90), "jo@desk works on it (process 7, last heard of 1m ago)"),
        ({"state": "drained", "changed_at": NOW - 2}, None, "safe to reboot; when it is back: fleettui undrain ada"),
        ({"state": "drained", "changed_at": NOW - 60}, None, "it was empty at 14:02, nobody has looked since; before the reboot: fleettui drain status ada --follow"),
        ({"state": "blocked", "text": "vllm stays"}, None, "vllm stays"),
        ({"state": "blocked"}, None, "once that is settled: fleettui drain start ada; to give it up: fleettui undrain ada"),
        ({"state": "cancelled", "changed_by": "jo@desk", "changed_at": NOW}, None, "changed by jo@desk at 14:03"),
        ({"state": "cancelled"}, None, "it takes no requests until: fleettui undrain ada"),
        ({"until": NOW - 60}, None, "overdue since 14:02"),
    ],
)  # fmt: skip
def test_what_is_said_of_a_drain(changes: dict[str, Any], lock: DrainLock | None, said: str) -> None:
    lines = status_lines(DrainStatus(replace(DRAIN, **changes), (), lock), NOW, 160, utc_offset_s=0)
    assert said in "\n".join(shown(lines))


def test_a_drained_machine_that_is_watched_is_safe_for_as_long() -> None:
    drained = replace(DRAIN, state="drained", changed_at=NOW - 7200)
    flag = DrainFlag("drained", DRAIN.reason, DRAIN.by, DRAIN.since, id=DRAIN.id, revision=DRAIN.revision)
    seen = DrainStatus(drained).as_shown(flag)
    assert "safe to reboot" in "\n".join(shown(status_lines(seen, NOW, 110, utc_offset_s=0)))
    assert "safe" not in "\n".join(shown(status_lines(DrainStatus(drained), NOW, 110, utc_offset_s=0)))


def test_why_a_target_failed_is_said_once() -> None:
    why = "bora was not loaded: the load was given up"
    waiting = progress("x", "move", "pending", target="bora", text=why, failures=(why,))
    lines = shown(status_lines(DrainStatus(DRAIN, (waiting,)), NOW, 110, utc_offset_s=0))
    assert sum(why in line for line in lines) == 1


def test_lines_of_a_log() -> None:
    told = [progress_text("ada", copy) for copy in STATUS.copies]
    assert told == [
        "ada  nomic-embed-text: gone",
        "ada  llama3.1:70b: loading on bora (~29 s): 40 of 61 GiB",
        "ada  qwen3:32b: waits for its target on bora: loads llama3.1:70b first",
        "ada  x: failed: cleo: out of memory; bora: stall",
    ]
    assert ended_text(DRAIN) == "ada: running"
    assert ended_text(replace(DRAIN, state="blocked", text="vllm stays")) == "ada: blocked: vllm stays"


def test_the_journal_has_the_calls() -> None:
    assert shown(journal_lines(STATUS.journal, 100)) == [
        " 14:03:00 load llama3.1:70b -> bora",
        '          POST bora:11434/api/generate {"model": "llama3.1:70b"}',
        " 14:03:10 unload x: refused",
    ]


def test_what_stays_moved_when_it_ends_early() -> None:
    here = replace(STATUS.copies[2], is_moved=True)
    assert moved_text((STATUS.copies[0], here, STATUS.copies[3])) == (
        "moved: nomic-embed-text to cleo; still here: qwen3:32b (on bora too), x"
    )
    assert moved_text(()) == "nothing was moved"


def test_a_drain_as_a_document() -> None:
    (machine,) = status_document([STATUS], NOW)["machines"]
    assert machine["drain"]["state"] == "running"
    assert machine["drain"]["until"] == "2026-11-30T15:03:12Z"
    assert machine["worker"] == {
        "by": "mia@jump", "pid": 4242, "since": "2026-11-30T14:02:52Z", "heard_at": "2026-11-30T14:03:09Z",
    }  # fmt: skip
    loading = machine["copies"][1]
    assert (loading["state"], loading["target"], loading["eta_s"]) == ("loading", "bora", 29.0)
    assert machine["copies"][0]["eta_s"] is None
    assert machine["journal"][0]["call"].startswith("POST bora:11434")
    assert machine["journal"][1] == {
        "at": "2026-11-30T14:03:10Z", "by": "mia@jump", "pid": 4242, "step": "unload", "copy": "x",
        "target": None, "result": "refused", "call": None,
    }  # fmt: skip
