/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registers' files on a disk that fails or stops at every single call: what was acknowledged is there at the next
 * start, what was refused is not or wholly, and a start never refuses what this program itself has left.
 */
#include "storetest.h"

#include "faultyio.h"
#include "lib/base/log.h"
#include "lib/store/register_journal.h"

enum {
    CHANGES = 40,
    BIG_BYTES = 250000, /* so that the journal is folded into a snapshot twice */
};

/* Change i puts /n<i>, and /k with i in it. */
struct model {
    bool there[CHANGES];
    int k;
    int entries;
};

static int model_put(void *arg, const char *path, struct slice value, int64_t version)
{
    struct model *m = arg;
    int i;

    (void)version;
    m->entries++;
    if (sscanf(path, "/n%d", &i) == 1 && i < CHANGES) {
        m->there[i] = true;
        return 0;
    }
    assert_string_equal(path, "/k");
    assert_int_equal(value.n, BIG_BYTES);
    m->k = value.p[0];
    return 0;
}

static int model_drop(void *arg, const char *path)
{
    (void)arg, (void)path;
    return -EBADMSG;
}

static uint8_t big[BIG_BYTES];

static void model_each(void *arg, void (*f)(void *f_arg, const char *path, struct slice value, int64_t version),
                       void *f_arg)
{
    struct model *m = arg;
    char path[16];

    big[0] = (uint8_t)m->k;
    f(f_arg, "/k", slice_of(big, sizeof big), m->k);
    for (int i = 0; i < CHANGES; i++) {
        snprintf(path, sizeof path, "/n%d", i);
        if (m->there[i])
            f(f_arg, path, slice_of("", 0), 0);
    }
}

static int open_journal(struct fixture *f, struct register_journal *j, struct model *m, char *err)
{
    struct datadir_identity id = { .broker_id = 1 };
    struct register_sink sink = { .arg = m, .put = model_put, .drop = model_drop };

    *m = (struct model){ .k = -1 };
    int rc = datadir_open(f->path, world_of(f), &id, &f->dd, err, 512);
    if (rc < 0)
        return rc;
    rc = register_journal_open(j, f->dd, datadir_holds_data(f->dd) == 0, &sink, model_each, m, err, 512);
    if (rc < 0) {
        datadir_close(f->dd, datadir_was_clean(f->dd));
        f->dd = NULL;
    }
    return rc;
}

struct promise {
    bool acknowledged[CHANGES], refused[CHANGES]; /* neither: not tried, or the process ended in it */
};

/* As the register store does: what failed for want of room is not done, and the next change is tried. */
static void change(struct register_journal *j, struct model *m, struct promise *p, int i)
{
    char path[16];

    snprintf(path, sizeof path, "/n%d", i);
    big[0] = (uint8_t)i;
    register_journal_put(j, path, slice_of("", 0), 0);
    register_journal_put(j, "/k", slice_of(big, sizeof big), i);
    int rc = register_journal_commit(j);
    p->acknowledged[i] = rc == 0;
    p->refused[i] = rc < 0 && j->failed == 0;
    if (rc < 0)
        return;
    m->there[i] = true;
    m->k = i;
    register_journal_compact_if_due(j, model_each, m);
}

/* Two lives: the first ends by a kill, the second by a clean stop. */
static void run(struct fixture *f, struct promise *p)
{
    struct register_journal j;
    struct model m;
    char err[512];

    for (int life = 0; life < 2; life++) {
        if (open_journal(f, &j, &m, err) < 0)
            return;
        for (int i = life * CHANGES / 2; i < (life + 1) * CHANGES / 2 && j.failed == 0; i++)
            change(&j, &m, p, i);
        bool well = j.failed == 0;
        if (well)
            datadir_set_clean_note(f->dd, j.sequence);
        register_journal_close(&j);
        datadir_close(f->dd, life == 1 && well);
        f->dd = NULL;
    }
}

static int no_sync(const struct store_io *io, int fd)
{
    (void)io, (void)fd;
    return 0;
}

static void check(struct fixture *f, const struct promise *p, const char *what, int64_t at)
{
    struct register_journal j;
    struct model m;
    char err[512] = "";
    int last = -1;

    struct store_io io = store_io_real;
    io.fsync = io.fdatasync = no_sync; /* no power cut follows */
    f->io = &io;
    int rc = open_journal(f, &j, &m, err);
    if (rc < 0)
        fail_msg("%s at call %lld: the next start refuses: %s", what, (long long)at, err);
    for (int i = 0; i < CHANGES; i++) {
        if (p->acknowledged[i] && !m.there[i])
            fail_msg("%s at call %lld: acknowledged change %d is gone", what, (long long)at, i);
        if (p->refused[i] && m.there[i])
            fail_msg("%s at call %lld: refused change %d is there", what, (long long)at, i);
        last = m.there[i] ? i : last;
    }
    if (m.k != last)
        fail_msg("%s at call %lld: half of change %d is there", what, (long long)at, last);
    register_journal_close(&j);
    datadir_close(f->dd, false);
    f->dd = NULL;
    f->io = NULL;
}

static void fresh(struct fixture *f)
{
    fs_remove_tree(AT_FDCWD, f->path);
    assert_int_equal(mkdir(f->path, 0755), 0);
}

static int64_t count_calls(struct fixture *f)
{
    struct faulty *faulty = faulty_new(f->path);
    struct promise p = { 0 };

    f->io = faulty_io(faulty);
    run(f, &p);
    int64_t calls = faulty_calls(faulty);
    for (int i = 0; i < CHANGES; i++)
        assert_true(p.acknowledged[i]);
    assert_int_equal(access(f->path, F_OK), 0);
    faulty_free(faulty);
    check(f, &p, "nothing", 0);
    return calls;
}

/* every: each call is tried where it is 1. */
static void sweep(struct fixture *f, enum fault_kind kind, int eno, int64_t repeat, const char *what)
{
    int64_t calls = count_calls(f);

    assert_true(calls > 90);
    for (int64_t at = 0; at < calls; at++) {
        struct promise p = { 0 };
        fresh(f);
        struct faulty *faulty = faulty_new(f->path);
        f->io = faulty_io(faulty);
        faulty_arm(faulty, kind, at, eno, repeat);
        run(f, &p);
        if (kind == FAULT_STOP)
            faulty_power_cut(faulty, at % 2 == 0 ? CUT_SYNCED_ONLY : CUT_TORN, (uint32_t)at);
        faulty_free(faulty);
        check(f, &p, what, at);
    }
    fresh(f);
}

static void every_call_fails_once(void **state)
{
    log_set_level(LOG_LEVEL_ERROR);
    sweep(*state, FAULT_ERROR, EIO, 0, "EIO");
}

static void every_call_finds_the_disk_full(void **state)
{
    log_set_level(LOG_LEVEL_ERROR);
    sweep(*state, FAULT_ERROR, ENOSPC, 2, "ENOSPC");
}

static void every_call_finds_no_descriptor(void **state)
{
    log_set_level(LOG_LEVEL_ERROR);
    sweep(*state, FAULT_ERROR, EMFILE, 0, "EMFILE");
}

static void the_power_goes_at_every_call(void **state)
{
    log_set_level(LOG_LEVEL_ERROR);
    sweep(*state, FAULT_STOP, 0, 0, "power cut");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_call_fails_once, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(every_call_finds_the_disk_full, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(every_call_finds_no_descriptor, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(the_power_goes_at_every_call, fixture_setup, fixture_teardown),
    };
    if (chdir("/dev/shm") < 0) /* some gigabytes are written; a disk would do, and take a minute */
        log_warn("no /dev/shm");
    return RUN(tests);
}
