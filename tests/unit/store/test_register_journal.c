/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registers' files on a disk that fails or stops at every single call: what was acknowledged is there at the next
 * start, and so is what a start has shown; what was refused is not or wholly, and a start never refuses what this program
 * itself has left.
 */
#include "simtest.h"

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
    rc = register_journal_open(j, f->dd, datadir_holds_data(f->dd) == 0, 0, &sink, model_each, m, err, 512);
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

static void live(struct fixture *f, struct promise *p, int from, int to, bool clean)
{
    struct register_journal j;
    struct model m;
    char err[512];

    if (open_journal(f, &j, &m, err) < 0)
        return;
    for (int i = from; i < to && j.failed == 0; i++)
        change(&j, &m, p, i);
    bool well = j.failed == 0;
    if (well)
        datadir_set_clean_note(f->dd, j.sequence);
    register_journal_close(&j);
    datadir_close(f->dd, clean && well);
    f->dd = NULL;
}

/* Two lives: the first ends by a kill, the second by a clean stop. */
static void run(struct fixture *f, struct promise *p)
{
    live(f, p, 0, CHANGES / 2, false);
    live(f, p, CHANGES / 2, CHANGES, true);
}

/* What is there now stays. */
static void check(struct fixture *f, struct promise *p, const char *what, int64_t at)
{
    struct register_journal j;
    struct model m;
    char err[512] = "";
    int last = -1;

    int rc = open_journal(f, &j, &m, err);
    if (rc < 0)
        fail_msg("%s at call %lld: the next start refuses: %s", what, (long long)at, err);
    for (int i = 0; i < CHANGES; i++) {
        if (p->acknowledged[i] && !m.there[i])
            fail_msg("%s at call %lld: acknowledged change %d is gone", what, (long long)at, i);
        if (p->refused[i] && m.there[i])
            fail_msg("%s at call %lld: refused change %d is there", what, (long long)at, i);
        last = m.there[i] ? i : last;
        p->acknowledged[i] = m.there[i];
        p->refused[i] = !m.there[i];
    }
    if (m.k != last)
        fail_msg("%s at call %lld: half of change %d is there", what, (long long)at, last);
    register_journal_close(&j);
    datadir_close(f->dd, false);
    f->dd = NULL;
}

/* fault NULL: everything ends at that call, and then `how`. */
static void sweep(struct fixture *f, const struct simdisk_fault *fault, int how, const char *what)
{
    bool hit = true;
    int64_t at;

    log_set_level(LOG_LEVEL_ERROR);
    for (at = 0; hit; at += test_step()) {
        struct simdisk *d = disk_new(f, (uint64_t)(at * 100 + how));
        struct promise p = { 0 };
        if (fault != NULL) {
            struct simdisk_fault here = *fault;
            here.at = at;
            simdisk_plan(d, &here, 1);
        } else {
            simdisk_stop_in(d, at);
        }
        run(f, &p);
        hit = fault != NULL ? simdisk_plan_was_hit(d) : simdisk_stopped(d);
        simdisk_plan(d, NULL, 0);
        if (fault == NULL || at % 2 == 0)
            end_life(d, how);
        check(f, &p, what, at);
        simdisk_power_cut_any(d);
        check(f, &p, what, at);
        disk_free(f, d);
    }
    assert_true(at > 90);
}

static void every_call_fails_once(void **state)
{
    const struct simdisk_fault f = { .ops = DISK_CHANGES, .n = 1, .eno = EIO, .part = true };
    sweep(*state, &f, STOP_CUT + SIMDISK_CUT_NONE, "EIO");
}

static void every_call_finds_the_disk_full(void **state)
{
    const struct simdisk_fault f = {
        .ops = DISK_GROWS | 1u << SIMDISK_RENAME,
        .n = 3,
        .eno = ENOSPC,
        .part = true,
    };
    sweep(*state, &f, STOP_CUT + SIMDISK_CUT_NONE, "ENOSPC");
}

static void every_call_finds_no_descriptor(void **state)
{
    const struct simdisk_fault f = { .ops = DISK_OPENS | DISK_CHANGES, .n = 1, .eno = EMFILE };
    sweep(*state, &f, STOP_CUT + SIMDISK_CUT_NONE, "EMFILE");
}

static void the_process_ends_at_every_call(void **state)
{
    sweep(*state, NULL, STOP_KILL, "kill");
}

static void the_power_goes_at_every_call(void **state)
{
    sweep(*state, NULL, STOP_CUT + SIMDISK_CUT_NONE, "power cut");
    sweep(*state, NULL, STOP_CUT + SIMDISK_CUT_IN_ORDER, "power cut in order");
    sweep(*state, NULL, STOP_CUT + SIMDISK_CUT_SECTORS, "power cut by sectors");
}

static void many_lives(struct fixture *f, uint64_t seed)
{
    struct rnd r = rnd_of(seed, RND_CUT, 0);
    struct simdisk *d = disk_new(f, seed);
    struct promise p = { 0 };

    for (int from = 0; from < CHANGES; from += 10) {
        simdisk_stop_in(d, rnd_one_in(&r, 3) ? rnd_range(&r, 0, 10) : rnd_range(&r, 0, 80));
        live(f, &p, from, from + 10, rnd_one_in(&r, 2));
        end_life(d, (int)rnd_below(&r, STOP_CUT + SIMDISK_CUTS));
        if (rnd_one_in(&r, 2))
            check(f, &p, "life", from);
    }
    check(f, &p, "life", CHANGES);
    disk_free(f, d);
}

static void stopped_again_and_again_nothing_is_lost(void **state)
{
    log_set_level(LOG_LEVEL_ERROR);
    each_seed(*state, 60, many_lives);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(every_call_fails_once),
        T(every_call_finds_the_disk_full),
        T(every_call_finds_no_descriptor),
        T(the_process_ends_at_every_call),
        T(the_power_goes_at_every_call),
        T(stopped_again_and_again_nothing_is_lost),
    };
    return RUN(tests);
}
