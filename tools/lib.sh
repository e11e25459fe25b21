# Shared by the set-up scripts; each sources it first. It moves to the root of the tree and names what they all use.
# Set-up steps are idempotent: a step that has nothing to do ends at once, a step that fails says one sentence and leaves
# nothing half-made behind (work goes to a temporary name and is renamed when whole).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
deps=$root/.deps
export CCACHE_BASEDIR=$root  # a clone elsewhere finds the same objects
python=${PYTHON:-$([ -x /usr/bin/python3 ] && echo /usr/bin/python3 || echo python3)}

say() { printf 'fermata: %s\n' "$*"; }
die() { printf 'fermata: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }
sha256_of() { sha256sum "$1" | cut -d' ' -f1; }

# need COMMAND PACKAGE: ends unless the command is there.
need() { have "$1" || die "$1 is missing: run 'make setup', or install the package $2."; }

# need_space KIB FOR-WHAT: ends when the file system of this tree has less room than that.
need_space() {
  local free
  free=$(df -Pk "$root" | awk 'NR == 2 { print $4 }')
  [ "$free" -ge "$1" ] || die "the disk is full: $2 needs $(($1 / 1024)) MiB, $((free / 1024)) MiB are free at $root."
}

# only_one NAME: a second run of the same step waits for the first.
only_one() {
  mkdir -p "$deps"
  exec 9>"$deps/.lock-$1"
  flock -n 9 && return
  say "waiting for another run of this step ($1)" >&2
  flock 9
}

# budget SUITE: the seconds that all of it may take, from the one file that says so.
budget() {
  local seconds
  seconds=$(awk -v suite="$1" '$1 == suite { print $3 }' tests/budgets.txt)
  [ -n "$seconds" ] || die "tests/budgets.txt has no line for '$1'."
  echo "$seconds"
}

# within SUITE COMMAND…: runs it, for as long as the budget says.
within() {
  local seconds status=0 terminal=()
  seconds=$(budget "$1")
  [ ! -t 0 ] || terminal=(--foreground)  # Ctrl-C reaches the command
  timeout "${terminal[@]}" --kill-after=10 "$seconds" "${@:2}" || status=$?
  [ $status != 124 ] || say "the suite '$1' took longer than its $seconds s (tests/budgets.txt)"
  return $status
}

# progress WHAT [all]: reads ninja, which prints "[12/240] …" for each step. Shows a moving count on a terminal; elsewhere a
# line for every tenth part, and when none came for 15 s. With `all` every other line of ninja's too: what compilers say.
progress() {
  local line shown=0 shown_at=$SECONDS n_done n_all=0 n_before counted=
  while IFS= read -r line; do
    if [[ ! $line =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
      [ "${2-}" != all ] || [[ $line == "ninja: "*directory* || $line == "ninja: no work to do." ]] || printf '%s\n' "$line"
      continue
    fi
    n_before=$n_all n_done=${BASH_REMATCH[1]} n_all=${BASH_REMATCH[2]}
    [ "$n_all" -le "$n_before" ] || shown=0  # it looked at its rules first, and now builds
    if [ -t 1 ]; then
      printf '\r  %s: %d of %d steps' "$1" "$n_done" "$n_all"
      counted=yes
    elif [ $((10 * n_done / n_all)) -gt $shown ] || [ $((SECONDS - shown_at)) -ge 15 ]; then
      shown=$((10 * n_done / n_all)) shown_at=$SECONDS
      printf '  %s: %d of %d steps\n' "$1" "$n_done" "$n_all"
    fi
  done
  [ -z "$counted" ] || printf '\n'
}

jobs_max() { echo "${FERMATA_JOBS:-$(nproc)}"; }
