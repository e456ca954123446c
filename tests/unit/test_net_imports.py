"""What importing parts of net costs: nothing heavy before the first connection."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["errors", "link", "connector", "settings", "local_link", "direct_http"])
def test_no_library_is_loaded_before_the_first_link(module: str) -> None:
    code = f"import sys, fleettui.net.{module}; print([name for name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.strip("[]\n").replace("'", "").split(", "))
    assert not loaded & {"asyncssh", "httpx", "cryptography", "h11", "pydantic", "textual"}
    if module in ("errors", "link"):
        assert "asyncio" not in loaded
