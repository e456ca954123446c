"""settings.yaml, and the same settings from the environment.

Checked by hand, not with pydantic: a warm `--route` reads this file too and may not load pydantic.
"""

# ruff: noqa: PTH111, PTH118, PTH120
# loading pathlib would cost a warm --route 12 ms
from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from fleettui.model.machine import ConfigProblem
from fleettui.model.record import dataclass, field, replace

Glyphs = Literal["unicode", "ascii"]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From which value on a bar is yellow, and from which red."""

    memory: tuple[float, float] = (70, 90)
    """Percent."""
    utilisation: tuple[float, float] = (10, 75)
    """Percent."""
    temperature: tuple[float, float] = (75, 85)
    """°C."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the operator set. None: not set, the caller's default holds."""

    interval_s: float | None = None
    machines: str | None = None
    """Folder, absolute."""
    catalog: str | None = None
    """Folder, absolute."""
    state_dir: str | None = None
    """Folder, absolute."""
    theme: str | None = None
    glyphs: Glyphs | None = None
    thresholds: Thresholds = Thresholds()
    keys: Mapping[str, str] = field(default_factory=dict)
    """Action -> key."""
    columns: tuple[str, ...] | None = None
    readonly: bool | None = None
    server: str | None = None
    """URL of a running `fleettui serve`, or `unix:` and the absolute path of its socket."""
    server_token_file: str | None = None
    """Absolute."""
    server_ca_file: str | None = None
    """Absolute."""
    history_minutes: float | None = None


@dataclass(frozen=True, slots=True)
class SettingsLayers:
    """Settings by where they come from, checked; what is not set is in neither."""

    file: Mapping[str, Any]
    """Key -> value of settings.yaml."""
    environment: Mapping[str, Any]
    """Key -> value of FLEETTUI_<KEY>, which beats the file."""
    problems: tuple[ConfigProblem, ...] = ()

    def merged(self) -> Settings:
        """What holds."""
        return replace(Settings(), **{**self.file, **self.environment})


def load_settings(
    path: str, environ: Mapping[str, str] | None = None, *, has_columns: bool = True
) -> tuple[Settings, tuple[ConfigProblem, ...]]:
    """The file's settings, overridden by FLEETTUI_<KEY> of the environment; everything wrong at once.

    No file is no problem. A wrong value is left out of the settings. Never raises. `has_columns` False:
    columns are left out unread, which spares a warm --route 10 ms.
    """
    layers = load_layers(path, environ, has_columns=has_columns)
    return layers.merged(), layers.problems


def load_layers(
    path: str, environ: Mapping[str, str] | None = None, *, has_columns: bool = True
) -> SettingsLayers:
    """As load_settings, file and environment apart. `environ`: {} for the file alone."""
    values, problems = _read_file(path, has_columns)
    from_environment, more = _read_environment(os.environ if environ is None else environ)
    return SettingsLayers(values, from_environment, (*problems, *more))


def line_finder(path: str) -> Callable[[Sequence[str | int]], int | None]:
    """Finds the line of a setting in the file, for what is judged later than here; None where it has none."""
    from fleettui.config.yaml_document import read_yaml

    try:
        with open(path, "rb") as stream:
            return read_yaml(stream.read((1 << 20) + 1)).line_of
    except OSError:
        return lambda below: None


def variable_of(key: str) -> str | None:
    """The environment variable of a setting; None: it has none."""
    return f"FLEETTUI_{key.upper()}" if key in _FROM_ENVIRONMENT else None


class _Refused(Exception):
    """A value that cannot be used; the text ends the sentence that begins with the key."""

    def __init__(self, text: str, *below: str | int) -> None:
        super().__init__(text)
        self.below = below
        """The part of the value that is meant: `memory` of thresholds, the index in a list."""


class _Refusals(Exception):
    """More than one fault in one value."""

    def __init__(self, refused: list[_Refused]) -> None:
        super().__init__(refused)
        self.refused = refused


def _read_file(path: str, has_columns: bool) -> tuple[dict[str, Any], tuple[ConfigProblem, ...]]:
    try:
        with open(path, "rb") as stream:
            data = stream.read((1 << 20) + 1)  # read_yaml refuses more than 1 MiB
    except (FileNotFoundError, NotADirectoryError):
        return {}, ()
    except OSError as error:
        message = f"The settings cannot be read ({error.strerror}); correct the file's rights or remove it."
        return {}, (ConfigProblem(path, None, None, message),)
    from fleettui.config.yaml_builder import EMPTY, dotted
    from fleettui.config.yaml_document import read_yaml

    document = read_yaml(data)
    problems = [
        ConfigProblem(path, item.line, item.key, item.message)
        for item in document.problems
        if item.message != EMPTY
    ]
    if document.value is None:
        return {}, tuple(problems)
    if not isinstance(document.value, dict):
        message = "Settings are a map of keys; begin with a line such as `interval_s: 2`."
        return {}, (*problems, ConfigProblem(path, 1, None, message))
    values: dict[str, Any] = {}
    base = os.path.dirname(path)
    for key, value in document.value.items():
        try:
            if key not in _CHECKS:
                raise _Refused(f"is no setting; {_suggest(key, _CHECKS)}")
            if value is not None and (has_columns or key != "columns"):
                values[key] = _CHECKS[key](value, base)
        except (_Refused, _Refusals) as error:
            for refused in error.refused if isinstance(error, _Refusals) else (error,):
                where = (key, *refused.below)
                shown = _printable(dotted(where))
                problems.append(ConfigProblem(path, document.line_of(where), shown, f"{shown} {refused}."))
    return values, tuple(sorted(problems, key=lambda problem: problem.line or 0))


def _read_environment(environ: Mapping[str, str]) -> tuple[dict[str, Any], list[ConfigProblem]]:
    values: dict[str, Any] = {}
    problems: list[ConfigProblem] = []
    for key in _FROM_ENVIRONMENT:
        variable = variable_of(key) or ""
        text = environ.get(variable, "").strip()
        if not text:
            continue
        value: Any = text
        if key in ("interval_s", "history_minutes"):
            value = _number_in(text)
        elif key == "readonly":
            value = {"1": True, "true": True, "0": False, "false": False}.get(text.lower(), text)
        try:
            values[key] = _CHECKS[key](value, ".")
        except _Refused as refused:
            problems.append(ConfigProblem(f"${variable}", None, key, f"${variable} {refused}."))
    return values, problems


def _suggest(key: str, names: Iterable[str]) -> str:
    from difflib import get_close_matches

    names = list(names)
    near = get_close_matches(key.lower().replace("-", "_"), names, 1, 0.5)
    known = ", ".join(names)
    return f"write {near[0]} if that is meant, else remove it" if near else f"remove it; known are {known}"


def _number_in(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "\ufffd" for character in text[:80])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9


def _text(value: Any, base: str) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise _Refused("must be plain text; put it in quotes")
    return value.strip()


def _folder(value: Any, base: str) -> str:
    return os.path.abspath(os.path.join(base, os.path.expanduser(_text(value, base))))  # noqa: PTH100


def _number(low: float, high: float) -> Callable[[Any, str], float]:
    def check(value: Any, base: str) -> float:
        if not _is_number(value) or not low <= value <= high:
            raise _Refused(f"must be a number from {low:g} to {high:g}")
        return float(value)

    return check


def _switch(value: Any, base: str) -> bool:
    if not isinstance(value, bool):
        raise _Refused("must be true or false")
    return value


def _glyphs(value: Any, base: str) -> str:
    if value not in ("unicode", "ascii"):
        raise _Refused("must be unicode or ascii")
    return str(value)


def _server(value: Any, base: str) -> str:
    from fleettui.model.server_place import read_server_place

    try:
        place = read_server_place(_text(value, base))
    except ValueError as error:
        raise _Refused(str(error)) from None
    return f"unix:{_folder(place.path, base)}" if place.scheme == "unix" else place.text


def _columns(value: Any, base: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
        raise _Refused("must be a list of names, such as [machine, health, vram]")
    from fleettui.view.columns import COLUMNS

    names = [item.strip() for item in value]
    known = [column.key for column in COLUMNS]
    wrong = [
        _Refused(f"is {_printable(name)!r}: there is no such column; {_suggest(name, known)}", index)
        for index, name in enumerate(names)
        if name not in known
    ]
    if wrong:
        raise _Refusals(wrong)
    if not names:
        raise _Refused("must name at least one column, such as [machine, health, vram]")
    return tuple(names)


def _keys(value: Any, base: str) -> dict[str, str]:
    """The form alone: which actions and keys there are, the dashboard knows (tui/key_check.py)."""
    if not isinstance(value, dict):
        raise _Refused('must be a map of action to key, such as {quit: "q"}')
    wrong = [
        _Refused('must be the name of a key as text, such as q, "1" or ctrl+q; put it in quotes', action)
        for action, key in value.items()
        if not isinstance(key, str) or not key.strip()
    ]
    if wrong:
        raise _Refusals(wrong)
    return {action: key.strip() for action, key in value.items()}


def _thresholds(value: Any, base: str) -> Thresholds:
    names = ("memory", "utilisation", "temperature")
    if not isinstance(value, dict):
        raise _Refused(f"must be a map of {', '.join(names)}, such as {{memory: [70, 90]}}")
    wrong: list[_Refused] = []
    pairs: dict[str, tuple[float, float]] = {}
    for name, pair in value.items():
        if name not in names:
            wrong.append(_Refused(f"is no threshold; {_suggest(name, names)}", name))
        elif not isinstance(pair, list) or len(pair) != 2 or not all(_is_number(item) for item in pair):
            wrong.append(_Refused("must be two numbers, from which yellow and red begin: [70, 90]", name))
        elif not 0 <= pair[0] <= pair[1] <= _HIGHEST[name]:
            wrong.append(_Refused(f"must rise, within 0 to {_HIGHEST[name]:g}, such as [70, 90]", name))
        else:
            pairs[name] = (float(pair[0]), float(pair[1]))
    if wrong:
        raise _Refusals(wrong)
    return Thresholds(**pairs)


_HIGHEST = {"memory": 100, "utilisation": 100, "temperature": 150}

_CHECKS: dict[str, Callable[[Any, str], Any]] = {
    "interval_s": _number(0.5, 3600),
    "machines": _folder,
    "catalog": _folder,
    "state_dir": _folder,
    "theme": _text,
    "glyphs": _glyphs,
    "thresholds": _thresholds,
    "keys": _keys,
    "columns": _columns,
    "readonly": _switch,
    "server": _server,
    "server_token_file": _folder,
    "server_ca_file": _folder,
    "history_minutes": _number(1, 1440),
}
"""Every key of settings.yaml. A relative path counts from the file's own folder."""

_FROM_ENVIRONMENT = (
    "interval_s", "machines", "catalog", "state_dir", "theme", "glyphs", "readonly", "server",
    "server_token_file", "server_ca_file", "history_minutes",
)  # fmt: skip
"""Keys that also have a variable: those with one plain value."""
