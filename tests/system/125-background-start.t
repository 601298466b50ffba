# SPDX-License-Identifier: Apache-2.0
# Without -f, klogfs returns 0 once it is mounted, and non-zero with one line of reason when it cannot be.
klogd_start
topic t1
requires_fuse
mkdir -p "$M"
cleanup_fn 'umount "$M" 2>/dev/null'
klogfs $B "$M" >said 2>&1 19>&- || fail "start in the background: $(cat said)"
mounted || fail "it returned before it was mounted"
between "lines it says" 0 1 "$(wc -l <said)"
echo a >>"$P"
eq "content" a "$(cat "$P")"
pid=$(pgrep -x klogfs)
umount "$M" || fail "umount"
wait_gone "$pid"

fails . klogfs $B "$T/nowhere"
eq "lines it says about a missing directory" 1 "$(wc -l <<<"$OUT")"
has "the line" "$T/nowhere" "$OUT"
fails . timeout 30 klogfs -o timeout=2 127.0.0.1:9099 "$M"
has "the line" 9099 "$OUT"
mounted && fail "mounted without a broker"
fails . klogfs -o nosuchoption $B "$M"
has "the line" nosuchoption "$OUT"
mounted && fail "mounted with an unknown option"
true
