"""Questions to a server: what goes out, what is said when nothing usable comes back."""

from __future__ import annotations

import datetime
import ipaddress
import os
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from fleettui.fleet.attached.asking import ask_bytes, ask_document, quoted
from fleettui.fleet.attached.reading import fetch_fleet
from fleettui.model.server_place import ServerAccess, read_server_place
from fleettui.net.server_client import ServerError, absent, read_token

TOKEN = "kT3-" + "x9_" * 13


def answer_of(body: bytes, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


@contextmanager
def answering(
    answer: bytes, listener: socket.socket, tls: ssl.SSLContext | None = None
) -> Iterator[list[bytes]]:
    """Whoever comes gets that answer; what they asked is collected."""
    asked: list[bytes] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            try:
                if tls is not None:
                    connection = tls.wrap_socket(connection, server_side=True)
                data = b""
                while b"\r\n\r\n" not in data:
                    piece = connection.recv(65_536)
                    if not piece:
                        break
                    data += piece
                asked.append(data)
                connection.sendall(answer)
            except OSError:
                pass
            finally:
                connection.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield asked
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(30)


@contextmanager
def at_port(answer: bytes, tls: ssl.SSLContext | None = None) -> Iterator[tuple[int, list[bytes]]]:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    with answering(answer, listener, tls) as asked:
        yield port, asked


def access_to(text: str) -> ServerAccess:
    return ServerAccess(read_server_place(text))


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    path.chmod(0o600)
    return path


def test_a_question_and_its_answer(token_file: Path) -> None:
    with at_port(answer_of(b'{"a": [1, null]}\n')) as (port, asked):
        access = ServerAccess(read_server_place(f"http://127.0.0.1:{port}/fleet"), str(token_file))
        assert ask_document(access, "/api/x", [("model", "ü&b c"), ("top", 3)]) == {"a": [1, None]}
    (request,) = asked
    lines = request.decode().split("\r\n")
    assert lines[0] == "GET /fleet/api/x?model=%C3%BC%26b%20c&top=3 HTTP/1.1"
    assert f"Host: 127.0.0.1:{port}" in lines
    assert f"Authorization: Bearer {TOKEN}" in lines


def test_without_a_token_nothing_is_said_of_one(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    with answering(answer_of(b"{}"), listener) as asked:
        assert ask_document(access_to(f"unix:{path}"), "/health") == {}
    assert asked[0].startswith(b"GET /health HTTP/1.1\r\nHost: localhost\r\n")
    assert b"Authorization" not in asked[0]


def failure(access: ServerAccess, timeout_s: float = 30.0) -> ServerError:
    with pytest.raises(ServerError) as caught:
        ask_bytes(access, "/health", timeout_s=timeout_s)
    assert TOKEN not in f"{caught.value.text} {caught.value.hints}"
    return caught.value


def test_nobody_there(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        silent = failure(access_to(f"http://127.0.0.1:{port}"), timeout_s=0.2)
        assert silent.is_absent
        assert silent.text == f"the server http://127.0.0.1:{port} cannot be reached: no answer within 0.2 s"
    gone = failure(access_to(f"http://127.0.0.1:{port}"))
    assert gone.is_absent
    assert gone.text == f"the server http://127.0.0.1:{port} cannot be reached: Connection refused"
    assert "No such file" in failure(access_to(f"unix:{tmp_path}/none")).text


def test_a_server_that_ends_while_it_answers() -> None:
    """It is away, and no stranger: whoever follows it asks again."""
    for part in (b"", b"HTTP/1.1 200 OK\r\n", answer_of(b"{}")[:-1]):
        with at_port(part) as (port, _):
            error = failure(access_to(f"http://127.0.0.1:{port}"))
        assert "cannot be reached: closed " in error.text
        assert error.is_absent
    ended = absent(read_server_place("https://jump.lan"), ssl.SSLEOFError(8, "EOF occurred"), 5.0)
    assert ended.text == "the server https://jump.lan cannot be reached: EOF occurred"
    assert ended.is_absent


def test_somebody_else_there() -> None:
    for answer in (
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        answer_of(b"<html>", "302 Found"),
        answer_of(b"", "500 x"),
        answer_of(b"{}", "404 x"),
    ):
        with at_port(answer) as (port, _):
            error = failure(access_to(f"http://127.0.0.1:{port}"))
        assert f"what answers at http://127.0.0.1:{port} is no fleettui server" in error.text
        assert not error.is_absent


@pytest.mark.parametrize(
    ("status", "body", "said", "is_absent"),
    [
        ("401 x", b'{"error": {"code": "token", "what": "no", "why": "w"}}', "refuses: no: w", False),
        ("503 x", b'{"error": {"code": "many", "what": "many", "next": "later"}}', ": many", True),
        ("429 x", b'{"error": {"code": "many", "what": "many", "next": "later"}}', ": many", True),
        ("503 x", b"Service Unavailable", "cannot answer now: status 503", True),
        ("502 x", b"<html>", "cannot answer now: status 502", True),
        ("403 x", b'{"error": {"code": "x", "what": "a\\u001b[2Jb\\nc"}}', "refuses: ab c", False),
        ("404 x", b'{"error": {"code": "not_found", "what": "x"}}', "of another version", False),
    ],
)
def test_the_servers_own_words(status: str, body: bytes, said: str, is_absent: bool) -> None:
    with at_port(answer_of(body, status)) as (port, _):
        error = failure(access_to(f"http://127.0.0.1:{port}"))
    assert said in error.text
    assert error.is_absent == is_absent
    assert ("server_token_file" in str(error.hints)) == (status == "401 x")


def test_a_server_of_another_version() -> None:
    with (
        at_port(answer_of(b"fleettui 99.9 0000000000000000\nx")) as (port, _),
        pytest.raises(ServerError) as caught,
    ):
        fetch_fleet(access_to(f"http://127.0.0.1:{port}"))
    assert "is fleettui 99.9 and this is " in caught.value.text
    assert "--standalone" in str(caught.value.hints)


# -- the token -------------------------------------------------------------------------------------------


def test_a_token_never_crosses_a_network_in_the_clear(token_file: Path) -> None:
    error = failure(ServerAccess(read_server_place("http://jump.invalid:3038"), str(token_file)))
    assert "would cross the network for all to read" in error.text
    assert "https" in error.hints[0]


def test_a_token_that_others_may_read(token_file: Path) -> None:
    assert read_token(str(token_file)) == TOKEN
    for mode in (0o640, 0o604, 0o620, 0o601):
        token_file.chmod(mode)
        with pytest.raises(ServerError) as caught:
            read_token(str(token_file))
        assert "others than you" in caught.value.text
        assert caught.value.hints == (f"chmod 600 {token_file}",)


@pytest.mark.parametrize("content", [b"", b"\n", b"two words", b"a\nb\n", b"\xff", b"x" * 5000])
def test_what_is_no_token(token_file: Path, content: bytes) -> None:
    token_file.write_bytes(content)
    with pytest.raises(ServerError, match="does not hold one line"):
        read_token(str(token_file))


def test_no_token_file(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="No such file"):
        read_token(str(tmp_path / "none"))
    os.mkfifo(tmp_path / "pipe", 0o600)
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(ServerError, match="is no regular file"):
            read_token(str(path))


# -- TLS -------------------------------------------------------------------------------------------------


def make_certificate(folder: Path, address: str) -> tuple[Path, Path]:
    """A certificate that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    own_address = x509.IPAddress(ipaddress.ip_address(address))
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fleettui test")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([own_address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    paths = folder / "cert.pem", folder / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return paths


def test_tls_is_always_verified(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path, "127.0.0.1")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with at_port(answer_of(b"{}"), tls) as (port, asked):
        place = read_server_place(f"https://127.0.0.1:{port}")
        assert ask_document(ServerAccess(place, ca_file=str(certificate)), "/health") == {}
        unknown = failure(ServerAccess(place))
        other_name = failure(
            ServerAccess(read_server_place(f"https://localhost:{port}"), ca_file=str(certificate))
        )
        plain = failure(access_to(f"http://127.0.0.1:{port}"), timeout_s=0.5)
        no_file = failure(ServerAccess(place, ca_file=str(tmp_path / "none")))
    assert len(asked) == 1
    assert no_file.text == f"server_ca_file: {tmp_path}/none: No such file or directory"
    assert "is not trusted" in unknown.text
    assert "server_ca_file" in unknown.hints[0]
    assert "is not trusted: Hostname mismatch" in other_name.text
    assert "cannot be reached" in plain.text or "no fleettui server" in plain.text


def test_tls_where_none_is_spoken() -> None:
    with at_port(answer_of(b"{}")) as (port, _):
        error = failure(access_to(f"https://127.0.0.1:{port}"), timeout_s=0.5)
    assert f"https://127.0.0.1:{port}" in error.text


def test_quoting() -> None:
    assert quoted("a b/ü+&=:~") == "a%20b%2F%C3%BC%2B%26%3D%3A~"
