"""`fleettui fit --json`: the verdict for each machine with every figure behind it. Sizes in bytes."""

from __future__ import annotations

from fleettui.model.clock import iso_utc
from fleettui.model.fit import FitForecast, FitNeed, FitReport, FitUse, MachineFit
from fleettui.model.fit_verdict import VERDICT_WORDS
from fleettui.model.model_shape import ModelShape
from fleettui.model.unknown import Unknown
from fleettui.view.json_values import Document, known

SCHEMA = 1


def fit_document(report: FitReport, *, took_ms: float | None = None) -> Document:
    """The document; null is unknown."""
    shape = ModelShape() if isinstance(report.shape, Unknown) else report.shape
    return {
        "schema": SCHEMA,
        "model": {
            "asked": report.query.model,
            "canonical": report.canonical,
            "digest": known(report.digest),
            "file_bytes": known(report.file_bytes),
            "architecture": known(shape.architecture),
            "max_context": known(shape.max_context),
            "has_drift": report.has_drift,
        },
        "machines": [_machine(item) for item in report.machines],
        "nearest": list(report.nearest),
        "exit_code": report.exit_code,
        "generated_at": iso_utc(report.decided_at),
        "took_ms": None if took_ms is None else round(took_ms, 1),
    }


def _machine(item: MachineFit) -> Document:
    return {
        "name": item.machine,
        "verdict": item.verdict,
        "words": VERDICT_WORDS[item.verdict],
        "text": item.text,
        "gpus": list(item.gpus),
        "evicts": list(item.evicted),
        "ram_bytes": item.ram_bytes,
        "needed_bytes": item.needed_bytes or None,
        "free_bytes": item.free_bytes if item.needed_bytes else None,
        "need": None if item.need is None else _need(item.need),
        "use": None if item.use is None else _use(item.use),
        "ollama": None if item.forecast is None else _forecast(item.forecast),
        "is_installed": item.is_installed,
        "is_resident": item.resident_context is not None,
        "resident_context": None if item.resident_context is None else known(item.resident_context),
        "notes": list(item.notes),
        "age_s": None if item.age_s is None else round(item.age_s, 1),
    }


def _need(need: FitNeed) -> Document:
    return {
        "basis": need.basis,
        "text": need.text,
        "shared_bytes": need.shared_bytes,
        "per_gpu_bytes": need.per_gpu_bytes,
        "kv_bytes": known(need.kv_bytes),
        "is_upper_bound": need.is_upper_bound,
    }


def _use(use: FitUse) -> Document:
    return {
        "context": use.context,
        "context_basis": use.context_basis,
        "parallel": use.parallel,
        "is_parallel_known": use.is_parallel_known,
        "cache_type_k": use.cache_key,
        "cache_type_v": use.cache_value,
        "has_flash_attention": use.has_flash_attention,
        "spreads": use.spreads,
    }


def _forecast(told: FitForecast) -> Document:
    """What Ollama predicts."""
    return {
        "predicted_bytes": told.predicted_bytes,
        "kv_bytes": told.kv_bytes,
        "batch": told.batch,
        "surcharge_bytes": told.surcharge_bytes,
        "gpus": list(told.gpus),
        "evicts": told.evicts,
    }
