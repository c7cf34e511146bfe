#!/usr/bin/env bash
# From nothing to a table: generate a corpus with gold parses, train three small models, decode, score.
# Everything that it makes lies in quickstart/; run it again to go on where it stopped.
#
#   SEED    of the training (1)
#   WORK    where everything that is made goes (quickstart/)
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"
use_venv

work=${WORK:-$root/quickstart} seed=${SEED:-1}
recipe=(syncattn-recipe builtin_en_de @quickstart --seeds "$seed" --work "$work")
"${recipe[@]}" --jobs 3

words=$work/corpora/builtin_en_de/words models=$work/checkpoints/builtin_en_de
printf '\nThe first test sentence:\n'
printf '%-14s%s\n' English "$(head -n 1 "$words/test.en")" German "$(head -n 1 "$words/test.de")"
for system in transformer dbsa syncattn; do
    printf '%-14s%s\n' $system "$(head -n 1 "$models/$system/$seed/translations.txt")"
done

printf '\nAll of it by hand, in %s:\n' "$work"
"${recipe[@]}" --dry-run | grep -v ' mkdir '
printf '\nTranslations, models and what the commands said: %s/*/%s/\n' "$models" "$seed"
