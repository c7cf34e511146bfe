#!/usr/bin/env bash
# Multi30k English-German: Transformer, DBSA and SyncAttn, from text with parses to a table.
#
#   bash scripts/run_multi30k.sh [SYSTEM...]        all three, or some of them:
#                                                   syntax_transformer transformer_dbsa transformer_syncattn
#   MULTI30K  folder with {train,valid,test}.{en,de}.{tok,heads}.gz and raw/test_2016_flickr.{en,de}.gz;
#             without one, the public text is downloaded, tokenised and parsed (slow without a GPU)
#   EPOCHS    of training (10)
#   WORK      where everything that is made goes (multi30k/)
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"
multi30k=${MULTI30K:-}
if [ -n "$multi30k" ]; then use_venv; else use_venv --extras parse; fi
source "$root/scripts/_experiment.sh"

began=$SECONDS
work=${WORK:-$root/multi30k} source=en target=de words=$work/words
size=(--encoder-layers 3 --decoder-layers 3 --encoder-embed-dim 256 --encoder-ffn-embed-dim 1024
    --encoder-attention-heads 4 --decoder-attention-heads 4 --share-all-embeddings)
recipe=(--label-smoothing 0.1 --optimizer adam --adam-betas '(0.9, 0.98)' --lr 0.001
    --lr-scheduler inverse_sqrt --warmup-updates 1000 --dropout 0.3 --max-tokens 4096 --seed "${SEED:-1}"
    --max-epoch "${EPOCHS:-10}" --no-epoch-checkpoints --log-format simple --log-interval 50)
mkdir -p "$words" "$work/raw"

say "Words and heads"
if [ ! -e "$words/.done" ]; then
    if [ -n "$multi30k" ]; then
        for split in train valid test; do
            for language in en de; do
                gzip -dc "$multi30k/$split.$language.tok.gz" >"$words/$split.$language"
                gzip -dc "$multi30k/$split.$language.heads.gz" >"$words/$split.heads.$language"
            done
        done
        gzip -dc "$multi30k/raw/test_2016_flickr.de.gz" >"$work/raw/test.de"
    else
        python "$root/scripts/fetch_multi30k.py" "$work/raw" "$words"
    fi
    touch "$words/.done"
fi
wc -l "$words"/{train,valid,test}.en
say "Subwords, and heads of subwords beside the binarised text"
segment 8000
binarise

[ $# -gt 0 ] || set -- syntax_transformer transformer_dbsa transformer_syncattn
systems=()
for system; do
    say "Train and decode: $system"
    train "$system" "$system"
    translate "$system" --batch-size 100
    force "$system" --batch-size 100 --print-alignment $([ "$system" = syntax_transformer ] || echo --print-parses)
    systems+=(--system "$system" "$work/$system/translations.txt" "$work/$system/forced.txt")
done

say "Test set (test_2016_flickr), $((SECONDS - began)) s after the start"
syncattn-score --references "$work/raw/test.de" --detokenize moses:de --subwords sentencepiece \
    --source-heads "$words/test.heads.en" --target-heads "$words/test.heads.de" "${systems[@]}"
echo
echo "Models, logs and output: $work/*/"
