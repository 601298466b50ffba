/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checkers of the simulator against histories that were made by hand: a good one passes, and each bad one is told by the
 * number of the rule that it breaks. A checker that says nothing here would say nothing about a broker either.
 */
#include "unit.h"

#include <fcntl.h>

#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/base/varint.h"
#include "tests/sim/diskcheck.h"

enum { T = 0, P = 0, C = 1 }; /* the topic, its partition, the client */

struct fixture {
    struct sim *sim;
    struct play *p; /* its truth and its disk are used */
    struct truth *t;
    char rule[16];
    jmp_buf back; /* where a broken rule leads */
};

static void on_failure(void *arg, const char *rule)
{
    struct fixture *f = arg;
    snprintf(f->rule, sizeof f->rule, "%s", rule);
    longjmp(f->back, 1);
}

/* The history breaks this rule and is told so; NULL: it breaks none. */
static void must_break(struct fixture *f, const char *rule, void (*history)(struct fixture *f))
{
    f->rule[0] = '\0';
    if (setjmp(f->back) == 0)
        history(f);
    assert_string_equal(f->rule, rule == NULL ? "" : rule);
}

static int setup(void **state)
{
    static const struct simdisk_config cfg = { .seed = 1 };
    struct fixture *f = xcalloc(1, sizeof *f);
    struct uuid id = { .b = { 7 } };
    f->sim = sim_new(1);
    f->p = xcalloc(1, sizeof *f->p);
    f->p->sim = f->sim;
    f->p->disk = simdisk_new(&cfg);
    f->p->swarm.n_dirs = 1;
    f->t = &f->p->truth;
    truth_init(f->t, f->sim);
    sim_on_failure(f->sim, on_failure, f);
    truth_topic_asked(f->t, "t0", false, false, false);
    assert_int_equal(truth_topic_shown(f->t, "t0", &id, 2, 0), T);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    truth_done(f->t);
    simdisk_free(f->p->disk);
    sim_free(f->sim);
    free(f->p);
    free(f);
    return 0;
}

/* ---- what clients do ---- */
/* A batch of n records; pid -1: of no idempotent producer. */
static struct truth_batch *send_as(struct fixture *f, int n, int64_t pid, int16_t epoch, int32_t seq)
{
    struct sim_batch_spec spec = { .client = C,
                                   .batch = f->t->clients[C].n,
                                   .count = n,
                                   .value_bytes = 10,
                                   .n_keys = 2,
                                   .keys = 5,
                                   .producer_id = pid,
                                   .producer_epoch = epoch,
                                   .base_sequence = seq };
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    struct truth_batch *tb = truth_new_batch(f->t, C, T, P, &spec, -1);
    sim_batch_write(&spec, &b);
    tb->crc = get_be32(b.p + 17);
    return tb;
}

static int32_t sent(struct fixture *f, int n)
{
    return send_as(f, n, -1, -1, -1)->spec.batch;
}

static void acked(struct fixture *f, int32_t batch, int64_t at)
{
    truth_acked(f->t, truth_batch(f->t, C, batch), at);
}

static void put_offset(uint8_t *p, int64_t base)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(base >> (56 - 8 * i));
}

/* Its bytes as they stand at an offset. */
static void bytes_of(struct fixture *f, int32_t batch, int64_t base, struct bytebuf *ret)
{
    size_t from = ret->n;
    sim_batch_write(&truth_batch(f->t, C, batch)->spec, ret);
    put_offset(ret->p + from, base);
}

static void polled(struct fixture *f, int32_t batch, int64_t at, int64_t expected)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    bytes_of(f, batch, at, &b);
    truth_read(f->t, T, P, b.p, b.n, expected, 0);
}

/* Three batches of two records each, at 0, 2, 4. */
static void three(struct fixture *f)
{
    for (int i = 0; i < 3; i++)
        acked(f, sent(f, 2), 2 * i);
}

/* ---- histories ---- */
static void good(struct fixture *f)
{
    three(f);
    for (int i = 0; i < 3; i++)
        polled(f, i, 2 * i, 2 * i);
    truth_end_shown(f->t, T, P, 6, 0);
    truth_start_asked(f->t, T, P, 2);
    truth_start_acked(f->t, T, P, 2);
    truth_commit_asked(f->t, 0, T, P, 4);
    truth_commit_acked(f->t, 0, T, P, 4);
    truth_commit_shown(f->t, 0, T, P, 4, 4);
}

static void lost_write(struct fixture *f)
{
    three(f);
    polled(f, 0, 0, 0);
    polled(f, 2, 4, 2); /* where the second was acknowledged */
}

static void lost_end(struct fixture *f)
{
    three(f);
    truth_end_shown(f->t, T, P, 6, 0);
    truth_end_shown(f->t, T, P, 4, 6);
}

static void lost_front(struct fixture *f)
{
    three(f);
    truth_start_shown(f->t, T, P, 2, 0);
}

static void duplicate(struct fixture *f)
{
    three(f);
    polled(f, 1, 2, 2);
    polled(f, 1, 6, 6);
}

static void duplicate_of_what_had_no_answer(struct fixture *f)
{
    truth_unknown(f->t, truth_batch(f->t, C, sent(f, 2)));
    polled(f, 0, 0, 0);
    polled(f, 0, 2, 2);
}

static void phantom(struct fixture *f)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    struct sim_batch_spec spec = { .client = C, .batch = 99, .count = 1, .producer_id = -1 };
    sim_batch_write(&spec, &b);
    truth_read(f->t, T, P, b.p, b.n, 0, 0);
}

static void refused_and_there(struct fixture *f)
{
    truth_refused(f->t, truth_batch(f->t, C, sent(f, 2)));
    polled(f, 0, 0, 0);
}

static void of_another_partition(struct fixture *f)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    three(f);
    bytes_of(f, 0, 0, &b);
    truth_read(f->t, T, P + 1, b.p, b.n, 0, 0);
}

static void other_record_at_an_offset(struct fixture *f)
{
    three(f);
    sent(f, 2);
    polled(f, 3, 4, 4);
}

/* Behind all that was there when it was sent, as C8 wants it, and over another that was under way with it. */
static void two_at_an_offset(struct fixture *f)
{
    int32_t one = sent(f, 2), other = sent(f, 2);
    acked(f, one, 0);
    acked(f, other, 1);
}

static void changed_value(struct fixture *f)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    three(f);
    bytes_of(f, 0, 0, &b);
    b.p[b.n - 3] ^= 1;
    uint32_t crc = sim_crc32c(b.p + 21, b.n - 21);
    for (int i = 0; i < 4; i++)
        b.p[17 + i] = (uint8_t)(crc >> (24 - 8 * i));
    truth_read(f->t, T, P, b.p, b.n, 0, 0);
}

static void damaged_value(struct fixture *f)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    three(f);
    bytes_of(f, 0, 0, &b);
    b.p[b.n - 3] ^= 1;
    truth_read(f->t, T, P, b.p, b.n, 0, 0);
}

static void backwards(struct fixture *f)
{
    three(f);
    polled(f, 1, 2, 2);
    polled(f, 0, 0, 4);
}

static void skips(struct fixture *f)
{
    three(f);
    polled(f, 1, 2, 1);
}

static void out_of_order(struct fixture *f)
{
    int32_t first = send_as(f, 2, 7, 0, 0)->spec.batch, second = send_as(f, 2, 7, 0, 2)->spec.batch;
    acked(f, first, 2);
    acked(f, second, 0);
}

static void before_what_was_there(struct fixture *f)
{
    acked(f, sent(f, 2), 4);
    acked(f, sent(f, 2), 0);
}

static void zombie(struct fixture *f)
{
    acked(f, send_as(f, 2, 7, 1, 0)->spec.batch, 0);
    acked(f, send_as(f, 2, 7, 0, 0)->spec.batch, 2);
}

static void one_id_for_two(struct fixture *f)
{
    truth_producer_id(f->t, 7, 0);
    truth_producer_id(f->t, 7, 0);
}

static void commit_goes_back(struct fixture *f)
{
    truth_commit_asked(f->t, 0, T, P, 9);
    truth_commit_acked(f->t, 0, T, P, 9);
    truth_commit_shown(f->t, 0, T, P, 8, 9);
}

static void commit_of_nobody(struct fixture *f)
{
    truth_commit_asked(f->t, 0, T, P, 9);
    truth_commit_shown(f->t, 0, T, P, 10, -1);
}

static void deleted_and_read(struct fixture *f)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    three(f);
    truth_start_asked(f->t, T, P, 4);
    truth_start_acked(f->t, T, P, 4);
    bytes_of(f, 0, 0, &b);
    truth_read(f->t, T, P, b.p, b.n, 0, 4);
}

static void deletion_undone(struct fixture *f)
{
    three(f);
    truth_start_asked(f->t, T, P, 4);
    truth_start_acked(f->t, T, P, 4);
    truth_start_shown(f->t, T, P, 0, 4);
}

static void damage_where_none_is(struct fixture *f)
{
    three(f);
    truth_rotten(f->t, T, P, 2, 4, false);
    assert_int_equal(truth_damage_told(f->t, T, P, 3), 4);
    truth_damage_told(f->t, T, P, 4);
}

static void rot_is_stepped_over(struct fixture *f)
{
    three(f);
    truth_rotten(f->t, T, P, 2, 4, false);
    polled(f, 0, 0, 0);
    polled(f, 2, 4, 2);
}

static void topic_is_gone(struct fixture *f)
{
    truth_topic_missing(f->t, T, 1);
}

static void topic_comes_back(struct fixture *f)
{
    truth_topic_deleted(f->t, T);
    truth_topic_shown(f->t, "t0", &f->t->topics[T].id, 2, 0);
}

static void topic_has_another_id(struct fixture *f)
{
    struct uuid other = { .b = { 8 } };
    truth_topic_shown(f->t, "t0", &other, 2, 0);
}

static void checkers_of_clients_tell_what_is_wrong(void **state)
{
    static const struct {
        const char *rule;
        void (*history)(struct fixture *f);
    } cases[] = {
        { NULL, good },
        { "C7", lost_write },
        { "C10", lost_end },
        { "C1", lost_front },
        { "C2", duplicate },
        { "C2", duplicate_of_what_had_no_answer },
        { "C3", phantom },
        { "C3", refused_and_there },
        { "C3", of_another_partition },
        { "C8", other_record_at_an_offset },
        { "C4", two_at_an_offset },
        { "C3", changed_value },
        { "C3", damaged_value },
        { "C6", backwards },
        { "C7", skips },
        { "C5", out_of_order },
        { "C8", before_what_was_there },
        { "C9", zombie },
        { "C2", one_id_for_two },
        { "C11", commit_goes_back },
        { "C11", commit_of_nobody },
        { "S13", deleted_and_read },
        { "S13", deletion_undone },
        { "C1", damage_where_none_is },
        { "C7", rot_is_stepped_over },
        { "T1", topic_is_gone },
        { "T1", topic_comes_back },
        { "T1", topic_has_another_id },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        teardown(state);
        setup(state);
        must_break(*state, cases[i].rule, cases[i].history);
    }
}

/* ---- disks ---- */
static void write_file(struct fixture *f, const char *path, const struct bytebuf *b)
{
    const struct store_io *io = simdisk_io(f->p->disk);
    char dir[64];
    snprintf(dir, sizeof dir, "%.*s", (int)(strrchr(path, '/') - path), path);
    io->mkdirat(io, AT_FDCWD, "/data0", 0755);
    io->mkdirat(io, AT_FDCWD, dir, 0755);
    int fd = io->openat(io, AT_FDCWD, path, O_RDWR | O_CREAT, 0644);
    assert_true(fd >= 0);
    assert_int_equal(io_pwrite_all(io, fd, b->p, b->n, 0), 0);
    io->close(io, fd);
}

/* Batches from .. to - 1 as a .log; the other partition is empty. */
static void write_log(struct fixture *f, const char *path, int32_t from, int32_t to)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    CLEANUP(bytebuf_done) struct bytebuf none = { 0 };
    for (int32_t i = from; i < to; i++)
        bytes_of(f, i, 2 * i, &b);
    write_file(f, path, &b);
    write_file(f, "/data0/t0-1/00000000000000000000.log", &none);
}

#define LOG "/data0/t0-0/00000000000000000000.log"

static void good_disk(struct fixture *f)
{
    three(f);
    write_log(f, LOG, 0, 3);
    diskcheck(f->p);
}

static void no_log(struct fixture *f)
{
    three(f);
    diskcheck(f->p);
}

static void short_log(struct fixture *f)
{
    three(f);
    write_log(f, LOG, 0, 2);
    diskcheck(f->p);
}

static void log_without_its_front(struct fixture *f)
{
    three(f);
    write_log(f, "/data0/t0-0/00000000000000000002.log", 1, 3);
    diskcheck(f->p);
}

static void log_with_a_hole(struct fixture *f)
{
    three(f);
    write_log(f, LOG, 0, 1);
    write_log(f, "/data0/t0-0/00000000000000000004.log", 2, 3);
    diskcheck(f->p);
}

static void log_with_damage(struct fixture *f)
{
    three(f);
    write_log(f, LOG, 0, 3);
    assert_true(simdisk_poke(f->p->disk, LOG, "\xff", 1, 70));
    diskcheck(f->p);
}

static void log_with_a_batch_twice(struct fixture *f)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    CLEANUP(bytebuf_done) struct bytebuf none = { 0 };
    three(f);
    for (int i = 0; i < 4; i++)
        bytes_of(f, MIN(i, 2), 2 * i, &b);
    write_file(f, LOG, &b);
    write_file(f, "/data0/t0-1/00000000000000000000.log", &none);
    diskcheck(f->p);
}

static void newest_of_a_key_is_gone(struct fixture *f)
{
    f->t->topics[T].compacts = true;
    three(f);
    for (int i = 0; i < 3; i++)
        polled(f, i, 2 * i, 2 * i);
    write_log(f, LOG, 0, 2);
    f->t->topics[T].parts[P].committed = 4; /* only the keys are to tell */
    diskcheck(f->p);
}

static void answered_before_it_is_synced(struct fixture *f)
{
    three(f);
    write_log(f, LOG, 0, 3);
    diskcheck_acked(f->p, truth_batch(f->t, C, 1), 2);
}

/* What has rotted may hide what stands behind it in its file ... */
static void answered_in_a_file_that_has_rotted(struct fixture *f)
{
    three(f);
    write_log(f, LOG, 0, 3);
    truth_rotten(f->t, T, P, 0, 2, false);
    diskcheck_acked(f->p, truth_batch(f->t, C, 1), 2);
}

/* ... and in no other. */
static void answered_behind_a_file_that_has_rotted(struct fixture *f)
{
    static const char *const dirs[] = { "/", "/data0", "/data0/t0-0" };
    const struct store_io *io = simdisk_io(f->p->disk);
    three(f);
    write_log(f, LOG, 0, 1);
    write_log(f, "/data0/t0-0/00000000000000000002.log", 1, 3);
    for (size_t i = 0; i < sizeof dirs / sizeof dirs[0]; i++)
        assert_int_equal(io_sync_dir(io, AT_FDCWD, dirs[i]), 0);
    truth_rotten(f->t, T, P, 0, 2, false);
    diskcheck_acked(f->p, truth_batch(f->t, C, 1), 2);
}

static void checkers_of_disks_tell_what_is_wrong(void **state)
{
    static const struct {
        const char *rule;
        void (*history)(struct fixture *f);
    } cases[] = {
        { NULL, good_disk },
        { "C1", no_log },
        { "C1", short_log },
        { "C1", log_without_its_front },
        { "C1", log_with_a_hole },
        { "C1", log_with_damage },
        { "C2", log_with_a_batch_twice },
        { "C13", newest_of_a_key_is_gone },
        { "S4", answered_before_it_is_synced },
        { NULL, answered_in_a_file_that_has_rotted },
        { "S4", answered_behind_a_file_that_has_rotted },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        teardown(state);
        setup(state);
        must_break(*state, cases[i].rule, cases[i].history);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(checkers_of_clients_tell_what_is_wrong, setup, teardown),
        cmocka_unit_test_setup_teardown(checkers_of_disks_tell_what_is_wrong, setup, teardown),
    };
    return RUN(tests);
}
