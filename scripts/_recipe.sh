# Sourced by prepare_*.sh and run_*.sh, whose names say the corpus. Everything goes into the folder WORK (the checkout).
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"
use_venv --extras parse
unset OMP_NUM_THREADS # each program's own choice

corpus="$(basename "$0" .sh)"
corpus="${corpus#*_}"

recipe() { exec syncattn-recipe "$corpus" "$@" --work "${WORK:-$root}"; }
