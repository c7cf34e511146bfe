#!/usr/bin/env bash
# : train, decode and score systems of configs/europarl_de_en_align, on the corpus that is prepared first.
#
#   bash scripts/run_europarl_de_en_align.sh SYSTEM... [--dry-run] [--from STAGE] [--to STAGE] [SECTION.OPTION=VALUE...]      all options: --help
source "$(dirname "${BASH_SOURCE[0]}")/_recipe.sh"
[ $# -gt 0 ] || set -- SYSTEM
recipe "$@"
