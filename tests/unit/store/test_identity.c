/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only what was written to a log is read from it: the fields of a batch that its checksum does not cover, files of
 * another partition, copies from before.
 */
#include "storetest.h"

#include "lib/store/metafiles.h"

#include <pthread.h>

#define VALUE 300

/* Record o has (o * 7) % 251 as the byte of its value; base: so that two logs differ. */
static void put(struct fixture *f, struct plog *l, int64_t n, int base)
{
    struct batch_builder b;
    struct batch_producer none = { .id = -1, .epoch = -1, .base_sequence = -1 };
    struct bytebuf bytes = { 0 };
    struct plog_appended a;
    struct batch_info info = { .text_bytes = n * (VALUE + 1) };
    struct plog_ends e;
    char value[VALUE];

    plog_ends(l, &e);
    batch_builder_init(&b);
    for (int64_t i = 0; i < n; i++) {
        memset(value, (int)(((e.end_offset + i) * 7 + base) % 251), sizeof value);
        batch_builder_add(&b, T0 + e.end_offset + i, KSTR_NULL, kstr_bytes(value, sizeof value), NULL, 0);
    }
    assert_int_equal(batch_builder_finish(&b, CODEC_NONE, 0, &none, 0, &bytes), 0);
    batch_builder_done(&b);
    batch_header_read(bytes.p, &info.h);
    plog_append(l, bytes.p, bytes.n, &info, f->epoch, f->now_ms, -1, &a);
    assert_int_equal(a.err, KERR_NONE);
    bytebuf_done(&bytes);
}

/* Reads everything, and sees that what comes is what was put there. Returns how many records cannot be read. */
static int64_t read_all(struct plog *l, int base, int64_t max_bytes)
{
    struct record_iter it;
    struct record r;
    struct plog_ends e;
    int64_t bad = 0;

    plog_ends(l, &e);
    record_iter_init(&it);
    for (int64_t next = e.start_offset; next < e.end_offset;) {
        struct plog_span s;
        int rc = plog_read(l, next, e.end_offset, max_bytes, true, &s);
        if (rc < 0) {
            assert_int_equal(rc, -EBADMSG);
            bad++;
            next++;
            continue;
        }
        assert_true(s.n > 0);
        uint8_t *p = xmalloc((size_t)s.n);
        assert_int_equal(plog_span_read(&s, p), 0);
        int64_t from = next;
        for (struct slice rest = slice_of(p, (size_t)s.n); rest.n > 0;) {
            struct batch_header h;
            if (batch_check(rest, 1 << 30, &h) != 0) { /* a payload leaves as it is, and clients see it */
                batch_header_read(rest.p, &h);
                bad += batch_last_offset(&h) + 1 - next;
            } else {
                assert_int_equal(record_iter_start(&it, rest, 1 << 30), 0);
                while (record_iter_next(&it, &r) == 1) {
                    assert_int_equal(r.timestamp, T0 + r.offset);
                    assert_int_equal(r.value.n, VALUE);
                    assert_int_equal((uint8_t)r.value.p[0], (r.offset * 7 + base) % 251);
                    assert_true(r.offset >= from);
                }
            }
            assert_true(h.base_offset <= next && batch_last_offset(&h) >= next);
            next = batch_last_offset(&h) + 1;
            from = next;
            rest = slice_of(rest.p + batch_size(&h), rest.n - (size_t)batch_size(&h));
        }
        free(p);
        plog_span_release(&s);
    }
    record_iter_done(&it);
    return bad;
}

static void small(struct fixture *f)
{
    f->cfg.segment_bytes = 8000;
    f->cfg.index_interval_bytes = 1500;
}

/* A log of small segments with n batches of two records. */
static void open_small(struct fixture *f, int n)
{
    small(f);
    must_open(f);
    for (int i = 0; i < n; i++)
        put(f, f->l, 2, 0);
}

/* Each bit of the fields outside the checksum, of a first, a middle and a last batch of a segment. */
static void a_flipped_offset_or_length_hides_one_batch(void **state)
{
    struct fixture *f = *state;
    static const int batches[] = { 0, 5, 8, 10 };

    open_small(f, 60);
    int64_t one = ends_of(f).size_bytes / 60;
    shut(f, true);
    int64_t in_first = file_size(f, SEG0 ".log") / one;
    assert_int_equal(in_first, 11);
    for (size_t b = 0; b < ARRAY_LEN(batches); b++) {
        for (int bit = 0; bit < 96; bit++) {
            uint8_t byte;
            char path[PATH_MAX];
            int64_t at = batches[b] * one + bit / 8;
            file_path(f, SEG0 ".log", path);
            int fd = open(path, O_RDWR);
            assert_int_equal(pread(fd, &byte, 1, at), 1);
            uint8_t flipped = (uint8_t)(byte ^ (1 << bit % 8));
            assert_int_equal(pwrite(fd, &flipped, 1, at), 1);
            must_open(f);
            assert_int_equal(ends_of(f).end_offset, 120);
            for (int way = 0; way < 2; way++) {
                int64_t bad = read_all(f->l, 0, way == 0 ? 1 : 1 << 20);
                if (bad != 2)
                    fail_msg("batch %d, bit %d: %lld records cannot be read", batches[b], bit, (long long)bad);
            }
            put(f, f->l, 2, 0);
            assert_int_equal(plog_truncate(f->l, 120), 0);
            shut(f, bit % 2 == 0);
            assert_int_equal(pwrite(fd, &byte, 1, at), 1);
            close(fd);
            must_open(f);
            assert_int_equal(read_all(f->l, 0, 1 << 20), 0);
            shut(f, true);
        }
    }
    must_open(f);
}

static void copy_file(const struct fixture *f, const char *from, const char *to)
{
    char a[PATH_MAX + 80], b[PATH_MAX + 80];
    struct bytebuf bytes = { 0 };

    snprintf(a, sizeof a, "%s/%s", f->path, from);
    snprintf(b, sizeof b, "%s/%s", f->path, to);
    assert_int_equal(fs_read_file(AT_FDCWD, a, 64 << 20, &bytes), 0);
    int fd = open(b, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(fs_write_all(fd, bytes.p, bytes.n), 0);
    close(fd);
    bytebuf_done(&bytes);
}

static struct plog *open_other(struct fixture *f)
{
    struct plog_recovery rec;
    struct plog *l;
    assert_int_equal(plog_open(f->dd, "orders", 1, &f->topic_id, &f->cfg, f->now_ms, &l, &rec), 0);
    return l;
}

/* Every file of another partition in the place of this one's: nothing of it is read or believed. */
static void another_partitions_file_is_not_read(void **state)
{
    static const char *const files[] = {
        "00000000000000000000.log",  "00000000000000000000.index",     "00000000000000000000.timeindex",
        "00000000000000000000.text", "00000000000000000022.log",       "00000000000000000022.text",
        "00000000000000000110.log",  "00000000000000000110.text",      "00000000000000000110.index",
        CHECKPOINT_FILE,             MARK_FILE,                        EPOCHS_FILE,
    };
    struct fixture *f = *state;

    small(f);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        for (int how = 0; how < 4; how++) { /* bit 0: clean; bit 1: the other log's batches have other sizes */
            char from[PATH_MAX], to[PATH_MAX];
            must_open(f);
            struct plog *other = open_other(f);
            for (int k = 0; k < 55 + 4; k++) {
                put(f, f->l, 2, 0);
                put(f, other, how & 2 && k % 12 == 0 ? 3 : 2, 100);
                if (how & 2 && k % 12 == 0)
                    assert_int_equal(plog_truncate(other, 2 * (k + 1)), 0);
                struct plog_ends e;
                plog_ends(other, &e);
                while (e.end_offset < 2 * (k + 1)) {
                    put(f, other, 1, 100);
                    plog_ends(other, &e);
                }
            }
            assert_int_equal(flush(f), 0);
            assert_int_equal(plog_close(other, true, 0), 0);
            if (how % 2 == 0)
                assert_int_equal(plog_checkpoint(f->l, 0, true), 0);
            shut(f, how % 2);
            snprintf(from, sizeof from, "orders-1/%s", files[i]);
            snprintf(to, sizeof to, "orders-0/%s", files[i]);
            copy_file(f, from, to);
            must_open(f);
            int64_t bad = read_all(f->l, 0, 1 << 20), again = read_all(f->l, 0, 1);
            assert_true(again <= bad);
            struct plog_ends e = ends_of(f);
            if (strstr(files[i], ".log") == NULL) {
                assert_int_equal(bad, 0);
                assert_int_equal(e.end_offset, 118);
            } else {
                assert_true(bad > 0 || (e.end_offset < 118 && strstr(f->rec.note, "LOST") != NULL));
            }
            put(f, f->l, 2, 0);
            read_all(f->l, 0, 1 << 20);
            shut(f, true);
            must_open(f);
            read_all(f->l, 0, 1 << 20);
            shut(f, true);
            assert_int_equal(fs_remove_tree(AT_FDCWD, f->path), 0);
            assert_int_equal(mkdir(f->path, 0755), 0);
        }
    }
    must_open(f);
}

/* A sealed segment cut short, or gone, with the next ones there, after a clean stop: told, and nothing is skipped. */
static void what_is_missing_after_a_clean_stop_is_told(void **state)
{
    struct fixture *f = *state;

    open_small(f, 60);
    int64_t one = ends_of(f).size_bytes / 60;
    shut(f, true);
    file_cut(f, "00000000000000000022.log", 10 * one);
    must_open(f);
    assert_non_null(strstr(f->rec.note, "42..43"));
    assert_int_equal(read_all(f->l, 0, 1 << 20), 2);
    shut(f, true);
    file_remove(f, "00000000000000000044.log");
    must_open(f);
    assert_non_null(strstr(f->rec.note, "42..65"));
    assert_int_equal(read_all(f->l, 0, 1 << 20), 2 + 22);
    shut(f, true);
    file_remove(f, SEG0 ".log");
    must_open(f);
    assert_non_null(strstr(f->rec.note, "0..21"));
    assert_int_equal(ends_of(f).start_offset, 22);
    reopen(f, true);
    assert_string_equal(f->rec.note, "");
    assert_int_equal(read_all(f->l, 0, 1 << 20), 2 + 22);
}

/* What was read once is not looked at again. */
static void a_look_is_remembered(void **state)
{
    struct fixture *f = *state;

    open_small(f, 60);
    reopen(f, true);
    assert_int_equal(read_all(f->l, 0, 1 << 20), 0);
    for (int i = 0; i < f->l->n_segs; i++) {
        const struct segment *s = f->l->segs[i];
        assert_int_equal(s->n_good, 1);
        assert_int_equal(s->good[0].from, 0);
        assert_int_equal(s->good[0].to, s->sum.size);
    }
    put(f, f->l, 2, 0);
    const struct segment *s = plog_active(f->l);
    assert_int_equal(read_all(f->l, 0, 1 << 20), 0);
    assert_true(s->trusted < s->sum.size && s->n_good == 1);
}

/* After a kill nothing but partition.flushed says what lies above the checkpoint and the last entry of .text. */
static void whole_batches_of_another_log_above_the_checkpoint_are_not_taken(void **state)
{
    struct fixture *f = *state;

    f->cfg.index_interval_bytes = 1 << 20;
    must_open(f);
    for (int i = 0; i < 5; i++)
        put(f, f->l, 2, 0);
    reopen(f, true); /* with a checkpoint at offset 10 */
    for (int i = 0; i < 5; i++)
        put(f, f->l, 2, 0);
    assert_int_equal(flush(f), 0);
    int64_t one = ends_of(f).size_bytes / 10;
    struct bytebuf ours = { 0 }, theirs = { 0 };
    char path[PATH_MAX];
    file_path(f, SEG0 ".log", path);
    assert_int_equal(fs_read_file(AT_FDCWD, path, 1 << 20, &ours), 0);
    assert_int_equal(plog_truncate(f->l, 10), 0);
    for (int i = 0; i < 5; i++)
        put(f, f->l, 2, 100);
    assert_int_equal(fs_read_file(AT_FDCWD, path, 1 << 20, &theirs), 0);
    assert_int_equal(theirs.n, ours.n);
    assert_int_equal(flush(f), 0);
    shut(f, false);
    struct { int first, n; } const copied[] = { { 0, 5 }, { 0, 1 }, { 2, 1 }, { 4, 1 } };
    for (size_t i = 0; i < ARRAY_LEN(copied); i++) {
        char mark[PATH_MAX], check[PATH_MAX];
        struct bytebuf m = { 0 }, c = { 0 };
        file_path(f, "partition.flushed", mark);
        file_path(f, "partition.checkpoint", check);
        assert_int_equal(fs_read_file(AT_FDCWD, mark, 1 << 20, &m), 0);
        assert_int_equal(fs_read_file(AT_FDCWD, check, 1 << 20, &c), 0);
        int64_t at = (5 + copied[i].first) * one;
        file_poke(f, SEG0 ".log", at, ours.p + at, (size_t)(copied[i].n * one));
        must_open(f);
        assert_int_equal(ends_of(f).end_offset, 10);
        assert_non_null(strstr(f->rec.note, "does not hold what was written there"));
        assert_non_null(strstr(f->rec.note, "LOST 10 records"));
        assert_true(f->rec.lost_end);
        assert_int_equal(f->rec.cut_bytes, 5 * one);
        assert_int_equal(read_all(f->l, 0, 1 << 20), 0);
        put(f, f->l, 2, 0);
        reopen(f, false);
        assert_int_equal(ends_of(f).end_offset, 12);
        assert_int_equal(read_all(f->l, 0, 1 << 20), 0);
        shut(f, false);
        file_poke(f, SEG0 ".log", 0, theirs.p, theirs.n); /* as it was: not a word about it */
        file_poke(f, "partition.flushed", 0, m.p, m.n);
        file_poke(f, "partition.checkpoint", 0, c.p, c.n);
        must_open(f);
        assert_int_equal(ends_of(f).end_offset, 20);
        assert_string_equal(f->rec.note, "");
        shut(f, false);
        file_poke(f, "partition.flushed", 0, m.p, m.n);
        file_poke(f, "partition.checkpoint", 0, c.p, c.n);
        bytebuf_done(&m);
        bytebuf_done(&c);
    }
    bytebuf_done(&ours);
    bytebuf_done(&theirs);
}

/* A whole file of another log, shorter than the one that was there, among those that a start after a kill scans. */
static void a_shorter_file_of_another_log_is_kept_and_the_log_opens(void **state)
{
    struct fixture *f = *state;

    small(f);
    must_open(f);
    struct plog *other = open_other(f);
    for (int i = 0; i < 59; i++)
        put(f, f->l, 2, 0);
    for (int i = 0; i < 12; i++)
        put(f, other, 1, 100);
    assert_int_equal(flush(f), 0);
    assert_int_equal(plog_close(other, true, 0), 0);
    shut(f, false);
    int64_t size = file_size(f, "00000000000000000022.log");
    copy_file(f, "orders-1/" SEG0 ".log", "orders-0/00000000000000000022.log");
    assert_true(file_size(f, "00000000000000000022.log") < size);
    for (int i = 0; i < 2; i++) {
        must_open(f);
        assert_int_equal(ends_of(f).end_offset, 118);
        assert_int_equal(read_all(f->l, 0, 1 << 20), 22);
        shut(f, false);
    }
    must_open(f);
}

struct no_wait {
    struct plog *l;
    struct plog_span span;
    int rc;
};

static void *read_without_waiting(void *arg)
{
    struct no_wait *w = arg;

    plog_thread_may_not_wait();
    w->rc = plog_read(w->l, 22, 118, 1 << 20, true, &w->span);
    return NULL;
}

/* Made ready is one batch; the entry of .text behind it is damaged, and to mend that takes waiting. */
static void what_is_ready_is_read_without_waiting_for_the_rest(void **state)
{
    struct fixture *f = *state;
    struct plog_span s;
    pthread_t t;

    open_small(f, 59);
    int64_t one = ends_of(f).size_bytes / 59;
    shut(f, true);
    file_poke(f, "00000000000000000022.text", 96 + 24 + 2, "x", 1);
    must_open(f);
    assert_int_equal(plog_read(f->l, 22, 118, 0, true, &s), 0);
    assert_int_equal(s.n, one);
    plog_span_release(&s);
    struct no_wait w = { .l = f->l };
    assert_int_equal(pthread_create(&t, NULL, read_without_waiting, &w), 0);
    pthread_join(t, NULL);
    assert_int_equal(w.rc, 0);
    assert_true(w.span.n >= one && w.span.n < 11 * one);
    plog_span_release(&w.span);
    assert_int_equal(read_all(f->l, 0, 1 << 20), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(whole_batches_of_another_log_above_the_checkpoint_are_not_taken),
        T(a_shorter_file_of_another_log_is_kept_and_the_log_opens),
        T(what_is_ready_is_read_without_waiting_for_the_rest),
        T(a_flipped_offset_or_length_hides_one_batch),
        T(another_partitions_file_is_not_read),
        T(what_is_missing_after_a_clean_stop_is_told),
        T(a_look_is_remembered),
    };
    return RUN(tests);
}
