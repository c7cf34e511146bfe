#!/usr/bin/env bash
# What is a parse worth, in sentence pairs? All 105 trainings of the plan on one GPU; what is done is not done again.
set -euo pipefail
bash scripts/recipe.sh multi30k_tiny_en_de dbsa --to binarise
python -m study.exchange prepare
python -m study.exchange tune --results study/results/exchange/updates.json
python -m study.exchange run --results study/results/exchange/gpu.json
python -m study.exchange_rate study/results/exchange/gpu.json
