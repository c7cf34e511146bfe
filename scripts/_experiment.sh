# Sourced by scripts that run an experiment from text to table. They set
#   work     folder for everything that is made
#   source target            languages
#   words    prefix of the tokenised text and its heads: $words/train.en, $words/train.heads.en
#   size     options of fairseq-train that make the model's size, the same for all systems
#   recipe   all its other options, the same for all systems
#   systems  "NAME|ARCH OPTION..." of each, and
#   seeds    for each_system_and_seed
#   data     the binarised corpus to train on and to decode ($work/bin)
# A finished step is skipped on the next run, and an interrupted training resumes.

plugin=(--user-dir "$root/syncattn_fairseq" --task translation_with_syntax)

say() { printf '\n== %s\n' "$*"; }

run() { # run LOG COMMAND...: print the command, keep its output in LOG, show the end if it fails
    local log=$1
    shift
    printf '$'
    printf ' %q' "$@"
    echo
    if ! "$@" >"$log" 2>&1; then
        tail -n 5 "$log" >&2
        echo "failed; all of its output: $log" >&2
        return 1
    fi
}

segment() { # segment VOCABULARY: learn a joint BPE and apply it to every split
    [ ! -e "$work/pieces/.done" ] || return 0
    mkdir -p "$work/pieces"
    run "$work/pieces/learn.log" syncattn-bpe learn --vocab-size "$1" --model "$work/pieces/bpe" \
        --input "$words/train.$source" "$words/train.$target"
    local names=({train,valid,test}.{"$source","$target"})
    run "$work/pieces/apply.log" syncattn-bpe apply --model "$work/pieces/bpe.model" \
        --input "${names[@]/#/$words/}" --output "${names[@]/#/$work/pieces/}"
    touch "$work/pieces/.done"
}

binarise() {
    [ ! -e "$work/bin/.done" ] || return 0
    local split options=()
    for split in train valid test; do
        options+=("--${split}pref" "$work/pieces/$split" "--${split}heads" "$words/$split")
    done
    rm -rf "$work/bin"
    run "$work/binarise.log" syncattn-preprocess -s "$source" -t "$target" --joined-dictionary \
        --destdir "$work/bin" --workers "$cores" "${options[@]}"
    touch "$work/bin/.done"
}

built_in_corpus() { # built_in_corpus RECIPE_OPTION...: the small experiment's settings, corpus and subwords
    source=en target=de words=$work/words
    size=(--encoder-layers 2 --decoder-layers 2 --encoder-embed-dim 128 --encoder-ffn-embed-dim 256
        --encoder-attention-heads 4 --decoder-attention-heads 4 --share-all-embeddings)
    recipe=(--label-smoothing 0.1 --optimizer adam --adam-betas '(0.9, 0.98)' --lr 0.003
        --lr-scheduler inverse_sqrt --warmup-updates 200 --dropout 0.05 --max-tokens 1024
        --max-update 850 --validate-interval-updates 425 --no-epoch-checkpoints
        --log-format simple --log-interval 100 "$@")
    mkdir -p "$work"
    [ -e "$words/test.align" ] || run "$work/corpus.log" syncattn-corpus "$words"
    segment 5000
    binarise
}

side_by_side() { # side_by_side COMMAND...: start a shell function, as many at once as there are cores
    while [ "$(jobs -rp | wc -l)" -ge "$cores" ]; do wait -n; done
    "$@" &
}

each_system_and_seed() { # start the script's own `one NAME SEED ARCH [OPTION...]` for each, side by side
    local seed system
    say "Train and decode ${#systems[@]} systems with seeds $seeds, $cores at a time"
    export OMP_NUM_THREADS=1
    for seed in $seeds; do
        for system in "${systems[@]}"; do
            # shellcheck disable=SC2086
            side_by_side one "${system%%|*}" "$seed" ${system#*|}
        done
    done
    while [ -n "$(jobs -rp)" ]; do wait -n; done
}

train() { # train NAME ARCH [OPTION...]
    local folder=$work/$1 arch=$2
    shift 2
    [ ! -e "$folder/.trained" ] || return 0
    mkdir -p "$folder"
    run "$folder/train.log" fairseq-train "${data:-$work/bin}" "${plugin[@]}" --arch "$arch" \
        --criterion label_smoothed_cross_entropy_with_syntax --save-dir "$folder" \
        "${size[@]}" "${recipe[@]}" "$@"
    grep '| valid |' "$folder/train.log" | tail -n 1 | sed 's/.*subset | /   /'
    touch "$folder/.trained"
}

translate() { # translate NAME [OPTION...]: the test set, by beam search
    local folder=$work/$1
    shift
    [ ! -e "$folder/.translated" ] || return 0
    run "$folder/translations.txt" fairseq-generate "${data:-$work/bin}" "${plugin[@]}" -s "$source" -t "$target" \
        --path "$folder/checkpoint_best.pt" --remove-bpe sentencepiece "$@"
    touch "$folder/.translated"
}

force() { # force NAME [OPTION...]: the references through the model, for alignments and parses
    local folder=$work/$1
    shift
    [ ! -e "$folder/.forced" ] || return 0
    run "$folder/forced.txt" fairseq-generate "${data:-$work/bin}" "${plugin[@]}" -s "$source" -t "$target" \
        --path "$folder/checkpoint_best.pt" --score-reference "$@"
    touch "$folder/.forced"
}
