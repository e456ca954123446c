"""What is said when the dashboard fails: a sentence, whatever the error says."""

from __future__ import annotations

from rich.segment import Segments
from tui_fleet import FakeService, fleet

from fleettui.tui.app import FleetApp


async def test_an_error_with_markup_and_control_characters_is_told_as_it_is() -> None:
    app = FleetApp(FakeService(fleet()))
    app._exception = RuntimeError("[/bold] of bora\x1b]0;owned\x07\nsecond")
    app._fatal_error()
    (shown,) = app._exit_renderables
    assert isinstance(shown, Segments)
    text = "".join(segment.text for segment in shown.segments).replace("\n", " ")
    assert "the dashboard failed: RuntimeError: [/bold] of bora ]0;owned  second" in text
    assert text.isprintable()
