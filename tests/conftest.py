"""Isolation of every test: no test sees the operator's home, settings, agent, terminal or colours."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples in every run, so that a failure belongs to the change at hand; no time limits, so that a
# busy machine fails nothing. New examples: make test ARGS=--hypothesis-profile=explore
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", max_examples=500, deadline=None, print_blob=True)
settings.load_profile("same")

# What changes the behaviour of programs under test or leads them to the operator's things.
REMOVED = (
    "SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSH_ASKPASS", "SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY",
    "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLORTERM", "COLUMNS", "LINES",
    "TMUX", "TMUX_PANE", "STY", "TERM_PROGRAM", "DISPLAY", "WAYLAND_DISPLAY", "ENV", "BASH_ENV", "ZDOTDIR",
    "LC_ALL", "LC_CTYPE", "LANGUAGE", "PAGER", "LESS", "EDITOR", "VISUAL",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy", "OLLAMA_HOST",
)  # fmt: skip
REMOVED_PREFIXES = ("FLEETTUI_", "TEXTUAL", "XDG_")
KEPT = {"TEXTUAL_SNAPSHOT_TEMPDIR"}
"""Set by the plugin that compares pictures of screens."""
FIXED = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "TZ": "UTC", "PYTHONUTF8": "1"}
XDG_FOLDERS = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_STATE_HOME": ".local/state",
    "XDG_DATA_HOME": ".local/share",
    "XDG_CACHE_HOME": ".cache",
    "XDG_RUNTIME_DIR": ".run",
}


def _set_home(patch: pytest.MonkeyPatch, home: Path) -> None:
    home.mkdir(mode=0o700)
    patch.setenv("HOME", str(home))
    for name, folder in XDG_FOLDERS.items():
        patch.setenv(name, str(home / folder))


@pytest.fixture(scope="session", autouse=True)
def _isolated_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Clean the environment before anything of a session starts servers; yields the folder of the homes."""
    patch = pytest.MonkeyPatch()
    for name in list(os.environ):
        if name in REMOVED or (name.startswith(REMOVED_PREFIXES) and name not in KEPT):
            patch.delenv(name)
    for name, value in FIXED.items():
        patch.setenv(name, value)
    time.tzset()
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # nohup: programs under test would be deaf to it
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a run in the background of a script
        signal.signal(signal.SIGINT, signal.default_int_handler)
    homes = tmp_path_factory.mktemp("homes")
    _set_home(patch, homes / "session")
    yield homes
    patch.undo()
    time.tzset()


_numbers = itertools.count()


@pytest.fixture(autouse=True)
def home(_isolated_process: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home of this test alone, with the XDG folders pointing into it (not yet made)."""
    path = _isolated_process / str(next(_numbers))
    _set_home(monkeypatch, path)
    return path
