#!/usr/bin/env bash
# Test each reader with 2,000 mutated files, more than 40,000 in all; the tests use 500. Models take longer, and get a
# tenth as many. Arguments go to pytest.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"
use_venv
cd "$root"
FUZZ_CASES="${FUZZ_CASES:-2000}" pytest tests/fuzz "$@"
