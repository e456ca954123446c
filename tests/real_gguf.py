"""More random models for the real llama.cpp server: layers without attention, and `/api/show` of any GGUF."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from real_llamacpp import _add_vocabulary


@dataclass(frozen=True)
class Hybrid:
    """A model in which only every `every`-th layer has attention: `lfm2` or `granitehybrid`."""

    architecture: str
    blocks: int = 6
    every: int = 3
    embedding: int = 128
    heads: int = 4
    kv_heads: int = 2
    key_length: int = 32
    feed_forward: int = 96
    conv: int = 4
    inner: int = 256
    state: int = 64
    groups: int = 2
    state_heads: int = 8

    def has_attention(self, block: int) -> bool:
        return block % self.every == self.every - 1


def write_hybrid(path: Path, shape: Hybrid) -> Path:
    """A random model of these hyperparameters."""
    import gguf
    import numpy

    writer = gguf.GGUFWriter(str(path), shape.architecture)
    writer.add_name("tiny hybrid")
    writer.add_context_length(131072)
    writer.add_embedding_length(shape.embedding)
    writer.add_block_count(shape.blocks)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv([shape.kv_heads * shape.has_attention(at) for at in range(shape.blocks)])
    writer.add_key_length(shape.key_length)
    writer.add_value_length(shape.key_length)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(shape.key_length)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    if shape.architecture == "lfm2":
        writer.add_shortconv_l_cache(shape.conv)
    else:
        writer.add_ssm_conv_kernel(shape.conv)
        writer.add_ssm_inner_size(shape.inner)
        writer.add_ssm_state_size(shape.state)
        writer.add_ssm_group_count(shape.groups)
        writer.add_ssm_time_step_rank(shape.state_heads)
    tokens = _add_vocabulary(writer)
    random = numpy.random.default_rng(0)

    def add(name: str, *dimensions: int, is_exact: bool = False) -> None:
        if len(dimensions) == 1 or is_exact:
            writer.add_tensor(name, numpy.ones(dimensions, numpy.float32))
        else:
            values = random.standard_normal(dimensions) / dimensions[-1] ** 0.5
            writer.add_tensor(name, values.astype(numpy.float16))

    wide = shape.embedding
    add("token_embd.weight", tokens, wide)
    add("token_embd_norm.weight" if shape.architecture == "lfm2" else "output_norm.weight", wide)
    for block in range(shape.blocks):
        at = f"blk.{block}."
        for norm in ("attn_norm", "ffn_norm"):
            add(f"{at}{norm}.weight", wide)
        add(f"{at}ffn_gate.weight", shape.feed_forward, wide)
        add(f"{at}ffn_up.weight", shape.feed_forward, wide)
        add(f"{at}ffn_down.weight", wide, shape.feed_forward)
        if shape.has_attention(block):
            _add_attention(add, at, shape)
        elif shape.architecture == "lfm2":
            add(f"{at}shortconv.conv.weight", wide, shape.conv, is_exact=True)
            add(f"{at}shortconv.in_proj.weight", 3 * wide, wide)
            add(f"{at}shortconv.out_proj.weight", wide, wide)
        else:
            _add_state(add, at, shape)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_attention(add: Any, at: str, shape: Hybrid) -> None:
    wide, keys = shape.embedding, shape.key_length
    add(f"{at}attn_q.weight", shape.heads * keys, wide)
    add(f"{at}attn_k.weight", shape.kv_heads * keys, wide)
    add(f"{at}attn_v.weight", shape.kv_heads * keys, wide)
    add(f"{at}attn_output.weight", wide, shape.heads * keys)
    if shape.architecture == "lfm2":
        for norm in ("attn_q_norm", "attn_k_norm"):
            add(f"{at}{norm}.weight", keys)


def _add_state(add: Any, at: str, shape: Hybrid) -> None:
    """Mamba 2."""
    wide, mixed = shape.embedding, shape.inner + 2 * shape.groups * shape.state
    add(f"{at}ssm_in.weight", shape.inner + mixed + shape.state_heads, wide)
    add(f"{at}ssm_conv1d.weight", mixed, shape.conv, is_exact=True)
    add(f"{at}ssm_conv1d.bias", mixed)
    add(f"{at}ssm_dt.bias", shape.state_heads)
    add(f"{at}ssm_a", shape.state_heads, 1, is_exact=True)
    add(f"{at}ssm_d", shape.state_heads, 1, is_exact=True)
    add(f"{at}ssm_norm.weight", shape.groups, shape.inner // shape.groups, is_exact=True)
    add(f"{at}ssm_out.weight", wide, shape.inner)


def show_of(path: Path) -> bytes:
    """What Ollama's `/api/show` with `verbose` says of a GGUF file."""
    import gguf

    reader = gguf.GGUFReader(str(path))
    info: dict[str, Any] = {}
    for name, field in reader.fields.items():
        if not name.startswith("GGUF.") and "." in name:
            info[name] = _plain(field.contents())
    tensors = [
        {"name": item.name, "type": item.tensor_type.name, "shape": [int(size) for size in item.shape]}
        for item in reader.tensors
    ]
    document = {"model_info": info, "tensors": tensors, "capabilities": ["completion"]}
    return json.dumps(document).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.item() if hasattr(value, "item") else value
