/* SPDX-License-Identifier: Apache-2.0 */
/* Prometheus' text: a buffer for each metric, joined at the end. Pure; one thread a struct metrics_text. */
#include "lib/metrics/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/view/utf8.h"

#define REPLACEMENT "\xef\xbf\xbd"

struct family {
    struct bytebuf samples;
    size_t n, left_out;
};

struct metrics_text {
    const struct metric *table;
    size_t n, samples_max;
    struct family *families; /* one a row */
};

const char *metric_type_name(enum metric_type t)
{
    static const char *const names[] = { "counter", "gauge", "histogram" };
    return names[t];
}

struct metrics_text *metrics_text_new(const struct metric *table, size_t n, size_t samples_max)
{
    struct metrics_text *t = xcalloc(1, sizeof *t);
    t->table = table;
    t->n = n;
    t->samples_max = samples_max;
    t->families = xcalloc(n, sizeof *t->families);
    return t;
}

void metrics_text_free(struct metrics_text *t)
{
    for (size_t i = 0; i < t->n; i++)
        bytebuf_done(&t->families[i].samples);
    free(t->families);
    free(t);
}

/* ---- strings of strangers ---- */
/* Bytes of the UTF-8 character at p; 0: none is there. */
static size_t character(const char *p, size_t left)
{
    for (size_t n = 1; n <= 4 && n <= left; n++)
        if (utf8_ok((const uint8_t *)p, n))
            return n;
    return 0;
}

static void add_escaped(struct bytebuf *b, const char *s, void (*special)(struct bytebuf *b, char c))
{
    size_t left = strlen(s);
    while (left > 0) {
        size_t n = character(s, left);
        if (n == 0)
            bytebuf_adds(b, REPLACEMENT);
        else if (n == 1)
            special(b, *s);
        else
            bytebuf_add(b, s, n);
        s += MAX(n, (size_t)1);
        left -= MAX(n, (size_t)1);
    }
}

static void label_character(struct bytebuf *b, char c)
{
    if (c == '\n')
        bytebuf_adds(b, "\\n");
    else if (c == '"' || c == '\\')
        bytebuf_printf(b, "\\%c", c);
    else
        bytebuf_add(b, &c, 1);
}

static void json_character(struct bytebuf *b, char c)
{
    if (c == '"' || c == '\\')
        bytebuf_printf(b, "\\%c", c);
    else if ((unsigned char)c < 0x20 || c == 0x7f || strchr("<>&'", c) != NULL)
        bytebuf_printf(b, "\\u%04x", (unsigned)c);
    else
        bytebuf_add(b, &c, 1);
}

void metrics_json_string(struct bytebuf *b, const char *s)
{
    bytebuf_adds(b, "\"");
    add_escaped(b, s, json_character);
    bytebuf_adds(b, "\"");
}

/* ---- samples ---- */
static struct family *family_for_sample(struct metrics_text *t, size_t row)
{
    KCHECK(row < t->n);
    struct family *f = &t->families[row];
    if (f->n == t->samples_max) {
        f->left_out++;
        return NULL;
    }
    f->n++;
    return f;
}

/* name, suffix and labels; le: a bucket's, NULL none */
static void add_series(struct bytebuf *b, const struct metric *m, const char *suffix, const struct metric_labels *l, const char *le)
{
    const char *before = "{";
    bytebuf_printf(b, "%s%s", m->name, suffix);
    for (int i = 0; i < METRIC_LABELS_MAX && m->labels[i] != NULL; i++) {
        if (l->value[i] == NULL)
            continue;
        bytebuf_printf(b, "%s%s=\"", before, m->labels[i]);
        add_escaped(b, l->value[i], label_character);
        bytebuf_adds(b, "\"");
        before = ",";
    }
    if (le != NULL) {
        bytebuf_printf(b, "%sle=\"%s\"", before, le);
        before = ",";
    }
    bytebuf_adds(b, *before == '{' ? " " : "} ");
}

void metrics_add(struct metrics_text *t, size_t row, const struct metric_labels *l, int64_t v)
{
    struct family *f = family_for_sample(t, row);
    if (f == NULL)
        return;
    add_series(&f->samples, &t->table[row], "", l, NULL);
    bytebuf_printf(&f->samples, "%" PRId64 "\n", v);
}

void metrics_add_double(struct metrics_text *t, size_t row, const struct metric_labels *l, double v)
{
    struct family *f = family_for_sample(t, row);
    if (f == NULL)
        return;
    add_series(&f->samples, &t->table[row], "", l, NULL);
    bytebuf_printf(&f->samples, "%.15g\n", v);
}

void metrics_add_histogram(struct metrics_text *t, size_t row, const struct metric_labels *l, const struct histogram_sum *h,
                           int per_second)
{
    struct family *f = family_for_sample(t, row);
    if (f == NULL)
        return;
    const struct metric *m = &t->table[row];
    uint64_t below = 0;
    for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
        char le[32] = "+Inf";
        if (i < HISTOGRAM_BOUNDS)
            snprintf(le, sizeof le, "%g", (double)histogram_bounds_us[i] * per_second / 1e6);
        below += h->n[i];
        add_series(&f->samples, m, "_bucket", l, le);
        bytebuf_printf(&f->samples, "%" PRIu64 "\n", below);
    }
    add_series(&f->samples, m, "_sum", l, NULL);
    bytebuf_printf(&f->samples, "%.10g\n", (double)h->sum_us * per_second / 1e6);
    add_series(&f->samples, m, "_count", l, NULL);
    bytebuf_printf(&f->samples, "%" PRIu64 "\n", h->count);
}

size_t metrics_left_out(const struct metrics_text *t, size_t row)
{
    return t->families[row].left_out;
}

void metrics_print(const struct metrics_text *t, struct bytebuf *ret)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct metric *m = &t->table[i];
        bytebuf_printf(ret, "# HELP %s %s\n# TYPE %s %s\n", m->name, m->help, m->name, metric_type_name(m->type));
        bytebuf_add(ret, t->families[i].samples.p, t->families[i].samples.n);
    }
}
