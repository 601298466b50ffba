/* SPDX-License-Identifier: Apache-2.0 */
/* Keyed records into a log, a pass of the cleaner over it, and what is left as text. */
#ifndef KLOG_CLEANTEST_H
#define KLOG_CLEANTEST_H

#include "storetest.h"

#include "lib/store/clean.h"

#define DAY_MS 86400000LL

struct keyed { /* a batch: "k=v a b=w": a tombstone has no '='; "=v" has no key, and "k=" an empty value */
    const char *text;
    enum codec codec;
    int64_t timestamp; /* of the first; the others 1 ms later each; 0: T0 */
    int64_t producer_id;
    int16_t producer_epoch;
    int32_t sequence;
    bool transactional;
    int32_t last_delta; /* 0: as many as there are records */
};

static inline int keyed_batch(const struct keyed *k, struct bytebuf *ret, int64_t *ret_text)
{
    struct batch_builder b;
    struct batch_producer p = { .id = k->producer_id == 0 ? -1 : k->producer_id,
                                .epoch = k->producer_epoch,
                                .base_sequence = k->sequence,
                                .transactional = k->transactional };
    char *copy = xstrdup(k->text), *save = NULL;
    int64_t ts = k->timestamp == 0 ? T0 : k->timestamp;
    const struct record_header header = { kstr_of("h"), kstr_of("x") };
    int n = 0;

    *ret_text = 0;
    batch_builder_init(&b);
    for (char *word = strtok_r(copy, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
        char *eq = strchr(word, '=');
        struct kstr key =
            eq == word ? KSTR_NULL : kstr_bytes(word, eq == NULL ? strlen(word) : (size_t)(eq - word));
        struct kstr value = eq == NULL ? KSTR_NULL : kstr_of(eq + 1);
        batch_builder_add(&b, ts + n++, key, value, &header, 1);
        *ret_text += MAX(value.n, 0) + 1;
    }
    free(copy);
    assert_int_equal(batch_builder_finish(&b, k->codec, 0, &p, 0, ret), 0);
    batch_builder_done(&b);
    if (k->last_delta > 0) {
        put_be32(ret->p + BATCH_LAST_OFFSET_DELTA, (uint32_t)k->last_delta);
        put_be32(ret->p + BATCH_CRC, batch_crc(ret->p, ret->n));
    }
    return n;
}

static inline struct plog_appended put_bytes(struct fixture *f, struct bytebuf *b, int64_t text)
{
    struct plog_appended a;
    struct batch_info info = { .text_bytes = text };

    batch_header_read(b->p, &info.h);
    plog_append(f->l, b->p, b->n, &info, 0, f->now_ms, -1, &a);
    bytebuf_done(b);
    return a;
}

static inline struct plog_appended put_keyed(struct fixture *f, const struct keyed *k)
{
    struct bytebuf b = { 0 };
    int64_t text;

    keyed_batch(k, &b, &text);
    return put_bytes(f, &b, text);
}

static inline int64_t put(struct fixture *f, const char *text)
{
    const struct keyed k = { .text = text };
    struct plog_appended a = put_keyed(f, &k);
    assert_int_equal(a.err, KERR_NONE);
    return a.base_offset;
}

/* A transaction's end. */
static inline int64_t put_marker(struct fixture *f, int64_t producer, int type)
{
    struct batch_builder b;
    struct bytebuf out = { 0 };
    const uint8_t key[4] = { 0, 0, 0, (uint8_t)type }, value[6] = { 0 };
    const struct batch_producer p = { .id = producer, .base_sequence = -1, .transactional = true };

    batch_builder_init(&b);
    batch_builder_add(&b, T0, kstr_bytes(key, 4), kstr_bytes(value, 6), NULL, 0);
    assert_int_equal(batch_builder_finish(&b, CODEC_NONE, 0, &p, BATCH_ATTR_CONTROL, &out), 0);
    batch_builder_done(&b);
    return put_bytes(f, &out, 0).base_offset;
}

/* Closes the active segment, and flushes it. */
static inline void seal_log(struct fixture *f)
{
    f->now_ms += 10;
    assert_int_equal(plog_roll_if_older(f->l, 0, f->now_ms), 1);
    assert_int_equal(flush(f), 0);
}

static inline struct clean_options clean_all(struct fixture *f)
{
    return (struct clean_options){
        .limit = ends_of(f).end_offset,
        .now_ms = f->now_ms,
        .delete_retention_ms = DAY_MS,
        .map_bytes = 1 << 16,
    };
}

static inline struct clean_result clean_log(struct fixture *f, int64_t first_dirty)
{
    struct clean_options o = clean_all(f);
    struct clean_result r;

    o.first_dirty = first_dirty;
    assert_int_equal(plog_clean(f->l, &o, &r), 0);
    return r;
}

/* Calls cb for each batch from `from` on, as a reader gets them. */
static inline void each_batch(struct fixture *f, int64_t from,
                              void (*cb)(void *arg, const struct batch_header *h, struct slice batch),
                              void *arg)
{
    struct plog_ends e = ends_of(f);

    for (int64_t next = MAX(from, e.start_offset); next < e.end_offset;) {
        struct plog_span s;
        int rc = plog_read(f->l, next, e.end_offset, 100000, true, &s);
        if (rc < 0 || s.file == NULL)
            fail_msg("plog_read at %lld: %d", (long long)next, rc);
        uint8_t *p = xmalloc((size_t)s.n);
        assert_int_equal(plog_span_read(&s, p), 0);
        struct slice rest = slice_of(p, (size_t)s.n);
        int64_t before = next;
        while (rest.n > 0) {
            struct batch_header h;
            assert_int_equal(batch_check(rest, 1 << 30, &h), 0);
            assert_true(batch_last_offset(&h) >= next);
            cb(arg, &h, slice_of(rest.p, (size_t)batch_size(&h)));
            next = batch_last_offset(&h) + 1;
            rest = slice_of(rest.p + batch_size(&h), rest.n - (size_t)batch_size(&h));
        }
        assert_true(next > before);
        free(p);
        plog_span_release(&s);
    }
}

static inline void add_records(void *arg, const struct batch_header *h, struct slice batch)
{
    struct bytebuf *out = arg;
    struct record_iter it;
    struct record r;
    int rc;

    record_iter_init(&it);
    assert_int_equal(record_iter_start(&it, batch, 1 << 20), 0);
    while ((rc = record_iter_next(&it, &r)) == 1) {
        if (batch_is_control(h))
            bytebuf_printf(out, "%lld:marker%d ", (long long)r.offset, r.key.p[3]);
        else if (kstr_is_null(r.value))
            bytebuf_printf(out, "%lld:%.*s ", (long long)r.offset, KSTR_FMT(r.key));
        else
            bytebuf_printf(out, "%lld:%.*s=%.*s ", (long long)r.offset, KSTR_FMT(r.key), KSTR_FMT(r.value));
        assert_true(batch_is_control(h) || r.n_headers == 1);
    }
    assert_int_equal(rc, 0);
    record_iter_done(&it);
}

/* "OFFSET:KEY=VALUE " of each record. The caller frees. */
static inline char *log_text(struct fixture *f)
{
    struct bytebuf b = { 0 };

    bytebuf_adds(&b, "");
    each_batch(f, 0, add_records, &b);
    char *text = xstrdup(bytebuf_cstr(&b));
    bytebuf_done(&b);
    return text;
}

#define assert_log(f, want)                   \
    do {                                      \
        char *log_text_ = log_text(f);        \
        assert_string_equal(log_text_, want); \
        free(log_text_);                      \
    } while (0)

struct batches {
    int n;
    struct batch_header h[64];
};

static inline void add_header(void *arg, const struct batch_header *h, struct slice batch)
{
    struct batches *b = arg;
    (void)batch;
    assert_true(b->n < 64);
    b->h[b->n++] = *h;
}

static inline struct batches batches_of(struct fixture *f)
{
    struct batches b = { 0 };
    each_batch(f, 0, add_header, &b);
    return b;
}

/* The plain view, the slow way: what each record's position ought to be; compared with both directions of the
 * text index. Returns its length. */
struct text_check {
    struct fixture *f;
    int64_t at;
};

static inline void check_batch_text(void *arg, const struct batch_header *h, struct slice batch)
{
    struct text_check *c = arg;
    struct record_iter it;
    struct record r;
    int64_t got, base, begin = c->at;

    record_iter_init(&it);
    assert_int_equal(record_iter_start(&it, batch, 1 << 20), 0);
    while (record_iter_next(&it, &r) == 1 && !batch_is_control(h)) {
        assert_int_equal(plog_text_of_offset(c->f->l, r.offset, &got), 0);
        assert_int_equal(got, c->at);
        assert_int_equal(plog_offset_of_text(c->f->l, c->at, &base, &got), 0);
        assert_int_equal(base, h->base_offset);
        assert_int_equal(got, begin);
        c->at += MAX(r.value.n, 0) + 1;
    }
    record_iter_done(&it);
}

static inline int64_t check_text(struct fixture *f)
{
    struct text_check c = { .f = f };
    struct plog_ends e = ends_of(f);
    int64_t start, end;

    assert_int_equal(plog_text_of_offset(f->l, e.start_offset, &start), 0);
    assert_int_equal(plog_text_of_offset(f->l, e.end_offset, &end), 0);
    c.at = start;
    each_batch(f, 0, check_batch_text, &c);
    assert_int_equal(c.at, end);
    return end - start;
}

#endif
