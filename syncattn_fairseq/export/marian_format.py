"""Export to MarianMT of Hugging Face, the class of OPUS-MT: the inverse of an import."""

from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from ..base.errors import DataError
from ..base.files import read_file
from ..data.pieces import TAG, add_line_reading
from ..data.words import is_raw
from .card import describe_words, sentence_code
from .check import Sample, target_scores
from .ctranslate2_format import are_sentencepiece, name_missing_pieces, refuse_options
from .fold import FoldedModel
from .format import Format
from .transformers_format import find_longest, load_transformers, write_tokenizer

_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish"}
_CLASS = "MarianMT of Hugging Face"
#: A symbol whose score is below this is never written, and need not be a word of the other program.
_UNLIKELY = -50.0


class MarianFormat(Format):
    """The export format of Hugging Face's MarianMT, with the files of an OPUS-MT model."""

    loads_here = False

    def refuse(self, folded: FoldedModel) -> None:
        """Raise `DataError` if the model has a feature missing from MarianMT."""
        load_transformers()
        cfg = folded.model.cfg
        if folded.positions != "marian":
            folded.reject(
                f"{_CLASS} supports only --positions marian, which models have that were trained "
                "from an imported Marian model; use --format transformers or ctranslate2"
            )
        refuse_options(folded, _CLASS, same_heads=False)
        if folded.labels is not None:
            folded.reject(
                f"the model reads dependency labels (S&H), and {_CLASS} does not; use --format "
                "ctranslate2"
            )
        if cfg.encoder.normalize_before or cfg.decoder.normalize_before or cfg.layernorm_embedding:
            folded.reject(
                f"{_CLASS} has no --normalize-before and no --layernorm-embedding; use --format "
                "ctranslate2"
            )
        if cfg.activation_fn not in _ACTIVATIONS:
            folded.reject(f"{_CLASS} has no --activation-fn {cfg.activation_fn}")
        if not are_sentencepiece(folded):
            folded.reject(f"MarianMT's tokenizer needs {name_missing_pieces(folded)}")

    def write(self, folded: FoldedModel, folder: Path, quantization: str | None) -> None:
        """Write MarianMT's settings and weights, its vocabularies and subword models."""
        transformers = load_transformers()
        cfg, order = folded.model.cfg, _Order(folded)
        source, target = order.words
        pad = source.index("<pad>")
        start = pad if order.starts_padded else target.index("</s>")
        state = _convert(folded, order)
        config = transformers.MarianConfig(
            vocab_size=len(source),
            decoder_vocab_size=len(target),
            share_encoder_decoder_embeddings=order.shared,
            tie_word_embeddings=order.tied,
            d_model=cfg.encoder.embed_dim,
            max_position_embeddings=max(cfg.max_source_positions, cfg.max_target_positions),
            encoder_ffn_dim=cfg.encoder.ffn_embed_dim,
            encoder_layers=cfg.encoder.layers,
            encoder_attention_heads=cfg.encoder.attention_heads,
            decoder_ffn_dim=cfg.decoder.ffn_embed_dim,
            decoder_layers=cfg.decoder.layers,
            decoder_attention_heads=cfg.decoder.attention_heads,
            activation_function=_ACTIVATIONS[cfg.activation_fn],
            dropout=cfg.dropout,
            attention_dropout=cfg.attention_dropout,
            activation_dropout=cfg.activation_dropout,
            scale_embedding=not cfg.no_scale_embedding,
            pad_token_id=pad,
            eos_token_id=target.index("</s>"),
            forced_eos_token_id=target.index("</s>"),
            decoder_start_token_id=start,
        )
        model = transformers.MarianMTModel(config)
        missing, unexpected = model.load_state_dict(state, strict=False)
        # It computes its sinusoids itself.
        wrong = [key for key in missing if "embed_positions" not in key] + [*unexpected]
        if wrong:
            raise DataError(f"{folded.name}: MarianMT has different parameters: {', '.join(wrong)}")
        settings = model.generation_config
        settings.max_length = find_longest(folded)
        settings.num_beams, settings.early_stopping = 5, True
        settings.bad_words_ids = [[pad]]
        settings.decoder_start_token_id = start
        model.save_pretrained(folder)
        vocabularies = [source] if source == target else [source, target]
        write_tokenizer(folded, folder, _read_subwords(folded), vocabularies)

    @torch.no_grad()
    def scores(self, folder: Path, folded: FoldedModel, sample: Sample) -> list[float]:
        """Return the log-probability of each target under MarianMT, loaded from the folder.

        MarianMT's sources are padded on the right.
        """
        model = load_transformers().MarianMTModel.from_pretrained(folder).eval()
        order = _Order(folded)
        pad = model.config.pad_token_id
        texts = [
            row[row != folded.task.source_dictionary.pad()]
            for row in sample.net_input["src_tokens"]
        ]
        sources = torch.nn.utils.rnn.pad_sequence(
            [order.theirs[0][text] for text in texts], batch_first=True, padding_value=pad
        )
        before = order.theirs[1][sample.net_input["prev_output_tokens"]]
        before[:, 0] = model.config.decoder_start_token_id
        logits = model(
            input_ids=sources,
            attention_mask=sources.ne(pad).long(),
            decoder_input_ids=before,
            use_cache=False,
        ).logits.float()
        ours = logits.new_full((*logits.shape[:2], len(folded.target_words)), float("-inf"))
        ours[..., order.ours[1]] = logits.log_softmax(-1)
        return target_scores(ours, sample.target)

    def usage(self, folded: FoldedModel, folder: Path) -> list[str]:
        """Return Python code to translate with Hugging Face's ``generate``."""
        sentence, note = sentence_code(folded.sides[0]), ""
        tags = [word for word in folded.source_words if TAG.fullmatch(word)]
        if tags:
            own = f">>{folded.target}<<"
            tag = own if own in tags else tags[0]
            sentence = f'"{tag} {sentence[1:]}'
            note = f"# The target language is said first; there are {len(tags)} of them.\n"
        return [
            "from transformers import MarianMTModel, MarianTokenizer\n"
            f'tokenizer, model = (kind.from_pretrained("{folder}") for kind in '
            "(MarianTokenizer, MarianMTModel))\n"
            f"{describe_words(folded.sides[0])}{note}"
            f"batch = tokenizer([{sentence}], return_tensors='pt')\n"
            "print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True)[0])"
        ]


class _Order:
    """The order of source and target symbols in MarianMT's numbering.

    ``</s>`` and ``<unk>`` come first. ``<pad>`` has the same number in source and target, the last
    of the smaller vocabulary. ``<s>`` is left out if it is never written.
    """

    def __init__(self, folded: FoldedModel) -> None:
        self.folded = folded
        self.starts_padded = bool(getattr(folded.original.cfg, "zero_start", False))
        tables = [
            folded.model.encoder.embed_tokens.weight,
            folded.model.decoder.embed_tokens.weight,
            folded.model.decoder.output_projection.weight,
        ]
        self.tied = torch.equal(tables[1], tables[2])
        same = [*folded.source_words] == [*folded.target_words]
        self.shared = same and torch.equal(tables[0], tables[1])

    @cached_property
    def words(self) -> tuple[list[str], list[str]]:
        """The symbols of source and target, in MarianMT's order."""
        bias = self.folded.model.decoder.output_projection.bias
        begin = self.folded.task.target_dictionary.bos()
        kept = ["<s>"] if bias is None or bias[begin] > _UNLIKELY else []
        both = [
            ["</s>", "<unk>", *kept, *(word for word in words if word not in _SPECIAL)]
            for words in (self.folded.source_words, self.folded.target_words)
        ]
        pad = min(map(len, both))
        source, target = ([*words[:pad], "<pad>", *words[pad:]] for words in both)
        return source, target

    @cached_property
    def ours(self) -> tuple[Tensor, Tensor]:
        """For source and target, fairseq's index of each MarianMT symbol."""
        sides = self.folded.source_words, self.folded.target_words
        source, target = (
            torch.tensor([{word: n for n, word in enumerate(known)}[word] for word in words])
            for known, words in zip(sides, self.words, strict=True)
        )
        return source, target

    @cached_property
    def theirs(self) -> tuple[Tensor, Tensor]:
        """For source and target, MarianMT's index of each fairseq symbol; any for ``<s>``."""
        sides = self.folded.source_words, self.folded.target_words
        source, target = (
            torch.zeros(len(known), dtype=torch.long).index_copy(
                0, numbers, torch.arange(len(numbers))
            )
            for known, numbers in zip(sides, self.ours, strict=True)
        )
        return source, target


_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")


def _convert(folded: FoldedModel, order: _Order) -> dict[str, Tensor]:
    """Return the weights by MarianMT's names, in its order of symbols."""
    state = folded.model.state_dict()
    tables = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
    output, bias = "decoder.output_projection.weight", "decoder.output_projection.bias"
    left = (*tables, output, bias)
    made = {
        f"model.{key}": value
        for key, value in state.items()
        if key not in left
        and not key.endswith((".version", "._float_tensor"))
        and ".embed_positions." not in key
    }
    rows = [state[key][numbers] for key, numbers in zip(tables, order.ours, strict=True)]
    target = order.ours[1]
    head = rows[1] if order.tied else state[output][target]
    scores = state[bias][target] if bias in state else head.new_zeros(len(target))
    made |= {f"model.{key}": table for key, table in zip(tables, rows, strict=True)}
    if order.shared:
        made["model.shared.weight"] = rows[0]
    made |= {"lm_head.weight": head, "final_logits_bias": scores.unsqueeze(0)}
    return made


def _read_subwords(folded: FoldedModel) -> list[bytes]:
    """Return the sentencepiece models of source and target for MarianMT's tokenizer."""
    assert folded.subwords is not None and folded.segmenters is not None
    models = []
    for model, segmenter in zip(folded.subwords, folded.segmenters, strict=True):
        content = read_file(model.path)
        # A model of raw sentences reads them as it was published.
        models.append(content if is_raw(segmenter.scheme) else add_line_reading(content))
    return models
