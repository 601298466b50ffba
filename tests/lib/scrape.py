# SPDX-License-Identifier: Apache-2.0
"""Reads Prometheus' text as strictly as Prometheus does, and more: each metric has HELP and TYPE before its samples, which stand
together, no series is there twice, and the buckets of a histogram grow and end in its count.

scrape.py URL            prints every series and its value
scrape.py URL SERIES...  prints the values of these, one a line; "-" for one that is not there
"""
import re
import sys
import urllib.request

NAME = r'[a-zA-Z_:][a-zA-Z0-9_:]*'
SAMPLE = re.compile(rf'({NAME})(\{{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*\}})? (-?[0-9.]+(?:e[+-]?[0-9]+)?|\+Inf|NaN)')


def check_buckets(family, samples):
    series = {}
    for name, labels, value in samples:
        le = re.search(r',?le="([^"]*)"', labels)
        key = re.sub(r',?le="[^"]*"', '', labels).replace('{}', '')
        series.setdefault(key, {'buckets': []})
        if name == family + '_bucket':
            series[key]['buckets'].append((float(le[1]), value))
        else:
            series[key][name[len(family):]] = value
    for key, s in series.items():
        bounds, counts = zip(*s['buckets'])
        assert list(bounds) == sorted(set(bounds)) and bounds[-1] == float('inf'), (family, key, bounds)
        assert list(counts) == sorted(counts) and counts[-1] == s['_count'], (family, key, counts)
        assert s['_sum'] >= 0


def parse(text):
    """-> {series: value}, {family: type}"""
    assert text.endswith('\n')
    values, types, family, samples = {}, {}, None, []
    for line in text[:-1].split('\n') + ['# HELP end end']:
        if line.startswith('# HELP '):
            if types.get(family) == 'histogram' and samples:
                check_buckets(family, samples)
            family, samples = line.split()[2], []
            assert family not in types, family
            assert re.fullmatch(NAME, family) and len(line.split()) > 3, line
            types[family] = None
        elif line.startswith('# TYPE '):
            assert line.split()[2] == family and types[family] is None and not samples, line
            types[family] = line.split()[3]
        else:
            m = SAMPLE.fullmatch(line)
            assert m, line
            name, labels, value = m[1], m[2] or '', float(m[3])
            suffixes = ('_bucket', '_sum', '_count') if types[family] == 'histogram' else ('',)
            assert name in [family + s for s in suffixes], (family, line)
            assert types[family] != 'counter' or (family.endswith('_total') and value >= 0), line
            assert name + labels not in values, line
            values[name + labels] = value
            samples.append((name, labels, value))
    del types['end']
    return values, types


def scrape(url):
    with urllib.request.urlopen(url, timeout=20) as r:
        assert r.headers['Content-Type'] == 'text/plain; version=0.0.4; charset=utf-8'
        return parse(r.read().decode('utf-8'))


if __name__ == '__main__':
    found, _ = scrape(sys.argv[1])
    if len(sys.argv) == 2:
        for s, v in found.items():
            print(s, f'{v:g}')
    for s in sys.argv[2:]:
        print(f'{found[s]:.15g}' if s in found else '-')
