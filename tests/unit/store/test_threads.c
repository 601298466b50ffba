/* SPDX-License-Identifier: Apache-2.0 */
/* One appender, and at the same time readers, a flusher, retention and checkpoints: every answer is one that
 * was right. */
#include "storetest.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define APPENDS 3000
#define RECORD  200

struct crowd {
    struct fixture *f;
    atomic_bool over;
    atomic_int wrong;
};

static void *append_loop(void *arg)
{
    struct crowd *w = arg;
    for (int i = 0; i < APPENDS; i++) {
        struct plog_appended a = append_n(w->f, 2, RECORD);
        if (a.err != KERR_NONE || a.base_offset != 2 * i)
            atomic_fetch_add(&w->wrong, 1);
        /* Not too far ahead of the flusher and of retention. */
        while (ends_of(w->f).size_bytes > 2 * w->f->cfg.retention_bytes)
            sched_yield();
    }
    atomic_store(&w->over, true);
    return NULL;
}

static void read_one(struct crowd *w, int64_t offset, int64_t limit)
{
    struct plog_span s;
    uint8_t bytes[65536];
    int64_t next = -1;
    int rc = plog_read(w->f->l, offset, limit, sizeof bytes, true, &s);

    if (rc == -ERANGE)
        return; /* retention was faster */
    if (rc < 0 || s.file == NULL || plog_span_read(&s, bytes) < 0) {
        atomic_fetch_add(&w->wrong, 1);
        plog_span_release(&s);
        return;
    }
    for (struct slice rest = slice_of(bytes, (size_t)s.n); rest.n > 0;) {
        struct batch_header h;
        if (batch_check(rest, 1 << 20, &h) < 0 || (next >= 0 && h.base_offset != next) ||
            (next < 0 && h.base_offset > offset)) {
            atomic_fetch_add(&w->wrong, 1);
            break;
        }
        next = batch_last_offset(&h) + 1;
        rest = slice_of(rest.p + batch_size(&h), rest.n - (size_t)batch_size(&h));
    }
    plog_span_release(&s);
}

static void ask_text(struct crowd *w, int64_t offset)
{
    int64_t text, base, pos;
    if (plog_text_of_offset(w->f->l, offset, &text) < 0)
        return;
    if (text != offset * (RECORD + 1))
        atomic_fetch_add(&w->wrong, 1);
    int rc = plog_offset_of_text(w->f->l, text, &base, &pos);
    if (rc != -ERANGE && (rc < 0 || base > offset || pos != base * (RECORD + 1)))
        atomic_fetch_add(&w->wrong, 1);
}

static void *read_loop(void *arg)
{
    struct crowd *w = arg;
    uint32_t seed = 11;
    while (!atomic_load(&w->over)) {
        struct plog_ends e = ends_of(w->f);
        int64_t n = e.end_offset - e.start_offset, o, ts;
        if (n == 0)
            continue;
        seed = seed * 1664525 + 1013904223;
        int64_t offset = e.start_offset + (int64_t)(seed >> 8) % n;
        read_one(w, offset, e.end_offset);
        ask_text(w, offset);
        if (plog_find_time(w->f->l, T0, e.end_offset, &o, &ts) < 0)
            atomic_fetch_add(&w->wrong, 1);
    }
    return NULL;
}

static void *flush_loop(void *arg)
{
    struct crowd *w = arg;
    while (!atomic_load(&w->over)) {
        int64_t end = ends_of(w->f).end_offset;
        if (flush(w->f) < 0 || ends_of(w->f).flushed_offset < end)
            atomic_fetch_add(&w->wrong, 1);
    }
    return NULL;
}

static void *upkeep_loop(void *arg)
{
    struct crowd *w = arg;
    while (!atomic_load(&w->over)) {
        int64_t hw = ends_of(w->f).flushed_offset;
        if (plog_retain(w->f->l, hw, T0) < 0 || plog_checkpoint(w->f->l, hw, true) < 0)
            atomic_fetch_add(&w->wrong, 1);
        plog_expire_producers(w->f->l, T0);
    }
    return NULL;
}

static void all_at_once_is_as_good_as_one_after_the_other(void **state)
{
    struct fixture *f = *state;
    struct crowd w = { .f = f };
    void *(*const loops[])(void *) = { append_loop, read_loop, read_loop, flush_loop, upkeep_loop };
    pthread_t t[ARRAY_LEN(loops)];

    f->cfg.segment_bytes = 30000;
    f->cfg.index_interval_bytes = 1000;
    f->cfg.retention_bytes = 300000;
    must_open(f);
    datadir_set_file_limit(f->dd, 6, INT_MAX);
    for (size_t i = 0; i < ARRAY_LEN(loops); i++)
        assert_int_equal(pthread_create(&t[i], NULL, loops[i], &w), 0);
    for (size_t i = 0; i < ARRAY_LEN(loops); i++)
        pthread_join(t[i], NULL);
    assert_int_equal(atomic_load(&w.wrong), 0);
    assert_int_equal(ends_of(f).end_offset, 2 * APPENDS);
    assert_true(ends_of(f).start_offset > 0);
    assert_int_equal(check_log(f), 2 * APPENDS);
    reopen(f, false);
    assert_int_equal(check_log(f), 2 * APPENDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = { T(all_at_once_is_as_good_as_one_after_the_other) };
    return RUN(tests);
}
