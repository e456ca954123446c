"""Sizes as they are typed."""

from __future__ import annotations

import pytest

from fleettui.model.sizes import parse_tokens
from fleettui.view.route_options import parse_context


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("32768", 32768), (" 32_768 ", 32768), ("32k", 32768), ("128K", 131072), ("1m", 1 << 20), ("1", 1)],
)
def test_tokens(text: str, tokens: int) -> None:
    assert parse_tokens(text) == parse_context(text) == tokens


@pytest.mark.parametrize("text", ["", "k", "lots", "0", "-1", "1.5k", "32kk", "99m", "9" * 30, "٣٢"])
def test_what_is_no_number_of_tokens(text: str) -> None:
    with pytest.raises(ValueError, match=r"is (not a number of tokens: write 32768 or 32k|no context that)"):
        parse_tokens(text)


@pytest.mark.parametrize("text", ["", " ", "any", "0"])
def test_any_context_will_do(text: str) -> None:
    assert parse_context(text) is None
