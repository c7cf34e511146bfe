#!/usr/bin/env bash
# Build the site of README, docs/ and study/ in docs/_build/html; installs what is missing first. Arguments go to sphinx-build.
# All pages are written again, since each one has the navigation.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"
use_venv --extras docs
cd "$root"

sphinx-build --write-all --fail-on-warning --keep-going --quiet -b html "$@" -c docs . docs/_build/html
echo "the site: $root/docs/_build/html/index.html"
