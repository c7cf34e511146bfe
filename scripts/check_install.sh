#!/usr/bin/env bash
# Use what pip has installed into the active environment, as a user would: each command, a training, a translation.
# Needs no checkout: everything happens in a temporary folder.
set -euo pipefail
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python -m pip check
python -m syncattn_fairseq
for name in $(python -m syncattn_fairseq | sed -n 's/^  \(syncattn-[a-z]*\) .*/\1/p'); do
    "$name" --help >/dev/null || { echo "$name --help fails" >&2; exit 1; }
done
for name in train generate interactive preprocess score validate eval-lm hydra-train; do
    "fairseq-$name" --help >/dev/null || { echo "fairseq-$name --help fails" >&2; exit 1; }
done

syncattn-recipe builtin_en_de --to generate
words=corpora/builtin_en_de/words
syncattn-preprocess -s en -t de --destdir bin --joined-dictionary --trainpref $words/train --validpref $words/valid
fairseq-train bin --user-dir syncattn_fairseq --task translation_with_syntax --arch transformer_syncattn_tiny \
    --share-all-embeddings --criterion label_smoothed_cross_entropy_with_syntax --optimizer adam --lr 1e-3 \
    --max-tokens 500 --max-update 2 --cpu
fairseq-generate bin --user-dir syncattn_fairseq --gen-subset valid --cpu --task translation_with_syntax \
    --path checkpoints/checkpoint_last.pt --max-len-b 9 | grep '^Generate'
