/* SPDX-License-Identifier: Apache-2.0 */
/* Offsets and text positions against a plain list of every record's place. */
#include "storetest.h"

struct truth { /* text position of every record, and of the end */
    int64_t *at;
    int64_t n;
};

static void truth_add(struct truth *t, int records, int value_bytes)
{
    t->at = xreallocarray(t->at, (size_t)(t->n + records + 1), sizeof *t->at);
    if (t->n == 0)
        t->at[0] = 0;
    for (int i = 0; i < records; i++, t->n++)
        t->at[t->n + 1] = t->at[t->n] + value_bytes + 1;
}

static void fill(struct fixture *f, struct truth *t, int batches)
{
    for (int i = 0; i < batches; i++) {
        struct batch_spec spec = { .n = 1 + i % 9, .value_bytes = i % 10 == 0 ? 0 : i * 37 % 700 };
        spec.codec = i % 3 == 1 ? CODEC_LZ4 : i % 7 == 2 ? CODEC_GZIP : CODEC_NONE;
        append_spec(f, &spec);
        truth_add(t, spec.n, spec.value_bytes);
    }
}

static void check_all(struct fixture *f, const struct truth *t, int64_t start)
{
    int64_t pos, base, base_pos;

    for (int64_t o = start; o <= t->n; o++) {
        assert_int_equal(plog_text_of_offset(f->l, o, &pos), 0);
        assert_int_equal(pos, t->at[o]);
    }
    for (int64_t p = t->at[start]; p < t->at[t->n]; p += 61) {
        assert_int_equal(plog_offset_of_text(f->l, p, &base, &base_pos), 0);
        assert_int_equal(base_pos, t->at[base]);
        assert_true(base_pos <= p);
        struct plog_span s;
        uint8_t head[BATCH_OVERHEAD];
        struct batch_header h;
        assert_int_equal(plog_read(f->l, MAX(base, start), t->n, 1, true, &s), 0);
        assert_int_equal(pread(segfile_fd(s.file), head, sizeof head, s.at), sizeof head);
        plog_span_release(&s);
        batch_header_read(head, &h);
        assert_int_equal(h.base_offset, base);
        assert_true(t->at[batch_last_offset(&h) + 1] > p);
    }
    assert_int_equal(plog_offset_of_text(f->l, t->at[t->n], &base, &base_pos), 0);
    assert_int_equal(base, t->n);
    assert_int_equal(plog_offset_of_text(f->l, t->at[t->n] + 1, &base, &base_pos), -ERANGE);
    assert_int_equal(plog_offset_of_text(f->l, -1, &base, &base_pos), -ERANGE);
    assert_int_equal(plog_text_of_offset(f->l, t->n + 1, &pos), -ERANGE);
}

static void every_position_is_found_before_and_after_any_stop(void **state)
{
    struct fixture *f = *state;
    struct truth t = { 0 };

    f->cfg.segment_bytes = 60000;
    must_open(f);
    fill(f, &t, 200);
    check_all(f, &t, 0);
    reopen(f, true);
    check_all(f, &t, 0);
    fill(f, &t, 50);
    assert_int_equal(flush(f), 0);
    assert_int_equal(plog_checkpoint(f->l, 0, true), 0);
    fill(f, &t, 20);
    reopen(f, false);
    check_all(f, &t, 0);
    free(t.at);
}

static void positions_survive_retention(void **state)
{
    struct fixture *f = *state;
    struct truth t = { 0 };
    int64_t pos, base;

    f->cfg.segment_bytes = 30000;
    must_open(f);
    fill(f, &t, 300);
    int64_t start = t.n / 2;
    assert_int_equal(plog_delete_before(f->l, start), 0);
    check_all(f, &t, start);
    assert_int_equal(plog_text_of_offset(f->l, start - 1, &pos), -ERANGE);
    assert_int_equal(plog_offset_of_text(f->l, 0, &base, &pos), -ERANGE);
    reopen(f, false);
    check_all(f, &t, start);
    free(t.at);
}

static void lost_text_files_are_made_anew_from_the_log(void **state)
{
    struct fixture *f = *state;
    struct truth t = { 0 };
    char name[64];

    f->cfg.segment_bytes = 30000;
    must_open(f);
    fill(f, &t, 300);
    for (int way = 0; way < 4; way++) {
        shut(f, way % 2 == 0);
        struct listing ls;
        int dirfd = open(f->path, O_RDONLY | O_DIRECTORY);
        assert_int_equal(listing_read(&store_io_real, dirfd, "orders-0", &ls), 0);
        close(dirfd);
        for (int i = 0; i < ls.n_logs; i++) {
            snprintf(name, sizeof name, "%020lld.text", (long long)ls.logs[i]);
            if (file_size(f, name) < 0)
                continue;
            if (way == 0)
                file_remove(f, name);
            else if (way == 1)
                file_zero(f, name);
            else if (way == 2)
                file_cut(f, name, file_size(f, name) - 3);
            else if (i % 2 == 0)
                file_poke(f, name, 100, "garbage", 7);
        }
        listing_done(&ls);
        must_open(f);
        check_all(f, &t, 0);
    }
    free(t.at);
}

/* What tail and stat need of a large log right after a start: a few small reads, whatever its size. */
static void the_end_is_found_without_reading_the_log(void **state)
{
    struct fixture *f = *state;
    struct truth t = { 0 };
    int64_t pos, base;

    f->cfg.segment_bytes = 60000;
    must_open(f);
    fill(f, &t, 300);
    reopen(f, true);
    assert_int_equal(filecache_open_files(datadir_files(f->dd)), 0);
    assert_int_equal(plog_text_of_offset(f->l, t.n, &pos), 0);
    assert_int_equal(pos, t.at[t.n]);
    assert_int_equal(filecache_open_files(datadir_files(f->dd)), 0);
    assert_int_equal(plog_offset_of_text(f->l, pos - 1, &base, &pos), 0);
    assert_int_equal(filecache_open_files(datadir_files(f->dd)), 2);
    free(t.at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(every_position_is_found_before_and_after_any_stop),
        T(positions_survive_retention),
        T(lost_text_files_are_made_anew_from_the_log),
        T(the_end_is_found_without_reading_the_log),
    };
    return RUN(tests);
}
