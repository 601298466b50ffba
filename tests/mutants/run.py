#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Planted faults: does the suite see them? (make check-mutants)

    run.py SRCDIR SCRATCH [NAME...]      all of SRCDIR/tests/mutants/list, or those named
    run.py --texts SRCDIR                whether the old texts are still where the list has them (make check does)

Each fault of the list is planted into a copy of the tree, alone; the program it is in is built, and the test named beside it must
fail. First each of these tests must pass on the tree as it is. A fault that its test does not see is a hole in the tests, and one whose
old text is not there any more (exactly once) has to be written anew: both fail the run. The list, a blank line between two:

    name of the fault
    in FILE
    seen by TEST                         tests/unit/... (a program) or tests/system/... (a script); what the
                                         simulator's seeds must find is in tests/sim/bugs
    - old text                           one or more lines, as they stand in the file, after "- "
    + new text                           what stands there instead; none: the lines go
"""
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from queue import Queue

CFLAGS = "-O0"
TEST_SECONDS = 300
COPIED = ["lib", "daemon", "fuse", "src", "bench", "docs", "tests", "m4", "build-aux", "configure", "configure.ac", "config.h.in", "aclocal.m4",
          "Makefile.am", "Makefile.in", "LICENSE", "README.md", ".clang-format", ".editorconfig", "autogen.sh", "quickstart", "run", "check", ".ci"]


class Mutant:
    def __init__(self, lines):
        self.name = lines[0]
        assert lines[1].startswith("in ") and lines[2].startswith("seen by "), lines
        self.file, self.test = lines[1][3:], lines[2][8:]
        self.old = "".join(line[2:] + "\n" for line in lines[3:] if line.startswith("- "))
        self.new = "".join(line[2:] + "\n" for line in lines[3:] if line.startswith("+ "))
        assert self.old and all(line[:2] in ("- ", "+ ") for line in lines[3:]), lines


def read_list(path):
    with open(path, encoding="utf-8") as f:
        text = "".join(line for line in f if not line.startswith("#"))
    return [Mutant(part.split("\n")) for part in (p.strip("\n") for p in text.split("\n\n")) if part]


def run(command, cwd, env=None, seconds=900):
    try:
        done = subprocess.run(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=seconds, text=True, errors="replace", check=False)
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        return 124, "it did not end within %d s" % seconds


class Tree:
    """A copy of the sources with a build of its own."""
    def __init__(self, root):
        self.root, self.build = root, os.path.join(root, "build")

    def make(self, *targets):
        rc, said = run(["make", "-s", *targets], self.build)
        return rc == 0, said

    def targets(self, test):
        return [test] if test.startswith("tests/unit/") else ["daemon/klogd", "src/klog", "fuse/klogfs"]

    def passes(self, test):
        env = dict(os.environ, srcdir=self.root, BUILDDIR=self.build)
        if test.startswith("tests/unit/"):
            return run(["./" + test], self.build, env, TEST_SECONDS)
        return run(["bash", os.path.join(self.root, "tests/lib/run"), os.path.join(self.root, test)], self.build, env, TEST_SECONDS)

    def verdict(self, m):
        """None: seen; else what is wrong."""
        lost = lost_text(self.root, m)
        if lost is not None:
            return lost
        path = os.path.join(self.root, m.file)
        with open(path, encoding="utf-8") as f:
            before = f.read()
        with open(path, "w", encoding="utf-8") as f:
            f.write(before.replace(m.old, m.new))
        built, said = self.make(*self.targets(m.test))
        rc = self.passes(m.test)[0] if built else 0
        with open(path, "w", encoding="utf-8") as f:
            f.write(before)
        if not built:
            return "it does not compile: " + said.strip()[-400:]
        if rc == 77:
            return "%s was skipped" % m.test
        return None if rc != 0 else "%s passes all the same" % m.test


def first_tree(srcdir, scratch):
    root = os.path.join(scratch, "tree0")
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(os.path.join(root, "build"))
    for name in COPIED:
        at = os.path.join(srcdir, name)
        if os.path.isdir(at):
            shutil.copytree(at, os.path.join(root, name), symlinks=True)
        else:
            shutil.copy2(at, os.path.join(root, name))
    tree = Tree(root)
    cc = os.environ.get("CC", "cc")
    rc, said = run(["../configure", "-q", "CC=" + cc, "CFLAGS=" + CFLAGS], tree.build)
    assert rc == 0, said
    return tree


def lost_text(srcdir, m):
    """None: the fault can be planted; else why not."""
    try:
        with open(os.path.join(srcdir, m.file), encoding="utf-8") as f:
            n = f.read().count(m.old)
    except FileNotFoundError:
        return "there is no %s" % m.file
    return None if n == 1 else "its old text is in %s %d times" % (m.file, n)


def check_texts(srcdir):
    lost = [(name, m, why) for name in ("tests/mutants/list", "tests/sim/bugs") for m in read_list(os.path.join(srcdir, name))
            if (why := lost_text(srcdir, m)) is not None]
    for name, m, why in lost:
        print("%s: %s: %s" % (name, m.name, why))
    return 1 if lost else 0


def main(srcdir, scratch, names):
    mutants = [m for m in read_list(os.path.join(srcdir, "tests/mutants/list")) if not names or m.name in names]
    assert mutants, "no such fault in the list"
    tests = sorted({m.test for m in mutants})
    tree = first_tree(os.path.abspath(srcdir), os.path.abspath(scratch))
    # one after the other: each would build the libraries of the other at the same time
    for targets in ["all"], sorted({t for test in tests for t in tree.targets(test)}):
        built, said = tree.make("-j%d" % os.cpu_count(), *targets)
        assert built, said
    for t in tests:
        rc, said = tree.passes(t)
        if rc != 0:
            print("%s fails without any fault planted (%d):\n%s" % (t, rc, said[-2000:]))
            return 1
    trees = Queue()
    trees.put(tree)
    for i in range(1, os.cpu_count()):
        root = os.path.join(os.path.abspath(scratch), "tree%d" % i)
        subprocess.run(["cp", "-a", tree.root, root], check=True)
        trees.put(Tree(root))

    def judge(m):
        mine = trees.get()
        wrong = mine.verdict(m)
        trees.put(mine)
        print("%s: %s" % (m.name, "seen by " + m.test if wrong is None else "NOT SEEN: " + wrong), flush=True)
        return wrong is None

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        seen = sum(pool.map(judge, mutants))
    shutil.rmtree(scratch, ignore_errors=True)
    print("%d of %d planted faults are seen" % (seen, len(mutants)))
    return 0 if seen == len(mutants) else 1


if __name__ == "__main__":
    if sys.argv[1] == "--texts":
        sys.exit(check_texts(sys.argv[2]))
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
