"""The other outputs of nvidia-smi: `-L` and `-q -x`, which know MIG instances, and `--version`."""

from __future__ import annotations

from typing import NamedTuple

from fleettui.model.gpu import GpuCard, GpuReading, MigInstance
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.clean import clean_text
from fleettui.probes.numbers import is_digits, read_float, read_int, read_text
from fleettui.probes.nvidia_problems import read_problem
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


_Listed = list[tuple[GpuCard, list[_Instance]]]


def _read_list(payload: bytes) -> _Listed:
    cards: _Listed = []
    for raw in payload.decode("utf-8", "replace").split("\n", _MAX_LINES):
        line = raw.strip()
        if line.startswith("GPU ") and len(cards) < _MAX_CARDS:
            index, _, rest = line[4:].partition(": ")
            if is_digits(index):
                name, uuid = _split_uuid(rest)
                cards.append((GpuCard(int(index), uuid=uuid, name=read_text(name)), []))
        elif line.startswith("MIG ") and cards and len(cards[-1][1]) < _MAX_INSTANCES:
            profile, _, rest = line[4:].partition("Device")
            device, _, rest = rest.partition(":")
            if is_digits(device.strip()):
                _, uuid = _split_uuid(rest)
                cards[-1][1].append(_Instance(int(device), clean_text(profile, 40), uuid))
    return cards


def parse_gpu_list(payload: bytes) -> tuple[GpuCard, ...]:
    """Cards and their MIG instances of `nvidia-smi -L`; a MIG line is an instance, never a card."""
    return tuple(
        GpuCard(
            card.index,
            uuid=card.uuid,
            name=card.name,
            mig=tuple(map(_as_model, instances)),
            is_mig=bool(instances),
        )
        for card, instances in _read_list(payload)
    )


def _as_model(instance: _Instance) -> MigInstance:
    return MigInstance(instance.profile, instance.uuid, *instance.memory)


def _split_uuid(text: str) -> tuple[str, Maybe[str]]:
    """`NAME (UUID: GPU-…)` as name and uuid."""
    name, mark, rest = text.partition("(UUID:")
    uuid = rest.partition(")")[0].strip()
    return name.strip(), (clean_text(uuid, 100) if mark and uuid else Unknown("no UUID printed"))


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
    for card, instances in _read_list(listed):
        if isinstance(card.uuid, Unknown) or not instances:
            continue
        known = found.setdefault(card.uuid, {})
        for named in instances:
            measured = known.get(named.device)
            known[named.device] = named if measured is None else named._replace(memory=measured.memory)
    return {
        uuid: tuple(_as_model(known[device]) for device in sorted(known)) for uuid, known in found.items()
    }


def parse_gpu_xml(payload: bytes, exit_code: int = 0) -> GpuReading:
    """Cards of `nvidia-smi -q -x`; no whole document of it, or one with entities: a problem, no card."""
    nodes = scan_log(payload)
    if nodes is None:
        lines = [line.strip() for line in payload[:4096].decode("utf-8", "replace").split("\n")]
        return GpuReading(problem=read_problem([line for line in lines if line], exit_code))
    cards = tuple(_read_gpu(node, position) for position, node in enumerate(nodes[:_MAX_CARDS]))
    problem = None if cards else read_problem(["No devices were found"], exit_code)
    return GpuReading(cards, problem=problem)


def _read_gpu(node: XmlNode, position: int) -> GpuCard:
    # The XML has no index; cards stand in the order of the indices.
    bus_id = node.texts.get("@id", "")
    return GpuCard(
        position,
        _text(node, "uuid"),
        _text(node, "product_name"),
        _text(node, "driver_version"),
        *_memory(node),
        _int(node, "utilization/gpu_util"),
        _int(node, "temperature/gpu_temp"),
        _number(
            node,
            "power_readings/power_draw",
            "gpu_power_readings/power_draw",
            "gpu_power_readings/instant_power_draw",
        ),
        _number(node, "power_readings/power_limit", "gpu_power_readings/current_power_limit"),
        _int(node, "fan_speed"),
        _text(node, "performance_state"),
        clean_text(bus_id, 40) if bus_id else Unknown("no id"),
        mig=tuple(_as_model(_read_instance(item)) for item in node.parts[:_MAX_INSTANCES]),
        is_mig=node.texts.get("mig_mode/current_mig") == "Enabled",
    )


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


def _number(node: XmlNode, *paths: str) -> Maybe[float]:
    value: Maybe[float] = _NOT_TOLD
    for path in paths:
        text = node.texts.get(path)
        if text is not None:
            value = read_float(text.partition(" ")[0])
            if not isinstance(value, Unknown):
                return value
    return value


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
