"""Engines: one file each; here the registry of what is asked of which."""

from __future__ import annotations

from collections.abc import Mapping

from fleettui.model.machine import EngineKind
from fleettui.probes.engines import llamacpp, llamaswap, lmstudio, ollama, sglang, vllm
from fleettui.probes.engines.probe import AskedBy, EngineProbe, Question

__all__ = ["ENGINES", "PROBES", "REMOTE_PATHS", "AskedBy", "EngineProbe", "Question"]

PROBES: Mapping[EngineKind, EngineProbe] = {
    probe.kind: probe
    for probe in (
        ollama.PROBE,
        vllm.PROBE,
        llamacpp.PROBE,
        llamaswap.PROBE,
        lmstudio.PROBE,
        sglang.PROBE,
    )
}
"""Every engine whose answers can be read."""

ENGINES: Mapping[EngineKind, EngineProbe] = {"ollama": PROBES["ollama"]}
"""Those that are polled. The others are declared in machine files and not asked yet."""

REMOTE_PATHS: tuple[str, ...] = tuple(
    dict.fromkeys(question.path for probe in ENGINES.values() for question in probe.questions)
)
"""All that the machine's own curl or wget may be asked for."""
