"""HTTP GETs through SSH, on this machine, and straight: kept streams, refusals, limits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable

import asyncssh
import psutil
import pytest
from links import ECHO_LOOP, Lines, open_link, until
from sshd_rig import OllamaStandIn, SshdRig, black_hole, free_port

from fleettui.model.machine import Machine, SshSettings
from fleettui.net import tunnel
from fleettui.net.connector import Connector
from fleettui.net.direct_http import DirectHttp, get_direct, post_direct
from fleettui.net.errors import HttpFailure, LinkError
from fleettui.net.link import Link
from fleettui.net.local_link import LocalLink

Connect = Callable[..., Connector]


@pytest.fixture(params=["ssh", "local"])
async def link(request: pytest.FixtureRequest, sshd_rig: SshdRig, connect: Connect) -> AsyncIterator[Link]:
    """An open link, over SSH and to this machine: the same GETs."""
    if request.param == "local":
        opened: Link = LocalLink("ada")
        await opened.open(print)
    else:
        opened, _ = await open_link(connect(), sshd_rig.machine(sshd_rig.start()))
    yield opened
    await opened.close()


async def failure(link: Link, port: int, path: str = "/api/ps", timeout_s: float = 5) -> HttpFailure:
    with pytest.raises(HttpFailure) as caught:
        await link.get(port, path, timeout_s=timeout_s)
    return caught.value


async def test_one_stream_is_kept_for_all_gets(sshd_rig: SshdRig, link: Link) -> None:
    engine = sshd_rig.ollama()
    for _ in range(5):
        answer = await link.get(engine.port, "/api/version", timeout_s=5)
    assert (answer.status, json.loads(answer.body)) == (200, {"version": "0.12.3"})
    assert answer.header("content-type") == "application/json"
    assert (await link.get(engine.port, "/nothing", timeout_s=5)).status == 404
    assert (len(engine.requests), engine.connections) == (6, 1)


async def test_a_stream_that_the_engine_closed_is_opened_again(sshd_rig: SshdRig, link: Link) -> None:
    engine = sshd_rig.ollama()
    engine.close_after_answer = True
    for number in range(1, 5):
        assert (await link.get(engine.port, "/api/ps", timeout_s=5)).status == 200
        assert engine.connections == number


async def test_chunked_and_large_answers(sshd_rig: SshdRig, link: Link) -> None:
    engine = sshd_rig.ollama()
    engine.answers["/api/tags"] = b"x" * 1_000_000
    assert (await link.get(engine.port, "/api/tags", timeout_s=10)).body == b"x" * 1_000_000
    engine.is_chunked = True
    engine.answers["/api/ps"] = {"models": ["m" * 100]}
    for _ in range(2):
        answer = await link.get(engine.port, "/api/ps", timeout_s=5)
        assert json.loads(answer.body) == {"models": ["m" * 100]}
    assert engine.connections == 1


async def test_a_post_is_sent_once_on_a_stream_of_its_own(sshd_rig: SshdRig, link: Link) -> None:
    engine = sshd_rig.ollama()
    await link.get(engine.port, "/api/ps", timeout_s=5)
    engine.answers["/api/show"] = b"x" * ((8 << 20) + 1)
    sent = b'{"model":"gl\xc3\xa4nzend"}'
    answer = await link.post(engine.port, "/api/show", sent, timeout_s=10, max_body_bytes=9 << 20)
    assert (answer.status, len(answer.body)) == (200, (8 << 20) + 1)
    assert engine.posted == [("/api/show", sent)]
    with pytest.raises(HttpFailure, match="bytes") as caught:
        await link.post(engine.port, "/api/show", sent, timeout_s=10)
    assert caught.value.kind == "too_large"
    engine.gate.clear()
    with pytest.raises(HttpFailure, match="no answer within"):
        await link.post(engine.port, "/api/show", sent, timeout_s=0.3)
    engine.gate.set()
    assert len(engine.posted) == 3
    assert (await link.get(engine.port, "/api/ps", timeout_s=5)).status == 200
    assert engine.connections == 4


async def test_a_post_straight_to_an_engine(sshd_rig: SshdRig) -> None:
    engine = sshd_rig.ollama()
    engine.answers["/api/show"] = {"model_info": {}}
    url = f"http://127.0.0.1:{engine.port}/api/show"
    assert (await post_direct(url, b"{}", timeout_s=5)).body == b'{"model_info": {}}'
    assert engine.posted == [("/api/show", b"{}")]
    with pytest.raises(HttpFailure, match="more than 4 bytes"):
        await post_direct(url, b"{}", timeout_s=5, max_body_bytes=4)


async def test_too_large_an_answer_is_refused(sshd_rig: SshdRig, link: Link) -> None:
    engine = sshd_rig.ollama()
    engine.answers["/api/tags"] = b"x" * ((8 << 20) + 1)
    assert (await failure(link, engine.port, "/api/tags")).kind == "too_large"
    assert (await link.get(engine.port, "/api/ps", timeout_s=5)).status == 200


class Spiteful(asyncssh.SSHServer):
    """Lets everybody in and refuses channels with words that a terminal would obey."""

    WORDS = "no\x1b[2J\x1b]0;owned\x07 way\nin"

    def begin_auth(self, username: str) -> bool:
        return False

    def session_requested(self) -> bool:
        raise asyncssh.ChannelOpenError(asyncssh.OPEN_RESOURCE_SHORTAGE, self.WORDS)

    def connection_requested(self, *_: object) -> bool:
        raise asyncssh.ChannelOpenError(asyncssh.OPEN_RESOURCE_SHORTAGE, self.WORDS)


async def test_a_servers_reasons_are_cleaned(sshd_rig: SshdRig, connect: Connect) -> None:
    key = asyncssh.generate_private_key("ssh-ed25519")
    server = await asyncssh.create_server(Spiteful, "127.0.0.1", 0, server_host_keys=[key])
    port = server.sockets[0].getsockname()[1]
    sshd_rig.known_hosts.write_text(f"[127.0.0.1]:{port} {key.export_public_key().decode().strip()}\n")
    link, _ = await open_link(connect(), Machine("ada", "r", "127.0.0.1", ssh=SshSettings(port=port)))
    refused = await failure(link, 11434)
    assert refused.text == "127.0.0.1: the server opens no tunnel (no way in)"
    with pytest.raises(LinkError, match=r"refused to run a command \(no way in\)"):
        await link.open_loop(ECHO_LOOP, print, print)
    await link.close()
    server.close()


async def test_closing_drops_a_get_that_is_under_way(sshd_rig: SshdRig, link: Link) -> None:
    engine = sshd_rig.ollama()
    await link.get(engine.port, "/api/ps", timeout_s=5)
    engine.gate.clear()
    answers: list[object] = []
    assert link.start_get(engine.port, "/api/ps", answers.append, 30)
    await until(lambda: len(engine.requests) == 2)
    await link.close()
    await until(lambda: engine.port not in connected_ports(), 5)
    engine.gate.set()
    assert answers == []


def connected_ports() -> set[int]:
    """To which this process has a connection."""
    return {found.raddr.port for found in psutil.Process().net_connections("tcp") if found.raddr}


async def test_nobody_listens(link: Link) -> None:
    port = free_port("127.0.0.1")
    error = await failure(link, port)
    assert error.kind == "refused"
    assert f"nothing listens on port {port}" in error.text


async def test_an_engine_on_the_ipv6_loopback_only(sshd_rig: SshdRig, link: Link) -> None:
    try:
        engine = sshd_rig.ollama("::1")
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    for _ in range(3):
        assert (await link.get(engine.port, "/api/ps", timeout_s=5)).status == 200
    assert engine.connections == 1


async def test_an_engine_on_the_machines_own_address_only(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start()
    engine = OllamaStandIn(server.address)
    try:
        opened, _ = await open_link(connect(), sshd_rig.machine(server))
        for _ in range(3):
            assert (await opened.get(engine.port, "/api/ps", timeout_s=5)).status == 200
        assert engine.connections == 1
        await opened.close()
    finally:
        engine.close()


async def test_an_engine_that_is_down_is_refused_whatever_its_own_address_does(
    sshd_rig: SshdRig, connect: Connect
) -> None:
    server = sshd_rig.start()
    with black_hole(server.address) as port:
        opened, _ = await open_link(connect(), sshd_rig.machine(server))
        for _ in range(2):
            assert (await failure(opened, port, timeout_s=4)).kind == "refused"
        assert server.log_text().count(f"direct-tcpip to {server.address}") <= 1
        await opened.close()


async def test_a_slow_answer_times_out_and_delays_no_other(sshd_rig: SshdRig, link: Link) -> None:
    engine = sshd_rig.ollama()
    engine.gate.clear()
    slow = asyncio.ensure_future(failure(link, engine.port, "/api/tags", timeout_s=0.5))
    await until(lambda: engine.requests)
    other = asyncio.ensure_future(link.get(engine.port, "/api/ps", timeout_s=5))
    await until(lambda: engine.connections == 2)
    error = await slow
    assert error.kind == "timeout"
    assert "no answer within 0.5 s" in error.text
    engine.gate.set()
    assert (await other).status == 200


async def test_what_is_no_http_is_a_protocol_error(link: Link) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"-ERR unknown command\r\n\r\n")
        await writer.drain()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    assert (await failure(link, port)).kind == "protocol"
    server.close()


async def test_an_answer_cut_short_is_lost(link: Link) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    error = await failure(link, server.sockets[0].getsockname()[1])
    assert (error.kind, "middle of the answer" in error.text) == ("lost", True)
    server.close()


@pytest.mark.parametrize("options", [{"AllowTcpForwarding": "no"}, {"PermitOpen": "127.0.0.1:1"}])
async def test_refused_forwarding_leaves_the_shell_alone(
    sshd_rig: SshdRig, connect: Connect, options: dict[str, str]
) -> None:
    server = sshd_rig.start(options=options)
    engine = sshd_rig.ollama()
    opened, losses = await open_link(connect(), sshd_rig.machine(server))
    error = await failure(opened, engine.port)
    assert error.kind == "forbidden"
    assert "forwarding is not allowed" in error.text
    lines = await Lines().open(opened)
    await lines.ask(b"1\n", b"got 1\n")
    assert losses == []
    await opened.close()


async def test_max_sessions_does_not_count_tunnels(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start(options={"MaxSessions": "1"})
    engine = sshd_rig.ollama()
    opened, _ = await open_link(connect(), sshd_rig.machine(server))
    await Lines().open(opened)
    assert (await opened.get(engine.port, "/api/ps", timeout_s=5)).status == 200
    await opened.close()


async def test_a_get_on_a_dying_link_is_lost(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start()
    engine = sshd_rig.ollama()
    opened, losses = await open_link(connect(), sshd_rig.machine(server))
    engine.gate.clear()
    asking = asyncio.ensure_future(failure(opened, engine.port))
    await until(lambda: engine.requests)
    server.kill()
    assert (await asking).kind == "lost"
    await until(lambda: losses)
    assert (await failure(opened, engine.port)).kind == "lost"
    engine.gate.set()
    await opened.close()


async def test_http_straight_to_an_engine(sshd_rig: SshdRig, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = sshd_rig.ollama()
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    direct = DirectHttp()
    url = f"http://127.0.0.1:{engine.port}"
    for _ in range(3):
        answer = await direct.get(f"{url}/api/version", timeout_s=5)
    assert (answer.status, json.loads(answer.body)) == (200, {"version": "0.12.3"})
    assert engine.connections == 1
    engine.answers["/api/tags"] = b"x" * ((8 << 20) + 1)
    kinds = []
    for path in ("/api/tags", "/api/ps"):
        if path == "/api/ps":
            engine.gate.clear()
        with pytest.raises(HttpFailure) as caught:
            await direct.get(url + path, timeout_s=0.5 if path == "/api/ps" else 10)
        kinds.append(caught.value.kind)
    engine.gate.set()
    assert kinds == ["too_large", "timeout"]
    await direct.close()
    for bad, kind in ((f"http://127.0.0.1:{free_port('127.0.0.1')}/", "refused"), ("ftp://x/", "protocol")):
        with pytest.raises(HttpFailure) as caught:
            await get_direct(bad, timeout_s=5)
        assert caught.value.kind == kind


async def test_a_redirect_is_not_followed() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    answered = await get_direct(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", timeout_s=5)
    assert answered.status == 302
    server.close()


async def test_our_own_streams_are_counted_and_a_moment_longer(
    sshd_rig: SshdRig, link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    ollama = sshd_rig.ollama()
    assert link.count_streams(ollama.port) == 0
    await asyncio.gather(*(link.get(ollama.port, "/api/ps", timeout_s=5) for _ in range(3)))
    assert link.count_streams(ollama.port) == 3  # two of them have ended: the machine may have seen them
    monkeypatch.setattr(tunnel, "COUNTED_AFTER_S", 0.0)
    assert link.count_streams(ollama.port) == 1
    await failure(link, free_port("127.0.0.1"))
    assert link.count_streams(ollama.port) == 1
