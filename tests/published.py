"""Published models with random weights, as Transformers saves them."""

import io
import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import sentencepiece
import torch

from syncattn_fairseq.checkpoints.checkpoint_file import read_checkpoint
from syncattn_fairseq.cli import bpe, preprocess
from syncattn_fairseq.imports import import_model, read_options
from syncattn_lab.synthetic.generated_corpus import write_corpus
from tests.checkpoints import Corpus, change_checkpoint, write_raw

transformers = pytest.importorskip("transformers")

SIZES = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 32,
    "max_position_embeddings": 40,
}
WORDS = [f"▁w{i}" for i in range(20)] + ["x", "#fairseq:overwrite", "\u2028", "。"]
#: As many: both sides of a MarianMT have one number for the padding.
OTHERS = [f"▁v{i}" for i in range(24)]


def disturb(model):
    """Disturb everything, so that no symmetry hides a fault; what starts as zeros stays so."""
    torch.manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" in name:
                continue  # they are sinusoids
            zeros = parameter.abs().sum(-1) == 0 if parameter.dim() > 1 else None
            parameter.add_(0.3 * torch.randn_like(parameter))
            if zeros is not None:
                parameter[zeros] = 0
    if hasattr(model, "final_logits_bias"):
        model.final_logits_bias = torch.randn_like(model.final_logits_bias)
    return model.eval()


def write_words(folder, name, words):
    numbers = {word: number for number, word in enumerate(words)}
    (folder / name).write_text(json.dumps(numbers), encoding="utf-8")


def write_marian(folder: Path, vocabulary=WORDS, target=None, start=0.0, **settings) -> Path:
    """Write a MarianMT as OPUS-MT's are; with words of the target, it has two vocabularies.

    The vector of padding, which starts translations, is another one after a training.
    """
    folder.mkdir(parents=True, exist_ok=True)
    words = ["</s>", "<unk>", *vocabulary, "<pad>"]
    write_words(folder, "vocab.json", words)
    pad = len(words) - 1
    sizes = {"vocab_size": len(words), "pad_token_id": pad, "decoder_start_token_id": pad}
    if target is not None:
        others = ["</s>", "<unk>", *target, "<pad>"]
        write_words(folder, "target_vocab.json", others)
        sizes |= {
            "decoder_vocab_size": len(others),
            "share_encoder_decoder_embeddings": False,
            "decoder_start_token_id": len(others) - 1,
            "pad_token_id": pad,
        }
    config = transformers.MarianConfig(
        **{
            **SIZES,
            **sizes,
            "eos_token_id": 0,
            "activation_function": "swish",
            "scale_embedding": True,
            "forced_eos_token_id": None,
            **settings,
        }
    )
    model = disturb(transformers.MarianMTModel(config))
    with torch.no_grad():
        for stack in (model.get_encoder(), model.get_decoder()):
            stack.embed_tokens.weight[-1] = start
    model.save_pretrained(folder)
    languages = {"source_lang": "en", "target_lang": "de", "separate_vocabs": target is not None}
    (folder / "tokenizer_config.json").write_text(json.dumps(languages), encoding="utf-8")
    return folder


def write_fsmt(folder: Path, **settings) -> Path:
    folder.mkdir(parents=True)
    specials = ["<s>", "<pad>", "</s>", "<unk>"]
    source = [*specials, *(f"w{i}" for i in range(9)), "le", "er</w>", "w</w>"]
    target = [*specials, *(f"v{i}</w>" for i in range(7))]
    write_words(folder, "vocab-src.json", source)
    write_words(folder, "vocab-tgt.json", target)
    (folder / "merges.txt").write_text("l e\ne r</w>\n", encoding="utf-8")
    config = transformers.FSMTConfig(
        langs=["en", "de"],
        src_vocab_size=len(source),
        tgt_vocab_size=len(target),
        tie_word_embeddings=False,
        **{**SIZES, "activation_function": "relu", **settings},
    )
    disturb(transformers.FSMTForConditionalGeneration(config)).save_pretrained(folder)
    return folder


def write_m2m(folder: Path, lines: list[str], nllb=False, **settings) -> Path:
    """Write an M2M100, or an NLLB, of which only the files of the tokenizer are other ones."""
    folder.mkdir(parents=True)
    pieces = learn_subwords(folder / "sentencepiece.bpe.model", lines, 120)
    symbols = ["<s>", "<pad>", "</s>", "<unk>", *pieces]
    if nllb:
        names = ["eng_Latn", "deu_Latn", "fra_Latn", "<mask>"]
        added = [{"id": len(symbols) + n, "content": name} for n, name in enumerate(names)]
        added += [{"id": 0, "content": "<s>"}]
        (folder / "tokenizer.json").write_text(json.dumps({"added_tokens": added}))
        settings = {"vocab_size": len(symbols) + len(names) + 2} | settings
    else:
        write_words(folder, "vocab.json", symbols)
        tokenizer = transformers.M2M100Tokenizer(
            folder / "vocab.json", folder / "sentencepiece.bpe.model"
        )
        tokenizer.save_pretrained(folder)
        settings = {"vocab_size": len(symbols) + 100 + 8} | settings
    config = transformers.M2M100Config(
        **{**SIZES, "max_position_embeddings": 200, "decoder_attention_heads": 4, **settings}
    )
    disturb(transformers.M2M100ForConditionalGeneration(config)).save_pretrained(folder)
    return folder


def learn_subwords(path: Path, lines: list[str], size: int) -> list[str]:
    """Learn a sentencepiece model as OPUS-MT's are: it changes characters; return its pieces."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=size,
        character_coverage=1.0,
        hard_vocab_limit=False,
        minloglevel=3,
    )
    path.write_bytes(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    return [processor.id_to_piece(number) for number in range(3, len(processor))]


def write_opus(
    folder: Path, sources: list[str], targets: list[str], two=False, tags=(), **settings
) -> Path:
    """Write a MarianMT with two subword models of raw text, and one vocabulary or two."""
    folder.mkdir(parents=True)
    source = learn_subwords(folder / "source.spm", sources, 120)
    target = learn_subwords(folder / "target.spm", targets, 140)
    both = [*tags, *dict.fromkeys([*source, *target])]
    settings = {"decoder_attention_heads": 4, "max_position_embeddings": 200} | settings
    if two:
        most = max(len(source), len(target))
        pieces = [
            [*side, *(f"spare{n}" for n in range(most - len(side)))] for side in (source, target)
        ]
        return write_marian(folder, pieces[0], pieces[1], **settings)
    return write_marian(folder, both, **settings)


@dataclass
class Started(Corpus):
    """A corpus of raw sentences, in the subwords of a published model."""

    @property
    def published(self) -> Path:
        return self.folder / "opus"

    @property
    def imported(self) -> Path:
        return self.folder / "imported"

    def start(self, arch: str, **options) -> Path:
        """Make a checkpoint that started from the imported model, and changed since."""
        path = self.checkpoint(arch, 0, **read_options(self.imported) | options)
        state, start = (read_checkpoint(p)["model"] for p in (path, self.imported / "model.pt"))
        torch.manual_seed(2)
        for name, value in start.items():
            state[name] = value + 0.05 * torch.randn_like(value)
        return change_checkpoint(path, path.with_name(f"started-{path.name}"), model=state)


def start_corpus(folder: Path, **settings) -> Started:
    """Make a published model, import it, and prepare a corpus with parses for it."""
    made = Started(folder)
    words, pieces = folder / "words", folder / "pieces"
    pieces.mkdir(parents=True)
    write_corpus(words, {"test": 12, "valid": 12, "train": 60}, seed=3)
    texts = [f"{split}.{side}" for split in ("train", "valid", "test") for side in ("en", "de")]
    for text in texts:
        write_raw(words / text)
    write_opus(made.published, made.lines("train.en"), made.lines("train.de"), **settings)
    import_model(made.published, made.imported)
    arguments = ["-s=en", "-t=de", f"--destdir={made.data}", f"--start={made.imported}"]
    for side in ("en", "de"):
        sides = [text for text in texts if text.endswith(side)]
        inputs, outputs = ([str(at / text) for text in sides] for at in (words, pieces))
        model = f"--model={made.imported / f'subwords.{side}'}"
        assert bpe.main(["apply", model, "--input", *inputs, "--output", *outputs]) == 0
    for split in ("train", "valid", "test"):
        arguments += [f"--{split}pref={pieces / split}", f"--{split}heads={words / split}"]
    assert preprocess.main(arguments) == 0
    return made
