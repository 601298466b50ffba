# SPDX-License-Identifier: Apache-2.0
"""topic.py create NAME [PARTITIONS] [key=value ...] | delete NAME | end NAME [P] | start NAME [P] | list
Prints what was asked, or "error N: text" and exits 1."""
import os
import sys

from kwire import Conn


def main():
    verb, args = sys.argv[1], sys.argv[2:]
    c = Conn(os.environ.get("BROKER", "127.0.0.1:9092"), timeout=90)
    err, text = 0, ""
    if verb == "create":
        n = int(args[1]) if len(args) > 1 and args[1].isdigit() else 1
        err, text = c.create_topic(args[0], n, 1, [a.split("=", 1) for a in args[1:] if "=" in a], timeout_ms=60000)
    elif verb == "delete":
        err = c.delete_topic(args[0])
    elif verb in ("end", "start"):
        err, _, offset = c.list_offset(args[0], int(args[1]) if len(args) > 1 else 0, -1 if verb == "end" else -2)
        print(offset)
    elif verb == "list":
        print("\n".join(sorted(c.metadata())))
    if err:
        sys.exit("error %d: %s" % (err, text or ""))


if __name__ == "__main__":
    main()
