"""Derive from its options what a model reads from batches and what it returns to losses."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..data.fields import NOTHING, SourceFields


@dataclass(frozen=True)
class Description:
    """The batch fields read by a model, and the heads' tensors that the model returns to losses.

    Attributes:
        fields: the batch fields of the source's parse that the model reads.
        exposed: the names of the tensors that the model returns to losses and printers, such as
            ``src_dependency``, and for each the layers, from 1, that expose it.
        parses: whether its encoder has heads of a parser's form (bi-affine or LISA), so that their
            parses can be scored.
        layered: whether each layer of its decoder attends to the source.
    """

    fields: SourceFields = NOTHING
    exposed: Mapping[str, Sequence[int]] = field(default_factory=dict)
    parses: bool = False
    layered: bool = False


def describe(arch: str, options: Sequence[str]) -> Description:
    """Return the :class:`Description` of an architecture with command line options.

    Raises:
        DataError: the options do not fit the model.
    """
    from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
    from fairseq.models.transformer import TransformerModel

    model = ARCH_MODEL_REGISTRY[arch]
    # Architectures set the defaults.
    parser = argparse.ArgumentParser(argument_default=argparse.SUPPRESS, allow_abbrev=False)
    model.add_args(parser)
    args, _ = parser.parse_known_args(options)
    ARCH_CONFIG_REGISTRY[arch](args)
    if hasattr(model, "describe"):
        return model.describe(args)
    return Description(layered=issubclass(model, TransformerModel))
