#!/usr/bin/env bash
# syncattn-recipe with everything that it may need, which is installed into .venv the first time:
#
#   bash scripts/recipe.sh wmt14_en_de transformer syncattn      from the archives to a table
#   bash scripts/recipe.sh builtin_en_de @pascal --seeds 1 2 3   several systems on the built-in corpus
#   bash scripts/recipe.sh --help
#
# --dry-run, --table and --help install nothing and use the active environment.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"

case " $* " in
    *" --dry-run "* | *" --table "* | *" --help "* | *" -h "*)
        command -v syncattn-recipe >/dev/null || PATH="$PATH:$root/.venv/bin"
        ;;
    *) use_venv --extras parse ;;
esac
exec syncattn-recipe "$@"
