/* SPDX-License-Identifier: Apache-2.0 */
/* An appender, and at the same time the cleaner, readers, a flusher and upkeep: every answer is one that was
 * right, and in the end the newest record of each key is there. */
#include "cleantest.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define APPENDS 1500
#define KEYS    20
/* What a pass leaves: 20 batches of one record, each under 100 bytes. */
#define SIZE_MAX_BYTES 60000

struct crowd {
    struct fixture *f;
    atomic_bool over;
    atomic_int wrong, passes;
};

static void wrong(struct crowd *w, int line)
{
    if (atomic_fetch_add(&w->wrong, 1) == 0)
        print_error("wrong at line %d\n", line);
}

static void *append_loop(void *arg)
{
    struct crowd *w = arg;
    for (int i = 0; i < APPENDS; i++) {
        char text[64];
        snprintf(text, sizeof text, "k%d=%d", i % KEYS, i);
        if (put(w->f, text) != i)
            wrong(w, __LINE__);
        while (ends_of(w->f).size_bytes > SIZE_MAX_BYTES) /* not too far ahead of the cleaner */
            sched_yield();
    }
    atomic_store(&w->over, true);
    return NULL;
}

/* Each record says what its offset is. */
static void check_batch(struct crowd *w, struct record_iter *it, struct slice batch)
{
    struct record r;
    char value[32];

    if (record_iter_start(it, batch, 1 << 20) < 0)
        wrong(w, __LINE__);
    while (record_iter_next(it, &r) == 1) {
        snprintf(value, sizeof value, "%.*s", KSTR_FMT(r.value));
        if (atoll(value) != r.offset)
            wrong(w, __LINE__);
    }
}

static void read_one(struct crowd *w, struct record_iter *it, int64_t offset, int64_t limit)
{
    struct plog_span s;
    uint8_t bytes[65536];
    struct batch_header h;
    int64_t next = offset;

    if (plog_read(w->f->l, offset, limit, sizeof bytes, true, &s) < 0 || s.file == NULL ||
        plog_span_read(&s, bytes) < 0) {
        wrong(w, __LINE__);
        return;
    }
    for (struct slice rest = slice_of(bytes, (size_t)s.n); rest.n > 0;) {
        if (batch_check(rest, 1 << 20, &h) < 0 || batch_last_offset(&h) < next) {
            wrong(w, __LINE__);
            break;
        }
        check_batch(w, it, slice_of(rest.p, (size_t)batch_size(&h)));
        next = batch_last_offset(&h) + 1;
        rest = slice_of(rest.p + batch_size(&h), rest.n - (size_t)batch_size(&h));
    }
    plog_span_release(&s);
}

/* Positions move up while they are asked for, never down. */
static void ask_text(struct crowd *w, int64_t offset)
{
    int64_t before, after, base, pos;
    if (plog_text_of_offset(w->f->l, offset, &before) < 0 ||
        plog_text_of_offset(w->f->l, offset, &after) < 0) {
        wrong(w, __LINE__);
        return;
    }
    if (after < before)
        wrong(w, __LINE__);
    int rc = plog_offset_of_text(w->f->l, after, &base, &pos);
    if (rc != -ERANGE && (rc < 0 || pos > after))
        wrong(w, __LINE__);
}

static void *read_loop(void *arg)
{
    struct crowd *w = arg;
    struct record_iter it;
    uint32_t seed = 5;

    record_iter_init(&it);
    while (!atomic_load(&w->over)) {
        int64_t end = ends_of(w->f).end_offset, o, ts;
        if (end == 0)
            continue;
        seed = seed * 1664525 + 1013904223;
        int64_t offset = (int64_t)(seed >> 8) % end;
        read_one(w, &it, offset, end);
        ask_text(w, offset);
        if (plog_find_time(w->f->l, T0, end, &o, &ts) < 0)
            wrong(w, __LINE__);
    }
    record_iter_done(&it);
    return NULL;
}

static void *flush_loop(void *arg)
{
    struct crowd *w = arg;
    while (!atomic_load(&w->over)) {
        int64_t end = ends_of(w->f).end_offset;
        if (flush(w->f) < 0 || ends_of(w->f).flushed_offset < end)
            wrong(w, __LINE__);
        plog_checkpoint(w->f->l, end, true);
    }
    return NULL;
}

static void *clean_loop(void *arg)
{
    struct crowd *w = arg;
    struct clean_result r = { 0 };

    while (!atomic_load(&w->over)) {
        struct clean_options o = clean_all(w->f);
        o.first_dirty = r.first_dirty;
        if (plog_clean(w->f->l, &o, &r) < 0)
            wrong(w, __LINE__);
        atomic_fetch_add(&w->passes, 1);
    }
    return NULL;
}

static void cleaning_disturbs_nobody(void **state)
{
    struct fixture *f = *state;
    struct crowd w = { .f = f };
    void *(*const loops[])(void *) = { append_loop, read_loop, read_loop, flush_loop, clean_loop };
    pthread_t t[ARRAY_LEN(loops)];

    f->cfg.segment_bytes = 2000;
    f->cfg.index_interval_bytes = 200;
    must_open(f);
    for (size_t i = 0; i < ARRAY_LEN(loops); i++)
        assert_int_equal(pthread_create(&t[i], NULL, loops[i], &w), 0);
    for (size_t i = 0; i < ARRAY_LEN(loops); i++)
        pthread_join(t[i], NULL);
    assert_int_equal(atomic_load(&w.wrong), 0);
    assert_true(atomic_load(&w.passes) > 0);
    seal_log(f);
    clean_log(f, 0);
    char *text = log_text(f), want[1024];
    int n = 0;
    for (int i = APPENDS - KEYS; i < APPENDS; i++)
        n += snprintf(want + n, sizeof want - (size_t)n, "%d:k%d=%d ", i, i % KEYS, i);
    assert_string_equal(text, want);
    check_text(f);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(cleaning_disturbs_nobody, fixture_setup, fixture_teardown),
    };
    return RUN(tests);
}
