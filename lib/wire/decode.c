/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes -> message. Pure; any thread. The input is never trusted:
 *
 * D1. No memory is reserved for a count before the bytes that are left could hold that many elements.
 * D2. An answer takes at most WIRE_DECODED_MAX_BYTES of the arena, a request WIRE_REQUEST_DECODED_MAX_BYTES,
 *     however small its elements are.
 * D3. A message fills its input to the last byte, and a tagged field fills its size.
 * D4. Tags ascend; a tag that the version does not know is skipped.
 * D5. A string has at most 32767 bytes, also in the versions whose notation could carry more, as in Kafka: so what one
 *     version takes can be kept in a record and said in any other.
 */
#include <errno.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/wire/engine.h"
#include "lib/wire/rd.h"

/* The smallest elements are 2 bytes on the wire and some 50 in memory: without a limit of its own a frame of
 * 100 MB could ask for gigabytes. 200,000 partitions in a Metadata response take about 25 MB. */
enum {
    WIRE_DECODED_MAX_BYTES = 256 << 20,
    WIRE_REQUEST_DECODED_MAX_BYTES = 16 << 20, /* a Fetch that names 200,000 partitions takes 13 MB */
    SMALL_ARRAY_BYTES = 2048,                  /* a larger one may fail for want of memory */
};

struct decoder {
    struct rd r;
    struct arena *arena;
    size_t room_bytes; /* left of what the message may take */
    int version;
    bool flexible;
    int why; /* -ENOMEM, -EMSGSIZE: what made the input bad was not the input alone */
};

static void decode_struct(struct decoder *d, const struct wire_struct *s, void *ret);

/* The length or count in front of a value: -1 for null. A compact one is one higher, with 0 for null. */
static int32_t decode_length(struct decoder *d, bool wide, bool null_ok)
{
    int64_t n;

    if (d->flexible)
        n = (int64_t)rd_uvarint(&d->r) - 1;
    else
        n = wide ? rd_i32(&d->r) : rd_i16(&d->r);
    if (unlikely(n > (wide ? INT32_MAX : INT16_MAX) || n < (null_ok ? -1 : 0)))
        rd_fail(&d->r);
    return d->r.bad ? 0 : (int32_t)n;
}

static struct slice decode_blob(struct decoder *d, bool wide, bool null_ok, int32_t *ret_n)
{
    int32_t n = decode_length(d, wide, null_ok);
    const uint8_t *p = n < 0 ? NULL : rd_take(&d->r, (size_t)n);

    *ret_n = n >= 0 && p == NULL ? 0 : n;
    return (struct slice){ p, n < 0 ? 0 : (size_t)n };
}

static void decode_kstr(struct decoder *d, bool wide, bool null_ok, struct kstr *ret)
{
    ret->p = (const char *)decode_blob(d, wide, null_ok, &ret->n).p;
}

static void decode_records(struct decoder *d, bool null_ok, struct wire_records *ret)
{
    ret->p = decode_blob(d, true, null_ok, &ret->n).p;
    ret->ext = NULL;
}

static void decode_uuid(struct decoder *d, struct uuid *ret)
{
    const uint8_t *p = rd_take(&d->r, sizeof ret->b);

    if (p != NULL)
        memcpy(ret->b, p, sizeof ret->b);
}

/* A value of any type but an array. */
static void decode_value(struct decoder *d, int type, const struct wire_struct *sub, bool null_ok, void *ret)
{
    switch ((enum wire_type)type) {
    case WIRE_BOOL:
        *(bool *)ret = rd_u8(&d->r) != 0;
        break;
    case WIRE_I8:
        *(int8_t *)ret = (int8_t)rd_u8(&d->r);
        break;
    case WIRE_I16:
        *(int16_t *)ret = rd_i16(&d->r);
        break;
    case WIRE_I32:
        *(int32_t *)ret = rd_i32(&d->r);
        break;
    case WIRE_I64:
    case WIRE_F64:
        *(int64_t *)ret = rd_i64(&d->r);
        break;
    case WIRE_UUID:
        decode_uuid(d, ret);
        break;
    case WIRE_STR:
        decode_kstr(d, false, null_ok, ret);
        break;
    case WIRE_BYTES:
        decode_kstr(d, true, null_ok, ret);
        break;
    case WIRE_RECORDS:
        decode_records(d, null_ok, ret);
        break;
    case WIRE_STRUCT:
        decode_struct(d, sub, ret);
        break;
    case WIRE_ARRAY:
        KCHECK(!"an array of arrays");
    }
}

static size_t elem_min_bytes(const struct decoder *d, const struct wire_field *f)
{
    switch (f->elem) {
    case WIRE_STRUCT:
        return MAX(f->sub->min_bytes[d->version], 1);
    case WIRE_STR:
        return d->flexible ? 1 : 2;
    case WIRE_BYTES:
        return d->flexible ? 1 : 4;
    default:
        return f->size;
    }
}

static void *decode_refuse(struct decoder *d, int why)
{
    d->why = why;
    rd_fail(&d->r);
    return NULL;
}

/* Room for n elements, each at its default; NULL (and failed) when there cannot be that many. */
static char *decode_reserve(struct decoder *d, const struct wire_field *f, int32_t n)
{
    if (unlikely((size_t)n > rd_left(&d->r) / elem_min_bytes(d, f))) {
        rd_fail(&d->r);
        return NULL;
    }
    if (unlikely((size_t)n > d->room_bytes / f->size))
        return decode_refuse(d, -EMSGSIZE);
    size_t bytes = (size_t)n * f->size;
    if (unlikely(bytes > SMALL_ARRAY_BYTES && !arena_try_reserve(d->arena, bytes)))
        return decode_refuse(d, -ENOMEM);
    d->room_bytes -= bytes;
    if (f->elem == WIRE_STRUCT)
        return wire_struct_new(d->arena, f->sub, (size_t)n);
    return arena_array(d->arena, (size_t)n, f->size);
}

static void decode_array(struct decoder *d, const struct wire_field *f, void *owner)
{
    int32_t n = decode_length(d, true, d->version >= f->null_from);
    char *p = n <= 0 ? NULL : decode_reserve(d, f, n);

    if (n > 0 && p == NULL)
        n = 0;
    *(void **)(void *)((char *)owner + f->at) = p;
    *(int32_t *)(void *)((char *)owner + f->n_at) = n;
    for (int32_t i = 0; i < n && !d->r.bad; i++)
        decode_value(d, f->elem, f->sub, false, p + (size_t)i * f->size);
}

/* A byte in front says whether it is there: negative, it is not. */
static void decode_nullable(struct decoder *d, const struct wire_field *f, void *owner)
{
    bool *has = (bool *)((char *)owner + f->n_at);

    *has = d->version < f->null_from || (int8_t)rd_u8(&d->r) >= 0;
    if (*has)
        decode_struct(d, f->sub, (char *)owner + f->at);
}

static inline void decode_field(struct decoder *d, const struct wire_field *f, void *owner)
{
    if (f->type == WIRE_ARRAY)
        decode_array(d, f, owner);
    else if (f->type == WIRE_STRUCT && f->n_at > 0)
        decode_nullable(d, f, owner);
    else
        decode_value(d, f->type, f->sub, d->version >= f->null_from, (char *)owner + f->at);
}

static const struct wire_field *find_tag(const struct decoder *d, const struct wire_struct *s, uint32_t tag)
{
    for (int i = s->n_plain; i < s->n_plain + s->n_tagged; i++)
        if ((uint32_t)s->fields[i].tag == tag && wire_field_in(&s->fields[i], d->version))
            return &s->fields[i];
    return NULL;
}

static void decode_tag(struct decoder *d, const struct wire_field *f, uint32_t size, void *owner)
{
    struct rd inner = rd_sub(&d->r, size);

    if (f == NULL || inner.bad)
        return;
    struct rd outer = d->r;
    d->r = inner;
    decode_field(d, f, owner);
    if (d->r.bad || rd_left(&d->r) > 0)
        rd_fail(&outer);
    d->r = outer;
}

static void decode_tags(struct decoder *d, const struct wire_struct *s, void *owner)
{
    uint32_t n = rd_uvarint(&d->r);
    int64_t last = -1;

    for (; n > 0 && !d->r.bad; n--) {
        uint32_t tag = rd_uvarint(&d->r);
        uint32_t size = rd_uvarint(&d->r);
        if ((int64_t)tag <= last)
            rd_fail(&d->r);
        else
            decode_tag(d, find_tag(d, s, tag), size, owner);
        last = tag;
    }
}

/* *ret holds the defaults already. */
static void decode_struct(struct decoder *d, const struct wire_struct *s, void *ret)
{
    for (int i = 0; i < s->n_plain; i++)
        if (wire_field_in(&s->fields[i], d->version))
            decode_field(d, &s->fields[i], ret);
    if (d->flexible)
        decode_tags(d, s, ret);
}

/* 0 with what is left of the input; -EBADMSG, -EMSGSIZE, -ENOMEM. */
static int decode_message(const struct wire_message *m, int version, struct slice in, size_t max_bytes,
                          struct arena *a, void *ret, size_t *ret_left)
{
    KCHECK(version >= m->min_version && version <= m->max_version);

    struct decoder d = {
        .r = rd_of(in),
        .arena = a,
        .room_bytes = max_bytes,
        .version = version,
        .flexible = version >= m->flexible_version,
        .why = -EBADMSG,
    };
    wire_defaults(m, ret);
    decode_struct(&d, m->body, ret);
    *ret_left = rd_left(&d.r);
    return d.r.bad ? d.why : 0;
}

int wire_decode(const struct wire_message *m, int version, struct slice in, struct arena *a, void *ret)
{
    size_t left;
    int rc = decode_message(m, version, in, WIRE_DECODED_MAX_BYTES, a, ret, &left);

    return rc == 0 && left > 0 ? -EBADMSG : rc;
}

int wire_decode_request(const struct wire_message *m, int version, struct slice in, struct arena *a,
                        void *ret)
{
    size_t left;

    return decode_message(m, version, in, WIRE_REQUEST_DECODED_MAX_BYTES, a, ret, &left);
}
