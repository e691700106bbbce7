# shellcheck shell=bash disable=SC2154
# How sections run and are counted, and how what failed is run again. The script that sources this has set
#   runner  the script, which must run the rest of its arguments when the first is `call`
#   logs    a folder for what sections print
# and has a function `sections` that calls `section`, `at_once` and `rerun_failed`.

machinery=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# Names of sections, or parts of them; none means all.
requested_sections=()
# What a section's command begins with.
politely=()
# More of them, and the run is not to be trusted.
max_flaky=5
# More of them have one cause, and that is no busy machine.
max_reruns=20

# A run of everything that `sections` calls, with its summary. What sections report is kept in files, since lanes are subshells:
# NAME.section has kind, limit and command, NAME.result the counts and seconds, NAME.failed the tests that can be repeated alone.
run_sections() {
    results=$(mktemp -d "$logs/results.XXXXXX") || return
    rm -rf "${logs:?}/flaky" "$logs/failed-again"
    sections "$@"
    summary
}

# Runs a command as a section: section NAME KIND LIMIT COMMAND…. The kind says how its output is counted, see `count_results`.
section() {
    local name=$1 log=$logs/$1.log good bad skipped seconds work code note='' tail=''
    shift
    is_wanted "$name" || return 0
    printf '\n== %s\n' "$name"
    printf '%s\0' "$@" >"$results/$name.section"
    run_logged "$log" "$results/$name.failed" '' "$@"
    [ "$((good + bad))" -gt 0 ] || bad=1 note=', nothing ran'
    [ "$code" -ne 124 ] || note=", stopped after $2 s"
    [ "$skipped" -eq 0 ] || note+=", $skipped not run"
    echo "$good $bad $seconds $code" >"$results/$name.result"
    [ "$bad" -eq 0 ] || tail=$(tail -n 60 "$log" | sed 's/^/   | /')$'\n' note+="; whole log: $log"
    # In one piece, since another section may be printing too. The work is that of the processors, as far as it is known.
    printf '%s   %s: %d passed, %d failed%s (%d s, %d s of work)\n' "$tail" "$name" "$good" "$bad" "$note" "$seconds" "$work"
}

# Runs a section's command: run_logged LOG FAILED ONLY KIND LIMIT COMMAND…. Failed tests that can be repeated alone are listed in
# FAILED; ONLY is one of those, or nothing. Sets code, good, bad, skipped, seconds and work, which are the caller's.
run_logged() {
    local log=$1 failures=$2 only=$3 kind=$4 limit=$5 began=$SECONDS TIMEFORMAT='%0U + %0S'
    shift 5
    local variables=(SANDYARD_TEST_FAILED="$failures" SANDYARD_TEST_ONLY="$only")
    # The plugin is alone in its folder, so that no test can import another module by accident.
    [ "$kind" != pytest ] ||
        variables+=(PYTEST_ADDOPTS='-p sandyard_rerun' PYTHONPATH="$machinery/pytest_plugin")
    work=$( { time env "${variables[@]}" "${politely[@]}" timeout --kill-after=10 "$limit" "$runner" call "$@" \
        >"$log" 2>&1 </dev/null; } 2>&1)
    code=$?
    work=$((${work##*$'\n'})) seconds=$((SECONDS - began))
    read -r good bad skipped < <(count_results "$kind" "$log")
    # A crash, or a time-out, before any test could report is a failure too.
    [ "$code" -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
    [ "$code" -ne 0 ] || [ "$kind" != check ] || good=1
}

# Runs functions that call `section` at the same time.
at_once() {
    local lane
    local -A lanes=()
    for lane in "$@"; do
        ("$lane"; exit 0) &
        lanes[$lane]=$!
    done
    for lane in "$@"; do
        # One that was killed leaves sections without a result, or none at all.
        wait "${lanes[$lane]}" || echo "0 1 0 1" >"$results/$lane.result"
    done
}

is_wanted() {
    [ ${#requested_sections[@]} -eq 0 ] && return 0
    local part
    for part in "${requested_sections[@]}"; do [[ $1 == *"$part"* ]] && return 0; done
    return 1
}

# Prints passed, failed and not-run counts of a log.
count_results() {
    case $1 in
        check) echo 0 0 0 ;;
        cargo) awk '/^test result:/ { p += $4; f += $6; s += $8 } END { print p + 0, f + 0, s + 0 }' "$2" ;;
        tap) awk '/^# pass /{ p += $3 } /^# (fail|cancelled) /{ f += $3 } /^# (skipped|todo) /{ s += $3 }
                END { print p + 0, f + 0, s + 0 }' "$2" ;;
        steps) awk '/^ok /{ p++ } /^not ok /{ f++ } END { print p + 0, f + 0, 0 }' "$2" ;;
        grade) awk '/^Grade .*held/ { p += $3; f += $5; s += $7 } END { print p + 0, f + 0, s + 0 }' "$2" ;;
        pytest) awk '/(passed|failed|skipped|errors?|warnings?)(,.*)? in [0-9.]+s/ {
                for (i = 2; i <= NF; i++) {
                    if ($i ~ /^passed/) p = $(i - 1); if ($i ~ /^failed/) f += $(i - 1)
                    if ($i ~ /^error/) f += $(i - 1); if ($i ~ /^skipped/) s = $(i - 1)
                } } END { print p + 0, f + 0, s + 0 }' "$2" ;;
    esac
}

# --- what failed, alone ------------------------------------------------------------------------------------------

# Runs what failed once more, one at a time, when nothing else runs. What passes then is flaky: it counts as passed, is named in
# the summary, and both of its logs are kept.
rerun_failed() {
    local name part reruns=()
    for name in "$results"/*.section; do
        [ -e "$name" ] || continue
        name=${name##*/} name=${name%.section}
        while IFS= read -r part; do reruns+=("$name"$'\t'"$part"); done < <(failed_parts "$name")
    done
    [ ${#reruns[@]} -gt 0 ] || return 0
    if [ ${#reruns[@]} -gt $max_reruns ]; then
        printf '\n%d tests failed: too many to be run again\n' ${#reruns[@]}
        return
    fi
    printf '\n== again, alone\n'
    local was_bad was_good unit
    for part in "${reruns[@]}"; do
        IFS=$'\t' read -r name was_bad was_good unit <<<"$part"
        rerun "$name" "$was_bad" "$was_good" "$unit"
    done
}

# Prints what of a section is to run again, a line for each: how often it was counted as failed and as passed, and what it is;
# `*` is the section as a whole. Tests are named only if that accounts for every failure, and if it was not the time that was over.
failed_parts() {
    local good=0 bad=1 code=1 listed
    [ ! -e "$results/$1.result" ] || read -r good bad _ code <"$results/$1.result"
    [ "$bad" -gt 0 ] || return 0
    listed=$(awk -F '\t' '{ n += $1 } END { print n + 0 }' "$results/$1.failed" 2>/dev/null)
    if [ "$code" -ne 124 ] && [ "${listed:-0}" -eq "$bad" ]; then
        cat "$results/$1.failed"
    else
        printf '%d\t%d\t*\n' "$bad" "$good"
    fi
}

# Runs one thing that failed: rerun SECTION FAILED-COUNT PASSED-COUNT UNIT.
rerun() {
    local name=$1 was_bad=$2 was_good=$3 unit=$4 label=$1 file log good bad skipped seconds work code all_good=0 all_bad=1 all_seconds=0
    local politely=() command=()
    mapfile -d '' command <"$results/$name.section"
    [ "$unit" = '*' ] && unit='' || label="$name ${unit//$'\t'/ }"
    file=$(tr -c 'A-Za-z0-9_.\n-' _ <<<"$label" | cut -c 1-150)
    log=$results/again.log
    run_logged "$log" /dev/null "$unit" "${command[@]}"
    if [ "$code" -eq 0 ] && [ "$bad" -eq 0 ] && [ "$good" -gt 0 ]; then
        keep_logs flaky
        echo "$label" >>"$results/flaky"
        [ ! -e "$results/$name.result" ] || read -r all_good all_bad all_seconds code <"$results/$name.result"
        echo "$((all_good + good - was_good)) $((all_bad - was_bad)) $all_seconds $code" >"$results/$name.result"
        printf '   %s: passed (%d s)\n' "$label" "$seconds"
    else
        tail -n 60 "$log" | sed 's/^/   | /'
        keep_logs failed-again
        printf '   %s: failed again (%d s)\n' "$label" "$seconds"
    fi
}

# Keeps the logs of both runs: keep_logs FOLDER, for `rerun`.
keep_logs() {
    mkdir -p "$logs/$1"
    cp "$logs/$name.log" "$logs/$1/$file.first.log"
    mv "$log" "$logs/$1/$file.again.log"
}

# --- the end -----------------------------------------------------------------------------------------------------

# Says what happened; succeeds if nothing failed and little was flaky.
summary() {
    local name good bad seconds code passed=0 failed=0 flaky=0 times=''
    touch "$results/flaky"
    # A section that was killed together with its lane has counted nothing.
    for name in "$results"/*.section; do
        [ ! -e "$name" ] || [ -e "${name%.section}.result" ] || echo "0 1 0 1" >"${name%.section}.result"
    done
    for name in "$results"/*.result; do
        [ -e "$name" ] || continue
        read -r good bad seconds code <"$name"
        name=${name##*/} name=${name%.result}
        passed=$((passed + good)) failed=$((failed + bad)) times+="$seconds $name"$'\n'
        [ "$bad" -eq 0 ] || printf 'failed: %s (%d)\n' "$name" "$bad" >>"$results/failures"
    done
    [ -n "$times" ] || { echo 'failed: no section has such a name' >"$results/failures"; failed=1; }
    printf '\nwhere the time went:\n'
    sort -rn <<<"$times" | head -n 10 | awk 'NF { printf "%6d s  %s\n", $1, $2 }'
    printf '\n'
    cat "$results/failures" 2>/dev/null
    sed 's/^/flaky: /' "$results/flaky"
    flaky=$(wc -l <"$results/flaky")
    [ "$flaky" -eq 0 ] || echo "logs of the flaky: $logs/flaky"
    [ "$flaky" -le $max_flaky ] || echo "more than $max_flaky are flaky: this run does not count as passed"
    rm -rf "$results"
    printf '%d passed, %d failed\n' "$passed" "$failed"
    [ "$failed" -eq 0 ] && [ "$flaky" -le $max_flaky ]
}
