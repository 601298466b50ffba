# SPDX-License-Identifier: Apache-2.0
# Records whose own time is long past when they come (imported, copied from another cluster), or still to come: the file's times are when
# they came, so incremental backups and find -newer see them. They hold still while nothing comes.
scene
send() { # TIME-IN-MS VALUE
    "$PY" - "$@" <<'X' || fail "produce"
import sys
from kwire import Conn, batch
assert Conn().produce("t1", 0, batch([sys.argv[2].encode()], ts=int(sys.argv[1])))[0] == 0
X
}
times() { stat -c '%.3Y %.3Z' $P; }
# comes VALUE TIME: the record shows as new, and looking changes nothing
comes() {
    touch marker
    send "$2" "$1"
    wait_for 10 "$1" eval '[ -n "$(find $P -newer marker)" ]'
    read -r m c < <(times)
    eq "ctime after $1" "$m" "$c"
    between "mtime after $1" "$(stat -c %Y marker)" "$(date +%s)" "${m%.*}"
    eq "the last line" "$1" "$(tail -n 1 $P)"
    eq "times when nothing came since $1" "$m $c" "$(times)"
}
comes old 1700000000123
tar --listed-incremental=state -cf 1.tar -C $M t1 || fail "tar"
comes older 1600000000000
tar --listed-incremental=state -cf 2.tar -C $M t1 || fail "tar"
tar -xOf 2.tar t1/p0 >restored || fail "the second archive has no p0"
printf 'old\nolder\n' | cmp - restored || fail "what the second archive has"
comes newer 1700000009000
ahead=$(($(now_ms) + 1800000)) # within message.timestamp.after.max.ms
comes future "$ahead"
comes again "$ahead"
