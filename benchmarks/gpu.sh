#!/usr/bin/env bash
# Check everything that needs a GPU, in five minutes, and write one table (see benchmarks/gpu.py).
#
#   bash benchmarks/gpu.sh [--cpu] [--output gpu.md] [--data DATA_BIN] [--sections NAME...] [--stanza-dir DIR]
#
# PYTHON   an interpreter with everything installed and a torch for this GPU (default: that of .venv, made if missing)
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/_common.sh"
if [ -z "${PYTHON:-}" ]; then
    use_venv --extras parse
    PYTHON=python
fi
exec "$PYTHON" "$root/benchmarks/gpu.py" "$@"
