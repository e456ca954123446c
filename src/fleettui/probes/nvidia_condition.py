"""The condition of cards: what `nvidia-smi --query-gpu` tells that changes rarely.

Drivers know different fields. `nvidia-smi` names the first one it does not know, so each answer may teach us
one more; what a driver refuses is left out from then on.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from fleettui.model.gpu import CardCondition, ThrottleReason
from fleettui.model.record import dataclass
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.clean import clean_text
from fleettui.probes.loops_gpu import CONDITION_FIELDS
from fleettui.probes.numbers import is_digits, read_int, read_text
from fleettui.probes.nvidia_problems import read_problem, read_refused_field

_MASKS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
_OLD_NAMES = {_MASKS[0]: _MASKS[1]}
"""Asked where the driver refuses the name that later drivers gave a field (event reasons: from 535 on)."""

_THROTTLE_BITS: Final[tuple[tuple[int, ThrottleReason], ...]] = (
    (0x20 | 0x40, "thermal"),
    (0x80, "power brake"),
    (0x8, "hardware slowdown"),
    (0x4, "power cap"),
    (0x10, "sync boost"),
)
"""nvml.h, nvmlClocksEventReason…; idle (0x1) and clocks that somebody set (0x2, 0x100) hold nothing down."""

_YES_NO: dict[str, bool] = {"Enabled": True, "Disabled": False, "Yes": True, "No": False}
_MAX_CARDS, _MAX_LINES = 256, 2048


@dataclass(frozen=True, slots=True)
class ConditionAnswer:
    """What one answer to section `condition` said."""

    cards: tuple[CardCondition, ...] = ()
    refused: str | None = None
    """A field this driver does not know: ask again without it."""
    error: str | None = None
    """The tool's words where there is neither."""


def condition_fields(refused: Collection[str] = ()) -> tuple[str, ...]:
    """Fields to ask, in order; an older name in the place of a refused one."""
    names = (_OLD_NAMES.get(name, name) if name in refused else name for name in CONDITION_FIELDS)
    return tuple(name for name in names if name not in refused)


def condition_section(refused: Collection[str] = ()) -> str:
    """The section that asks for them."""
    return "condition:" + ":".join(condition_fields(refused))


def parse_condition(payload: bytes, exit_code: int, fields: tuple[str, ...]) -> ConditionAnswer:
    """Cards of an answer to `condition`; good rows count whatever the exit code."""
    cards: dict[int, CardCondition] = {}
    others: list[str] = []
    refused = None
    for raw in payload.decode("utf-8", "replace").split("\n", _MAX_LINES):
        line = raw.strip("\r")
        values = line.split(", ", len(fields))
        if len(values) == len(fields) and len(cards) < _MAX_CARDS:
            card = _read_card(dict(zip(fields, values, strict=True)))
            if card is not None:
                cards.setdefault(card.index, card)
                continue
        if len(others) < _MAX_LINES and (text := line.strip()):
            others.append(text)
            field = read_refused_field(text)
            if field in fields and field != "index":
                refused = refused or field
    if cards:
        return ConditionAnswer(tuple(cards[index] for index in sorted(cards)))
    if refused is not None:
        return ConditionAnswer(refused=refused)
    return ConditionAnswer(error=read_problem(others[:8], exit_code).text)


def _read_card(row: dict[str, str]) -> CardCondition | None:
    index = row.get("index", "")
    if not is_digits(index):
        return None

    def word(name: str) -> Maybe[str]:
        return read_text(row[name]) if name in row else Unknown("this driver does not tell")

    def count(name: str) -> Maybe[int]:
        return read_int(row[name]) if name in row else Unknown("this driver does not tell")

    busy = count("utilization.gpu")
    mask = next((name for name in _MASKS if name in row), _MASKS[0])
    return CardCondition(
        index=int(index),
        uuid=word("uuid"),
        bus_id=word("pci.bus_id"),
        has_persistence=_read_switch(word("persistence_mode")),
        pcie_width=count("pcie.link.width.current"),
        pcie_width_max=count("pcie.link.width.max"),
        pcie_generation=count("pcie.link.gen.current"),
        pcie_generation_max=count("pcie.link.gen.max"),
        is_at_work=row.get("pstate") == "P0" or (not isinstance(busy, Unknown) and busy > 0),
        throttle=read_throttle(word(mask)),
        ecc_uncorrected=count("ecc.errors.uncorrected.volatile.total"),
        ecc_corrected=count("ecc.errors.corrected.volatile.total"),
        is_retirement_pending=_read_switch(word("retired_pages.pending")),
        addressing_mode=word("addressing_mode"),
        compute_cap=word("compute_cap"),
    )


def _read_switch(text: Maybe[str]) -> Maybe[bool]:
    if isinstance(text, Unknown):
        return text
    state = _YES_NO.get(text)
    return Unknown(f"unreadable: {clean_text(text, 40)}") if state is None else state


def read_throttle(text: Maybe[str]) -> Maybe[tuple[ThrottleReason, ...]]:
    """The reasons in a mask, `0x0000000000000024`."""
    if isinstance(text, Unknown):
        return text
    digits = text[2:]
    if text[:2] not in ("0x", "0X") or not 0 < len(digits) <= 16 or digits.strip("0123456789abcdefABCDEF"):
        return Unknown(f"unreadable: {clean_text(text, 40)}")
    mask = int(digits, 16)
    found = tuple(reason for bits, reason in _THROTTLE_BITS if mask & bits)
    # Hardware slowdown is set beside the reason that caused it.
    if len(found) > 1 and found[0] in ("thermal", "power brake"):
        found = tuple(reason for reason in found if reason != "hardware slowdown")
    return found
