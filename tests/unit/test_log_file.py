"""The log file of the dashboard is for the operator alone."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fleettui.cli.dashboard import log_to_file


@pytest.fixture(autouse=True)
def _logging_as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    root, umask = logging.getLogger(), os.umask(0o022)
    handlers, level = root.handlers[:], root.level
    monkeypatch.setattr(logging, "raiseExceptions", logging.raiseExceptions)
    yield
    os.umask(umask)
    for handler in [handler for handler in root.handlers if handler not in handlers]:
        root.removeHandler(handler)
        handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.parametrize("is_old", [False, True])
def test_nobody_else_may_read_it(tmp_path: Path, is_old: bool) -> None:
    path = tmp_path / "fleettui.log"
    if is_old:
        path.write_text("of an older version\n")
        path.chmod(0o644)
    folders: Any = SimpleNamespace(state_dir=str(tmp_path))
    log_to_file(folders)
    logging.getLogger("fleettui.test").warning("ada is gone")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "ada is gone" in path.read_text()
