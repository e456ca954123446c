"""The other outputs of nvidia-smi: `-L` and `-q -x`, which know MIG instances, and `--version`."""

from __future__ import annotations

from typing import NamedTuple

from fleettui.model.gpu import MigInstance
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.clean import clean_text
from fleettui.probes.numbers import is_digits, read_int, read_text
from fleettui.probes.nvidia_xml import XmlNode, scan_log

_MAX_CARDS = 256
_MAX_INSTANCES = 64
_MAX_LINES = 8192
_NOT_TOLD = Unknown("not in the document")
_NO_MEMORY = Unknown("memory of the instance not read")


class _Instance(NamedTuple):
    """One MIG instance as one of the two outputs names it."""

    device: int
    """Its number among the card's instances, the same in both."""
    profile: str
    uuid: Maybe[str]
    memory: tuple[Maybe[int], Maybe[int], Maybe[int]] = (_NO_MEMORY, _NO_MEMORY, _NO_MEMORY)
    """Total, used and free MiB."""


def _read_list(payload: bytes) -> list[tuple[Maybe[str], list[_Instance]]]:
    """UUID and MIG instances of each card of `-L`; a MIG line is an instance, never a card."""
    cards: list[tuple[Maybe[str], list[_Instance]]] = []
    for raw in payload.decode("utf-8", "replace").split("\n", _MAX_LINES):
        line = raw.strip()
        if line.startswith("GPU ") and len(cards) < _MAX_CARDS:
            index, _, rest = line[4:].partition(": ")
            if is_digits(index):
                cards.append((_read_uuid(rest), []))
        elif line.startswith("MIG ") and cards and len(cards[-1][1]) < _MAX_INSTANCES:
            profile, _, rest = line[4:].partition("Device")
            device, _, rest = rest.partition(":")
            if is_digits(device.strip()):
                cards[-1][1].append(_Instance(int(device), clean_text(profile, 40), _read_uuid(rest)))
    return cards


def _as_model(instance: _Instance) -> MigInstance:
    return MigInstance(instance.profile, instance.uuid, *instance.memory)


def _read_uuid(text: str) -> Maybe[str]:
    """The UUID of `NAME (UUID: GPU-…)`."""
    _, mark, rest = text.partition("(UUID:")
    uuid = rest.partition(")")[0].strip()
    return clean_text(uuid, 100) if mark and uuid else Unknown("no UUID printed")


def read_instances(listed: bytes, xml: bytes) -> dict[str, tuple[MigInstance, ...]]:
    """MIG instances for the UUID of each card that has some: names from `-L`, memory from `-q -x`.

    Both number the instances of a card alike. `-q -x` has no profile and on most drivers no UUID.
    """
    found: dict[str, dict[int, _Instance]] = {}
    for node in scan_log(xml) or ():
        uuid = _text(node, "uuid")
        if isinstance(uuid, Unknown):
            continue
        for item in node.parts[:_MAX_INSTANCES]:
            instance = _read_instance(item)
            found.setdefault(uuid, {})[instance.device] = instance
    for card_uuid, instances in _read_list(listed):
        if isinstance(card_uuid, Unknown) or not instances:
            continue
        known = found.setdefault(card_uuid, {})
        for named in instances:
            measured = known.get(named.device)
            known[named.device] = named if measured is None else named._replace(memory=measured.memory)
    return {
        uuid: tuple(_as_model(known[device]) for device in sorted(known)) for uuid, known in found.items()
    }


def _read_instance(item: XmlNode) -> _Instance:
    number, device = _int(item, "gpu_instance_id"), _int(item, "index")
    profile = "MIG" if isinstance(number, Unknown) else f"GI {number}"
    return _Instance(
        -1 if isinstance(device, Unknown) else device, profile, _text(item, "uuid"), _memory(item)
    )


def _memory(node: XmlNode) -> tuple[Maybe[int], Maybe[int], Maybe[int]]:
    total, used, free = (_int(node, f"fb_memory_usage/{part}") for part in ("total", "used", "free"))
    return total, used, free


def _text(node: XmlNode, path: str) -> Maybe[str]:
    text = node.texts.get(path)
    return _NOT_TOLD if text is None else read_text(text)


def _int(node: XmlNode, path: str) -> Maybe[int]:
    """`20475 MiB`, `27 C`, `97 %` without its unit."""
    text = node.texts.get(path)
    return _NOT_TOLD if text is None else read_int(text.partition(" ")[0])


def parse_version(payload: bytes) -> tuple[Maybe[str], Maybe[str]]:
    """Driver and CUDA version of `nvidia-smi --version`; sentences such as `Deprecated, see …` are none."""
    found: dict[str, str] = {}
    for line in payload.decode("utf-8", "replace").split("\n", 64):
        label, colon, value = line.partition(":")
        if colon and _is_version(value.strip()):
            found[" ".join(label.split()).lower()] = value.strip()
    return (
        _first(found, "kmd version", "driver version", "nvidia-smi version"),
        _first(found, "cuda umd version", "cuda version"),
    )


def _is_version(text: str) -> bool:
    return 0 < len(text) <= 20 and text.isascii() and text[0].isdigit() and not text.strip("0123456789.")


def _first(found: dict[str, str], *labels: str) -> Maybe[str]:
    return next((found[label] for label in labels if label in found), Unknown("not printed"))
