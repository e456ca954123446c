"""Memory of the context: KV cache and recurrent state, as llama.cpp (and so Ollama) allocates them.

Formulas: llama.cpp src/llama-kv-cache*.cpp, src/llama-hparams.cpp and src/models; equal to what its allocator
logs. The context counts per sequence: Ollama's `num_ctx` is one of `parallel` of them.
"""

from __future__ import annotations

from functools import lru_cache

from fleettui.decide.layers import Layers, find_layers
from fleettui.model.literal import Literal
from fleettui.model.model_shape import ModelShape
from fleettui.model.record import dataclass
from fleettui.model.unknown import Maybe, Unknown, known_or

KvType = Literal["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"]

BYTES_OF_32: dict[KvType, int] = {
    "f32": 128, "f16": 64, "bf16": 64, "q8_0": 34, "q5_1": 24, "q5_0": 22, "q4_1": 20, "q4_0": 18,
    "iq4_nl": 18,
}  # fmt: skip
"""Bytes that 32 elements take."""
CELL_PADDING = 256
MICRO_BATCH = 512
"""Tokens computed at once; a sliding window needs as much room beyond itself."""
_STATE_BYTES = 4
_UNKNOWN_HEADS = Unknown("size of the attention heads not told")


@dataclass(frozen=True, slots=True)
class CacheTypes:
    """Types of the two halves of the cache."""

    key: KvType = "f16"
    value: KvType = "f16"

    @property
    def is_quantised(self) -> bool:
        return BYTES_OF_32[self.key] < BYTES_OF_32["f16"] or BYTES_OF_32[self.value] < BYTES_OF_32["f16"]


F16 = CacheTypes()


@dataclass(frozen=True, slots=True)
class KvCache:
    """What the context takes."""

    cache_bytes: int
    state_bytes: int = 0
    """Recurrent layers, whatever the context."""
    cells: int = 0
    """Of a layer that keeps all of the context, all sequences together; 0 where no layer has a cache."""
    window_cells: int = 0
    """Of a sliding-window layer."""
    layer_f16_bytes: int = 0
    """The largest layer's cache, were it f16."""
    is_upper_bound: bool = False
    """Which layers have a sliding window is not told: all are counted in full."""

    @property
    def total_bytes(self) -> int:
        return self.cache_bytes + self.state_bytes


def pad_cells(tokens: int) -> int:
    """The cells of that many tokens: whole blocks of 256."""
    return -(-tokens // CELL_PADDING) * CELL_PADDING


@lru_cache(maxsize=256)
def kv_cache(shape: ModelShape, context: int, parallel: int = 1, types: CacheTypes = F16) -> Maybe[KvCache]:
    """Cache and state of `parallel` sequences of `context` tokens each; Unknown where the shape lacks it."""
    layers = find_layers(shape)
    if isinstance(layers, Unknown):
        return layers
    sequences, context = max(1, parallel), max(1, context)
    state = _state_bytes(shape, layers)
    if isinstance(state, Unknown):
        return state
    cells = sequences * pad_cells(context)
    window_cells = sequences * min(pad_cells(context), pad_cells(layers.window + MICRO_BATCH))
    total = largest = 0
    widths: dict[tuple[int, bool], tuple[int, int]] = {}
    for kind, heads in zip(layers.kinds, layers.kv_heads, strict=True):
        if kind == "none":
            continue
        is_window = kind == "window"
        if (heads, is_window) not in widths:
            width = _widths(shape, heads, is_window)
            if isinstance(width, Unknown):
                return width
            widths[heads, is_window] = width
        key, value = widths[heads, is_window]
        here = window_cells if is_window else cells
        total += here * key * BYTES_OF_32[types.key] // 32 + here * value * BYTES_OF_32[types.value] // 32
        largest = max(largest, here * (key + value) * 2)
    has_window = "window" in layers.kinds
    return KvCache(
        total,
        state * sequences,
        cells if total else 0,
        window_cells if has_window else 0,
        largest,
        layers.is_upper_bound,
    )


def _widths(shape: ModelShape, kv_heads: int, is_window: bool) -> Maybe[tuple[int, int]]:
    """Elements of K and of V that one cell of a layer holds."""
    attention = shape.attention
    rank, rope = attention.kv_lora_rank, attention.rope_dimensions
    if not isinstance(attention.key_length_mla, Unknown) and not isinstance(rank, Unknown):
        return _UNKNOWN_HEADS if isinstance(rope, Unknown) else (rank + rope, 0)
    key, value = attention.key_length, attention.value_length
    if is_window:
        key = key if isinstance(attention.key_length_swa, Unknown) else attention.key_length_swa
        value = value if isinstance(attention.value_length_swa, Unknown) else attention.value_length_swa
    default = _default_head_length(shape)
    key = default if isinstance(key, Unknown) else key
    value = default if isinstance(value, Unknown) else value
    if isinstance(key, Unknown) or isinstance(value, Unknown):
        return _UNKNOWN_HEADS
    return kv_heads * key, kv_heads * value


def _default_head_length(shape: ModelShape) -> Maybe[int]:
    """Embedding / heads, where the file names no other length; of layers that differ, the longest."""
    heads, embedding = shape.attention.heads, shape.embedding_length
    if isinstance(heads, Unknown) or isinstance(embedding, Unknown):
        return _UNKNOWN_HEADS
    fewest = min((count for count in heads if count > 0), default=0)
    return embedding // fewest if fewest else _UNKNOWN_HEADS


def _state_bytes(shape: ModelShape, layers: Layers) -> Maybe[int]:
    """State of the recurrent layers for one sequence."""
    if not layers.recurrent:
        return 0
    state = shape.state
    if isinstance(state.inner_size, Unknown):
        if isinstance(state.short_conv, Unknown) or isinstance(shape.embedding_length, Unknown):
            return Unknown("size of the recurrent state not told")
        elements = max(0, state.short_conv - 1) * shape.embedding_length
        return elements * _STATE_BYTES * layers.recurrent
    if isinstance(state.conv_kernel, Unknown) or isinstance(state.state_size, Unknown):
        return Unknown("size of the recurrent state not told")
    groups = known_or(state.group_count, 0)
    convolution = max(0, state.conv_kernel - 1) * (state.inner_size + 2 * groups * state.state_size)
    elements = convolution + state.state_size * state.inner_size
    return elements * _STATE_BYTES * layers.recurrent
