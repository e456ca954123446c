"""What a simulated machine prints when `machines doctor` looks at it."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from fleettui.demo.machine import SimulatedMachine

Answer = tuple[int, str]
"""Exit code and text."""

PERMISSION_HINT = (
    "Hint: You are currently not seeing messages from other users and the system.\n"
    "      Users in groups 'adm', 'systemd-journal' can see all messages.\n"
    "      Pass -q to turn off this notice.\n"
    "-- No entries --"
)
"""journalctl to a user without rights."""
DOCTOR_SECTIONS = ("who", "clock", "journal", "journal_ollama", "root")


def may_read_journal(machine: SimulatedMachine) -> bool:
    """False on machines at somebody's home, where the account has no group for it."""
    return "home" not in machine.plan.tags


def doctor_answer(machine: SimulatedMachine, section: str) -> Answer:
    """Exit code and text of one of DOCTOR_SECTIONS."""
    user = machine.plan.user
    may_read = may_read_journal(machine)
    if section == "who":
        groups = f"{user} adm video render" if may_read else f"{user} video render"
        return 0, f"/bin/bash\n{user}\n{groups}"
    if section == "clock":
        return 0, f"{time.time():.9f}"
    if section == "root":
        return 0, "/dev/nvme0n1p2 ext4 rw,relatime,errors=remount-ro"
    if not may_read:
        return 0, PERMISSION_HINT
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S+0000")
    host = machine.plan.name
    if section == "journal":
        return 0, f"{at} {host} kernel: usb 1-4: new high-speed USB device number 3 using xhci_hcd"
    return 0, f'{at} {host} ollama[1742]: [GIN] 200 | 1.2 ms | 127.0.0.1 | GET "/api/ps"'
