"""AMD cards as /sys/class/drm shows them, and what any source may say of a card."""

from __future__ import annotations

from fleettui.model.record import dataclass
from fleettui.model.unknown import NOT_READ, Maybe, Unknown
from fleettui.probes.clean import clean_text, clean_word
from fleettui.probes.nvidia_problems import read_bus_id

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class AmdFacts:
    """What one source says of one card."""

    bus_id: Maybe[str] = NOT_READ
    tool_index: Maybe[int] = NOT_READ
    """The number that amd-smi or rocm-smi gives it."""
    uuid: Maybe[str] = NOT_READ
    name: Maybe[str] = NOT_READ
    driver: Maybe[str] = NOT_READ
    total_mib: Maybe[int] = NOT_READ
    used_mib: Maybe[int] = NOT_READ
    gtt_total_mib: Maybe[int] = NOT_READ
    """Main memory that the card may address."""
    gtt_used_mib: Maybe[int] = NOT_READ
    utilisation_percent: Maybe[int] = NOT_READ
    temperature_c: Maybe[int] = NOT_READ
    power_w: Maybe[float] = NOT_READ
    power_limit_w: Maybe[float] = NOT_READ
    fan_percent: Maybe[int] = NOT_READ
    is_integrated: Maybe[bool] = NOT_READ
    """Part of the processor: its memory is the machine's."""
    is_asleep: bool = False


def parse_sysfs(payload: bytes) -> tuple[AmdFacts, ...]:
    """The cards of section `amd`, by bus id."""
    cards: list[dict[str, str]] = []
    for line in payload.decode("utf-8", "replace").split("\n"):
        key, _, value = line.strip().partition(" ")
        if key == "card":
            cards.append({"card": value.partition(" ")[0]})
        elif key and cards:
            cards[-1].setdefault(key, value)
    return tuple(sorted((_sysfs_facts(card) for card in cards), key=bus_order))


def _sysfs_facts(values: dict[str, str]) -> AmdFacts:
    def number(name: str, per: float = 1) -> Maybe[float]:
        text = values.get(name, "")
        known = text.isascii() and text.isdigit() and len(text) <= 18
        return int(text) / per if known else (NOT_READ if name not in values else Unknown("no number"))

    def first(*options: Maybe[float]) -> Maybe[float]:
        return next((option for option in options if not isinstance(option, Unknown)), options[0])

    unique = values.get("unique_id", "")
    fan, fan_max = number("pwm1"), number("pwm1_max")
    has_fan = not isinstance(fan, Unknown) and not isinstance(fan_max, Unknown) and fan_max > 0
    return AmdFacts(
        bus_id=clean_word(values["card"]) if read_bus_id(values["card"]) else Unknown("no bus id"),
        uuid=f"GPU-{clean_word(unique)}" if unique.isalnum() and unique.strip("0") else NOT_READ,
        name=clean_word(values["product_name"]) if values.get("product_name") else NOT_READ,
        total_mib=_whole(number("mem_info_vram_total", _MIB)),
        used_mib=_whole(number("mem_info_vram_used", _MIB)),
        gtt_total_mib=_whole(number("mem_info_gtt_total", _MIB)),
        gtt_used_mib=_whole(number("mem_info_gtt_used", _MIB)),
        utilisation_percent=_whole(number("gpu_busy_percent")),
        temperature_c=_whole(first(number("temp1_input", 1000), number("temp2_input", 1000))),
        power_w=first(number("power1_average", 1e6), number("power1_input", 1e6)),
        power_limit_w=positive(number("power1_cap", 1e6)),
        fan_percent=round(fan * 100 / fan_max) if has_fan else NOT_READ,  # type: ignore[operator]
        is_asleep="asleep" in values,
    )


def _whole(value: Maybe[float]) -> Maybe[int]:
    return value if isinstance(value, Unknown) else int(value)


def positive(value: Maybe[float]) -> Maybe[float]:
    """Integrated parts say that they may draw 0 W."""
    return Unknown("no limit") if value == 0 else value


def bus_order(facts: AmdFacts) -> tuple[int, ...]:
    known = None if isinstance(facts.bus_id, Unknown) else read_bus_id(facts.bus_id)
    return known if known is not None else (1 << 32,)


def parse_unbound(payload: bytes) -> tuple[str, ...]:
    """Bus ids of AMD cards without a driver."""
    words = (line.split() for line in payload.decode("utf-8", "replace").split("\n"))
    return tuple(
        pair[1]
        for pair in words
        if len(pair) == 2 and pair[0] == "unbound" and read_bus_id(pair[1]) is not None
    )


def parse_tool_name(payload: bytes) -> str:
    """The AMD tool on a machine without AMD cards; empty: none."""
    words = (line.split() for line in payload.decode("utf-8", "replace").split("\n"))
    return next((clean_text(pair[1], 20) for pair in words if len(pair) == 2 and pair[0] == "tool"), "")


def parse_kinds(payload: bytes) -> dict[tuple[int, ...], bool]:
    """Which cards are integrated, by bus id: gpu_metrics of format 1 belongs to cards, 2 and 3 to processors.

    Source: kgd_pp_interface.h of Linux (struct metrics_table_header: size, format, content).
    """
    kinds: dict[tuple[int, ...], bool] = {}
    for line in payload.decode("utf-8", "replace").split("\n"):
        words = line.split()
        bus_id = read_bus_id(words[0]) if len(words) == 5 else None
        if bus_id is not None and words[3] in ("1", "2", "3"):
            kinds[bus_id] = words[3] != "1"
    return kinds
