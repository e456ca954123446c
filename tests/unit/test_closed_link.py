"""A link to a machine that is not approved: nothing goes out, whatever is asked of it."""

from __future__ import annotations

import pytest

from fleettui.fleet.closed_link import ClosedLink, NotApproved
from fleettui.net.errors import HttpFailure, LinkError
from fleettui.net.link import HttpAnswer, Link


async def test_everything_is_refused_in_the_same_words() -> None:
    link: Link = ClosedLink(NotApproved("rejected", "ada was rejected", None))
    answers: list[HttpAnswer | HttpFailure] = []
    for opening in (
        link.open(print),
        link.open_loop("true", print, print),
        link.run_command("true"),
    ):
        with pytest.raises(LinkError, match="ada was rejected"):
            await opening
    for asking in (link.get(11434, "/", timeout_s=1), link.post(11434, "/", b"{}", timeout_s=1)):
        with pytest.raises(HttpFailure, match=r"^ada was rejected$"):
            await asking
    assert not link.start_get(11434, "/", answers.append, 1)
    assert (answers, link.count_streams(11434)) == ([], 0)
    await link.close()
