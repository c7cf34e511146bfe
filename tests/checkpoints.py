"""A small corpus, and checkpoints of models that nobody has trained."""

import zlib
from argparse import Namespace
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import torch
from fairseq.dataclass.configs import FairseqConfig
from omegaconf import OmegaConf

import syncattn_fairseq.plugin  # registers the models
from syncattn_fairseq.checkpoints.checkpoint_file import read_checkpoint
from syncattn_fairseq.cli import bpe, preprocess
from syncattn_fairseq.export import export
from syncattn_fairseq.tasks.translation_with_syntax import (
    TranslationWithSyntaxConfig,
    TranslationWithSyntaxTask,
)
from syncattn_lab.synthetic.generated_corpus import write_corpus
from tests.models import build

SIZE = {
    **build.SIZE,
    **{"decoder_layers": 3, "decoder_embed_dim": 16, "share_all_embeddings": True},
}
PRE_NORM = {"encoder_normalize_before": True, "decoder_normalize_before": True}
TWO_HEADS = {"dependency_heads": 2, "dependency_key_bias": True}

#: So many sentences are learnt.
LEARNED = 5


@dataclass
class Corpus:
    folder: Path

    @property
    def data(self) -> Path:
        return self.folder / "bin"

    @property
    def subwords(self) -> Path:
        return self.folder / "bpe.model"

    def lines(self, name: str) -> list[str]:
        """Read a text, such as ``test.en``."""
        return (self.folder / "words" / name).read_text(encoding="utf-8").splitlines()

    def learned(self) -> list[str]:
        return sorted(self.lines("test.en"), key=lambda line: len(line.split()))[:LEARNED]

    def checkpoint(self, arch: str, updates: int = 0, **options: Any) -> Path:
        """Make a checkpoint as :func:`make_checkpoint` does, once for all tests."""
        number = zlib.crc32(repr((updates, options)).encode())
        path = self.folder / f"{arch}-{number}.pt"
        return path if path.exists() else make_checkpoint(self, path, arch, updates, **options)

    def trained(self, **options: Any) -> Path:
        """Make a checkpoint of a SyncAttn model whose sentences end."""
        return self.checkpoint("transformer_syncattn", 40, **TWO_HEADS, **PRE_NORM, **options)

    def load(self, path: Any, **options: Any) -> Any:
        options = {"data_bin": self.data, "subwords": self.subwords, "device": "cpu"} | options
        return syncattn_fairseq.load(path, **options)

    def export(self, path: Path, format: str, output: Path, **options: Any) -> str:
        options = {"subwords": [self.subwords]} | options
        return export(path, self.data, format, output, **options)

    def exported(self, format: str) -> Path:
        """Export the trained model, once for all tests, which leave the folder as it is."""
        folder = self.folder / format
        if not folder.exists():
            self.export(self.trained(), format, folder)
        return folder


def make_corpus(folder: Path) -> Corpus:
    made = Corpus(folder)
    words, pieces = folder / "words", folder / "pieces"
    pieces.mkdir()
    write_corpus(words, {"test": 12, "valid": 12, "train": 60}, seed=3)
    texts = [f"{split}.{side}" for split in ("train", "valid", "test") for side in ("en", "de")]
    model = f"--model={folder / 'bpe'}"
    learned = [str(words / text) for text in texts[:2]]
    assert bpe.main(["learn", "--vocab-size=200", model, "--input", *learned]) == 0
    inputs, outputs = ([str(place / t) for t in texts] for place in (words, pieces))
    assert bpe.main(["apply", f"{model}.model", "--input", *inputs, "--output", *outputs]) == 0
    arguments = ["-s=en", "-t=de", f"--destdir={made.data}", "--joined-dictionary"]
    for split in ("train", "valid", "test"):
        arguments += [f"--{split}pref={pieces / split}", f"--{split}heads={words / split}"]
    assert preprocess.main(arguments) == 0
    return made


def make_task(data: Path, **options: Any) -> TranslationWithSyntaxTask:
    cfg = OmegaConf.structured(TranslationWithSyntaxConfig)
    cfg._name, cfg.data = "translation_with_syntax", str(data)
    cfg.train_subset, cfg.gen_subset = "train", "test"
    cfg.dataset_impl, cfg.required_seq_len_multiple, cfg.cpu = None, 1, True
    for name, value in options.items():
        cfg[name] = value
    return TranslationWithSyntaxTask.setup_task(cfg)


def model_options(arch: str, **options: Any) -> Namespace:
    recurrent = {"encoder_hidden_size": 16, "decoder_hidden_size": 16} if "rnn" in arch else {}
    return build.options_of(arch, _name=arch, **SIZE | recurrent | options)


def make_checkpoint(
    corpus: Corpus, path: Path, arch: str, updates: int = 0, **options: Any
) -> Path:
    """Save a model as fairseq does and return its path.

    Its weights are disturbed, so that no symmetry hides a fault, and then it learns the shortest
    sentences of the test set in as many updates as there are.
    """
    task = make_task(corpus.data)
    args = model_options(arch, **options)
    torch.manual_seed(1)
    model = task.build_model(args)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    if updates:
        _train(model, task, updates)
    whole = OmegaConf.to_container(OmegaConf.structured(FairseqConfig), enum_to_str=True)
    assert isinstance(whole, dict)
    values = vars(args).items()
    plain = Namespace(**{k: str(v) if isinstance(v, Enum) else v for k, v in values})
    state = {
        "args": None,
        "cfg": {
            **whole,
            "task": OmegaConf.to_container(task.cfg, enum_to_str=True),
            "model": plain,
        },
        "model": model.state_dict(),
        "optimizer_history": [
            {
                "num_updates": updates,
                **dict.fromkeys(("optimizer_name", "criterion_name"), ""),
                "lr_scheduler_state": {},
            }
        ],
        "task_state": task.state_dict(),
        "extra_state": {},
        "last_optimizer_state": None,
    }
    torch.save(state, path)
    return path


def change_checkpoint(path: Path, output: Path, **changes: Any) -> Path:
    """Copy a checkpoint with other contents; ``task_state=None`` is one of an earlier version."""
    state = read_checkpoint(path)
    torch.save({**state, **changes}, output)
    return output


def _train(model: Any, task: Any, updates: int) -> None:
    """Learn sentences of the test set by heart, or at least where they end."""
    task.load_dataset("test")
    dataset = task.datasets["test"]
    batch = dataset.collater([dataset[i] for i in dataset.ordered_indices()[:LEARNED]])
    optimizer = torch.optim.Adam(model.eval().parameters(), lr=0.02)  # without dropout: sooner
    for _ in range(updates):
        scores, _ = model(**batch["net_input"])
        loss = torch.nn.functional.cross_entropy(
            scores.flatten(0, 1), batch["target"].flatten(), ignore_index=1
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
