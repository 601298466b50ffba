/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case C02 and more: every cache file of a log, damaged in every way, after a clean stop and after a kill.
 * The log is the truth: each offset, each timestamp and each text position is answered as before, with no
 * manual step.
 */
#include "storetest.h"

#define BATCHES 120

enum damage {
    DAMAGE_REMOVE,
    DAMAGE_EMPTY,
    DAMAGE_ZERO,
    DAMAGE_APPEND,
    DAMAGE_FRONT,
    DAMAGE_RANDOM,
    DAMAGE_CUT_INSIDE_ENTRY,
    DAMAGE_HALF,
    DAMAGE_STALE,
    DAMAGES
};

static void fill(struct fixture *f)
{
    for (int i = 0; i < BATCHES; i++) {
        struct batch_spec spec = { .n = 2, .value_bytes = 500 + i % 5 * 100, .producer_id = 4 };
        spec.timestamp = T0 + i * 1000;
        spec.base_sequence = 2 * i;
        assert_int_equal(append_spec(f, &spec).base_offset, 2 * i);
    }
}

static void check_everything(struct fixture *f)
{
    int64_t text = 0, got, base, o, ts;
    struct batch_spec again = {
        .n = 2, .value_bytes = 1, .producer_id = 4, .base_sequence = 2 * BATCHES - 2
    };

    assert_int_equal(ends_of(f).end_offset, 2 * BATCHES);
    assert_int_equal(check_log(f), 2 * BATCHES);
    for (int i = 0; i < BATCHES; i++) {
        struct plog_span s;
        int64_t value = 501 + i % 5 * 100;
        assert_int_equal(plog_read(f->l, 2 * i + 1, 2 * BATCHES, 1, true, &s), 0);
        assert_int_equal(s.base_offset, 2 * i);
        plog_span_release(&s);
        assert_int_equal(plog_find_time(f->l, T0 + i * 1000, 2 * BATCHES, &o, &ts), 0);
        assert_int_equal(o, 2 * i);
        assert_int_equal(ts, T0 + i * 1000);
        assert_int_equal(plog_text_of_offset(f->l, 2 * i + 1, &got), 0);
        assert_int_equal(got, text + value);
        assert_int_equal(plog_offset_of_text(f->l, text + value, &base, &got), 0);
        assert_int_equal(base, 2 * i);
        assert_int_equal(got, text);
        text += 2 * value;
    }
    assert_int_equal(plog_find_time(f->l, T0 + BATCHES * 1000, 2 * BATCHES, &o, &ts), 0);
    assert_int_equal(o, -1);
    assert_true(append_spec(f, &again).duplicate);
}

static void damage_file(struct fixture *f, const char *name, enum damage how, uint32_t *seed)
{
    int64_t n = file_size(f, name);
    uint8_t junk[64];

    for (size_t i = 0; i < sizeof junk; i++)
        junk[i] = (uint8_t)((*seed = *seed * 1664525 + 1013904223) >> 16);
    switch (how) {
    case DAMAGE_REMOVE:
        file_remove(f, name);
        break;
    case DAMAGE_EMPTY:
        file_cut(f, name, 0);
        break;
    case DAMAGE_ZERO:
        file_zero(f, name);
        break;
    case DAMAGE_APPEND:
        file_poke(f, name, -1, "abc", 3);
        break;
    case DAMAGE_FRONT:
        file_poke(f, name, 0, junk, sizeof junk);
        break;
    case DAMAGE_RANDOM:
        file_poke(f, name, *seed % (uint32_t)(n + 1), junk, 20);
        break;
    case DAMAGE_CUT_INSIDE_ENTRY:
        file_cut(f, name, n > 3 ? n - 3 : 0);
        break;
    case DAMAGE_HALF:
        file_cut(f, name, n / 2);
        break;
    case DAMAGE_STALE: /* an entry of another place in the log */
        file_poke(f, name, 0, "\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1", 20);
        break;
    case DAMAGES:
        break;
    }
}

static void damage_all(struct fixture *f, const char *suffix, enum damage how, uint32_t *seed)
{
    struct listing ls;
    char name[64];
    int dirfd = open(f->path, O_RDONLY | O_DIRECTORY);

    assert_int_equal(listing_read(&store_io_real, dirfd, "orders-0", &ls), 0);
    close(dirfd);
    for (int i = 0; i < ls.n_logs; i++) {
        snprintf(name, sizeof name, "%020lld%s", (long long)ls.logs[i], suffix);
        if (file_size(f, name) >= 0)
            damage_file(f, name, how, seed);
    }
    for (int i = 0; i < ls.n_snapshots; i++) {
        snprintf(name, sizeof name, "%020lld%s", (long long)ls.snapshots[i], suffix);
        if (file_size(f, name) >= 0)
            damage_file(f, name, how, seed);
    }
    listing_done(&ls);
}

static void damaged_caches_change_no_answer(void **state)
{
    static const char *const kinds[] = { ".index", ".timeindex", ".text", ".producers" };
    struct fixture *f = *state;
    uint32_t seed = 7;

    f->cfg.segment_bytes = 60000;
    f->cfg.index_interval_bytes = 2000;
    must_open(f);
    fill(f);
    assert_int_equal(flush(f), 0);
    check_everything(f);
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        for (enum damage how = 0; how < DAMAGES; how++) {
            for (int clean = 0; clean < 2; clean++) {
                if (clean == 0)
                    assert_int_equal(plog_checkpoint(f->l, 0, true), 0);
                shut(f, clean);
                damage_all(f, kinds[k], how, &seed);
                must_open(f);
                check_everything(f);
            }
        }
    }
}

/* The .log itself, hit at random below the flush point after a clean stop: whole batches that are not hit are
 * all there. */
static void damage_in_the_log_stays_where_it_is(void **state)
{
    struct fixture *f = *state;
    uint32_t seed = 3;

    f->cfg.segment_bytes = 60000;
    must_open(f);
    fill(f);
    shut(f, true);
    for (int round = 0; round < 30; round++) {
        char path[PATH_MAX];
        uint8_t saved[40], junk[40];
        int64_t at = (seed = seed * 1664525 + 1013904223) % 50000;
        int bad = 0;

        file_path(f, SEG0 ".log", path);
        int fd = open(path, O_RDONLY);
        assert_int_equal(pread(fd, saved, sizeof saved, at), sizeof saved);
        close(fd);
        for (size_t i = 0; i < sizeof junk; i++)
            junk[i] = (uint8_t)(saved[i] ^ (1 + i));
        file_poke(f, SEG0 ".log", at, junk, sizeof junk);
        must_open(f);
        assert_int_equal(ends_of(f).end_offset, 2 * BATCHES);
        for (int i = 0; i < BATCHES; i++) {
            struct plog_span s;
            uint8_t bytes[8192];
            struct batch_header h;
            int rc = plog_read(f->l, 2 * i, 2 * BATCHES, 1, true, &s);
            if (rc == 0 && s.n > 0 && s.n <= (int64_t)sizeof bytes && plog_span_read(&s, bytes) == 0 &&
                batch_check(slice_of(bytes, (size_t)s.n), 1 << 20, &h) == 0)
                assert_int_equal(h.base_offset, 2 * i);
            else
                bad++;
            plog_span_release(&s);
        }
        assert_true(bad >= 1 && bad <= 2);
        shut(f, true);
        file_poke(f, SEG0 ".log", at, saved, sizeof saved);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(damaged_caches_change_no_answer),
        T(damage_in_the_log_stays_where_it_is),
    };
    return RUN(tests);
}
