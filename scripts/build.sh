#!/usr/bin/env bash
# Build what a release page offers into dist/: sdists and wheels of the plugin and of the laboratory, checked, and our
# wheel of fairseq. All are for every Python and machine. Uses and changes no environment but a temporary one of its own.
#
#   PYTHON  the interpreter to use, 3.11 to 3.14 (python3)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/_fairseq.sh
unset PYTHONHOME PYTHONPATH

tools="$(mktemp -d)"
trap 'rm -rf "$tools"' EXIT
"${PYTHON:-python3}" -m venv "$tools"
"$tools/bin/pip" install -q --disable-pip-version-check --no-compile -c constraints.txt build setuptools twine

# setuptools would reuse what an earlier build left in build/.
rm -rf build lab/build dist
# Each wheel is built from the sdist, which shows if the sdist lacks a file. Without isolation, setuptools is the pinned one.
"$tools/bin/python" -m build --no-isolation
"$tools/bin/python" -m build --no-isolation --outdir dist lab
wheel="$(fairseq_wheel "$tools/bin/python")"
cp "$wheel" dist/
"$tools/bin/twine" check --strict dist/*
ls -l dist
