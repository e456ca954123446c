"""A real llama.cpp server for tests: the `xllamacpp` wheel on a small random GGUF made by `gguf`.

How to use it:

    path = write_gguf(tmp_path / "tiny.gguf", Gguf(blocks=4, heads=8, kv_heads=2, key_length=64))
    options = LlamaOptions(context=4096, parallel=2, cache_k="q8_0", cache_v="q8_0")
    with serve_llamacpp(path, options) as server:
        server.port                      # 127.0.0.1, answers /health, /v1/models, /props, /slots, /metrics
        server.log                       # what its allocator and loader wrote, as text, so far
        server.ask("/props")             # (status, body) of one GET
        with server.busy(): ...          # a request is in work within

Gemma's layers with a sliding window: `Gguf("gemma3", window=512, …)`. Tests that use it call
`need_llamacpp()` first, which skips them, with the reason, where the wheel cannot be had.

A server is a process of its own (this file, run as a script), so that its log can be read and a crash of it
is no crash of the tests; it ends with the `with` block, and by itself when the tests' process is gone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

START_LIMIT_S = 60.0
LOG_LEVEL = 4
"""With it the allocator's lines are in the log: `llama_kv_cache: size = …`."""


@dataclass(frozen=True)
class Gguf:
    """Hyperparameters of a random model; the defaults give a file of 0.2 MB."""

    architecture: str = "llama"
    """`llama`, or `gemma3` for layers with a sliding window (5 of 6 layers have it)."""
    blocks: int = 2
    embedding: int = 64
    heads: int = 4
    kv_heads: int = 2
    key_length: int = 32
    """A cache of q8_0 wants multiples of 32."""
    value_length: int = 32
    feed_forward: int = 96
    context: int = 131072
    """What it was trained for."""
    window: int = 0
    """Tokens of the sliding window; `gemma3` only."""
    name: str = "tiny random"


@dataclass(frozen=True)
class LlamaOptions:
    """How a server is started; names of llama-server's options."""

    context: int = 16384
    """`--ctx-size`: of all slots together. A request of `busy` ends when its slot is full: at some 1,000
    tokens a second."""
    parallel: int = 1
    cache_k: str = "f16"
    cache_v: str = "f16"
    """`--cache-type-k`, `--cache-type-v`. A quantised V needs `flash_attention`."""
    flash_attention: bool = True
    unified: bool = False
    """`--kv-unified`."""
    swa_full: bool = False
    alias: str = "tiny"
    metrics: bool = True
    slots: bool = True
    api_key: str = ""
    sleep_after_s: int = -1
    port: int = 0
    """0: any free one."""


def need_llamacpp() -> None:
    """Skip the calling test where the wheel or `gguf` is missing or does not run on this machine."""
    import pytest

    for module in ("xllamacpp", "gguf"):
        pytest.importorskip(
            module,
            reason=f"{module} is not installed here: no wheel for this system? (`pip install {module}`)",
            exc_type=ImportError,
        )


def write_gguf(path: Path, shape: Gguf = Gguf()) -> Path:
    """A random model of these hyperparameters in half precision, with a vocabulary of bytes."""
    import gguf
    import numpy

    writer = gguf.GGUFWriter(str(path), shape.architecture)
    writer.add_name(shape.name)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.embedding)
    writer.add_block_count(shape.blocks)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.key_length)
    writer.add_value_length(shape.value_length)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    if shape.window:
        writer.add_sliding_window(shape.window)
    tokens = _add_vocabulary(writer)
    random = numpy.random.default_rng(0)

    def add(name: str, *dimensions: int) -> None:
        if len(dimensions) == 1:
            writer.add_tensor(name, numpy.ones(dimensions, numpy.float32))
        else:
            spread = 1 / dimensions[-1] ** 0.5
            writer.add_tensor(name, (random.standard_normal(dimensions) * spread).astype(numpy.float16))

    wide, keys, values = shape.embedding, shape.key_length, shape.value_length
    add("token_embd.weight", tokens, wide)
    add("output_norm.weight", wide)
    for block in range(shape.blocks):
        at = f"blk.{block}."
        for norm in ("attn_norm", "ffn_norm"):
            add(f"{at}{norm}.weight", wide)
        add(f"{at}attn_q.weight", shape.heads * keys, wide)
        add(f"{at}attn_k.weight", shape.kv_heads * keys, wide)
        add(f"{at}attn_v.weight", shape.kv_heads * values, wide)
        add(f"{at}attn_output.weight", wide, shape.heads * values)
        add(f"{at}ffn_gate.weight", shape.feed_forward, wide)
        add(f"{at}ffn_up.weight", shape.feed_forward, wide)
        add(f"{at}ffn_down.weight", wide, shape.feed_forward)
        if shape.architecture == "gemma3":
            for norm in ("post_attention_norm", "post_ffw_norm"):
                add(f"{at}{norm}.weight", wide)
            for norm in ("attn_q_norm", "attn_k_norm"):
                add(f"{at}{norm}.weight", keys)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_vocabulary(writer: Any) -> int:
    """Three control tokens and one for each byte; returns how many."""
    import gguf

    control, byte = gguf.TokenType.CONTROL, gguf.TokenType.BYTE
    tokens = [b"<unk>", b"<s>", b"</s>", *(f"<0x{value:02X}>".encode() for value in range(256))]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([control] * 3 + [byte] * 256)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_vocab_size(len(tokens))
    return len(tokens)


class LlamaServer:
    """A running server."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log_path: Path, key: str) -> None:
        self.process = process
        self.port = port
        self._log_path = log_path
        self._key = key

    @property
    def log(self) -> str:
        """What it wrote so far."""
        return self._log_path.read_text(encoding="utf-8", errors="replace")

    def ask(self, path: str) -> tuple[int, bytes]:
        """One GET."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path, headers=self._headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._key}"} if self._key else {}

    @contextlib.contextmanager
    def busy(self, requests: int = 1, queued: int = 0) -> Iterator[None]:
        """Within, `requests` are in work: streams that go on until they are closed. `queued` more are sent
        without waiting for an answer: with every slot taken they wait."""
        connections = [self._begin_stream() for _ in range(requests)]
        connections += [self._send_stream() for _ in range(queued)]
        try:
            yield
        finally:
            for connection in connections:
                connection.close()

    def _send_stream(self) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        body = {"prompt": "a", "stream": True, "n_predict": 10**6, "ignore_eos": True, "cache_prompt": False}
        headers = {"Content-Type": "application/json", **self._headers}
        connection.request("POST", "/completion", json.dumps(body), headers)
        return connection

    def _begin_stream(self) -> http.client.HTTPConnection:
        connection = self._send_stream()
        answer = connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"HTTP {answer.status}: {answer.read()[:300]!r}")
        answer.readline()  # the first token came

        def drain() -> None:
            with contextlib.suppress(OSError, ValueError, AttributeError, http.client.HTTPException):
                while answer.read(65536):
                    pass

        threading.Thread(target=drain, daemon=True).start()
        return connection

    def stop(self) -> None:
        """End it; a second call does nothing."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)  # it holds nothing worth keeping
        self.process.wait()


@contextlib.contextmanager
def serve_llamacpp(model: Path, options: LlamaOptions = LlamaOptions()) -> Iterator[LlamaServer]:
    """A server of this model, ready to answer; raises RuntimeError with its log where it does not start."""
    server = start_llamacpp(model, options)
    try:
        deadline = time.monotonic() + START_LIMIT_S
        while not _is_ready(server):
            if server.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"llama.cpp did not start:\n{server.log[-3000:]}")
            time.sleep(0.02)
        yield server
    finally:
        server.stop()


def start_llamacpp(model: Path, options: LlamaOptions = LlamaOptions()) -> LlamaServer:
    """The same at once, before it answers: its port refuses at first, then says that it loads."""
    port = options.port or _free_port()
    setting = {"model": str(model), **dataclasses.asdict(options), "port": port}
    handle, name = tempfile.mkstemp(suffix=".log", dir=model.parent, prefix=f"llama-{port}-")
    with os.fdopen(handle, "wb") as log:
        process = subprocess.Popen(
            [sys.executable, __file__, json.dumps(setting)], stdin=subprocess.PIPE, stdout=log, stderr=log
        )
    return LlamaServer(process, port, Path(name), options.api_key)


def _is_ready(server: LlamaServer) -> bool:
    try:
        return server.ask("/health")[0] == 200
    except OSError:
        return False


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _serve(setting: dict[str, Any]) -> None:
    """The child: serves until its standard input ends."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = setting["model"]
    params.model_alias = {setting["alias"]}
    params.hostnames = ["127.0.0.1"]
    params.port = setting["port"]
    params.n_ctx = setting["context"]
    params.n_parallel = setting["parallel"]
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.n_threads_http = 4
    params.warmup = False
    params.fit_params = False
    params.kv_unified = setting["unified"]
    params.swa_full = setting["swa_full"]
    params.endpoint_metrics = setting["metrics"]
    params.endpoint_slots = setting["slots"]
    params.sleep_idle_seconds = setting["sleep_after_s"]
    params.verbosity = LOG_LEVEL
    if setting["api_key"]:
        params.api_keys = [setting["api_key"]]
    kinds = xllamacpp.ggml_type
    params.cache_type_k = getattr(kinds, f"GGML_TYPE_{setting['cache_k'].upper()}")
    params.cache_type_v = getattr(kinds, f"GGML_TYPE_{setting['cache_v'].upper()}")
    flash = xllamacpp.llama_flash_attn_type
    word = "ENABLED" if setting["flash_attention"] else "DISABLED"
    params.flash_attn_type = getattr(flash, f"LLAMA_FLASH_ATTN_TYPE_{word}")
    server = xllamacpp.Server(params)
    print(f"listening on {server.listening_address}", flush=True)
    sys.stdin.buffer.read()  # ends with the tests' process
    os._exit(0)


if __name__ == "__main__":
    _serve(json.loads(sys.argv[1]))
