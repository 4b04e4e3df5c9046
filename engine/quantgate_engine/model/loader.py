"""From a Hugging Face folder to the decoder's weights, layer by layer, so that one layer at most stands in float32."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from quantgate_engine.model.checkpoint import Checkpoint
from quantgate_engine.model.config import DecoderConfig
from quantgate_engine.model.linear_layers import EMBEDDING, LinearLayers
from quantgate_engine.quant.dense import store_dense
from quantgate_engine.quant.precision import Precision
from quantgate_kernels.kernel_set import KernelSet
from quantgate_kernels.layers import DecoderLayer, DecoderWeights, HeadNorm, Projection, TableWeight
from quantgate_kernels.stacking import stack_outputs
from quantgate_kernels.types import DenseWeight, LinearPart, LinearWeight, StoredWeight

# Rotary tables are computed; a tied head is the embedding, even where the file repeats it.
IGNORED_SUFFIXES = ("rotary_emb.inv_freq",)
TIED_HEAD_SUFFIX = "lm_head.weight"


@dataclass(frozen=True, slots=True)
class WeightLoader:
    """What turns a stored tensor into a weight of the decoder."""

    config: DecoderConfig
    layers: LinearLayers
    precision: Precision
    kernels: KernelSet
    device: torch.device

    def load(self, folder: Path) -> DecoderWeights:
        """Raises ModelError for a missing, superfluous or misshapen tensor, ConfigurationError for an unfit scheme."""
        config = self.config
        self.layers.check(config)
        with Checkpoint(folder) as checkpoint, torch.inference_mode():
            embedding_values = checkpoint.take(f"{EMBEDDING}.weight", config.head_shape).to(self.device)
            embedding = self._table(store_dense(embedding_values, self.precision))
            layers = tuple(self._layer(checkpoint, f"model.layers.{index}.") for index in range(config.num_layers))
            final_norm = self._norm(checkpoint, "model.norm.weight", config.hidden_size)
            head = self._head(self.layers.head(checkpoint, config), embedding)
            tied = (TIED_HEAD_SUFFIX,) if config.tied_head else ()
            checkpoint.refuse_leftovers(IGNORED_SUFFIXES + tied)
        return DecoderWeights(embedding=embedding, layers=layers, final_norm=final_norm, head=head)

    def _layer(self, checkpoint: Checkpoint, prefix: str) -> DecoderLayer:
        config = self.config
        attention, ffn = f"{prefix}self_attn.", f"{prefix}mlp."
        queries, keys = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
        head_norm = None
        if config.has_head_norm:
            head_norm = HeadNorm(
                query=self._norm(checkpoint, f"{attention}q_norm.weight", config.head_dim),
                key=self._norm(checkpoint, f"{attention}k_norm.weight", config.head_dim),
            )
        qkv_parts = {f"{attention}q_proj": queries, f"{attention}k_proj": keys, f"{attention}v_proj": keys}
        gate_up_parts = {f"{ffn}gate_proj": config.ffn_size, f"{ffn}up_proj": config.ffn_size}
        return DecoderLayer(
            attention_norm=self._norm(checkpoint, f"{prefix}input_layernorm.weight", config.hidden_size),
            query_key_value=self._projection(checkpoint, qkv_parts, config.hidden_size),
            head_norm=head_norm,
            attention_output=self._projection(checkpoint, {f"{attention}o_proj": config.hidden_size}, queries),
            ffn_norm=self._norm(checkpoint, f"{prefix}post_attention_layernorm.weight", config.hidden_size),
            gate_up=self._projection(checkpoint, gate_up_parts, config.hidden_size, split=True),
            down=self._projection(checkpoint, {f"{ffn}down_proj": config.hidden_size}, config.ffn_size),
        )

    def _projection(
        self, checkpoint: Checkpoint, parts: dict[str, int], inputs: int, *, split: bool = False
    ) -> Projection:
        """Layers that read the same input (name -> outputs), stacked into one product. split: they are gate and up."""
        weights, biases = [], []
        for name, outputs in parts.items():
            weights.append(self.layers.take(checkpoint, name, (outputs, inputs)))
            if name.rpartition(".")[2] in self.config.biased:
                biases.append(checkpoint.take(f"{name}.bias", (outputs,)))
        bias = torch.cat(biases).to(self.device, self.precision.compute) if biases else None
        return Projection(weight=self._stored(stack_outputs(weights), split=split), bias=bias)

    def _head(self, head: LinearPart | None, embedding: TableWeight) -> StoredWeight:
        """None: it is the embedding."""
        if head is None:
            return embedding
        return self._table(head) if isinstance(head, DenseWeight) else self._stored(head)

    def _norm(self, checkpoint: Checkpoint, name: str, size: int) -> Tensor:
        return checkpoint.take(name, (size,)).to(self.device, self.precision.compute)

    def _table(self, weight: DenseWeight) -> TableWeight:
        return self.kernels.stored_table(weight, self.precision.compute)

    def _stored(self, weight: LinearWeight, *, split: bool = False) -> StoredWeight:
        return self.kernels.stored_form(weight, self.precision.compute, split=split)
