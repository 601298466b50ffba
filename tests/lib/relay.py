# SPDX-License-Identifier: Apache-2.0
"""relay.py PORT TO-PORT
Passes connections to 127.0.0.1:PORT on to 127.0.0.1:TO-PORT. Stopped with SIGSTOP it is a network that swallows everything, and with SIGCONT it
delivers late what it had."""
import selectors
import socket
import sys


def main():
    port, to = int(sys.argv[1]), int(sys.argv[2])
    sel = selectors.DefaultSelector()
    listener = socket.create_server(("127.0.0.1", port))
    sel.register(listener, selectors.EVENT_READ, None)
    while True:
        for key, _ in sel.select():
            if key.data is None:
                a = listener.accept()[0]
                try:
                    b = socket.create_connection(("127.0.0.1", to))
                except OSError:
                    a.close()
                    continue
                sel.register(a, selectors.EVENT_READ, b)
                sel.register(b, selectors.EVENT_READ, a)
                continue
            try:
                data = key.fileobj.recv(65536)
                if data:
                    key.data.sendall(data)
            except OSError:
                data = b""
            if not data:
                for s in (key.fileobj, key.data):
                    try:
                        sel.unregister(s)
                    except (KeyError, ValueError):
                        pass
                    s.close()
                break  # what is left of this round may be of them


if __name__ == "__main__":
    main()
