# shellcheck shell=bash disable=SC2034 # other scripts use the variables
# Sourced by the checks here: starts a real Slurm on this machine, which ends with the script. Sets
#   root     the checkout
#   scratch  the folder for all output
#   client   the process that in_background started

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)"
scratch="$(realpath "${SCRATCH:-$(mktemp -d)}")"
client=
export SLURM_CONF="$scratch/slurm.conf"

say() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*"; }
fail() { say "$*" >&2; exit 1; }

start_slurm() {
    local program host
    PATH="$PATH:/usr/sbin"
    for program in munged slurmctld slurmd sbatch srun; do
        command -v "$program" >/dev/null ||
            fail "$program: not found; on Debian: apt-get install --no-install-recommends slurm-wlm munge"
    done
    trap stop EXIT

    mkdir -p "$scratch"/{state,spool}
    chmod 755 "$scratch"
    head -c 1024 /dev/urandom >"$scratch/munge.key"
    chmod 600 "$scratch/munge.key"
    munged --force --key-file="$scratch/munge.key" --socket="$scratch/munge.socket" \
        --pid-file="$scratch/munged.pid" --log-file="$scratch/munged.log" --seed-file="$scratch/munge.seed"

    host="$(hostname -s)"
    cat >"$SLURM_CONF" <<END
ClusterName=one
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
# A requeued job waits until its credentials expire.
AuthInfo=socket=$scratch/munge.socket,cred_expire=30
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
MinJobAge=86400
# Four processors, even if the machine has fewer: a training needs two for each of two processes.
SlurmdParameters=config_overrides
NodeName=$host NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=main Nodes=$host Default=YES MaxTime=INFINITE State=UP
END
    slurmctld -f "$SLURM_CONF"
    slurmd -f "$SLURM_CONF"
    for _ in $(seq 30); do
        sinfo -h -o %T 2>/dev/null | grep -q idle && break
        sleep 1
    done
    sinfo -h -o %T | grep -q idle || fail "the node does not come up; see $scratch/*.log (keep them with SCRATCH=)"
    say "$(slurmctld -V) runs"
}

in_background() { # in_background COMMAND...: it and its children end with the script
    set -m # a group of processes
    "$@" &
    set +m
    client=$!
}

end() { # end NAME: stop the daemon with this pid file, and wait until it has ended
    local pid
    [ -s "$scratch/$1.pid" ] || return 0
    pid="$(cat "$scratch/$1.pid")"
    kill "$pid" 2>/dev/null || true
    for _ in $(seq 100); do
        grep -qs '^State:\s*[^Z]' "/proc/$pid/status" || break
        sleep 0.1
    done
}

stop() {
    [ -z "$client" ] || kill -- "-$client" 2>/dev/null || true
    if [ -s "$scratch/slurmctld.pid" ]; then
        scancel --user="$(id -un)" || true
        for _ in $(seq 20); do
            [ -n "$(squeue -h 2>/dev/null)" ] || break
            sleep 1
        done
    fi
    end slurmd
    end slurmctld
    end munged
    [ -n "${SCRATCH:-}" ] || rm -rf "$scratch"
}

fact() { # fact JOB NAME: print what Slurm knows about a job
    scontrol --oneliner show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"
}
