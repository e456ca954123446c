"""Options of a routing question as an operator types them."""

from __future__ import annotations

from fleettui.model.sizes import parse_tokens
from fleettui.view.units import gib_text

CONTEXT_HINT = "tokens the caller will send as num_ctx: 32768 or 32k; nothing: any will do"
FREE_HINT = "GiB on one card that have to be free beside the model: 24, 4.5, 4000MiB; nothing: any will do"


def parse_context(text: str) -> int | None:
    """Tokens of `32768`, `32k`, `1m`; None for nothing. Raises ValueError with a sentence."""
    return None if text.strip().lower() in ("", "any", "0") else parse_tokens(text)


def context_text(tokens: int | None) -> str:
    """As it is typed; nothing where any will do."""
    return "" if tokens is None else str(tokens)


def free_text(mib: int) -> str:
    """As it is typed; nothing where any will do."""
    if not mib:
        return ""
    return gib_text(mib).removesuffix(".0") if mib % 512 == 0 else f"{mib}MiB"
