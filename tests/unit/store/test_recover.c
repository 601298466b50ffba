/* SPDX-License-Identifier: Apache-2.0 */
/* What a log makes of an unproven stop: torn tails, damage, lost files, and never an offset given twice. */
#include "simtest.h"

#include "lib/base/crc32c.h"

static void after_a_kill_everything_written_is_there(void **state)
{
    struct fixture *f = *state;

    f->cfg.segment_bytes = 30000;
    must_open(f);
    for (int i = 0; i < 100; i++)
        append_n(f, 3, 300);
    assert_int_equal(flush(f), 0);
    for (int i = 0; i < 10; i++)
        append_n(f, 3, 300);
    reopen(f, false);
    assert_false(f->rec.clean);
    assert_int_equal(f->rec.cut_bytes, 0);
    assert_string_equal(f->rec.note, "");
    struct plog_ends e = ends_of(f);
    assert_int_equal(e.end_offset, 330);
    assert_int_equal(e.flushed_offset, 330);
    assert_int_equal(check_log(f), 330);
    assert_int_equal(append_n(f, 1, 1).base_offset, 330);
}

static void only_what_lies_behind_the_checkpoint_is_scanned(void **state)
{
    struct fixture *f = *state;

    must_open(f);
    for (int i = 0; i < 100; i++)
        append_n(f, 3, 300);
    int64_t before = ends_of(f).size_bytes;
    assert_int_equal(flush(f), 0);
    assert_int_equal(plog_checkpoint(f->l, 300, true), 0);
    append_n(f, 3, 300);
    int64_t after = ends_of(f).size_bytes;
    reopen(f, false);
    assert_int_equal(f->rec.scanned_bytes, after - before);
    assert_int_equal(ends_of(f).end_offset, 303);
    assert_int_equal(check_log(f), 303);
    reopen(f, false); /* so little is scanned again, and no start waits for a checkpoint */
    assert_int_equal(f->rec.scanned_bytes, after - before);
    assert_int_equal(plog_checkpoint(f->l, 303, true), 0);
    reopen(f, false);
    assert_int_equal(f->rec.scanned_bytes, 0);
}

static int64_t syncs_of_a_start(struct fixture *f, struct simdisk *d)
{
    uint64_t before = simdisk_calls(d, SIMDISK_SYNC);
    must_open(f);
    int64_t n = (int64_t)(simdisk_calls(d, SIMDISK_SYNC) - before);
    drop(f);
    return n;
}

/* A broker starts with thousands of logs: none waits for what need not be on the disk. */
static void a_start_after_a_kill_syncs_what_was_not_flushed_and_no_more(void **state)
{
    struct fixture *f = *state;
    struct simdisk *d = disk_new(f, 1);

    must_open(f);
    append_n(f, 3, 300);
    assert_int_equal(flush(f), 0);
    assert_int_equal(plog_checkpoint(f->l, 3, true), 0);
    drop(f);
    assert_int_equal(syncs_of_a_start(f, d), 2); /* of names, here and above; all of the log is checkpointed */
    must_open(f);
    append_n(f, 3, 300);
    drop(f);
    assert_int_equal(syncs_of_a_start(f, d), 3); /* and of the log */
    simdisk_power_cut(d, SIMDISK_CUT_NONE);
    must_open(f);
    assert_int_equal(ends_of(f).end_offset, 6);
    drop(f);
    disk_free(f, d);
}

/* Case C01, first half: bytes of an old batch behind the end. */
static void garbage_behind_the_end_is_cut_off_and_kept(void **state)
{
    struct fixture *f = *state;
    uint8_t garbage[100];
    char path[PATH_MAX];

    must_open(f);
    for (int i = 0; i < 20; i++)
        append_n(f, 1, 50);
    assert_int_equal(flush(f), 0);
    int64_t size = ends_of(f).size_bytes;
    shut(f, false);
    file_path(f, SEG0 ".log", path);
    int fd = open(path, O_RDONLY);
    assert_int_equal(pread(fd, garbage, sizeof garbage, size - 300), sizeof garbage);
    close(fd);
    file_poke(f, SEG0 ".log", -1, garbage, sizeof garbage);
    must_open(f);
    assert_int_equal(f->rec.cut_bytes, 100);
    assert_int_equal(f->rec.cut_position, size);
    assert_int_equal(file_size(f, f->rec.cut_file), 100);
    assert_int_equal(file_size(f, SEG0 ".log"), size);
    assert_int_equal(append_n(f, 1, 1).base_offset, 20);
    assert_int_equal(check_log(f), 21);
}

/* Case C01, second half: a checkpoint may or may not lie above the cut. */
static void a_torn_last_batch_is_the_only_loss(void **state)
{
    struct fixture *f = *state;

    for (int checkpointed = 0; checkpointed < 2; checkpointed++) {
        must_open(f);
        for (int i = 0; i < 20; i++)
            append_n(f, 1, 50);
        int64_t end = ends_of(f).end_offset, size = ends_of(f).size_bytes;
        assert_int_equal(flush(f), 0);
        if (checkpointed)
            assert_int_equal(plog_checkpoint(f->l, end, true), 0);
        shut(f, false);
        file_cut(f, SEG0 ".log", size - 7);
        must_open(f);
        assert_int_equal(ends_of(f).end_offset, end - 1);
        assert_true(f->rec.cut_bytes > 0);
        assert_non_null(strstr(f->rec.note, "LOST 1 "));
        assert_true(f->rec.lost_end);
        assert_int_equal(append_n(f, 1, 1).base_offset, end - 1);
        assert_int_equal(check_log(f), end);
        shut(f, true);
    }
}

static void a_flipped_bit_in_the_middle_is_never_cut(void **state)
{
    struct fixture *f = *state;

    for (int checkpointed = 0; checkpointed < 2; checkpointed++) {
        must_open(f);
        int64_t start = ends_of(f).end_offset, at = ends_of(f).size_bytes;
        for (int i = 0; i < 20; i++)
            append_n(f, 1, 50);
        assert_int_equal(flush(f), 0);
        if (checkpointed)
            assert_int_equal(plog_checkpoint(f->l, 0, true), 0);
        shut(f, false);
        file_poke(f, SEG0 ".log", at + BATCH_OVERHEAD + 20, "\xff", 1);
        must_open(f);
        assert_int_equal(f->rec.cut_bytes, 0);
        assert_true((strstr(f->rec.note, "damage") != NULL) == !checkpointed);
        assert_int_equal(ends_of(f).end_offset, start + 20);
        assert_int_equal(append_n(f, 1, 1).base_offset, start + 20);
        struct plog_span s;
        assert_int_equal(plog_read(f->l, start + 1, start + 21, 1 << 20, true, &s), 0);
        assert_int_equal(s.base_offset, start + 1);
        plog_span_release(&s);
        shut(f, true);
    }
}

static void a_damaged_header_hides_its_own_batch_only(void **state)
{
    struct fixture *f = *state;
    struct plog_span s;

    must_open(f);
    for (int i = 0; i < 20; i++)
        append_n(f, 1, 50);
    int64_t one = ends_of(f).size_bytes / 20;
    assert_int_equal(flush(f), 0);
    shut(f, false);
    file_poke(f, SEG0 ".log", 5 * one,
              "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 18);
    must_open(f);
    assert_int_equal(f->rec.cut_bytes, 0);
    assert_int_equal(ends_of(f).end_offset, 20);
    assert_int_equal(plog_read(f->l, 5, 20, 1 << 20, true, &s), -EBADMSG);
    for (int64_t o = 6; o < 20; o++) {
        assert_int_equal(plog_read(f->l, o, 20, 1, true, &s), 0);
        assert_int_equal(s.base_offset, o);
        plog_span_release(&s);
    }
    assert_int_equal(plog_read(f->l, 0, 20, 5 * one + 1, true, &s), 0);
    int64_t n = s.n;
    plog_span_release(&s);
    assert_int_equal(n, 5 * one);
}

/* Base offset and leader epoch lie outside the checksum: a flipped bit there must not cost what follows. */
static void a_flipped_offset_or_epoch_hides_its_own_batch_only(void **state)
{
    struct fixture *f = *state;
    static const int64_t fields[] = { BATCH_BASE_OFFSET + 5, BATCH_BASE_OFFSET + 7, BATCH_LEADER_EPOCH + 1 };

    f->cfg.segment_bytes = 3000;
    must_open(f);
    for (int i = 0; i < 40; i++)
        append_n(f, 1, 100);
    int64_t one = ends_of(f).size_bytes / 40;
    int per_segment = (int)(file_size(f, SEG0 ".log") / one);
    assert_int_equal(flush(f), 0);
    assert_int_equal(plog_checkpoint(f->l, 0, true), 0);
    for (size_t k = 0; k < ARRAY_LEN(fields); k++) {
        shut(f, false);
        file_poke(f, SEG0 ".log", 5 * one + fields[k], "\x40", 1);
        file_zero(f, CHECKPOINT_FILE);
        must_open(f);
        assert_int_equal(f->rec.cut_bytes, 0);
        assert_int_equal(ends_of(f).end_offset, 40);
        for (int64_t o = 0; o < 40; o++) {
            struct plog_span s;
            int rc = plog_read(f->l, o, 40, 1, true, &s);
            int64_t base = s.base_offset;
            plog_span_release(&s);
            if (o == 5 && k < 2)
                assert_int_equal(rc, -EBADMSG);
            else
                assert_int_equal(base, o);
        }
        assert_true(per_segment > 7);
        file_poke(f, SEG0 ".log", 5 * one + fields[k], fields[k] == 7 ? "\5" : "\0", 1);
        file_zero(f, CHECKPOINT_FILE);
        reopen(f, false);
        assert_string_equal(f->rec.note, CHECKPOINT_FILE " is damaged: scanned from the start");
    }
    assert_int_equal(check_log(f), 40);
}

/* Case C06. */
static void lost_checkpoints_cost_a_scan_and_nothing_else(void **state)
{
    struct fixture *f = *state;

    f->cfg.segment_bytes = 30000;
    must_open(f);
    plog_epoch_begin(f->l, 0);
    for (int i = 0; i < 100; i++)
        append_n(f, 3, 300);
    assert_int_equal(flush(f), 0);
    assert_int_equal(plog_delete_before(f->l, 130), 0);
    assert_int_equal(plog_checkpoint(f->l, 300, true), 0);
    int logs = count_files(f, ".log");
    shut(f, false);
    for (int round = 0; round < 2; round++) {
        if (round == 0) {
            file_zero(f, CHECKPOINT_FILE);
            file_zero(f, EPOCHS_FILE);
        } else {
            file_cut(f, CHECKPOINT_FILE, 0);
            file_cut(f, EPOCHS_FILE, 0);
        }
        must_open(f);
        assert_non_null(strstr(f->rec.note, CHECKPOINT_FILE));
        assert_non_null(strstr(f->rec.note, EPOCHS_FILE));
        assert_true(f->rec.scanned_bytes > 0);
        assert_int_equal(ends_of(f).start_offset, 130);
        assert_int_equal(ends_of(f).end_offset, 300);
        assert_int_equal(plog_epoch_latest(f->l), 0);
        assert_int_equal(count_files(f, ".log"), logs);
        assert_int_equal(check_log(f), 300);
        shut(f, false);
    }
}

static void a_hole_of_zero_pages_is_where_the_disk_ended(void **state)
{
    struct fixture *f = *state;
    static const uint8_t zeros[12288];

    must_open(f);
    for (int i = 0; i < 20; i++)
        append_n(f, 1, 3000);
    int64_t one = ends_of(f).size_bytes / 20;
    shut(f, false);
    file_poke(f, SEG0 ".log", 8192, zeros, sizeof zeros);
    must_open(f);
    assert_int_equal(ends_of(f).end_offset, 8192 / one);
    assert_int_equal(f->rec.cut_bytes, (20 - 8192 / one) * one);
    assert_int_equal(check_log(f), 8192 / one);
}

static void a_torn_segment_takes_the_later_ones_along(void **state)
{
    struct fixture *f = *state;

    f->cfg.segment_bytes = 3000;
    must_open(f);
    for (int i = 0; i < 6; i++)
        append_n(f, 1, 1000);
    assert_int_equal(count_files(f, ".log"), 3);
    int64_t size = file_size(f, "00000000000000000002.log");
    shut(f, false);
    file_cut(f, "00000000000000000002.log", size - 10);
    must_open(f);
    assert_int_equal(ends_of(f).end_offset, 3);
    assert_int_equal(count_files(f, ".log"), 2);
    assert_int_equal(count_files(f, ".cut"), 2);
    assert_int_equal(append_n(f, 1, 1000).base_offset, 3);
    assert_int_equal(check_log(f), 4);
}

/* Case C03. */
static void offsets_go_on_after_any_stop(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 12; i++) {
        must_open(f);
        assert_int_equal(append_n(f, 5, 20).base_offset, i * 5);
        if (i % 3 == 0)
            assert_int_equal(flush(f), 0);
        shut(f, i % 2 == 0);
    }
    must_open(f);
    assert_int_equal(check_log(f), 60);
}

static void a_producers_window_survives_a_kill(void **state)
{
    struct fixture *f = *state;
    struct batch_spec spec = { .n = 2, .value_bytes = 9, .producer_id = 77, .producer_epoch = 1 };

    must_open(f);
    for (int i = 0; i < 8; i++) {
        spec.base_sequence = 2 * i;
        assert_int_equal(append_spec(f, &spec).base_offset, 2 * i);
        if (i == 4) {
            assert_int_equal(flush(f), 0);
            assert_int_equal(plog_checkpoint(f->l, 0, true), 0);
            assert_int_equal(count_files(f, ".producers"), 1);
        }
    }
    for (int round = 0; round < 3; round++) {
        reopen(f, round == 2);
        for (int i = 3; i < 8; i++) {
            spec.base_sequence = 2 * i;
            struct plog_appended a = append_spec(f, &spec);
            assert_int_equal(a.err, KERR_NONE);
            assert_true(a.duplicate);
            assert_int_equal(a.base_offset, 2 * i);
            assert_int_equal(a.last_offset, 2 * i + 1);
        }
        spec.base_sequence = 18;
        assert_int_equal(append_spec(f, &spec).err, KERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    }
    spec.base_sequence = 16;
    assert_int_equal(append_spec(f, &spec).base_offset, 16);
}

/* What it wrote between the snapshot and the first segment that is left is not known any more. */
static void a_producer_whom_retention_overtook_goes_on(void **state)
{
    struct fixture *f = *state;
    struct batch_spec spec = { .n = 1, .value_bytes = 500, .producer_id = 77 }, idle = { .n = 1, .value_bytes = 9, .producer_id = 78 };

    f->cfg.segment_bytes = 3000;
    f->cfg.retention_bytes = 3000;
    must_open(f);
    assert_int_equal(append_spec(f, &idle).base_offset, 0);
    assert_int_equal(flush(f), 0);
    assert_int_equal(plog_checkpoint(f->l, 1, true), 0);
    for (; spec.base_sequence < 40; spec.base_sequence++) {
        assert_int_equal(append_spec(f, &spec).err, KERR_NONE);
        if (spec.base_sequence == 0) {
            assert_int_equal(flush(f), 0);
            assert_int_equal(plog_checkpoint(f->l, 2, true), 0); /* knows its sequence 0 */
        }
    }
    spec.producer_id = 79; /* no batch of 77 is left */
    for (spec.base_sequence = 0; spec.base_sequence < 40; spec.base_sequence++)
        assert_int_equal(append_spec(f, &spec).err, KERR_NONE);
    assert_int_equal(flush(f), 0);
    assert_true(plog_retain(f->l, 81, f->now_ms) > 0);
    assert_true(ends_of(f).start_offset > 41);
    reopen(f, false);
    assert_true(append_spec(f, &idle).duplicate); /* what is known stays known */
    spec.producer_id = 77;
    spec.base_sequence = 0;
    assert_true(append_spec(f, &spec).duplicate);
    spec.base_sequence = 40;
    assert_int_equal(append_spec(f, &spec).err, KERR_NONE);
    spec.base_sequence = 42; /* from here on it is known again */
    assert_int_equal(append_spec(f, &spec).err, KERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    spec.base_sequence = 40;
    spec.producer_id = 79;
    assert_int_equal(append_spec(f, &spec).err, KERR_NONE);
    spec.base_sequence = 42;
    assert_int_equal(append_spec(f, &spec).err, KERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
}

static void a_damaged_snapshot_is_replaced_by_the_log(void **state)
{
    struct fixture *f = *state;
    struct batch_spec spec = { .n = 1, .value_bytes = 9, .producer_id = 77 };

    must_open(f);
    append_spec(f, &spec);
    reopen(f, true);
    shut(f, true);
    file_zero(f, "00000000000000000001.producers");
    must_open(f);
    assert_non_null(strstr(f->rec.note, "producers"));
    assert_true(append_spec(f, &spec).duplicate);
}

/* After a step back to an earlier version of klogd: it is made anew from the log. */
static void a_checkpoint_of_a_later_version_is_done_without(void **state)
{
    struct fixture *f = *state;
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    char path[PATH_MAX];

    must_open(f);
    append_n(f, 3, 100);
    append_n(f, 2, 100);
    shut(f, true);
    file_path(f, "partition.checkpoint", path);
    assert_int_equal(io_read_file(&store_io_real, AT_FDCWD, path, 65536, &b), 0);
    bytebuf_add(&b, "later", 5); /* longer, of the next version, and whole */
    put_be32(b.p + 8, get_be32(b.p + 8) + 1);
    put_be32(b.p + 12, crc32c(0, b.p + 16, b.n - 16));
    file_poke(f, "partition.checkpoint", 0, b.p, b.n);
    must_open(f);
    assert_false(f->rec.clean);
    assert_false(f->rec.holed);
    assert_false(f->rec.lost_end);
    assert_int_equal(ends_of(f).end_offset, 5);
    assert_int_equal(check_log(f), 5);
    reopen(f, true);
    assert_true(f->rec.clean);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_checkpoint_of_a_later_version_is_done_without),
        T(after_a_kill_everything_written_is_there),
        T(only_what_lies_behind_the_checkpoint_is_scanned),
        T(a_start_after_a_kill_syncs_what_was_not_flushed_and_no_more),
        T(garbage_behind_the_end_is_cut_off_and_kept),
        T(a_torn_last_batch_is_the_only_loss),
        T(a_flipped_bit_in_the_middle_is_never_cut),
        T(a_damaged_header_hides_its_own_batch_only),
        T(a_flipped_offset_or_epoch_hides_its_own_batch_only),
        T(lost_checkpoints_cost_a_scan_and_nothing_else),
        T(a_hole_of_zero_pages_is_where_the_disk_ended),
        T(a_torn_segment_takes_the_later_ones_along),
        T(offsets_go_on_after_any_stop),
        T(a_producers_window_survives_a_kill),
        T(a_producer_whom_retention_overtook_goes_on),
        T(a_damaged_snapshot_is_replaced_by_the_log),
    };
    return RUN(tests);
}
