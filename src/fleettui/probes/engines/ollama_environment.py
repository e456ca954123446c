"""Settings of an Ollama server: the lines `NAME=value` of its environment that the loop lets through.

Names and meaning: ollama/ollama envconfig/config.go. The loop prints only these names, so that a secret in
the same environment never leaves the machine.
"""

from __future__ import annotations

from fleettui.model.machine import DEFAULT_ENGINE_PORT
from fleettui.model.ollama_settings import NOT_SET, FlashAttention, OllamaSettings
from fleettui.model.unknown import Maybe
from fleettui.probes.clean import clean_text
from fleettui.probes.engines.ollama_host import parse_ollama_host
from fleettui.probes.numbers import is_digits

NAMES = (
    "HOST", "NUM_PARALLEL", "KV_CACHE_TYPE", "CONTEXT_LENGTH", "FLASH_ATTENTION", "SCHED_SPREAD",
    "MAX_LOADED_MODELS", "KEEP_ALIVE",
)  # fmt: skip
"""Without `OLLAMA_`."""
_MAX_BYTES = 16 << 10
_MAX_COUNT = 1 << 31
_TRUE = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_FALSE = frozenset(("0", "f", "F", "false", "FALSE", "False"))


def parse_ollama_settings(payload: bytes, exit_code: int) -> OllamaSettings | None:
    """The settings; None where the loop could read no environment. A later line of a name counts."""
    if exit_code or len(payload) > _MAX_BYTES:
        return None
    found: dict[str, str] = {}
    for line in payload.decode("utf-8", "replace").splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and name.startswith("OLLAMA_") and name[7:] in NAMES:
            found[name[7:]] = clean_text(value, 200).strip().strip("\"'").strip()
    flash = found.get("FLASH_ATTENTION", "")
    is_flash: FlashAttention = "on" if flash in _TRUE else "off" if flash in _FALSE else "auto"
    host = found.get("HOST", "")
    return OllamaSettings(
        parse_ollama_host(host).port if host else DEFAULT_ENGINE_PORT,
        _count(found.get("NUM_PARALLEL", "")),
        found.get("KV_CACHE_TYPE", "").lower() or NOT_SET,
        _count(found.get("CONTEXT_LENGTH", "")),
        is_flash,
        # Go: anything that is no truth value counts as set.
        bool(found.get("SCHED_SPREAD")) and found["SCHED_SPREAD"] not in _FALSE,
        _count(found.get("MAX_LOADED_MODELS", "")),
        found.get("KEEP_ALIVE") or NOT_SET,
    )


def _count(text: str) -> Maybe[int]:
    """0 and what is no number are the default, as the server takes them."""
    if not is_digits(text) or len(text) > 12:
        return NOT_SET
    number = int(text)
    return number if 0 < number < _MAX_COUNT else NOT_SET
