/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records as lines; see render.h. Everything is measured before it is written, so that room is made once a line, and sizes can
 * be had without writing anything. Text without a byte that needs more than copying is found sixteen bytes at a time. Pure.
 */
#include "lib/view/render.h"

#include <endian.h>
#include <string.h>

#include "lib/base/attr.h"
#include "lib/base/check.h"
#include "lib/view/base64.h"
#include "lib/view/utf8.h"

/* Without numbers, and without the names and texts of key and value. */
#define JSON_FRAME   "{\"partition\":,\"offset\":,\"timestamp\":,,\"headers\":[],}\n"
#define HEADER_FRAME "{,}"

/* ---- many bytes at a time ---- */

#define ONES  0x0101010101010101u
#define HIGHS 0x8080808080808080u

/* Bytes that more than copying is needed for. */
enum special {
    JSON_SPECIAL, /* what JSON escapes */
    JSON_OR_HIGH, /* and what is not ASCII */
    TSV_SPECIAL,  /* control characters and the backslash: each escape of COPY is among them */
};

typedef uint8_t bytes16 __attribute__((vector_size(16)));

static inline bool any_special16(const uint8_t *p, enum special s)
{
    bytes16 x, m;
    uint64_t w[2];
    memcpy(&x, p, sizeof x);
    m = (bytes16)(x < 0x20) | (bytes16)(x == '\\');
    if (s != TSV_SPECIAL)
        m |= (bytes16)(x == '"');
    if (s == JSON_OR_HIGH)
        m |= (bytes16)(x >= 0x80);
    memcpy(w, &m, sizeof w);
    return (w[0] | w[1]) != 0;
}

/* High bits of bytes that are 0; right for the lowest such byte, which is all that is asked. */
static inline uint64_t zeros(uint64_t x)
{
    return (x - ONES) & ~x & HIGHS;
}

/* High bits of bytes that are special, right for the lowest one. */
static inline uint64_t special8(uint64_t x, enum special s)
{
    uint64_t m = ((x - ONES * 0x20) & ~x & HIGHS) | zeros(x ^ ONES * '\\');
    if (s != TSV_SPECIAL)
        m |= zeros(x ^ ONES * '"');
    return s == JSON_OR_HIGH ? m | (x & HIGHS) : m;
}

/* How many bytes at the front are not special. */
static inline size_t plain_prefix(const uint8_t *p, size_t n, enum special s)
{
    size_t i = 0;
    uint64_t x, m;
    while (i + 16 <= n && !any_special16(p + i, s))
        i += 16;
    for (; i + 8 <= n; i += 8) {
        memcpy(&x, p + i, 8);
        if ((m = special8(le64toh(x), s)) != 0)
            return i + (size_t)__builtin_ctzll(m) / 8;
    }
    if (i == n)
        return n;
    x = ONES * 'x';
    memcpy(&x, p + i, n - i);
    m = special8(le64toh(x), s);
    return m == 0 ? n : i + (size_t)__builtin_ctzll(m) / 8;
}

/* ---- escapes ---- */

/* What follows the backslash for a byte; 0: none. */
static char short_escape(uint8_t c, bool tsv)
{
    switch (c) {
    case '\b':
        return 'b';
    case '\f':
        return 'f';
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    case '\v':
        return tsv ? 'v' : 0;
    case '\\':
        return '\\';
    case '"':
        return tsv ? 0 : '"';
    default:
        return 0;
    }
}

/* Bytes that a byte takes. */
static size_t escape_size(uint8_t c, bool tsv)
{
    if (short_escape(c, tsv) != 0)
        return 2;
    return !tsv && c < 0x20 ? 6 : 1;
}

static uint8_t *escape_put(uint8_t *out, uint8_t c, bool tsv)
{
    char e = short_escape(c, tsv);
    if (e != 0) {
        *out++ = '\\';
        *out++ = (uint8_t)e;
    } else if (!tsv && c < 0x20) {
        memcpy(out, "\\u00", 4);
        out[4] = (uint8_t)('0' + (c >> 4));
        out[5] = (uint8_t)"0123456789abcdef"[c & 15];
        out += 6;
    } else {
        *out++ = c;
    }
    return out;
}

static inline size_t escaped_size(const uint8_t *p, size_t n, enum special special, bool tsv)
{
    size_t size = 0;
    while (n > 0) {
        size_t plain = plain_prefix(p, n, special);
        size += plain;
        if (plain == n)
            break;
        size += escape_size(p[plain], tsv);
        p += plain + 1;
        n -= plain + 1;
    }
    return size;
}

static inline uint8_t *escaped_put(uint8_t *out, const uint8_t *p, size_t n, enum special special, bool tsv)
{
    while (n > 0) {
        size_t plain = plain_prefix(p, n, special);
        memcpy(out, p, plain);
        out += plain;
        if (plain == n)
            break;
        out = escape_put(out, p[plain], tsv);
        p += plain + 1;
        n -= plain + 1;
    }
    return out;
}

/* ---- numbers ---- */

static size_t number_size(int64_t v)
{
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    size_t n = v < 0 ? 2 : 1;
    for (; u >= 10; u /= 10)
        n++;
    return n;
}

static uint8_t *number_put(uint8_t *out, int64_t v)
{
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    uint8_t *end = out + number_size(v), *p = end;
    do
        *--p = (uint8_t)('0' + u % 10);
    while ((u /= 10) > 0);
    if (v < 0)
        *--p = '-';
    return end;
}

static inline uint8_t *put(uint8_t *out, const char *text, size_t n)
{
    memcpy(out, text, n);
    return out + n;
}
#define PUT(out, literal) put(out, literal, sizeof(literal) - 1)

/* ---- json ---- */

/* How a text is told, and in how many bytes with its name. */
struct json_text {
    enum { TEXT_NULL, TEXT_COPIED, TEXT_ESCAPED, TEXT_BASE64 } how;
    size_t size;
};

static struct json_text json_measure(struct kstr s, size_t name)
{
    if (s.n < 0)
        return (struct json_text){ TEXT_NULL, name + sizeof "\"\":null" - 1 };
    const uint8_t *p = (const uint8_t *)s.p;
    size_t n = (size_t)s.n, frame = name + sizeof "\"\":\"\"" - 1, clean = plain_prefix(p, n, JSON_OR_HIGH);
    if (clean == n)
        return (struct json_text){ TEXT_COPIED, frame + n };
    if (!utf8_ok(p + clean, n - clean))
        return (struct json_text){ TEXT_BASE64, frame + sizeof "_base64" - 1 + base64_size(n) };
    size_t escaped = clean + escaped_size(p + clean, n - clean, JSON_SPECIAL, false);
    return (struct json_text){ escaped == n ? TEXT_COPIED : TEXT_ESCAPED, frame + escaped };
}

/* "key":"..." */
static uint8_t *json_put(uint8_t *out, const char *name, size_t name_size, struct kstr s, struct json_text how)
{
    size_t n = s.n > 0 ? (size_t)s.n : 0;
    *out++ = '"';
    out = put(out, name, name_size);
    if (how.how == TEXT_BASE64)
        out = PUT(out, "_base64");
    out = PUT(out, "\":");
    if (how.how == TEXT_NULL)
        return PUT(out, "null");
    *out++ = '"';
    if (how.how == TEXT_BASE64) {
        base64_encode((const uint8_t *)s.p, n, out);
        out += base64_size(n);
    } else if (how.how == TEXT_COPIED) {
        out = put(out, n > 0 ? s.p : "", n);
    } else {
        out = escaped_put(out, (const uint8_t *)s.p, n, JSON_SPECIAL, false);
    }
    *out++ = '"';
    return out;
}

static size_t json_headers_size(struct slice headers)
{
    struct kstr key, value;
    size_t size = 0;
    while (record_header_next(&headers, &key, &value) == 1)
        size += json_measure(key, 3).size + json_measure(value, 5).size + sizeof HEADER_FRAME - 1 + (size > 0);
    return size;
}

static uint8_t *json_headers_put(uint8_t *out, struct slice headers)
{
    struct kstr key, value;
    for (bool first = true; record_header_next(&headers, &key, &value) == 1; first = false) {
        if (!first)
            *out++ = ',';
        *out++ = '{';
        out = json_put(out, "key", 3, key, json_measure(key, 3));
        *out++ = ',';
        out = json_put(out, "value", 5, value, json_measure(value, 5));
        *out++ = '}';
    }
    return out;
}

struct json_line {
    struct json_text key, value;
    size_t size;
};

static inline struct json_line json_line_measure(int32_t partition, const struct record *r)
{
    struct json_line l = { json_measure(r->key, 3), json_measure(r->value, 5), 0 };
    size_t headers = r->n_headers > 0 ? json_headers_size(r->headers) : 0;
    l.size = sizeof JSON_FRAME - 1 + number_size(partition) + number_size(r->offset) +
             number_size(r->timestamp) + l.key.size + headers + l.value.size;
    return l;
}

static void json_render(int32_t partition, const struct record *r, struct bytebuf *out)
{
    struct json_line l = json_line_measure(partition, r);
    uint8_t *begin = bytebuf_room(out, l.size), *p = begin;
    p = PUT(p, "{\"partition\":");
    p = number_put(p, partition);
    p = PUT(p, ",\"offset\":");
    p = number_put(p, r->offset);
    p = PUT(p, ",\"timestamp\":");
    p = number_put(p, r->timestamp);
    *p++ = ',';
    p = json_put(p, "key", 3, r->key, l.key);
    p = PUT(p, ",\"headers\":[");
    if (r->n_headers > 0)
        p = json_headers_put(p, r->headers);
    p = PUT(p, "],");
    p = json_put(p, "value", 5, r->value, l.value);
    p = PUT(p, "}\n");
    KCHECK((size_t)(p - begin) == l.size);
    out->n += l.size;
}

/* ---- tsv ---- */

static size_t tsv_size(struct kstr s)
{
    return s.n < 0 ? 2 : escaped_size((const uint8_t *)s.p, (size_t)s.n, TSV_SPECIAL, true);
}

static uint8_t *tsv_put(uint8_t *out, struct kstr s)
{
    if (s.n < 0)
        return PUT(out, "\\N");
    return escaped_put(out, (const uint8_t *)s.p, (size_t)s.n, TSV_SPECIAL, true);
}

static void tsv_render(const struct record *r, struct bytebuf *out)
{
    size_t size = tsv_size(r->key) + tsv_size(r->value) + 2;
    uint8_t *begin = bytebuf_room(out, size), *p = tsv_put(begin, r->key);
    *p++ = '\t';
    p = tsv_put(p, r->value);
    *p++ = '\n';
    KCHECK((size_t)(p - begin) == size);
    out->n += size;
}

/* ---- all forms ---- */

static void plain_render(const struct record *r, struct bytebuf *out)
{
    size_t n = r->value.n > 0 ? (size_t)r->value.n : 0;
    uint8_t *p = bytebuf_room(out, n + 1);
    memcpy(p, n > 0 ? r->value.p : "", n);
    p[n] = '\n';
    out->n += n + 1;
}

void line_render(enum line_form form, int32_t partition, const struct record *r, struct bytebuf *out)
{
    switch (form) {
    case LINE_PLAIN:
        plain_render(r, out);
        break;
    case LINE_JSON:
        json_render(partition, r, out);
        break;
    case LINE_TSV:
        tsv_render(r, out);
        break;
    }
}

size_t line_size(enum line_form form, int32_t partition, const struct record *r)
{
    switch (form) {
    case LINE_PLAIN:
        return (size_t)MAX(r->value.n, 0) + 1;
    case LINE_JSON:
        return json_line_measure(partition, r).size;
    case LINE_TSV:
        return tsv_size(r->key) + tsv_size(r->value) + 2;
    }
    KCHECK(!"a known form");
    return 0;
}
