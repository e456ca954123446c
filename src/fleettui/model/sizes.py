"""Sizes as an operator types them: memory, and contexts in tokens."""

from __future__ import annotations

_MIB_OF_UNIT = {
    "": 1024.0,
    "g": 1024.0,
    "gi": 1024.0,
    "gib": 1024.0,
    "gb": 1024.0,
    "m": 1.0,
    "mi": 1.0,
    "mib": 1.0,
    "mb": 1.0,
    "t": 1024.0 * 1024,
    "tib": 1024.0 * 1024,
    "tb": 1024.0 * 1024,
}
"""`gb` and `mb` mean the binary units too: it is what nvidia-smi and Ollama users write for them."""


_TOKENS_OF_UNIT = {"k": 1 << 10, "m": 1 << 20}
_MOST_TOKENS = 1 << 26


def parse_tokens(text: str) -> int:
    """Tokens of `32768`, `32_768`, `32k`, `1m`; of 1,024 and of 1,048,576.

    Raises ValueError with a sentence that says what is accepted.
    """
    compact = text.strip().lower().replace(" ", "").replace("_", "")
    factor = _TOKENS_OF_UNIT.get(compact[-1:], 1)
    number = compact[:-1] if factor > 1 else compact
    if not (number.isascii() and number.isdecimal()) or len(number) > 9:
        raise ValueError(f"{text.strip()!r} is not a number of tokens: write 32768 or 32k")
    tokens = int(number) * factor
    if not 0 < tokens <= _MOST_TOKENS:
        raise ValueError(f"{text.strip()!r} is no context that a model has")
    return tokens


def parse_vram_mib(text: str) -> int:
    """MiB of `4` (GiB), `4GiB`, `4.5 G`, `4000MiB`; rounded up, so that a limit is never softened.

    Raises ValueError with a sentence that says what is accepted.
    """
    compact = text.strip().lower().replace(" ", "")
    number = compact.rstrip("abcdefghijklmnopqrstuvwxyz")
    factor = _MIB_OF_UNIT.get(compact[len(number) :])
    is_number = number.replace(".", "", 1).isdecimal() and number.isascii()
    if factor is None or not is_number or len(number) > 12:
        raise ValueError(
            f"{text!r} is no memory size: write 4, 4GiB or 4000MiB (GiB is meant without a unit)"
        )
    exact = float(number) * factor
    whole = int(exact)
    return whole if whole == exact else whole + 1
