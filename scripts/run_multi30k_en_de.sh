#!/usr/bin/env bash
# : train, decode and score systems of configs/multi30k_en_de, on the corpus that is prepared first.
#
#   bash scripts/run_multi30k_en_de.sh SYSTEM... [--dry-run] [--from STAGE] [--to STAGE] [SECTION.OPTION=VALUE...]      all options: --help
source "$(dirname "${BASH_SOURCE[0]}")/_recipe.sh"
[ $# -gt 0 ] || set -- SYSTEM
recipe "$@"
