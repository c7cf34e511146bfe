#!/usr/bin/env bash
# Style, types and tests; installs first when needed. Arguments go to pytest.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"
use_venv
cd "$root"
export OMP_NUM_THREADS=1 # the tests run side by side

failed=0
ruff check . || failed=1
ruff format --check . || failed=1
mypy || failed=1
# One worker takes a whole file, so that what a file trains once is trained once. They go in the order of their
# names: those with the fewest tests take longest, and xdist would start them last.
pytest -n $((cores > 8 ? 8 : cores)) --dist loadfile --no-loadscope-reorder "$@" || failed=1
exit $failed
