/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Message -> bytes. Pure; any thread.
 *
 * E1. What a version cannot carry is refused by name, not dropped, unless the schema calls it ignorable.
 * E2. Records in a file are not copied: the encoder writes their length, leaves a gap and says where.
 * E3. A refused message leaves the output as it was.
 * E4. The output grows to max_bytes and no further, and there may be no memory for it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/wire/engine.h"
#include "lib/wire/wr.h"

/* Between two looks at the room that is left an encoder writes the plain fields of one struct. */
enum { FIELDS_BYTES = 512 };

struct encoder {
    struct wire_out *out;
    const char *bad_field; /* the first that could not be encoded; NULL: all is well */
    int why;               /* -EPROTO, -EMSGSIZE, -ENOMEM */
    int version;
    bool flexible;
};

static void encode_struct(struct encoder *e, const struct wire_struct *s, const void *msg);

static void refuse(struct encoder *e, const struct wire_field *f)
{
    if (e->bad_field != NULL)
        return;
    e->bad_field = f->name;
    e->why = -EPROTO;
}

/* Room for n bytes and some fields; false: refused, since it would be too much or memory is out. */
static bool encode_room(struct encoder *e, const struct wire_field *f, size_t n)
{
    struct wire_out *o = e->out;

    if (likely(o->b.cap - o->b.n >= n + FIELDS_BYTES && (o->max_bytes == 0 || o->b.n + n <= o->max_bytes)))
        return true;
    int why = o->max_bytes > 0 && o->b.n + n > o->max_bytes  ? -EMSGSIZE
              : !bytebuf_try_room(&o->b, n + FIELDS_BYTES) ? -ENOMEM
                                                             : 0;
    if (why == 0)
        return true;
    refuse(e, f);
    e->why = why;
    return false;
}

/* The length or count of a value, n < 0 for null. False: refused. */
static bool encode_length(struct encoder *e, const struct wire_field *f, bool wide, bool null_ok, int32_t n)
{
    if (unlikely((n < 0 && !null_ok) || (!wide && n > INT16_MAX))) {
        refuse(e, f);
        return false;
    }
    if (n < 0)
        n = -1;
    if (e->flexible)
        wr_uvarint(&e->out->b, (uint32_t)n + 1);
    else if (wide)
        wr_i32(&e->out->b, n);
    else
        wr_i16(&e->out->b, (int16_t)n);
    return true;
}

static void encode_kstr(struct encoder *e, const struct wire_field *f, bool wide, bool null_ok,
                        const struct kstr *s)
{
    if (encode_length(e, f, wide, null_ok, s->n) && s->n > 0 && encode_room(e, f, (size_t)s->n))
        wr_bytes(&e->out->b, s->p, (size_t)s->n);
}

static void gap_add(struct wire_out *o, int32_t n, void *ext)
{
    if ((o->n_gaps & (o->n_gaps - 1)) == 0) /* 0, 1, 2, 4, ...: full, twice the room */
        o->gaps = xreallocarray(o->gaps, MAX(o->n_gaps * 2, (size_t)1), sizeof *o->gaps);
    o->gaps[o->n_gaps++] = (struct wire_gap){ .at = o->b.n, .n = n, .ext = ext };
    o->gap_bytes += (size_t)n;
}

static void encode_records(struct encoder *e, const struct wire_field *f, bool null_ok,
                           const struct wire_records *r)
{
    if (!encode_length(e, f, true, null_ok, r->n) || r->n <= 0)
        return;
    if (r->p == NULL)
        gap_add(e->out, r->n, r->ext);
    else if (encode_room(e, f, (size_t)r->n))
        wr_bytes(&e->out->b, r->p, (size_t)r->n);
}

/* A value of any type but an array. */
static void encode_value(struct encoder *e, const struct wire_field *f, int type, bool null_ok, const void *v)
{
    struct bytebuf *b = &e->out->b;

    switch ((enum wire_type)type) {
    case WIRE_BOOL:
        wr_u8(b, *(const bool *)v);
        break;
    case WIRE_I8:
        wr_u8(b, *(const uint8_t *)v);
        break;
    case WIRE_I16:
        wr_i16(b, *(const int16_t *)v);
        break;
    case WIRE_I32:
        wr_i32(b, *(const int32_t *)v);
        break;
    case WIRE_I64:
    case WIRE_F64:
        wr_i64(b, *(const int64_t *)v);
        break;
    case WIRE_UUID:
        wr_bytes(b, v, sizeof(struct uuid));
        break;
    case WIRE_STR:
        encode_kstr(e, f, false, null_ok, v);
        break;
    case WIRE_BYTES:
        encode_kstr(e, f, true, null_ok, v);
        break;
    case WIRE_RECORDS:
        encode_records(e, f, null_ok, v);
        break;
    case WIRE_STRUCT:
        encode_struct(e, f->sub, v);
        break;
    case WIRE_ARRAY:
        KCHECK(!"an array of arrays");
    }
}

static void encode_array(struct encoder *e, const struct wire_field *f, const void *owner)
{
    int32_t n = wire_count(f, owner);
    const char *p = wire_elems(f, owner);

    if (!encode_length(e, f, true, e->version >= f->null_from, n))
        return;
    for (int32_t i = 0; i < n && e->bad_field == NULL && encode_room(e, f, 0); i++)
        encode_value(e, f, f->elem, false, p + (size_t)i * f->size);
}

static void encode_nullable(struct encoder *e, const struct wire_field *f, const void *owner)
{
    bool has = wire_is_there(f, owner), null_ok = e->version >= f->null_from;

    if (!has && !null_ok) {
        refuse(e, f);
        return;
    }
    if (null_ok)
        wr_u8(&e->out->b, has ? 1 : 0xff);
    if (has)
        encode_struct(e, f->sub, (const char *)owner + f->at);
}

static inline void encode_field(struct encoder *e, const struct wire_field *f, const void *owner)
{
    if (f->type == WIRE_ARRAY)
        encode_array(e, f, owner);
    else if (f->type == WIRE_STRUCT && f->n_at > 0)
        encode_nullable(e, f, owner);
    else
        encode_value(e, f, f->type, e->version >= f->null_from, (const char *)owner + f->at);
}

/* A tagged field at its default is left out. */
static bool tag_is_sent(const struct encoder *e, const struct wire_struct *s, const struct wire_field *f,
                        const void *msg)
{
    return wire_field_in(f, e->version) && !wire_field_equal(f, WIRE_ANY_VERSION, msg, s->defaults);
}

static void encode_tags(struct encoder *e, const struct wire_struct *s, const void *msg)
{
    const struct wire_field *end = s->fields + s->n_plain + s->n_tagged;
    struct bytebuf *b = &e->out->b;
    uint8_t n = 0;

    for (const struct wire_field *f = s->fields + s->n_plain; f < end; f++)
        n += tag_is_sent(e, s, f, msg);
    wr_u8(b, n);
    if (n == 0)
        return;
    for (const struct wire_field *f = s->fields + s->n_plain; f < end; f++) {
        if (!tag_is_sent(e, s, f, msg))
            continue;
        wr_u8(b, (uint8_t)f->tag);
        size_t at = b->n;
        encode_field(e, f, msg);
        wr_insert_size(b, at);
    }
}

static void check_outside(struct encoder *e, const struct wire_struct *s, const struct wire_field *f,
                          const void *msg)
{
    if (!f->ignorable && !wire_field_equal(f, WIRE_ANY_VERSION, msg, s->defaults))
        refuse(e, f);
}

static void encode_struct(struct encoder *e, const struct wire_struct *s, const void *msg)
{
    for (int i = 0; i < s->n_plain; i++) {
        const struct wire_field *f = &s->fields[i];
        if (wire_field_in(f, e->version))
            encode_field(e, f, msg);
        else
            check_outside(e, s, f, msg);
    }
    for (int i = s->n_plain; i < s->n_plain + s->n_tagged; i++)
        if (!wire_field_in(&s->fields[i], e->version))
            check_outside(e, s, &s->fields[i], msg);
    if (e->flexible)
        encode_tags(e, s, msg);
}

int wire_encode(const struct wire_message *m, int version, const void *msg, struct wire_out *out,
                const char **ret_field)
{
    KCHECK(version >= m->min_version && version <= m->max_version);

    size_t n = out->b.n, n_gaps = out->n_gaps, gap_bytes = out->gap_bytes;
    struct encoder e = { .out = out, .version = version, .flexible = version >= m->flexible_version };

    encode_struct(&e, m->body, msg);
    if (e.bad_field == NULL)
        return 0;
    out->b.n = n;
    out->n_gaps = n_gaps;
    out->gap_bytes = gap_bytes;
    if (ret_field != NULL)
        *ret_field = e.bad_field;
    return e.why;
}

void wire_out_done(struct wire_out *o)
{
    bytebuf_done(&o->b);
    free(o->gaps);
    *o = (struct wire_out){ 0 };
}
