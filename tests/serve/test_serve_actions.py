"""What changes the fleet by POST: who may, what happens, what stands in the timeline, and what is refused."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from served import Answer, Served

from fleettui.demo.launcher import DemoFleet
from fleettui.serve.tokens import make_token_file

WAIT_S = 60.0
PENDING = "cleo"


@dataclass
class Acting:
    """A server that takes changes, and what lets one in."""

    served: Served
    folder: Path
    token: str
    reader: str

    def post(self, path: str, body: Any = None, *, method: str = "POST", **headers: str) -> Answer:
        """With the acting token, unless `authorization` says otherwise; JSON, unless the body is bytes."""
        sent = {"content-type": "application/json", "authorization": f"Bearer {self.token}", **headers}
        data = body if isinstance(body, bytes) else json.dumps({} if body is None else body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.served.port, timeout=WAIT_S)
        try:
            connection.request(
                method,
                path,
                data if method == "POST" else None,
                {name: text for name, text in sent.items() if text},
            )
            answer = connection.getresponse()
            return Answer(
                answer.status, {name.lower(): text for name, text in answer.getheaders()}, answer.read()
            )
        finally:
            connection.close()

    def events(self, text: str) -> list[dict[str, Any]]:
        """Action events whose text has that, once there is one."""

        def find() -> list[dict[str, Any]]:
            events = self.served.json("/api/events", kind="action")["events"]
            return [event for event in events if text in event["text"]]

        return until(find)

    def machine(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.served.json(f"/api/machines/{name}")
        return found


def until(look: Callable[[], Any]) -> Any:
    """What it finds, once it finds something."""
    deadline = time.monotonic() + WAIT_S
    while not (found := look()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return found


@pytest.fixture(scope="module")
def acting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acting]:
    folder = tmp_path_factory.mktemp("acting")
    folder.chmod(0o700)
    for name in ("ops", "prometheus"):
        make_token_file(str(folder / f"{name}.token"))
    options = (
        "--allow-actions", "--token-file", str(folder / "ops.token"),
        "--read-token-file", str(folder / "prometheus.token"), "--socket", str(folder / "api.sock"),
    )  # fmt: skip
    with (
        DemoFleet(machines=6, seed=7, is_calm=True, arguments=["--pending", PENDING]) as fleet,
        Served(folder / "stderr", fleet.environment, *options) as served,
    ):
        tokens = [(folder / f"{name}.token").read_text().strip() for name in ("ops", "prometheus")]
        acting = Acting(served, folder, *tokens)
        served.json("/api/route", model="llama3.1:70b")  # answered when every machine has
        yield acting
        said = (folder / "stderr").read_text()
        assert not any(token in said for token in tokens)


# -- who may ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("authorization", "status", "code"),
    [
        ("", 401, "token"),
        ("Bearer", 401, "wrong_token"),
        ("Bearer " + "A1b2C3d4e5" * 4, 401, "wrong_token"),
        ("Bearer {token}x", 401, "wrong_token"),
        ("Bearer {token},{token}", 401, "wrong_token"),
        ("Basic {token}", 401, "wrong_token"),
        ("{token}", 401, "wrong_token"),
        ("Bearer {reader}", 403, "may_not_act"),
    ],
)
def test_without_a_right_token_nothing_changes(
    acting: Acting, authorization: str, status: int, code: str
) -> None:
    sent = authorization.format(token=acting.token, reader=acting.reader)
    answer = acting.post("/api/machines/ada/maintenance", {"on": True}, authorization=sent)
    assert (answer.status, answer.json["error"]["code"]) == (status, code)
    assert acting.token.encode() not in answer.body
    if status == 401:
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert not acting.machine("ada")["maintenance"]["on"]


def test_a_token_with_a_line_break_is_no_header(acting: Acting) -> None:
    head = "POST /api/machines/ada/maintenance HTTP/1.1\r\nHost: localhost\r\n"
    head += f"Authorization: Bearer {acting.token}"
    for end in ("\n", "\\n", "\0", "%0a"):
        text = f'{head}{end}\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{{"on": true}}'
        answer = talk(acting, text.encode())
        if end == "\n":  # a line that ends so is a line, and the next one ends the headers
            assert answer.split()[1] in (b"415", b"400", b"401"), "headers are over, and say no JSON"
        else:
            assert answer.split()[1] in (b"400", b"401"), end


def test_wrong_tokens_are_limited_and_right_ones_count(acting: Acting) -> None:
    for _ in range(200):  # one more each 5 s, however slow this is
        limited = acting.post("/api/leases", authorization=f"Bearer {'x' * 43}")
        if limited.status == 429:
            break
        assert limited.status == 401
    assert limited.status == 429
    assert int(limited.headers["retry-after"]) >= 1
    assert acting.post("/api/machines/ada/maintenance", {"on": False}).status == 200
    assert acting.served.ask("/health").status == 200
    (told,) = {event["details"]["result"] for event in acting.events("a wrong token")}
    assert told == "refused"


def test_who_one_is(acting: Acting) -> None:
    def access(**headers: str) -> Any:
        return acting.served.ask("/api/access", headers=headers).json

    assert not access()["may_act"]
    assert "token" in access()["why_not"]
    assert access(Authorization=f"Bearer {acting.token}") == {
        "schema": 1, "caller": "server: token ops", "may_act": True, "why_not": None, "actions_allowed": True,
    }  # fmt: skip
    assert access(Authorization=f"Bearer {acting.reader}")["caller"] == "server: token prometheus"


def test_a_server_without_actions_refuses_all(served: Served) -> None:
    for method, path in (
        ("POST", "/api/machines/ada/drain"),
        ("POST", "/api/leases"),
        ("DELETE", "/api/leases/x"),
    ):
        answer = served.ask(path, method, {"Content-Type": "application/json"})
        assert (answer.status, answer.json["error"]["code"]) == (403, "actions_off")
        assert "--allow-actions" in answer.json["error"]["next"]
    assert "--allow-actions" in served.json("/api/access")["why_not"]


def test_at_the_socket_the_kernel_says_who(acting: Acting) -> None:
    path = acting.folder / "api.sock"
    assert path.stat().st_mode & 0o777 == 0o600
    body = b'{"on": true, "reason": "by socket"}'
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(WAIT_S)
        client.connect(str(path))
        client.sendall(
            b"POST /api/machines/ada/maintenance HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        )
        answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
    assert answer.startswith(b"HTTP/1.1 200 ")
    flag = acting.machine("ada")["maintenance"]
    assert flag["reason"] == "by socket"
    assert re.fullmatch(rf"server: \S+ \(uid {os.getuid()}\)", flag["by"])
    assert acting.post("/api/machines/ada/maintenance", {"on": False}).status == 200


# -- what happens -----------------------------------------------------------------------------------------


def test_maintenance_on_and_off(acting: Acting) -> None:
    on = acting.post("/api/machines/bora/maintenance", {"on": True, "reason": "fan swap", "until": "2h"})
    assert on.status == 200
    assert on.json["machines"][0]["maintenance"]["by"] == "server: token ops"
    shown = acting.machine("bora")["maintenance"]
    assert (shown["on"], shown["reason"], shown["by"]) == (True, "fan swap", "server: token ops")
    assert (
        acting.post("/api/machines/bora/maintenance", {"on": False}).json["machines"][0]["outcome"] == "off"
    )
    assert not acting.machine("bora")["maintenance"]["on"]
    event = acting.events('maintenance on: "fan swap"')[0]
    assert (event["machine"], event["by"], event["details"]["result"]) == (
        "bora",
        "server: token ops",
        "done",
    )
    assert event["details"]["reason"] == "fan swap"


def test_leases_are_taken_and_released(acting: Acting) -> None:
    taken = acting.post("/api/leases", {"model": "llama3.1:70b", "hold": "5m"})
    assert taken.status == 200
    chosen = taken.json["chosen"]
    seen = acting.served.json("/api/route", model="llama3.1:70b")
    assert {item["name"]: item["leases"] for item in seen["candidates"]}[chosen["name"]] == 1
    lease = f"/api/leases/{chosen['lease']['id']}"
    assert acting.post(lease, method="DELETE").json["released"] == chosen["lease"]["id"]
    gone = acting.post(f"{lease}/release")
    assert (gone.status, gone.json["error"]["code"]) == (404, "no_lease")
    unknown = acting.post("/api/leases", {"model": "no-such-model"})
    assert (unknown.status, unknown.json["error"]["code"]) == (404, "unknown_model")
    assert acting.events("lease of llama3.1:70b: done")
    assert acting.events(f"lease of no-such-model: failed: {unknown.json['error']['what'][:40]}")


def test_a_key_is_approved_by_its_fingerprint_alone(acting: Acting) -> None:
    def shown() -> Any:
        (waiting,) = acting.served.json("/api/pending")["machines"]
        assert (waiting["name"], waiting["trust"]) == (PENDING, "pending")
        return waiting["fingerprint"]

    offered = until(shown)
    path = f"/api/machines/{PENDING}/approve"
    assert acting.post(path, {}).status == 400
    assert acting.post(path, {"fingerprint": offered[:20]}).status == 400
    other = acting.post(path, {"fingerprint": "SHA256:" + "A" * 43})
    assert (other.status, other.json["error"]["code"]) == (409, "other_key")
    assert acting.machine(PENDING)["trust"] == "pending"
    assert acting.post(f"/api/machines/{PENDING}/reject").json["outcome"] == "rejected"
    assert acting.machine(PENDING)["trust"] == "rejected"
    approved = acting.post(path, {"fingerprint": offered})
    assert (approved.status, approved.json["outcome"]) == (200, "approved")
    assert until(lambda: acting.machine(PENDING)["trust"] == "approved")
    assert acting.events("approval: done")[0]["by"] == "server: token ops"


def test_a_drain_is_looked_at_worked_on_and_undone(acting: Acting) -> None:
    name = next(
        item["name"]
        for item in acting.served.json("/api/infrastructure")["machines"]
        if item["loaded_models"] and item["name"] != PENDING
    )
    path = f"/api/machines/{name}/drain"
    looked = acting.post(path, {"dry_run": True})
    assert looked.status == 200
    assert looked.json["machines"][0]["copies"]
    assert acting.post(path, {}).json["error"]["code"] == "reason"
    assert acting.served.json("/api/drains")["machines"] == []
    if looked.json["machines"][0]["refused"]:
        refused = acting.post(path, {"reason": "psu"})
        assert (refused.status, refused.json["error"]["code"]) == (409, "refused")
        assert refused.json["machines"][0]["refused"]
        assert acting.served.json("/api/drains")["machines"] == []
    force = ["last-copy", "cannot", "unmanaged"]
    begun = acting.post(path, {"reason": "psu", "force_class": force, "idle_wait": 1, "deadline": "10m"})
    assert begun.status == 202
    assert begun.json["machines"][0]["options"]["idle_wait_s"] == 1.0

    def steps() -> Any:
        """What was done by now, beyond the plan: the server works on it itself."""
        (drain,) = acting.served.json("/api/drains")["machines"]
        assert drain["drain"]["by"] == "server: token ops"
        done = [item["step"] for item in drain["journal"]]
        return "planned" in done and set(done) - {"started", "planned"}

    assert until(steps)
    ended = acting.post(f"{path}/cancel", {"now": True})
    assert ended.json["machines"][0]["drain"]["state"] in ("cancelled", "drained", "blocked", "failed")
    back = acting.post(f"/api/machines/{name}/undrain")
    assert (back.status, back.json["machines"][0]["drain"]["state"]) == (200, "off")
    none = acting.post(f"{path}/cancel")
    assert (none.status, none.json["error"]["code"]) == (409, "no_drain")
    assert {event["by"] for event in acting.events('drain: "psu": done')} == {"server: token ops"}


@pytest.mark.parametrize("word", ["maintenance", "drain", "drain/cancel", "undrain", "approve", "reject"])
def test_a_machine_that_nobody_knows(acting: Acting, word: str) -> None:
    body = {
        "maintenance": {"on": True},
        "drain": {"reason": "x"},
        "approve": {"fingerprint": "SHA256:" + "A" * 43},
    }.get(word, {})
    answer = acting.post(f"/api/machines/no%20body/{word}", body)
    assert (answer.status, answer.json["error"]["code"]) == (404, "unknown_machine")


# -- what is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400), (b"{}", 400), (b"[]", 400), (b"on", 400), (b'"on"', 400), (b'{"on": "true"}', 400),
        (b'{"on": 1}', 400), (b'{"on": null}', 400), (b'{"on": true, "on": false}', 400),
        (b'{"on": true, "because": "x"}', 400), (b'{"on": true, "reason": 5}', 400),
        (b'{"on": true, "reason": ["x"]}', 400), (b'{"on": true, "until": "never"}', 400),
        (b'{"on": true, "reason": "a\\u001b[31m"}', 400), (b'{"on": false, "reason": "x"}', 400),
        (b'{"on": true, "until": NaN}', 400), (b"\xff\xfe", 400), (b"[" * 30_000, 400),
        (b'{"on": true, "until": ' + b"9" * 5000 + b"}", 400),
        (b'{"on": true, "reason": "' + b"x" * 300 + b'"}', 400),
        (b'{"on": true, "reason": "' + b"x" * 70_000 + b'"}', 413),
    ],
)  # fmt: skip
def test_bodies_that_are_none(acting: Acting, body: bytes, status: int) -> None:
    answer = acting.post("/api/machines/ada/maintenance", body)
    assert answer.status == status, answer.body
    assert answer.json["error"]["what"]
    assert len(answer.body) < 2000


@pytest.mark.parametrize(
    "kind",
    [
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonp",
    ],
)
def test_a_form_of_a_web_page_changes_nothing(acting: Acting, kind: str) -> None:
    for path in ("/api/machines/ada/maintenance", "/api/machines/ada/undrain", "/api/machines/ada/reject"):
        answer = acting.post(path, b'{"on": true}', **{"content-type": kind})
        assert (answer.status, answer.json["error"]["code"]) == (415, "content_type")
    assert not acting.machine("ada")["maintenance"]["on"]


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"host": "evil.example"}, "wrong_host"),
        ({"host": "127.0.0.1.evil.example"}, "wrong_host"),
        ({"origin": "http://evil.example"}, "wrong_origin"),
        ({"origin": "null"}, "wrong_origin"),
        ({"origin": "http://localhost:8080", "host": "localhost:3038"}, "wrong_origin"),
    ],
)
def test_a_web_page_with_the_token_changes_nothing(
    acting: Acting, headers: dict[str, str], code: str
) -> None:
    answer = acting.post("/api/machines/ada/maintenance", {"on": True}, **headers)
    assert (answer.status, answer.json["error"]["code"]) == (403, code)
    preflight = acting.served.ask("/api/machines/ada/maintenance", "OPTIONS", {"Origin": "http://127.0.0.1"})
    assert preflight.status in (403, 405)
    assert not any(name.startswith("access-control") for name in preflight.headers)


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE"])
def test_changes_are_asked_by_post(acting: Acting, method: str) -> None:
    for path in ("/api/machines/ada/drain", "/api/machines/ada/maintenance", "/api/leases"):
        answer = acting.served.ask(path, method, {"Authorization": f"Bearer {acting.token}"}, on="true")
        assert answer.status == 405
        assert "POST" in answer.headers["allow"]
    assert not acting.machine("ada")["maintenance"]["on"]


@pytest.mark.parametrize(
    "path",
    [
        "/api/machines/../../x/drain", "/api/machines/..%2f..%2fada/drain", "/api/machines/%2e%2e/ada/drain",
        "/api/machines//ada/drain", "/api/machines/ada%00/drain", "/api/machines/ada/drain/", "/api//leases",
        "/api/machines/ada/./drain", "/api/machines/ada%2fdrain%2f", "/API/leases", "/api/leases/",
        "/api/leases/../leases", "/api/leases/a%2fb/release", "/api/machines/ada;x/drain",
        "/api/machines/%c3%a4da/drain",
    ],
)  # fmt: skip
def test_paths_reach_nothing_else(acting: Acting, path: str) -> None:
    answer = acting.post(path, {"dry_run": True})
    assert answer.status in (400, 404, 405), answer.body
    assert "location" not in answer.headers
    assert acting.served.json("/health")["status"] == "ok"


def talk(acting: Acting, request: bytes, *more: bytes) -> bytes:
    """All that comes back until the server closes."""
    with socket.create_connection(("127.0.0.1", acting.served.port), timeout=WAIT_S) as connection:
        received = bytearray()
        with suppress(ConnectionError):  # closed with more of ours unread
            connection.sendall(request)
            for piece in more:
                connection.sendall(piece)
        with suppress(ConnectionError):
            while b"\r\n\r\n" not in received and (data := connection.recv(1 << 16)):
                received += data
        return bytes(received)


def head(acting: Acting, *lines: str) -> bytes:
    told = (
        "POST /api/machines/ada/maintenance HTTP/1.1", "Host: localhost", "Content-Type: application/json",
        f"Authorization: Bearer {acting.token}", *lines, "", "",
    )  # fmt: skip
    return "\r\n".join(told).encode()


def test_long_bodies_end_early(acting: Acting) -> None:
    for length in ("65537", "1000000000", "99999999999999999999", "-1", "+5", "0x10"):
        answer = talk(acting, head(acting, f"Content-Length: {length}"))
        assert answer.split()[1] in (b"413", b"400"), length
    pieces = [b"4000\r\n" + b" " * 0x4000 + b"\r\n"] * 64
    answer = talk(acting, head(acting, "Transfer-Encoding: chunked"), *pieces)
    assert not answer or answer.startswith(b"HTTP/1.1 413 ")
    both = talk(acting, head(acting, "Transfer-Encoding: chunked", "Content-Length: 4"), b'{"on": true}')
    assert not both or both.split()[1] in (b"400", b"413")
    assert acting.served.json("/health")["status"] == "ok"
    assert not acting.machine("ada")["maintenance"]["on"]


def test_chunks_that_are_short_are_a_body(acting: Acting) -> None:
    answer = talk(acting, head(acting, "Transfer-Encoding: chunked"), b'c\r\n{"on":false}\r\n0\r\n\r\n')
    assert answer.startswith(b"HTTP/1.1 200 ")


def test_a_body_that_never_comes_is_not_waited_for(acting: Acting) -> None:
    for sent in (b"", b'{"on": '):
        with socket.create_connection(("127.0.0.1", acting.served.port), timeout=WAIT_S) as connection:
            connection.sendall(head(acting, "Content-Length: 12") + sent)
            with suppress(ConnectionResetError):
                assert connection.recv(1 << 16) == b"", "no answer, and no end without one"
    assert not acting.machine("ada")["maintenance"]["on"]


def test_one_caller_changes_so_much_at_once(acting: Acting) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", acting.served.port, timeout=WAIT_S)
    sent = {"content-type": "application/json", "authorization": f"Bearer {acting.token}"}
    statuses = []
    for _ in range(300):  # 20 a second come back
        connection.request("POST", "/api/machines/ada/maintenance", b"{}", sent)
        answer = connection.getresponse()
        answer.read()
        statuses.append(answer.status)
        if answer.status == 429:
            break
    connection.close()
    if 429 not in statuses:
        pytest.skip("this computer is too slow to be limited")
    assert int(answer.headers["retry-after"]) >= 1
    assert len(statuses) > 100
    assert acting.served.json("/health")["status"] == "ok"
