"""A real llama.cpp server, polled as a machine's engine: what it holds and works on; asleep, anew."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from engine_rig import Polled, machine_of
from fleettui.model.unknown import Unknown
from fleettui.net.local_link import LocalLink
from real_llamacpp import LlamaOptions, LlamaServer, need_llamacpp, serve_llamacpp, start_llamacpp, write_gguf

ONCE_MORE_S = 2.0


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need_llamacpp()
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny-random.gguf")


@pytest.fixture(scope="module")
def server(model: Path) -> Iterator[LlamaServer]:
    with serve_llamacpp(model, LlamaOptions(context=32768, parallel=2, alias="tiny")) as started:
        yield started


@pytest.fixture
async def link() -> AsyncIterator[LocalLink]:
    opened = LocalLink("ada")
    await opened.open(lambda _: None)
    yield opened
    await opened.close()


async def test_what_a_server_holds_and_works_on(server: LlamaServer, link: LocalLink) -> None:
    poll = Polled(machine_of("llamacpp", server.port), link)
    first = await poll.tick(1000.0)
    assert (first.state, first.error, poll.engine.source.state) == ("ok", None, "ok")
    assert not isinstance(first.loaded, Unknown)
    assert [(copy.name, copy.state, copy.context) for copy in first.loaded] == [("tiny", "loaded", 16384)]
    assert (first.loaded[0].parameter_size, first.loaded[0].quantization) == ("102.91K", "F16")
    assert first.traits is not None
    assert (first.traits.slots, first.traits.refused, first.is_sleeping) == (2, (), False)
    now = 1000.0
    now += ONCE_MORE_S
    assert (await poll.tick(now)).running == 0  # metrics are asked once it is known to be awake
    with server.busy(2, queued=1):
        await poll.until(lambda: b"deferred 1" in server.ask("/metrics")[1])
        for _ in range(8):  # a server that works on few cores answers late; what it then says counts
            now += ONCE_MORE_S
            busy = await poll.tick(now)
            if not isinstance(busy.running, Unknown):
                break
        assert (busy.running, busy.waiting) == (2, 1)
        assert busy.load is not None
    await poll.until(lambda: b"processing 0" in server.ask("/metrics")[1])
    idle = await poll.tick(now + ONCE_MORE_S)
    assert (idle.running, idle.waiting) == (0, 0)
    assert idle.load is not None
    assert not isinstance(idle.load.generated_tokens, Unknown)
    assert idle.load.generated_tokens > 0
    poll.close()


async def test_a_key_that_a_real_server_wants(
    model: Path, link: LocalLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLAMA_KEY", "sk-right")
    monkeypatch.setenv("WRONG_KEY", "sk-wrong")
    with serve_llamacpp(model, LlamaOptions(api_key="sk-right", alias="guarded")) as server:
        open_to_us = Polled(machine_of("llamacpp", server.port, api_key_env="LLAMA_KEY"), link)
        wrong = Polled(machine_of("llamacpp", server.port, api_key_env="WRONG_KEY"), link)
        without = Polled(machine_of("llamacpp", server.port), link)
        for now in (1000.0, 1002.0):
            for poll in (open_to_us, wrong, without):
                await poll.tick(now)
        assert (open_to_us.reading.state, open_to_us.reading.running) == ("ok", 0)
        assert (without.reading.state, without.reading.error) == ("unauthorized", "API key needed")
        assert wrong.reading.error == "the API key in WRONG_KEY is refused (engines[].api_key_env)"
        assert isinstance(wrong.reading.loaded, Unknown)  # builds of 2026 guard all but /health
        for poll in (open_to_us, wrong, without):
            poll.close()


async def test_without_metrics_busy_is_seen_only_while_somebody_wants_it(
    model: Path, link: LocalLink
) -> None:
    with serve_llamacpp(model, LlamaOptions(context=32768, metrics=False)) as server:
        poll = Polled(machine_of("llamacpp", server.port), link)
        with server.busy():
            for now in (1000.0, 1002.0):
                await poll.tick(now)
            assert poll.reading.traits is not None
            assert poll.reading.traits.refused == ("/metrics",)
            assert poll.reading.running == Unknown("metrics off (start llama-server with --metrics)")
            poll.feeds.want_busy(True)
            assert (await poll.tick(1004.0)).running == 1
            poll.feeds.want_busy(False)
            assert isinstance(poll.reading.running, Unknown)
        poll.close()


async def test_polling_lets_a_server_sleep_and_it_says_so(model: Path, link: LocalLink) -> None:
    with serve_llamacpp(model, LlamaOptions(sleep_after_s=1)) as server:
        poll = Polled(machine_of("llamacpp", server.port), link, wants_busy=True)
        await poll.tick(1000.0)
        await poll.until(lambda: b'"is_sleeping":true' in server.ask("/props")[1])
        for now in (1010.0, 1012.0, 1014.0):  # sleeping is in /props, asked every 10 s
            await poll.tick(now)
        assert poll.reading.is_sleeping is True
        assert not isinstance(poll.reading.loaded, Unknown)
        assert [copy.state for copy in poll.reading.loaded] == ["sleeping"]
        assert b'"is_sleeping":true' in server.ask("/props")[1]
        poll.close()


async def test_a_server_that_starts_again(model: Path, link: LocalLink) -> None:
    options = LlamaOptions(alias="first", metrics=False)
    with serve_llamacpp(model, options) as server:
        poll = Polled(machine_of("llamacpp", server.port), link)
        for now in (1000.0, 1002.0):
            await poll.tick(now)
        assert poll.reading.traits is not None
        assert poll.reading.traits.refused == ("/metrics",)
    down = await poll.tick(1004.0)
    assert (down.state, poll.engine.source.state) == ("down", "error")
    assert isinstance(down.loaded, Unknown)
    again = start_llamacpp(model, LlamaOptions(alias="second", port=server.port))
    seen = set()
    try:
        now = 1004.0
        while (await poll.tick(now)).state != "ok" or isinstance(poll.reading.running, Unknown):
            seen.add(poll.reading.state)
            now += 0.1
            assert now < 1060
        assert seen <= {"down", "loading", "ok"}
        assert not isinstance(poll.reading.loaded, Unknown)
        assert [copy.name for copy in poll.reading.loaded] == ["second"]
        assert poll.reading.traits.refused == ()
    finally:
        again.stop()
        poll.close()
