#!/usr/bin/env bash
# From nothing to a table and pictures: generate a corpus with gold parses, train three small models, decode, score,
# draw, export. All output goes to quickstart/; if it was stopped, run it again to continue.
#
#   SEED    seed of the trainings (1)
#   WORK    folder for all output (quickstart/)
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"
use_venv

work=${WORK:-$root/quickstart} seed=${SEED:-1}
mkdir -p "$work"
work="$(cd "$work" && pwd -P)"
commands=$work/commands.sh log=$work/log.txt

note() { # write a command to $commands as one would type it
    printf '%q ' "$@" >>"$commands"
    echo >>"$commands"
}

quietly() { # run a command; what it prints goes to the log
    note "$@"
    "$@" >>"$log" 2>&1 || { printf 'error: %s failed (see %s)\n' "$1" "$log" >&2; exit 1; }
}

cat <<END
Three models learn to translate English into German, from 20,000 sentence pairs of a small grammar:
  transformer  without syntax
  dbsa         one head in encoder and decoder learns to point at each word's parent
  syncattn     as dbsa, and both sides' parses are made to agree
About five minutes on two cores.

END

# All three at a time: with two, a core would be idle while the third trains.
syncattn-recipe builtin_en_de @quickstart --seeds "$seed" --work "$work" --jobs 3 \
    --report "$work/report.html"

{
    printf '#!/usr/bin/env bash\n# The commands that scripts/quickstart.sh ran.\ncd %q\n' "$work"
    cd "$work"
    for part in logs/builtin_en_de/{generate,subwords,binarise,binarise-heads-{en,de}} \
        checkpoints/builtin_en_de/{transformer,dbsa,syncattn}/"$seed"/{train,decode,score} \
        logs/builtin_en_de/report; do
        printf '\n# %s\n' "$part"
        sed -n 's/^\$ //p' "$part.log"
    done
    cd "$root"
} >"$commands"

cat <<END

BLEU, chrF, RIBES  how close the translations of 500 test sentences are to the references; 100 is the same
AER                the error rate of word alignments, read from the decoder's attention; 0 is best
UAS                the percentage of words whose parent the heads find; 100 is best
This shows that everything works, not which system is better: seeds differ by as much.
END

words=$work/corpora/builtin_en_de/words models=$work/checkpoints/builtin_en_de
data=$work/data-bin/builtin_en_de pieces=$work/corpora/builtin_en_de/pieces/bpe.model
syncattn=$models/syncattn/$seed
model=(--path "$syncattn/checkpoint_best.pt" --data-bin "$data" --subwords "$pieces" --gold "$words/test")

printf '\n# pictures and an export\n' >>"$commands"
show=(syncattn-show "${model[@]}" --number 5 17 45)
note "${show[@]}"

printf '\nNow a picture, a plain model, and three sentences as the heads of SyncAttn parse them\n'
printf '(✗: not the gold parent; …: the parent comes later, where a decoder cannot look):\n\n'
made=()
quietly syncattn-show "${model[@]}" --number 80 --figure "$work/parses.svg" &
made+=($!)
if [ ! -e "$work/plain" ]; then
    quietly syncattn-export --path "$syncattn/checkpoint_best.pt" --data-bin "$data" --subwords "$pieces" \
        --format fairseq --output "$work/plain" &
    made+=($!)
fi
"${show[@]}" 2>>"$log" || { printf 'error: syncattn-show failed (see %s)\n' "$log" >&2; exit 1; }
for process in "${made[@]}"; do wait "$process" || exit 1; done

cat <<END

Now there are, in $work:
  report.html     all systems and sentences side by side: open it in a browser
  parses.svg      a picture of one sentence with its parses
  plain/          SyncAttn as a plain Transformer, for fairseq without this package
  checkpoints/builtin_en_de/SYSTEM/$seed/
                  the models, translations.txt, and logs
All commands that were run: $commands

Next: translate with the model, or train on your own data (docs/own_data.md).
  source $root/.venv/bin/activate
  echo 'The old man sees the dogs.' | syncattn-translate --path $work/plain
END
