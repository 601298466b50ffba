# SPDX-License-Identifier: Apache-2.0
"""compare.py EXPECTED DIFFERENCES GOT [RESULTS CLIENT]: compares what klogd answered in scripted scenarios with what Apache Kafka answered.

A scenario is a line that begins in the first column and the indented ones after it. DIFFERENCES has, for the scenarios where klogd means to
answer otherwise, their title line, then "# the reason" and "< Kafka's line", "> klogd's line" as diff prints them. Anything else that differs,
and a difference that is gone, is printed; then the exit status is 1. The last line printed tells how many scenarios were compared. The file
RESULTS gets a line for each scenario, as table.py reads it."""
import difflib
import os
import sys


def scenarios(path):
    out, title = {}, None
    with open(path, encoding="utf-8") as f:
        for line in f.read().splitlines():
            if line and not line[0].isspace() and line[0] not in "<>#":
                title = line
                assert title not in out, "two scenarios '%s'" % title
                out[title] = []
            elif line and title is not None:
                out[title].append(line.strip())
    return out


def differences(expected, got):
    out = []
    for op, i, j, k, m in difflib.SequenceMatcher(None, expected, got, autojunk=False).get_opcodes():
        if op != "equal":
            out += ["< " + x for x in expected[i:j]] + ["> " + x for x in got[k:m]]
    return out


def main(expected_path, differences_path, got_path, results_path=None, client=None):
    expected, got, meant = scenarios(expected_path), scenarios(got_path), scenarios(differences_path)
    bad = ["no such scenario: " + t for t in meant if t not in expected] + ["new scenario: " + t for t in got if t not in expected]
    explained, results = 0, []
    for title, lines in expected.items():
        if title not in got:
            bad.append("scenario did not run: " + title)
            continue
        found = differences(lines, got[title])
        allowed = [x for x in meant.get(title, ()) if x[0] != "#"]
        explained += bool(allowed)
        reasons = " ".join(x[1:].strip() for x in meant.get(title, ()) if x[0] == "#")
        results.append((client, title, "no" if found != allowed else "yes, but" if allowed else "yes", reasons))
        if found != allowed:
            bad += [title] + ["%s %s" % ("  " if x in allowed else "!!", x) for x in found]
            bad += ["gone  " + x for x in allowed if x not in found]
    print("\n".join(bad + ["%d scenarios compared with Apache Kafka's answers; %d differ as they are meant to" % (len(expected), explained)]))
    if results_path:
        os.makedirs(os.path.dirname(results_path), exist_ok=True)
        with open(results_path, "w", encoding="utf-8") as f:
            f.writelines("\t".join(r) + "\n" for r in results)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
