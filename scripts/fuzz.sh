#!/usr/bin/env bash
# Gives each reader 10,000 mutated files; the tests give it 500. Arguments go to pytest.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"
use_venv
cd "$root"
FUZZ_CASES="${FUZZ_CASES:-10000}" pytest tests/fuzz "$@"
