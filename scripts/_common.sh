# Sourced by the other scripts: strict mode, $root, $cores, $OMP_NUM_THREADS and use_venv.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
cores="$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)"
[ "$cores" -le 8 ] || cores=8 # models of the size trained here gain nothing from more
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-$cores}"

use_venv() { # use_venv [--extras parse]: install what is missing and put .venv first on the path
    bash "$root/scripts/install.sh" "$@"
    export VIRTUAL_ENV="$root/.venv" PATH="$root/.venv/bin:$PATH"
    unset PYTHONHOME PYTHONPATH
}
