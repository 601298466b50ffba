/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What commands print on standard output: rows as tables or JSON, bytes that may be anything, times. A table's columns are
 * as wide as their widest cell on a terminal; bytes that are no UTF-8 come as base64 in JSON and escaped for people, so that
 * no topic's content reaches the terminal as control characters. One thread.
 */
#include "src/out.h"

#include <string.h>
#include <time.h>

#include "lib/base/buf.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

enum { COLUMNS_MAX = 16 };

/* ---- a cell as text ---- */
static void cell_text(const json_t *v, struct bytebuf *ret)
{
    if (v == NULL || json_is_null(v)) {
        bytebuf_adds(ret, "-");
    } else if (json_is_string(v)) {
        bytebuf_adds(ret, json_string_value(v)[0] != '\0' ? json_string_value(v) : "\"\"");
    } else if (json_is_integer(v)) {
        bytebuf_printf(ret, "%lld", (long long)json_integer_value(v));
    } else if (json_is_real(v)) {
        bytebuf_printf(ret, "%.3f", json_real_value(v));
    } else if (json_is_boolean(v)) {
        bytebuf_adds(ret, json_is_true(v) ? "yes" : "no");
    } else if (json_is_array(v)) {
        for (size_t i = 0; i < json_array_size(v); i++) {
            bytebuf_adds(ret, i > 0 ? "," : "");
            cell_text(json_array_get(v, i), ret);
        }
        bytebuf_adds(ret, json_array_size(v) == 0 ? "-" : "");
    }
}

/* Columns on a terminal, not bytes: UTF-8 continuation bytes take none. */
static int text_width(const char *s)
{
    int n = 0;

    for (; *s != '\0'; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

static void row_print(FILE *f, const struct column *columns, const int *widths, char *const *cells)
{
    for (int k = 0; columns[k].key != NULL; k++) {
        int pad = widths[k] - text_width(cells[k]);
        bool last = columns[k + 1].key == NULL;
        if (columns[k].right)
            fprintf(f, "%*s%s", pad, "", cells[k]);
        else
            fprintf(f, "%s%*s", cells[k], last ? 0 : pad, "");
        fputs(last ? "\n" : "  ", f);
    }
}

static void table_print(FILE *f, const struct column *columns, const json_t *rows)
{
    size_t n = json_array_size(rows), n_columns = 0;
    int widths[COLUMNS_MAX];

    for (; columns[n_columns].key != NULL; n_columns++) {
        KCHECK(n_columns < COLUMNS_MAX);
        widths[n_columns] = text_width(columns[n_columns].title);
    }
    char **cells = xcalloc((n + 1) * n_columns, sizeof *cells);
    for (size_t i = 0; i <= n; i++) {
        for (size_t k = 0; k < n_columns; k++) {
            struct bytebuf b = { 0 };
            if (i == 0)
                bytebuf_adds(&b, columns[k].title);
            else
                cell_text(json_object_get(json_array_get(rows, i - 1), columns[k].key), &b);
            cells[i * n_columns + k] = xstrdup(bytebuf_cstr(&b));
            widths[k] = MAX(widths[k], text_width(cells[i * n_columns + k]));
            bytebuf_done(&b);
        }
    }
    for (size_t i = 0; i <= n; i++)
        row_print(f, columns, widths, cells + i * n_columns);
    for (size_t i = 0; i < (n + 1) * n_columns; i++)
        free(cells[i]);
    free(cells);
}

void out_rows(FILE *f, bool json, const struct column *columns, json_t *rows)
{
    if (json) {
        for (size_t i = 0; i < json_array_size(rows); i++)
            out_json(f, json_incref(json_array_get(rows, i)));
    } else {
        table_print(f, columns, rows);
    }
    json_decref(rows);
}

void out_json(FILE *f, json_t *object)
{
    KCHECK(object != NULL);
    json_dumpf(object, f, JSON_COMPACT);
    fputc('\n', f);
    json_decref(object);
}

/* ---- values ---- */
json_t *json_kstr(struct kstr s)
{
    if (kstr_is_null(s))
        return json_null();
    json_t *v = json_stringn(s.p, (size_t)s.n);
    return v != NULL ? v : json_string("(not UTF-8)");
}

json_t *json_numbers(const int32_t *numbers, int32_t n)
{
    json_t *a = json_array();

    for (int32_t i = 0; i < n; i++)
        json_array_append_new(a, json_integer(numbers[i]));
    return a;
}

json_t *json_offset(int64_t offset)
{
    return offset < 0 ? json_null() : json_integer(offset);
}

static char *base64(const uint8_t *p, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = xmalloc((n + 2) / 3 * 4 + 1), *t = text;

    for (size_t i = 0; i < n; i += 3) {
        uint32_t v =
            (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) | (i + 2 < n ? p[i + 2] : 0);
        *t++ = digits[v >> 18];
        *t++ = digits[v >> 12 & 63];
        *t++ = i + 1 < n ? digits[v >> 6 & 63] : '=';
        *t++ = i + 2 < n ? digits[v & 63] : '=';
    }
    *t = '\0';
    return text;
}

void json_set_bytes(json_t *object, const char *key, struct kstr bytes)
{
    json_t *v = kstr_is_null(bytes) ? json_null() : json_stringn(bytes.n > 0 ? bytes.p : "", (size_t)bytes.n);

    if (v != NULL) {
        json_object_set_new(object, key, v);
        return;
    }
    CLEANUP(freep) char *name = xasprintf("%s_base64", key);
    CLEANUP(freep) char *text = base64((const uint8_t *)bytes.p, (size_t)bytes.n);
    json_object_set_new(object, name, json_string(text));
}

/* Length of the UTF-8 character at p, 0 when it is none that may be shown. */
static size_t utf8_length(const uint8_t *p, size_t n)
{
    size_t len = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;

    if (len == 0 || len > n || p[0] < 0x20 || p[0] == 0x7f)
        return 0;
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    }
    if (len == 2 && p[0] == 0xc2 && p[1] < 0xa0)
        return 0; /* C1 control characters */
    return len;
}

void out_escaped(FILE *f, struct kstr bytes)
{
    const uint8_t *p = (const uint8_t *)bytes.p, *end = p + MAX(bytes.n, 0);

    while (p < end) {
        size_t len = utf8_length(p, (size_t)(end - p));
        if (*p == '\\')
            fputs("\\\\", f);
        else if (*p == '\n')
            fputs("\\n", f);
        else if (*p == '\t')
            fputs("\\t", f);
        else if (len > 0)
            fwrite(p, 1, len, f);
        else
            fprintf(f, "\\x%02x", *p);
        p += MAX(len, 1);
    }
}

const char *time_text(int64_t ms, char *ret, size_t size)
{
    time_t s = ms / 1000 - (ms % 1000 < 0);
    struct tm tm;

    if (ms == -1)
        return "-";
    if (gmtime_r(&s, &tm) == NULL || tm.tm_year > 8099 || tm.tm_year < -1900 ||
        strftime(ret, size, "%Y-%m-%dT%H:%M:%S", &tm) == 0) {
        snprintf(ret, size, "%lld", (long long)ms);
        return ret;
    }
    size_t n = strlen(ret);
    snprintf(ret + n, size - n, ".%03dZ", (int)(ms - (int64_t)s * 1000));
    return ret;
}
