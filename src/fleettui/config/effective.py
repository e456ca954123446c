"""The settings that hold, each with where it comes from."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Literal

from fleettui.config.paths import resolve_catalog_dir, resolve_machines_dir, resolve_state_dir
from fleettui.config.settings import SettingsLayers, Thresholds, variable_of
from fleettui.config.yaml_scalars import write_text
from fleettui.model.record import dataclass

Origin = Literal["command line", "environment", "file", "default"]

DEFAULTS: dict[str, Any] = {
    "interval_s": 2.0,
    "theme": "fleettui-dark",
    "glyphs": "unicode",
    "thresholds": Thresholds(),
    "keys": {},
    "columns": None,
    "readonly": False,
    "server": None,
    "server_token_file": None,
    "server_ca_file": None,
    "history_minutes": 60.0,
}
"""What holds where nobody says otherwise; folders have their own rules. `columns` None: all that fit."""

_FOLDERS = {"machines": resolve_machines_dir, "catalog": resolve_catalog_dir, "state_dir": resolve_state_dir}
ORDER = ("interval_s", *_FOLDERS, *(key for key in DEFAULTS if key != "interval_s"))


@dataclass(frozen=True, slots=True)
class EffectiveSetting:
    """One setting as it holds."""

    key: str
    value: Any
    """Ready for JSON."""
    origin: Origin
    where: str
    """The option, variable or file; of a default why it is this one. May be empty."""

    @property
    def source(self) -> str:
        """Origin in one phrase."""
        if self.origin == "default":
            return f"default: {self.where}" if self.where else "default"
        return self.where


def effective_settings(
    layers: SettingsLayers,
    path: str,
    options: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> tuple[EffectiveSetting, ...]:
    """Every setting in the order of the page. `path`: the settings file; `options`: key -> value of those
    given on the command line."""
    environ = os.environ if environ is None else environ
    return tuple(_effective(key, layers, path, options or {}, environ) for key in ORDER)


def _effective(
    key: str, layers: SettingsLayers, path: str, options: Mapping[str, Any], environ: Mapping[str, str]
) -> EffectiveSetting:
    option, setting = options.get(key), layers.file.get(key)
    variable = variable_of(key)
    is_in_environment = variable is not None and bool(environ.get(variable, "").strip())
    if key in _FOLDERS:
        value: Any = _FOLDERS[key](option, setting, environ)
    elif option is not None:
        value = option
    elif key in layers.environment:
        value = layers.environment[key]
    else:
        value = setting if setting is not None else DEFAULTS[key]
    if option is not None:
        return EffectiveSetting(key, _plain(value), "command line", f"--{_OPTION_NAMES.get(key, key)}")
    if is_in_environment and (key in _FOLDERS or key in layers.environment):
        return EffectiveSetting(key, _plain(value), "environment", f"${variable}")
    if setting is not None:
        return EffectiveSetting(key, _plain(value), "file", path)
    return EffectiveSetting(key, _plain(value), "default", _reason(key, value))


_OPTION_NAMES = {"interval_s": "interval", "state_dir": "state-dir"}


def _reason(key: str, value: Any) -> str:
    if key in ("machines", "catalog"):
        is_here = value == os.path.abspath(key)  # noqa: PTH100 - the same words as config/paths.py
        return f"./{key} is there" if is_here else "the configuration folder"
    return {"state_dir": "the user's state folder", "columns": "all that fit"}.get(key, "")


def _plain(value: Any) -> Any:
    if isinstance(value, Thresholds):
        return {name: list(getattr(value, name)) for name in ("memory", "utilisation", "temperature")}
    return list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value


def settings_lines(settings: tuple[EffectiveSetting, ...]) -> list[str]:
    """settings.yaml with these settings, each with its origin as a comment. What is not set is null, which
    the file may say too."""
    lines = [f"{item.key}: {_yaml(item.value)}" for item in settings]
    width = max(map(len, lines), default=0)
    width = min(width, 60)
    return [f"{line:<{width}}  # {item.source}" for line, item in zip(lines, settings, strict=True)]


def _yaml(value: Any) -> str:
    """A value in YAML's flow form; what is no text, map or list as JSON, which is YAML."""
    if isinstance(value, str):
        return write_text(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_yaml(key)}: {_yaml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_yaml, value)) + "]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value)
