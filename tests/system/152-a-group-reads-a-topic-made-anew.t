# SPDX-License-Identifier: Apache-2.0
# A file of as/ belongs to the topic it was opened in: when that is deleted and made anew, it gives what it had fetched, then ends, and
# the group begins the new topic at its start. Nothing of the old one is committed in it, whenever the reader says what.
# https://issues.apache.org/jira/browse/KAFKA-10774 https://github.com/confluentinc/librdkafka/issues/4105
klogd_start --override group.initial.rebalance.delay.ms=0
mount_start
cat >steps.py <<'X'
import errno, os, sys, time
from kmsg import MsgConn
from kwire import batch
M = os.environ["M"]
c = MsgConn("127.0.0.1:9092")
def fill(t, what, n): assert c.produce(t, 0, batch([b"%s%03d" % (what, i) for i in range(n)]))[0] == 0
def committed(g, t):
    r = c.ask_msg("OffsetFetch", 5, group=g, topics=[dict(name=t, partitions=[0])])
    return r["topics"][0]["partitions"][0]["offset"]
def wait(what, f):
    end = time.time() + 60
    while not f():
        assert time.time() < end, what
        time.sleep(0.02)
def read(fd, n):
    try: return os.read(fd, n)
    except OSError as e: return errno.errorcode[e.errno]
def run(t, g, view, anew, at_end):
    c.create_topic(t)
    fill(t, b"old", 100)
    fd = os.open(f"{M}/{t}/{view}", os.O_RDONLY)
    first = os.read(fd, 7 * 50)
    assert first[:7] == b"old000\n", first[:7]
    os.read(fd, 7 * 10)
    wait("50 acknowledged", lambda: committed(g, t) == 50)
    assert c.delete_topic(t) == 0
    wait("the group has no position", lambda: committed(g, t) == -1)
    if anew:
        assert c.create_topic(t)[0] == 0
        fill(t, b"NEW", 150)
    got, end = b"", None
    while end is None:
        b = read(fd, 7 * 3)
        if isinstance(b, str) or b == b"": end = b
        else: got += b
    assert all(line.startswith(b"old") for line in got.splitlines()), got[-70:]
    assert end == at_end, (view, anew, end)
    assert read(fd, 7) == at_end
    assert committed(g, t) == -1, ("something of the old topic was committed", committed(g, t))
    os.close(fd)
    if anew:
        fd = os.open(f"{M}/{t}/{view}", os.O_RDONLY)
        assert os.read(fd, 7) == b"NEW000\n"
        os.close(fd)
        assert committed(g, t) in (-1, 0), committed(g, t)
for i, anew in enumerate((True, False)):
    run(f"plain{i}", "g1", "as/g1/p0", anew, "ESTALE")
    run(f"stream{i}", "g2", "as/g2/follow/p0", anew, b"")
    run(f"member{i}", "g3", "as/g3/all", anew, "ESTALE")
    run(f"members{i}", "g4", "as/g4/follow/all", anew, b"")
X
M=$M "$PY" steps.py || fail "a topic made anew under a reader"
# A reader that waits at the end is told, too.
topic waits
seq 5 | grow waits
cat "$M/waits/as/g5/follow/p0" >got 19>&- &
reader=$!
wait_lines got 5
"$PY" "$TESTLIB/topic.py" delete waits || fail "waits not deleted"
topic waits
wait_gone $reader
wait $reader
eq "exit status of cat" 0 $?
seq 6 10 | grow waits
eq "the next reader" "$(seq 6 10)" "$(timeout 20 head -n5 "$M/waits/as/g5/follow/p0")"
# Commits by name and by id, whatever the client knows: those of a deleted topic are refused, positions of it are not told.
cat >ids.py <<'X'
from kmsg import MsgConn
c = MsgConn("127.0.0.1:9092")
def commit(v, offset, **t):
    r = c.ask_msg("OffsetCommit", v, group="ids", generation=-1, member="", topics=[dict(partitions=[dict(partition=0, offset=offset, epoch=3, metadata="m")], **t)])
    return r["topics"][0]["partitions"][0]["error"]
def fetch(v, **t):
    r = c.ask_msg("OffsetFetch", v, groups=[dict(group="ids", member_epoch=-1, topics=[dict(partitions=[0], **t)])])
    p = r["groups"][0]["topics"][0]["partitions"][0]
    return p["error"], p["offset"], p["epoch"]
def every(v):
    r = c.ask_msg("OffsetFetch", v, groups=[dict(group="ids", member_epoch=-1, topics=None)])
    return [(t.get("name") or t["id"], p["offset"]) for t in r["groups"][0]["topics"] for p in t["partitions"]]
def make():
    assert c.create_topic("t")[0] == 0
    return c.topic_id("t")
old = make()
assert commit(10, 7, id=old) == 0
assert fetch(10, id=old) == (0, 7, 3) and fetch(9, name="t") == (0, 7, 3)
assert every(10) == [(old, 7)] and every(9) == [("t", 7)]
assert commit(9, 8, name="t") == 0 and fetch(10, id=old) == (0, 8, 3)
assert c.delete_topic("t") == 0
assert commit(10, 9, id=old) == 100 and commit(9, 9, name="t") == 3
assert fetch(10, id=old) == (100, -1, -1) and fetch(9, name="t") == (0, -1, -1)
new = make()
assert new != old
assert commit(10, 9, id=old) == 100 and fetch(9, name="t") == (0, -1, -1) and fetch(10, id=new) == (0, -1, -1)
assert commit(10, 5, id=new) == 0 and fetch(9, name="t") == (0, 5, 3)
assert commit(10, 5, id=b"\0" * 16) == 100 and fetch(10, id=b"\0" * 16)[0] == 100
for i in range(30):  # the positions of the old one go away while the new one already has some
    last = new
    assert commit(10, 100 + i, id=last) == 0 and c.delete_topic("t") == 0
    new = make()
    assert fetch(9, name="t") == (0, -1, -1), i
    assert commit(10, i, id=new) == 0 and commit(10, 500, id=last) == 100
    assert fetch(10, id=new) == (0, i, 3), i
X
"$PY" ids.py || fail "topics by id"
klogd_kill
klogd_restart
"$PY" - <<'X' || fail "after kill -9"
from kmsg import MsgConn
c = MsgConn("127.0.0.1:9092")
r = c.ask_msg("OffsetFetch", 9, groups=[dict(group="ids", member_epoch=-1, topics=[dict(name="t", partitions=[0])])])
p = r["groups"][0]["topics"][0]["partitions"][0]
assert (p["offset"], p["epoch"]) == (29, 3), p
X
