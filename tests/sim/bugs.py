#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Planted faults: how many seeds does the simulator need to find each? (make check-sim-bugs)

    bugs.py SRCDIR SCRATCH [NAME...]     all of SRCDIR/tests/sim/bugs, or those named

Each fault is planted into a copy of the tree, alone; the simulator is built, and seeds 1, 2, ... run until one fails, at most SEEDS of
them (20000) and for SECONDS at most (600 each). A fault that is not found fails the run. SCRATCH is kept: a second run builds what
has changed. JOBS (1): seeds at a time. PLANS=DIR: the shrunk plan of each that a broker's life has shown is written there, for
tests/sim/corpus.
"""
import filecmp
import os
import re
import shutil
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "mutants"))
import run as mutants  # noqa: E402

SEEDS, SECONDS, JOBS = (int(os.environ.get(k, v)) for k, v in (("SEEDS", 20000), ("SECONDS", 600), ("JOBS", 1)))
PLANS = os.environ.get("PLANS")


def update(source, copy):
    if not os.path.exists(copy) or not filecmp.cmp(source, copy, False):
        shutil.copy(source, copy)


def copy_tree(srcdir, root):
    """Only what differs is copied, so that a later build is quick."""
    tree = mutants.Tree(root)
    if not os.path.exists(os.path.join(tree.build, "Makefile")):
        mutants.CFLAGS = "-O1"
        return mutants.first_tree(srcdir, os.path.dirname(root))
    for name in mutants.COPIED:
        at = os.path.join(srcdir, name)
        for d, _, files in os.walk(at) if os.path.isdir(at) else [(srcdir, None, [name])]:
            to = os.path.join(root, os.path.relpath(d, srcdir))
            os.makedirs(to, exist_ok=True)
            for f in files:
                if not os.path.islink(os.path.join(d, f)):
                    update(os.path.join(d, f), os.path.join(to, f))
    return tree


def found(tree, m):
    """The seed that failed; None: none did. And what was wrong with it."""
    command = ["./tests/sim/sim", "--seeds", "1..%d" % SEEDS, "--failures", "1", "--twice", "0", "--jobs", str(JOBS)]
    if m.test in ("log", "copies"):
        command.append("--log-only")
    if m.test == "copies":
        command.append("--copies")
    if m.test == "cluster":
        command.append("--cluster")
    rc, said = mutants.run(command, tree.build, None, SECONDS)
    at = re.search(r"^seed (\d+): (.*)$", said, re.M)
    if rc == 0 or rc == 124 or at is None:
        return None, "no seed in %d s" % SECONDS if rc == 124 else "no seed of %d" % SEEDS if rc == 0 else said.strip()[-300:]
    return int(at.group(1)), at.group(2)


def keep_plan(tree, m, seed, why):
    rc, said = mutants.run(["./tests/sim/sim", "--seed", str(seed), "--shrink"], tree.build, None, SECONDS)
    name = re.sub(r"[^a-z0-9]+", "-", m.name.lower()).strip("-")[:60]
    if rc == 0 and "\nseed " in said:
        with open(os.path.join(PLANS, name + ".plan"), "w", encoding="utf-8") as f:
            f.write("# %s\n# With that fault in %s: %s\n%s" % (m.name, m.file, why, said[said.index("\nseed ") + 1:]))


def judge(tree, m):
    lost = mutants.lost_text(tree.root, m)
    if lost is not None:
        return None, lost
    path = os.path.join(tree.root, m.file)
    with open(path, encoding="utf-8") as f:
        before = f.read()
    with open(path, "w", encoding="utf-8") as f:
        f.write(before.replace(m.old, m.new))
    built, said = tree.make("tests/sim/sim")
    ret = found(tree, m) if built else (None, "it does not compile: " + said.strip()[-400:])
    if ret[0] is not None and PLANS and m.test == "broker":
        keep_plan(tree, m, *ret)
    with open(path, "w", encoding="utf-8") as f:
        f.write(before)
    return ret


def main(srcdir, scratch, names):
    bugs = [m for m in mutants.read_list(os.path.join(srcdir, "tests/sim/bugs")) if not names or m.name in names]
    assert bugs, "no such fault in the table"
    tree = copy_tree(os.path.abspath(srcdir), os.path.join(os.path.abspath(scratch), "tree0"))
    built, said = tree.make("-j%d" % os.cpu_count(), "tests/sim/sim")
    assert built, said
    n = 0
    print("%8s %6s  %s" % ("seeds", "s", "fault"))
    for m in bugs:
        began = time.time()
        seed, why = judge(tree, m)
        n += seed is not None
        print("%8s %6.1f  %s (%s)" % ("NONE" if seed is None else seed, time.time() - began, m.name, why[:110]), flush=True)
    print("%d of %d planted faults are found" % (n, len(bugs)))
    return 0 if n == len(bugs) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
