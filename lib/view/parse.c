/* SPDX-License-Identifier: Apache-2.0 */
/* Reading lines of the plain and the TSV form, and the parser's memory; see parse.h. One thread a parser. */
#include "lib/view/parse.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/view/parse_int.h"

void line_parser_init(struct line_parser *p)
{
    *p = (struct line_parser){ .why = "" };
}

void line_parser_done(struct line_parser *p)
{
    bytebuf_done(&p->texts);
    free(p->headers);
    line_parser_init(p);
}

void line_parser_begin(struct line_parser *p, size_t bytes)
{
    p->texts.n = 0;
    p->n_headers = 0;
    bytebuf_room(&p->texts, bytes + 1);
}

/* ---- tsv ---- */

static int octal(char c)
{
    return c >= '0' && c <= '7' ? c - '0' : -1;
}

static int hexadecimal(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* At most `max` digits; returns what follows them. */
static const char *read_digits(const char *s, const char *end, int (*digit)(char), int base, int max, uint8_t *ret)
{
    int v = 0;
    for (; max > 0 && s < end && digit(*s) >= 0; max--, s++)
        v = v * base + digit(*s);
    *ret = (uint8_t)v;
    return s;
}

/* What stands behind a backslash; returns what follows it. */
static const char *tsv_escape(const char *s, const char *end, uint8_t *ret)
{
    static const char letters[] = "bfnrtv", bytes[] = "\b\f\n\r\t\v";
    const char *letter = *s != '\0' ? strchr(letters, *s) : NULL;
    if (letter != NULL)
        *ret = (uint8_t)bytes[letter - letters];
    else if (octal(*s) >= 0)
        return read_digits(s, end, octal, 8, 3, ret);
    else if (*s == 'x' && s + 1 < end && hexadecimal(s[1]) >= 0)
        return read_digits(s + 1, end, hexadecimal, 16, 2, ret);
    else
        *ret = (uint8_t)*s;
    return s + 1;
}

static bool tsv_field(struct line_parser *p, const char *s, const char *end, struct kstr *ret)
{
    if (end - s == 2 && s[0] == '\\' && s[1] == 'N') {
        *ret = KSTR_NULL;
        return true;
    }
    if (memchr(s, '\\', (size_t)(end - s)) == NULL) {
        *ret = kstr_bytes(s, (size_t)(end - s));
        return true;
    }
    uint8_t *begin = p->texts.p + p->texts.n, *out = begin;
    while (s < end) {
        if (*s != '\\') {
            *out++ = (uint8_t)*s++;
        } else if (++s == end) {
            p->why = "a backslash at the end of a field";
            return false;
        } else {
            s = tsv_escape(s, end, out++);
        }
    }
    p->texts.n += (size_t)(out - begin);
    *ret = kstr_bytes(begin, (size_t)(out - begin));
    return true;
}

/* The first TAB that no backslash stands before; NULL. */
static const char *tsv_tab(const char *s, const char *end)
{
    if (memchr(s, '\\', (size_t)(end - s)) == NULL)
        return memchr(s, '\t', (size_t)(end - s));
    for (; s < end && *s != '\t'; s++)
        s += *s == '\\' && s + 1 < end;
    return s < end ? s : NULL;
}

static bool tsv_line_parse(struct line_parser *p, const char *line, size_t n, struct line_record *ret)
{
    const char *end = line + n, *tab = tsv_tab(line, end);
    *ret = (struct line_record){ .timed = false };
    if (tab == NULL || tsv_tab(tab + 1, end) != NULL) {
        p->why = tab == NULL ? "there is no TAB between key and value" : "more than one TAB";
        return false;
    }
    return tsv_field(p, line, tab, &ret->key) && tsv_field(p, tab + 1, end, &ret->value);
}

bool line_parse(struct line_parser *p, enum line_form form, const char *line, size_t n, struct line_record *ret)
{
    KCHECK(form == LINE_PLAIN || p->texts.cap - p->texts.n >= n);
    p->why = "";
    switch (form) {
    case LINE_PLAIN:
        *ret = (struct line_record){ .key = KSTR_NULL, .value = kstr_bytes(line, n) };
        return true;
    case LINE_JSON:
        return json_line_parse(p, line, n, ret);
    case LINE_TSV:
        return tsv_line_parse(p, line, n, ret);
    }
    return false;
}
