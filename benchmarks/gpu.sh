#!/usr/bin/env bash
# Check everything that wants a GPU, in under ten minutes, and write one table: benchmarks/gpu.py says what.
#
#   bash benchmarks/gpu.sh [--cpu] [--output gpu.md] [--stanza-dir DIR] [--exported DIR --exported-input TEXT]
#
# PYTHON   an interpreter that has everything installed, with a torch for this GPU; without it, .venv is made
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/_common.sh"
if [ -z "${PYTHON:-}" ]; then
    use_venv
    PYTHON=python
fi
exec "$PYTHON" "$root/benchmarks/gpu.py" "$@"
