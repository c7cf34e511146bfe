#!/usr/bin/env bash
# Latent phrase structure, its synchronisation and its baselines side by side on the built-in corpus, with and
# without positions: how well do they translate, align, and find constituents?
#
#   SEEDS   of the trainings ("1 2 3")
#   WORK    where everything that is made goes (runs/lpsi/)
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"
use_venv
source "$root/scripts/_experiment.sh"

work=${WORK:-$root/runs/lpsi} seeds=${SEEDS:-1 2 3}
# name|architecture and options
systems=(
    "Transformer|syntax_transformer"
    "sync-attention|transformer_syncattn --encoder-parser dot --decoder-parser dot --dependency-heads 4
        --src-dep-weight 0 --tgt-dep-weight 0 --sync-weight 1"
    "LPSI|transformer_lpsi"
    "SynchMSE|transformer_lpsi --sync-mse-weight 0.01"
    "SynchRank|transformer_lpsi --sync-rank-weight 0.01"
    "local-attention|transformer_local_attn"
)
for system in "${systems[@]}"; do
    systems+=("${system/|/-without-positions|} --no-token-positional-embeddings")
done
names=("${systems[@]%%|*}")

one() { # one NAME SEED ARCH [OPTION...]: train, decode, and force the references
    local name=$1 seed=$2 arch=$3
    shift 3
    train "$name-$seed" "$arch" --seed "$seed" "$@"
    translate "$name-$seed" --batch-size 100
    force "$name-$seed" --batch-size 100 --print-layer-alignments $(! gated "$arch" || echo --print-distances)
}

gated() { [ "$1" = transformer_lpsi ]; }

trees() { # trees SEED: induce the trees of the test set's target side from both gated layers, and score them
    local seed=$1 scored=() system name layer
    for system in "${systems[@]}"; do
        name=${system%%|*} arch=${system#*|}
        gated "${arch%% *}" || continue
        for layer in 1 2; do
            syncattn-trees induce --decoded "$work/$name-$seed/forced.txt" --layer "$layer" \
                --text "$words/test.$target" --output "$work/$name-$seed/trees-$layer.$target"
            scored+=(--system "$name layer $layer" "$work/$name-$seed/trees-$layer.$target")
        done
    done >"$work/trees-$seed.log"
    syncattn-trees score --gold "$words/test.trees.$target" --seed "$seed" \
        --json "$work/trees-$seed.json" "${scored[@]}" >"$work/trees-$seed.txt"
}

say "An English-German corpus with gold trees and word alignments"
built_in_corpus

each_system_and_seed

say "Score"
for seed in $seeds; do
    outputs=() forced=()
    for name in "${names[@]}"; do
        outputs+=(--system "$name" "$work/$name-$seed/translations.txt")
        forced+=(--forward "$name" "$work/$name-$seed/forced.txt")
    done
    syncattn-score --references "$words/test.$target" --tokenize none --subwords sentencepiece \
        --baseline Transformer --json "$work/scores-$seed.json" "${outputs[@]}" >"$work/scores-$seed.txt"
    syncattn-align --gold "$words/test.align" --json "$work/align-$seed.json" "${forced[@]}" >"$work/align-$seed.txt"
    trees "$seed"
done
for kind in scores align trees; do
    echo
    # shellcheck disable=SC2086
    python "$root/scripts/mean_of_seeds.py" $(printf "$work/$kind-%s.json " $seeds)
done
echo
echo "Means over seeds $seeds, and the lowest and highest. Each seed's scores: $work/*-*.txt"
