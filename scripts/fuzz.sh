#!/usr/bin/env bash
# Test each reader with 2,000 mutated files, more than 40,000 in all, models, which take longer, with a tenth as many,
# and each command in 3 ways with 100 cases; the tests use a quarter. Arguments go to pytest.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"
use_venv
cd "$root"
FUZZ_CASES="${FUZZ_CASES:-2000}" pytest tests/fuzz "$@"
