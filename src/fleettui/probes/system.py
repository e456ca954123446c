"""What changes rarely: `uname -srm`, /etc/os-release (os-release(5)), /proc/cpuinfo."""

from __future__ import annotations

from collections import Counter

from fleettui.model.readings import SystemReading
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.clean import clean_text
from fleettui.probes.numbers import is_digits

# ARM prints numbers instead of a model name. Source of the pairs: util-linux, lscpu-arm.c.
_ARM_IMPLEMENTERS = {"0x41": "ARM", "0x4e": "NVIDIA", "0x51": "Qualcomm", "0x61": "Apple", "0xc0": "Ampere"}
_ARM_PARTS = {
    ("0x41", "0xd03"): "Cortex-A53",
    ("0x41", "0xd05"): "Cortex-A55",
    ("0x41", "0xd07"): "Cortex-A57",
    ("0x41", "0xd08"): "Cortex-A72",
    ("0x41", "0xd09"): "Cortex-A73",
    ("0x41", "0xd0b"): "Cortex-A76",
    ("0x41", "0xd0c"): "Neoverse-N1",
    ("0x41", "0xd40"): "Neoverse-V1",
    ("0x41", "0xd41"): "Cortex-A78",
    ("0x41", "0xd42"): "Cortex-A78AE",
    ("0x41", "0xd44"): "Cortex-X1",
    ("0x41", "0xd49"): "Neoverse-N2",
    ("0x41", "0xd4f"): "Neoverse-V2",
    ("0x41", "0xd80"): "Cortex-A520",
    ("0x41", "0xd81"): "Cortex-A720",
    ("0x41", "0xd82"): "Cortex-X4",
    ("0x41", "0xd84"): "Neoverse-V3",
    ("0x41", "0xd85"): "Cortex-X925",
    ("0x41", "0xd87"): "Cortex-A725",
    ("0x41", "0xd8e"): "Neoverse-N3",
    ("0x4e", "0x003"): "Denver 2",
    ("0x4e", "0x004"): "Carmel",  # codespell:ignore
    ("0xc0", "0xac3"): "Ampere-1",
    ("0xc0", "0xac4"): "Ampere-1A",
}


def parse_system(uname: bytes, os_release: bytes, cpuinfo: bytes) -> SystemReading:
    """The reading of sections `uname`, `os`, `cpu`."""
    kernel, arch, system = _read_uname(uname)
    model, cores = parse_cpuinfo(cpuinfo)
    name: Maybe[str] = parse_os_name(os_release)
    if isinstance(name, Unknown) and system != "Linux" and system:
        name = system
    return SystemReading(name, kernel, arch, model, cores)


def _read_uname(payload: bytes) -> tuple[Maybe[str], Maybe[str], str]:
    """Kernel, architecture and system name; `Linux` is left out of the kernel."""
    words = clean_text(payload.split(b"\n", 1)[0]).split()
    if len(words) < 3:
        missing = Unknown("uname gave nothing")
        return missing, missing, words[0] if words else ""
    release = " ".join(words[1:-1])
    return (release if words[0] == "Linux" else f"{words[0]} {release}"), words[-1], words[0]


def parse_os_name(payload: bytes) -> Maybe[str]:
    """PRETTY_NAME, else NAME, of os-release."""
    found: dict[str, str] = {}
    for line in payload.decode("utf-8", "replace").split("\n"):
        key, _, value = line.strip().partition("=")
        if value[:1] in ("'", '"') and value[-1:] == value[:1]:
            value = value[1:-1]
        found[key] = clean_text(value.replace("\\", ""), 100)
    return found.get("PRETTY_NAME") or found.get("NAME") or Unknown("no os-release")


def parse_cpuinfo(payload: bytes) -> tuple[Maybe[str], Maybe[int]]:
    """Processor model and number of logical processors; mixed ARM cores as `10 × … + 10 × …`."""
    models: Counter[str] = Counter()
    parts: Counter[tuple[str, str]] = Counter()
    processors = 0
    implementer = ""
    for line in payload.decode("utf-8", "replace").split("\n"):
        key, colon, value = line.partition(":")
        key, value = key.strip(), value.strip()
        if not colon:
            continue
        if key == "processor":
            # ppc64 and x86 number them; old ARM kernels print the model's name here once.
            processors += is_digits(value)
        elif key == "model name" and value:
            models[clean_text(value, 100)] += 1
        elif key == "CPU implementer":
            implementer = value.lower()
        elif key == "CPU part":
            parts[implementer, value.lower()] += 1
    cores: Maybe[int] = processors or Unknown("no /proc/cpuinfo")
    if parts:
        return _name_arm(parts), cores
    if models:
        return models.most_common(1)[0][0], cores
    return Unknown("no model name in /proc/cpuinfo"), cores


def _name_arm(parts: Counter[tuple[str, str]]) -> str:
    names = {pair: _ARM_PARTS.get(pair, "") for pair in parts}
    if len(parts) == 1:
        pair = next(iter(parts))
        return f"{_ARM_IMPLEMENTERS.get(pair[0], 'ARM')} {names[pair] or _pair_text(pair)}"
    # Larger cores first: Cortex-X925 before Cortex-A725.
    labels = sorted(((names[pair] or _pair_text(pair), count) for pair, count in parts.items()), reverse=True)
    return clean_text(" + ".join(f"{count} × {label}" for label, count in labels))


def _pair_text(pair: tuple[str, str]) -> str:
    return clean_text("/".join(pair), 20)
