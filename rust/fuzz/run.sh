#!/usr/bin/env bash
# Fuzzes the pure crates.
#
#   run.sh SECONDS [TARGET...]     each target (all without names) for SECONDS
#
# Exit 1 on a finding, 3 without a nightly toolchain. What a run learns is kept in corpus/, a finding
# in artifacts/; both stay out of git, seeds/ is in it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here"
seconds=${1:?usage: run.sh SECONDS [TARGET...]}
shift
all=(ws_receive ws_handshake envelope json_decode client_session server_session)
targets=("${@:-${all[@]}}")

if ! cargo +nightly --version >/dev/null 2>&1; then
  echo 'fuzz: needs a nightly toolchain: rustup toolchain install nightly --profile minimal' >&2
  exit 3
fi
if ! cargo fuzz --version >/dev/null 2>&1; then
  echo 'fuzz: cargo install cargo-fuzz --locked'
  cargo install cargo-fuzz --locked --quiet
fi

dictionary() { # dictionary TARGET
  case $1 in
  envelope | json_decode) echo "-dict=$here/dictionaries/json.txt" ;;
  ws_handshake) echo "-dict=$here/dictionaries/http.txt" ;;
  esac
}

status=0
cargo +nightly fuzz build --fuzz-dir "$here"
for target in "${targets[@]}"; do
  mkdir -p "corpus/$target" "artifacts"
  log=artifacts/$target.log
  # 4,096 bytes: beyond every border (126, 256, depth 200), short enough for many runs.
  if cargo +nightly fuzz run --fuzz-dir "$here" "$target" "corpus/$target" "seeds/$target" -- \
    -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
    $(dictionary "$target") >"$log" 2>&1; then
    outcome='no finding'
  else
    outcome="a finding, see rust/fuzz/$log" status=1
  fi
  runs=$(sed -nE 's/^stat::number_of_executed_units: *([0-9]+).*/\1/p' "$log" | tail -n 1)
  echo "$target: ${runs:-0} runs, $outcome"
done
exit "$status"
