/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables that gen.py makes and the engine (decode.c, encode.c, errors.c, value.c, json.c, random.c) walks. Constant
 * data, any thread. Private to lib/wire.
 *
 * W1. A message in memory is always whole: a field that its version does not have holds its default.
 * W2. The walk is as deep as the schema nests, never deeper: the tables hold no cycle.
 */
#ifndef KLOG_WIRE_ENGINE_H
#define KLOG_WIRE_ENGINE_H

#include <stddef.h>
#include <string.h>

#include "lib/wire/wire.h"

enum wire_type {
    WIRE_BOOL,
    WIRE_I8,
    WIRE_I16,
    WIRE_I32,
    WIRE_I64,
    WIRE_F64,
    WIRE_UUID,
    WIRE_STR,
    WIRE_BYTES,
    WIRE_RECORDS,
    WIRE_ARRAY,
    WIRE_STRUCT,
};

struct wire_field {
    const char *name;
    const struct wire_struct *sub; /* of WIRE_STRUCT, and of an array of structs */
    uint16_t at;                   /* where the member lies in its struct */
    uint16_t n_at;                 /* WIRE_ARRAY: where its count lies; a nullable WIRE_STRUCT: its bool has_NAME; else 0 */
    uint16_t size;                 /* bytes in memory of the value, or of an element */
    uint8_t type;                  /* enum wire_type */
    uint8_t elem;                  /* WIRE_ARRAY: type of the elements */
    int8_t first, last;            /* versions that have it */
    int8_t null_from;              /* first version in which it may be null */
    int8_t tag;                    /* -1: not tagged */
    bool ignorable;
    bool is_error; /* error_code: one of lib/base/kerr.def */
};

struct wire_struct {
    const char *name;
    const struct wire_field *fields; /* the plain ones in wire order, then the tagged ones by tag */
    const void *defaults;            /* an image of the struct with every field at its default */
    const uint16_t *min_bytes;       /* by version: the fewest bytes that hold one */
    uint32_t size;
    uint16_t n_plain, n_tagged;
};

extern const struct wire_api wire_api_table[]; /* by key, ascending */
extern const size_t wire_api_table_n;

static inline bool wire_field_in(const struct wire_field *f, int version)
{
    return version >= f->first && version <= f->last;
}

static inline int32_t wire_count(const struct wire_field *f, const void *owner)
{
    return *(const int32_t *)(const void *)((const char *)owner + f->n_at);
}

/* Of a struct that may be null; every other field is there. */
static inline bool wire_is_there(const struct wire_field *f, const void *owner)
{
    return f->type != WIRE_STRUCT || f->n_at == 0 || *(const bool *)((const char *)owner + f->n_at);
}

static inline const void *wire_elems(const struct wire_field *f, const void *owner)
{
    return *(void *const *)(const void *)((const char *)owner + f->at);
}

/* Puts a number into a member of `size` bytes: 1, 2, 4 or 8; of a boolean the lowest bit. */
static inline void wire_put_number(int type, size_t size, int64_t v, void *ret)
{
    switch (size) {
    case 1:
        *(uint8_t *)ret = (uint8_t)(type == WIRE_BOOL ? v & 1 : v);
        break;
    case 2:
        *(uint16_t *)ret = (uint16_t)v;
        break;
    case 4:
        *(uint32_t *)ret = (uint32_t)v;
        break;
    default:
        memcpy(ret, &v, sizeof v);
    }
}

/* Is member f the same in both structs? Fields that `version` does not have play no part. */
enum { WIRE_ANY_VERSION = -1 }; /* compare every field */
bool wire_field_equal(const struct wire_field *f, int version, const void *a, const void *b);

#endif
