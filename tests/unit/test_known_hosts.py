"""Which host key is trusted, from known_hosts lines and pins."""

from __future__ import annotations

import base64
import hashlib
import hmac
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleettui.net.host_keys import HostTrust, KnownHosts, fingerprint_of, offer_of

FIXTURES = Path(__file__).parent.parent / "fixtures" / "ssh"


def blob(seed: int, kind: str = "ssh-ed25519") -> bytes:
    name = kind.encode()
    return len(name).to_bytes(4, "big") + name + (32).to_bytes(4, "big") + bytes([seed]) * 32


def line(names: str, seed: int, kind: str = "ssh-ed25519", marker: str = "") -> str:
    return f"{marker}{names} {kind} {base64.b64encode(blob(seed, kind)).decode()} comment"


def hashed(name: str) -> str:
    salt = b"0123456789abcdefghij"
    digest = hmac.digest(salt, name.encode(), "sha1")
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


def trust(
    *lines: str, host: str = "gpu-a", port: int = 22, alias: str | None = None, pins: tuple[str, ...] = ()
) -> HostTrust:
    index = KnownHosts()
    index.add_file("known_hosts", "\n".join(lines))
    assert index.problems == []
    return index.trust_for(host, port, alias=alias, pins=pins)


@pytest.mark.parametrize(
    "names",
    [
        "gpu-a",
        "other,gpu-a",
        "gpu-*",
        "*",
        "gpu-?",
        "GPU-A",
        "!gpu-b,gpu-*",
        hashed("gpu-a"),
        "gpu-a,192.0.2.1",
    ],
)
def test_a_line_for_the_host_makes_its_key_trusted(names: str) -> None:
    found = trust(line(names, 1))
    assert found.judge(blob(1)) == "trusted"
    assert found.judge(blob(2)) == "changed"
    assert found.expected == (fingerprint_of(blob(1)),)


@pytest.mark.parametrize("names", ["gpu-b", "gpu", "!gpu-a,gpu-*", "[gpu-a]:2222", hashed("gpu-b")])
def test_lines_for_others_say_nothing(names: str) -> None:
    found = trust(line(names, 1))
    assert found.judge(blob(1)) == "unknown"
    assert found.expected == ()


@pytest.mark.parametrize("names", ["[gpu-a]:2222", "[gpu-*]:2222", "[gpu-?]:22*", hashed("[gpu-a]:2222")])
def test_another_port_is_another_name(names: str) -> None:
    found = trust(line(names, 1), port=2222)
    assert found.judge(blob(1)) == "trusted"
    assert found.judge(blob(2)) == "changed"


def test_the_bare_name_counts_for_another_port_only_when_it_matches() -> None:
    found = trust(line("gpu-a", 1), port=2222)
    assert found.judge(blob(1)) == "trusted"
    assert found.judge(blob(2)) == "unknown"


def test_an_alias_is_looked_up_instead_of_the_name() -> None:
    lines = (line("rack7", 1), line("gpu-a", 2))
    assert trust(*lines, alias="rack7", port=2222).judge(blob(1)) == "trusted"
    assert trust(*lines, alias="rack7", port=2222).judge(blob(2)) == "changed"


def test_several_keys_of_a_host_count_and_their_types_are_asked_for_first() -> None:
    found = trust(line("gpu-a", 1, "ssh-rsa"), line("gpu-a", 2, "ecdsa-sha2-nistp256"))
    assert found.judge(blob(2, "ecdsa-sha2-nistp256")) == "trusted"
    assert found.key_types == ("ssh-rsa", "ecdsa-sha2-nistp256")


def test_a_revoked_key_is_refused_even_where_it_is_known_or_pinned() -> None:
    lines = (line("gpu-a", 1), line("*", 1, marker="@revoked "))
    assert trust(*lines).judge(blob(1)) == "revoked"
    assert trust(*lines, pins=(fingerprint_of(blob(1)),)).judge(blob(1)) == "revoked"


def test_an_authority_is_no_host_key() -> None:
    found = trust(line("gpu-*", 9, marker="@cert-authority "))
    assert [key.blob for key in found.authorities] == [blob(9)]
    assert found.judge(blob(9)) == "unknown"


@pytest.mark.parametrize("form", ["{}", "{}=", "sha256:{}"])
def test_a_pin_overrides_known_hosts(form: str) -> None:
    bare = fingerprint_of(blob(5)).removeprefix("SHA256:")
    found = trust(line("gpu-a", 1), line("gpu-a", 9, marker="@cert-authority "), pins=(form.format(bare),))
    assert found.judge(blob(5)) == "trusted"
    assert found.judge(blob(1)) == "changed"
    assert found.authorities == ()


def test_odd_lines_are_skipped_and_named() -> None:
    index = KnownHosts()
    index.add_file("kh", (FIXTURES / "18-known-hosts-bad-line.txt").read_text())
    assert [problem.line for problem in index.problems] == [2, 3, 4]
    assert all(problem.file == "kh" and "skipped" in problem.message for problem in index.problems)
    assert len(index.trust_for("gpu-a", 22, alias=None).keys) == 1


def test_a_line_whose_key_is_of_another_type_than_it_says_is_skipped() -> None:
    index = KnownHosts()
    index.add_file("kh", f"gpu-a ssh-rsa {base64.b64encode(blob(1)).decode()}")
    assert "not of the type" in index.problems[0].message


PIECES = st.sampled_from(
    [
        "|1|",
        "|",
        "@revoked ",
        "@cert-authority ",
        "gpu-a",
        "*",
        "!",
        ",",
        " ",
        "\n",
        "ssh-ed25519 ",
        "AAAA",
        "[",
        "]:22",
        "#",
    ]
)


@given(st.text(max_size=200) | st.lists(PIECES | st.text(max_size=4), max_size=40).map("".join))
def test_any_text_is_read(text: str) -> None:
    index = KnownHosts()
    index.add_file("kh", text)
    assert len(index.problems) <= 100
    index.trust_for("gpu-a", 2222, alias=None).judge(blob(1))


def test_an_offer_shows_fingerprint_and_code() -> None:
    offer = offer_of("rsa-sha2-512", blob(1, "ssh-rsa"), ("SHA256:old",))
    digest = hashlib.sha256(blob(1, "ssh-rsa")).digest()
    assert offer.key_type == "RSA"
    assert offer.fingerprint == "SHA256:" + base64.b64encode(digest).decode().rstrip("=")
    assert offer.code.replace("-", "") == base64.b32encode(digest).decode()[:8]
    assert offer.code[4] == "-"
    assert offer.expected == ("SHA256:old",)
