"""Whether addresses take a connection from here, all at once."""

from __future__ import annotations

import socket

from fleettui.fleet.reach import find_unreachable


def test_open_closed_and_nameless_addresses() -> None:
    with socket.socket() as closed, socket.create_server(("127.0.0.1", 0)) as listening:
        closed.bind(("127.0.0.1", 0))
        refused, taken = closed.getsockname(), listening.getsockname()
        nameless = ("no-such-host.invalid", 11434)
        found = find_unreachable([refused, taken, nameless, refused])
    assert set(found) == {refused, nameless}
    assert found[refused] == "connection refused"
    assert found[nameless].startswith("its name is not found")


def test_a_port_that_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        place = full.getsockname()
        fillers = [socket.socket() for _ in range(4)]
        try:
            for filler in fillers:  # the queue of connections that nobody takes is full
                filler.setblocking(False)
                filler.connect_ex(place)
            assert find_unreachable([place], connect_s=0.3) == {place: "no answer within 0.3 s"}
        finally:
            for filler in fillers:
                filler.close()


def test_nothing_to_try() -> None:
    assert find_unreachable([]) == {}
