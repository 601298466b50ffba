# SPDX-License-Identifier: Apache-2.0
# klogd's status page in a real browser: topics, groups with their lag, names that would be markup, the last hour drawn, phones,
# darkness, a broker that goes; and it asks nobody but the broker it came from.
# timeout: 240
requires kcat curl chromium
klogd --help >/dev/null || fail "klogd"
klogd_start --override http.listener=127.0.0.1:9644 --override group.initial.rebalance.delay.ms=0 --override broker.rack='<b>rack</b>'
grep -q 'http.listener: .*built without libmicrohttpd' "$KLOGD_LOG" && skip "built without libmicrohttpd"
long=$(printf 'a-very-long-name.%.0s' {1..14})
topic orders 3
topic "$long" 1
topic empty 1
seq 1000 | produce -t orders -p 0
seq 500 | produce -t orders -p 1
seq 10 | produce -t "$long" -p 0
cat >commit.py <<'X2'
import time
from kmsg import MsgConn
c = MsgConn("127.0.0.1:9092")
def commit(group, *positions):
    until = time.monotonic() + 20
    while True:
        c.ask_msg("FindCoordinator", 0, key=group)
        r = c.ask_msg("OffsetCommit", 2, group=group, generation=-1, member="", retention=-1, topics=[dict(name="orders",
                      partitions=[dict(partition=p, offset=o, metadata="") for p, o in positions])])
        errors = {p["error"] for t in r["topics"] for p in t["partitions"]}
        if errors == {0}:
            return
        assert errors <= {14, 15, 16} and time.monotonic() < until, errors
commit("billing", (0, 990), (1, 500))
commit("audit", (0, 1000), (1, 500))
commit('<img src=x onerror="window.owned=1">', (0, 0))
commit("</script><script>window.owned=1</script>\n'\"&amp;\\", (1, 499))
commit("g" * 300, (0, 1))
X2
"$PY" commit.py || fail "commit"
cat >page.py <<'X2'
import json, os, sys
from browser import Browser
URL, shots = "http://127.0.0.1:9644/", os.environ.get("PICTURES")
b = Browser("chromium", os.environ["T"] + "/profile")
def picture(name):
    if shots:
        b.picture(f"{shots}/{name}.png")
def eq(what, expected, got):
    assert got == expected, (what, expected, got)
b.size(1200, 900)
b.dark(False)
b.go(URL)
b.wait_for("topics", "document.querySelectorAll('#topics tbody tr').length > 0")
rows = lambda id: b.js(f"[...document.querySelectorAll('#{id} > table > tbody > tr')].map(r => [...r.cells].map(c => c.textContent))")
topics = {r[0]: r for r in rows("topics")}
eq("topics, without internal ones", {"orders", "empty", "a-very-long-name." * 14}, set(topics))
eq("partitions of orders", "3", topics["orders"][2])
b.js("document.getElementById('internal').click()")
eq("with internal ones", True, "__consumer_offsets" in {r[0] for r in rows("topics")})
b.js("document.getElementById('internal').click()")
b.js("const f = document.getElementById('find'); f.value = 'mpt'; f.dispatchEvent(new Event('input'))")
eq("found", ["empty"], [r[0] for r in rows("topics")])
b.js("{ const f = document.getElementById('find'); f.value = ''; f.dispatchEvent(new Event('input')) }")
groups = {r[0]: r[3] for r in rows("groups")}
eq("groups with their lag", {"billing": "10", "audit": "0", '<img src=x onerror="window.owned=1">': "1,000",
   "</script><script>window.owned=1</script>\n'\"&amp;\\": "1", "g" * 300: "999"}, groups)
eq("nothing of a name became markup", [None, 0, 1], b.js("[window.owned ?? null, document.querySelectorAll('img, #groups script, main b').length, document.scripts.length]"))
eq("well", "all is well", b.js("document.getElementById('health').textContent"))

# unfolded by a click and by the keyboard
click = lambda name: b.js(f"[...document.querySelectorAll('button.fold')].find(x => x.textContent === {json.dumps(name)}).click()")
click("orders")
eq("partitions", [["0", "1,000"], ["1", "500"], ["2", "0"]],
   b.js("[...document.querySelectorAll('#topics .inner tbody tr')].map(r => [r.cells[0].textContent, r.cells[4].textContent])"))
click("billing")
eq("positions", [["orders", "0", "990", "10"], ["orders", "1", "500", "0"]],
   b.js("[...document.querySelectorAll('#groups .inner tbody tr')].map(r => [...r.cells].map(c => c.textContent))"))
b.js("[...document.querySelectorAll('button.fold')].find(x => x.textContent === 'empty').focus()")
for kind in ("keyDown", "keyUp"):
    b.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r" if kind == "keyDown" else "")
eq("by the keyboard", 4, b.js("document.querySelectorAll('#topics .inner tbody tr').length"))

# the last hour: one sample each ten seconds; what was written in between is a curve that leaves the bottom
b.wait_for("curves", "['records', 'bytes', 'requests'].every(p => document.querySelector('#plot-' + p + ' path.curve'))")
eq("drawn", True, b.js("[...document.querySelectorAll('path.curve')].every(p => p.getTotalLength() > 0 && !p.getAttribute('d').includes('NaN'))"))
sideways = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
eq("no scrolling sideways", 0, b.js(sideways))
picture("desktop")
b.dark(True)
eq("dark", True, b.js("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every(c => c < 64)"))
picture("desktop-dark")
for width in (390, 320):
    b.size(width, 844, phone=True)
    b.wait_for("the narrow page", f"innerWidth === {width} && document.querySelector('#plot-records svg').viewBox.baseVal.width < {width}")
    eq("no scrolling sideways on a phone", 0, b.js(sideways))
    eq("nothing beyond the edge", [], b.js(f"[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > {width} + 0.5 && !e.closest('.inner')).map(e => e.outerHTML.slice(0, 80))"))
    picture(f"phone-dark-{width}")
b.dark(False)
b.size(390, 844, phone=True)
b.wait_for("light", "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every(c => c > 192)")
picture("phone")
eq("asked for", True, URL + "status.json" in b.asked and URL + "history.json" in b.asked)
eq("nobody else was asked", [], [u for u in b.asked if not u.startswith((URL, "data:", "about:"))])
eq("nothing went wrong", [], b.wrong)

open("looked", "w").close()
b.wait_for("it says that the broker is gone", "document.getElementById('health').textContent === 'not reachable'")
picture("gone")
b.close()
X2
PYTHONPATH=$TESTLIB "$PY" page.py 19>&- & page=$!
looked() { [ -e looked ] || gone $page; }
wait_for 150 "the page is looked at" looked
[ -e looked ] && klogd_stop
wait $page || fail "page.py"
