"""TCP servers of a machine (/proc/net/tcp, tcp6, counted there) and processes that may serve models.

Format: proc(5), `/proc/net/tcp`: addresses are hexadecimal words of 32 bit in the machine's byte order, here
little-endian; what a line is: `loops_sockets`.
"""

from __future__ import annotations

from collections.abc import Callable

from fleettui.model.record import replace
from fleettui.model.sockets import ListeningPort, ServerProcess, SocketsReading
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.clean import clean_text
from fleettui.probes.loops_sockets import COMMAND_KEPT, LISTENING_KEPT, SERVERS_KEPT
from fleettui.probes.numbers import is_digits

_HEX = frozenset("0123456789ABCDEFabcdef")


def parse_sockets(payload: bytes) -> Maybe[SocketsReading]:
    """Listening ports with the established connections of each; Unknown where nothing was counted.

    A port that listens on several addresses is one; its connections are the same number on each line.
    """
    ports: dict[int, tuple[bool, int]] = {}
    listed, told = 0, -1
    is_cut = False
    for line in payload.decode("ascii", "replace").split("\n", LISTENING_KEPT + 8):
        words = line.split()
        if len(words) == 1 and is_digits(words[0]):
            told = max(told, int(words[0]))
        elif words == ["more"]:
            is_cut = True
        elif len(words) == 2 and is_digits(words[1]):
            found = _read_local(words[0])
            if found is None:
                continue
            listed += 1
            port, is_loopback = found
            before = ports.get(port, (True, 0))
            ports[port] = (before[0] and is_loopback, max(before[1], int(words[1])))
    if not ports and told < 0:
        return Unknown("no list of sockets")
    listening = tuple(ListeningPort(port, *ports[port]) for port in sorted(ports))
    return SocketsReading(listening, is_cut or told > listed)


def with_ours(reading: SocketsReading, count: Callable[[int], int]) -> SocketsReading:
    """The reading with the connections that we hold open ourselves to each port, as `count` has them."""
    ours = {item.port: min(count(item.port), item.connections) for item in reading.listening}
    if not any(ours.values()):
        return reading
    return replace(
        reading, listening=tuple(replace(item, ours=ours[item.port]) for item in reading.listening)
    )


def _read_local(word: str) -> tuple[int, bool] | None:
    """Port of a local address, and whether that is a loopback address."""
    address, _, port = word.partition(":")
    if len(address) not in (8, 32) or len(port) != 4 or not _HEX.issuperset(address + port):
        return None
    address = address.upper()
    is_loopback = (
        address[6:] == "7F"
        if len(address) == 8
        else address == "00000000000000000000000001000000"
        or (address[:24] == "0000000000000000FFFF0000" and address[30:] == "7F")
    )
    number = int(port, 16)
    return (number, is_loopback) if number else None


def parse_servers(payload: bytes) -> tuple[ServerProcess, ...]:
    """The processes in rows of `ps -o pid= -o ppid= -o args=`, in the order of ps."""
    found: list[ServerProcess] = []
    for line in payload.decode("utf-8", "replace").split("\n", SERVERS_KEPT)[:SERVERS_KEPT]:
        words = line.split(None, 2)
        if len(words) == 3 and is_digits(words[0]) and is_digits(words[1]):
            found.append(ServerProcess(int(words[0]), int(words[1]), clean_text(words[2], COMMAND_KEPT)))
    return tuple(found)
