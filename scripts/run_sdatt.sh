#!/usr/bin/env bash
# The recurrent systems, whose attention is global, local, flexible or syntax-directed, with one context or two, and
# the same attention in a Transformer, side by side on the built-in corpus: does the source's tree help?
#
#   SEEDS   of the trainings ("1 2 3")
#   WORK    where everything that is made goes (runs/sdatt/)
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"
use_venv
source "$root/scripts/_experiment.sh"

work=${WORK:-$root/runs/sdatt} seeds=${SEEDS:-1 2 3}
# name|architecture and options
systems=(
    "GlobalAtt|rnn_global"
    "LocalAtt|rnn_local"
    "FlexAtt|rnn_flexible"
    "SDAtt|rnn_syntax_directed"
    "GlobalAtt+LocalAtt|rnn_local_double"
    "GlobalAtt+FlexAtt|rnn_flexible_double"
    "GlobalAtt+SDAtt|rnn_syntax_directed_double"
    "Transformer|syntax_transformer"
    "Transformer-tree-window|syntax_transformer --cross-attention-tree-window 4"
)
rnn_size=(--encoder-embed-dim 128 --encoder-hidden-size 128 --decoder-embed-dim 128 --decoder-hidden-size 128
    --share-all-embeddings)
rnn_recipe=(--lr 0.01 --clip-norm 1) # at the Transformer's rate they have learnt half as much by the end

one() { # one NAME SEED ARCH [OPTION...]: train and decode one system with one seed
    local name=$1 seed=$2 arch=$3
    shift 3
    if [[ $arch = rnn_* ]]; then
        local size=("${rnn_size[@]}")
        set -- "${rnn_recipe[@]}" "$@"
    fi
    train "$name-$seed" "$arch" --seed "$seed" "$@"
    translate "$name-$seed" --batch-size 100
}

say "An English-German corpus with gold heads"
built_in_corpus

each_system_and_seed

scores=()
for seed in $seeds; do
    outputs=()
    for name in "${systems[@]%%|*}"; do
        outputs+=(--system "$name" "$work/$name-$seed/translations.txt")
    done
    scores+=("$work/sdatt-$seed.json")
    syncattn-score --references "$words/test.$target" --tokenize none --subwords sentencepiece \
        --baseline GlobalAtt --json "$work/sdatt-$seed.json" "${outputs[@]}" \
        >"$work/sdatt-$seed.txt"
done
say "Test set: means over seeds $seeds, and the lowest and highest"
python "$root/scripts/mean_of_seeds.py" "${scores[@]}"
echo
echo "Each seed's scores, with significance: $work/sdatt-*.txt"
