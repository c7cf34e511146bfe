"""Dependency heads of sources and hypotheses, as lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TextIO

import torch
from fairseq.data import data_utils
from torch import Tensor

from ..data.subwords import detect_scheme, word_heads, word_lengths


class ParsePrinter:
    """Prints four lines for each hypothesis, told apart by the columns behind its number.

    ::

        X-12  source      subword  1 1 1      the subword that each attends to most, from 0
        X-12  source      word     2 0        the same between words, from 1, 0 = root
        X-12  hypothesis  subword  0 0 1
        X-12  hypothesis  word     0 1

    A word's head is the word that its final subword attends to (rule ``chain``); a word that
    attends to itself is a root. Nothing keeps the heads from forming a cycle.

    Args:
        src_dict: dictionary of the source.
        tgt_dict: dictionary of the target.
    """

    def __init__(self, src_dict: Any, tgt_dict: Any) -> None:
        self.src_dict = src_dict
        self.tgt_dict = tgt_dict
        self.src_scheme = detect_scheme(src_dict.symbols)
        self.tgt_scheme = detect_scheme(tgt_dict.symbols)

    @torch.no_grad()
    def print(
        self,
        models: Sequence[Any],
        net_input: dict[str, Tensor],
        ids: Tensor,
        hypotheses: Sequence[Tensor],
        output: TextIO,
    ) -> None:
        """Force one hypothesis per sentence through the models, and print the heads.

        Args:
            models: an ensemble; their heads' probabilities are averaged.
            net_input: ``src_tokens``, ``src_lengths`` and what else the encoder takes.
            ids: ``(B,)`` numbers of the sentences.
            hypotheses: tokens of each, with the end of sentence.
            output: where to.

        Raises:
            ValueError: no model has dependency heads.
        """
        pad, eos = self.tgt_dict.pad(), self.tgt_dict.eos()
        target = data_utils.collate_tokens(list(hypotheses), pad, eos)
        encoder_input = {k: v for k, v in net_input.items() if k != "prev_output_tokens"}
        previous = data_utils.collate_tokens(list(hypotheses), pad, eos, move_eos_to_beginning=True)
        extras = [
            model(prev_output_tokens=previous, features_only=True, **encoder_input)[1]
            for model in models
        ]
        sides = {
            "source": _most_attended(extras, "src_dependency", net_input["src_tokens"], pad, eos),
            "hypothesis": _most_attended(extras, "tgt_dependency", target, pad, eos),
        }
        if not any(sides.values()):
            raise ValueError("--print-parses: the model has no dependency heads")
        for row, number in enumerate(ids.tolist()):
            for side, dictionary, scheme in (
                ("source", self.src_dict, self.src_scheme),
                ("hypothesis", self.tgt_dict, self.tgt_scheme),
            ):
                if not sides[side]:
                    continue
                tokens, heads = sides[side][row]
                lengths = word_lengths([dictionary[t] for t in tokens], scheme)
                for level, values in (("subword", heads), ("word", word_heads(heads, lengths))):
                    line = " ".join(map(str, values))
                    print(f"X-{number}\t{side}\t{level}\t{line}", file=output)


def _most_attended(
    extras: Sequence[dict[str, Any]], key: str, tokens: Tensor, pad: int, eos: int
) -> list[tuple[list[int], list[int]]]:
    """Return each sentence's tokens and the position that each attends to most.

    Positions count the tokens of the sentence, without padding and end of sentence, which are no
    one's head. Models without such heads have no say; if none has, the list is empty.
    """
    attentions = [extra[key].mean(1) for extra in extras if key in extra]
    if not attentions:
        return []
    special = tokens.eq(pad) | tokens.eq(eos)
    attention = torch.stack(attentions).mean(0).masked_fill(special.unsqueeze(1), -1.0)
    position = (~special).cumsum(1) - 1
    heads = position.gather(1, attention.argmax(-1))
    return [
        (row[~out].tolist(), parents[~out].tolist())
        for row, parents, out in zip(tokens, heads, special, strict=True)
    ]
