#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""ZooKeeper's protocol as far as tests put their hands into registers:
zk.py set|create|delete|remove|get|list PATH [VALUE]      zk.py fuzz SEED N PATH: N times a register below PATH is set to rubbish, then all are put back
Sessions are of 10 s and are closed; ephemeral nodes are left to others."""
import random
import socket
import struct
import sys

NONODE, NODEEXISTS = -101, -110


class Zk:
    def __init__(self, at="127.0.0.1:2181"):
        host, port = at.split(":")
        self.s = socket.create_connection((host, int(port)), timeout=10)
        self.xid = 0
        self._send(struct.pack(">iqiq", 0, 0, 10000, 0) + self._buffer(b"\0" * 16))
        self._frame()

    @staticmethod
    def _buffer(b): return struct.pack(">i", len(b)) + b

    def _send(self, b): self.s.sendall(struct.pack(">i", len(b)) + b)

    def _read(self, n):
        b = b""
        while len(b) < n:
            d = self.s.recv(n - len(b))
            assert d, "ZooKeeper closed the connection"
            b += d
        return b

    def _frame(self): return self._read(struct.unpack(">i", self._read(4))[0])

    def ask(self, kind, body):
        self.xid += 1
        self._send(struct.pack(">ii", self.xid, kind) + body)
        f = self._frame()
        return struct.unpack(">i", f[12:16])[0], f[16:]

    def path(self, p): return self._buffer(p.encode())

    def set(self, p, value): return self.ask(5, self.path(p) + self._buffer(value) + struct.pack(">i", -1))[0]

    def delete(self, p): return self.ask(2, self.path(p) + struct.pack(">i", -1))[0]

    def create(self, p, value):
        acl = struct.pack(">ii", 1, 31) + self._buffer(b"world") + self._buffer(b"anyone")
        return self.ask(1, self.path(p) + self._buffer(value) + acl + struct.pack(">i", 0))[0]

    def get(self, p):
        err, b = self.ask(4, self.path(p) + b"\0")
        return err, b"" if err else b[4:4 + struct.unpack(">i", b[:4])[0]]

    def list(self, p):
        err, b = self.ask(8, self.path(p) + b"\0")
        names, at = [], 4
        for _ in range(0 if err else struct.unpack(">i", b[:4])[0]):
            n = struct.unpack(">i", b[at:at + 4])[0]
            names.append(b[at + 4:at + 4 + n].decode())
            at += 4 + n
        return err, sorted(names)

    def close(self): self.ask(-11, b"")

    def below(self, p):
        err, names = self.list(p)
        return [p] + [q for n in names for q in self.below(p + "/" + n)] if not err else []


def rubbish(rnd, path, value):
    # a state that is sound but was never written is no rubbish: brokers follow it, and never go back (R15)
    kind = rnd.randrange(2 if path.endswith("/state") else 6)
    if kind == 0 or not value:
        return bytes(rnd.randrange(256) for _ in range(rnd.randrange(40)))
    if kind == 1:
        return value[:rnd.randrange(len(value))]
    if kind == 2:                                 # a number that no such thing has
        digits = [i for i, c in enumerate(value) if 48 <= c <= 57]
        if digits:
            i = rnd.choice(digits)
            return value[:i] + rnd.choice((b"-1", b"2147483647", b"9223372036854775807", b"99999999999999999999", b"null", b"[]")) + value[i + 1:]
    b = bytearray(value)
    for _ in range(rnd.randrange(1, 4)):
        b[rnd.randrange(len(b))] = rnd.randrange(256)
    return bytes(b)


def main(what, *words):
    z = Zk()
    if what == "fuzz":
        rnd, before = random.Random(int(words[0])), {}
        for p in z.below(words[2]):
            if "/brokers/ids/" not in p:
                before[p] = z.get(p)[1]
        for _ in range(int(words[1])):
            p = rnd.choice(sorted(before))
            assert z.set(p, rubbish(rnd, p, before[p])) == 0, p
        for p, value in sorted(before.items()):
            if z.get(p)[1] != value:
                assert z.set(p, value) == 0, p
    else:
        if what == "list":
            err, names = z.list(words[0])
            print("\n".join(names))
        elif what == "remove":                    # with all below it
            err = 0
            for p in reversed(z.below(words[0])):
                err = err or z.delete(p)
        elif what == "get":
            err, value = z.get(words[0])
            print(value.decode())
        else:
            err = getattr(z, what)(*words[:1], *[w.encode() for w in words[1:]])
        if err:
            raise SystemExit("%s %s: error %d" % (what, words[0], err))
    z.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
