#!/usr/bin/env bash
# Parent-scaled attention, its rivals and its controls, side by side on the built-in corpus, with several seeds:
# does the parse help, beyond the temperature and the locality that come with it?
#
#   SEEDS   of the trainings ("1 2 3")
#   WORK    where everything that is made goes (runs/pascal/)
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"
use_venv
source "$root/scripts/_experiment.sh"

work=${WORK:-$root/runs/pascal} seeds=${SEEDS:-1 2 3}
# name|architecture and options
systems=(
    "Transformer|syntax_transformer"
    "PASCAL|transformer_pascal"
    "PASCAL-ignoring|transformer_pascal --parent-ignoring 0.3"
    "constant|transformer_pascal --pascal-parents constant"
    "self|transformer_pascal --pascal-parents self"
    "shuffled|transformer_pascal --pascal-parents shuffled"
    "random-tree|transformer_pascal --pascal-parents random"
    "LISA|transformer_lisa --src-dep-weight 1"
    "Multi-Task|syntax_transformer"
    "S&H|transformer_sh"
)

one() { # one NAME SEED ARCH [OPTION...]: train and decode one system with one seed
    local name=$1 seed=$2 arch=$3 data=$work/bin
    shift 3
    [ "$name" != Multi-Task ] || data=$work/bin-multitask
    train "$name-$seed" "$arch" --seed "$seed" "$@"
    translate "$name-$seed" --batch-size 100 $([ "$name" != LISA ] || echo --print-parses)
    if [ "$name" = LISA ]; then # the upper bound: what a perfect parser would change
        mkdir -p "$work/LISA-gold-$seed"
        ln -sf "../LISA-$seed/checkpoint_best.pt" "$work/LISA-gold-$seed/"
        translate "LISA-gold-$seed" --batch-size 100 --gold-source-heads
    fi
}

mix() { # the corpus of Multi-Task: translations and linearised parses of the source, one to one
    [ ! -e "$work/bin-multitask/.done" ] || return 0
    rm -rf "$work/bin-multitask"
    run "$work/mix.log" syncattn-multitask mix --seed 1 --trees "$words/train.trees.en" \
        --source "$work/pieces/train.en" --target "$work/pieces/train.de" \
        --output "$work/mixed/train.en" "$work/mixed/train.de"
    run "$work/tag.log" syncattn-multitask tag --input "$work/pieces/"{valid,test}.en \
        --output "$work/mixed/"{valid,test}.en
    cp "$work/pieces/"{valid,test}.de "$work/mixed/"
    run "$work/binarise-mixed.log" fairseq-preprocess -s en -t de --joined-dictionary \
        --destdir "$work/bin-multitask" --workers "$cores" \
        --trainpref "$work/mixed/train" --validpref "$work/mixed/valid" --testpref "$work/mixed/test"
    touch "$work/bin-multitask/.done"
}

say "An English-German corpus with gold parses, and the mix for Multi-Task"
built_in_corpus
mix

each_system_and_seed

scores=()
for seed in $seeds; do
    outputs=()
    for name in "${systems[@]%%|*}" LISA-gold; do
        outputs+=(--system "$name" "$work/$name-$seed/translations.txt")
    done
    scores+=("$work/scores-$seed.json")
    syncattn-score --references "$words/test.de" --tokenize none --subwords sentencepiece \
        --source "$words/test.en" --source-heads "$words/test.heads.en" \
        --baseline Transformer --by-length --json "$work/scores-$seed.json" "${outputs[@]}" \
        >"$work/scores-$seed.txt"
done
say "Test set: means over seeds $seeds, and the lowest and highest"
python "$root/scripts/mean_of_seeds.py" "${scores[@]}"
echo
echo "Each seed's scores, with significance and by length: $work/scores-*.txt"
