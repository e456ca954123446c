"""What a model is made of, as far as it decides how much memory it takes. Source: the engine's `/api/show`.

Lengths are elements, sizes bytes. A list holds one number per layer, or one number for all of them.
"""

from __future__ import annotations

from fleettui.model.record import dataclass
from fleettui.model.unknown import Maybe, Unknown

NOT_TOLD = Unknown("not told by the engine")
"""The key is not there: the model has no such thing, or its file leaves it to a default."""
NULL_LIST = Unknown("a list that the engine gives only when asked with verbose")

Counts = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """Attention of a model: `<architecture>.attention.*` and what decides which layers have a cache."""

    heads: Maybe[Counts] = NOT_TOLD
    kv_heads: Maybe[Counts] = NOT_TOLD
    """0 in a layer that has no attention."""
    key_length: Maybe[int] = NOT_TOLD
    value_length: Maybe[int] = NOT_TOLD
    key_length_swa: Maybe[int] = NOT_TOLD
    """In sliding-window layers; they may have heads of another size."""
    value_length_swa: Maybe[int] = NOT_TOLD
    key_length_mla: Maybe[int] = NOT_TOLD
    """Known in files made for multi-head latent attention."""
    window: Maybe[int] = NOT_TOLD
    """Tokens that a sliding-window layer looks back."""
    window_pattern: Maybe[Counts] = NOT_TOLD
    """One number n: every n-th layer is global. A list: not 0 in sliding-window layers."""
    shared_kv_layers: Maybe[int] = NOT_TOLD
    """The last n layers use the cache of earlier ones."""
    full_attention_interval: Maybe[int] = NOT_TOLD
    """Every n-th layer has attention, the others keep a state of fixed size."""
    recurrent_layers: Maybe[Counts] = NOT_TOLD
    """Not 0 in layers that keep a state of fixed size."""
    kv_lora_rank: Maybe[int] = NOT_TOLD
    rope_dimensions: Maybe[int] = NOT_TOLD
    is_causal: Maybe[bool] = NOT_TOLD
    """False in encoders: they have no cache."""


@dataclass(frozen=True, slots=True)
class StateShape:
    """Recurrent layers: `<architecture>.ssm.*` and `shortconv.*`."""

    conv_kernel: Maybe[int] = NOT_TOLD
    inner_size: Maybe[int] = NOT_TOLD
    state_size: Maybe[int] = NOT_TOLD
    group_count: Maybe[int] = NOT_TOLD
    short_conv: Maybe[int] = NOT_TOLD
    """Length of a short convolution (LFM2)."""


@dataclass(frozen=True, slots=True)
class TensorSums:
    """Bytes of a model's tensors, summed by kind."""

    total_bytes: int
    embedding_bytes: int = 0
    """`token_embd`: looked up in main memory."""
    lookup_bytes: int = 0
    """`per_layer_token_embd`: looked up in main memory too, and never an output matrix."""
    vision_bytes: int = 0
    """Projector and encoders of pictures and sound in the same file; part of the total."""
    has_output: bool = True
    """False: the embedding is the output matrix too, so it lies on the GPU as well."""
    count: int = 0

    @property
    def gpu_bytes(self) -> int:
        """What lies on the GPU when all layers do."""
        on_gpu = self.total_bytes - self.lookup_bytes
        return on_gpu - self.embedding_bytes if self.has_output else on_gpu


@dataclass(frozen=True, slots=True)
class ModelShape:
    """One model; the same for every machine that has the same digest."""

    architecture: Maybe[str] = NOT_TOLD
    layers: Maybe[int] = NOT_TOLD
    """Blocks, those for speculative decoding included."""
    embedding_length: Maybe[int] = NOT_TOLD
    max_context: Maybe[int] = NOT_TOLD
    """Tokens it was trained for."""
    own_context: Maybe[int] = NOT_TOLD
    """`num_ctx` of its Modelfile: counts where a request names none, before the server's own setting."""
    vocabulary: Maybe[int] = NOT_TOLD
    feed_forward: Maybe[Counts] = NOT_TOLD
    experts: Maybe[int] = NOT_TOLD
    experts_used: Maybe[int] = NOT_TOLD
    nextn_layers: Maybe[int] = NOT_TOLD
    """Blocks at the end that only speculative decoding uses."""
    parameters: Maybe[int] = NOT_TOLD
    file_type: Maybe[int] = NOT_TOLD
    """`general.file_type` of GGUF: the most frequent quantisation."""
    attention: AttentionShape = AttentionShape()
    state: StateShape = StateShape()
    tensors: Maybe[TensorSums] = NOT_TOLD
    has_projector: bool = False
    """A projector in a file of its own belongs to it."""
    projector_parameters: Maybe[int] = NOT_TOLD
    capabilities: tuple[str, ...] = ()
    """`completion`, `embedding`, `vision`, … in the engine's own words."""
