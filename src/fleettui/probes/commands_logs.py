"""What `fleettui logs` runs on a machine."""

from __future__ import annotations

from typing import Final

from fleettui.probes.loops_logs import (
    DMESG_LINES_KEPT,
    FILE_LINES_KEPT,
    JOURNAL_LIMIT_S,
    LOG_BYTES_KEPT,
    LOG_FILES,
)
from fleettui.probes.remote_command import RemoteCommand

LOGS_COMMANDS: Final[tuple[RemoteCommand, ...]] = (
    RemoteCommand(
        "logs",
        "log",
        "logs",
        (
            "journalctl -q --no-pager -F _SYSTEMD_UNIT",
            "journalctl -q --no-pager -F CONTAINER_NAME",
            "journalctl --no-pager -o short-iso --since …",
            f"tail -c {LOG_BYTES_KEPT}",
        ),
        note=f"the first two, to find the units of engines, only without `--unit`, 5 s each; the third "
        f"{JOURNAL_LIMIT_S} s; shows what this account may read",
    ),
    RemoteCommand(
        "logs",
        "follow",
        "logs",
        (
            "journalctl -q --no-pager -F _SYSTEMD_UNIT",
            "journalctl -q --no-pager -F CONTAINER_NAME",
            "journalctl -f --no-tail --no-pager -o short-iso --since …",
        ),
        note="with `--follow`; runs until you end it, and ends with the connection",
    ),
    RemoteCommand(
        "logs",
        "dmesg",
        "logs",
        ("dmesg", f"tail -n {DMESG_LINES_KEPT}"),
        limit_s=3,
        reads=("/proc/uptime",),
        note="only where the journal cannot be read or there is none",
    ),
    RemoteCommand(
        "logs",
        "logfiles",
        "logs",
        (f"tail -n {FILE_LINES_KEPT} …", "tail -c 100000"),
        limit_s=3,
        note=f"only where the journal cannot be read or there is none; {', '.join(LOG_FILES)}",
    ),
)
