#!/usr/bin/env bash
# Runs the Autobahn WebSocket test suite (wstest 0.8.2), which exists for Python 2.7 only.
#
#   autobahn.sh setup                            fetches it, once a machine; about a minute
#   autobahn.sh fuzzingclient URL REPORTS        as a client, against a server that echoes
#   autobahn.sh fuzzingserver PORT REPORTS       as a server, for a client that echoes
#
# Nothing is installed on the system. Python 2.7 comes from Debian 11's packages, unpacked into
# AUTOBAHN_HOME (default ~/.cache/openenv-autobahn); the suite comes from PyPI, in the versions below.
# AUTOBAHN_CASES and AUTOBAHN_EXCLUDE are JSON lists of patterns. The compression groups 12 and 13
# are left out by default: they test permessage-deflate, which this project does not offer.
set -euo pipefail

home=${AUTOBAHN_HOME:-$HOME/.cache/openenv-autobahn}
cases=${AUTOBAHN_CASES:-'["*"]'}
exclude=${AUTOBAHN_EXCLUDE:-'["12.*","13.*"]'}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
python2=$home/root/usr/bin/python2.7
libraries=$home/root/usr/lib/$(uname -m)-linux-gnu

debian_packages=(
  libffi7 libpython2.7 libpython2.7-dev libpython2.7-minimal libpython2.7-stdlib libssl1.1
  python-pip-whl python2.7 python2.7-dev python2.7-minimal
)
build_packages=(setuptools==44.1.1 wheel==0.37.1 six==1.16.0)
suite_packages=(
  autobahntestsuite==0.8.2 autobahn==0.10.9 txaio==2.1.0 twisted==20.3.0
  klein==17.10.0 werkzeug==0.16.1 jinja2==2.11.3 markupsafe==1.1.1
  cryptography==3.3.2 pyopenssl==19.1.0 service_identity==18.1.0 cffi==1.15.1 pycparser==2.21
  pyasn1==0.5.1 pyasn1-modules==0.3.0 ipaddress==1.0.23 idna==2.10 enum34==1.1.10
  attrs==20.3.0 automat==0.8.0 constantly==15.1.0 hyperlink==21.0.0 incremental==17.5.0
  zope.interface==5.4.0 PyHamcrest==1.9.0 typing==3.10.0.0
  unittest2==1.1.0 argparse==1.4.0 linecache2==1.0.0 traceback2==1.4.0
)

run_python2() { # run_python2 PYTHONPATH ARGUMENT...
  LD_LIBRARY_PATH=$libraries PYTHONPATH=$1 "$python2" -W ignore "${@:2}"
}

setup() {
  if [[ -e $home/ready ]]; then return; fi
  if [[ ! -e $keyring ]]; then
    echo "Debian's archive keys are missing: apt-get install debian-archive-keyring" >&2
    exit 1
  fi
  mkdir -p "$home"/{lists/partial,cache/archives/partial,root,site,debs}
  fetch_python2
  fetch_suite
  run_python2 "$home/site" -c 'from autobahntestsuite.wstest import run'
  touch "$home/ready"
}

fetch_python2() {
  # The mirror that the system uses already; it may be the only one that is reachable.
  local mirror
  mirror=$(grep -rhoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null |
    grep -v snapshot | head -n 1 || true)
  echo "deb [signed-by=$keyring] ${mirror:-http://deb.debian.org/debian} bullseye main" >"$home/sources.list"
  # Lists, cache and sources of its own: the system's apt is not touched.
  local options=(-q -oAPT::Sandbox::User=root -oDir::Cache="$home/cache" -oDir::State::Lists="$home/lists"
    -oDir::Etc::sourcelist="$home/sources.list" -oDir::Etc::sourceparts=/dev/null)
  apt-get "${options[@]}" update >/dev/null
  (cd "$home/debs" && apt-get "${options[@]}" download "${debian_packages[@]}" >/dev/null)
  local package
  for package in "$home"/debs/*.deb; do dpkg -x "$package" "$home/root"; done
}

fetch_suite() {
  local pip_itself
  pip_itself=$(printf '%s:' "$home"/root/usr/share/python-wheels/*.whl)
  export CFLAGS="-I$home/root/usr/include/python2.7" PIP_CONFIG_FILE=/dev/null
  local install=(-m pip -q --no-python-version-warning install --no-deps --prefer-binary --target "$home/site")
  run_python2 "$pip_itself" "${install[@]}" "${build_packages[@]}"
  run_python2 "$home/site:$pip_itself" "${install[@]}" "${suite_packages[@]}"
  touch "$home/site/zope/__init__.py" # A namespace package, which --target does not make importable.
}

wstest() { # wstest MODE REPORTS TARGET [OPTION...]; TARGET is the rest of a JSON object
  setup
  mkdir -p "$2"
  printf '{"outdir":"%s","cases":%s,"exclude-cases":%s,"exclude-agent-cases":{},%s}' \
    "$2" "$cases" "$exclude" "$3" >"$2/suite.json"
  # exec: whoever stops this script stops the suite.
  exec env LD_LIBRARY_PATH="$libraries" PYTHONPATH="$home/site" "$python2" -W ignore \
    -c 'from autobahntestsuite.wstest import run; run()' -m "$1" -s "$2/suite.json" "${@:4}"
}

case ${1:-} in
setup) setup ;;
fuzzingclient) wstest fuzzingclient "$3" "\"servers\":[{\"agent\":\"openenv\",\"url\":\"$2\"}]" ;;
fuzzingserver) wstest fuzzingserver "$3" "\"url\":\"ws://127.0.0.1:$2\"" -u 0 ;;
*)
  sed -n '2,12p' "$0"
  exit 2
  ;;
esac
