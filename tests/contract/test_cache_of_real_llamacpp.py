"""KV cache, recurrent state and weights by formula against what the allocator of a real llama.cpp logs.

Each model is random and tiny; its shape is read from the file as Ollama's `/api/show` would tell it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fleettui.decide.kv_cache import BYTES_OF_32, CacheTypes, KvCache, KvType, kv_cache
from fleettui.decide.layers import find_layers
from fleettui.model.model_shape import ModelShape
from fleettui.model.unknown import Unknown
from fleettui.probes.engines.ollama_show import parse_shape
from real_gguf import Hybrid, show_of, write_hybrid
from real_llamacpp import Gguf, LlamaOptions, need_llamacpp, serve_llamacpp, write_gguf

CACHE = re.compile(r"llama_kv_cache: size = +([\d.]+) MiB \( *(\d+) cells, +(\d+) layers, +\d+/(\d+) seqs\)")
STATE = re.compile(r"llama_memory_recurrent: size = +([\d.]+) MiB")
WEIGHTS = re.compile(r"load_tensors: .*model buffer size = +([\d.]+) MiB")
MIB = 1 << 20

GROUPED = Gguf(blocks=6, heads=8, kv_heads=2, key_length=64, value_length=64)
ALL_HEADS = Gguf(blocks=3, heads=4, kv_heads=4, key_length=128, value_length=128)
SLIDING = Gguf("gemma3", blocks=12, window=512, key_length=64, value_length=64)
NARROW = Gguf("gemma3", blocks=7, window=200, key_length=64, value_length=64)
STATEFUL = Hybrid("granitehybrid", embedding=512, inner=1024, heads=16, state=128, state_heads=16)
CONVOLVED = Hybrid("lfm2", blocks=9, embedding=512, heads=16)


def shape_of(path: Path) -> ModelShape:
    shape = parse_shape(200, (), show_of(path))
    assert isinstance(shape, ModelShape), shape
    return shape


@pytest.mark.parametrize(
    ("model", "context", "parallel", "key", "value"),
    [
        (GROUPED, 5000, 1, "f16", "f16"),
        (GROUPED, 2500, 4, "f16", "f16"),
        (GROUPED, 2500, 3, "q8_0", "q4_0"),
        (ALL_HEADS, 1, 2, "f16", "f16"),
        (SLIDING, 5000, 2, "f16", "f16"),
        (SLIDING, 700, 1, "q8_0", "q8_0"),
        (NARROW, 3000, 1, "f16", "f16"),
        (STATEFUL, 2500, 2, "f16", "f16"),
        (CONVOLVED, 4096, 3, "q8_0", "q8_0"),
    ],
)
def test_the_formula_is_what_the_allocator_logs(
    model: Gguf | Hybrid, context: int, parallel: int, key: KvType, value: KvType, tmp_path: Path
) -> None:
    need_llamacpp()
    write = write_hybrid if isinstance(model, Hybrid) else write_gguf
    path = write(tmp_path / "model.gguf", model)  # type: ignore[arg-type]
    shape = shape_of(path)
    cache = kv_cache(shape, context, parallel, CacheTypes(key, value))
    assert isinstance(cache, KvCache), cache
    layers = find_layers(shape)
    assert not isinstance(layers, Unknown)
    options = LlamaOptions(context=context * parallel, parallel=parallel, cache_k=key, cache_v=value)
    with serve_llamacpp(path, options) as server:
        log = server.log
    logged = [
        (size, int(cells), int(count), int(streams)) for size, cells, count, streams in CACHE.findall(log)
    ]
    width = model.kv_heads * model.key_length * BYTES_OF_32[key] // 32
    value_length = model.value_length if isinstance(model, Gguf) else model.key_length
    width += model.kv_heads * value_length * BYTES_OF_32[value] // 32

    expected = []
    for kind, cells in (("full", cache.cells), ("window", cache.window_cells)):
        count = layers.kinds.count(kind)
        if count:
            expected.append((f"{count * cells * width / MIB:.2f}", cells // parallel, count, parallel))
    assert logged == expected
    # What the engine put aside, to the byte: cells and layers are logged as whole numbers.
    assert cache.cache_bytes == sum(cells * count * streams * width for _, cells, count, streams in logged)
    assert [f"{cache.state_bytes / MIB:.2f}"] * bool(cache.state_bytes) == STATE.findall(log)
    assert not isinstance(shape.tensors, Unknown)
    assert WEIGHTS.findall(log) == [f"{shape.tensors.total_bytes / MIB:.2f}"]
