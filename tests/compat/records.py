# SPDX-License-Identifier: Apache-2.0
"""The records of lib.sh, for both Python clients."""


def records():
    yield b"k1", b"v1", [("h", b"1"), ("h", b"2")]
    yield None, b"v2", []
    yield b"", b"v3", []
    yield b"k4", b"", []
    yield b"k5", None, []
    for i in range(5, 505):
        yield b"b", b"bulk %d of five hundred, alike enough to shrink" % i, []
