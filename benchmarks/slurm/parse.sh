#!/usr/bin/env bash
# Parse a text as a job array in a real Slurm on this machine; preempt one job, requeue another by
# hand. The result must be the same as with --executor local, byte for byte.
#
#   bash benchmarks/slurm/parse.sh TEXT LANG STANZA_DIR [SHARDS]
#
# On Debian: apt-get install --no-install-recommends slurm-wlm munge. Nothing outside the scratch
# folder is written, and the daemons are stopped at the end. Takes minutes: every job starts Python.
#
# SCRATCH  an empty folder to use and keep (default: a temporary one, removed)
set -euo pipefail

[ $# -ge 3 ] || { sed -n '2,/^set/{/^#/p}' "$0" >&2; exit 2; }
text="$(realpath "$1")" language=$2 models="$(realpath "$3")" shards=${4:-4}
source "$(dirname "${BASH_SOURCE[0]}")/_slurm.sh"
start_slurm

parse() { # parse NAME OPTION...: replaces the shell
    local name=$1
    shift
    exec "$root/.venv/bin/syncattn-parse" --parser stanza --lang "$language" \
        --stanza-dir "$models" --input "$text" --output "$scratch/$name.heads" \
        --labels "$scratch/$name.labels" --conllu "$scratch/$name.conllu" --shards "$shards" "$@"
}

job_process() { # job_process TASK: print the process of a task of the array if it handles the signal
    local pid caught
    for pid in $(pgrep -f "submitit.core._submit $scratch/"); do
        grep -qz "^SLURM_ARRAY_TASK_ID=$1$" "/proc/$pid/environ" 2>/dev/null || continue
        caught=$(sed -n 's/^SigCgt:\s*//p' "/proc/$pid/status" 2>/dev/null) || continue
        (((16#${caught:-0} >> 11) & 1)) && echo "$pid" # SIGUSR2
    done
}

wait_for() { # wait_for TASK: wait until its job works
    for _ in $(seq 600); do
        [ -z "$(job_process "$1")" ] || return 0
        kill -0 "$client" 2>/dev/null || break
        sleep 0.2
    done
    fail "job $1 was not seen at work; take a longer text"
}

cd "$root"
say "--executor slurm"
in_background parse slurm --executor slurm --slurm cpus-per-task=1
wait_for 0
array="$(squeue -h -o %F | sort -u)"
say "preempting job ${array}_0 with the signal that submitit handles"
timeout 3 scancel --signal=USR2 "${array}_0" || true # repeats it until the job runs again
wait_for 1
say "requeueing job ${array}_1"
scontrol requeue "${array}_1"
wait "$client"
client=

say "--executor local"
(parse local --workers "$(nproc)")
for output in heads labels conllu; do
    cmp "$scratch/slurm.$output" "$scratch/local.$output"
done
for task in 0 1; do
    [ "$(fact "${array}_$task" Restarts)" -gt 0 ] || fail "job ${array}_$task was not started again"
done
say "the same, byte for byte: $(wc -l <"$scratch/slurm.heads") lines"
