/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A follower's log: whatever pieces its leader's batches come in, its files end up the same bytes; what does not fit is
 * refused and changes nothing; stopped anywhere it goes on where it was, and has what it had flushed.
 */
#include "simtest.h"

/* A second log, which the follower of the test copies. */
static struct fixture *leader_new(struct fixture *like)
{
    void *state;

    assert_int_equal(fixture_setup(&state), 0);
    struct fixture *leader = state;
    leader->cfg = like->cfg;
    return leader;
}

static void leader_free(struct fixture *leader)
{
    void *state = leader;
    assert_int_equal(fixture_teardown(&state), 0);
}

/* What a fetch from `offset` on gives, at most max bytes and one batch at least. */
static void fetch(struct fixture *leader, int64_t offset, int64_t max, struct bytebuf *ret)
{
    struct plog_span s;

    ret->n = 0;
    assert_int_equal(plog_read_to_copy(leader->l, offset, ends_of(leader).end_offset, max, true, &s), 0);
    if (s.n > 0)
        assert_int_equal(plog_span_read(&s, bytebuf_extend(ret, (size_t)s.n)), 0);
    plog_span_release(&s);
}

static int copy(struct fixture *f, const struct bytebuf *b, struct plog_copied *ret)
{
    return plog_append_copy(f->l, slice_of(b->p, b->n), f->now_ms, ret);
}

/* Brokers of several versions copy each other's logs. */
static void a_batch_with_attributes_of_a_later_version_is_kept_as_it_is(void **state)
{
    struct fixture *f = *state;
    struct fixture *leader = leader_new(f);
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 }, back = { 0 };
    struct plog_copied c;

    must_open(leader);
    append_n(leader, 3, 100);
    fetch(leader, 0, 1 << 20, &b);
    put_be16(b.p + BATCH_ATTRIBUTES, 0x8d00); /* none of these bits is known */
    put_be32(b.p + BATCH_CRC, batch_crc(b.p, b.n));
    must_open(f);
    assert_int_equal(copy(f, &b, &c), 0);
    assert_int_equal(flush(f), 0);
    reopen(f, false);
    fetch(f, 0, 1 << 20, &back);
    assert_int_equal(back.n, b.n);
    assert_memory_equal(back.p, b.p, b.n);
    leader_free(leader);
}

/* All that the leader has, in pieces of at most max bytes. */
static void catch_up(struct fixture *leader, struct fixture *f, int64_t max)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    struct plog_copied c;

    while (ends_of(f).end_offset < ends_of(leader).end_offset) {
        int64_t before = ends_of(f).end_offset;
        fetch(leader, before, max, &b);
        assert_int_equal(copy(f, &b, &c), 0);
        assert_true(c.end_offset > before && c.end_offset == ends_of(f).end_offset);
    }
}

static void read_all(const struct fixture *f, const char *file, struct bytebuf *ret)
{
    char path[PATH_MAX];

    ret->n = 0;
    file_path(f, file, path);
    int rc = io_read_file(f->io == NULL ? &store_io_real : f->io, AT_FDCWD, path, 64 << 20, ret);
    if (rc < 0)
        fail_msg("%s: %d", path, rc);
}

struct comparing {
    const struct fixture *leader, *f;
    int n;
    bool only_logs;
};

static int compare_file(void *arg, const char *name, enum io_kind kind)
{
    struct comparing *c = arg;
    CLEANUP(bytebuf_done) struct bytebuf a = { 0 };
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    const char *dot = strrchr(name, '.');
    bool log = dot != NULL && strcmp(dot, ".log") == 0;

    (void)kind;
    if (!log && (c->only_logs || dot == NULL || (strcmp(dot, ".index") != 0 && strcmp(dot, ".timeindex") != 0 && strcmp(dot, ".text") != 0)))
        return 0;
    read_all(c->leader, name, &a);
    read_all(c->f, name, &b);
    if (a.n != b.n)
        fail_msg("%s has %zu bytes, and %zu at the follower", name, a.n, b.n);
    assert_memory_equal(a.p, b.p, a.n);
    c->n++;
    return 0;
}

/* Both logs are closed. How many files were compared. */
static int compare_files(const struct fixture *leader, const struct fixture *f, bool only_logs)
{
    struct comparing c = { .leader = leader, .f = f, .only_logs = only_logs };
    char path[PATH_MAX];

    file_path(leader, ".", path);
    assert_int_equal(store_io_real.list(&store_io_real, AT_FDCWD, path, compare_file, &c), 0);
    return c.n;
}

/* Producers as one text. */
static void tell_producer(void *arg, const struct producer_state *p)
{
    struct bytebuf *b = arg;

    bytebuf_printf(b, "%lld/%d:", (long long)p->id, p->epoch);
    for (int i = 0; i < p->n; i++)
        bytebuf_printf(b, " %d-%d@%lld", p->batches[i].first_sequence, p->batches[i].last_sequence,
                       (long long)p->batches[i].base_offset);
    bytebuf_printf(b, "\n");
}

static void compare_producers(const struct fixture *leader, const struct fixture *f)
{
    CLEANUP(bytebuf_done) struct bytebuf a = { 0 };
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };

    plog_producers_each(leader->l, tell_producer, &a);
    plog_producers_each(f->l, tell_producer, &b);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.p, b.p, a.n);
}

static void compare_epochs(const struct fixture *leader, const struct fixture *f)
{
    for (int32_t epoch = 0; epoch <= plog_epoch_latest(leader->l); epoch++) {
        int32_t ea, eb;
        int64_t a, b;
        plog_epoch_end(leader->l, epoch, &ea, &a);
        plog_epoch_end(f->l, epoch, &eb, &b);
        assert_int_equal(ea, eb);
        assert_int_equal(a, b);
    }
}

static void compare_text(const struct fixture *leader, const struct fixture *f, int64_t end)
{
    for (int64_t o = 0; o <= end; o += 7) {
        int64_t a, b;
        assert_int_equal(plog_text_of_offset(leader->l, o, &a), 0);
        assert_int_equal(plog_text_of_offset(f->l, o, &b), 0);
        assert_int_equal(a, b);
    }
}

static void small(struct fixture *f)
{
    f->cfg.segment_bytes = 9000;
    f->cfg.index_interval_bytes = 600;
    f->cfg.segment_ms = 60000;
}

/* A batch as clients send them: codecs, producers, sizes and times by chance; an epoch now and then. */
static void append_any(struct fixture *leader, struct rnd *r, int64_t *ts, int32_t sequence[4])
{
    static const enum codec codecs[] = { CODEC_NONE, CODEC_NONE, CODEC_GZIP, CODEC_LZ4 };
    int64_t id = (int64_t)rnd_below(r, 4);
    struct batch_spec spec = {
        .n = (int)rnd_range(r, 1, 9),
        .value_bytes = (int)rnd_range(r, 0, 400),
        .timestamp = *ts += rnd_one_in(r, 40) ? 70000 : (int64_t)rnd_below(r, 20),
        .codec = codecs[rnd_below(r, 4)],
        .producer_id = id,
        .base_sequence = id == 0 ? 0 : sequence[id],
    };

    if (rnd_one_in(r, 30))
        plog_epoch_begin(leader->l, ++leader->epoch);
    if (id != 0)
        sequence[id] += spec.n;
    assert_int_equal(append_spec(leader, &spec).err, KERR_NONE);
}

static void whatever_pieces_it_comes_in_the_files_are_the_same(void **state)
{
    struct fixture *f = *state;
    struct rnd r = rnd_of(1, RND_SWARM, 0);
    int32_t sequence[4] = { 0 };
    int64_t ts = T0;

    small(f);
    struct fixture *leader = leader_new(f);
    must_open(leader);
    must_open(f);
    for (int i = 0; i < 600; i++) {
        append_any(leader, &r, &ts, sequence);
        if (rnd_one_in(&r, 12))
            catch_up(leader, f, rnd_range(&r, 1, 30000));
        if (rnd_one_in(&r, 40))
            assert_int_equal(flush(f), 0);
        if (rnd_one_in(&r, 100))
            reopen(f, true);
    }
    catch_up(leader, f, 1 << 20);
    compare_producers(leader, f);
    compare_epochs(leader, f);
    compare_text(leader, f, ends_of(leader).end_offset);
    int64_t end = ends_of(leader).end_offset;
    shut(leader, true);
    shut(f, true);
    assert_true(compare_files(leader, f, false) > 4 * 50);
    must_open(leader);
    must_open(f);
    assert_string_equal(f->rec.note, "");
    assert_int_equal(check_log(f), end);
    leader_free(leader);
}

/* What it has learnt as a follower serves it as a leader: a repetition is one, a producer goes on. */
static void a_follower_that_becomes_leader_knows_the_producers(void **state)
{
    struct fixture *f = *state;
    struct fixture *leader = leader_new(f);
    struct batch_spec spec = { .n = 2, .value_bytes = 10, .producer_id = 5 };

    must_open(leader);
    must_open(f);
    append_spec(leader, &spec);
    spec.base_sequence = 2;
    append_spec(leader, &spec);
    catch_up(leader, f, 1 << 20);
    f->epoch = 1;
    plog_epoch_begin(f->l, 1);
    struct plog_appended a = append_spec(f, &spec);
    assert_true(a.duplicate);
    assert_int_equal(a.base_offset, 2);
    spec.base_sequence = 6;
    assert_int_equal(append_spec(f, &spec).err, KERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    spec.base_sequence = 4;
    assert_int_equal(append_spec(f, &spec).base_offset, 4);
    leader_free(leader);
}

static void what_is_there_already_is_passed_over(void **state)
{
    struct fixture *f = *state;
    struct fixture *leader = leader_new(f);
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    struct plog_copied c;

    must_open(leader);
    must_open(f);
    for (int i = 0; i < 10; i++)
        append_n(leader, 3, 50);
    fetch(leader, 0, 1 << 20, &b);
    size_t one = b.n / 10;
    b.n = 4 * one + one / 2; /* the last one is cut off where max_bytes ended */
    assert_int_equal(copy(f, &b, &c), 0);
    assert_int_equal(c.appended, 4);
    assert_int_equal(c.end_offset, 12);
    assert_int_equal(copy(f, &b, &c), 0);
    assert_int_equal(c.appended, 0);
    b.n = 10 * one;
    assert_int_equal(copy(f, &b, &c), 0);
    assert_int_equal(c.appended, 6);
    assert_int_equal(c.end_offset, 30);
    assert_int_equal(check_log(f), 30);
    b.n = one / 3;
    assert_int_equal(copy(f, &b, &c), 0);
    assert_int_equal(c.appended, 0);
    leader_free(leader);
}

/* Each is refused with what comes after it, and what came before it is in the log. */
static void what_does_not_fit_is_refused(void **state)
{
    struct fixture *f = *state;
    struct fixture *leader = leader_new(f);
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    struct plog_copied c;

    must_open(leader);
    must_open(f);
    leader->epoch = 5;
    for (int i = 0; i < 4; i++)
        append_n(leader, 2, 50);
    fetch(leader, 0, 1 << 20, &b);
    size_t one = b.n / 4;
    CLEANUP(freep) uint8_t *good = xmalloc(b.n);
    memcpy(good, b.p, b.n);

    b.p[one + 100] ^= 1;
    assert_int_equal(copy(f, &b, &c), -EBADMSG);
    assert_string_equal(c.bad, "a batch is damaged");
    assert_int_equal(c.bad_offset, 2);
    assert_int_equal(c.appended, 1);
    assert_int_equal(ends_of(f).end_offset, 2);

    memcpy(b.p, good, b.n);
    batch_set_leader_epoch(b.p + one, 4);
    assert_int_equal(copy(f, &b, &c), -EBADMSG);
    assert_string_equal(c.bad, "leader epochs go back");
    batch_set_leader_epoch(b.p, 4);
    struct bytebuf second = { .p = b.p + one, .n = one };
    assert_int_equal(copy(f, &second, &c), -EBADMSG);
    assert_string_equal(c.bad, "its leader epoch is older than the log's last");
    assert_int_equal(copy(f, &b, &c), -EBADMSG);
    assert_string_equal(c.bad, "the log has a batch of another leader epoch there");

    memcpy(b.p, good, b.n);
    batch_set_base_offset(b.p + one, 1);
    assert_int_equal(copy(f, &second, &c), -EBADMSG);
    assert_string_equal(c.bad, "it begins below the log's end and reaches over it");
    batch_set_base_offset(b.p + 2 * one, 1);
    assert_int_equal(copy(f, &b, &c), -EBADMSG);
    assert_string_equal(c.bad, "offsets go back");

    memcpy(b.p, good, b.n);
    batch_set_base_offset(b.p + one, INT64_MAX);
    assert_int_equal(copy(f, &second, &c), -EBADMSG);
    assert_string_equal(c.bad, "a batch's counts contradict each other");
    batch_set_base_offset(b.p + one, 2);
    batch_set_leader_epoch(b.p + one, -1);
    assert_int_equal(copy(f, &second, &c), -EBADMSG);
    assert_string_equal(c.bad, "a batch has no leader epoch");

    assert_int_equal(ends_of(f).end_offset, 2);
    memcpy(b.p, good, b.n);
    assert_int_equal(copy(f, &b, &c), 0);
    assert_int_equal(check_log(f), 8);
    leader_free(leader);
}

/* A leader that got nothing written, and then follows one that goes on in an older epoch. */
static void an_epoch_without_records_gives_way(void **state)
{
    struct fixture *f = *state;
    struct fixture *leader = leader_new(f);
    int32_t epoch;
    int64_t end;

    must_open(leader);
    must_open(f);
    leader->epoch = 1;
    append_n(leader, 4, 10);
    catch_up(leader, f, 1 << 20);
    plog_epoch_begin(f->l, 2);
    append_n(leader, 4, 10);
    leader->epoch = 3;
    plog_epoch_begin(leader->l, 3);
    append_n(leader, 4, 10);
    catch_up(leader, f, 1 << 20);
    plog_epoch_end(f->l, 2, &epoch, &end);
    assert_int_equal(epoch, 1);
    assert_int_equal(end, 8);
    compare_epochs(leader, f);
    leader_free(leader);
}

/* One batch of two records at `offset`. */
static void batch_at(int64_t offset, int32_t epoch, struct bytebuf *ret)
{
    const struct batch_spec spec = { .n = 2, .value_bytes = 100 };

    ret->n = 0;
    make_batch(&spec, ret);
    batch_set_base_offset(ret->p, offset);
    batch_set_leader_epoch(ret->p, epoch);
}

static void copy_at(struct fixture *f, int64_t offset)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    struct plog_copied c;

    batch_at(offset, 0, &b);
    assert_int_equal(copy(f, &b, &c), 0);
    assert_int_equal(c.end_offset, offset + 2);
}

/* Reads on from `offset` the batch that begins at `base`. */
static void assert_reads(struct fixture *f, int64_t offset, int64_t base)
{
    struct plog_span s;
    uint8_t head[BATCH_OVERHEAD];

    assert_int_equal(plog_read(f->l, offset, ends_of(f).end_offset, 1, true, &s), 0);
    assert_true(s.n > BATCH_OVERHEAD);
    assert_int_equal(pread(segfile_fd(s.file), head, sizeof head, s.at), sizeof head);
    plog_span_release(&s);
    assert_int_equal(get_be64(head), base);
}

static void offsets_that_compaction_took_are_skipped(void **state)
{
    struct fixture *f = *state;
    const int64_t at[] = { 0, 2, 10, 12, 5000, 2147488647, 2147488649, 4294970000, 4294970007 };

    f->cfg.segment_bytes = 600;
    must_open(f);
    for (size_t i = 0; i < ARRAY_LEN(at); i++)
        copy_at(f, at[i]);
    for (int how = 0; how < 3; how++) {
        for (size_t i = 0; i < ARRAY_LEN(at); i++) {
            assert_reads(f, at[i], at[i]);
            if (i > 0)
                assert_reads(f, at[i - 1] + 2, at[i]);
        }
        assert_int_equal(ends_of(f).end_offset, 4294970009);
        assert_int_equal(flush(f), 0);
        reopen(f, how == 0);
    }
}

/* No leader's segment has more offsets than that, so no gap is larger. */
static void more_offsets_than_a_segment_spans_are_not_skipped(void **state)
{
    struct fixture *f = *state;
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    struct plog_copied c;

    must_open(f);
    batch_at(2147483647, 0, &b);
    assert_int_equal(copy(f, &b, &c), -EBADMSG);
    assert_string_equal(c.bad, "more offsets are missing than any segment spans");
    assert_int_equal(ends_of(f).end_offset, 0);
    copy_at(f, 2147483646);
    assert_reads(f, 0, 2147483646);
    batch_at(4294967295, 0, &b);
    assert_int_equal(copy(f, &b, &c), -EBADMSG);
    copy_at(f, 4294967294);
    assert_reads(f, 2147483648, 4294967294);
}

/* At the end of an active segment a gap looks like a damaged offset: nothing but what was flushed tells. */
static void a_gap_at_the_end_survives_a_power_cut_once_it_is_flushed(void **state)
{
    struct fixture *f = *state;

    for (int how = SIMDISK_CUT_NONE; how < SIMDISK_CUTS; how++) {
        struct simdisk *d = disk_new(f, (uint64_t)how);
        must_open(f);
        copy_at(f, 0);
        assert_int_equal(flush(f), 0);
        copy_at(f, 40);
        assert_int_equal(flush(f), 0);
        copy_at(f, 90);
        assert_int_equal(flush(f), 0);
        assert_int_equal(ends_of(f).flushed_offset, 92);
        drop(f);
        simdisk_power_cut(d, (enum simdisk_cut)how);
        must_open(f);
        assert_int_equal(ends_of(f).end_offset, 92);
        drop(f);
        disk_free(f, d);
    }
}

/* A cut leads to where offsets are missing: what is left of the gap before the last batch, and the end behind it, outlive a power cut,
 * and nothing is said to be lost. */
static void a_cut_between_batches_survives_a_power_cut(void **state)
{
    struct fixture *f = *state;

    for (int how = SIMDISK_CUT_NONE; how < SIMDISK_CUTS; how++) {
        struct simdisk *d = disk_new(f, (uint64_t)how);
        must_open(f);
        copy_at(f, 0);
        copy_at(f, 40);
        copy_at(f, 90);
        assert_int_equal(plog_truncate(f->l, 70), 0);
        assert_int_equal(ends_of(f).end_offset, 70);
        assert_int_equal(flush(f), 0);
        assert_int_equal(ends_of(f).flushed_offset, 70);
        drop(f);
        simdisk_power_cut(d, (enum simdisk_cut)how);
        must_open(f);
        assert_string_equal(f->rec.note, "");
        assert_int_equal(ends_of(f).end_offset, 70);
        copy_at(f, 75);
        static const int64_t at[] = { 2, 40, 42, 75 };
        for (int i = 0; i < 4; i += 2) {
            struct plog_span span;
            assert_int_equal(plog_read(f->l, at[i], 77, 1, true, &span), 0);
            assert_int_equal(span.base_offset, at[i + 1]);
            plog_span_release(&span);
        }
        drop(f);
        disk_free(f, d);
    }
}

/* The batch that goes on at such an end has missing offsets before it, too. */
static void a_batch_where_a_cut_was_survives_a_power_cut(void **state)
{
    struct fixture *f = *state;

    for (int how = SIMDISK_CUT_NONE; how < SIMDISK_CUTS; how++) {
        struct simdisk *d = disk_new(f, (uint64_t)how);
        must_open(f);
        copy_at(f, 0);
        copy_at(f, 40);
        copy_at(f, 90);
        assert_int_equal(plog_truncate(f->l, 70), 0);
        copy_at(f, 70);
        assert_int_equal(flush(f), 0);
        drop(f);
        simdisk_power_cut(d, (enum simdisk_cut)how);
        must_open(f);
        assert_string_equal(f->rec.note, "");
        assert_int_equal(ends_of(f).end_offset, 72);
        drop(f);
        disk_free(f, d);
    }
}

/* The checkpoint vouches for such an end as well, when a cut has lowered the mark and gone no further. */
static void a_cut_that_failed_leaves_the_end_between_batches(void **state)
{
    struct fixture *f = *state;
    struct simdisk_fault second_sync = { .ops = 1u << SIMDISK_SYNC, .at = 1, .n = 1, .eno = EIO };
    struct simdisk *d = disk_new(f, 1);

    must_open(f);
    copy_at(f, 0);
    copy_at(f, 40);
    copy_at(f, 90);
    assert_int_equal(plog_truncate(f->l, 70), 0);
    assert_int_equal(flush(f), 0);
    assert_int_equal(plog_checkpoint(f->l, 42, true), 0);
    simdisk_plan(d, &second_sync, 1);
    assert_int_equal(plog_truncate(f->l, 60), -EIO);
    simdisk_plan(d, NULL, 0);
    drop(f);
    must_open(f);
    assert_string_equal(f->rec.note, "");
    assert_int_equal(ends_of(f).end_offset, 70);
    drop(f);
    disk_free(f, d);
}

/* For want of a descriptor at any of its steps a restart is half done: nothing is appended until it is done, or taken back. */
static void a_restart_that_met_an_error_goes_on_or_is_taken_back(void **state)
{
    struct fixture *f = *state;
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    int n_half = 0;
    bool hit = true;

    batch_at(20, 0, &b);
    for (int64_t at = 0; hit; at++) {
        struct simdisk_fault none_left = { .ops = 1u << SIMDISK_OPEN | 1u << SIMDISK_CREATE, .at = at / 3, .n = 1, .eno = EMFILE };
        struct simdisk *d = disk_new(f, (uint64_t)at);
        struct plog_copied c;
        f->cfg.segment_bytes = 2500;
        must_open(f);
        for (int i = 0; i < 20; i++)
            append_n(f, 1, 300);
        assert_int_equal(flush(f), 0);
        datadir_set_file_limit(f->dd, 1, INT_MAX);
        simdisk_plan(d, &none_left, 1);
        int rc = plog_restart(f->l, 1000, 5000);
        hit = simdisk_plan_was_hit(d);
        simdisk_plan(d, NULL, 0);
        assert_true(rc == 0 || rc == -EMFILE);
        bool half = rc < 0 && ends_of(f).end_offset == 1000;
        n_half += half;
        if (half)
            assert_int_equal(copy(f, &b, &c), -EAGAIN);
        if (half && at % 3 == 0 && ends_of(f).start_offset == 0) {
            assert_int_equal(plog_truncate(f->l, 20), 0);
            assert_int_equal(plog_epoch_at(f->l, 19), f->epoch);
            assert_int_equal(copy(f, &b, &c), 0);
            assert_int_equal(ends_of(f).end_offset, 22);
            assert_int_equal(check_log(f), 22);
        } else {
            int64_t base = at % 3 == 1 ? 1000 : 1001;
            if (rc < 0)
                assert_int_equal(plog_restart(f->l, base, 5000), 0);
            base = rc < 0 ? base : 1000;
            assert_int_equal(ends_of(f).start_offset, base);
            assert_int_equal(ends_of(f).end_offset, base);
            copy_at(f, base);
            assert_int_equal(count_files(f, ".log"), 1);
        }
        drop(f);
        disk_free(f, d);
    }
    assert_true(n_half >= 6);
}

static void restarts_above_its_end(void **state)
{
    struct fixture *f = *state;
    int64_t text;

    small(f);
    must_open(f);
    for (int i = 0; i < 60; i++)
        append_n(f, 1, 500);
    assert_int_equal(plog_restart(f->l, 59, 0), -EINVAL);
    assert_int_equal(plog_restart(f->l, 60, 0), -EINVAL);
    assert_int_equal(plog_restart(f->l, 100, 77000), 0);
    assert_int_equal(ends_of(f).start_offset, 100);
    assert_int_equal(ends_of(f).end_offset, 100);
    assert_int_equal(ends_of(f).size_bytes, 0);
    assert_int_equal(count_files(f, ".log"), 1);
    assert_int_equal(plog_epoch_at(f->l, 99), -1);
    assert_int_equal(plog_text_of_offset(f->l, 100, &text), 0);
    assert_int_equal(text, 77000);
    assert_int_equal(plog_restart(f->l, 100, 78000), 0); /* it is empty: once more, with another text */
    copy_at(f, 100);
    assert_int_equal(plog_text_of_offset(f->l, 101, &text), 0);
    assert_int_equal(text, 78101);
    assert_int_equal(plog_restart(f->l, 102, 0), -EINVAL);
    for (int how = 0; how < 2; how++) {
        assert_int_equal(flush(f), 0);
        reopen(f, how == 0);
        assert_string_equal(f->rec.note, "");
        assert_int_equal(ends_of(f).start_offset, 100);
        assert_int_equal(ends_of(f).end_offset, 102);
        assert_int_equal(plog_text_of_offset(f->l, 102, &text), 0);
        assert_int_equal(text, 78202);
        assert_int_equal(plog_n_producers(f->l), 0);
    }
}

/* ---- stopped at any call ---- */

enum { LEADER_BATCHES = 60 };

/* The leader's log as bytes: batches of 1 to 3 records, with offsets missing where compaction was, epochs rising. */
struct source {
    struct bytebuf bytes;
    size_t at[LEADER_BATCHES + 1];
    int64_t base[LEADER_BATCHES + 1]; /* offsets; the last: the end */
};

static void source_make(struct source *s, struct rnd *r, bool gaps)
{
    int64_t offset = 0;
    int32_t epoch = 0;

    for (int i = 0; i < LEADER_BATCHES; i++) {
        const struct batch_spec spec = {
            .n = (int)rnd_range(r, 1, 3),
            .value_bytes = (int)rnd_range(r, 10, 300),
            .producer_id = rnd_one_in(r, 2) ? 3 : 0,
            .base_sequence = i * 10,
            .codec = rnd_one_in(r, 3) ? CODEC_LZ4 : CODEC_NONE,
        };
        s->at[i] = s->bytes.n;
        make_batch(&spec, &s->bytes);
        offset += gaps && rnd_one_in(r, 3) ? (int64_t)rnd_below(r, 20) : 0;
        epoch += rnd_one_in(r, 8);
        s->base[i] = offset;
        batch_set_base_offset(s->bytes.p + s->at[i], offset);
        batch_set_leader_epoch(s->bytes.p + s->at[i], epoch);
        offset += spec.n;
    }
    s->at[LEADER_BATCHES] = s->bytes.n;
    s->base[LEADER_BATCHES] = offset;
}

/* The batch from which on a follower that ends there has to go on; -1: no batch ends there. */
static int source_next(const struct source *s, int64_t end)
{
    if (end == 0)
        return 0;
    for (int i = 0; i < LEADER_BATCHES; i++) {
        struct batch_header h;
        batch_header_read(s->bytes.p + s->at[i], &h);
        if (batch_last_offset(&h) + 1 == end)
            return i + 1;
    }
    return -1;
}

/* One life: copies pieces, flushes some, until the end or the first error. *flushed: what was confirmed. */
static void live_copying(struct fixture *f, const struct source *s, struct rnd *r, int64_t *flushed)
{
    struct datadir_identity id = { .broker_id = 1 };
    struct plog_copied c;
    char err[256];

    if (datadir_open(f->path, world_of(f), &id, &f->dd, err, sizeof err) < 0 ||
        plog_open(f->dd, "orders", 0, &f->topic_id, &f->cfg, f->now_ms, &f->l, &f->rec) < 0)
        return;
    int i = source_next(s, ends_of(f).end_offset);
    assert_true(i >= 0);
    while (i < LEADER_BATCHES) {
        int n = (int)rnd_range(r, 1, 8), again = (int)rnd_below(r, 3); /* some of it once more */
        int to = MIN(i + n, LEADER_BATCHES), from = MAX(i - again, 0);
        struct slice piece = slice_of(s->bytes.p + s->at[from], s->at[to] - s->at[from]);
        if (plog_append_copy(f->l, piece, f->now_ms, &c) < 0)
            return;
        i = to;
        if (rnd_one_in(r, 2)) {
            if (flush(f) < 0)
                return;
            *flushed = MAX(*flushed, ends_of(f).flushed_offset);
        }
        if (rnd_one_in(r, 6) && plog_checkpoint(f->l, ends_of(f).flushed_offset, true) < 0)
            return;
    }
}

/* All that it has is the leader's, from the first batch on, byte for byte. */
static void check_copied(struct fixture *f, const struct source *s, int64_t flushed)
{
    struct plog_scan_item it;

    must_open(f);
    int64_t end = ends_of(f).end_offset;
    int n = source_next(s, end), i = 0;
    if (end < flushed || n < 0)
        fail_msg("%lld were flushed, it ends at %lld", (long long)flushed, (long long)end);
    struct plog_scan *scan = plog_scan_new(f->l, 0, end);
    while (plog_scan_next(scan, &it) == 1) {
        assert_false(it.lost);
        assert_true(i < n && it.batch.n == s->at[i + 1] - s->at[i]);
        assert_memory_equal(it.batch.p, s->bytes.p + s->at[i], it.batch.n);
        assert_int_equal(plog_epoch_at(f->l, s->base[i]), (int32_t)get_be32(it.batch.p + BATCH_LEADER_EPOCH));
        i++;
    }
    plog_scan_free(scan);
    assert_int_equal(i, n);
    drop(f);
}

/* Several lives, each stopped somewhere; then one that comes to the end. */
static void copy_through_stops(struct fixture *f, uint64_t seed)
{
    struct rnd r = rnd_of(seed, RND_CUT, 0);
    struct simdisk *d = disk_new(f, seed);
    struct source s = { 0 };
    int64_t flushed = 0;

    f->cfg.segment_bytes = 2500;
    f->cfg.index_interval_bytes = 600;
    source_make(&s, &r, rnd_one_in(&r, 2));
    for (int life = 0; life < 4; life++) {
        simdisk_stop_in(d, rnd_range(&r, 0, 200));
        live_copying(f, &s, &r, &flushed);
        drop(f);
        simdisk_stop_in(d, -1);
        end_life(d, (int)rnd_below(&r, STOP_CUT + SIMDISK_CUTS));
        check_copied(f, &s, flushed);
        simdisk_kill(d);
    }
    live_copying(f, &s, &r, &flushed);
    assert_int_equal(ends_of(f).end_offset, s.base[LEADER_BATCHES]);
    assert_int_equal(flush(f), 0);
    drop(f);
    simdisk_power_cut(d, SIMDISK_CUT_NONE);
    check_copied(f, &s, s.base[LEADER_BATCHES]);
    disk_free(f, d);
    bytebuf_done(&s.bytes);
}

static void stopped_anywhere_it_goes_on_where_it_was(void **state)
{
    each_seed(*state, 150, copy_through_stops);
}

/* S2: no room for all of a piece: none of a run stays, and it goes on when there is room. */
static void a_full_disk_leaves_no_half_piece(void **state)
{
    struct fixture *f = *state;

    for (int64_t room = 0; room < 16000; room += 500) {
        struct rnd r = rnd_of((uint64_t)room, RND_CUT, 0);
        struct simdisk *d = disk_new(f, (uint64_t)room);
        struct source s = { 0 };
        struct plog_copied c;
        f->cfg.segment_bytes = 2500;
        source_make(&s, &r, true);
        must_open(f);
        simdisk_set_capacity(d, simdisk_used(d) + room);
        int rc = plog_append_copy(f->l, slice_of(s.bytes.p, s.bytes.n), f->now_ms, &c);
        assert_true(rc == 0 || rc == -ENOSPC);
        int at = source_next(&s, c.end_offset);
        assert_true(at >= 0 && at == c.appended);
        assert_int_equal(segfile_size(plog_active(f->l)->log), plog_active(f->l)->sum.size);
        assert_false(datadir_failed(f->dd));
        simdisk_set_capacity(d, 0);
        assert_int_equal(plog_append_copy(f->l, slice_of(s.bytes.p, s.bytes.n), f->now_ms, &c), 0);
        assert_int_equal(c.end_offset, s.base[LEADER_BATCHES]);
        assert_int_equal(flush(f), 0);
        drop(f);
        check_copied(f, &s, s.base[LEADER_BATCHES]);
        disk_free(f, d);
        bytebuf_done(&s.bytes);
    }
}

/* A restart that is stopped at any call: the log is the old one, or begins where it should. */
static void sweep_restart(struct fixture *f, int how)
{
    bool hit = true;

    for (int64_t at = 0; hit; at++) {
        struct simdisk *d = disk_new(f, (uint64_t)at);
        f->cfg.segment_bytes = 2500;
        must_open(f);
        for (int i = 0; i < 20; i++)
            append_n(f, 1, 300);
        assert_int_equal(flush(f), 0);
        simdisk_stop_in(d, at);
        int rc = plog_restart(f->l, 1000, 5000);
        hit = simdisk_stopped(d);
        drop(f);
        simdisk_stop_in(d, -1);
        end_life(d, how);
        must_open(f);
        struct plog_ends e = ends_of(f);
        if (e.end_offset == 20)
            assert_true(rc < 0 && e.start_offset == 0);
        else
            assert_true(e.end_offset == 1000 && (e.start_offset == 1000 || rc < 0));
        assert_int_equal(plog_restart(f->l, 1001, 5001), 0);
        copy_at(f, 1001);
        assert_int_equal(flush(f), 0);
        reopen(f, false);
        assert_string_equal(f->rec.note, "");
        assert_int_equal(ends_of(f).start_offset, 1001);
        assert_int_equal(check_log(f), 1003);
        drop(f);
        disk_free(f, d);
    }
}

static void a_restart_stopped_anywhere_is_done_or_not(void **state)
{
    sweep_restart(*state, STOP_KILL);
    for (int how = SIMDISK_CUT_NONE; how < SIMDISK_CUTS; how++)
        sweep_restart(*state, STOP_CUT + how);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_batch_with_attributes_of_a_later_version_is_kept_as_it_is),
        T(whatever_pieces_it_comes_in_the_files_are_the_same),
        T(a_follower_that_becomes_leader_knows_the_producers),
        T(what_is_there_already_is_passed_over),
        T(what_does_not_fit_is_refused),
        T(an_epoch_without_records_gives_way),
        T(offsets_that_compaction_took_are_skipped),
        T(more_offsets_than_a_segment_spans_are_not_skipped),
        T(a_gap_at_the_end_survives_a_power_cut_once_it_is_flushed),
        T(a_cut_between_batches_survives_a_power_cut),
        T(a_batch_where_a_cut_was_survives_a_power_cut),
        T(a_cut_that_failed_leaves_the_end_between_batches),
        T(a_restart_that_met_an_error_goes_on_or_is_taken_back),
        T(restarts_above_its_end),
        T(stopped_anywhere_it_goes_on_where_it_was),
        T(a_full_disk_leaves_no_half_piece),
        T(a_restart_stopped_anywhere_is_done_or_not),
    };
    return RUN(tests);
}
