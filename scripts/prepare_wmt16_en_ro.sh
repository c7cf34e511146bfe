#!/usr/bin/env bash
# : from the public archives to a binarised corpus with parses.
#
#   bash scripts/prepare_wmt16_en_ro.sh [--dry-run] [--from STAGE] [--to STAGE]      all options: --help
source "$(dirname "${BASH_SOURCE[0]}")/_recipe.sh"
recipe --to binarise "$@"
