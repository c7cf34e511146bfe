"""Load a checkpoint, an ensemble or an export through a single function."""

from pathlib import Path

from ..base.errors import DataError
from ..base.extras import require
from ..data.fingerprint import check_data, check_text_steps, read_stored
from ..data.segmenters import SubwordFiles, open_segmenters
from .exported import ABOUT, About, CTranslate2Model
from .model import Model


def load(
    path: str | Path,
    data_bin: str | Path | None = None,
    subwords: SubwordFiles = None,
    source_parser: str | None = None,
    device: str | None = None,
    user_dir: str | Path | None = None,
    threads: int | None = None,
    compute_type: str | None = None,
    tokenised: bool = False,
    in_subwords: bool = False,
) -> Model:
    """Load a translation model: a fairseq checkpoint, an ensemble or an exported model.

    >>> import syncattn_fairseq
    >>> model = syncattn_fairseq.load("checkpoint_best.pt", "data-bin", subwords="bpe.model")
    >>> model.translate(["the dog sees a cat ."])
    ['der Hund sieht eine Katze .']
    >>> model.parse(["the dog sees a cat ."])[0].source.tree
    [2, 3, 0, 5, 3, 3]
    >>> print(model.align(["the dog sees a cat ."])[0])
    0-0 1-1 2-2 3-3 4-4 5-5

    Args:
        path: a fairseq checkpoint, several of them separated by ``:``, or the folder of an exported
            model.
        data_bin: folder of the binarised corpus, with the dictionaries; None: the checkpoint's
            folder, or the one used in training.
        subwords: the subword model, from sentencepiece or subword-nmt (with a vocabulary, a
            :class:`.SubwordModel`); two of them if source and target have their own; None: the one
            beside the model or in the data folder, or none if the model reads words.
        source_parser: the source's parser, such as ``stanza:en``, for models that read its parse;
            see :func:`.parsing.parsers.open_parser`.
        device: such as ``cpu`` or ``cuda``; None: a GPU if there is one.
        user_dir: the folder of your own plugin, if the model was trained with one. It is imported;
            nothing that only the checkpoint names is.
        threads: number of CPU threads; None: as many as PyTorch or CTranslate2 chooses.
        compute_type: for exports to CTranslate2, the type of number to compute with, such as
            ``int8`` or ``float32``; None: the type of the stored weights.
        tokenised: whether text, in and out, is words separated by spaces, although the model's
            folder says how text as people write it becomes words.
        in_subwords: whether text to translate or analyse is in subwords already, separated by
            spaces, as that of a binarised corpus; no subword model is needed then. Translations are
            words.

    Raises:
        DataError: something is missing or wrong, or not what the model was trained with.
        OSError: there is no such file.
        ImportError: a checkpoint needs torch and fairseq, and they are not installed.
    """
    if threads is not None and (type(threads) is not int or threads < 1):
        raise DataError(f"threads {threads!r}: give a whole number from 1")
    folder = Path(path)
    if (folder / "model.bin").is_file():
        model = CTranslate2Model(
            folder, subwords, source_parser, device, threads, compute_type, tokenised, in_subwords
        )
        if data_bin is not None:
            check_data(str(folder), read_stored(folder), Path(data_bin), model.languages)
        return model
    if compute_type is not None:
        raise DataError(
            f"compute_type {compute_type}: goes only with exports for CTranslate2; leave it out "
            "for this model"
        )
    if folder.is_dir():
        if not (folder / "model.pt").is_file():
            raise DataError(
                f"{folder}: is not a model; give a checkpoint or the folder of an export"
            )
        path = folder / "model.pt"
        if (folder / ABOUT).is_file():
            About.read(folder)  # checks the files

    require("train", "torch", "omegaconf")
    import torch

    from .. import plugin  # noqa: F401  (registers the models, and is the first to import fairseq)
    from .checkpoint import CheckpointModel, find_device
    from .ensemble import Ensemble

    torch_device = find_device(device)
    if threads is not None:
        torch.set_num_threads(threads)
    ensemble = Ensemble(str(path), data_bin, source_parser, user_dir)
    folders, languages = [ensemble.paths[0].parent, ensemble.data], ensemble.languages
    if not in_subwords:
        check_text_steps(ensemble.fingerprints, subwords, folders, languages, tokenised)
    segmenters = open_segmenters(
        subwords,
        folders,
        languages,
        ensemble.vocabularies,
        ensemble.task.schemes,
        in_subwords,
    )
    return CheckpointModel(ensemble, segmenters, torch_device, tokenised)
