"""Disks of the machine, mounted or not: lsblk as JSON or pairs, else /sys/block.

JSON since util-linux 2.27; numbers and booleans were strings before 2.33; `mountpoint` (text or null) has a
list `mountpoints` beside it since 2.37.
"""

from __future__ import annotations

import json
import re

from fleettui.model.readings import BlockDevice
from fleettui.model.record import replace
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.clean import clean_text
from fleettui.probes.numbers import is_digits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NO_DISK = re.compile(r"(?:loop|ram|zram|sr|fd|scd|nbd|dm-|md)\d|mmcblk\d+(?:boot|rpmb)")
_NVME_PATH = re.compile(r"nvme(\d+)c\d+(n\d+)")
"""One path to a namespace; the namespace itself (`nvme0n1`) is the disk."""
_PAIR = re.compile(r'([A-Z:-]{1,20})="((?:[^"\\]|\\.)*)"')
_MAX_DEVICES = 4096
_SECTOR_BYTES = 512
_HANGS = Unknown("lsblk did not answer within its time limit")
_NONE = Unknown("no lsblk on the machine")

Rows = list[dict[str, "Any"]]


def parse_blocks(payload: bytes, exit_code: int = 0) -> Maybe[tuple[BlockDevice, ...]]:
    """The reading of section `blocks`: disks of a size above 0, each once, in the tool's order.

    Left out: loops, RAM disks, zram, CD drives, floppies and what is made of other disks. Of a multipath map
    the first path stands for all.
    """
    text = payload.decode("utf-8", "replace").strip()
    if text.startswith("{"):
        rows = _rows_of_json(text)
    elif 'NAME="' in text:
        rows = _rows_of_pairs(text)
    elif text.startswith(("sys ", "mpath ")):
        rows = _rows_of_sysfs(text)
    else:
        rows = None
    if rows is None:
        return _HANGS if exit_code in (124, 137, 143) else _NONE
    return _disks(rows)


def _rows_of_json(text: str) -> Rows | None:
    try:
        devices = json.loads(text)["blockdevices"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return [row for row in devices if isinstance(row, dict)] if isinstance(devices, list) else None


def _rows_of_pairs(text: str) -> Rows:
    """Flat rows as a tree of two levels: PKNAME names the parent, else the disk above is it."""
    rows: Rows = []
    by_name: dict[str, dict[str, Any]] = {}
    for line in text.split("\n")[:_MAX_DEVICES]:
        row: dict[str, Any] = {key.lower(): value for key, value in _PAIR.findall(line)}
        if row.get("type") == "disk" or (rows == [] and "name" in row):
            rows.append(row)
            by_name.setdefault(str(row.get("name")), row)
        elif rows:
            parent = by_name.get(str(row.get("pkname"))) or rows[-1]
            parent.setdefault("children", []).append(row)
    return rows


def _rows_of_sysfs(text: str) -> Rows:
    """Lines `sys <name> <sectors> <rotational> <model>` and `mpath <name> <path>…` of the loop."""
    rows: Rows = []
    maps: list[list[str]] = []
    for line in text.split("\n")[:_MAX_DEVICES]:
        words = line.split(None, 4)
        if words[:1] == ["mpath"]:
            maps.append(line.split()[1:])
        elif words[:1] == ["sys"] and len(words) >= 4 and is_digits(words[2]):
            size = int(words[2]) * _SECTOR_BYTES
            model = words[4] if len(words) > 4 else None
            rows.append(
                {
                    "name": words[1].replace("!", "/"),
                    "type": "disk",
                    "size": size,
                    "rota": words[3],
                    "model": model,
                }
            )
    for row in rows:
        row["children"] = [{"name": found[0], "type": "mpath"} for found in maps if row["name"] in found[1:]]
    return rows


def _disks(rows: Rows) -> tuple[BlockDevice, ...]:
    found: dict[str, BlockDevice] = {}
    maps: dict[str, str] = {}
    names = {str(row.get("name")) for row in rows}
    for row in rows[:_MAX_DEVICES]:
        disk = _read_disk(row, names)
        if disk is None or disk.name in found:
            continue
        children = _below(row)
        mapped = next((str(child.get("name")) for child in children if child.get("type") == "mpath"), None)
        if mapped is not None:
            if mapped in maps:
                continue
            maps[mapped] = disk.name
        mounts = {point: None for child in (row, *children) for point in _mounts(child)}
        found[disk.name] = replace(disk, mounts=tuple(mounts))
    return tuple(found.values())


def _read_disk(row: dict[str, Any], names: set[str]) -> BlockDevice | None:
    name, kind = row.get("name"), row.get("type", "disk")
    if not isinstance(name, str) or not name or kind != "disk" or _NO_DISK.match(name):
        return None
    path = _NVME_PATH.fullmatch(name)
    if path is not None and f"nvme{path[1]}{path[2]}" in names:
        return None
    size = row.get("size")
    if isinstance(size, str) and is_digits(size):
        size = int(size)
    if not isinstance(size, int) or isinstance(size, bool) or not 0 < size < 1 << 63:
        return None
    return BlockDevice(
        clean_text(name, 60),
        size,
        _is_rotational(row.get("rota")),
        _word(row.get("model")),
        _word(row.get("tran")),
    )


def _is_rotational(value: object) -> Maybe[bool]:
    """`true`, 1 and "1" are; "0" is not, though it is a text that is not empty."""
    return {"1": True, "true": True, "0": False, "false": False}.get(str(value).lower(), Unknown("not told"))


def _word(value: object) -> Maybe[str]:
    return (clean_text(value, 60) if isinstance(value, str) else "") or Unknown("not told")


def _below(row: dict[str, Any]) -> Rows:
    """Everything below a row, parts of parts included."""
    found: Rows = []
    queue: Rows = [row]
    while queue and len(found) < _MAX_DEVICES:
        children = queue.pop().get("children")
        inner = [child for child in children if isinstance(child, dict)] if isinstance(children, list) else []
        found += inner
        queue += inner
    return found


def _mounts(row: dict[str, Any]) -> list[str]:
    listed = row.get("mountpoints")
    points = listed if isinstance(listed, list) else [row.get("mountpoint")]
    return [clean_text(point) for point in points[:64] if isinstance(point, str) and point.strip()]
