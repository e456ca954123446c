"""What an Xid of the NVIDIA driver means and what to do about it.

Source: NVIDIA's Xid catalogue, https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html (meaning,
"resolution bucket"), and for Xid 63 to 95 https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/ .
"""

from __future__ import annotations

from typing import NamedTuple

_APP = "look at the program that ran on it"
_RESET = "stop what runs on it and reset it (`nvidia-smi --gpu-reset`), or reboot"
_REPLACE = f"{_RESET}; replace the card if it comes back"


class XidMeaning(NamedTuple):
    """One entry of the catalogue."""

    what: str
    what_to_do: str
    is_fatal: bool
    """The card, its link or its firmware; else the fault is most likely the program's."""


_CATALOGUE: dict[int, XidMeaning] = {
    8: XidMeaning("GPU stopped processing", _APP, False),
    13: XidMeaning("graphics engine exception", _APP, False),
    31: XidMeaning("GPU memory page fault", _APP, False),
    32: XidMeaning("corrupted push buffer", _APP, False),
    43: XidMeaning("GPU stopped processing", _APP, False),
    45: XidMeaning("cleanup after an earlier error or a killed program", _APP, False),
    46: XidMeaning("GPU stopped processing", _RESET, True),
    48: XidMeaning("double-bit ECC error", _REPLACE, True),
    61: XidMeaning("internal micro-controller breakpoint", _RESET, True),
    62: XidMeaning("internal micro-controller halt", _RESET, True),
    63: XidMeaning("bad memory row remapped or page retired", f"{_RESET} when convenient", True),
    64: XidMeaning("remapping of a bad memory row failed", _REPLACE, True),
    68: XidMeaning("video processor exception", _APP, False),
    69: XidMeaning("graphics engine class error", _APP, False),
    74: XidMeaning("NVLink error", f"{_RESET}; check the bridge or the board if it comes back", True),
    79: XidMeaning("GPU has fallen off the bus", "reboot; check power and seat of the card", True),
    92: XidMeaning("high rate of single-bit ECC errors", _REPLACE, True),
    94: XidMeaning("contained memory error", f"restart the program; {_RESET} when convenient", True),
    95: XidMeaning("uncontained memory error", _REPLACE, True),
    109: XidMeaning("context switch timeout", _RESET, True),
    119: XidMeaning("GSP firmware does not answer (RPC timeout)", _RESET, True),
    120: XidMeaning("GSP firmware error", _RESET, True),
    121: XidMeaning("corrected error on the link to the processor", "keep an eye on it", False),
    140: XidMeaning("unrecovered ECC error", _REPLACE, True),
    143: XidMeaning("GPU initialisation failed", "reboot; check power and seat of the card", True),
    154: XidMeaning("the driver asks for a recovery action", _RESET, True),
}
_NVLINK = XidMeaning("NVLink error", f"{_RESET}; check the bridge or the board if it comes back", True)
_OTHER = XidMeaning("see NVIDIA's Xid catalogue", "look up the code", False)


def meaning_of(code: int) -> XidMeaning:
    """The catalogue's entry; a code that is not in it is no verdict on the card."""
    if 144 <= code <= 150:
        return _NVLINK
    return _CATALOGUE.get(code, _OTHER)
