/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages in memory: defaults, sizes, comparison, and the table of APIs. They go by the fields' places in
 * the structs, as the schemas' tables give them, and know no single API. Comparison looks only at the fields
 * that the version has; null and empty are different. The table of APIs is sorted by key (gen.py sees to
 * it). Pure; any thread.
 */
#include <string.h>

#include "lib/base/check.h"
#include "lib/wire/engine.h"

static bool struct_equal(const struct wire_struct *s, int version, const void *a, const void *b);

void wire_defaults(const struct wire_message *m, void *msg)
{
    memcpy(msg, m->body->defaults, m->body->size);
}

void *wire_struct_new(struct arena *a, const struct wire_struct *s, size_t n)
{
    char *p = arena_array(a, n, s->size);

    for (size_t i = 0; i < n; i++)
        memcpy(p + i * s->size, s->defaults, s->size);
    return p;
}

size_t wire_msg_size(const struct wire_message *m)
{
    return m->body->size;
}

static bool kstr_same(const struct kstr *a, const struct kstr *b)
{
    return kstr_is_null(*a) ? kstr_is_null(*b) : kstr_eq(*a, *b);
}

/* Records that are still in a file are the same when they are the same piece of it. */
static bool records_same(const struct wire_records *a, const struct wire_records *b)
{
    if (a->n != b->n || a->n <= 0)
        return a->n == b->n || (a->n < 0 && b->n < 0);
    if (a->p == NULL || b->p == NULL)
        return a->p == b->p && a->ext == b->ext;
    return memcmp(a->p, b->p, (size_t)a->n) == 0;
}

/* A value of any type but an array; `type` is that of f or of its elements. */
static bool value_equal(const struct wire_field *f, int type, int version, const void *a, const void *b)
{
    switch (type) {
    case WIRE_STR:
    case WIRE_BYTES:
        return kstr_same(a, b);
    case WIRE_RECORDS:
        return records_same(a, b);
    case WIRE_STRUCT:
        return struct_equal(f->sub, version, a, b);
    default:
        return memcmp(a, b, f->size) == 0;
    }
}

static bool array_equal(const struct wire_field *f, int version, const void *a, const void *b)
{
    int32_t n = wire_count(f, a), other = wire_count(f, b);
    const char *p = wire_elems(f, a), *q = wire_elems(f, b);

    if (n != other)
        return n < 0 && other < 0;
    for (int32_t i = 0; i < n; i++, p += f->size, q += f->size)
        if (!value_equal(f, f->elem, version, p, q))
            return false;
    return true;
}

bool wire_field_equal(const struct wire_field *f, int version, const void *a, const void *b)
{
    if (f->type == WIRE_ARRAY)
        return array_equal(f, version, a, b);
    if (!wire_is_there(f, a) || !wire_is_there(f, b))
        return wire_is_there(f, a) == wire_is_there(f, b);
    return value_equal(f, f->type, version, (const char *)a + f->at, (const char *)b + f->at);
}

static bool struct_equal(const struct wire_struct *s, int version, const void *a, const void *b)
{
    for (int i = 0; i < s->n_plain + s->n_tagged; i++) {
        const struct wire_field *f = &s->fields[i];
        if ((version == WIRE_ANY_VERSION || wire_field_in(f, version)) && !wire_field_equal(f, version, a, b))
            return false;
    }
    return true;
}

bool wire_equal(const struct wire_message *m, int version, const void *a, const void *b)
{
    return struct_equal(m->body, version, a, b);
}

const struct wire_api *wire_api_find(int16_t key)
{
    size_t low = 0, high = wire_api_table_n;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (wire_api_table[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low < wire_api_table_n && wire_api_table[low].key == key ? &wire_api_table[low] : NULL;
}

const struct wire_api *wire_api_at(size_t i)
{
    return i < wire_api_table_n ? &wire_api_table[i] : NULL;
}
