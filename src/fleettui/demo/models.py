"""Models of the simulated fleet: real architectures, so that sizes, KV cache and `/api/show` agree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha256

BITS_PER_WEIGHT = {"F32": 32, "F16": 16, "Q8_0": 8.5, "Q6_K": 6.5625, "Q4_K": 4.5, "Q4_0": 4.5, "MXFP4": 4.25}
"""GGML block formats: bytes per block / weights per block."""

FILE_TYPE = {"F16": 1, "Q4_0": 2, "Q4_K_M": 15, "MXFP4": 38}
"""general.file_type by quantisation."""

UBATCH = 512
KV_BYTES = 2
"""f16 cache."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor of a model file."""

    name: str
    type: str
    shape: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        count = 1
        for length in self.shape:
            count *= length
        return int(count * BITS_PER_WEIGHT[self.type] / 8)


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One model as its publisher released it."""

    name: str
    architecture: str
    """general.architecture, also the prefix of its keys."""
    parameter_size: str
    quantization: str
    layers: int
    embedding: int
    heads: int
    kv_heads: int
    key_length: int
    feed_forward: int
    vocabulary: int
    context_length: int
    """Longest context it was trained for."""
    experts: int = 0
    experts_used: int = 0
    is_tied: bool = False
    """No output matrix of its own; token_embd then lies on the GPU too."""
    window: int = 0
    """Sliding window in tokens; 0: all layers attend to everything."""
    global_every: int = 1
    """Every n-th layer is a full-attention layer."""
    capabilities: tuple[str, ...] = ("completion", "tools")
    remote_host: str | None = None
    """Runs elsewhere (cloud entry); then there is no file."""

    @property
    def is_embedding(self) -> bool:
        return "embedding" in self.capabilities

    @property
    def is_encoder(self) -> bool:
        """Encoders keep no KV cache."""
        return self.architecture in ("bert", "nomic-bert")

    @property
    def digest(self) -> str:
        """Of the manifest: what `/api/tags` and `/api/ps` print."""
        return sha256(f"manifest {self.name}".encode()).hexdigest()

    @property
    def blob_digest(self) -> str:
        """Of the weights' layer: what the runner's command line names."""
        return sha256(f"weights {self.name}".encode()).hexdigest()


def uses_more_bits(layer: int, layers: int) -> bool:
    """Which layers keep attn_v and ffn_down at Q6_K in a Q4_K_M file (llama.cpp's `use_more_bits`)."""
    eighth = layers // 8
    return layer < eighth or layer >= 7 * layers // 8 or (layer - eighth) % 3 == 2


@cache
def tensors(model: ModelSpec) -> tuple[Tensor, ...]:
    """All tensors of the model's file."""
    if model.remote_host:
        return ()
    main = {"Q4_K_M": "Q4_K", "MXFP4": "F16"}.get(model.quantization, model.quantization)
    better = "Q6_K" if main in ("Q4_K", "Q4_0") else main
    outer = better if model.is_tied or main != "Q4_K" else main
    found = [Tensor("token_embd.weight", outer, (model.embedding, model.vocabulary))]
    for layer in range(model.layers):
        found += _layer_tensors(model, layer, main, better)
    if not model.is_encoder:
        found.append(Tensor("output_norm.weight", "F32", (model.embedding,)))
        if not model.is_tied:
            found.append(Tensor("output.weight", better, (model.embedding, model.vocabulary)))
    return tuple(found)


def _layer_tensors(model: ModelSpec, layer: int, main: str, better: str) -> list[Tensor]:
    """Tensors of one block."""
    head, name = model.embedding, f"blk.{layer}."
    queries, keys = model.heads * model.key_length, model.kv_heads * model.key_length
    often = better if main == "Q4_K" and uses_more_bits(layer, model.layers) else main
    found = [
        Tensor(name + "attn_norm.weight", "F32", (head,)),
        Tensor(name + "attn_q.weight", main, (head, queries)),
        Tensor(name + "attn_k.weight", main, (head, keys)),
        Tensor(name + "attn_v.weight", often, (head, keys)),
        Tensor(name + "attn_output.weight", main, (queries, head)),
        Tensor(name + "ffn_norm.weight", "F32", (head,)),
    ]
    if model.experts:
        kind = "MXFP4" if model.quantization == "MXFP4" else main
        down = "MXFP4" if model.quantization == "MXFP4" else often
        count, width = model.experts, model.feed_forward
        return [
            *found,
            Tensor(name + "ffn_gate_inp.weight", "F32", (head, count)),
            Tensor(name + "ffn_gate_exps.weight", kind, (head, width, count)),
            Tensor(name + "ffn_up_exps.weight", kind, (head, width, count)),
            Tensor(name + "ffn_down_exps.weight", down, (width, head, count)),
        ]
    if not (model.is_encoder and model.architecture == "bert"):
        found.append(Tensor(name + "ffn_gate.weight", main, (head, model.feed_forward)))
    return [
        *found,
        Tensor(name + "ffn_up.weight", main, (head, model.feed_forward)),
        Tensor(name + "ffn_down.weight", often, (model.feed_forward, head)),
    ]


@cache
def file_bytes(model: ModelSpec) -> int:
    """Size on disk, as `/api/tags` prints it: tensors and the tokenizer beside them."""
    if model.remote_host:
        return 339
    return sum(tensor.size_bytes for tensor in tensors(model)) + model.vocabulary * 61 + 1777


@cache
def parameter_count(model: ModelSpec) -> int:
    """Number of weights."""
    return sum(round(item.size_bytes * 8 / BITS_PER_WEIGHT[item.type]) for item in tensors(model))


@cache
def weight_bytes(model: ModelSpec) -> int:
    """Weights that go to the GPU: everything but an input embedding that is not also the output."""
    return sum(
        tensor.size_bytes
        for tensor in tensors(model)
        if tensor.name != "token_embd.weight" or model.is_tied or model.is_encoder
    )


def padded(tokens: int) -> int:
    """Cache cells come in blocks of 256."""
    return -(-tokens // 256) * 256


def cache_bytes(model: ModelSpec, context: int) -> int:
    """KV cache of one sequence; window layers keep only window + batch."""
    if model.is_encoder:
        return 0
    full_layers = model.layers // model.global_every
    cells = padded(context)
    window_cells = min(cells, padded(model.window + UBATCH)) if model.window else cells
    per_cell = model.kv_heads * model.key_length * 2 * KV_BYTES
    return per_cell * (full_layers * cells + (model.layers - full_layers) * window_cells)


def graph_bytes(model: ModelSpec, context: int) -> int:
    """Compute buffer: the logits of one batch and the attention mask."""
    return 4 * model.vocabulary * UBATCH + 2 * padded(context) * UBATCH + 48 * (1 << 20)


def need_bytes(model: ModelSpec, context: int) -> int:
    """Everything a copy takes when it lies wholly on the GPU."""
    return weight_bytes(model) + cache_bytes(model, context) + graph_bytes(model, context)


CHAT = ("completion", "tools")
THINKING = ("completion", "tools", "thinking")
PLAIN = ("completion",)
EMBEDDING = ("embedding",)

_CATALOG = (
    ModelSpec("llama3.1:8b", "llama", "8.0B", "Q4_K_M", 32, 4096, 32, 8, 128, 14336, 128256, 131072),
    ModelSpec("llama3.1:70b", "llama", "70.6B", "Q4_K_M", 80, 8192, 64, 8, 128, 28672, 128256, 131072),
    ModelSpec("llama3.3:70b", "llama", "70.6B", "Q4_K_M", 80, 8192, 64, 8, 128, 28672, 128256, 131072),
    ModelSpec("llama3.2:3b", "llama", "3.2B", "Q4_K_M", 28, 3072, 24, 8, 128, 8192, 128256, 131072,
              is_tied=True),
    ModelSpec("qwen2.5:32b", "qwen2", "32.8B", "Q4_K_M", 64, 5120, 40, 8, 128, 27648, 152064, 32768),
    ModelSpec("qwen2.5:14b", "qwen2", "14.8B", "Q4_K_M", 48, 5120, 40, 8, 128, 13824, 152064, 32768),
    ModelSpec("qwen2.5:3b", "qwen2", "3.1B", "Q4_K_M", 36, 2048, 16, 2, 128, 11008, 151936, 32768,
              is_tied=True),
    ModelSpec("qwen2.5-coder:32b", "qwen2", "32.8B", "Q4_K_M", 64, 5120, 40, 8, 128, 27648, 152064, 32768),
    ModelSpec("qwen3:8b", "qwen3", "8.2B", "Q4_K_M", 36, 4096, 32, 8, 128, 12288, 151936, 40960,
              capabilities=THINKING),
    ModelSpec("qwen3:32b", "qwen3", "32.8B", "Q4_K_M", 64, 5120, 64, 8, 128, 25600, 151936, 40960,
              capabilities=THINKING),
    ModelSpec("qwen3-coder:30b", "qwen3moe", "30.5B", "Q4_K_M", 48, 2048, 32, 4, 128, 768, 151936, 262144,
              experts=128, experts_used=8),
    ModelSpec("mistral-small:24b", "llama", "23.6B", "Q4_K_M", 40, 5120, 32, 8, 128, 32768, 131072, 32768),
    ModelSpec("phi4:14b", "phi3", "14.7B", "Q4_K_M", 40, 5120, 40, 10, 128, 17920, 100352, 16384,
              capabilities=PLAIN),
    ModelSpec("phi3:mini", "phi3", "3.8B", "Q4_0", 32, 3072, 32, 32, 96, 8192, 32064, 131072,
              capabilities=PLAIN),
    ModelSpec("gemma3:27b", "gemma3", "27.4B", "Q4_K_M", 62, 5376, 32, 16, 128, 21504, 262208, 131072,
              is_tied=True, window=1024, global_every=6, capabilities=("completion", "vision")),
    ModelSpec("gpt-oss:20b", "gptoss", "20.9B", "MXFP4", 24, 2880, 64, 8, 64, 2880, 201088, 131072,
              experts=32, experts_used=4, window=128, global_every=2, capabilities=THINKING),
    ModelSpec("gpt-oss:120b", "gptoss", "116.8B", "MXFP4", 36, 2880, 64, 8, 64, 2880, 201088, 131072,
              experts=128, experts_used=4, window=128, global_every=2, capabilities=THINKING),
    ModelSpec("nomic-embed-text:latest", "nomic-bert", "137M", "F16", 12, 768, 12, 12, 64, 3072, 30522, 2048,
              capabilities=EMBEDDING),
    ModelSpec("mxbai-embed-large:latest", "bert", "334M", "F16", 24, 1024, 16, 16, 64, 4096, 30522, 512,
              capabilities=EMBEDDING),
    ModelSpec("deepseek-v3.2:cloud", "", "", "", 0, 0, 0, 0, 0, 0, 0, 0, capabilities=THINKING,
              remote_host="https://ollama.com:443"),
)  # fmt: skip

CATALOG = {model.name: model for model in _CATALOG}


def full_name(name: str) -> str:
    """Name with tag, lower case: `Nomic-Embed-Text` -> `nomic-embed-text:latest`."""
    lowered = name.strip().lower().removeprefix("registry.ollama.ai/").removeprefix("library/")
    return lowered if ":" in lowered.rsplit("/", 1)[-1] else lowered + ":latest"
