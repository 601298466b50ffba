# SPDX-License-Identifier: Apache-2.0
"""raw.py HOST:PORT [HEX | @FILE | sleep=SECONDS]...

Sends bytes as they are and prints each reply as "corr=N len=N HEX" (first 40 bytes after the correlation
id), with -t also when it came; then how it ended: EOF, RST, or open (nothing came for -q seconds, 1 unless said). With -n REPLIES it ends after
so many, and says nothing of how."""
import argparse
import socket
import sys
import time

from kwire import address


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("-t", action="store_true", help="print tenths of seconds")
    ap.add_argument("-q", type=float, default=1.0, help="quiet time that ends it")
    ap.add_argument("-n", type=int, help="replies that end it")
    ap.add_argument("broker")
    ap.add_argument("what", nargs="*")
    a = ap.parse_intermixed_args()
    s = socket.create_connection(address(a.broker))
    t0 = time.monotonic()
    for w in a.what:
        if w.startswith("sleep="):
            time.sleep(float(w[6:]))
            continue
        if w.startswith("@"):
            w = open(w[1:]).read()
        try:
            s.sendall(bytes.fromhex(w))
        except (BrokenPipeError, ConnectionResetError):
            break
    s.settimeout(a.q)
    got, replies = b"", 0
    while True:
        try:
            d = s.recv(1 << 16)
        except socket.timeout:
            print("open")
            return
        except ConnectionResetError:
            print("RST")
            return
        if not d:
            print("EOF" if not got else "EOF inside a frame")
            return
        got += d
        while len(got) >= 4 and len(got) >= 4 + int.from_bytes(got[:4], "big"):
            n = int.from_bytes(got[:4], "big")
            f, got = got[4:4 + n], got[4 + n:]
            when = "%.1f " % (time.monotonic() - t0) if a.t else ""
            print("%scorr=%d len=%d %s" % (when, int.from_bytes(f[:4], "big"), n, f[4:44].hex()))
            sys.stdout.flush()
            replies += 1
            if replies == a.n:
                return


if __name__ == "__main__":
    main()
