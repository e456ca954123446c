"""What a server is started with: token files, TLS, the socket, and what would be open by mistake."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from served import SRC, Served

from fleettui.model.event import Event
from fleettui.serve.answers import ApiError
from fleettui.serve.audit import Audit
from fleettui.serve.guard import Guard
from fleettui.serve.listening import ListenError, Place
from fleettui.serve.permission import Access
from fleettui.serve.rates import KEPT_KEYS, Rate, client_key
from fleettui.serve.terms import Entrance, Terms
from fleettui.serve.tokens import TokenBook, TokenError, TokenFile, load_token, make_token_file
from fleettui.serve.unix_socket import OwnSocket

WAIT_S = 60.0
GOOD = "A1b2C3d4e5F6g7H8" * 3


def until(look: Callable[[], Any]) -> None:
    """Until it finds something."""
    deadline = time.monotonic() + WAIT_S
    while not look():
        assert time.monotonic() < deadline
        time.sleep(0.1)


# -- token files ------------------------------------------------------------------------------------------


def token_file(folder: Path, content: str | bytes = f"{GOOD}\n", mode: int = 0o600, name: str = "ops") -> str:
    path = folder / f"{name}.token"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize("content", [GOOD, f"{GOOD}\n", f"{GOOD}\r\n"])
def test_a_token_is_one_line(tmp_path: Path, content: str) -> None:
    assert load_token(token_file(tmp_path, content)) == GOOD


@pytest.mark.parametrize(
    "content",
    [
        "", "\n", "  \n", "short", "a" * 64, "abababab" * 8, f"{GOOD}\n\n", f"{GOOD}\n{GOOD}\n", f" {GOOD}",
        f"{GOOD} ", f"{GOOD}\0", f"ops {GOOD}", b"\xff" * 40, GOOD * 100,
    ],
)  # fmt: skip
def test_what_is_no_token_is_refused_without_showing_it(tmp_path: Path, content: str | bytes) -> None:
    with pytest.raises(TokenError) as caught:
        load_token(token_file(tmp_path, content))
    assert GOOD not in caught.value.text + " ".join(caught.value.hints)
    assert "--make-token" in " ".join(caught.value.hints)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o602, 0o620, 0o610])
def test_a_file_that_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(TokenError, match="others than its owner") as caught:
        load_token(token_file(tmp_path, mode=mode))
    assert f"chmod 600 {tmp_path}/ops.token" in caught.value.hints


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for path in (tmp_path / "none", tmp_path, tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(TokenError):
            load_token(str(path))


def test_tokens_are_followed(tmp_path: Path) -> None:
    now = [0.0]
    path = token_file(tmp_path)
    book = TokenBook([TokenFile(path, may_act=True)], lambda: now[0])
    found = book.find(GOOD)
    assert found is not None
    assert found.name == "ops"
    assert book.find(GOOD[:-1]) is None
    assert book.find("") is None
    other = GOOD[::-1]
    token_file(tmp_path, other)
    now[0] += 2
    assert book.find(GOOD) is None
    assert book.find(other) is not None
    for spoil in (lambda: Path(path).chmod(0o644), lambda: Path(path).unlink()):
        token_file(tmp_path, other)
        now[0] += 2
        assert book.find(other) is not None
        spoil()
        now[0] += 2
        assert book.find(other) is None
    token_file(tmp_path)
    token_file(tmp_path, name="ci")
    with pytest.raises(TokenError, match="same token"):
        TokenBook([TokenFile(path, may_act=True), TokenFile(str(tmp_path / "ci.token"), may_act=False)])


def test_rates() -> None:
    now = [0.0]
    rate = Rate(2.0, 3, lambda: now[0])
    assert [rate.take("a") for _ in range(3)] == [0.0] * 3
    assert rate.take("a") == pytest.approx(0.5)
    assert rate.take("b") == 0.0
    now[0] += 0.5
    assert rate.take("a") == 0.0
    assert rate.take("a") > 0
    for number in range(2 * KEPT_KEYS):
        rate.take(str(number))
    assert len(rate._left) == KEPT_KEYS


def test_refusals_are_told_now_and_then() -> None:
    told: list[Event] = []
    audit = Audit(told.append, clock=lambda: 1000.0)
    error = ApiError(401, "wrong_token", "refused", why="it has no token of this server\x1b[31m\n")
    for number in range(500):
        audit.note_refusal(f"server: somebody at 10.0.0.{number}", f"10.0.0.{number}", "a wrong token", error)
    assert 20 <= len(told) < 100
    assert all(event.text.isprintable() and event.machine == "" for event in told)
    audit.note("server: token ops", "ada", "maintenance on", 200, reason="x" * 5000)
    assert len(told[-1].text) <= 500, "what is done is always told"
    assert told[-1].by == "server: token ops"


@pytest.mark.parametrize(
    ("client", "key"),
    [
        (("10.0.0.5", 1), "10.0.0.5"),
        (("2001:db8:1:2:3:4:5:6", 1), "2001:db8:1:2::/64"),
        (("fe80::1%eth0", 1), "fe80::/64"),
        (("::ffff:10.0.0.5", 1), "10.0.0.5"),
        (None, ""),
    ],
)
def test_who_counts_as_one_client(client: tuple[str, int] | None, key: str) -> None:
    assert client_key({"client": client, "state": {}}) == key
    assert client_key({"client": None, "state": {"peer_uid": 7}}) == "uid 7"


# -- the socket -------------------------------------------------------------------------------------------


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = tmp_path / "own"
    folder.mkdir(mode=0o700)
    return folder


def test_a_socket_is_its_owners_and_goes_with_the_server(own: Path) -> None:
    path = own / "api.sock"
    first = OwnSocket(str(path))
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(ListenError, match="another server answers"):
        OwnSocket(str(path))
    first.listener.close()  # as a kill leaves it
    assert path.exists()
    second = OwnSocket(str(path))
    first.close()
    assert path.exists(), "it is another one's"
    second.close()
    second.close()
    assert not path.exists()


def test_what_is_no_socket_stays(own: Path) -> None:
    path = own / "api.sock"
    path.write_text("mine")
    with pytest.raises(ListenError, match="left as it is"):
        OwnSocket(str(path))
    path.unlink()
    path.symlink_to(own / "elsewhere")
    with pytest.raises(ListenError, match="left as it is"):
        OwnSocket(str(path))
    with pytest.raises(ListenError, match="bytes"):
        OwnSocket(str(own / ("x" * 200)))
    with pytest.raises(ListenError, match="its folder"):
        OwnSocket(str(own / "none" / "api.sock"))


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770, 0o702])
def test_a_folder_that_others_write_to_is_refused(own: Path, mode: int) -> None:
    own.chmod(mode)
    with pytest.raises(ListenError, match="others may write"):
        OwnSocket(str(own / "api.sock"))
    inner = own / "inner"
    inner.mkdir(mode=0o700)
    if not mode & 0o1000:  # nobody renames what is another's in a sticky folder
        with pytest.raises(ListenError, match="others may write"):
            OwnSocket(str(inner / "api.sock"))
    own.chmod(0o700)


# -- what would be open by mistake ------------------------------------------------------------------------


LOOPBACK, PUBLIC = Place("127.0.0.1", 0), Place("0.0.0.0", 0)


@pytest.mark.parametrize(
    ("terms", "text", "hint"),
    [
        (Terms(LOOPBACK, allows_actions=True), "nobody could prove", "--make-token"),
        (Terms(LOOPBACK, allows_actions=True, tokens=(TokenFile("x", may_act=False),)), "prove", "--socket"),
        (Terms(PUBLIC), "could read the fleet", "--make-token"),
        (Terms(Place("::", 0)), "could read the fleet", "ssh -L"),
        (Terms(PUBLIC, socket_path="/nowhere/x", goes_without_tls=True), "could read", "--read-token-file"),
        (Terms(PUBLIC, tokens=(TokenFile("x", may_act=False),)), "without TLS", "--without-tls"),
        (Terms(None), "nobody could ask", "--socket"),
        (Terms(LOOPBACK, tls_cert="x"), "belong together", "both"),
        (Terms(LOOPBACK, tls_cert="/none", tls_key="/none"), "/none", ""),
        (Terms(LOOPBACK, tokens=(TokenFile("/none/x", may_act=False),)), "/none/x", "--make-token"),
    ],
)
def test_nothing_opens_by_mistake(terms: Terms, text: str, hint: str) -> None:
    with pytest.raises(ListenError, match=text) as caught:
        Entrance(terms)
    assert hint in " ".join(caught.value.hints)


def test_a_key_that_everybody_may_read_is_refused(tmp_path: Path) -> None:
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    make_certificate(key, cert)
    key.chmod(0o644)
    with pytest.raises(ListenError, match="0644"):
        Entrance(Terms(LOOPBACK, tls_cert=str(cert), tls_key=str(key)))
    key.chmod(0o600)
    cert.write_text("nothing")
    with pytest.raises(ListenError, match="tls-cert"):
        Entrance(Terms(LOOPBACK, tls_cert=str(cert), tls_key=str(key)))


def test_renewed_certificates_are_taken_up(tmp_path: Path) -> None:
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    make_certificate(key, cert)
    entrance = Entrance(Terms(LOOPBACK, tls_cert=str(cert), tls_key=str(key)))
    try:
        assert entrance.tls is not None
        assert entrance.places[0].startswith("https://127.0.0.1:")
        old = cert.read_bytes()
        cert.write_text("half written")
        entrance.tls.follow()  # told, and the old one stays
        make_certificate(key, cert)
        assert cert.read_bytes() != old
        entrance.tls.follow()
    finally:
        entrance.close()


def start(tmp_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "machines").mkdir(exist_ok=True)
    folders = ("--machines", str(tmp_path / "machines"), "--state-dir", str(tmp_path / "state"))
    return subprocess.run(
        [sys.executable, "-m", "fleettui", "serve", *options, *folders],
        env={**os.environ, "PYTHONPATH": SRC}, cwd="/", stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip


def test_a_token_is_made_once(tmp_path: Path) -> None:
    path = tmp_path / "ops.token"
    done = start(tmp_path, "--make-token", str(path))
    assert (done.returncode, done.stdout) == (0, "")
    token = path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert re.fullmatch(r"[\w-]{43}\n", token)
    assert token.strip() not in done.stderr
    again = start(tmp_path, "--make-token", str(path))
    assert (again.returncode, path.read_text()) == (2, token)
    assert "is there already" in again.stderr


def test_readonly_allows_no_actions(tmp_path: Path) -> None:
    done = start(tmp_path, "--allow-actions", "--socket", str(tmp_path / "s"), "--readonly")
    assert done.returncode == 2
    assert "--readonly" in done.stderr


def test_beyond_loopback_every_answer_takes_the_token(tmp_path: Path) -> None:
    make_token_file(str(tmp_path / "team.token"))
    (tmp_path / "machines").mkdir()
    folders = ("--machines", str(tmp_path / "machines"), "--state-dir", str(tmp_path / "state"))
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    make_certificate(key, cert)
    options = (
        "--read-token-file", str(tmp_path / "team.token"), "--host-name", "fleet.example",
        "--tls-cert", str(cert), "--tls-key", str(key),
    )  # fmt: skip
    with Served(tmp_path / "stderr", {}, *folders, *options, listen="0.0.0.0:0", scheme="https") as served:
        trust = ssl.create_default_context(cafile=str(cert))

        def ask(path: str, **headers: str) -> tuple[int, Any]:
            connection = http.client.HTTPSConnection("localhost", served.port, timeout=WAIT_S, context=trust)
            try:
                connection.request("GET", path, headers=headers)
                answer = connection.getresponse()
                return answer.status, json.loads(answer.read())
            finally:
                connection.close()

        right = {"Authorization": f"Bearer {(tmp_path / 'team.token').read_text().strip()}"}
        for path in ("/health", "/api/machines", "/api/stream", "/api/openapi.json", "/nothing"):
            status, document = ask(path)
            assert (status, document["error"]["code"]) == (401, "token"), path
        assert ask("/health", **right)[0] == 200
        assert ask("/health", Host="fleet.example:3038", **right)[0] == 200
        assert ask("/health", Host="127.0.0.1", **right)[0] == 200
        for host in ("evil.example", "fleet.example.evil.example", "192.0.2.1"):
            assert ask("/health", Host=host, **right)[1]["error"]["code"] == "wrong_host"
        (tmp_path / "team.token").chmod(0o644)
        until(lambda: ask("/health", **right)[0] in (401, 429))
        assert "others than its owner" in served.log.read_text()
        with socket.create_connection(("127.0.0.1", served.port), timeout=WAIT_S) as plain:
            plain.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            with suppress(ConnectionError):
                assert b"200" not in plain.recv(1 << 16)


def make_certificate(key: Path, cert: Path) -> None:
    """For localhost, signed by itself."""
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(private, hashes.SHA256())
    )
    key.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    key.chmod(0o600)
    cert.write_bytes(made.public_bytes(serialization.Encoding.PEM))


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        ("10.0.0.5", True), ("10.0.0.5:3038", True), ("10.0.0.6", False), ("fleet.example", True),
        ("FLEET.example:80", True), ("x.fleet.example", False), ("10.0.0.5.evil.example", False),
        ("[::ffff:10.0.0.5]", True), ("[fe80::1]", False), ("localhost", True), ("167772165", False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("server", ["10.0.0.5", "::ffff:10.0.0.5"])
def test_by_which_names_it_is_asked(server: str, host: str, is_own: bool) -> None:
    guard = Guard(lambda *_: None, Access(host_names=["fleet.example"]))  # type: ignore[arg-type,return-value]
    assert guard._is_own(host, {"server": (server, 3038)}) == is_own
