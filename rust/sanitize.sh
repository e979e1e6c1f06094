#!/usr/bin/env bash
# Runs the tests under AddressSanitizer, with debug assertions and overflow checks.
#
#   sanitize.sh PYTHON     the pure crates, then the extension inside that Python
#
# PYTHON has the dependencies of the tests. PROPTEST_CASES is 32 unless set: a case costs more here.
# Exit 1 on a finding, 3 without a nightly toolchain. In CPython only what Rust reads and writes is
# checked, and no leaks: the interpreter itself ends with memory it did not free.
set -euo pipefail
python=$(realpath --no-symlinks "${1:?usage: sanitize.sh PYTHON}")
cd "$(dirname "$0")/.."
export PROPTEST_CASES=${PROPTEST_CASES:-32}

if ! cargo +nightly --version >/dev/null 2>&1; then
  echo 'sanitize: needs a nightly toolchain: rustup toolchain install nightly --profile minimal' >&2
  exit 3
fi

host=$(rustc +nightly -vV | sed -n 's/^host: //p')
built=target/sanitize
# With `--target`, build scripts and procedural macros stay as they are. The tests are built with
# the `dev` profile, which has debug assertions and overflow checks; level 1 makes them end soon.
options=(--locked --quiet --target "$host" --target-dir "$built")
export RUSTFLAGS=-Zsanitizer=address CARGO_PROFILE_DEV_OPT_LEVEL=1

# The runtime as a library to preload, since CPython was not built with it: rustc brings it for
# executables only. A library may not have the member that runs before those of an executable.
runtime() { # runtime OUTPUT
  local archive=$built/runtime.a
  cp "$(rustc +nightly --print sysroot)/lib/rustlib/$host/lib/librustc-nightly_rt.asan.a" "$archive"
  ar d "$archive" asan_preinit.cpp.o
  cc -shared -o "$1" -Wl,--whole-archive "$archive" -Wl,--no-whole-archive -lpthread -ldl -lrt -lm
}

# The sources with the sanitized extension, in a folder that comes before the installed package.
site() { # site FOLDER
  rm -rf "$1"
  mkdir -p "$1"
  cp -R python/openenv "$1"
  find "$1" -name '*.so' -delete
  cp "$built/$host/debug/lib_rust.so" "$1/openenv/_rust.so"
  if ! nm -D --undefined-only "$1/openenv/_rust.so" | grep __asan_report >/dev/null; then
    echo 'sanitize: the extension was built without the sanitizer' >&2
    exit 1
  fi
}

echo 'sanitize: the pure crates'
cargo +nightly test "${options[@]}" --tests

echo 'sanitize: the extension'
PYO3_PYTHON=$python cargo +nightly build "${options[@]}" --package openenv-py
runtime "$PWD/$built/asan.so"
site "$PWD/$built/site"

sanitized() { # sanitized ARGUMENTS: Python with the runtime and the extension
  # CPython's own allocator would hide its objects. With CI set, Hypothesis has no deadline.
  CI=true PYTHONPATH=$PWD/$built/site PYTHONMALLOC=malloc \
    ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=1 \
    LD_PRELOAD=$PWD/$built/asan.so "$python" "$@"
}

sanitized -c "import openenv._rust as rust; assert rust.__file__.startswith('$PWD/$built/'), rust"
sanitized -m pytest --quiet --timeout 600 -p no:cacheprovider \
  tests/unit/rust tests/unit/client tests/property
