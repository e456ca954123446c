"""Names of GPU models as tools print them and people write them: which may mean the same model.

Drivers print `NVIDIA GeForce RTX 3090` since 2021 and `GeForce RTX 3090` before, amd-smi
`Navi 31 [Radeon RX 7900 XT/7900 XTX]`, vGPUs `GRID A100-10C`; people write `RTX 4090`, `A100 80GB`.
"""

from __future__ import annotations

import re

_PREFIXES = ("NVIDIA GeForce ", "NVIDIA ", "GeForce ", "Quadro ", "Tesla ")
_SIZE = re.compile(r"\b\d+(?:\.\d+)?\s*gi?b\b")
_GLUED = re.compile(r"\b(rtx|gtx|gt|rx|arc)(?=\d)")
_GLUED_KIND = re.compile(r"(?<=\d\d\d)(ti|super|xtx|xt|gre)\b")
_WORD = re.compile(r"[a-z0-9]+")
_FORM = re.compile(r"(?:sxm|hbm|gddr|ddr|pcie|gen|x)\d+[a-z]*|\d{1,2}x|0x[0-9a-f]+")
"""Words with a digit that name no model: socket, memory, a number of cards, the id of a device."""
_KINDS = frozenset({"ti", "super", "xt", "xtx", "gre"})
"""An RTX 4070 is no RTX 4070 Ti."""


def strip_maker(name: str) -> str:
    """`NVIDIA GeForce RTX 4090` -> `RTX 4090`."""
    for prefix in _PREFIXES:
        if name.startswith(prefix) and len(name) > len(prefix):
            return name[len(prefix) :]
    return name


def is_same_gpu_model(a: str, b: str) -> bool:
    """True for the same model with or without the `NVIDIA ` that newer drivers put in front, any case."""
    return _model_key(a) == _model_key(b)


def _model_key(name: str) -> str:
    words = name.lower().split()
    return " ".join(words[1:] if words[:1] == ["nvidia"] and len(words) > 1 else words)


def may_be_gpu_model(declared: str, measured: str) -> bool:
    """False when a name that a person wrote is surely not that of the measured card.

    What counts are the words that name a model, those with a digit: all that the person wrote must be among
    the measured ones, and Ti, Super, XT must be the same. A name without such a word says nothing.
    """
    wanted, wanted_kinds = _model_words(declared)
    found, found_kinds = _model_words(measured)
    if not wanted or not found or is_same_gpu_model(declared, measured):
        return True
    is_list = "/" in measured  # a chip that is sold under several names
    has_kinds = wanted_kinds <= found_kinds if is_list else wanted_kinds == found_kinds
    return wanted <= found and has_kinds


def _model_words(name: str) -> tuple[frozenset[str], frozenset[str]]:
    text = _GLUED.sub(r"\1 ", _SIZE.sub(" ", name.lower()))
    words = frozenset(_WORD.findall(_GLUED_KIND.sub(r" \1", text)))
    models = frozenset(
        word for word in words if not word.isalpha() and not _FORM.fullmatch(word) and len(word) > 1
    )
    return models, words & _KINDS
