#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The client program of lib.sh, with kcat, for what it has.
B=127.0.0.1:9092
kcat() { timeout 30 kcat -b $B -q "$@"; }
case $1 in
version) command kcat -V | sed -n 's/.*Version \([0-9.]*\).*/kcat \1/p' ;;
group) kcat -G "$2" -c "$4" -X auto.offset.reset=earliest -f '%p %o\n' "$3" | sort -n -k1,1 -k2,2 ;;
time)
    for t in "${@:3}"; do
        kcat -Q -t "$2:0:$t" | sed -n 's/.*offset //p' | sed 's/^-1$/end/'
    done | paste -sd' '
    ;;
idempotent)
    for v in 1 2 3; do echo "v$v"; done | kcat -P -t "$2" -p 0 -X enable.idempotence=true -X batch.num.messages=1
    ;;
*) exit 78 ;;
esac
