#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""embed.py NAME FILE >C: a file as the C array NAME, with NAME_bytes beside it."""
import sys

name, path = sys.argv[1:]
with open(path, 'rb') as f:
    data = f.read()
print(f'/* Made from {path.rsplit("/", 1)[-1]}. */\n#include "daemon/watch/watch_int.h"\n')
print(f'const unsigned char {name}[] = {{')
for at in range(0, len(data), 16):
    print('    ' + ' '.join(f'{b},' for b in data[at:at + 16]))
print(f'}};\nconst size_t {name}_bytes = sizeof {name};')
