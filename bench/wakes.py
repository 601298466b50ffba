#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long after a record was acknowledged who waits for it on a mount is woken: a reader of follow/, and watchers by inotify of the
partition and of a view. wakes.py MOUNT TOPIC RECORDS: a record every 20 ms, which is half the rate that a file's watchers are
told at most; prints follow.p50 and so on, in us."""
import ctypes
import os
import struct
import sys
import threading
import time

from kwire import Conn, batch

mount, topic, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
base = os.path.join(mount, topic)
libc = ctypes.CDLL(None)
follow = os.open(os.path.join(base, "follow/p0"), os.O_RDONLY)
sent, seen = {}, {"follow": [], "inotify": [], "inotify json": []}


def reader():
    text = b""
    while not text.endswith(b"end\n"):
        got = os.read(follow, 65536)
        now = time.monotonic_ns()
        for line in (text[text.rfind(b"\n") + 1:] + got).split(b"\n")[:-1]:
            if line in sent:
                seen["follow"].append(now - sent[line])
        text += got


def watcher(name, path):
    fd = libc.inotify_init1(0)
    assert libc.inotify_add_watch(fd, os.fsencode(os.path.join(base, path)), 2) > 0  # IN_MODIFY
    ready.release()
    while not stopping:
        os.read(fd, 65536)
        seen[name].append(time.monotonic_ns() - last[0])


stopping, last, ready = [], [0], threading.Semaphore(0)
threads = [threading.Thread(target=reader)] + [threading.Thread(target=watcher, args=a, daemon=True)
                                               for a in (("inotify", "p0"), ("inotify json", "json/p0"))]
for t in threads:
    t.start()
ready.acquire()
ready.acquire()
c = Conn()
for i in range(n + 1):
    line = b"%d" % i if i < n else b"end"
    sent[line] = last[0] = time.monotonic_ns()
    assert c.produce(topic, 0, batch([line]))[0] == 0
    time.sleep(0.02)
threads[0].join()
for name, took in seen.items():
    took.sort()
    print("%s.n %d" % (name.replace(" ", "-"), len(took)))
    for p in 50, 99:
        print("%s.p%d %d" % (name.replace(" ", "-"), p, took[min(len(took) * p // 100, len(took) - 1)] // 1000))
