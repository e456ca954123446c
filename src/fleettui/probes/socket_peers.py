"""Addresses of clients that are connected to a port (/proc/net/tcp, tcp6), read when one disturbs a drain.

Format: proc(5): hexadecimal words of 32 bit in the machine's byte order, here little-endian.
"""

from __future__ import annotations

import ipaddress

PEERS_COMMAND = "cat /proc/net/tcp /proc/net/tcp6"
ESTABLISHED = "01"
_MOST_ROWS = 20_000
_HEX = frozenset("0123456789ABCDEFabcdef")
ITSELF = "the machine itself"


def parse_peers(payload: bytes, port: int, ours: int = 0) -> tuple[str, ...]:
    """Addresses connected to that port, those with most connections first. `ours`: connections from the
    machine to itself that are our own."""
    counts: dict[str, int] = {}
    wanted = f"{port:04X}"
    for line in payload.decode("ascii", "replace").split("\n", _MOST_ROWS)[:_MOST_ROWS]:
        words = line.split(None, 4)
        if len(words) < 4 or words[3] != ESTABLISHED or words[1].upper().rpartition(":")[2] != wanted:
            continue
        address = _read_address(words[2].partition(":")[0])
        if address is not None:
            counts[address] = counts.get(address, 0) + 1
    if ITSELF in counts:
        counts[ITSELF] -= ours
    return tuple(
        sorted([name for name in counts if counts[name] > 0], key=lambda name: (-counts[name], name))
    )


def _read_address(word: str) -> str | None:
    if len(word) not in (8, 32) or not _HEX.issuperset(word):
        return None
    raw = b"".join(bytes.fromhex(word[at : at + 8])[::-1] for at in range(0, len(word), 8))
    address: ipaddress.IPv4Address | ipaddress.IPv6Address = (
        ipaddress.IPv4Address(raw) if len(raw) == 4 else ipaddress.IPv6Address(raw)
    )
    mapped = getattr(address, "ipv4_mapped", None)
    address = mapped or address
    return ITSELF if address.is_loopback else str(address)
