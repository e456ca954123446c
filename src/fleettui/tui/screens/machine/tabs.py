"""The tabs of the Machine screen in their order: a line here and a pane is all that one takes."""

from __future__ import annotations

from typing import NamedTuple

from fleettui.tui.screens.machine.hardware import HardwarePane
from fleettui.tui.screens.machine.logs import LogsPane
from fleettui.tui.screens.machine.models import ModelsPane
from fleettui.tui.screens.machine.pane import MachinePane
from fleettui.tui.screens.machine.raw import RawPane
from fleettui.tui.screens.machine.timeline import TimelinePane


class Tab(NamedTuple):
    """One tab."""

    key: str
    title: str
    pane: type[MachinePane]
    """Made with the machine's name when the tab is shown first."""


TABS: tuple[Tab, ...] = (
    Tab("hardware", "Hardware", HardwarePane),
    Tab("models", "Models", ModelsPane),
    Tab("logs", "Logs", LogsPane),
    Tab("timeline", "Timeline", TimelinePane),
    Tab("raw", "Raw", RawPane),
)
