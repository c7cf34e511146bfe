"""Fine-tune a published translation model with syntactic heads, by the Trainer of transformers.

    pip install 'syncattn-fairseq[train,parse,transformers]' accelerate
    python -c "import stanza; stanza.download('en'); stanza.download('de')"
    python examples/fine_tune_marian.py --train train.en train.de --test test.en test.de

The texts are sentences as people write them, one on each line. Stanza parses them. One head of the
encoder's and of the decoder's bottom layer becomes a dependency head (DBSA), which learns to look
at the parent of each word, and the model translates as before until it learns. Printed are BLEU of
the test text, and how many words of its source the head gives their parent (UAS), before and after.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import sacrebleu
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from transformers import (
    AutoTokenizer,
    MarianMTModel,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
)

from syncattn_fairseq.base.text import read_lines
from syncattn_fairseq.data.splitters import choose_splitter
from syncattn_fairseq.data.subwords import subword_parents
from syncattn_fairseq.data.words import RAW, split_units
from syncattn_fairseq.functional import dependency_loss
from syncattn_fairseq.modules import BatchView, DropInAttention
from syncattn_fairseq.modules.heads import DependencyHeads, Heads
from syncattn_fairseq.parsing.parsers import open_parser

#: Of a subword without a known parent, and of a label that does not count.
NO_PARENT, NO_LABEL = -1, -100


class Side(NamedTuple):
    """A sentence as subwords, each with the place of its parent and the number of its word.

    Attributes:
        ids: of the subwords and the end.
        parents: the place of each subword's parent, from 0; `NO_PARENT` of all if there is no
            parse. A word's last subword has that of the word, the others have the next one.
        words: the number of each subword's word, from 0.
    """

    ids: list[int]
    parents: list[int]
    words: list[int]


def put_head_in(stack: Any, causal: bool = False) -> DropInAttention:
    """Make one head of the bottom layer of an encoder or decoder a dependency head.

    Its bi-affine matrix begins as the identity, so that the stack computes the same as before.
    """
    layer, view = stack.layers[0], BatchView()
    view.watch(stack)
    width, others = layer.self_attn.head_dim, layer.self_attn.num_heads - 1
    kinds = {"dependency": DependencyHeads(1, width, view), "ordinary": Heads(others, width, view)}
    layer.self_attn = DropInAttention(layer.self_attn, kinds, causal=causal)
    return layer.self_attn


def read_side(tokenizer: Any, path: Path, language: str, parser: str, target: bool) -> list[Side]:
    """Read the sentences of one language from a file, split them into subwords and parse them.

    Args:
        tokenizer: Marian's.
        path: of the sentences.
        language: of the sentences.
        parser: such as ``stanza:en``, see :func:`.parsing.parsers.open_parser`.
        target: whether they are translations, which have a subword model of their own.
    """
    splitter = choose_splitter(language)
    sentences = [" ".join(line.split()) for line in read_lines(path)]
    segmenter = tokenizer.spm_target if target else tokenizer.spm_source
    sides = []
    for sentence, parse in zip(
        sentences, open_parser(parser).parse_raw(sentences, splitter), strict=True
    ):
        pieces = segmenter.encode(sentence, out_type=str)
        spans = parse.spans if parse else None
        units = split_units(pieces, f"{RAW}{splitter}", spans, sentence)
        words = [number - 1 for number in accumulate(units.starts)]
        parents = [NO_PARENT] * len(pieces)
        if parse and words:
            lengths = [words.count(word) for word in range(words[-1] + 1)]
            parents = subword_parents(units.map_heads(parse.heads), lengths, "chain")
        ids = [*tokenizer.convert_tokens_to_ids(pieces), tokenizer.eos_token_id]
        sides.append(Side(ids, [*parents, NO_PARENT], words))
    return sides


def collate(padding: int, pairs: Sequence[tuple[Side, Side]]) -> dict[str, Tensor]:
    """Return a batch for the Trainer: ids, labels, and dependency heads of source and target."""

    def pad(rows: list[list[int]], value: int) -> Tensor:
        return pad_sequence([torch.tensor(row) for row in rows], True, value)

    ids = pad([source.ids for source, _ in pairs], padding)
    return {
        "input_ids": ids,
        "attention_mask": (ids != padding).long(),
        "labels": pad([target.ids for _, target in pairs], NO_LABEL),
        "source_parents": pad([source.parents for source, _ in pairs], NO_PARENT),
        "target_parents": pad([target.parents for _, target in pairs], NO_PARENT),
    }


class SyntaxTrainer(Seq2SeqTrainer):
    """A Trainer that adds the losses of two dependency heads to the translation loss.

    Args:
        heads: those of encoder and decoder.
        weight: of each loss.
    """

    def __init__(self, heads: Sequence[DropInAttention], weight: float, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.heads, self.weight = heads, weight

    def compute_loss(
        self, model: nn.Module, inputs: dict[str, Any], return_outputs: bool = False, **_: Any
    ) -> Any:
        """Return the loss of a batch, and the model's outputs if they are asked for."""
        parents = [inputs.pop(f"{side}_parents") for side in ("source", "target")]
        outputs = model(**inputs)
        loss = outputs.loss
        for head, gold, causal in zip(self.heads, parents, (False, True), strict=True):
            nats, count = dependency_loss(head.parse, gold, causal=causal)
            loss = loss + self.weight * nats / count.clamp(min=1)
        return (loss, outputs) if return_outputs else loss


@torch.no_grad()
def evaluate(
    model: Any, tokenizer: Any, head: DropInAttention, sources: Sequence[Side], gold: list[str]
) -> tuple[float, float]:
    """Translate and parse the sources; return BLEU, and UAS of the source in per cent."""
    model.eval()
    translations: list[str] = []
    right = total = 0
    for begin in range(0, len(sources), 32):
        rows = sources[begin : begin + 32]
        ids = pad_sequence(
            [torch.tensor(row.ids) for row in rows], True, tokenizer.pad_token_id
        ).to(model.device)
        seen = (ids != tokenizer.pad_token_id).long()
        written = model.generate(ids, attention_mask=seen)
        translations += tokenizer.batch_decode(written, skip_special_tokens=True)
        model.get_encoder()(ids, attention_mask=seen)
        for row, found in zip(rows, head.parse.argmax(-1).tolist(), strict=True):
            word_of = [*row.words, None, *[None] * len(found)]  # the end is no word
            ends = [n for n, word in enumerate(row.words) if word_of[n + 1] != word]
            known = [n for n in ends if row.parents[n] != NO_PARENT]
            right += sum(word_of[found[n]] == word_of[row.parents[n]] for n in known)
            total += len(known)
    bleu = sacrebleu.corpus_bleu(translations, [gold]).score
    return bleu, 100 * right / max(total, 1)


def main(words: Sequence[str] | None = None) -> list[tuple[float, float]]:
    """Fine-tune the model; return BLEU and UAS from before and after."""
    parser = argparse.ArgumentParser(description="Fine-tune a Marian model with syntactic heads.")
    parser.add_argument("--model", default="Helsinki-NLP/opus-mt-en-de", help="name or folder")
    for name in ("train", "test"):
        parser.add_argument(f"--{name}", type=Path, nargs=2, required=True, metavar="FILE")
    parser.add_argument("--languages", nargs=2, default=["en", "de"])
    parser.add_argument("--parsers", nargs=2, help="default: stanza:LANGUAGE of each language")
    parser.add_argument("--epochs", type=float, default=1)
    parser.add_argument("--rate", type=float, default=5e-5, help="learning rate")
    parser.add_argument("--weight", type=float, default=0.5, help="of each dependency loss")
    parser.add_argument("--output", type=Path, default=Path("fine-tuned"))
    args = parser.parse_args(words)
    parsers = args.parsers or [f"stanza:{language}" for language in args.languages]
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = MarianMTModel.from_pretrained(args.model)
    heads = put_head_in(model.get_encoder()), put_head_in(model.get_decoder(), causal=True)
    texts = [
        [
            read_side(tokenizer, path, language, name, target)
            for path, language, name, target in zip(
                paths, args.languages, parsers, (False, True), strict=True
            )
        ]
        for paths in (args.train, args.test)
    ]
    gold = [*read_lines(args.test[1])]
    test = texts[1][0]
    trainer = SyntaxTrainer(
        heads,
        args.weight,
        model=model,
        args=Seq2SeqTrainingArguments(
            output_dir=str(args.output),
            num_train_epochs=args.epochs,
            learning_rate=args.rate,
            per_device_train_batch_size=32,
            save_strategy="no",
            remove_unused_columns=False,
            dataloader_pin_memory=torch.cuda.is_available(),
            report_to=[],
        ),
        train_dataset=[*zip(*texts[0], strict=True)],
        data_collator=lambda pairs: collate(tokenizer.pad_token_id, pairs),
    )
    scores = [evaluate(model, tokenizer, heads[0], test, gold)]
    trainer.train()
    scores.append(evaluate(model, tokenizer, heads[0], test, gold))
    torch.save(model.state_dict(), args.output / "model.pt")  # of a model with these heads
    for when, (bleu, uas) in zip(("before", "after"), scores, strict=True):
        print(f"{when}: {bleu:.1f} BLEU, {uas:.1f} UAS")
    return scores


if __name__ == "__main__":
    main()
