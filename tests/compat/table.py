# SPDX-License-Identifier: Apache-2.0
"""table.py RESULTS-DIRECTORY DOCUMENT: writes what a run of `make check-compat` found out into the document, between its two markers.

RESULTS-DIRECTORY/*.tsv: client, feature, result ("yes", "-" for what the client has not, else what happened), note; with tabs between. A client's
name ends with its version. Clients with the features of the first table are its rows; each other one (test suites, tools) has a
table of its own. What did not run this time, since it was not to be had, stays as it was."""
import glob
import os
import re
import sys

BEGIN, END = "<!-- clients: written by make check-compat -->", "<!-- clients: end -->"
CODECS = "none", "gzip", "snappy", "lz4", "zstd"
COLUMNS = "writes", "reads", "headers", "null, empty", "groups", "positions", "by time", "topics", "settings", "deletes groups", "idempotence"


def unversioned(client):
    """What stays when a newer one comes."""
    return re.sub(r" v?\d[\w.]*", "", client)


def read(directory):
    """{client: {feature: (result, note)}}; of a feature that was tried twice, what went wrong"""
    out = {}
    for path in sorted(glob.glob(os.path.join(directory, "*.tsv"))):
        with open(path, encoding="utf-8") as f:
            for line in f.read().splitlines():
                client, feature, result, note = (line.split("\t") + [""] * 3)[:4]
                known = out.setdefault(client, {})
                if known.get(feature, ("yes",))[0] == "yes":
                    known[feature] = result, note
    return out


def is_row(features): return "all" in features or any(f.partition(" ")[0] in ("writes", "reads") for f in features)


def cell(features, column):
    if "all" in features:
        return features["all"][0]
    if column in features:
        return features[column][0]
    got = {c: features.get("%s %s" % (column, c), ("-", ""))[0] for c in CODECS}
    good = [c for c in CODECS if got[c] == "yes"]
    if column not in ("writes", "reads") or not good:
        return "-"
    bad = ["not " + c for c in CODECS if got[c] not in ("yes", "-")]
    return ", ".join((["all"] if len(good) == len(CODECS) else good) + bad)


def escaped(text): return text.replace("|", "\\|")


def line(cells): return "| %s |" % " | ".join(escaped(c) for c in cells)


def head(*names): return [line(names), line(["---"] * len(names))]


def noted(client, features):
    return ["- %s, %s: %s" % (client, f, note) for f, (r, note) in features.items() if r not in ("yes", "-") and note]


def own_table(features):
    noted = any(note for _, note in features.values())
    rows = [(f, r, n) if noted else (f, r) for f, (r, n) in features.items()]
    return head(*(("what", "result", "note") if noted else ("what", "result"))) + [line(r) for r in rows]


def blocks(text):
    """What is in the document now: the rows {client: line}, the notes below them {client: [line]}, the tables {client: [line]}"""
    rows, notes, tables, title = {}, {}, {}, None
    for x in text.splitlines():
        if x.startswith("### "):
            title = x[4:]
            tables[title] = []
        elif x.startswith("|") and title is not None:
            tables[title].append(x)
        elif x.startswith("- "):
            notes.setdefault(x[2:].partition(",")[0], []).append(x)
        elif x.startswith("|") and not x.startswith(("| client |", "| --- |")):
            rows[x.split("|")[1].strip()] = x
    return rows, notes, tables


def merged(old, new):
    fresh = {unversioned(c) for c in new}
    out = {c: v for c, v in old.items() if unversioned(c) not in fresh}
    out.update(new)
    return sorted(out.items(), key=lambda kv: kv[0].lower())


def main(directory, document):
    results = read(directory)
    with open(document, encoding="utf-8") as f:
        before, begin, rest = f.read().partition(BEGIN)
    now, end, after = rest.partition(END)
    assert begin and end, "%s has no place for the table" % document
    old_rows, old_notes, old_tables = blocks(now)
    rows = merged(old_rows, {c: line([c] + [cell(f, x) for x in COLUMNS]) for c, f in results.items() if is_row(f)})
    tables = merged(old_tables, {c: own_table(f) for c, f in results.items() if not is_row(f)})
    notes = merged(old_notes, {c: noted(c, f) for c, f in results.items() if is_row(f)})
    out = [BEGIN, ""] + head("client", *COLUMNS) + [x for _, x in rows] + [""] + [x for _, ns in notes for x in ns] + [""]
    for client, lines in tables:
        out += ["### " + client, ""] + lines + [""]
    text = before + "\n".join(out) + END + after
    with open(document + ".new", "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(document + ".new", document)
    bad = ["%s: %s: %s" % (c, f, r) for c, fs in results.items() for f, (r, _) in fs.items() if r.startswith(("no", "failed"))]
    print("%s: %d clients, %d of them tried in this run%s" % (document, len(rows) + len(tables), len(results), "".join("\n  " + b for b in bad)))


if __name__ == "__main__":
    main(*sys.argv[1:])
