#!/usr/bin/env bash
# Does syntax help a model that already translates? All of the plan, on one thread; what is done is not done again.
set -euo pipefail
export OMP_NUM_THREADS=1
bash scripts/recipe.sh multi30k_en_de dbsa --cpu --to parse
python -m study.start --results study/results/start
