"""Read a published translation model from its folder, as Hugging Face's hub has it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..base.errors import DataError, shorten
from ..base.files import read_json, read_text_file
from ..data.pieces import open_pieces
from ..data.preparation import Preparation
from ..data.segmenters import SubwordModel, is_file_name, open_segmenter
from ..data.splitters import choose_splitter
from ..data.words import RAW

#: The classes of models that can be imported, by their model_type in config.json.
CLASSES = {
    "marian": "MarianMTModel",
    "fsmt": "FSMTForConditionalGeneration",
    "m2m_100": "M2M100ForConditionalGeneration",
}
#: fairseq's names of the activations, by the names in config.json.
_ACTIVATIONS = {"swish": "swish", "silu": "swish", "relu": "relu", "gelu": "gelu"}
#: Settings that no class of Transformers reads, so that its model computes something else.
_UNREAD = {
    "normalize_before": True,
    "normalize_embedding": True,
    "static_position_embeddings": False,
}
_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
#: The file names of Marian's subword models.
SUBWORDS = ("source.spm", "target.spm")
#: The largest values of the settings that are allowed.
_MOST = {
    "d_model": 2**14,
    **{f"{side}_ffn_dim": 2**17 for side in ("encoder", "decoder")},
    **{f"{side}_layers": 200 for side in ("encoder", "decoder")},
    **{f"{side}_attention_heads": 512 for side in ("encoder", "decoder")},
    "max_position_embeddings": 2**20,
}
#: The subword model of M2M100 and NLLB, and the most symbols without meaning after all others.
PIECES, _MADE_UP = "sentencepiece.bpe.model", 64
#: Symbols that name a language: of M2M100, and of NLLB.
_LANGUAGE = re.compile(r"__[a-z]{2,3}__|[a-z]{3}_[A-Z][a-z]{3}")


@dataclass(frozen=True)
class Published:
    """A published translation model (Marian, FSMT or M2M100), with its vocabularies.

    Attributes:
        folder: the folder of the model's files.
        model: an object of Hugging Face's class, in evaluation mode.
        kind: ``marian``, ``fsmt`` or ``m2m_100``.
        languages: the source and the target language.
        words: the symbols of source and target, in the order of their numbers.
        first: the symbols that name the languages of source and target; empty: there are none.
        activation: the activation, by its name in ``--activation-fn``.
    """

    folder: Path
    model: Any
    kind: str
    languages: tuple[str, str]
    words: tuple[list[str], list[str]]
    first: tuple[str, str]
    activation: str

    @property
    def config(self) -> Any:
        """The settings of the published model, from config.json."""
        return self.model.config

    def find_subwords(self, scratch: Path) -> tuple[SubwordModel, SubwordModel] | None:
        """Return the checked subword models of source and target, or None without such files.

        Args:
            scratch: an existing folder for codes, which subword-nmt reads with another first line.
        """
        if self.kind == "fsmt" and (merges := self.folder / "merges.txt").is_file():
            codes = scratch / "codes"
            lines = read_text_file(merges)
            version = "" if lines.startswith("#version") else "#version: 0.2\n"
            codes.write_text(version + lines, encoding="utf-8")
            paths = [codes, codes]
        else:
            paths = [self.folder / name for name in self._name_pieces()]
            if not all(path.is_file() for path in paths):
                return None
            for path in paths:
                open_segmenter(path)
        return SubwordModel(paths[0]), SubwordModel(paths[1])

    def find_preparations(self) -> dict[str, Preparation]:
        """Return each language's tokenizer settings (raw text); empty if the model reads words."""
        if not all((self.folder / name).is_file() for name in self._name_pieces()):
            return {}
        pairs = zip(self.languages, self.first, strict=True)
        return {language: Preparation("raw", language, first=first) for language, first in pairs}

    def _name_pieces(self) -> list[str]:
        return [PIECES] * 2 if self.kind == "m2m_100" else [*SUBWORDS]

    def find_schemes(self) -> dict[str, str]:
        """Return how subwords are marked in each language; empty if the model reads words."""
        return {
            language: f"{RAW}{choose_splitter(language)}" for language in self.find_preparations()
        }


def read_published(folder: Path, source: str | None, target: str | None) -> Published:
    """Read a published model from its folder, and check that it can be imported.

    Args:
        folder: the folder of the model's files.
        source, target: the languages; None: as the folder says.

    Raises:
        DataError: a file is missing or damaged, the model is of another kind, or it has something
            that fairseq's Transformer lacks.
    """
    if not folder.is_dir():
        raise DataError(
            f"{folder}: no such folder; download the model, and give the path of its folder"
        )
    config = _read_table(folder / "config.json")
    kind = config.get("model_type")
    if kind not in CLASSES:
        raise DataError(
            f"{folder / 'config.json'}: the model is of the type {kind!r}; only "
            f"{', '.join(CLASSES)} can be imported"
        )
    for name, value in _UNREAD.items():
        if kind == "marian" and config.get(name) is value:
            raise DataError(
                f"{folder / 'config.json'}: {name} is {value}, which {CLASSES[kind]} does not "
                "compute; this model cannot be imported"
            )
    activation = config.get("activation_function", "gelu" if kind == "marian" else "relu")
    if activation not in _ACTIVATIONS:
        raise DataError(
            f"{folder / 'config.json'}: the model has the activation {activation!r}; only "
            f"{', '.join(_ACTIVATIONS)} can be imported"
        )
    _check_settings(folder / "config.json", config)
    _check_files(folder, config)
    first = ("", "")
    if kind == "m2m_100":
        languages = _name_languages(folder, source, target)
        symbols = _list_symbols(folder, config)
        words = symbols, symbols
        first = _find_first(folder, symbols, languages)
    else:
        languages = _find_languages(folder, config, source, target)
        words = _read_vocabularies(folder, config)
    _check_vocabularies(folder / "config.json", config, kind, words)
    model = _load(folder, CLASSES[kind])
    published = Published(folder, model, kind, languages, words, first, _ACTIVATIONS[activation])
    _check(published)
    return published


def _check_settings(path: Path, config: dict[str, Any]) -> None:
    """Check the sizes in the settings before use, as a stranger may have written them.

    Sizes that are missing have Transformers' defaults.
    """
    for name, most in _MOST.items():
        value = config.get(name, 2)
        if type(value) is not int or not (2 if "position" in name else 1) <= value <= most:
            raise DataError(f"{path}: {name} is {shorten(repr(value), 40)}; get it again")
    for name in ("dropout", "attention_dropout", "activation_dropout"):
        value = config.get(name, 0)
        if type(value) not in (int, float) or not 0 <= value < 1:
            raise DataError(f"{path}: {name} is {shorten(repr(value), 40)}; get it again")


def _check_vocabularies(
    path: Path, config: dict[str, Any], kind: str, words: Sequence[Sequence[str]]
) -> None:
    """Check the sizes of vocabularies and the end of sentences in the settings."""
    names = ("src_vocab_size", "tgt_vocab_size") if kind == "fsmt" else ("vocab_size", "")
    if kind == "marian" and config.get("decoder_vocab_size") is not None:
        names = ("vocab_size", "decoder_vocab_size")
    for name, symbols in zip(names, words, strict=True):
        if name and config.get(name) != len(symbols):
            raise DataError(
                f"{path}: {name} is {shorten(repr(config.get(name)), 40)}, but its vocabulary has "
                f"{len(symbols)} symbols; get it again"
            )
    end = config.get("eos_token_id", 0 if kind == "marian" else 2)
    if "</s>" in words[1] and end != words[1].index("</s>"):
        raise DataError(
            f"{path}: eos_token_id is {shorten(repr(end), 40)}, but </s> is "
            f"{words[1].index('</s>')}; get it again"
        )


def _check_files(folder: Path, config: dict[str, Any]) -> None:
    """Refuse adapters, weights or code of another kind, and weights outside the folder."""
    if (folder / "adapter_config.json").exists():
        raise DataError(
            f"{folder / 'adapter_config.json'}: the folder is an adapter, not a whole model; "
            "merge the adapter into the model first, with merge_and_unload of peft"
        )
    for name in ("quantization_config", "auto_map", "transformers_weights"):
        if config.get(name) is not None:
            raise DataError(
                f"{folder / 'config.json'}: {name} refers to quantised or other weights, or to "
                "the model's own code; get the model in its original form"
            )
    present = [name for name in SUBWORDS if (folder / name).is_file()]
    if len(present) == 1:
        missing = next(name for name in SUBWORDS if name not in present)
        raise DataError(f"{folder / missing}: no such file; give a folder as published, complete")
    for path in sorted(folder.glob("*.index.json")):
        parts = _read_table(path).get("weight_map")
        names = parts.values() if isinstance(parts, dict) else [None]
        for part in names:
            if not is_file_name(part) or not (folder / str(part)).is_file():
                raise DataError(
                    f"{path}: names the file {shorten(repr(part), 60)}, which this folder does "
                    "not have; get the whole folder again"
                )


def _name_languages(folder: Path, source: str | None, target: str | None) -> tuple[str, str]:
    """Return the user's choice of two languages of a multilingual model."""
    for option, language in (("--source-lang", source), ("--target-lang", target)):
        if not is_file_name(language):
            raise DataError(
                f"{folder}: the model has many languages; choose one with {option}, by the "
                "model's own code"
            )
    if source == target:
        raise DataError(f"{folder}: both languages are {source}; choose two different languages")
    return str(source), str(target)


def _find_first(
    folder: Path, symbols: Sequence[str], languages: tuple[str, str]
) -> tuple[str, str]:
    """Return the symbols of the languages: ``__en__``, or ``eng_Latn`` of NLLB."""
    known = {*symbols}
    found = []
    for language in languages:
        names = [name for name in (f"__{language}__", language) if name in known]
        if not names or not _LANGUAGE.fullmatch(names[0]):
            codes = ", ".join(name.strip("_") for name in symbols if _LANGUAGE.fullmatch(name))
            raise DataError(
                f"{folder}: has no language {language}; choose from {shorten(codes, 200)}"
            )
        found.append(names[0])
    return found[0], found[1]


def _list_symbols(folder: Path, config: dict[str, Any]) -> list[str]:
    """List the symbols of M2M100 or NLLB: pieces, then languages, then symbols without meaning."""
    if not (folder / PIECES).is_file():
        raise DataError(
            f"{folder / PIECES}: no such file; give the complete folder of the published model"
        )
    if (folder / "vocab.json").is_file():
        symbols = _read_words(folder / "vocab.json")
        settings = _read_table(folder / "tokenizer_config.json")
        codes = settings.get("language_codes", "m2m100")
        module = load_transformers().models.m2m_100.tokenization_m2m_100
        if codes not in module.FAIRSEQ_LANGUAGE_CODES:
            raise DataError(f"{folder / 'tokenizer_config.json'}: language_codes is {codes!r}")
        symbols += [f"__{code}__" for code in module.FAIRSEQ_LANGUAGE_CODES[codes]]
    else:
        processor = open_pieces(folder / PIECES)
        symbols = [*_SPECIAL, *(processor.id_to_piece(n) for n in range(3, len(processor)))]
        symbols += _list_added(folder, symbols)
    size = config.get("vocab_size")
    if type(size) is not int or not len(symbols) <= size <= len(symbols) + _MADE_UP:
        raise DataError(
            f"{folder}: has {len(symbols)} symbols for {size!r} embedding vectors; get the model "
            "again"
        )
    return symbols + [f"madeupword{n:04d}" for n in range(size - len(symbols))]


def _list_added(folder: Path, symbols: Sequence[str]) -> list[str]:
    """List the symbols in NLLB's tokenizer after the sentencepiece symbols."""
    path = folder / "tokenizer.json"
    added = _read_table(path).get("added_tokens")
    try:
        numbers = {str(each["content"]): each["id"] for each in added or ()}
    except (TypeError, KeyError):
        numbers = {}
    known = {*symbols}
    later = {name: number for name, number in numbers.items() if name not in known}
    names = sorted(later, key=lambda name: str(later[name]).zfill(12))
    if not names or [later[name] for name in names] != [
        *range(len(symbols), len(symbols) + len(names))
    ]:
        raise DataError(
            f"{path}: the numbers of added_tokens do not continue those of {PIECES}; get the "
            "model again"
        )
    _check_words(names, path)
    return names


def load_transformers() -> Any:
    """Import and return Hugging Face Transformers; `DataError` if it is not installed."""
    try:
        import transformers
    except ImportError:
        raise DataError(
            "an import needs transformers; pip install 'syncattn-fairseq[transformers]'"
        ) from None
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()  # what is wrong is said in a line
    return transformers


def _load(folder: Path, name: str) -> Any:
    """Load the model without running any code of the folder."""
    kind = getattr(load_transformers(), name)
    try:
        model, found = kind.from_pretrained(
            folder,
            local_files_only=True,
            trust_remote_code=False,
            weights_only=True,
            ignore_mismatched_sizes=True,  # they are named below
            output_loading_info=True,
        )
    except Exception as error:
        if "Weights only load failed" in str(error):
            raise DataError(
                f"{folder}: its weights are a pickle that runs code when it is read; get the model "
                "as safetensors"
            ) from None
        raise DataError(
            f"{folder}: {name} cannot load the model ({shorten(error)}); get the model again"
        ) from None
    missing = [key for key in found["missing_keys"] if "embed_positions" not in key]
    if missing:
        raise DataError(
            f"{folder}: weights are missing, such as {min(missing)}; get the model again"
        )
    if other := sorted(str(key[0]) for key in found["mismatched_keys"]):
        raise DataError(
            f"{folder}: weights are of other sizes than config.json says, such as {other[0]}; get "
            "the model again"
        )
    ignored = ("embed_positions.weight", "embed_positions.weights", ".version")
    if more := [key for key in found["unexpected_keys"] if not key.endswith(ignored)]:
        raise DataError(
            f"{folder}: has weights that {name} does not have, such as {shorten(min(more), 80)}; "
            "this model cannot be imported"
        )
    for key, value in model.state_dict().items():
        if not value.isfinite().all():
            raise DataError(f"{folder}: {key} holds NaN or infinity; get it again")
    return model.float().eval()


def _read_table(path: Path) -> dict[str, Any]:
    """Read a JSON object; `DataError` if the file has something else."""
    try:
        values = read_json(path)
    except FileNotFoundError:
        raise DataError(
            f"{path}: no such file; give the complete folder of the published model"
        ) from None
    if not isinstance(values, dict):
        raise DataError(f"{path}: expected a JSON object; get the file again")
    return values


def _find_languages(
    folder: Path, config: dict[str, Any], source: str | None, target: str | None
) -> tuple[str, str]:
    tokenizer: dict[str, Any] = {}
    if (folder / "tokenizer_config.json").is_file():
        tokenizer = _read_table(folder / "tokenizer_config.json")
    langs = tokenizer.get("langs") or config.get("langs") or ()
    named = [tokenizer.get("source_lang"), tokenizer.get("target_lang")]
    if None in named and isinstance(langs, list | tuple) and len(langs) == 2:
        named = [*langs]
    pair = source or named[0], target or named[1]
    for option, language in zip(("--source-lang", "--target-lang"), pair, strict=True):
        if not is_file_name(language):
            raise DataError(
                f"{folder}: the folder does not name the model's languages; give {option}"
            )
    if pair[0] == pair[1]:
        raise DataError(
            f"{folder}: both languages are {pair[0]}; give --source-lang and --target-lang"
        )
    return str(pair[0]), str(pair[1])


def _read_vocabularies(folder: Path, config: dict[str, Any]) -> tuple[list[str], list[str]]:
    if (folder / "vocab-src.json").is_file():
        both = [_read_words(folder / f"vocab-{side}.json") for side in ("src", "tgt")]
        if (folder / "merges.txt").is_file():
            both = [[*map(_as_subword, words)] for words in both]
        return both[0], both[1]
    source = _read_words(folder / "vocab.json")
    path = folder / "target_vocab.json"
    shared = config.get("share_encoder_decoder_embeddings", not path.is_file())
    return source, source if shared else _read_words(path)


def _as_subword(symbol: str) -> str:
    """Convert a symbol of FSMT, which marks ends of words, to subword-nmt's marks (@@)."""
    if symbol in _SPECIAL:
        return symbol
    return symbol.removesuffix("</w>") if symbol.endswith("</w>") else f"{symbol}@@"


def _read_words(path: Path) -> list[str]:
    """Read symbols in the order of their numbers; `DataError` if one is missing or unusable."""
    numbers = _read_table(path)
    if not all(type(number) is int for number in numbers.values()):
        raise DataError(f"{path}: expected a number for each symbol; get the file again")
    words = sorted(numbers, key=lambda word: numbers[word])
    if [numbers[word] for word in words] != [*range(len(words))]:
        raise DataError(
            f"{path}: expected each number from 0 to {len(words) - 1} once; get the file again"
        )
    _check_words(words, path)
    return words


def _check_words(words: Sequence[str], path: Path) -> None:
    for word in words:
        if re.search(r"[\n\r\ud800-\udfff]", word):
            raise DataError(f"{path}: the symbol {word!r} cannot stand in a dictionary of fairseq")


def _check(published: Published) -> None:
    """Check the loaded weights against the vocabularies and the start symbol."""
    folder, config = published.folder, published.config
    tables = published.model.get_encoder(), published.model.get_decoder()
    for words, module in zip(published.words, tables, strict=True):
        rows = module.embed_tokens.weight.size(0)
        if rows != len(words):
            raise DataError(
                f"{folder}: has {len(words)} symbols for {rows} embedding vectors; get the model "
                "again"
            )
    specials: Sequence[str] = _SPECIAL[1:] if published.kind == "marian" else _SPECIAL
    for words in published.words:
        if missing := [symbol for symbol in specials if symbol not in words]:
            raise DataError(
                f"{folder}: the vocabulary has no {missing[0]}; this model cannot be imported"
            )
    target = published.words[1]
    start, first = config.decoder_start_token_id, tables[1].embed_tokens.weight
    if type(start) is not int or not 0 <= start < len(target):
        raise DataError(
            f"{folder}: decoder_start_token_id is {start!r}, not a number of the vocabulary; get "
            "the model again"
        )
    pad = first[target.index("<pad>")]
    if target[start] != "</s>" and not torch.equal(first[start], pad):
        raise DataError(
            f"{folder}: translations start with {target[start]!r}, which has another vector "
            "than <pad>; only a start with </s> or <pad> can be imported"
        )
