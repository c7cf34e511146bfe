#!/usr/bin/env bash
# A real Slurm on this machine parses a text as a job array; one job is preempted, one requeued by
# hand. The result must be that of --executor local, byte for byte.
#
#   bash benchmarks/slurm/one_node.sh TEXT LANG STANZA_DIR [SHARDS]
#
# On Debian: apt-get install --no-install-recommends slurm-wlm munge. Nothing outside the scratch
# folder is written, and the daemons are stopped at the end. Takes minutes: every job starts Python.
#
# SCRATCH  an empty folder to use and to leave behind (default: a temporary one, removed)
set -euo pipefail

[ $# -ge 3 ] || { sed -n '2,/^set/{/^#/p}' "$0" >&2; exit 2; }
text="$(realpath "$1")" language=$2 models="$(realpath "$3")" shards=${4:-4}
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)"
python="$root/.venv/bin/python"
scratch="${SCRATCH:-$(mktemp -d)}"
export SLURM_CONF="$scratch/slurm.conf"

say() { printf 'one_node: %s\n' "$*"; }
fail() { say "$*" >&2; exit 1; }

for program in munged slurmctld slurmd sbatch srun; do
    PATH="$PATH:/usr/sbin" command -v $program >/dev/null ||
        fail "$program: not found; on Debian: apt-get install --no-install-recommends slurm-wlm munge"
done
PATH="$PATH:/usr/sbin"

end() { # end NAME: the process that has written this id
    [ ! -s "$scratch/$1.pid" ] || kill "$(cat "$scratch/$1.pid")" 2>/dev/null || true
}

stop() {
    end parse
    if [ -s "$scratch/slurmctld.pid" ]; then
        scancel --user="$(id -un)" || true
        for _ in $(seq 20); do
            [ -n "$(squeue -h 2>/dev/null)" ] || break
            sleep 1
        done
    fi
    end slurmd
    end slurmctld
    sleep 2
    end munged
    [ -n "${SCRATCH:-}" ] || rm -rf "$scratch"
}
trap stop EXIT

# ---- Slurm

mkdir -p "$scratch"/{state,spool}
chmod 755 "$scratch"
head -c 1024 /dev/urandom >"$scratch/munge.key"
chmod 600 "$scratch/munge.key"
munged --force --key-file="$scratch/munge.key" --socket="$scratch/munge.socket" \
    --pid-file="$scratch/munged.pid" --log-file="$scratch/munged.log" --seed-file="$scratch/munge.seed"

host="$(hostname -s)"
cat >"$SLURM_CONF" <<EOF
ClusterName=one
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$scratch/munge.socket
CredType=cred/munge
SlurmctldPort=16817
SlurmdPort=16818
SlurmctldPidFile=$scratch/slurmctld.pid
SlurmdPidFile=$scratch/slurmd.pid
SlurmctldLogFile=$scratch/slurmctld.log
SlurmdLogFile=$scratch/slurmd.log
StateSaveLocation=$scratch/state
SlurmdSpoolDir=$scratch/spool
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
KillWait=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=main Nodes=$host Default=YES MaxTime=INFINITE State=UP
EOF
slurmctld -f "$SLURM_CONF"
slurmd -f "$SLURM_CONF"
for _ in $(seq 30); do
    sinfo -h -o %T 2>/dev/null | grep -q idle && break
    sleep 1
done
sinfo -h -o %T | grep -q idle || fail "the node does not come up; see $scratch/*.log (keep them with SCRATCH=)"
say "$(slurmctld -V) runs"

# ---- the two runs

parse() { # parse NAME OPTION...: takes the place of the shell
    local name=$1
    shift
    exec "$python" -m syncattn_fairseq.cli.parse --parser stanza --lang "$language" \
        --stanza-dir "$models" --input "$text" --output "$scratch/$name.heads" \
        --labels "$scratch/$name.labels" --conllu "$scratch/$name.conllu" --shards "$shards" "$@"
}

job_process() { # the process of a task of the array, once it listens to the signal
    local pid caught
    for pid in $(pgrep -f "submitit.core._submit $scratch/"); do
        grep -qz "^SLURM_ARRAY_TASK_ID=$1$" "/proc/$pid/environ" 2>/dev/null || continue
        caught=$(sed -n 's/^SigCgt:\s*//p' "/proc/$pid/status" 2>/dev/null) || continue
        (((16#${caught:-0} >> 11) & 1)) && echo "$pid" # SIGUSR2
    done
}

wait_for() { # wait_for TASK: until its job is at work
    for _ in $(seq 300); do
        [ -z "$(job_process "$1")" ] || return 0
        kill -0 "$(cat "$scratch/parse.pid")" 2>/dev/null || break
        sleep 0.2
    done
    fail "job $1 was not seen at work; take a longer text"
}

cd "$root"
say "--executor slurm"
parse slurm --executor slurm --slurm cpus-per-task=1 &
echo $! >"$scratch/parse.pid"
wait_for 0
array="$(squeue -h -o %F | sort -u)"
say "preempting job ${array}_0, with the signal that submitit waits for"
timeout 3 scancel --signal=USR2 "${array}_0" || true # repeats it until the job runs again
wait_for 1
say "requeueing job ${array}_1"
scontrol requeue "${array}_1"
wait "$(cat "$scratch/parse.pid")"
rm "$scratch/parse.pid"

say "--executor local"
(parse local --workers "$(nproc)")
for output in heads labels conllu; do
    cmp "$scratch/slurm.$output" "$scratch/local.$output"
done
for task in 0 1; do
    [ "$(scontrol show job "${array}_$task" | sed -n 's/.*Restarts=\([0-9]*\).*/\1/p')" -gt 0 ] ||
        fail "job ${array}_$task was not started again"
done
say "the same, byte for byte: $(wc -l <"$scratch/slurm.heads") lines"
