/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a line of the JSON form (parse.h, RFC 8259). The object is flat but for its headers, so there is no recursion and
 * no tree; each member is a row of a table. Numbers are read as the whole numbers that they are. One thread a parser.
 */
#include <string.h>

#include "lib/base/attr.h"
#include "lib/base/mem.h"
#include "lib/view/base64.h"
#include "lib/view/parse_int.h"
#include "lib/view/utf8.h"

struct json {
    struct line_parser *p;
    const char *s, *end;
};

static bool json_refuse(struct json *j, const char *why)
{
    if (j->p->why[0] == '\0')
        j->p->why = why;
    return false;
}

static void json_space(struct json *j)
{
    while (j->s < j->end && (*j->s == ' ' || *j->s == '\t' || *j->s == '\r' || *j->s == '\n'))
        j->s++;
}

/* The next token's first character, after white space; 0 at the end. */
static char json_peek(struct json *j)
{
    json_space(j);
    return j->s < j->end ? *j->s : '\0';
}

static bool json_take(struct json *j, char c)
{
    if (json_peek(j) != c || j->s == j->end)
        return false;
    j->s++;
    return true;
}

static bool json_word(struct json *j, const char *word)
{
    size_t n = strlen(word);
    json_space(j);
    if ((size_t)(j->end - j->s) < n || memcmp(j->s, word, n) != 0)
        return false;
    j->s += n;
    return true;
}

/* ---- strings ---- */

static bool read_hex4(struct json *j, uint32_t *ret)
{
    uint32_t v = 0;
    if (j->end - j->s < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        char c = *j->s++;
        int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (d < 0)
            return false;
        v = v << 4 | (uint32_t)d;
    }
    *ret = v;
    return true;
}

/* Behind "\u": one code point, of two such where they are a pair. */
static bool read_code_point(struct json *j, uint32_t *ret)
{
    uint32_t code, low;
    if (!read_hex4(j, &code) || (code >= 0xdc00 && code < 0xe000))
        return false;
    if (code < 0xd800 || code >= 0xe000) {
        *ret = code;
        return true;
    }
    if (j->end - j->s < 6 || j->s[0] != '\\' || j->s[1] != 'u')
        return false;
    j->s += 2;
    if (!read_hex4(j, &low) || low < 0xdc00 || low >= 0xe000)
        return false;
    *ret = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    return true;
}

static uint8_t *read_escape(struct json *j, uint8_t *out)
{
    static const char letters[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    uint32_t code;
    char c = j->s < j->end ? *j->s++ : '\0';
    const char *letter = c != '\0' ? strchr(letters, c) : NULL;
    if (letter != NULL)
        *out = (uint8_t)bytes[letter - letters];
    else if (c == 'u' && read_code_point(j, &code))
        return out + utf8_put(out, code);
    else
        return NULL;
    return out + 1;
}

static bool json_string_unescape(struct json *j, struct kstr *ret)
{
    uint8_t *begin = j->p->texts.p + j->p->texts.n, *out = begin;
    while (j->s < j->end && *j->s != '"') {
        if ((uint8_t)*j->s < 0x20)
            return json_refuse(j, "a control character in a string");
        if (*j->s != '\\') {
            *out++ = (uint8_t)*j->s++;
            continue;
        }
        j->s++;
        if ((out = read_escape(j, out)) == NULL)
            return json_refuse(j, "a bad escape in a string");
    }
    if (j->s++ >= j->end)
        return json_refuse(j, "a string without its end");
    j->p->texts.n += (size_t)(out - begin);
    *ret = kstr_bytes(begin, (size_t)(out - begin));
    return true;
}

static bool json_string(struct json *j, struct kstr *ret)
{
    if (!json_take(j, '"'))
        return json_refuse(j, "a string is missing");
    const char *begin = j->s, *s = begin;
    while (s < j->end && *s != '"' && *s != '\\' && (uint8_t)*s >= 0x20)
        s++;
    if (s < j->end && *s == '"') { /* nothing to be done to it */
        j->s = s + 1;
        *ret = kstr_bytes(begin, (size_t)(s - begin));
    } else if (!json_string_unescape(j, ret)) {
        return false;
    }
    return utf8_ok((const uint8_t *)ret->p, (size_t)ret->n) || json_refuse(j, "a string that is not UTF-8");
}

static bool json_text(struct json *j, struct kstr *ret)
{
    *ret = KSTR_NULL;
    return json_word(j, "null") || json_string(j, ret);
}

static bool json_base64(struct json *j, struct kstr *ret)
{
    struct kstr text;
    if (!json_string(j, &text))
        return false;
    struct bytebuf *texts = &j->p->texts;
    uint8_t *out = texts->p + texts->n - text.n;
    if ((const uint8_t *)text.p == out) /* it had escapes and lies there already */
        texts->n -= (size_t)text.n;
    else
        out = texts->p + texts->n;
    ssize_t n = base64_decode((const uint8_t *)text.p, (size_t)text.n, out);
    if (n < 0)
        return json_refuse(j, "a string that is not base64");
    texts->n += (size_t)n;
    *ret = kstr_bytes(out, (size_t)n);
    return true;
}

/* ---- numbers ---- */

static bool json_whole_number(struct json *j, int64_t *ret)
{
    bool minus = json_take(j, '-');
    const char *begin = j->s;
    int64_t v = 0;
    for (; j->s < j->end && *j->s >= '0' && *j->s <= '9'; j->s++) {
        int d = *j->s - '0';
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, d, &v))
            return json_refuse(j, "a number that is too large");
    }
    bool zeros = j->s - begin > 1 && *begin == '0';
    bool more = j->s < j->end && strchr(".eE", *j->s) != NULL && *j->s != '\0';
    if (j->s == begin || zeros || more || (!minus && v == INT64_MIN))
        return json_refuse(j, "not a whole number");
    *ret = minus ? v : -v;
    return true;
}

/* ---- members ---- */

static bool member_key(struct json *j, struct line_record *ret)
{
    return json_text(j, &ret->key);
}

static bool member_key_base64(struct json *j, struct line_record *ret)
{
    return json_base64(j, &ret->key);
}

static bool member_value(struct json *j, struct line_record *ret)
{
    return json_text(j, &ret->value);
}

static bool member_value_base64(struct json *j, struct line_record *ret)
{
    return json_base64(j, &ret->value);
}

static bool member_timestamp(struct json *j, struct line_record *ret)
{
    if (json_word(j, "null"))
        return true;
    ret->timed = true;
    return json_whole_number(j, &ret->timestamp) && (ret->timestamp >= -1 || json_refuse(j, "a timestamp before 1970"));
}

static bool member_aside(struct json *j, struct line_record *ret)
{
    int64_t v;
    (void)ret;
    return json_word(j, "null") || json_whole_number(j, &v);
}

static bool header_member(struct json *j, struct record_header *h, unsigned *seen)
{
    struct kstr name;
    if (!json_string(j, &name) || !json_take(j, ':'))
        return json_refuse(j, "a header is no object of key and value");
    bool key = kstr_eqz(name, "key") || kstr_eqz(name, "key_base64");
    bool base64 = name.n > 7 && memcmp(name.p + name.n - 7, "_base64", 7) == 0;
    unsigned bit = key ? 1 : 2;
    if ((!key && !kstr_eqz(name, "value") && !kstr_eqz(name, "value_base64")) || (*seen & bit) != 0)
        return json_refuse(j, "a header has a key and a value, nothing else");
    *seen |= bit;
    struct kstr *ret = key ? &h->key : &h->value;
    if (!(base64 ? json_base64(j, ret) : key ? json_string(j, ret) : json_text(j, ret)))
        return false;
    return true;
}

static bool json_header(struct json *j, struct record_header *ret)
{
    unsigned seen = 0;
    if (!json_take(j, '{'))
        return json_refuse(j, "a header is no object");
    do {
        if (!header_member(j, ret, &seen))
            return false;
    } while (json_take(j, ','));
    return (json_take(j, '}') && seen == 3) || json_refuse(j, "a header has a key and a value");
}

static struct record_header *header_add(struct line_parser *p)
{
    if (p->n_headers == p->cap_headers) {
        p->cap_headers = p->cap_headers == 0 ? 16 : 2 * p->cap_headers;
        p->headers = xreallocarray(p->headers, p->cap_headers, sizeof *p->headers);
    }
    return &p->headers[p->n_headers++];
}

static bool member_headers(struct json *j, struct line_record *ret)
{
    if (json_word(j, "null"))
        return true;
    if (!json_take(j, '['))
        return json_refuse(j, "headers are no array");
    if (json_take(j, ']'))
        return true;
    do {
        if (!json_header(j, header_add(j->p)))
            return false;
        ret->n_headers++;
    } while (json_take(j, ','));
    return json_take(j, ']') || json_refuse(j, "an array without its end");
}

static const struct {
    const char *name;
    unsigned bit; /* members with the same one exclude each other */
    bool (*read)(struct json *j, struct line_record *ret);
} members[] = {
    { "key", 1, member_key },
    { "key_base64", 1, member_key_base64 },
    { "value", 2, member_value },
    { "value_base64", 2, member_value_base64 },
    { "headers", 4, member_headers },
    { "timestamp", 8, member_timestamp },
    { "offset", 16, member_aside },
    { "partition", 32, member_aside },
};

static bool json_member(struct json *j, struct line_record *ret, unsigned *seen)
{
    struct kstr name;
    if (!json_string(j, &name))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        if (!kstr_eqz(name, members[i].name))
            continue;
        if ((*seen & members[i].bit) != 0)
            return json_refuse(j, "a member twice");
        *seen |= members[i].bit;
        return json_take(j, ':') ? members[i].read(j, ret) : json_refuse(j, "a ':' is missing");
    }
    return json_refuse(j, "a member that no record has");
}

bool json_line_parse(struct line_parser *p, const char *line, size_t n, struct line_record *ret)
{
    struct json j = { p, line, line + n };
    unsigned seen = 0;
    *ret = (struct line_record){ .key = KSTR_NULL, .value = KSTR_NULL, .first_header = p->n_headers };
    if (!json_take(&j, '{'))
        return json_refuse(&j, "not a JSON object");
    if (json_peek(&j) != '}') {
        do {
            if (!json_member(&j, ret, &seen))
                return false;
        } while (json_take(&j, ','));
    }
    if (!json_take(&j, '}'))
        return json_refuse(&j, "an object without its end");
    json_space(&j);
    if (j.s != j.end)
        return json_refuse(&j, "something behind the object");
    return (seen & 2) != 0 || json_refuse(&j, "there is no value (null deletes)");
}
