"""Options as data: argparse makes its parsers of them, and `plain_route` reads a plain `--route` by them.

Scripts call `--route` in loops, and argparse takes a third of a warm one: 10 ms.
"""

from __future__ import annotations

from fleettui.model.sizes import parse_tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence
    from typing import Any

    Option = tuple[tuple[str, ...], dict[str, Any]]
    """Its names and what `add_argument` takes; `type` raises ValueError with the sentence to print."""
else:
    from types import SimpleNamespace as Namespace


_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def positive_seconds(text: str) -> float:
    """Seconds of `2`, `0.5`, `2s`, `5m`, `1h`; more than 0."""
    value = seconds(text)
    if value <= 0:
        raise ValueError(f"{text!r} is not more than 0 seconds")
    return value


def seconds(text: str) -> float:
    """Seconds of `0`, `0.5`, `2s`, `5m`, `1h`, `1d`; at most a year."""
    unit_s = _UNITS_S.get(text[-1:])
    try:
        value = float(text if unit_s is None else text[:-1]) * (unit_s or 1)
    except ValueError:
        raise ValueError(f"{text!r} is not a number of seconds; 5m and 1h will do, too") from None
    if not 0 <= value <= 86_400 * 365:
        raise ValueError(f"{text!r} is out of range")
    return value


def positive_count(text: str) -> int:
    """A whole number from 1 on."""
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text)):
        raise ValueError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def server_text(text: str) -> str:
    """A server as written, tidied."""
    from fleettui.model.server_place import read_server_place

    try:
        return read_server_place(text).text
    except ValueError as error:
        raise ValueError(f"{text!r} {error}") from None


FOLDER_OPTIONS: tuple[Option, ...] = (
    (
        ("--machines",),
        {
            "metavar": "DIR",
            "help": "folder of machine files (default: $FLEETTUI_MACHINES, ./machines, "
            "the configuration folder)",
        },
    ),
    (
        ("--catalog",),
        {
            "metavar": "DIR",
            "help": "folder of the catalog (default: $FLEETTUI_CATALOG, ./catalog, the configuration folder)",
        },
    ),
    (("--state-dir",), {"metavar": "DIR", "help": "folder of the state database"}),
    (
        ("--server",),
        {
            "metavar": "URL",
            "type": server_text,
            "help": "answer from this running `fleettui serve`: http://, https:// or unix:PATH "
            "(default: $FLEETTUI_SERVER, the settings)",
        },
    ),
    (
        ("--standalone",),
        {"action": "store_true", "help": "ask the machines from here, whatever the settings"},
    ),
    (("--readonly",), {"action": "store_true", "help": "refuse every command that changes anything"}),
)

POLLING_OPTIONS: tuple[Option, ...] = (
    (
        ("--interval",),
        {"metavar": "S", "type": positive_seconds, "help": "seconds between polls (default 2)"},
    ),
    (("--no-color",), {"action": "store_true", "help": "no colours"}),
)

ROUTE_OPTIONS: tuple[Option, ...] = (
    (
        ("--min-free-vram",),
        {"metavar": "GB", "help": "free VRAM wanted on top of the model: 4, 4GiB, 4000MiB"},
    ),
    (
        ("--free-scope",),
        {
            "choices": ("gpu", "host"),
            "default": "gpu",
            "help": "one GPU must have it free (default), or all GPUs of the machine together",
        },
    ),
    (
        ("--context",),
        {
            "metavar": "N",
            "type": parse_tokens,
            "help": "tokens that will be sent as num_ctx, 8192 or 32k: a copy with another context reloads",
        },
    ),
    (("--require-loaded",), {"action": "store_true", "help": "only machines where MODEL is resident"}),
    (
        ("--avoid-busy",),
        {"action": "store_true", "help": "only machines without a sign that requests are in work"},
    ),
    (
        ("--allow-pull",),
        {
            "action": "store_true",
            "help": "machines without MODEL count too, behind all others; pulls nothing",
        },
    ),
    (
        ("--tag",),
        {
            "action": "append",
            "default": [],
            "metavar": "T",
            "help": "only machines with this tag (repeatable)",
        },
    ),
    (
        ("--exclude",),
        {"action": "append", "default": [], "metavar": "M", "help": "not this machine (repeatable)"},
    ),
    (
        ("--sticky",),
        {
            "metavar": "KEY",
            "help": "calls with the same KEY (a conversation) come to the same of equally good machines",
        },
    ),
    (
        ("--check-reachable",),
        {"action": "store_true", "help": "only addresses that take a connection from here"},
    ),
    (
        ("--top",),
        {
            "metavar": "N",
            "type": positive_count,
            "default": 1,
            "help": "the N best, one a line, best first: a list to fall back on (default 1)",
        },
    ),
    (
        ("--format",),
        {
            "choices": ("address", "host", "name", "url", "tsv", "json", "env"),
            "default": "address",
            "help": "form of the answer (default: address, HOST:PORT)",
        },
    ),
    (("--json",), {"action": "store_true", "help": "same as --format json; printed on failure too"}),
    (
        ("--max-age",),
        {
            "metavar": "S",
            "type": seconds,
            "help": "oldest data to answer from; 0 polls now (default: 2 intervals of whoever stored it)",
        },
    ),
    (
        ("--deadline",),
        {
            "metavar": "S",
            "type": positive_seconds,
            "default": 10.0,
            "help": "seconds to wait for machines when polling (default 10)",
        },
    ),
    (
        ("--exhaustive",),
        {
            "action": "store_true",
            "help": "when polling wait for every machine, also where none of the rest can be better",
        },
    ),
    (
        ("--wait",),
        {
            "metavar": "S",
            "type": positive_seconds,
            "help": "go on until a machine is eligible, at most that long: 60s, 5m",
        },
    ),
    (
        ("--warm",),
        {
            "action": "store_true",
            "help": "load MODEL on the chosen machine where it is not resident, and answer when it is",
        },
    ),
    (
        ("--hold",),
        {
            "metavar": "S",
            "type": positive_seconds,
            "help": "how long the lease holds: 30s, 5m (default: 10 s; cold: estimate of the load + 30 s)",
        },
    ),
    (("--no-lease",), {"action": "store_true", "help": "take no lease on the choice"}),
    (("--release",), {"metavar": "LEASE", "help": "end a lease by its id, instead of routing"}),
    (("-q", "--quiet"), {"action": "store_true", "help": "no reasons on stderr"}),
)


def plain_route(words: Sequence[str]) -> Namespace | None:
    """What argparse makes of `route WORDS…`; None where that takes more than reading options one by one.

    `--help`, mistakes, abbreviations and everything else that is not plain is left to argparse.
    """
    found: dict[str, Any] = {"command": "route"}
    options: dict[str, tuple[str, dict[str, Any]]] = {}
    for names, settings in (*FOLDER_OPTIONS, *POLLING_OPTIONS):
        options |= dict.fromkeys(names, (_destination(names), settings))
    for names, settings in ROUTE_OPTIONS:
        options |= dict.fromkeys(names, (_destination(names), settings))
        found[_destination(names)] = settings.get("default", False if "action" in settings else None)
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            if "model" in found:
                return None
            found["model"] = word
            continue
        name, equals, value = word.partition("=")
        if name not in options:
            return None
        destination, settings = options[name]
        if settings.get("action") == "store_true":
            if equals:
                return None
            found[destination] = True
            continue
        try:
            read = _value(value if equals else next(rest, "-"), settings)
        except ValueError:
            return None
        found[destination] = [*found[destination], read] if settings.get("action") == "append" else read
    return Namespace(**found) if "model" in found else None


def _destination(names: tuple[str, ...]) -> str:
    """The attribute that holds an option's value: its last name, as argparse does it for ours."""
    return names[-1].lstrip("-").replace("-", "_")


def _value(text: str, settings: dict[str, Any]) -> Any:
    """The value of an option. Raises ValueError where argparse would refuse it, or might."""
    if not text or text.startswith("-"):
        raise ValueError(text)
    value = settings["type"](text) if "type" in settings else text
    if value not in settings.get("choices", (value,)):
        raise ValueError(text)
    return value
