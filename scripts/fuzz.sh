#!/usr/bin/env bash
# Fuzz each reader with 2,000 mutated files (more than 40,000 in all), models, which are slower, with a tenth of that,
# and each command with 100 cases in 3 ways. The tests run a tenth of this. Arguments go to pytest.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"
use_venv
cd "$root"
FUZZ_CASES="${FUZZ_CASES:-2000}" pytest tests/fuzz "$@"
