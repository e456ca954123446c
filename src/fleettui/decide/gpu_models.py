"""Cards that the machine file declares against those measured: another model, or another amount of VRAM."""

from __future__ import annotations

from functools import lru_cache

from fleettui.model.gpu import GpuReading
from fleettui.model.machine import DeclaredGpu
from fleettui.model.record import dataclass
from fleettui.model.snapshot import MachineSnapshot, Reason
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.gpu_names import is_same_gpu_model, may_be_gpu_model, strip_maker

VRAM_TOLERANCE = 0.1
"""Drivers keep up to 7.5 % for themselves: an A10G of 24 GB shows 22.2 GiB, a T4 of 16 shows 15.0."""


@dataclass(frozen=True, slots=True)
class _Measured:
    index: int
    name: Maybe[str]
    total_mib: Maybe[int]
    """Unknown for a part that shares the machine's memory, too."""


def model_reasons(snapshot: MachineSnapshot, reading: GpuReading) -> tuple[Reason, ...]:
    """Notes on cards that are none of the declared ones; found once for the same names and amounts."""
    declared = snapshot.machine.gpus
    if not declared or not reading.cards:
        return ()
    measured = tuple([(card.index, card.name, card.total_mib, card.is_unified) for card in reading.cards])
    return _judge(declared, measured)


@lru_cache(maxsize=1024)
def _judge(
    declared: tuple[DeclaredGpu, ...], cards: tuple[tuple[int, Maybe[str], Maybe[int], bool], ...]
) -> tuple[Reason, ...]:
    measured = [
        _Measured(index, name, Unknown("unified") if is_unified else total_mib)
        for index, name, total_mib, is_unified in cards
    ]
    left = list(declared)
    # The order in the file means nothing: each card takes an entry that fits, the best fits first.
    for fits in (_is_exactly, _fits):
        for card in tuple(measured):
            entry = next((entry for entry in left if fits(entry, card)), None)
            if entry is not None:
                left.remove(entry)
                measured.remove(card)
    differing: dict[tuple[str, str, bool], list[int]] = {}
    for card in measured:
        if not left:
            break
        entry = next((entry for entry in left if _may_be(entry, card)), left[0])
        left.remove(entry)
        differing.setdefault(_difference(entry, card), []).append(card.index)
    return tuple(_note(indices, *words) for words, indices in differing.items())


def _may_be(entry: DeclaredGpu, card: _Measured) -> bool:
    return isinstance(card.name, Unknown) or may_be_gpu_model(entry.model, card.name)


def _fits(entry: DeclaredGpu, card: _Measured) -> bool:
    return _may_be(entry, card) and _has_vram(entry, card)


def _is_exactly(entry: DeclaredGpu, card: _Measured) -> bool:
    has_name = not isinstance(card.name, Unknown) and is_same_gpu_model(
        strip_maker(entry.model), strip_maker(card.name)
    )
    return has_name and _has_vram(entry, card)


def _has_vram(entry: DeclaredGpu, card: _Measured) -> bool:
    declared, total = entry.vram_gb, card.total_mib
    if isinstance(declared, Unknown) or isinstance(total, Unknown) or declared <= 0:
        return True
    return abs(total / 1024 - declared) <= declared * VRAM_TOLERANCE


def _difference(entry: DeclaredGpu, card: _Measured) -> tuple[str, str, bool]:
    """What the card is, what the file says, and whether that is the amount of VRAM."""
    if _may_be(entry, card) and not isinstance(card.total_mib, Unknown):
        return f"{card.total_mib / 1024:.0f}", f"{entry.vram_gb:g}", True
    return strip_maker(str(card.name)), strip_maker(entry.model), False


def _note(indices: list[int], what: str, declared: str, is_vram: bool) -> Reason:
    which = "GPU " + ", ".join(map(str, indices))
    is_one = len(indices) == 1
    if is_vram:
        found = f"{which} {'has' if is_one else 'have'} {what} GiB of VRAM"
    else:
        found = f"{which} is {_article(what)} {what}" if is_one else f"{which} are {what}"
    text = f"{found}, the file declares {declared}: correct hardware.gpu"
    return Reason("note", "gpu_model_differs", text)


def _article(name: str) -> str:
    """`an RTX 3090`, `a Tesla T4`: capitals are spelt out when read."""
    word = name.partition(" ")[0]
    vowels = "AEFHILMNORSX" if word == word.upper() else "AEIOUaeiou"
    return "an" if word[:1] in vowels else "a"
