#!/usr/bin/env bash
# Build the sdist and the wheel into dist/, and check that they can be published. Installs no torch and no fairseq.
#
#   PYTHON  the interpreter to use, 3.10 or later (python3)
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"
cd "$root"
unset PYTHONHOME PYTHONPATH

tools="$(mktemp -d)"
trap 'rm -rf "$tools"' EXIT
"${PYTHON:-python3}" -m venv "$tools"
"$tools/bin/pip" install -q --disable-pip-version-check -c constraints.txt build setuptools twine

# setuptools would reuse what an earlier build left in build/.
rm -rf build dist
# The wheel is built from the sdist, which shows if the sdist lacks a file. Without isolation, setuptools is the pinned one.
"$tools/bin/python" -m build --no-isolation
"$tools/bin/twine" check --strict dist/*
