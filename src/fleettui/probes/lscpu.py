"""Physical cores: lscpu, or /proc/cpuinfo of x86 where there is none."""

from __future__ import annotations

from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.numbers import is_digits

_MAX_CORES = 65536
_NOT_TOLD = Unknown("neither lscpu nor /proc/cpuinfo tells cores")


def parse_cores(payload: bytes) -> Maybe[int]:
    """Cores of all sockets, of all kinds where they are mixed (lscpu then has a block for each model).

    Of cpuinfo the lines `physical id` and `core id`: as many cores as there are pairs.
    """
    cores = 0
    per_unit: int | None = None
    package = ""
    pairs: set[tuple[str, str]] = set()
    for line in payload.decode("utf-8", "replace").split("\n"):
        key, _, value = line.partition(":")
        key, value = key.strip(), value.strip()
        if key == "physical id":
            package = value
        elif key == "core id" and is_digits(value):
            pairs.add((package, value))
        elif key in ("Core(s) per socket", "Core(s) per cluster"):
            per_unit = int(value) if is_digits(value) else None
        elif key in ("Socket(s)", "Cluster(s)") and per_unit is not None and is_digits(value):
            cores += per_unit * int(value)
            per_unit = None
    cores = cores or len(pairs)
    return cores if 0 < cores <= _MAX_CORES else _NOT_TOLD
