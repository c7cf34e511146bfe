#!/usr/bin/env bash
# Style, types and tests; installs what is missing first. Arguments go to pytest.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"
use_venv
cd "$root"
export OMP_NUM_THREADS=1 # tests run in parallel

failed=0
ruff check . || failed=1
ruff format --check . || failed=1
types="$(mktemp)"
mypy >"$types" 2>&1 & # has one process, and waits for none of the tests
# Each file runs on one worker, since its tests may share a trained model. tests/conftest.py puts the longest first;
# xdist would start those with the fewest tests last, but they take longest.
time pytest -n $((cores > 8 ? 8 : cores)) --dist loadfile --no-loadscope-reorder "$@" || failed=1
wait $! || failed=1
cat "$types" && rm "$types"
exit $failed
