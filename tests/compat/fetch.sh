#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fetches other people's clients from their registries, each into a directory of its own below DIRECTORY, with a file "stamp" when it is whole.
# What cannot be had is said and left out; its test is then skipped. What is there already stays as it is.
#
#   fetch.sh DIRECTORY [NAME...]      all, unless names are given: pypi maven confluent-js platformatic go
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$1" && cd "$1" || exit 1
shift
[ $# -gt 0 ] || set -- pypi maven confluent-js platformatic go

npm_install() { npm install --no-audit --no-fund --silent --prefix . "$@"; }
fetch_pypi() {
    "${PYTHON:-python3}" -m venv . && bin/pip install -q --disable-pip-version-check kafka-python confluent-kafka python-snappy lz4 zstandard
}
fetch_maven() { mvn -q -B -f "$here/kafka-pom.xml" dependency:copy-dependencies -DoutputDirectory="$PWD/jars" -DincludeScope=runtime; }
# Its library is built here: what it would download otherwise is in no registry. Node's headers are where node is, or Debian's.
fetch_confluent-js() {
    local prefix
    prefix=$(dirname "$(dirname "$(readlink -f "$(command -v node)")")")
    [ ! -e "$prefix/include/node/node.h" ] || export npm_config_nodedir=$prefix
    CKJS_LINKING=dynamic npm_config_build_from_source=true npm_install @confluentinc/kafka-javascript
}
# The last that runs with node 20; newer ones want 22.
fetch_platformatic() { npm_install --ignore-scripts @platformatic/kafka@1; }
fetch_go() {
    export GOTOOLCHAIN=local GOFLAGS=-mod=mod
    cp "$here"/go/*.go . && printf 'module clients\n' >go.mod &&
        go get github.com/twmb/franz-go github.com/twmb/franz-go/pkg/kadm github.com/IBM/sarama && go mod tidy && go build -o clients .
}

for name in "$@"; do
    [ ! -e "$name/stamp" ] || continue
    mkdir -p "$name"
    (cd "$name" && "fetch_$name" </dev/null >log 2>&1 && touch stamp) ||
        echo "$name: not fetched or not built, its tests are skipped ($PWD/$name/log)"
done
