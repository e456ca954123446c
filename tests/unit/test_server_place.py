"""Where a server is, as operators write it."""

from __future__ import annotations

import pytest

from fleettui.model.server_place import ServerPlace, read_server_place


@pytest.mark.parametrize(
    ("text", "place", "netloc"),
    [
        ("http://127.0.0.1:3038", ServerPlace("http", "127.0.0.1", 3038), "127.0.0.1:3038"),
        ("http://127.0.0.1:3038/", ServerPlace("http", "127.0.0.1", 3038), "127.0.0.1:3038"),
        (" https://jump.lan ", ServerPlace("https", "jump.lan", 443), "jump.lan"),
        ("http://jump.lan", ServerPlace("http", "jump.lan", 80), "jump.lan"),
        ("http://[::1]:3038", ServerPlace("http", "::1", 3038), "[::1]:3038"),
        ("https://jump.lan/fleet/", ServerPlace("https", "jump.lan", 443, "/fleet"), "jump.lan"),
        ("unix:/run/f.sock", ServerPlace("unix", path="/run/f.sock"), "localhost"),
        ("unix:///run/f.sock", ServerPlace("unix", path="/run/f.sock"), "localhost"),
        ("unix:~/f.sock", ServerPlace("unix", path="~/f.sock"), "localhost"),
    ],
)
def test_places(text: str, place: ServerPlace, netloc: str) -> None:
    assert read_server_place(text) == place
    assert read_server_place(place.text) == place
    assert place.netloc == netloc


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must be a URL"),
        ("localhost:3038", "must be a URL"),
        ("ftp://jump.lan", "must be a URL"),
        ("http://", "must be a URL"),
        ("http://jump lan", "without blanks"),
        ("http://jump.lan/?model=x", "without blanks and without a question"),
        ("http://mia:secret@jump.lan", "no password"),
        ("http://jump.lan:port", "no host and port"),
        ("http://jump.lan:70000", "no host and port"),
        ("http://::1:3038", "no host and port"),
        ("http://[::1]x", "no host and port"),
        ("http://bücher.example", "must be a URL"),
        ("http://jump.lan/\r\nx", "must be a URL"),
        ("unix:", "names no socket"),
    ],
)
def test_what_is_no_place(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        read_server_place(text)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "is_private"),
    [
        ("http://127.0.0.1:3038", True), ("http://localhost:3038", True), ("http://[::1]:3038", True),
        ("https://jump.lan", True), ("unix:/run/f.sock", True),
        ("http://jump.lan:3038", False), ("http://10.0.0.1:3038", False), ("http://127.jump.lan", False),
        ("http://127.0.0.1.lan", False),
    ],
)  # fmt: skip
def test_where_nobody_can_read_along(text: str, is_private: bool) -> None:
    assert read_server_place(text).is_private == is_private
