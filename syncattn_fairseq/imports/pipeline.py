"""Import a published model, from its folder to a checked folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from fairseq import checkpoint_utils, tasks
from fairseq.data import Dictionary, data_utils
from torch import Tensor

from ..base.errors import DataError
from ..base.files import read_text_file
from ..base.folders import making
from ..base.option_fields import flag
from ..data.fingerprint import IN_CHECKPOINTS, Fingerprint, describe_meaning
from ..data.preparation import store_preparations, store_schemes
from ..data.segmenters import store_subwords
from ..export.fairseq_format import write_checkpoint
from .conversion import ARCH, OPTION_TYPES, convert
from .published import Published, read_published

#: The names of the written files with the checkpoint and with the model's options.
CHECKPOINT, OPTIONS = "model.pt", "options.txt"
_SENTENCES, _LONGEST = 20, 12
_LARGEST = 2**16
_ALLOWED = 1e-4


def import_model(
    folder: str | Path, output: str | Path, source: str | None = None, target: str | None = None
) -> str:
    """Convert a published model to a fairseq checkpoint, and check that log-probabilities agree.

    Args:
        folder: the folder of a MarianMT, FSMT or M2M100 model, as published.
        output: folder to make; it appears when everything is done and checked.
        source, target: the languages; None: as the folder says.

    Returns:
        The result of the check, in words.

    Raises:
        DataError: the folder is damaged, its model has something that cannot be imported, or
            log-probabilities differ.
    """
    output = Path(output)
    if output.exists():
        raise DataError(f"{output}: already exists; remove it or name another folder")
    published = read_published(Path(folder), source, target)
    model, options, sides = convert(published)
    with making(output) as made, TemporaryDirectory() as scratch:
        for language, (dictionary, _) in zip(published.languages, sides, strict=True):
            _save(dictionary, made / f"dict.{language}.txt", f"{folder}: {language}")
        subwords = published.find_subwords(Path(scratch))
        if subwords is not None:
            store_subwords(made, published.languages, subwords)
        if preparations := published.find_preparations():
            store_preparations(made, preparations)
            store_schemes(made, published.find_schemes())
        fingerprint = Fingerprint(describe_meaning([made], published.languages))
        write_checkpoint(
            made / CHECKPOINT,
            {
                "source_lang": published.languages[0],
                "target_lang": published.languages[1],
                "left_pad_source": True,
                "left_pad_target": False,
            },
            {"arch": ARCH, "_name": ARCH, **options},
            model.state_dict(),
            task_state={IN_CHECKPOINTS: fingerprint.as_plain()},
        )
        (made / OPTIONS).write_text(format_options(options), encoding="utf-8")
        difference = compare(published, made, [numbers for _, numbers in sides])
    return (
        f"{_SENTENCES} sentences have the same log-probabilities as in the published model, to "
        f"{difference:.1g}"
    )


def format_options(options: Mapping[str, Any]) -> str:
    """Format a model's options as arguments of ``fairseq-train``, one on each line."""
    lines = []
    for name, value in options.items():
        if isinstance(value, bool):
            lines += [flag(name)] if value else []
        else:
            lines.append(f"{flag(name)} {value}")
    return "".join(f"{line}\n" for line in lines)


def read_options(folder: Path) -> dict[str, Any]:
    """Read the options of an imported model by name, including disabled switches.

    Args:
        folder: the folder that :func:`import_model` wrote.

    Raises:
        DataError: the folder is something else.
    """
    path = folder / OPTIONS
    fault = DataError(f"{path}: not written by syncattn-import; import the model again")
    try:
        lines = read_text_file(path, _LARGEST).splitlines()
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; give a folder of syncattn-import") from None
    written = dict(line.partition(" ")[::2] for line in lines)
    names = {flag(name): name for name in OPTION_TYPES}
    if unknown := written.keys() - names.keys():
        raise DataError(
            f"{path}: {min(unknown)} is not an option that syncattn-import writes; import the "
            "model again"
        )
    options: dict[str, Any] = {}
    for option, name in names.items():
        kind = OPTION_TYPES[name]
        if kind is bool:
            options[name] = option in written
        elif not written.get(option):
            raise fault
        else:
            try:
                options[name] = kind(written[option])
            except ValueError:
                raise fault from None
    return options


def _save(dictionary: Dictionary, path: Path, name: str) -> None:
    """Write a dictionary; `DataError` if fairseq would read another one."""
    dictionary.save(str(path))
    try:
        same = Dictionary.load(str(path)).symbols == dictionary.symbols
    except (ValueError, RuntimeError):
        same = False
    if not same:
        raise DataError(
            f"{name}: fairseq cannot store some symbols of the vocabulary in a dictionary; this "
            "model cannot be imported"
        )


@torch.no_grad()
def compare(published: Published, made: Path, numbers: list[Tensor]) -> float:
    """Return the largest difference of log-probabilities between published model and checkpoint.

    The models are compared on random sentences.

    Args:
        published: the published model.
        made: the folder of the checkpoint.
        numbers: for source and target, the number of each symbol in fairseq's dictionary.

    Returns:
        The largest difference of log-probabilities, of all symbols at all positions.

    Raises:
        DataError: the difference is above 1e-4.
    """
    state = checkpoint_utils.load_checkpoint_to_cpu(str(made / CHECKPOINT))
    state["cfg"]["task"]["data"] = str(made)
    task = tasks.setup_task(state["cfg"]["task"])
    model = task.build_model(state["cfg"]["model"])
    model.load_state_dict(state["model"])
    model.eval()
    generator = torch.Generator().manual_seed(1)
    longest = min(_LONGEST, published.config.max_position_embeddings - 1)
    pad, end = task.source_dictionary.pad(), task.source_dictionary.eos()
    texts: list[list[Tensor]] = []
    for words in published.words:
        usual = [i for i, word in enumerate(words) if word not in ("<s>", "<pad>", "</s>", "<unk>")]
        if not usual:
            raise DataError(f"{published.folder}: the vocabulary has no words; get the model again")
        lengths = torch.randint(1, longest + 1, (_SENTENCES,), generator=generator).tolist()
        drawn = [torch.randint(len(usual), (n,), generator=generator) for n in lengths]
        texts.append([torch.tensor(usual)[places] for places in drawn])
    sources, targets = texts
    ends = [words.index("</s>") for words in published.words]
    pads = [words.index("<pad>") for words in published.words]
    start = published.config.decoder_start_token_id
    theirs = [torch.cat([text, torch.tensor([ends[0]])]) for text in sources]
    read = [torch.cat([torch.tensor([start]), text]) for text in targets]
    batch = data_utils.collate_tokens(theirs, pads[0])
    logits = published.model(
        input_ids=batch,
        attention_mask=batch.ne(pads[0]).long(),
        decoder_input_ids=data_utils.collate_tokens(read, pads[1]),
        use_cache=False,
    ).logits
    if published.kind == "marian":
        logits[..., pads[1]] = float("-inf")  # Marian itself has no such word
    expected = logits.log_softmax(-1)
    ours = [torch.cat([numbers[0][text], torch.tensor([end])]) for text in sources]
    before = [torch.cat([torch.tensor([end]), numbers[1][text]]) for text in targets]
    scores, _ = model(
        data_utils.collate_tokens(ours, pad, left_pad=True),
        torch.tensor([len(text) for text in ours]),
        data_utils.collate_tokens(before, pad),
    )
    found = scores.log_softmax(-1)[..., numbers[1]]
    compared = [i for i in range(len(numbers[1])) if i != pads[1]]
    worst = 0.0
    for row, text in enumerate(read):
        difference = (expected[row] - found[row])[: len(text), compared].abs()
        worst = max(worst, difference.nan_to_num(float("inf")).max().item())
    if not worst <= _ALLOWED:
        raise DataError(
            f"{published.folder}: the imported model differs from the published one: "
            f"log-probabilities differ by {worst:.2g}; nothing was written"
        )
    return worst
