"""Where machine files, settings and state lie: command line, environment, settings file, default."""

# ruff: noqa: PTH100, PTH111, PTH112, PTH117, PTH118
# loading pathlib would cost a warm --route 12 ms
from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal

APP = "fleettui"
MACHINES_VARIABLE = "FLEETTUI_MACHINES"
CATALOG_VARIABLE = "FLEETTUI_CATALOG"
STATE_DIR_VARIABLE = "FLEETTUI_STATE_DIR"


def resolve_machines_dir(
    option: str | None = None, setting: str | None = None, environ: Mapping[str, str] | None = None
) -> str:
    """Absolute folder of the machine files: `--machines`, $FLEETTUI_MACHINES, the settings file,
    `./machines` where it exists, `machines` in the settings folder. It need not exist."""
    return _resolve(option, MACHINES_VARIABLE, setting, "machines", environ)


def resolve_catalog_dir(
    option: str | None = None, setting: str | None = None, environ: Mapping[str, str] | None = None
) -> str:
    """Absolute folder of the catalog, found like the machine files."""
    return _resolve(option, CATALOG_VARIABLE, setting, "catalog", environ)


def default_catalog_dir(environ: Mapping[str, str] | None = None) -> str:
    """Absolute folder of the catalog where nobody names one and there is no `./catalog`."""
    return os.path.join(user_folder("config", os.environ if environ is None else environ), "catalog")


def resolve_state_dir(
    option: str | None = None, setting: str | None = None, environ: Mapping[str, str] | None = None
) -> str:
    """Absolute folder of our own state: `--state-dir`, $FLEETTUI_STATE_DIR, the settings file, XDG."""
    environ = os.environ if environ is None else environ
    named = option or environ.get(STATE_DIR_VARIABLE) or setting
    return _absolute(named) if named else user_folder("state", environ)


def resolve_settings_file(environ: Mapping[str, str] | None = None) -> str:
    """Absolute path of settings.yaml. It need not exist."""
    return os.path.join(user_folder("config", os.environ if environ is None else environ), "settings.yaml")


def user_folder(kind: Literal["config", "state"], environ: Mapping[str, str]) -> str:
    """This user's folder for settings or state, by the XDG base directory specification.

    On Linux by hand: platformdirs gives the same (a test compares them) and costs 20 ms to import,
    more than all the rest of a warm --route.
    """
    if not sys.platform.startswith("linux") or "ANDROID_ROOT" in environ:
        import platformdirs

        find = platformdirs.user_config_dir if kind == "config" else platformdirs.user_state_dir
        return os.path.abspath(find(APP, appauthor=False))
    variable, default = (
        ("XDG_CONFIG_HOME", ".config") if kind == "config" else ("XDG_STATE_HOME", ".local/state")
    )
    base = environ.get(variable, "").strip()
    if not os.path.isabs(base):  # the specification: a relative path is to be ignored
        base = os.path.join(environ.get("HOME") or os.path.expanduser("~"), default)
    return os.path.abspath(os.path.join(base, APP))


def _resolve(
    option: str | None, variable: str, setting: str | None, name: str, environ: Mapping[str, str] | None
) -> str:
    environ = os.environ if environ is None else environ
    named = option or environ.get(variable) or setting
    if named:
        return _absolute(named)
    if os.path.isdir(name):
        return os.path.abspath(name)
    return os.path.join(user_folder("config", environ), name)


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))
