#!/usr/bin/env bash
# From nothing to a table and pictures: generate a corpus with gold parses, train three small models, decode, score,
# draw. Everything that it makes lies in quickstart/; run it again to go on where it stopped.
#
#   SEED    of the training (1)
#   WORK    where everything that is made goes (quickstart/)
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"
use_venv

work=${WORK:-$root/quickstart} seed=${SEED:-1}
recipe=(syncattn-recipe builtin_en_de @quickstart --seeds "$seed" --work "$work")
"${recipe[@]}" --jobs "$cores"

words=$work/corpora/builtin_en_de/words models=$work/checkpoints/builtin_en_de
data=$work/data-bin/builtin_en_de pieces=$(ls "$work"/corpora/builtin_en_de/pieces/*.model)
syncattn=$models/syncattn/$seed
model=(--path "$syncattn/checkpoint_best.pt" --data "$data" --subwords "$pieces" --gold "$words/test" -s en -t de)

printf '\nThree sentences with what the heads of SyncAttn make of them (✗: not the gold head, …: not asked):\n'
syncattn-show "${model[@]}" --number 5 17 45 2>>"$work/show.log"

syncattn-draw parses "${model[@]}" --number 80 --output "$work/parses.svg" >>"$work/show.log" 2>&1
systems=()
for system in transformer dbsa syncattn; do
    cell=$models/$system/$seed
    systems+=(--system "$system" "$cell/test.txt" "$cell/forced.txt" --log "$system" "$cell/train.log")
done
syncattn-report "${systems[@]}" --title "The quickstart's three systems" --output "$work/report.html" \
    --references "$words/test.de" --tokenize none --subwords sentencepiece --alignments "$words/test.align" \
    --source-heads "$words/test.heads.en" --source-labels "$words/test.labels.en" \
    --target-heads "$words/test.heads.de" --target-labels "$words/test.labels.de" \
    --attention syncattn "$syncattn/checkpoint_best.pt" --data "$data" --subword-model "$pieces" \
    >>"$work/show.log" 2>&1
syncattn-export --path "$syncattn/checkpoint_best.pt" --data-bin "$data" --subwords "$pieces" \
    --format fairseq --output "$work/plain" >>"$work/show.log" 2>&1 ||
    printf '\n%s is there already\n' "$work/plain"

cat <<END

What there is now, in $work:
  report.html                    all systems and sentences side by side: open it in a browser
  parses.svg                     a figure of one sentence
  plain/                         SyncAttn as a plain Transformer, for fairseq without this package
  checkpoints/builtin_en_de/     models, translations.txt, and what the commands said
Every command by hand: ${recipe[*]} --dry-run
What next: README.md, "Your own data"
END
