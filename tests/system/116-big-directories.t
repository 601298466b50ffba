# SPDX-License-Identifier: Apache-2.0
# Directories with thousands of entries are listed whole, once each, also while they grow.
# https://github.com/macfuse/macfuse/issues/300 https://github.com/libfuse/pyfuse3/issues/5
# https://github.com/mpartel/bindfs/pull/28
# timeout: 120
scene
topic wide 2000
wait_for 20 "the topic is there" test -e "$M/wide/p1999"
ls -f "$M/wide" >list
eq "names that come twice" "" "$(sort list | uniq -d)"
grep '^p' list | sort -V | cmp - <(seq -f 'p%g' 0 1999) || fail "partitions"
eq "dot entries" "." "$(grep -cx '\.' list | sed s/1/./)"
eq "other entries" "$(printf '.\n..\n.config\n.status\n')" "$(grep -v '^p' list | grep -vx .groups | sort)"

"$PY" - <<'X' &
from kwire import Conn
c = Conn()
for i in range(50):
    assert c.create_topic("n%d" % i)[0] == 0
X
making=$!
looks=0
until gone $making; do
    ls -f "$M" >list
    eq "names that come twice" "" "$(sort list | uniq -d)"
    eq "what was there all the time" "t1 wide" "$(grep -xE 't1|wide' list | sort | tr '\n' ' ' | sed 's/ $//')"
    looks=$((looks + 1))
done
wait $making
eq "the making of topics" 0 $?
[ $looks -gt 0 ] || fail "no look while topics were made"
wait_for 5 "all topics are listed" eval '[ "$(ls "$M" | wc -l)" = 52 ]'
