"""Local file systems: `df -lPkT`, or `df -lPk` where there is no type (POSIX format, KiB)."""

from __future__ import annotations

import re

from fleettui.model.readings import DisksReading, DiskUse
from fleettui.model.record import replace
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.clean import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# Sources that are no disk of the machine: memory, kernel interfaces, images, layers of containers.
_NO_DISK = frozenset(
    (
        "tmpfs", "devtmpfs", "udev", "dev", "run", "shm", "none", "ramfs", "rootfs", "devfs",
        "overlay", "overlayfs", "aufs", "squashfs", "fuse", "lxcfs", "portal", "gvfsd-fuse", "drivers",
        "proc", "sysfs", "cgroup", "cgroup2", "efivarfs", "nsfs", "systemd-1",
    )
)  # fmt: skip
_NO_DEVICE = ("/dev/loop", "/dev/ram", "/dev/zram", "/dev/sr", "/dev/fd", "//")
_NO_MOUNT = (
    "/proc", "/sys", "/dev", "/snap",
    "/System/Volumes/VM", "/System/Volumes/Preboot", "/System/Volumes/Update", "/System/Volumes/xarts",
    "/System/Volumes/iSCPreboot", "/System/Volumes/Hardware",
)  # fmt: skip
# The same by type, where df tells it. What comes over FUSE is remote or made of other disks; fuseblk is NTFS.
_NO_TYPE = frozenset(
    (
        "tmpfs", "devtmpfs", "ramfs", "rootfs", "overlay", "aufs", "fuse-overlayfs", "squashfs", "erofs",
        "iso9660", "efivarfs", "proc", "sysfs", "cgroup", "cgroup2", "nsfs", "hugetlbfs", "configfs",
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "lustre", "gpfs", "beegfs", "afs",
    )
)  # fmt: skip
_OVERLAYS = ("overlay", "overlayfs", "aufs", "fuse-overlayfs")

# Device, total, used, free, capacity, mount point. Device and mount point may hold blanks; BSD and busybox
# print a free space below 0, `-` stands for what a file system does not tell.
_NUMBERS = r"\s+(\d{1,15})\s+(\d{1,15})\s+(-?)(\d{1,15})\s+(?:\d{1,9}%|-)\s+(/.*)"
_ROW = re.compile(r"(\S+(?: \S+)*?)()" + _NUMBERS)
_TYPED_ROW = re.compile(r"(\S+(?: \S+)*?)\s+(\S+)" + _NUMBERS)
_HUNG_CODE = 75
_TIME_LIMIT_CODES = (124, 137, 143)
_MAX_LINES = 5000
_MAX_LINE = 1024
_HEADER_WORDS = 5


def parse_disks(payload: bytes, exit_code: int = 0) -> Maybe[DisksReading]:
    """Real local file systems, each once, in df's order.

    Each device once (bind mounts, btrfs subvolumes), at its shortest mount point. The datasets of a ZFS pool
    that share its free space are one row: the pool, used = the sum, total = used + free; a dataset with a
    quota keeps a row of its own. Unknown when df gave no row; its exit code alone says nothing (one dead
    mount makes it 1).
    """
    rows, has_header = _read_rows(payload)
    roots = [row for row, kind in rows if (kind or row.device) in _OVERLAYS and row.mount == "/"]
    own = [(row, kind) for row, kind in rows if _is_disk(row, kind)]
    pools = {row.device for row, kind in own if row.device[:1] != "/" and kind in ("", "zfs")}
    disks = _merge_pools(_once_each(row for row, _ in own), pools)
    if roots and all(disk.mount != "/" for disk in disks):
        disks = _with_container_root(roots[-1], disks)
    if disks or (has_header and exit_code in (0, 1)):
        return DisksReading(tuple(disks))
    if exit_code == _HUNG_CODE:
        return Unknown("an earlier df still hangs (dead network mount?)")
    if exit_code in _TIME_LIMIT_CODES:
        return Unknown("df did not answer within its time limit (dead network mount?)")
    return Unknown("no df on the machine" if exit_code == 127 else f"df failed (exit code {exit_code})")


def _read_rows(payload: bytes) -> tuple[list[tuple[DiskUse, str]], bool]:
    """Rows of a size above 0 with the type df told or "", and whether the first line looks like a header."""
    rows: list[tuple[DiskUse, str]] = []
    wrapped = ""
    lines = payload.decode("utf-8", "replace").split("\n", _MAX_LINES)[:_MAX_LINES]
    header = lines[0].split()
    pattern = _TYPED_ROW if header[1:2] == ["Type"] else _ROW
    for line in lines:
        text = line.rstrip()
        if wrapped and text[:1] in (" ", "\t"):
            text = wrapped + text  # a df without -P breaks the line after a long device name
        # What has no blank is a device whose row follows.
        wrapped = text if text and not text[0].isspace() and " " not in text else ""
        found = pattern.fullmatch(text) if len(text) <= _MAX_LINE else None
        if found is None or int(found[3]) == 0:
            continue
        free = 0 if found[5] else int(found[6])
        row = DiskUse(clean_text(found[7]), clean_text(found[1]), int(found[3]), int(found[4]), free)
        rows.append((row, found[2]))
    return rows, len(header) >= _HEADER_WORDS


def _is_disk(row: DiskUse, kind: str) -> bool:
    device, mount = row.device, row.mount
    if kind in _NO_TYPE or kind.startswith("fuse."):
        return False
    if device in _NO_DISK or device.startswith(_NO_DEVICE) or (":" in device and device[0] != "/"):
        return False
    return not any(mount == place or mount.startswith(place + "/") for place in _NO_MOUNT)


def _once_each(rows: Iterable[DiskUse]) -> list[DiskUse]:
    found: dict[str, DiskUse] = {}
    for row in rows:
        known = found.get(row.device)
        if known is None or len(row.mount) < len(known.mount):
            found[row.device] = row
    return list(found.values())


def _merge_pools(disks: list[DiskUse], datasets: set[str]) -> list[DiskUse]:
    """ZFS: df says `pool/dataset` for a device. Free space differs only by what changed between two rows."""
    merged: list[DiskUse] = []
    places: dict[str, int] = {}
    for disk in disks:
        pool = disk.device.partition("/")[0]
        if disk.device not in datasets or not pool:
            merged.append(disk)
            continue
        at = places.get(pool)
        if at is None:
            places[pool] = len(merged)
            merged.append(disk)
        elif abs(merged[at].free_kib - disk.free_kib) <= merged[at].free_kib // 100:
            merged[at] = _join(merged[at], disk, pool)
        else:
            merged.append(disk)
    return merged


def _join(one: DiskUse, other: DiskUse, pool: str) -> DiskUse:
    used, free = one.used_kib + other.used_kib, one.free_kib
    mount = min(one.mount, other.mount, key=len)
    return DiskUse(mount, pool, used + free, used, free)


def _with_container_root(root: DiskUse, disks: list[DiskUse]) -> list[DiskUse]:
    """A container's `/` is an overlay on a disk of which df shows a file (`/etc/hosts`): one row."""
    same = [disk for disk in disks if (disk.total_kib, disk.free_kib) == (root.total_kib, root.free_kib)]
    others = [disk for disk in disks if disk not in same]
    return [replace(root, device=same[0].device if same else root.device), *others]
