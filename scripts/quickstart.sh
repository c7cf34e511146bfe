#!/usr/bin/env bash
# From nothing to a table: generate a corpus with gold parses, train three small models, decode, score.
# Everything that it makes lies in quickstart/; run it again to go on where it stopped.
#
#   SEED    of the training (1)
#   WORK    where everything that is made goes (quickstart/)
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"
use_venv
source "$root/scripts/_experiment.sh"

began=$SECONDS
work=${WORK:-$root/quickstart}

say "An English-German corpus with gold heads and word alignments, in subwords and binarised"
built_in_corpus --seed "${SEED:-1}"
head -n 1 "$words/train.en" "$words/train.de"
say "Train and decode three systems side by side"
export OMP_NUM_THREADS=$((cores > 3 ? cores / 3 : 1)) # models this small gain little from a second thread
systems=(syntax_transformer transformer_dbsa transformer_syncattn) jobs=()
for system in "${systems[@]}"; do
    (
        train "$system" "$system"
        translate "$system" --batch-size 100
        force "$system" --batch-size 100 --print-alignment $([ "$system" = syntax_transformer ] || echo --print-parses)
    ) &
    jobs+=($!)
done
for job in "${jobs[@]}"; do wait "$job"; done

say "Test set, $((SECONDS - began)) s after the start"
syncattn-score --references "$words/test.de" --tokenize none --subwords sentencepiece \
    --source-heads "$words/test.heads.en" --target-heads "$words/test.heads.de" \
    --alignments "$words/test.align" \
    --system Transformer "$work"/syntax_transformer/{translations,forced}.txt \
    --system DBSA "$work"/transformer_dbsa/{translations,forced}.txt \
    --system SyncAttn "$work"/transformer_syncattn/{translations,forced}.txt
echo
echo "Corpus: $words; models, logs and output: $work/*/"
