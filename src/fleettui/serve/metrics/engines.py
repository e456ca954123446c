"""Metrics of the engines of a machine and of the copies that are resident there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleettui.model.busy import find_busy_signs, idle_s
from fleettui.model.unknown import Unknown
from fleettui.serve.metrics.machines import is_of_now
from fleettui.serve.metrics.sheet import Sheet, counter, gauge, info, label, word_label
from fleettui.view.figures import is_answering

if TYPE_CHECKING:
    from fleettui.model.readings import EngineReading, LoadedModel
    from fleettui.model.snapshot import MachineSnapshot

MAX_COPIES = 128
"""Of one engine: models have names of any text, so their number is what is bounded."""
MAX_ENGINES = 32
"""Of one machine."""

ENGINE = ("machine", "engine", "port")
COPY = (*ENGINE, "model")

UP = gauge("fleettui_engine_up", ENGINE, "1 while the engine answers")
INFO = info("fleettui_engine_info", (*ENGINE, "version"), "What the engine is")
RUNNING = gauge("fleettui_engine_requests_running", ENGINE, "Requests in work, where the engine counts them")
WAITING = gauge("fleettui_engine_requests_waiting", ENGINE, "Requests queued, where the engine counts them")
KV_CACHE = gauge("fleettui_engine_kv_cache_ratio", ENGINE, "Share of the KV cache in use", "ratio")
PROMPT_TOKENS = counter("fleettui_engine_prompt_tokens_total", ENGINE, "Tokens read since the engine started")
GENERATED_TOKENS = counter(
    "fleettui_engine_generated_tokens_total", ENGINE, "Tokens generated since the engine started"
)
COPIES = gauge("fleettui_engine_copies", ENGINE, "Models resident on the engine")

COPY_INFO = info(
    "fleettui_copy_info", (*COPY, "state", "quantization"),
    "A model resident on an engine, with its state: loaded, loading, stopping, sleeping",
)  # fmt: skip
COPY_SIZE = gauge(
    "fleettui_copy_size_bytes", COPY, "What the copy takes of VRAM and main memory together", "bytes"
)
COPY_VRAM = gauge("fleettui_copy_vram_bytes", COPY, "What it takes of VRAM", "bytes")
COPY_CONTEXT = gauge("fleettui_copy_context_tokens", COPY, "Context it is served with", "tokens")
COPY_PINNED = gauge("fleettui_copy_pinned", COPY, "1 where it never expires")
COPY_EXPIRES = gauge(
    "fleettui_copy_expires_timestamp_seconds",
    COPY,
    "When it will be unloaded, seconds since the epoch",
    "seconds",
)
COPY_BUSY = gauge("fleettui_copy_busy", COPY, "1 while a sign is seen that it works")
COPY_IDLE = gauge("fleettui_copy_idle_seconds", COPY, "Since its last use that is known", "seconds")

METRICS = (
    UP, INFO, COPIES, RUNNING, WAITING, KV_CACHE, PROMPT_TOKENS, GENERATED_TOKENS, COPY_INFO, COPY_SIZE,
    COPY_VRAM, COPY_CONTEXT, COPY_PINNED, COPY_EXPIRES, COPY_BUSY, COPY_IDLE,
)  # fmt: skip


def write_engines(sheet: Sheet, snapshot: MachineSnapshot, who: str, now: float) -> None:
    """All engines and copies. `who`: the label of the machine."""
    if not is_answering(snapshot):
        return
    for engine in snapshot.engines[:MAX_ENGINES]:
        which = f'{who},engine="{engine.kind}",port="{engine.port}"'
        answers = engine.is_answering and is_of_now(snapshot, _source_of(snapshot, engine), now)
        sheet.add(UP, which, answers)
        if answers:
            _write_engine(sheet, snapshot, engine, which, now)


def _source_of(snapshot: MachineSnapshot, engine: EngineReading) -> str:
    exact = f"{engine.kind}:{engine.port}"
    return exact if exact in snapshot.sources else engine.kind


def _write_engine(
    sheet: Sheet, snapshot: MachineSnapshot, engine: EngineReading, which: str, now: float
) -> None:
    sheet.add_info(INFO, f"{which},{word_label('version', engine.version)}")
    sheet.add(RUNNING, which, engine.running)
    sheet.add(WAITING, which, engine.waiting)
    sheet.add_percent(KV_CACHE, which, engine.kv_percent)
    if engine.load is not None:
        sheet.add(PROMPT_TOKENS, which, engine.load.prompt_tokens)
        sheet.add(GENERATED_TOKENS, which, engine.load.generated_tokens)
    if not isinstance(engine.loaded, Unknown):
        sheet.add(COPIES, which, len(engine.loaded))
        for copy in engine.loaded[:MAX_COPIES]:
            _write_copy(sheet, snapshot, engine, copy, f"{which},{label('model', copy.name)}", now)


def _write_copy(
    sheet: Sheet, snapshot: MachineSnapshot, engine: EngineReading, copy: LoadedModel, which: str, now: float
) -> None:
    words = (which, label("state", copy.state), word_label("quantization", copy.quantization))
    sheet.add_info(COPY_INFO, ",".join(words))
    sheet.add(COPY_SIZE, which, copy.size_bytes)
    sheet.add(COPY_VRAM, which, copy.vram_bytes)
    sheet.add(COPY_CONTEXT, which, copy.context)
    sheet.add(COPY_PINNED, which, copy.is_pinned)
    if not copy.is_pinned:
        sheet.add(COPY_EXPIRES, which, copy.expires_at)
    signs = find_busy_signs(snapshot, engine, copy, now)
    sheet.add(COPY_BUSY, which, bool(signs))
    sheet.add(COPY_IDLE, which, idle_s(snapshot, engine, copy, now, signs))
