"""The other outputs of nvidia-smi: `-L`, `-q -x` (both know MIG instances) and `--version`."""

from __future__ import annotations

from xml.etree import ElementTree

from fleettui.model.gpu import GpuCard, GpuReading, MigInstance
from fleettui.model.record import replace
from fleettui.model.unknown import NOT_READ, Maybe, Unknown
from fleettui.probes.clean import clean_text
from fleettui.probes.numbers import is_digits, read_float, read_int, read_text
from fleettui.probes.nvidia_problems import read_problem

_MAX_XML_BYTES = 8 << 20


def parse_gpu_list(payload: bytes) -> tuple[GpuCard, ...]:
    """Cards and their MIG instances of `nvidia-smi -L`; a MIG line is an instance, never a card."""
    cards: list[GpuCard] = []
    for raw in payload.decode("utf-8", "replace").split("\n"):
        line = raw.strip()
        if line.startswith("GPU "):
            index, _, rest = line[4:].partition(": ")
            if is_digits(index):
                name, uuid = _split_uuid(rest)
                cards.append(GpuCard(int(index), uuid=uuid, name=read_text(name)))
        elif line.startswith("MIG ") and cards:
            profile, _, rest = line[4:].partition("Device")
            _, uuid = _split_uuid(rest)
            instance = MigInstance(clean_text(profile, 40), uuid, NOT_READ, NOT_READ, NOT_READ)
            cards[-1] = replace(cards[-1], mig=(*cards[-1].mig, instance))
    return tuple(cards)


def _split_uuid(text: str) -> tuple[str, Maybe[str]]:
    """`NAME (UUID: GPU-…)` as name and uuid."""
    name, mark, rest = text.partition("(UUID:")
    uuid = rest.partition(")")[0].strip()
    return name.strip(), (clean_text(uuid, 60) if mark and uuid else Unknown("no UUID printed"))


def parse_gpu_xml(payload: bytes, exit_code: int = 0) -> GpuReading:
    """Cards of `nvidia-smi -q -x`; a document with entities or none at all gives a problem, no card."""
    root = _parse_xml(payload)
    if root is None:
        lines = [line.strip() for line in payload[:4096].decode("utf-8", "replace").split("\n")]
        return GpuReading(problem=read_problem([line for line in lines if line], exit_code))
    driver = _text(root, "driver_version")
    cards = [_read_gpu(gpu, position, driver) for position, gpu in enumerate(root.findall("gpu"))]
    problem = None if cards else read_problem(["No devices were found"], exit_code)
    return GpuReading(tuple(cards), problem=problem)


def _parse_xml(payload: bytes) -> ElementTree.Element | None:
    if len(payload) > _MAX_XML_BYTES:
        return None
    # As text without its declaration: so no encoding can hide an entity from the check.
    text = payload.decode("utf-8", "replace").lstrip("\ufeff \r\n\t")
    if text.startswith("<?xml"):
        text = text.partition("?>")[2].lstrip()
    if not text.startswith("<") or "<!ENTITY" in text or "[" in text.partition("<nvidia_smi_log")[0]:
        return None
    try:
        root = ElementTree.fromstring(text)  # noqa: S314 - no entities in it, see above
    except (ElementTree.ParseError, ValueError, RecursionError):
        return None
    return root if root.tag == "nvidia_smi_log" else None


def _read_gpu(gpu: ElementTree.Element, position: int, driver: Maybe[str]) -> GpuCard:
    # The XML has no index; cards stand in the order of the indices.
    total, used, free = _memory(gpu)
    power = _number(gpu, "power_readings/power_draw", "gpu_power_readings/power_draw",
                    "gpu_power_readings/instant_power_draw")  # fmt: skip
    limit = _number(gpu, "power_readings/power_limit", "gpu_power_readings/current_power_limit")
    bus_id = gpu.get("id", "")
    return GpuCard(
        position,
        _text(gpu, "uuid"),
        _text(gpu, "product_name"),
        driver,
        total,
        used,
        free,
        _int(gpu, "utilization/gpu_util"),
        _int(gpu, "temperature/gpu_temp"),
        power,
        limit,
        _int(gpu, "fan_speed"),
        _text(gpu, "performance_state"),
        clean_text(bus_id, 40) if bus_id else Unknown("no id"),
        mig=tuple(_read_instance(item) for item in gpu.findall("mig_devices/mig_device")),
    )


def _read_instance(item: ElementTree.Element) -> MigInstance:
    total, used, free = _memory(item)
    number = _int(item, "gpu_instance_id")
    profile = "MIG" if isinstance(number, Unknown) else f"GI {number}"
    return MigInstance(profile, _text(item, "uuid"), total, used, free)


def _memory(element: ElementTree.Element) -> tuple[Maybe[int], Maybe[int], Maybe[int]]:
    total, used, free = (_int(element, f"fb_memory_usage/{part}") for part in ("total", "used", "free"))
    return total, used, free


def _raw(element: ElementTree.Element, path: str) -> str | None:
    text = element.findtext(path)
    return None if text is None else text.strip()


def _text(element: ElementTree.Element, path: str) -> Maybe[str]:
    text = _raw(element, path)
    return Unknown("not in the document") if text is None else read_text(text)


def _int(element: ElementTree.Element, path: str) -> Maybe[int]:
    """`20475 MiB`, `27 C`, `97 %` without its unit."""
    text = _raw(element, path)
    return Unknown("not in the document") if text is None else read_int(text.partition(" ")[0])


def _number(element: ElementTree.Element, *paths: str) -> Maybe[float]:
    value: Maybe[float] = Unknown("not in the document")
    for path in paths:
        text = _raw(element, path)
        if text is not None:
            value = read_float(text.partition(" ")[0])
            if not isinstance(value, Unknown):
                return value
    return value


def parse_version(payload: bytes) -> tuple[Maybe[str], Maybe[str]]:
    """Driver and CUDA version of `nvidia-smi --version`; sentences such as `Deprecated, see …` are none."""
    found: dict[str, str] = {}
    for line in payload.decode("utf-8", "replace").split("\n"):
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
