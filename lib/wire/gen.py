#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the schema files of Kafka's protocol into C: structs, and the tables that the engine walks.

    gen.py header OUT.h SCHEMA-DIR     structs, one extern wire_message a message, enum of API keys
    gen.py tables OUT.c SCHEMA-DIR     defaults, field tables, the API table

A schema file (*.kp) describes one API:

    api KEY Name [klog_only]
    request FIRST-LAST [flexible N]
        name  type [versions] [tag=N] [=default] [ignorable]
    response ...

or messages that travel inside records, each:

    data Name FIRST-LAST [flexible N]
        ...

Types: bool i8 i16 i32 i64 f64 uuid str bytes records, []type, [] (array of structs) and {} (struct), whose
members follow, indented by four more. A `?` makes str, bytes, records, [] and {} nullable: `str?` always, `str?7+`
from version 7; a {} that may be null is beside a bool has_NAME. Versions: `3+`, `2-4`, `5`; without them a field has those of its parent. `ignorable`: outside
its versions a value other than the default is dropped by the encoder instead of refused. The order of the lines
is the order on the wire; tags come last, by number.
"""
import glob
import re
import sys

SCALARS = {            # type: (C type, fewest bytes on the wire)
    'bool': ('bool', 1), 'i8': ('int8_t', 1), 'i16': ('int16_t', 2), 'i32': ('int32_t', 4),
    'i64': ('int64_t', 8), 'f64': ('double', 8), 'uuid': ('struct uuid', 16),
}
BLOBS = {              # type: (C type, bytes of the length, before the flexible versions)
    'str': ('struct kstr', 2), 'bytes': ('struct kstr', 4), 'records': ('struct wire_records', 4),
}
NEVER = 127            # a version that no message has
LINE = re.compile(r'(?P<indent> *)(?P<name>[a-z][a-z0-9_]*)\s+(?P<type>\[\]|\{\}|[a-z][a-z0-9]*)'
                  r'(?P<null>\?(?:(?P<null_from>\d+)\+)?)?(?P<elem>[a-z][a-z0-9]*)?(?P<rest>(?:\s+\S+)*)$')


class SchemaError(Exception):
    pass


def snake(name):
    return re.sub(r'(?<=[a-z0-9])(?=[A-Z])', '_', name).lower()


def versions(text, last):
    """'3+', '2-4' or '5' -> (first, last)"""
    m = re.fullmatch(r'(\d+)(\+|-(\d+))?', text)
    if m is None:
        raise SchemaError(f'"{text}" is not a range of versions')
    first = int(m[1])
    return first, last if m[2] == '+' else int(m[3]) if m[3] else first


class Struct:
    def __init__(self, c_name, first, last):
        self.c_name, self.first, self.last, self.fields = c_name, first, last, []

    def plain(self):
        return [f for f in self.fields if f.tag is None]

    def tagged(self):
        return sorted((f for f in self.fields if f.tag is not None), key=lambda f: f.tag)

    def min_bytes(self, version, flexible):
        n = sum(f.min_bytes(version, flexible) for f in self.plain())
        return n + 1 if flexible else n


class Field:
    def __init__(self, m, parent):
        self.name, self.type, self.elem = m['name'], m['type'], m['elem']
        self.first, self.last = parent.first, parent.last
        self.tag, self.default, self.ignorable, self.sub = None, None, False, None
        for word in m['rest'].split():
            self.attribute(word, parent)
        self.null_from = NEVER if m['null'] is None else int(m['null_from'] or self.first)
        self.check(parent)

    def attribute(self, word, parent):
        if word == 'ignorable':
            self.ignorable = True
        elif word.startswith('tag='):
            self.tag = int(word[4:])
        elif word.startswith('='):
            self.default = word[1:]
        else:
            self.first, self.last = versions(word, parent.last)

    def check(self, parent):
        if self.type == '[]':
            known = self.elem is None or self.elem in SCALARS or self.elem in BLOBS
        else:
            known = self.elem is None and (self.type == '{}' or self.type in SCALARS or self.type in BLOBS)
        if not known:
            raise SchemaError(f'{self.name}: unknown type {self.type}{self.elem or ""}')
        if self.elem == 'records' or (self.tag is not None and self.type == 'records'):
            raise SchemaError(f'{self.name}: records can neither repeat nor be tagged')
        if not parent.first <= self.first <= self.last <= parent.last:
            raise SchemaError(f'{self.name}: versions {self.first}-{self.last} are not inside '
                              f'{parent.first}-{parent.last}')
        if self.null_from != NEVER and self.type in SCALARS:
            raise SchemaError(f'{self.name}: a {self.type} cannot be null')
        if self.default == 'null' and self.null_from == NEVER:
            raise SchemaError(f'{self.name}: the default is null, but null is not allowed')
        if self.default not in (None, 'null') and self.type not in SCALARS:
            raise SchemaError(f'{self.name}: a {self.type} has no default but null')
        if self.ignorable and (self.first, self.last) == (parent.first, parent.last):
            raise SchemaError(f'{self.name}: ignorable means nothing for a field of every version')

    def is_nullable_struct(self):
        return self.type == '{}' and self.null_from != NEVER

    def min_bytes(self, version, flexible):
        if not self.first <= version <= self.last:
            return 0
        if self.type == '{}' and version >= self.null_from:
            return 1
        if self.type in SCALARS:
            return SCALARS[self.type][1]
        if self.type == '{}':
            return self.sub.min_bytes(version, flexible)
        return 1 if flexible else 4 if self.type == '[]' else BLOBS[self.type][1]

    def c_type(self):
        t = self.elem if self.type == '[]' else self.type
        if t in SCALARS:
            return SCALARS[t][0]
        return BLOBS[t][0] if t in BLOBS else f'struct {self.sub.c_name}'

    def c_members(self):
        if self.type == '[]':
            c = self.c_type()
            return [f'{c} *{self.name};', f'int32_t n_{self.name};']
        if self.is_nullable_struct():
            return [f'{self.c_type()} {self.name};', f'bool has_{self.name};']
        return [f'{self.c_type()} {self.name};']

    def c_default(self):
        """Initializers of the members that are not zero."""
        null = self.default == 'null'
        if self.type == '[]':
            return [f'.n_{self.name} = -1'] if null else []
        if self.type in ('str', 'bytes'):
            return [f'.{self.name} = {{ NULL, -1 }}' if null else f'.{self.name} = {{ "", 0 }}']
        if self.type == 'records':
            return [f'.{self.name} = {{ .n = -1 }}'] if null else []
        if self.type == '{}':
            inner = struct_default(self.sub)
            there = [f'.has_{self.name} = true'] if self.is_nullable_struct() and not null else []
            return ([f'.{self.name} = {{ {inner} }}'] if inner else []) + there
        return [f'.{self.name} = {self.default}'] if self.default else []

    def c_row(self, owner):
        at = f'offsetof(struct {owner.c_name}, {self.name})'
        prefix = 'n_' if self.type == '[]' else 'has_' if self.is_nullable_struct() else None
        n_at = f'offsetof(struct {owner.c_name}, {prefix}{self.name})' if prefix else '0'
        kind = {'[]': 'ARRAY', '{}': 'STRUCT'}.get(self.type, self.type.upper())
        elem = (self.elem or 'struct').upper() if self.type == '[]' else kind
        sub = f'&wire_struct_{self.sub.c_name}' if self.sub else 'NULL'
        tag = -1 if self.tag is None else self.tag
        return (f'    {{ "{self.name}", {sub}, {at}, {n_at}, sizeof({self.c_type()}), WIRE_{kind}, WIRE_{elem}, '
                f'{self.first}, {self.last}, {self.null_from}, {tag}, {"true" if self.ignorable else "false"}, '
                f'{"true" if self.name == "error_code" else "false"} }},')


class Message:
    def __init__(self, name, kind, words):
        self.name, self.kind = name, kind
        self.c_name = snake(self.name)
        self.first, self.last = versions(words[0], NEVER)
        self.flexible = int(words[2]) if words[1:2] == ['flexible'] else None
        self.structs = []                      # in the order of need: the innermost first
        self.root = Struct(self.c_name, self.first, self.last)

    def is_flexible(self, version):
        return self.flexible is not None and version >= self.flexible

    def name_structs(self, struct):
        """A nested struct is called after its field; where that is taken, after its parent and its field."""
        for f in struct.fields:
            if f.sub is None:
                continue
            name = f'{self.c_name}_{f.name}'
            if any(s.c_name == name for s in self.structs):
                name = f'{struct.c_name}_{f.name}'
            f.sub.c_name = name
            self.structs.append(f.sub)
        for f in struct.fields:
            if f.sub is not None:
                self.name_structs(f.sub)


class Api:
    def __init__(self, words):
        self.key, self.name, self.klog_only = int(words[1]), words[2], 'klog_only' in words[3:]
        self.messages = {}


def add_field(message, stack, line):
    """stack[i] is the struct whose members are indented by 4 * (i + 1)."""
    m = LINE.match(line)
    if m is None:
        raise SchemaError('not understood')
    depth = len(m['indent']) // 4
    if len(m['indent']) % 4 or not 1 <= depth <= len(stack):
        raise SchemaError('indented wrongly')
    del stack[depth:]
    parent = stack[-1]
    f = Field(m, parent)
    if any(g.name == f.name for g in parent.fields):
        raise SchemaError(f'{f.name} is there twice')
    if f.tag is not None and (message.flexible is None or f.first < message.flexible):
        raise SchemaError(f'{f.name}: a tag needs a flexible version')
    if f.type == '{}' or (f.type == '[]' and f.elem is None):
        f.sub = Struct('', f.first, f.last)
        stack.append(f.sub)
    parent.fields.append(f)


def read_schema(path):
    """-> (Api or None, {name: Message} of its data messages)"""
    api, data, message, stack = None, {}, None, []
    with open(path, encoding='ascii') as file:
        for number, line in enumerate(file, 1):
            line = line.split('#')[0].rstrip()
            if not line:
                continue
            try:
                words = line.split()
                if line.startswith('api '):
                    api = Api(words)
                    continue
                if words[0] in ('request', 'response') and not line.startswith(' '):
                    message = Message(api.name + words[0].capitalize(), words[0], words[1:])
                    api.messages[words[0]] = message
                    stack = [message.root]
                elif words[0] == 'data' and not line.startswith(' '):
                    message = data[words[1]] = Message(words[1], words[0], words[2:])
                    stack = [message.root]
                else:
                    add_field(message, stack, line)
            except (SchemaError, ValueError, IndexError, AttributeError) as e:
                raise SystemExit(f'{path}:{number}: {e}') from None
    for message in [*(api.messages if api else {}).values(), *data.values()]:
        message.name_structs(message.root)
        message.structs = [message.root] + message.structs
        message.structs.reverse()
        for s in message.structs:
            if not s.fields:
                raise SystemExit(f'{path}: {s.c_name} has no fields')
    return api, data


def struct_default(struct):
    return ', '.join(i for f in struct.fields for i in f.c_default())


NOTICE = '/* Generated by lib/wire/gen.py from lib/wire/schema/. Change those. */'


def header(apis, messages):
    out = [NOTICE, '#ifndef KLOG_WIRE_MESSAGES_H', '#define KLOG_WIRE_MESSAGES_H', '', 'enum api_key {']
    out += [f'    API_{snake(a.name).upper()} = {a.key},' for a in apis]
    out += ['};']
    for m, _ in messages:
        for s in m.structs:
            out += ['', f'struct {s.c_name} {{']
            for f in s.fields:
                out += [f'    {member}' for member in f.c_members()]
            out += ['};', f'extern const struct wire_struct wire_struct_{s.c_name};']
        out += [f'extern const struct wire_message wire_{m.c_name};']
    return out + ['', '#endif']


def struct_tables(message, struct):
    name = struct.c_name
    plain, tagged = struct.plain(), struct.tagged()
    min_bytes = [struct.min_bytes(v, message.is_flexible(v)) if struct.first <= v <= struct.last else 0
                 for v in range(message.last + 1)]
    return ['', f'static const struct {name} {name}_defaults = {{ {struct_default(struct) or 0} }};',
            f'static const struct wire_field {name}_fields[] = {{',
            *[f.c_row(struct) for f in plain + tagged], '};',
            f'static const uint16_t {name}_min[] = {{ {", ".join(map(str, min_bytes))} }};',
            f'const struct wire_struct wire_struct_{name} = {{',
            f'    "{name}", {name}_fields, &{name}_defaults, {name}_min, sizeof(struct {name}), {len(plain)}, '
            f'{len(tagged)},', '};']


def tables(apis, messages):
    out = [NOTICE, '#include "lib/wire/engine.h"']
    for m, key in messages:
        for s in m.structs:
            out += struct_tables(m, s)
        flexible = 'INT16_MAX' if m.flexible is None else m.flexible
        out += ['', f'const struct wire_message wire_{m.c_name} = {{',
                f'    "{m.name}", {key}, {m.first}, {m.last}, {flexible}, '
                f'{"true" if m.kind == "request" else "false"}, &wire_struct_{m.c_name},', '};']
    out += ['', 'const struct wire_api wire_api_table[] = {']
    for a in apis:
        out += [f'    {{ {a.key}, "{a.name}", &wire_{a.messages["request"].c_name}, '
                f'&wire_{a.messages["response"].c_name}, {"true" if a.klog_only else "false"} }},']
    return out + ['};', f'const size_t wire_api_table_n = {len(apis)};']


def main(argv):
    if len(argv) != 4 or argv[1] not in ('header', 'tables'):
        raise SystemExit(__doc__)
    read = [read_schema(path) for path in sorted(glob.glob(f'{argv[3]}/*.kp'))]
    apis = sorted((api for api, _ in read if api), key=lambda a: a.key)
    for a, b in zip(apis, apis[1:]):
        if a.key == b.key:
            raise SystemExit(f'{a.name} and {b.name} have the same key {a.key}')
    messages = [(m, a.key) for a in apis for m in a.messages.values()]
    messages += [(m, -1) for _, data in read for m in data.values()]
    lines = header(apis, messages) if argv[1] == 'header' else tables(apis, messages)
    with open(argv[2], 'w', encoding='ascii') as file:
        file.write('\n'.join(lines) + '\n')


if __name__ == '__main__':
    main(sys.argv)
