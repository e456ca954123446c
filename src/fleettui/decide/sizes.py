"""Memory sizes as an operator types them."""

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
