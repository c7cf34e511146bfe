# Sourced by the other scripts: strict mode, $root, $cores and use_venv.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
cores="$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)"

use_venv() { # use_venv [--extras parse]: install what is missing and put .venv first on the path
    bash "$root/scripts/install.sh" "$@"
    export VIRTUAL_ENV="$root/.venv" PATH="$root/.venv/bin:$PATH"
    unset PYTHONHOME PYTHONPATH
}
