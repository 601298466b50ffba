/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Message -> one line of JSON, for traces, dumps and golden tests. Pure; any thread. Bytes are printed as
 * hex, ids in Kafka's text form, records as their size; a byte that is not UTF-8 becomes U+FFFD.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/wire/engine.h"
#include "lib/wire/wr.h"

static void print_struct(const struct wire_struct *s, int version, const void *msg, struct bytebuf *b);

/* Length of a UTF-8 character by its first byte; 0: no character begins so. */
static size_t utf8_claimed_length(uint8_t first)
{
    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* Length of the UTF-8 character at p, or 0 when there is none (RFC 3629: no surrogates, nothing overlong). */
static size_t utf8_length(const uint8_t *p, size_t left)
{
    size_t n = utf8_claimed_length(p[0]);

    if (n > left)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
        (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return n;
}

static void print_string(struct kstr s, struct bytebuf *b)
{
    bytebuf_adds(b, "\"");
    for (size_t at = 0, n; at < (size_t)s.n; at += MAX(n, (size_t)1)) {
        const uint8_t *p = (const uint8_t *)s.p + at;
        n = utf8_length(p, (size_t)s.n - at);
        if (n == 0)
            bytebuf_adds(b, "\xef\xbf\xbd");
        else if (*p == '"' || *p == '\\')
            bytebuf_printf(b, "\\%c", *p);
        else if (*p < 0x20 || *p == 0x7f)
            bytebuf_printf(b, "\\u%04x", *p);
        else
            bytebuf_add(b, p, n);
    }
    bytebuf_adds(b, "\"");
}

static void print_hex(struct kstr s, struct bytebuf *b)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t *to = wr_room(b, 2 * (size_t)s.n + 2);

    *to++ = '"';
    for (int32_t i = 0; i < s.n; i++) {
        *to++ = (uint8_t)digits[(uint8_t)s.p[i] >> 4];
        *to++ = (uint8_t)digits[(uint8_t)s.p[i] & 15];
    }
    *to = '"';
}

static void print_kstr(int type, struct kstr s, struct bytebuf *b)
{
    if (kstr_is_null(s))
        bytebuf_adds(b, "null");
    else if (type == WIRE_STR)
        print_string(s, b);
    else
        print_hex(s, b);
}

static void print_records(const struct wire_records *r, struct bytebuf *b)
{
    if (r->n < 0)
        bytebuf_adds(b, "null");
    else
        bytebuf_printf(b, "{\"size_bytes\":%" PRId32 "}", r->n);
}

static void print_double(double v, struct bytebuf *b)
{
    if (isfinite(v))
        bytebuf_printf(b, "%.17g", v);
    else
        bytebuf_adds(b, "null");
}

static void print_uuid(const struct uuid *u, struct bytebuf *b)
{
    char text[UUID_TEXT_LEN + 1];

    uuid_text(u, text);
    bytebuf_printf(b, "\"%s\"", text);
}

/* A value of any type but an array. */
static void print_value(int type, const struct wire_struct *sub, int version, const void *v,
                        struct bytebuf *b)
{
    switch ((enum wire_type)type) {
    case WIRE_BOOL:
        bytebuf_adds(b, *(const bool *)v ? "true" : "false");
        break;
    case WIRE_I8:
        bytebuf_printf(b, "%d", *(const int8_t *)v);
        break;
    case WIRE_I16:
        bytebuf_printf(b, "%d", *(const int16_t *)v);
        break;
    case WIRE_I32:
        bytebuf_printf(b, "%" PRId32, *(const int32_t *)v);
        break;
    case WIRE_I64:
        bytebuf_printf(b, "%" PRId64, *(const int64_t *)v);
        break;
    case WIRE_F64:
        print_double(*(const double *)v, b);
        break;
    case WIRE_UUID:
        print_uuid(v, b);
        break;
    case WIRE_STR:
    case WIRE_BYTES:
        print_kstr(type, *(const struct kstr *)v, b);
        break;
    case WIRE_RECORDS:
        print_records(v, b);
        break;
    case WIRE_STRUCT:
        print_struct(sub, version, v, b);
        break;
    case WIRE_ARRAY:
        KCHECK(!"an array of arrays");
    }
}

static void print_array(const struct wire_field *f, int version, const void *owner, struct bytebuf *b)
{
    int32_t n = wire_count(f, owner);
    const char *p = wire_elems(f, owner);

    if (n < 0) {
        bytebuf_adds(b, "null");
        return;
    }
    bytebuf_adds(b, "[");
    for (int32_t i = 0; i < n; i++) {
        bytebuf_adds(b, i > 0 ? "," : "");
        print_value(f->elem, f->sub, version, p + (size_t)i * f->size, b);
    }
    bytebuf_adds(b, "]");
}

static void print_struct(const struct wire_struct *s, int version, const void *msg, struct bytebuf *b)
{
    const char *between = "{";

    for (int i = 0; i < s->n_plain + s->n_tagged; i++) {
        const struct wire_field *f = &s->fields[i];
        if (!wire_field_in(f, version))
            continue;
        bytebuf_printf(b, "%s\"%s\":", between, f->name);
        between = ",";
        if (f->type == WIRE_ARRAY)
            print_array(f, version, msg, b);
        else if (!wire_is_there(f, msg))
            bytebuf_adds(b, "null");
        else
            print_value(f->type, f->sub, version, (const char *)msg + f->at, b);
    }
    bytebuf_adds(b, *between == '{' ? "{}" : "}");
}

void wire_print_json(const struct wire_message *m, int version, const void *msg, struct bytebuf *ret)
{
    print_struct(m->body, version, msg, ret);
}
