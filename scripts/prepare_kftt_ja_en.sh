#!/usr/bin/env bash
# : from the public archives to a binarised corpus with parses.
#
#   bash scripts/prepare_kftt_ja_en.sh [--dry-run] [--from STAGE] [--to STAGE]      all options: --help
source "$(dirname "${BASH_SOURCE[0]}")/_recipe.sh"
recipe --to binarise "$@"
