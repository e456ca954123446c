"""Who may ask, and how: hosts, origins, paths, methods, bodies, headers; slow clients."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from served import Served

from fleettui.serve import guard, http_server
from fleettui.serve.app import make_app
from fleettui.serve.guard import Guard, is_own_host, is_own_origin
from fleettui.serve.http_server import make_http_server
from fleettui.serve.listening import ListenError, Place, open_socket, parse_listen
from fleettui.serve.permission import Access


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:3038", "127.8.8.8", "localhost", "LOCALHOST:9", "[::1]", "[::1]:3038"]
)
def test_own_hosts(host: str) -> None:
    assert is_own_host(host)
    assert is_own_origin(f"http://{host}", host)
    assert is_own_origin(f"https://{host.upper()}", host), "behind what ends TLS"


@pytest.mark.parametrize(
    "host",
    [
        "", "evil.example", "evil.example:3038", "127.0.0.1.evil.example", "localhost.evil.example",
        "10.0.0.1",
        "0.0.0.0", "evil@127.0.0.1", "127.0.0.1:99999", "127.0.0.1:x", "127.0.0.1/x", "[::2]", "[::1", "::1",
        "127.0.0.1#evil", "localhost ", "2130706433",
    ],
)  # fmt: skip
def test_hosts_of_others(host: str) -> None:
    assert not is_own_host(host)
    assert not is_own_origin(f"http://{host}", "127.0.0.1:3038")


def test_origins_that_are_none() -> None:
    for text in ("null", "file://", "chrome-extension://localhost", "http://localhost:9", "localhost", ""):
        assert not is_own_origin(text, "localhost")


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Host": "evil.example"}, "wrong_host"),
        ({"Host": "evil.example:3038"}, "wrong_host"),
        ({"Origin": "http://evil.example"}, "wrong_origin"),
        ({"Origin": "null"}, "wrong_origin"),
        ({"Host": "localhost:3038", "Origin": "http://localhost:8080"}, "wrong_origin"),
    ],
)
def test_a_web_page_of_somebody_else_may_not_ask(served: Served, headers: dict[str, str], code: str) -> None:
    for path in ("/health", "/api/infrastructure", "/api/stream", "/no-such-address"):
        answer = served.ask(path, headers=headers)
        assert (answer.status, answer.json["error"]["code"]) == (403, code)
        assert "access-control-allow-origin" not in answer.headers


def test_through_a_tunnel_the_port_is_another_one(served: Served) -> None:
    assert served.ask("/health", headers={"Host": "localhost:9999"}).status == 200


def test_headers_of_every_answer(served: Served) -> None:
    for path in ("/health", "/nothing", "/api/route"):
        headers = served.ask(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in headers


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_but_reading(served: Served, method: str) -> None:
    answer = served.ask("/api/infrastructure", method)
    assert (answer.status, answer.json["error"]["code"]) == (405, "method")
    assert set(answer.headers["allow"].replace(" ", "").split(",")) == {"GET", "HEAD"}


@pytest.mark.parametrize(
    "path",
    [
        "/api/machines/../../../etc/passwd", "/api/machines/..%2f..%2f..%2fetc%2fpasswd", "/../etc/passwd",
        "/api/machines/%00", "/api/machines/ada%00", "/api//machines", "/api/machines/", "//evil.example/x",
        "/api/machines/ada.yaml", "/api/machines/%e2%82", "/API/machines", "/health/",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/api/machines;x=1", "/api/route/../machines", "/docs", "/favicon.ico", "/api/machines/" + "a" * 8000,
    ],
)  # fmt: skip
def test_paths_lead_nowhere_else(served: Served, path: str) -> None:
    answer = served.ask(path)
    assert answer.status == 404, answer.body
    error = answer.json["error"]
    assert error["code"] in ("not_found", "unknown_machine")
    assert len(answer.body) < 2000
    assert b"root:" not in answer.body
    assert "location" not in answer.headers


def talk(served: Served, request: bytes) -> bytes:
    """All that comes back until the server closes."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as connection:
        connection.sendall(request)
        received = bytearray()
        with suppress(ConnectionResetError):  # closed with more of ours unread
            while data := connection.recv(1 << 16):
                received += data
        return bytes(received)


def test_a_body_is_refused_before_it_is_read(served: Served) -> None:
    for header in (b"Content-Length: 1000000000", b"Transfer-Encoding: chunked", b"Content-Length: 5"):
        answer = talk(served, b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + header + b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b'"code":"body"' in answer


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 100_000 + b"\r\n\r\n",
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET /health HTTP/1.1\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n",
    ],
    ids=["long header", "long path", "TLS", "no host", "two hosts", "two lengths"],
)
def test_odd_requests_end_their_connection_only(served: Served, request_: bytes) -> None:
    answer = talk(served, request_)
    assert not answer or answer.startswith(b"HTTP/1.1 4")
    assert served.json("/health")["status"] == "ok"


def test_a_request_without_host_is_refused_in_http_1_0(served: Served) -> None:
    assert b" 403 " in talk(served, b"GET /health HTTP/1.0\r\n\r\n").splitlines()[0]
    assert talk(served, b"GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1.1 200 ")


# -- where to listen -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("127.0.0.1:3038", ("127.0.0.1", 3038)),
        ("[::1]:80", ("::1", 80)),
        ("localhost:0", ("localhost", 0)),
        ("8038", ("127.0.0.1", 8038)),
    ],
)
def test_listen_is_read(text: str, place: tuple[str, int]) -> None:
    assert parse_listen(text) == Place(*place)


@pytest.mark.parametrize("text", ["", ":3038", "localhost", "127.0.0.1:", "a:b", "::1:80", "h:70000", "h:-1"])
def test_listen_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no address to listen on"):
        parse_listen(text)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_beyond_loopback_nothing_listens(host: str) -> None:
    with pytest.raises(ListenError, match="from other machines") as caught:
        open_socket(Place(host, 0))
    assert "ssh -L" in " ".join(caught.value.hints)


async def test_small_answers_go_out_at_once() -> None:
    """Headers and body are two packets; the second must not wait for the client's ACK of the first."""
    delays: list[int] = []
    done = asyncio.Event()

    def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        delays.append(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()
        done.set()

    listener = open_socket(Place("127.0.0.1", 0))
    async with await asyncio.start_server(note, sock=listener):
        _, writer = await asyncio.open_connection("127.0.0.1", listener.getsockname()[1])
        await done.wait()
        writer.close()
    assert delays
    assert all(delays)


# -- slow clients, and defects, on a server in this process -----------------------------------------------


async def big(scope: object, receive: object, send: object) -> None:
    """64 MiB, or a defect."""
    assert isinstance(scope, dict)
    if scope["path"] == "/cancelled":  # as from a task that others wait for, too
        raise asyncio.CancelledError
    if scope["path"] == "/defect":
        raise RuntimeError("secret of a defect")
    await send({"type": "http.response.start", "status": 200, "headers": []})  # type: ignore[operator]
    for _ in range(1024):
        message = {"type": "http.response.body", "body": bytes(1 << 16), "more_body": True}
        await send(message)  # type: ignore[operator]
    await send({"type": "http.response.body", "body": b""})  # type: ignore[operator]


@pytest.fixture
async def port(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    monkeypatch.setattr(http_server, "REQUEST_S", 1.5)
    monkeypatch.setattr(http_server, "UNREAD_S", 0.3)
    listener = open_socket(Place("127.0.0.1", 0))
    server = make_http_server(Guard(big))  # type: ignore[arg-type]
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    yield listener.getsockname()[1]
    server.should_exit = True
    await serving


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: local"])
async def test_a_request_that_never_ends_is_not_waited_for(port: int, sent: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    async with asyncio.timeout(60):
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
    writer.close()


async def test_a_client_that_takes_nothing_is_let_go(port: int) -> None:
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, ("127.0.0.1", port))
        await loop.sock_sendall(client, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await asyncio.sleep(1.0)
        received, limit = 0, 64 << 20
        async with asyncio.timeout(60):
            with suppress(ConnectionResetError):
                while data := await loop.sock_recv(client, 1 << 20):
                    received += len(data)
        assert received < limit


async def test_too_many_requests_are_told_so(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "MAX_REQUESTS", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 1" in answer
    assert b'"code":"too_many_requests"' in answer


@pytest.mark.parametrize("path", [b"/defect", b"/cancelled"])
async def test_a_defect_is_logged_and_told_without_its_words(
    port: int, path: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 500 ")
    assert b'"code":"internal"' in answer
    assert b"secret" not in answer
    assert b"Traceback" not in answer
    assert f"GET {path.decode()} failed" in caplog.messages


async def test_who_is_not_answered_before_the_end_is_told_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(http_server, "GRACE_S", 0)
    listener = open_socket(Place("127.0.0.1", 0))
    began = asyncio.Event()

    async def endless(scope: object, receive: object, send: object) -> None:
        began.set()
        await asyncio.Event().wait()

    server = make_http_server(Guard(endless))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.getsockname()[1])
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await began.wait()
    server.should_exit = True
    await serving
    answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 503 "), "clients of ours ask others then"
    assert b'"code":"ending"' in answer
    assert not caplog.messages, "it is no defect"


async def test_a_defect_behind_an_address_is_json_too() -> None:
    async def look() -> None:
        raise RuntimeError("secret of a defect")

    door = SimpleNamespace(access=Access(), audit=None, own=SimpleNamespace(look=look))
    scope = {
        "type": "http", "method": "GET", "scheme": "http", "http_version": "1.1", "path": "/api/system",
        "raw_path": b"/api/system", "query_string": b"", "headers": [(b"host", b"localhost")],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 3038), "root_path": "",
    }  # fmt: skip
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    with pytest.raises(RuntimeError):  # for the log; the answer went out before
        await make_app(door)(scope, receive, send)  # type: ignore[arg-type]
    assert sent[0]["status"] == 500
    error = json.loads(sent[1]["body"])["error"]
    assert (error["code"], error["where"]) == ("internal", "/api/system")
    assert "secret" not in str(error)
