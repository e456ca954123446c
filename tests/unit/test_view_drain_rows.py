"""Rows and words of the Drain screen, without a screen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleettui.model.drain import (
    CopyProgress,
    Drain,
    DrainOptions,
    DrainPlan,
    DrainStatus,
    JournalEntry,
    PlannedCopy,
    SourceCopy,
)
from fleettui.model.route import Eviction, RejectedMachine, Rejection, RouteCandidate, VramNeed
from fleettui.model.unknown import Unknown
from fleettui.view.cells import text_of, width_of
from fleettui.view.drain_page import consequence, is_losing, missing_words, next_words, worker_words
from fleettui.view.drain_rows import context_text, drain_layout, preview_header, preview_rows
from fleettui.view.drain_work_rows import WORK_FIGURES, journal_rows, progress_header, progress_rows
from fleettui.view.glyphs import ASCII, UNICODE

NOW = 1_770_000_000.0
KEYS = {"drain_start": "Enter", "drain_abort": "c", "drain_take_over": "o", "undrain": "D"}
BORA = RouteCandidate(
    "bora", "bora.lan", 11434, "http://bora.lan:11434", "ollama", 4, "cold", "llama3.1:70b",
    free_mib=40_000, need=VramNeed(43_000, "measured"), eta_s=29.0, gpus=(0, 1),
    evicts=(Eviction("phi4:14b", 7200.0, 9000),),
)  # fmt: skip
OUT = RejectedMachine("cleo", (Rejection("no_fit", "24.0 < 66.0 GiB"),))


def copy(name: str, context: int = 32_768) -> SourceCopy:
    return SourceCopy("ada", "ollama", 11434, name, context=context)


LINES = (
    PlannedCopy(copy("nomic-embed-text"), "covered", "also on bora (same digest)", BORA),
    PlannedCopy(copy("llama3.1:70b"), "move_evicts", target=BORA, context_there=4096),
    PlannedCopy(copy("qwen3:32b"), "degraded", target=replace(BORA, evicts=()), context_there=32_768),
    PlannedCopy(
        copy("gpt-oss:120b"), "last_copy", "will be cold on bora", cold_on=("bora",), rejected=(OUT,)
    ),
    PlannedCopy(
        SourceCopy("ada", "vllm", 8001, "Qwen/Qwen2-VL-with-a-name-longer-than-any-column"),
        "unmanaged",
        "no `stop:`",
    ),
)
PLAN = DrainPlan("ada", LINES, load_bytes=60 << 30, seconds=50.0)


def texts(rows) -> str:  # type: ignore[no-untyped-def]
    return "\n".join(text_of(row.cells).rstrip() for row in rows)


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
@pytest.mark.parametrize("width", [40, 60, 80, 100, 140, 200])
def test_no_line_is_wider_or_narrower_than_the_screen(width: int, glyphs) -> None:  # type: ignore[no-untyped-def]
    layout = drain_layout(
        width, ["llama3.1:70b", "a-model-of-forty-columns-and-a-few-more"], ["bora GPU 0+1"], ["32k"], glyphs
    )
    rows = preview_rows(PLAN, DrainOptions(), layout)
    work = CopyProgress(copy("llama3.1:70b"), "move", "loading", NOW - 12, "bora", "half of it", 29.0)
    rows += progress_rows([work], NOW, layout)
    rows += journal_rows([JournalEntry(NOW, "ada", "d", "mia@jump", 1, "load", call="POST x" * 30)], layout)
    assert {width_of(row.cells) for row in rows} == {width}
    assert width_of(preview_header(layout)) <= width
    work_layout = drain_layout(width, ["llama3.1:70b" * 3], ["bora"], (), glyphs, figures=WORK_FIGURES)
    assert width_of(progress_header(work_layout)) <= width
    assert glyphs is UNICODE or texts(rows).isascii()


def test_what_needs_a_word_says_so_until_it_is_given() -> None:
    layout = drain_layout(100, ["llama3.1:70b"], ["bora GPU 0+1"], ["32k → 4k (!)"])
    before = texts(preview_rows(PLAN, DrainOptions(), layout))
    assert before.count("needs your word") == 2
    assert "stays here unless you accept a degraded copy" in before
    assert "cleo 24.0 < 66.0 GiB" in before
    given = DrainOptions(accept_degraded=True, forced=("last_copy", "unmanaged"))
    after = texts(preview_rows(PLAN, given, layout))
    assert "needs your word" not in after
    assert "stays here unless" not in after
    assert after.count("by your word") == 2
    assert "stays where it is" in texts(preview_rows(PLAN, replace(given, skips=("qwen3:32b",)), layout))


def test_what_is_excluded_for_all_is_not_told_below_each() -> None:
    layout = drain_layout(100, [], [])
    assert "cleo" not in texts(preview_rows(replace(PLAN, excluded=(OUT,)), DrainOptions(), layout))


def test_the_consequence_names_what_is_lost_and_what_stays() -> None:
    options = DrainOptions(forced=("last_copy", "unmanaged"))
    text, tone = consequence([PLAN], options)
    assert tone == "bad"
    assert "1 copy moved, which evicts phi4:14b" in text
    assert "1 unloaded, served elsewhere already" in text
    assert "gpt-oss:120b resident NOWHERE" in text
    assert "qwen3:32b, vllm Qwen/Qwen2-VL" in text
    assert "stay and block the drain" in text
    assert is_losing([PLAN], options)
    assert not is_losing([PLAN], replace(options, skips=("gpt-oss:120b",)))


def test_nothing_begins_without_the_words_or_without_knowing() -> None:
    assert missing_words([PLAN], DrainOptions()).startswith(
        "your word is missing: 1 LAST COPY (gpt-oss:120b)"
    )
    assert missing_words([PLAN], DrainOptions(forced=("last_copy", "unmanaged"))) == ""
    blind = DrainPlan("ada", (), problem="offline since 3m")
    assert (
        missing_words([blind], DrainOptions()) == "nobody knows what is loaded there: ada: offline since 3m"
    )


@pytest.mark.parametrize(
    ("here", "there", "text"),
    [
        (32_768, 32_768, "32k"),
        (32_768, 4096, "32k → 4k (!)"),
        (5000, 8192, "5000 → 8k"),
        (8192, Unknown(), "8k → –"),
        (Unknown(), Unknown(), ""),
    ],
)
def test_contexts(here, there, text: str) -> None:  # type: ignore[no-untyped-def]
    assert context_text(PlannedCopy(copy("x", here), "move", context_there=there)) == text


def test_who_works_and_what_comes_next() -> None:
    drain = Drain("d", "ada", "running", "PSU", "mia@jump", NOW - 60)
    assert worker_words(DrainStatus(drain), NOW, 1, KEYS) == (
        "nobody works on it now; o takes it over",
        "warn",
    )
    assert next_words(drain, (), KEYS) is None
    empty = next_words(replace(drain, state="drained"), (), KEYS)
    assert empty is not None
    assert empty[0].startswith("ada is empty: safe to reboot.")
    loading = CopyProgress(copy("x"), "move", "loading")
    cancelled = next_words(replace(drain, state="cancelled"), (loading,), KEYS)
    assert cancelled is not None
    assert "c aborts it now" in cancelled[0]


def test_what_went_wrong_stands_out_in_the_journal() -> None:
    layout = drain_layout(120, [], [])

    def tone_of(step: str, result: str) -> str:
        entry = JournalEntry(NOW, "ada", "d", "mia@jump", 1, step, "llama3.1:70b", "bora", result)
        return next(cell.tone for cell in journal_rows([entry], layout)[0].cells if cell.text.strip() == step)

    assert tone_of("load", "ok") == "plain"
    assert tone_of("planned", "move") == "plain"
    assert tone_of("load", "cudaMalloc failed: out of memory") == "warn"
    assert tone_of("blocked", "deadline") == "warn"


def test_a_wide_screen_shows_long_names_whole() -> None:
    """Beside the words behind the figures, which come first."""
    name = "hf.co/unsloth/Qwen3-235B-A22B-Instruct-2507-GGUF:Q4_K_M"
    widths = {
        width: drain_layout(width, [name], ["bora GPU 0+1"]).name for width in (100, 140, 160, 200, 240)
    }
    assert widths[200] == widths[240] == len(name)
    assert widths[160] < len(name)
    assert (widths[140], sorted(widths.values())) == (30, list(widths.values()))
    work = drain_layout(200, [name], ["bora"], figures=WORK_FIGURES)
    assert work.name == len(name)
