"""Local file systems: `df -lPk` (POSIX format, KiB)."""

from __future__ import annotations

from fleettui.model.readings import DisksReading, DiskUse
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.clean import clean_text
from fleettui.probes.loops_df import HUNG_EXIT
from fleettui.probes.numbers import is_digits

# Sources that are no disk of the machine: memory, kernel interfaces, images, layers of containers.
_NO_DISK = frozenset(
    (
        "tmpfs", "devtmpfs", "udev", "dev", "run", "shm", "none", "ramfs", "rootfs", "devfs",
        "overlay", "overlayfs", "aufs", "squashfs", "fuse", "lxcfs", "portal", "gvfsd-fuse", "drivers",
        "proc", "sysfs", "cgroup", "cgroup2", "efivarfs", "nsfs", "systemd-1",
    )
)  # fmt: skip
_NO_DEVICE = ("/dev/loop", "/dev/ram", "/dev/zram", "/dev/sr", "/dev/fd", "//")
_NO_MOUNT = ("/proc", "/sys", "/dev", "/snap")


def parse_disks(payload: bytes, exit_code: int = 0) -> Maybe[DisksReading]:
    """Real local file systems, each device once (at its shortest mount point), in df's order.

    Unknown when df gave no row; its exit code alone says nothing (one dead mount makes it 1).
    """
    found: dict[str, DiskUse] = {}
    has_header = False
    for line in payload.decode("utf-8", "replace").split("\n"):
        has_header = has_header or line.startswith("Filesystem")
        disk = _read_row(line)
        if disk is not None:
            known = found.get(disk.device)
            if known is None or len(disk.mount) < len(known.mount):
                found[disk.device] = disk
    if found or has_header:
        return DisksReading(tuple(found.values()))
    if exit_code == HUNG_EXIT:
        return Unknown("an earlier df still hangs (dead mount?); no second one is started")
    if exit_code in (124, 137, 143):
        return Unknown("df did not answer within its time limit (dead network mount?)")
    return Unknown("no df on the machine" if exit_code == 127 else f"df failed (exit code {exit_code})")


def _read_row(line: str) -> DiskUse | None:
    words = line.split(None, 5)
    if len(words) != 6 or not all(is_digits(word) for word in words[1:4]) or words[5][:1] != "/":
        return None
    device, mount = words[0], words[5].rstrip()
    if device in _NO_DISK or device.startswith(_NO_DEVICE) or (":" in device and device[0] != "/"):
        return None
    if any(mount == place or mount.startswith(place + "/") for place in _NO_MOUNT):
        return None
    total = int(words[1])
    if total == 0:
        return None
    return DiskUse(clean_text(mount), clean_text(device), total, int(words[2]), int(words[3]))
