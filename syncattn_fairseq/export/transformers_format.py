"""Export to FSMT of Hugging Face, the class for models of fairseq."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from ..base.errors import DataError
from ..base.files import read_file
from ..data.pieces import add_line_reading
from ..inference.model import MAX_LEN, SHORT
from .card import describe_words, sentence_code
from .check import Sample, target_scores
from .ctranslate2_format import (
    are_sentencepiece,
    name_missing_pieces,
    refuse_ends,
    refuse_options,
    refuse_positions,
)
from .fold import FoldedModel
from .format import Format

_ACTIVATIONS = {"relu": "relu", "gelu": "gelu"}


class TransformersFormat(Format):
    """The export format of Hugging Face's FSMT: a model and a tokenizer in a folder."""

    loads_here = False

    def refuse(self, folded: FoldedModel) -> None:
        """Raise `DataError` if the model has a feature missing from FSMT."""
        load_transformers()
        refuse_positions(folded, "FSMT of Hugging Face")
        refuse_ends(folded, "FSMT of Hugging Face")
        refuse_options(folded, "FSMT of Hugging Face")
        cfg = folded.model.cfg
        if folded.labels is not None:
            folded.reject(
                "the model reads dependency labels (S&H), and FSMT of Hugging Face does not; use "
                "--format ctranslate2"
            )
        if cfg.encoder.normalize_before or cfg.decoder.normalize_before:
            folded.reject(
                "FSMT of Hugging Face has no --normalize-before; use --format ctranslate2"
            )
        if cfg.layernorm_embedding or cfg.encoder.learned_pos or cfg.decoder.learned_pos:
            folded.reject(
                "FSMT of Hugging Face has no --layernorm-embedding and no learned positions; use "
                "--format ctranslate2"
            )
        if cfg.activation_fn not in _ACTIVATIONS:
            folded.reject(f"FSMT of Hugging Face has no --activation-fn {cfg.activation_fn}")
        if not are_sentencepiece(folded):
            folded.reject(f"a tokenizer of Hugging Face needs {name_missing_pieces(folded)}")

    def write(self, folded: FoldedModel, folder: Path, quantization: str | None) -> None:
        """Write FSMT's settings and weights, and a tokenizer."""
        transformers = load_transformers()
        cfg = folded.model.cfg
        positions = max(cfg.max_source_positions, cfg.max_target_positions)
        config = transformers.FSMTConfig(
            langs=[folded.source, folded.target],
            src_vocab_size=len(folded.source_words),
            tgt_vocab_size=len(folded.target_words),
            activation_function=_ACTIVATIONS[cfg.activation_fn],
            d_model=cfg.encoder.embed_dim,
            max_position_embeddings=positions,
            encoder_ffn_dim=cfg.encoder.ffn_embed_dim,
            encoder_layers=cfg.encoder.layers,
            encoder_attention_heads=cfg.encoder.attention_heads,
            decoder_ffn_dim=cfg.decoder.ffn_embed_dim,
            decoder_layers=cfg.decoder.layers,
            decoder_attention_heads=cfg.decoder.attention_heads,
            dropout=cfg.dropout,
            attention_dropout=cfg.attention_dropout,
            activation_dropout=cfg.activation_dropout,
            scale_embedding=not cfg.no_scale_embedding,
            # It ties the tables of both sides, too.
            tie_word_embeddings=cfg.share_all_embeddings,
        )
        model = transformers.FSMTForConditionalGeneration(config)
        state = {f"model.{key}": value for key, value in folded.model.state_dict().items()}
        missing, unexpected = model.load_state_dict(state, strict=False)
        # Only its sinusoids may be missing: it computes them itself, and fairseq does not save
        # them.
        wrong = [key for key in missing if "embed_positions" not in key]
        wrong += [key for key in unexpected if not key.endswith((".version", "._float_tensor"))]
        if wrong:
            raise DataError(f"{folded.name}: FSMT has different parameters: {', '.join(wrong)}")
        # It cuts no translation that we would not cut. What keeps a search that does not end from
        # holding its batch for so long depends on the source: see `usage`.
        model.generation_config.max_length = find_longest(folded)
        # The search of fairseq: it ends when as many translations as beams have ended.
        model.generation_config.num_beams = 5
        model.generation_config.early_stopping = True
        model.save_pretrained(folder)
        assert folded.subwords is not None  # else refused
        models = [add_line_reading(read_file(model.path)) for model in folded.subwords]
        write_tokenizer(folded, folder, models, [folded.source_words, folded.target_words])

    def scores(self, folder: Path, folded: FoldedModel, sample: Sample) -> list[float]:
        """Return the log-probability of each target under FSMT, loaded from the folder."""
        transformers = load_transformers()
        model = transformers.FSMTForConditionalGeneration.from_pretrained(folder).eval()
        tokens = sample.net_input["src_tokens"]
        with torch.no_grad():
            logits = model(
                input_ids=tokens,
                attention_mask=tokens.ne(folded.task.source_dictionary.pad()).long(),
                decoder_input_ids=sample.net_input["prev_output_tokens"],
                use_cache=False,
            ).logits
        return target_scores(logits.float().log_softmax(-1), sample.target)

    def usage(self, folded: FoldedModel, folder: Path) -> list[str]:
        """Return Python code to translate with Hugging Face's ``generate``."""
        return [
            "# Not with transformers 5.0 to 5.17, which take each subword of a translation "
            "for the first.\n"
            "from transformers import AutoTokenizer, FSMTForConditionalGeneration as FSMT\n"
            f'tokenizer, model = (kind.from_pretrained("{folder}") for kind in '
            "(AutoTokenizer, FSMT))\n"
            f"{describe_words(folded.sides[0])}text = {sentence_code(folded.sides[0])}\n"
            "# After a space: >>x<< at the beginning is a language for Marian's tokenizer.\n"
            "batch = tokenizer([f' {text}'], return_tensors='pt')\n"
            "# A translation may have 4 to 8 times the subwords of its batch's longest source.\n"
            'size = batch["input_ids"].shape[1] - 1\n'
            f"most = min(max({SHORT}, 4 << (size - 1).bit_length()) + 2, {find_longest(folded)})\n"
            "found = model.generate(**batch, max_length=most)\n"
            "print(tokenizer.batch_decode(found, skip_special_tokens=True)[0])"
        ]


def find_longest(folded: FoldedModel) -> int:
    """Return the maximum number of symbols of a translation, including start and end symbols."""
    return min(MAX_LEN, folded.model.max_positions()[1] - 1) + 2


def load_transformers() -> Any:
    """Import and return Hugging Face Transformers; `DataError` if it is not installed."""
    try:
        import transformers
    except ImportError:
        raise DataError(
            "this format needs transformers; pip install 'syncattn-fairseq[transformers]'"
        ) from None
    transformers.utils.logging.disable_progress_bar()  # a model takes a second
    return transformers


def write_tokenizer(
    folded: FoldedModel,
    folder: Path,
    models: Sequence[bytes],
    vocabularies: Sequence[Sequence[str]],
) -> None:
    """Write Marian's tokenizer: subword models, vocabularies and settings.

    Args:
        folded: the model to export, with its languages and its longest source.
        folder: the folder of the export.
        models: the sentencepiece models of source and target.
        vocabularies: the symbols in the order of their numbers, of source and target; one
            vocabulary if source and target share it.
    """
    spm = ("source.spm", "target.spm")
    for name, content in zip(spm, models, strict=True):
        (folder / name).write_bytes(content)
    tables = ("vocab.json", "target_vocab.json")[: len(vocabularies)]
    for name, words in zip(tables, vocabularies, strict=True):
        numbers = {word: number for number, word in enumerate(words)}
        (folder / name).write_text(json.dumps(numbers, ensure_ascii=False), encoding="utf-8")
    tokenizer = load_transformers().MarianTokenizer(
        *(str(folder / name) for name in (*spm, *tables)),
        source_lang=folded.source,
        target_lang=folded.target,
        model_max_length=folded.model.cfg.max_source_positions,
        separate_vocabs=len(vocabularies) == 2,
        split_special_tokens=True,
    )
    tokenizer.save_pretrained(folder)
