"""Which folders and settings a command works with: command line, environment, settings file, defaults."""

from __future__ import annotations

import os

from fleettui.cli.errors import CommandError
from fleettui.cli.server_choice import SERVER_KEYS, choose_server
from fleettui.config.paths import (
    resolve_catalog_dir,
    resolve_machines_dir,
    resolve_settings_file,
    resolve_state_dir,
)
from fleettui.model.record import dataclass, field, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from fleettui.model.machine import ConfigProblem
    from fleettui.model.server_place import ServerAccess

DEFAULT_INTERVAL_S = 2.0
DEFAULT_HISTORY_MINUTES = 60.0


@dataclass(frozen=True, slots=True)
class Appearance:
    """How the dashboard is dressed."""

    theme: str | None = None
    glyphs: str | None = None
    has_color: bool = True
    keys: dict[str, str] = field(default_factory=dict)
    """Action -> keys."""
    columns: tuple[str, ...] | None = None
    limits: tuple[tuple[float, float], ...] = ()
    """Thresholds of memory, utilisation and temperature; empty: the default ones."""
    history_minutes: float = DEFAULT_HISTORY_MINUTES
    """Length of the graphs."""


@dataclass(frozen=True, slots=True)
class Folders:
    """Where a command reads and writes, and how often it polls."""

    machines_dir: str
    """Absolute."""
    state_dir: str
    """Absolute."""
    interval_s: float = DEFAULT_INTERVAL_S
    appearance: Appearance = Appearance()
    is_readonly: bool = False
    """Commands that change anything are refused."""
    catalog_dir: str | None = None
    """Absolute; need not exist."""
    server: ServerAccess | None = None
    """A running server that is asked instead of the machines."""


def resolve_folders(arguments: Namespace) -> Folders:
    """The folders of a command line. Raises CommandError when the settings file is wrong."""
    machines_setting = state_setting = catalog_setting = None
    server_settings = {name: os.environ.get(f"FLEETTUI_{name.upper()}", "").strip() for name in SERVER_KEYS}
    interval_s, appearance = DEFAULT_INTERVAL_S, Appearance()
    is_readonly = getattr(arguments, "readonly", False)
    if _has_settings():
        from fleettui.config.settings import load_settings

        settings, problems = load_settings(
            resolve_settings_file(), has_columns=getattr(arguments, "command", None) != "route"
        )
        if problems:
            raise CommandError("the settings are wrong", *(_problem_line(problem) for problem in problems))
        machines_setting, state_setting = settings.machines, settings.state_dir
        catalog_setting = settings.catalog
        server_settings = {name: getattr(settings, name) for name in SERVER_KEYS}
        interval_s = settings.interval_s or interval_s
        is_readonly = is_readonly or bool(settings.readonly)
        at = settings.thresholds
        appearance = Appearance(
            settings.theme,
            settings.glyphs,
            keys=dict(settings.keys),
            columns=settings.columns,
            limits=(at.memory, at.utilisation, at.temperature),
            history_minutes=settings.history_minutes or DEFAULT_HISTORY_MINUTES,
        )
    return Folders(
        machines_dir=resolve_machines_dir(getattr(arguments, "machines", None), machines_setting),
        state_dir=resolve_state_dir(getattr(arguments, "state_dir", None), state_setting),
        interval_s=getattr(arguments, "interval", None) or interval_s,
        appearance=_without_color(appearance, arguments),
        is_readonly=is_readonly,
        catalog_dir=resolve_catalog_dir(getattr(arguments, "catalog", None), catalog_setting),
        server=choose_server(arguments, server_settings),
    )


def demo_folders(machines_dir: str, state_dir: str, arguments: Namespace) -> Folders:
    """The folders of a demo fleet: its own machines and state, so that it never mixes with the real fleet."""
    interval_s = getattr(arguments, "interval", DEFAULT_INTERVAL_S)
    catalog_dir = resolve_catalog_dir(getattr(arguments, "catalog", None))
    appearance = _without_color(Appearance(), arguments)
    return Folders(machines_dir, state_dir, interval_s, appearance, catalog_dir=catalog_dir)


def _has_settings() -> bool:
    """False where neither a settings file nor FLEETTUI_<KEY> of one exists: reading YAML costs 40 ms."""
    own = {"FLEETTUI_MACHINES", "FLEETTUI_CATALOG", "FLEETTUI_STATE_DIR"}
    own |= {f"FLEETTUI_{name.upper()}" for name in SERVER_KEYS}
    return os.path.exists(resolve_settings_file()) or any(  # noqa: PTH110 - pathlib costs a warm --route 12 ms
        name.startswith("FLEETTUI_") and name not in own for name in os.environ
    )


def _without_color(appearance: Appearance, arguments: Namespace) -> Appearance:
    if not getattr(arguments, "no_color", False) and not os.environ.get("NO_COLOR"):
        return appearance
    return replace(appearance, has_color=False)


def _problem_line(problem: ConfigProblem) -> str:
    where = problem.file if problem.line is None else f"{problem.file}:{problem.line}"
    key = f" {problem.key}:" if problem.key else ""
    return f"{where}:{key} {problem.message}"
