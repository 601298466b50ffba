/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes up messages, the same for the same seed, for round-trip and fuzz tests. It goes by the tables of the
 * schemas, so that a new API is tested by being there: every field of the version, tagged ones every other
 * time, null where the version allows it, numbers of every size, now and then lengths that need two bytes in
 * compact form. Everything it makes is in the caller's arena. Pure; any thread.
 */
#include <string.h>

#include "lib/base/check.h"
#include "lib/wire/engine.h"

struct maker {
    uint64_t *seed;
    struct arena *arena;
    int version;
};

static void make_struct(struct maker *k, const struct wire_struct *s, void *ret);

/* splitmix64 */
static uint64_t next(struct maker *k)
{
    uint64_t z = *k->seed += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint32_t below(struct maker *k, uint32_t n)
{
    return (uint32_t)(next(k) % n);
}

/* Mostly short, now and then longer than one byte of a compact length can say. */
static char *make_bytes(struct maker *k, int32_t *ret_n)
{
    uint32_t n = below(k, 16) == 0 ? below(k, 400) : below(k, 12);
    char *p = arena_alloc(k->arena, n + 1);

    for (uint32_t i = 0; i < n; i++)
        p[i] = (char)next(k);
    *ret_n = (int32_t)n;
    return p;
}

static void make_blob(struct maker *k, int type, bool null_ok, void *ret)
{
    int32_t n;
    char *p = make_bytes(k, &n);

    if (null_ok && below(k, 4) == 0) {
        p = NULL;
        n = -1;
    }
    if (type == WIRE_RECORDS)
        *(struct wire_records *)ret = (struct wire_records){ .p = (const uint8_t *)p, .n = n };
    else
        *(struct kstr *)ret = (struct kstr){ p, n };
}

/* Numbers of every size: the high bits are thrown away at random. An id is two of them. */
static void make_number(struct maker *k, int type, size_t size, void *ret)
{
    uint64_t v = next(k) >> below(k, 64);
    uint64_t first = below(k, 4) == 0 ? 0 - v : v;

    wire_put_number(type, size, (int64_t)first, ret);
    if (size > sizeof v)
        memcpy((char *)ret + sizeof first, &v, sizeof v);
}

/* A value of any type but an array; `type` is that of f or of its elements. */
static void make_value(struct maker *k, const struct wire_field *f, int type, bool null_ok, void *ret)
{
    switch (type) {
    case WIRE_STR:
    case WIRE_BYTES:
    case WIRE_RECORDS:
        make_blob(k, type, null_ok, ret);
        break;
    case WIRE_STRUCT:
        make_struct(k, f->sub, ret);
        break;
    default:
        make_number(k, type, f->size, ret);
    }
}

static void make_array(struct maker *k, const struct wire_field *f, bool null_ok, void *owner)
{
    int32_t n = below(k, 32) == 0 ? (int32_t)below(k, 150) : (int32_t)below(k, 4);

    if (f->elem == WIRE_STRUCT)
        n = MIN(n, 4);
    char *p = n == 0 ? NULL : arena_array(k->arena, (size_t)n, f->size);
    for (int32_t i = 0; i < n; i++)
        make_value(k, f, f->elem, false, p + (size_t)i * f->size);
    if (n == 0 && null_ok && below(k, 2) == 0)
        n = -1;
    memcpy((char *)owner + f->at, &p, sizeof p);
    memcpy((char *)owner + f->n_at, &n, sizeof n);
}

static void make_nullable(struct maker *k, const struct wire_field *f, void *owner)
{
    bool has = k->version < f->null_from || below(k, 4) > 0;

    memcpy((char *)owner + f->n_at, &has, sizeof has);
    if (has)
        make_struct(k, f->sub, (char *)owner + f->at);
}

static void make_struct(struct maker *k, const struct wire_struct *s, void *ret)
{
    memcpy(ret, s->defaults, s->size);
    for (int i = 0; i < s->n_plain + s->n_tagged; i++) {
        const struct wire_field *f = &s->fields[i];
        if (!wire_field_in(f, k->version) || (f->tag >= 0 && below(k, 2) == 0))
            continue;
        if (f->type == WIRE_ARRAY)
            make_array(k, f, k->version >= f->null_from, ret);
        else if (f->type == WIRE_STRUCT && f->n_at > 0)
            make_nullable(k, f, ret);
        else
            make_value(k, f, f->type, k->version >= f->null_from, (char *)ret + f->at);
    }
}

void wire_random(const struct wire_message *m, int version, uint64_t *seed, struct arena *a, void *ret)
{
    KCHECK(version >= m->min_version && version <= m->max_version);

    struct maker k = { .seed = seed, .arena = a, .version = version };
    make_struct(&k, m->body, ret);
}
