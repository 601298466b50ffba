#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Kills `klog run` with SIGKILL at random moments until it has been through a topic, and judges what COMMAND was given:
nothing skipped, order kept, and after a kill at most the batch that was not committed again.
  run_loop.py KILLS SEED BATCH RECORDS KLOG-RUN-ARGUMENTS...   the topic's partition values are its offsets
COMMAND is `notes`: it appends what it gets to the file $NOTES.$KLOG_PARTITION, first a line with the offset it begins at."""
import os
import random
import signal
import subprocess
import sys
import time

kills, seed, batch, records = (int(x) for x in sys.argv[1:5])
command = sys.argv[5:]
random.seed(seed)
print(f"seed {seed}")
notes = os.environ["NOTES"]
done = killed = 0
span = 0.02
while True:
    child = subprocess.Popen(command)
    try:
        status = child.wait(None if killed >= kills else random.uniform(0.0, span))
        if status != 0:
            sys.exit(f"klog run ended by itself with {status}")
        done += 1
        break
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGKILL)
        child.wait()
        killed += 1
        span = min(span * 1.3, 0.6)
print(f"{killed} kills")

bad = repeats = 0
for name in sorted(os.listdir(os.path.dirname(notes))):
    if not name.startswith(os.path.basename(notes) + "."):
        continue
    path = os.path.join(os.path.dirname(notes), name)
    committed_from = 0  # no batch may begin before the one that was begun last
    expected = 0
    partition = int(name.rsplit(".", 1)[1])
    for line in open(path):
        if line.startswith("# "):
            begin = int(line[2:])
            if begin > expected or begin < committed_from:
                bad += 1
                print(f"{name}: a batch begins at {begin}; seen up to {expected}, the last began at {committed_from}")
            repeats += begin < expected
            committed_from = begin
            at = begin
        else:
            if not line.endswith("\n"):
                continue  # the command itself was killed
            if int(line) != at:
                bad += 1
                print(f"{name}: {line.strip()} instead of {at}")
            at += 1
            expected = max(expected, at)
    if expected != records:
        bad += 1
        print(f"{name}: seen up to {expected} of {records}")
print(f"{repeats} batches given again")
if repeats > killed * 2:
    sys.exit("more repeats than kills allow")
sys.exit(1 if bad else 0)
