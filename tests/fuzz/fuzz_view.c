/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths and lines as users of the mount and of klog write them. Input: a byte that says which form, then a path, or a line
 * that is appended. A line that is taken is printed, taken again, and must be the same record; a path that is taken must
 * resolve to offsets in their order.
 */
#include "tests/fuzz/fuzz.h"

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/view/parse.h"
#include "lib/view/view.h"

static void judge_path(const uint8_t *p, size_t n)
{
    CLEANUP(freep) char *text = xmalloc(n + 1);
    struct view_path path;
    struct extent e;
    int64_t ms;
    memcpy(text, n > 0 ? (const char *)p : "", n);
    text[n] = '\0';
    if (!view_path_parse(text, &path))
        return;
    KCHECK(topic_name_ok(path.topic) && (path.leaf == LEAF_PARTITION) == (path.partition >= 0));
    KCHECK((path.view.parts & VIEW_AS) == 0 || group_name_ok(path.view.group));
    if ((path.view.parts & VIEW_RANGE) == 0)
        return;
    bool timed = range_time(&path.view.range, 1700000000000, &ms);
    KCHECK(!timed || ms >= 0);
    range_resolve(&path.view.range, 1700000000000, 10, 20, timed ? 15 : -1, &e);
    KCHECK(e.from >= 10 && e.to >= e.from);
}

/* The headers as a batch has them: lengths in zigzag varints. */
static void add_text(struct bytebuf *b, struct kstr s)
{
    uint64_t v = (uint64_t)s.n << 1 ^ (uint64_t)(s.n >> 31);
    for (v &= UINT32_MAX; v >= 0x80; v >>= 7)
        bytebuf_add(b, (uint8_t[]){ (uint8_t)(v | 0x80) }, 1);
    bytebuf_add(b, (uint8_t[]){ (uint8_t)v }, 1);
    if (s.n > 0)
        bytebuf_add(b, s.p, (size_t)s.n);
}

static bool same_headers(const struct line_parser *a, const struct line_record *x, const struct line_parser *b,
                         const struct line_record *y)
{
    for (int32_t i = 0; i < x->n_headers && x->n_headers == y->n_headers; i++) {
        const struct record_header *h = &a->headers[x->first_header + (size_t)i], *k = &b->headers[y->first_header + (size_t)i];
        if (!kstr_eq(h->key, k->key) || !kstr_eq(h->value, k->value))
            return false;
    }
    return x->n_headers == y->n_headers;
}

static void judge_again(const struct line_parser *p, enum line_form form, const struct line_record *got)
{
    struct record r = { .offset = 1, .timestamp = got->timed ? got->timestamp : 5, .key = got->key, .value = got->value };
    struct bytebuf line = { 0 }, headers = { 0 };
    struct line_parser again;
    struct line_record second;
    for (int32_t i = 0; i < got->n_headers; i++) {
        add_text(&headers, p->headers[got->first_header + (size_t)i].key);
        add_text(&headers, p->headers[got->first_header + (size_t)i].value);
    }
    r.n_headers = got->n_headers;
    r.headers = slice_of(headers.p, headers.n);
    line_render(form, 0, &r, &line);
    KCHECK(line.n == line_size(form, 0, &r));
    KCHECK(form == LINE_PLAIN || memchr(line.p, '\n', line.n) == line.p + line.n - 1);
    line_parser_init(&again);
    line_parser_begin(&again, line.n);
    KCHECK(line_parse(&again, form, (const char *)line.p, line.n - 1, &second));
    KCHECK(kstr_eq(got->value, second.value));
    KCHECK(form == LINE_PLAIN || kstr_eq(got->key, second.key));
    KCHECK(form != LINE_JSON || (second.timestamp == r.timestamp && same_headers(p, got, &again, &second)));
    line_parser_done(&again);
    bytebuf_done(&line);
    bytebuf_done(&headers);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct line_parser parser;
    struct line_record got;
    if (n == 0 || n > INT32_MAX)
        return 0;
    enum line_form form = p[0] % 4 == 0 ? LINE_PLAIN : p[0] % 4 == 1 ? LINE_JSON : LINE_TSV;
    if (p[0] % 4 == 3) {
        judge_path(p + 1, n - 1);
        return 0;
    }
    line_parser_init(&parser);
    line_parser_begin(&parser, n - 1);
    if (line_parse(&parser, form, (const char *)p + 1, n - 1, &got))
        judge_again(&parser, form, &got);
    else
        KCHECK(parser.why[0] != '\0');
    line_parser_done(&parser);
    return 0;
}
