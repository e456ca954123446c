"""Engines: one file each; here the registry of what is asked of which."""

from __future__ import annotations

from collections.abc import Mapping

from fleettui.model.machine import EngineKind
from fleettui.probes.engines import llamacpp, llamaswap, lmstudio, ollama, sglang, vllm
from fleettui.probes.engines.probe import AskedBy, EngineProbe, Question

__all__ = ["PROBES", "REMOTE_LINES", "REMOTE_PATHS", "AskedBy", "EngineProbe", "Question"]

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
"""Every engine that is asked."""

REMOTE_PATHS: tuple[str, ...] = tuple(
    dict.fromkeys(question.path for probe in PROBES.values() for question in probe.questions)
)
"""All that the machine's own curl or wget may be asked for."""

REMOTE_LINES: Mapping[str, tuple[str, ...]] = {
    path: tuple(
        dict.fromkeys(
            start
            for probe in PROBES.values()
            for question in probe.questions
            if question.path == path
            for start in question.line_starts
        )
    )
    for path in dict.fromkeys(
        question.path for probe in PROBES.values() for question in probe.questions if question.line_starts
    )
}
"""What the lines begin with that the machine's own tools leave of an answer, by path; of others all stays."""
