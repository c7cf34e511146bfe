#!/usr/bin/env bash
# syncattn-recipe with all that it may need, which is installed into .venv the first time:
#
#   bash scripts/recipe.sh wmt14_en_de transformer syncattn      from the archives to a table
#   bash scripts/recipe.sh builtin_en_de @pascal --seeds 1 2 3   the same with the built-in corpus
#   bash scripts/recipe.sh --help
#
# What only shows something (--dry-run, --table, --help) installs nothing and takes the environment that is active.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"

case " $* " in
    *" --dry-run "* | *" --table "* | *" --help "* | *" -h "*)
        command -v syncattn-recipe >/dev/null || PATH="$PATH:$root/.venv/bin"
        ;;
    *) use_venv --extras parse ;;
esac
exec syncattn-recipe "$@"
