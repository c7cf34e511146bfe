"""Load models for the commands of the laboratory."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.cli.common import read_subwords

if TYPE_CHECKING:
    from syncattn_fairseq.inference import Model


def load_model(args: argparse.Namespace, path: str | None = None) -> Model:
    """Load the model that a command's arguments name, set to read the command's input text.

    Arguments are those of `add_model_files`. The model reads words separated by spaces if they say
    so, or if text comes from a test set and the model does not read raw sentences.

    Args:
        args: the arguments of the command.
        path: the model's checkpoint or folder; None: that of ``--path``.

    Raises:
        DataError: no model is given, or one of its files is missing or damaged.
    """
    from syncattn_fairseq.data.words import is_raw

    if not (path or args.path):
        raise DataError("give the model, --path CHECKPOINT")
    model = open_model(args, path or args.path)
    if (path or args.gold) and not is_raw(model.source_segmenter.scheme):
        model.tokenised = True
    return model


def open_model(args: argparse.Namespace, path: str) -> Model:
    """Load a model, with the files named by the arguments of `add_model_files`.

    Args:
        args: the arguments of the command.
        path: the model's checkpoint or folder.

    Raises:
        DataError: a file is missing or damaged.
    """
    from syncattn_fairseq.inference import load

    return load(
        path,
        args.data_bin,
        read_subwords(args),
        args.source_parser,
        user_dir=args.user_dir,
        tokenised=args.tokenised,
    )
