"""Options of a routing question as an operator types them."""

from __future__ import annotations

from fleettui.view.units import gib_text

CONTEXT_HINT = "tokens the caller will send as num_ctx: 32768 or 32k; nothing: any will do"
FREE_HINT = "GiB on one card that have to be free beside the model: 24, 4.5, 4000MiB; nothing: any will do"
_MOST_TOKENS = 100_000_000


def parse_context(text: str) -> int | None:
    """Tokens of `32768`, `32k`, `1m`; None for nothing. Raises ValueError with a sentence."""
    compact = text.strip().lower().replace(" ", "").replace("_", "")
    if not compact or compact in {"any", "0"}:
        return None
    factor = {"k": 1024, "m": 1024 * 1024}.get(compact[-1], 1)
    number = compact[:-1] if factor > 1 else compact
    if not (number.isascii() and number.isdecimal()) or len(number) > 9:
        raise ValueError(f"{text.strip()} is no number of tokens: write 32768 or 32k")
    tokens = int(number) * factor
    if not 0 < tokens <= _MOST_TOKENS:
        raise ValueError(f"{text.strip()} is no context that a model has")
    return tokens


def context_text(tokens: int | None) -> str:
    """As it is typed; nothing where any will do."""
    return "" if tokens is None else str(tokens)


def free_text(mib: int) -> str:
    """As it is typed; nothing where any will do."""
    if not mib:
        return ""
    return gib_text(mib).removesuffix(".0") if mib % 512 == 0 else f"{mib}MiB"
