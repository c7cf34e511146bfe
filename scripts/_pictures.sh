# Sourced after _experiment.sh, whose $work, $words, $source and $target it uses.

look() { # look NAME=FOLDER...: a report of systems of $work, and sentences of the last one in a figure and here
    local pair folder systems=()
    for pair; do
        folder=$work/${pair#*=}
        systems+=(--system "${pair%%=*}" "$folder/translations.txt" "$folder/forced.txt"
            --log "${pair%%=*}" "$folder/train.log")
    done
    say "All systems and sentences side by side"
    syncattn-report "${systems[@]}" --title "$source-$target: ${*%%=*}" --output "$work/report.html" \
        --references "$words/test.$target" --tokenize none --subwords sentencepiece --alignments "$words/test.align" \
        --source-heads "$words/test.heads.$source" --source-labels "$words/test.labels.$source" \
        --target-heads "$words/test.heads.$target" --target-labels "$words/test.labels.$target" \
        --source-trees "$words/test.trees.$source" --target-trees "$words/test.trees.$target" \
        --attention "${pair%%=*}" "$folder/checkpoint_best.pt" --data "$work/bin" \
        --subword-model "$work/pieces/bpe.model"
    local model=(--path "$folder/checkpoint_best.pt" --data "$work/bin" --subwords "$work/pieces/bpe.model"
        --gold "$words/test" -s "$source" -t "$target")
    say "What ${pair%%=*} makes of a sentence, as a figure"
    syncattn-draw parses "${model[@]}" --number 80 --output "$work/parses.svg"
    say "Three more in the terminal; ✗: not the gold head, …: not asked, since it comes later"
    syncattn-show "${model[@]}" --number 5 17 45
}
