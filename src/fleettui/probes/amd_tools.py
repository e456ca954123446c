"""AMD cards as amd-smi (ROCm 5.7 to 7) and rocm-smi print them in JSON."""

from __future__ import annotations

from collections.abc import Iterable

from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.amd_json import (
    find,
    read_document,
    read_entries,
    read_mib,
    read_plain,
    read_text,
    read_whole,
)
from fleettui.probes.amd_sysfs import AmdFacts, positive
from fleettui.probes.clean import clean_word
from fleettui.probes.nvidia_problems import read_bus_id


def parse_tool(static: bytes, listed: bytes, metric: bytes) -> tuple[AmdFacts, ...]:
    """Cards as amd-smi prints them in `static`, `list` and `metric`, or rocm-smi in two of them; what was not
    asked is empty."""
    documents = [read_document(payload)[0] for payload in (static, listed, metric)]
    if any(_is_rocm(document) for document in documents):
        return _rocm_cards(documents)
    static_answers, lists, metrics = (read_entries(document) for document in documents)
    return tuple(
        _smi_facts(index, static_answers.get(index), lists.get(index), metrics.get(index))
        for index in sorted({*static_answers, *lists, *metrics})
    )


def _smi_facts(index: int, static: object, listed: object, metric: object) -> AmdFacts:
    memory, power = find(metric, "mem_usage"), find(metric, "power")
    heat = find(metric, "temperature")
    return AmdFacts(
        bus_id=_bus_id(find(listed, "bdf"), find(static, "bus", "bdf")),
        tool_index=index,
        uuid=_first_text(find(listed, "uuid"), find(static, "uuid")),
        name=_first_text(find(static, "asic", "market_name"), find(static, "board", "product_name")),
        driver=_first_text(find(static, "driver", "version"), find(static, "driver", "driver_version")),
        total_mib=_first_mib(
            find(memory, "total_vram"), find(static, "vram", "size"), find(static, "vram", "vram_size")
        ),
        used_mib=read_mib(find(memory, "used_vram")),
        gtt_total_mib=read_mib(find(memory, "total_gtt")),
        gtt_used_mib=read_mib(find(memory, "used_gtt")),
        utilisation_percent=read_whole(find(metric, "usage", "gfx_activity")),
        temperature_c=_first_whole(find(heat, "edge"), find(heat, "hotspot")),
        power_w=_first_plain(
            find(power, "socket_power"),
            find(power, "current_socket_power"),
            find(power, "average_socket_power"),
        ),
        power_limit_w=positive(
            _first_plain(find(static, "limit", "socket_power"), find(static, "limit", "max_power"))
        ),
        fan_percent=read_whole(find(metric, "fan", "usage")),
    )


def _is_rocm(document: object) -> bool:
    return isinstance(document, dict) and any(name[:4] == "card" and name[4:].isdigit() for name in document)


def _rocm_cards(documents: Iterable[object]) -> tuple[AmdFacts, ...]:
    """`{"card0": {"VRAM Total Memory (B)": "…"}, "system": {…}}`; letters differ between releases."""
    cards: dict[int, dict[str, object]] = {}
    system: dict[str, object] = {}
    for document in documents:
        for name, values in document.items() if isinstance(document, dict) else ():
            if not isinstance(values, dict):
                continue
            known = {str(key).lower().rstrip(":"): value for key, value in values.items()}
            if name == "system":
                system |= known
            elif name[:4] == "card" and name[4:].isdecimal() and len(name) < 8:
                cards.setdefault(int(name[4:]), {}).update(known)
    driver = read_text(system.get("driver version"))
    return tuple(_rocm_facts(index, cards[index], driver) for index in sorted(cards))


def _rocm_facts(index: int, values: dict[str, object], driver: Maybe[str]) -> AmdFacts:
    def keyed(start: str, end: str = "") -> object:
        return next(
            (value for key, value in values.items() if key.startswith(start) and key.endswith(end)), None
        )

    unique = read_text(values.get("unique id"))
    return AmdFacts(
        bus_id=_bus_id(values.get("pci bus")),
        tool_index=index,
        uuid=unique if isinstance(unique, Unknown) else f"GPU-{unique.removeprefix('0x')}",
        name=_first_text(values.get("card series"), values.get("device name"), values.get("card model")),
        driver=driver,
        total_mib=read_mib(values.get("vram total memory (b)"), "B"),
        used_mib=read_mib(values.get("vram total used memory (b)"), "B"),
        gtt_total_mib=read_mib(values.get("gtt total memory (b)"), "B"),
        gtt_used_mib=read_mib(values.get("gtt total used memory (b)"), "B"),
        utilisation_percent=read_whole(values.get("gpu use (%)")),
        temperature_c=_first_whole(
            values.get("temperature (sensor edge) (c)"), values.get("temperature (sensor junction) (c)")
        ),
        power_w=_first_plain(
            keyed("average graphics package power"), keyed("current socket graphics package power")
        ),
        power_limit_w=positive(read_plain(keyed("max graphics package power"))),
        fan_percent=read_whole(values.get("fan speed (%)")),
    )


def _bus_id(*values: object) -> Maybe[str]:
    for value in values:
        if isinstance(value, str) and read_bus_id(value) is not None:
            return clean_word(value)
    return Unknown("no bus id")


def _first_text(*values: object) -> Maybe[str]:
    found = [read_text(value) for value in values]
    return next((text for text in found if not isinstance(text, Unknown)), found[0])


def _first_mib(*values: object) -> Maybe[int]:
    found = [read_mib(value) for value in values]
    return next((mib for mib in found if not isinstance(mib, Unknown)), found[0])


def _first_whole(*values: object) -> Maybe[int]:
    found = [read_whole(value) for value in values]
    return next((number for number in found if not isinstance(number, Unknown)), found[0])


def _first_plain(*values: object) -> Maybe[float]:
    found = [read_plain(value) for value in values]
    return next((number for number in found if not isinstance(number, Unknown)), found[0])
