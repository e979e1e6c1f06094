#!/usr/bin/env bash
# pytest-halves.sh PYTEST [OPTION...]: the Python suite in two halves at once. What starts
# containers, commands and fresh packages waits most of the time, and so does the rest.
set -uo pipefail
pytest=("$@")
slow=(tests/integration/{cli,providers,packaging})
log=$(mktemp)
trap 'kill "$job" 2>/dev/null; rm -f "$log"' EXIT

"${pytest[@]}" "${slow[@]}" >"$log" 2>&1 &
job=$!
"${pytest[@]}" "${slow[@]/#/--ignore=}" tests
first=$?
wait "$job"
second=$?
printf '\n=== the other half: %s\n' "${slow[*]}"
cat "$log"
# 5: an option such as -k left nothing to run in that half.
for status in "$first" "$second"; do
  [ "$status" = 0 ] || [ "$status" = 5 ] || exit "$status"
done
[ "$first$second" != 55 ] || exit 5
