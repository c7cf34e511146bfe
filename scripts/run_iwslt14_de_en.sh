#!/usr/bin/env bash
# : train, decode and score systems of configs/iwslt14_de_en, on the corpus that is prepared first.
#
#   bash scripts/run_iwslt14_de_en.sh SYSTEM... [--dry-run] [--from STAGE] [--to STAGE] [SECTION.OPTION=VALUE...]      all options: --help
source "$(dirname "${BASH_SOURCE[0]}")/_recipe.sh"
[ $# -gt 0 ] || set -- SYSTEM
recipe "$@"
