"""Export to CTranslate2, which decodes without fairseq, several times as fast."""

from pathlib import Path
from typing import Any

import numpy as np
from fairseq.modules import LearnedPositionalEmbedding
from torch import Tensor

from ..data.segmenters import Pieces, name_subwords
from ..functional.controls.t5 import FURTHEST
from ..inference.exported import FACTOR, load_ctranslate2
from ..modules.positions import POSITIONS
from .card import describe_words, sentence_code
from .check import Sample
from .fold import FoldedModel
from .format import Format

_ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "gelu_fast": "GELUTanh", "swish": "SWISH"}

#: The kinds of ``--positions`` that CTranslate2's attention supports.
_POSITIONS = ("rotary", "bias", "marian")


class CTranslate2Format(Format):
    """The export format of CTranslate2, written with CTranslate2's own model specifications."""

    has_shortlists = True
    quantizations = ("int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16",
                     "bfloat16")  # fmt: skip

    def refuse(self, folded: FoldedModel) -> None:
        """Raise `DataError` if CTranslate2 lacks the model's positions, norms or activation."""
        load_ctranslate2(folded.positions)
        if folded.positions not in _POSITIONS:
            refuse_positions(folded, "CTranslate2's encoder")
        refuse_options(folded, "CTranslate2")
        cfg = folded.model.cfg
        if cfg.encoder.normalize_before != cfg.decoder.normalize_before:
            folded.reject("CTranslate2 needs --normalize-before on both sides or on neither")
        if cfg.no_decoder_final_norm:
            folded.reject(
                "CTranslate2 needs a final norm in the decoder, which --no-decoder-final-norm "
                "leaves out"
            )
        if cfg.activation_fn not in _ACTIVATIONS:
            folded.reject(f"CTranslate2 has no --activation-fn {cfg.activation_fn}")

    def write(self, folded: FoldedModel, folder: Path, quantization: str | None) -> None:
        """Write the files of a CTranslate2 model into a folder."""
        from ctranslate2.specs import TransformerSpec, common_spec

        cfg = folded.model.cfg
        spec = TransformerSpec.from_config(
            (cfg.encoder.layers, cfg.decoder.layers),
            cfg.encoder.attention_heads,
            pre_norm=cfg.encoder.normalize_before,
            activation=getattr(common_spec.Activation, _ACTIVATIONS[cfg.activation_fn]),
            alignment_layer=folded.alignment_layer - 1,
            alignment_heads=getattr(folded.original.cfg, "aligned_heads", 0),  # 0 = all
            num_source_embeddings=1 if folded.labels is None else 2,
            embeddings_merge=common_spec.EmbeddingsMerge.CONCAT,
            layernorm_embedding=cfg.layernorm_embedding,
        )
        for side in ("encoder", "decoder"):
            _set_positions(getattr(spec, side), getattr(folded.original, side), folded.positions)
            _fill_stack(getattr(spec, side), getattr(folded.model, side))
        _fill_linear(spec.decoder.projection, folded.model.decoder.output_projection)
        tokens = folded.model.encoder.embed_tokens.weight
        spec.register_source_vocabulary([*folded.source_words])
        if folded.labels is None:
            spec.encoder.embeddings[0].weight = _array(tokens)
        else:
            spec.encoder.embeddings[0].weight = _array(tokens[:, : -folded.labels.size(1)])
            spec.encoder.embeddings[1].weight = _array(folded.labels)
            spec.register_source_vocabulary([*folded.label_names])
        spec.decoder.embeddings.weight = _array(folded.model.decoder.embed_tokens.weight)
        spec.register_target_vocabulary([*folded.target_words])
        starts_padded = getattr(folded.original.cfg, "zero_start", False)
        spec.config.decoder_start_token = "<pad>" if starts_padded else spec.config.eos_token
        spec.config.add_source_eos = True
        spec.config.layer_norm_epsilon = 1e-5
        spec.validate()
        spec.optimize(quantization=quantization)
        spec.save(str(folder))

    def scores(self, folder: Path, folded: FoldedModel, sample: Sample) -> list[float]:
        """Return the log-probability of each target under CTranslate2, on the CPU."""
        translator = load_ctranslate2().Translator(str(folder), device="cpu")
        sources = sample.sources(folded.source_words)
        if folded.labels is not None:
            labels = sample.sources(folded.label_names, "src_labels")
            sources = [
                [f"{token}{FACTOR}{label}" for token, label in zip(*pair, strict=True)]
                for pair in zip(sources, labels, strict=True)
            ]
        targets = sample.targets(folded.target_words)
        results = translator.score_batch(sources, targets, max_input_length=0)
        return [float(sum(result.log_probs)) for result in results]

    def usage(self, folded: FoldedModel, folder: Path) -> list[str]:
        """Return Python code to translate with this package and with CTranslate2 alone."""
        parser = f', source_parser="stanza:{folded.source}"' if folded.labels is not None else ""
        sentence = "A sentence." if all(folded.sides) else "A sentence ."
        ours = (
            "import syncattn_fairseq\n"
            f'model = syncattn_fairseq.load("{folder}"{parser})\n'
            f'print(model.translate(["{sentence}"])[0])'
        )
        alone = are_sentencepiece(folded) and not any(x and x.first for x in folded.sides)
        if folded.labels is not None or not alone:
            return [ours]
        source, target = (name_subwords(each) for each in (folded.source, folded.target))
        return [
            ours,
            f"import ctranslate2, sentencepiece\n"
            "source, target = map(sentencepiece.SentencePieceProcessor, "
            f'("{folder}/{source}", "{folder}/{target}"))\n'
            f"{describe_words(folded.sides[0])}"
            f"pieces = source.encode({sentence_code(folded.sides[0])}, out_type=str)\n"
            f'[result] = ctranslate2.Translator("{folder}").translate_batch([pieces], '
            "beam_size=5)\n"
            "print(target.decode(result.hypotheses[0]))",
        ]


def are_sentencepiece(folded: FoldedModel) -> bool:
    """Return whether the subword models of source and target are sentencepiece models."""
    return all(isinstance(each, Pieces) for each in folded.segmenters or [None])


def name_missing_pieces(folded: FoldedModel) -> str:
    """Say in an error which subword models an export needs, if they are not sentencepiece's."""
    if folded.segmenters:
        return (
            "sentencepiece models, but this model has codes of subword-nmt or whole words; use "
            "--format ctranslate2 or fairseq"
        )
    return "the sentencepiece models of the training; give them with --subwords"


def _are_embedded(folded: FoldedModel) -> bool:
    """Return whether positions are in the embeddings or nowhere, so that attention is plain."""
    return POSITIONS[folded.positions].is_plain()


def refuse_positions(folded: FoldedModel, program: str) -> None:
    """Raise `DataError` if position encodings act in the attention, or are those of Marian."""
    if not _are_embedded(folded) or folded.positions == "marian":
        hint = "; --format ctranslate2 supports them" if folded.positions in _POSITIONS else ""
        folded.reject(f"{program} does not support --positions {folded.positions}{hint}")


def refuse_ends(folded: FoldedModel, program: str) -> None:
    """Raise `DataError` if the model has a language token, an output bias or ``--zero-start``."""
    for preparation in folded.preparations.values():
        if preparation.first:
            folded.reject(
                f"the model reads the token {preparation.first} first, and a folder for "
                f"{program} cannot record this; --format ctranslate2 can"
            )
    cfg = folded.original.cfg
    for name in ("output_bias", "zero_start"):
        if getattr(cfg, name, False):
            option = name.replace("_", "-")
            folded.reject(f"{program} does not support --{option}; --format ctranslate2 does")


def refuse_options(folded: FoldedModel, program: str, same_heads: bool = True) -> None:
    """Raise `DataError` if the model has an option not supported by ``program``.

    Args:
        folded: the model.
        program: the name of the program that the model is exported to.
        same_heads: whether encoder and decoder must have as many heads.
    """
    cfg = folded.model.cfg
    if same_heads and cfg.encoder.attention_heads != cfg.decoder.attention_heads:
        folded.reject(f"{program} needs the same number of heads in encoder and decoder")
    if cfg.no_token_positional_embeddings and _are_embedded(folded):
        folded.reject(
            "the model has no positions (--positions none, or --no-token-positional-embeddings), "
            f"and {program} needs positions"
        )
    if cfg.adaptive_softmax_cutoff or cfg.adaptive_input:
        folded.reject(f"{program} does not support adaptive softmax or adaptive input")
    if cfg.no_cross_attention or cfg.cross_self_attention:
        folded.reject(f"{program} needs separate cross-attention in each decoder layer")
    for unknown in ("project_in_dim", "project_out_dim"):
        if getattr(folded.model.decoder, unknown) is not None:
            folded.reject(f"{program} needs decoder embeddings of the same width as the decoder")


def _set_positions(spec: Any, module: Any, positions: str) -> None:
    from ctranslate2.specs.attention_spec import MultiHeadAttentionSpec

    for layer_spec, layer in zip(spec.layer, module.layers, strict=True):
        if positions == "rotary":
            layer_spec.self_attention = MultiHeadAttentionSpec(
                self_attention=True,
                rotary_dim=0,  # all dimensions
            )
        elif positions == "bias":
            attention = MultiHeadAttentionSpec(self_attention=True, relative_attention_bias=True)
            attention.relative_attention_bias = _array(layer.self_attn.positions.weight)
            attention.relative_attention_max_distance = np.int32(FURTHEST)
            layer_spec.self_attention = attention


def _fill_stack(spec: Any, module: Any) -> None:
    spec.scale_embeddings = module.embed_scale != 1.0
    positions = module.embed_positions
    if positions is not None:
        learned = isinstance(positions, LearnedPositionalEmbedding)
        table = positions.weight if learned else positions.weights
        spec.position_encodings.encodings = _array(table[positions.padding_idx + 1 :])
    for layer_spec, layer in zip(spec.layer, module.layers, strict=True):
        _fill_attention(layer_spec.self_attention, layer.self_attn, layer.self_attn_layer_norm)
        if hasattr(layer, "encoder_attn"):
            _fill_attention(layer_spec.attention, layer.encoder_attn, layer.encoder_attn_layer_norm)
        _fill_norm(layer_spec.ffn.layer_norm, layer.final_layer_norm)
        _fill_linear(layer_spec.ffn.linear_0, layer.fc1)
        _fill_linear(layer_spec.ffn.linear_1, layer.fc2)
    if module.layer_norm is not None:
        _fill_norm(spec.layer_norm, module.layer_norm)
    if module.layernorm_embedding is not None:
        _fill_norm(spec.layernorm_embedding, module.layernorm_embedding)


def _fill_attention(spec: Any, module: Any, norm: Any) -> None:
    """Fill in an attention; CTranslate2 joins projections of the same input."""
    query, key, value = module.q_proj, module.k_proj, module.v_proj
    joined = [[query, key, value]] if module.self_attention else [[query], [key, value]]
    for linear_spec, projections in zip(spec.linear, joined, strict=False):
        linear_spec.weight = np.concatenate([_array(p.weight) for p in projections])
        linear_spec.bias = np.concatenate([_array(p.bias) for p in projections])
    _fill_linear(spec.linear[-1], module.out_proj)
    _fill_norm(spec.layer_norm, norm)


def _fill_norm(spec: Any, module: Any) -> None:
    spec.gamma, spec.beta = _array(module.weight), _array(module.bias)


def _fill_linear(spec: Any, module: Any) -> None:
    spec.weight = _array(module.weight)
    if module.bias is not None:
        spec.bias = _array(module.bias)


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().float().cpu().contiguous().numpy()
