# SPDX-License-Identifier: Apache-2.0
# Whatever goes bad in the logs of one broker at a time, while three run under load or that one is stopped: bits, stretches of zeros, files cut
# off, removed, put in each other's place; logs, indexes, checkpoints. What was acknowledged is all there, once, as it was written, and
# nothing else; in the end all have the same bytes. ROUNDS=50 for more, SEED=N for others.
# timeout: 1800
requires kcat jq
. "$TESTLIB/cluster.sh"
zookeeper_start
o=(--override log.scrub.interval.ms=200 --override min.insync.replicas=2 --override log.segment.bytes=8192)
for n in 1 2 3; do broker_spawn $n "${o[@]}"; done
for n in 1 2 3; do wait_for 20 "broker $n listens" broker_up $n; done
wait_says "brokers" "127.0.0.1:9091 127.0.0.1:9092 127.0.0.1:9093" "brokers_of 1"
A=127.0.0.1:9091,127.0.0.1:9092,127.0.0.1:9093
status 0 klog topic create r -p 1 -r 3 -b $A
cat >spoil.py <<'P'
import os, random, sys
d, seed, stopped = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "1"
r = random.Random(seed)
files = sorted(f for f in os.listdir(d) if os.path.isfile(d + "/" + f))
logs = [f for f in files if f.endswith(".log")]
for _ in range(r.choice([1, 1, 2, 3])):
    name = r.choice(logs if r.random() < 0.7 else files)
    if not stopped and name == logs[-1] and r.random() < 0.5:
        name = r.choice(logs)
    path = d + "/" + name
    if not os.path.exists(path):
        continue
    size = os.path.getsize(path)
    how = r.choice(["flip", "flip", "zero", "remove", "cut", "swap"])
    if how in ("cut", "swap", "remove") and not stopped and name == logs[-1]:
        how = "flip" # what a running broker writes to is not taken from under it
    print(how, name, size)
    if how == "remove":
        os.unlink(path)
    elif how == "swap":
        other = d + "/" + r.choice(logs[:-1] or logs)
        if os.path.exists(other) and other != path and name.endswith(".log"):
            os.rename(path, d + "/x"); os.rename(other, path); os.rename(d + "/x", other)
    elif how == "cut":
        os.truncate(path, r.randrange(size + 1))
    elif size > 0:
        at, n = r.randrange(size), r.choice([1, 1, 8, 512])
        with open(path, "r+b") as f:
            f.seek(at)
            b = f.read(n)
            f.seek(at)
            f.write(bytes(n)[:len(b)] if how == "zero" else bytes([b[0] ^ (1 << r.randrange(8))]) + b[1:])
P
all_in_sync() { [ "$(klog topic describe r -b $A --json 2>/dev/null | jq -c '.isr | sort')" = '[1,2,3]' ]; }
bytes_of() { (cd "$T/b$1/r-0" && md5sum -- *.log | sort -k 2); }
are_the_same() { all_in_sync && [ "$(bytes_of 1)" = "$(bytes_of 2)" ] && [ "$(bytes_of 1)" = "$(bytes_of 3)" ]; }
writer_ended() { gone "$writer"; }
RANDOM=${SEED:-1}
n_sent=0
for ((round = 1; round <= ${ROUNDS:-3}; round++)); do
    n=$((RANDOM % 3 + 1)) stopped=$((RANDOM / 8 % 2)) seed=$RANDOM
    seq -f "$round %g $(printf %080d 7)" 300 >sent
    [ $stopped = 0 ] || broker_kill $n
    kcat -E -P -b $A -t r -p 0 -X acks=all -X enable.idempotence=true -X batch.num.messages=7 -X linger.ms=20 <sent 2>>kcat.log &
    writer=$!
    echo "round $round: broker $n, stopped=$stopped: $($PY spoil.py "$T/b$n/r-0" $seed $stopped | tr '\n' ' ')" >>rounds
    [ $stopped = 0 ] || broker_start $n "${o[@]}"
    wait_for 120 "round $round: all was written" writer_ended
    wait $writer || fail "round $round: kcat ends with $?"
    n_sent=$((n_sent + 300))
    wait_for 120 "round $round: all are in sync, with the same bytes ($(tail -n 1 rounds))" are_the_same
    kcat -C -b $A -t r -p 0 -o beginning -e -q 2>/dev/null >got
    eq "round $round: records" "$n_sent" "$(sort -u got | wc -l)"
    eq "round $round: records with those that are there twice" "$n_sent" "$(wc -l <got)"
    eq "round $round: other records" 0 "$(grep -cvE '^[0-9]+ [0-9]+ 0{79}7$' got)"
    cmp <(tail -n 300 got) sent || fail "round $round: other records, or in another order"
done
