/* SPDX-License-Identifier: Apache-2.0 */
/* The embedded register store: what every back-end must do, and what this one must survive on the disk. */
#include "unit.h"
#include "world.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/meta/register_tree.h"
#include "daemon/meta/registers.h"
#include "lib/base/attr.h"
#include "lib/base/buf.h"
#include "lib/base/fsutil.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/loop/loop.h"
#include "lib/store/datadir.h"
#include "lib/store/io.h"
#include "lib/store/register_files.h"
#include "tests/sim/simdisk.h"
#include "tests/unit/daemon/registers_conformance.h"

struct store {
    struct registers_rig rig; /* first */
    char dir[64];
    int dirfd;
    struct world world;
    struct datadir *dd;
    bool clean;       /* whether the next closing is */
    bool may_create;
    atomic_int failed; /* what the store said of its disk */
    char err[512];
};

static void note_failed(void *arg, int eno)
{
    struct store *s = arg;
    atomic_store(&s->failed, eno);
}

static int store_open(struct store *s)
{
    struct datadir_identity id = { .broker_id = 1 };

    assert_int_equal(datadir_open(s->dir, &s->world, &id, &s->dd, s->err, sizeof s->err), 0);
    int rc = registers_open_embedded(s->dd, s->may_create, 0, s->rig.loop, note_failed, s, &s->rig.r, s->err, sizeof s->err);
    if (rc < 0) {
        datadir_close(s->dd, datadir_was_clean(s->dd));
        s->dd = NULL;
    }
    return rc;
}

static void store_close(struct store *s)
{
    registers_close(s->rig.r);
    s->rig.r = NULL;
    datadir_close(s->dd, s->clean);
    s->dd = NULL;
}

static void store_reopen(struct store *s)
{
    store_close(s);
    assert_int_equal(store_open(s), 0);
}

static void rig_reopen(struct registers_rig *rig)
{
    store_reopen(container_of(rig, struct store, rig));
}

static int setup(void **state)
{
    struct store *s = xcalloc(1, sizeof *s);

    log_set_level(LOG_LEVEL_ERROR);
    test_dir_make(s->dir, sizeof s->dir, "klog-registers");
    s->dirfd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    s->world = *test_world();
    s->world.io = &store_io_real;
    s->rig.loop = loop_new(&s->world);
    s->rig.reopen = rig_reopen;
    s->may_create = true;
    *state = s;
    return store_open(s);
}

static int teardown(void **state)
{
    struct store *s = *state;

    registers_close(s->rig.r);
    datadir_close(s->dd, false);
    loop_free(s->rig.loop);
    close(s->dirfd);
    fs_remove_tree(AT_FDCWD, s->dir);
    free(s);
    return 0;
}

/* ---- watches are exact here ---- */

static void a_watch_tells_of_nothing_else(void **state)
{
    struct store *s = *state;
    struct seen n = { .paths = "" };

    assert_int_equal(create(&s->rig, "/a", ""), 0);
    n.w = registers_watch(s->rig.r, "/a", saw, &n);
    assert_int_equal(create(&s->rig, "/a/b", ""), 0);
    assert_string_equal(n.paths, "/a/b ");
    assert_int_equal(create(&s->rig, "/ab", ""), 0);
    assert_int_equal(create(&s->rig, "/a/b", ""), -EEXIST);
    assert_int_equal(one(&s->rig, REGISTER_CHECK, "/a", "", 0), 0);
    assert_int_equal(one(&s->rig, REGISTER_SET, "/a", "x", 0), 0);
    assert_int_equal(one(&s->rig, REGISTER_DELETE, "/a/b", "", 0), 0);
    assert_string_equal(n.paths, "/a/b /a /a/b ");

    registers_unwatch(s->rig.r, n.w);
    assert_int_equal(one(&s->rig, REGISTER_SET, "/a", "y", 1), 0);
    assert_string_equal(n.paths, "/a/b /a /a/b ");
}

/* ---- the embedded back-end's files ---- */

static void read_file(struct store *s, const char *name, struct bytebuf *ret)
{
    ret->n = 0;
    assert_int_equal(fs_read_file(s->dirfd, name, 64 << 20, ret), 0);
}

static void write_file(struct store *s, const char *name, const void *p, size_t n)
{
    assert_int_equal(io_replace_file(&store_io_real, s->dirfd, ".", name, p, n), 0);
}

static void a_torn_tail_is_dropped_whatever_its_length(void **state)
{
    struct store *s = *state;
    struct bytebuf before = { 0 }, after = { 0 };

    assert_int_equal(create(&s->rig, "/a", "kept"), 0);
    read_file(s, "registers.journal", &before);
    assert_int_equal(one(&s->rig, REGISTER_SET, "/a", "torn", 0), 0);
    read_file(s, "registers.journal", &after);
    store_close(s);

    for (size_t n = before.n; n < after.n; n++) {
        write_file(s, "registers.journal", after.p, n);
        assert_int_equal(store_open(s), 0);
        assert_register(&s->rig, "/a", "kept", 0);
        assert_int_equal(create(&s->rig, "/b", "new"), 0);
        store_reopen(s);
        assert_register(&s->rig, "/b", "new", 0);
        store_close(s);
    }
    write_file(s, "registers.journal", after.p, after.n);
    assert_int_equal(store_open(s), 0);
    assert_register(&s->rig, "/a", "torn", 1);
    bytebuf_done(&before);
    bytebuf_done(&after);
}

static void a_tail_of_zeros_or_rubbish_is_dropped(void **state)
{
    struct store *s = *state;
    struct bytebuf b = { 0 };

    assert_int_equal(create(&s->rig, "/a", "kept"), 0);
    store_close(s);
    read_file(s, "registers.journal", &b);
    size_t n = b.n;
    for (int fill = 0; fill < 2; fill++) {
        b.n = n;
        memset(bytebuf_extend(&b, 5000), fill == 0 ? 0 : 'K', 5000);
        write_file(s, "registers.journal", b.p, b.n);
        assert_int_equal(store_open(s), 0);
        assert_register(&s->rig, "/a", "kept", 0);
        store_close(s);
        struct stat st;
        assert_int_equal(fstatat(s->dirfd, "registers.journal", &st, 0), 0);
        assert_int_equal(st.st_size, n);
    }
    assert_int_equal(store_open(s), 0);
    bytebuf_done(&b);
}

static void damage_before_sound_changes_is_refused_with_a_reason(void **state)
{
    struct store *s = *state;
    struct bytebuf b = { 0 };

    assert_int_equal(create(&s->rig, "/a", "one"), 0);
    read_file(s, "registers.journal", &b);
    size_t first_end = b.n;
    assert_int_equal(create(&s->rig, "/b", "two"), 0);
    store_close(s);
    read_file(s, "registers.journal", &b);

    for (size_t at = 0; at < first_end; at++) {
        b.p[at] ^= 0x20;
        write_file(s, "registers.journal", b.p, b.n);
        assert_int_equal(store_open(s), -EBADMSG);
        if (at >= REGISTERS_JOURNAL_HEAD_BYTES)
            assert_non_null(strstr(s->err, "registers.journal is damaged at byte 48"));
        b.p[at] ^= 0x20;
    }
    write_file(s, "registers.journal", b.p, b.n);
    assert_int_equal(store_open(s), 0);
    assert_register(&s->rig, "/b", "two", 0);
    bytebuf_done(&b);
}

static void a_file_that_is_no_journal_is_refused(void **state)
{
    struct store *s = *state;

    store_close(s);
    write_file(s, "registers.journal", "hello", 5);
    assert_int_equal(store_open(s), -EBADMSG);
    assert_non_null(strstr(s->err, "does not begin"));
    write_file(s, "registers.journal", "KLOGREGJ\0\0\0\3\0\0\0\0", 16);
    assert_int_equal(store_open(s), -EBADMSG);
    assert_non_null(strstr(s->err, "format that this klogd does not know"));
    assert_int_equal(unlinkat(s->dirfd, "registers.journal", 0), 0);
    s->may_create = false;
    assert_int_equal(store_open(s), -EBADMSG);
    assert_non_null(strstr(s->err, "registers.journal is missing"));
    s->may_create = true;
    assert_int_equal(store_open(s), 0);
}

static void fill_until_compaction(struct store *s)
{
    CLEANUP(freep) char *value = xmalloc(200000);
    memset(value, 'v', 200000);
    struct stat st;

    assert_int_equal(create(&s->rig, "/big", ""), 0);
    for (int i = 0; i < 64; i++) {
        struct register_op o = { REGISTER_SET, "/big", slice_of(value, 200000), REGISTER_ANY_VERSION, 0, 0 };
        assert_int_equal(multi(&s->rig, &o, 1), 0);
        if (fstatat(s->dirfd, "registers.snapshot", &st, 0) == 0)
            return;
    }
    fail_msg("no snapshot after 12 MB of changes");
}

static void a_long_journal_is_folded_into_a_snapshot(void **state)
{
    struct store *s = *state;
    struct stat st;

    assert_int_equal(create(&s->rig, "/a", "1"), 0);
    assert_int_equal(create(&s->rig, "/a/b", "2"), 0);
    assert_int_equal(one(&s->rig, REGISTER_CREATE_EPHEMERAL, "/a/c", "3", 0), 0);
    fill_until_compaction(s);
    assert_int_equal(one(&s->rig, REGISTER_SET, "/a/b", "after", 0), 0);
    store_reopen(s);

    assert_int_equal(fstatat(s->dirfd, "registers.journal", &st, 0), 0);
    assert_in_range(st.st_size, 16, 300000);
    assert_register(&s->rig, "/a", "1", 0);
    assert_register(&s->rig, "/a/b", "after", 1);
    assert_children(&s->rig, "/a", 0, "b");
    assert_true(get(&s->rig, "/big").version > 10);
}

/* A clean stop says where the registers end, so that nothing behind that can be taken for a torn change. */
static void after_a_clean_stop_a_lost_tail_is_refused(void **state)
{
    struct store *s = *state;
    struct bytebuf older = { 0 }, b = { 0 };

    assert_int_equal(create(&s->rig, "/a", "one"), 0);
    read_file(s, "registers.journal", &older);
    assert_int_equal(create(&s->rig, "/b", "acknowledged"), 0);
    s->clean = true;
    store_close(s);
    read_file(s, "registers.journal", &b);

    for (size_t n = older.n; n < b.n; n++) { /* cut, or zeros from there on */
        write_file(s, "registers.journal", b.p, n);
        assert_int_equal(store_open(s), -EBADMSG);
        assert_non_null(strstr(s->err, n == older.n ? "ends at change 1, but the last clean stop was at change 2"
                                                    : "closed in a clean stop"));
    }
    memset(bytebuf_extend(&older, b.n - older.n), 0, b.n - older.n);
    write_file(s, "registers.journal", older.p, older.n);
    for (int again = 0; again < 2; again++) { /* and the marker outlives the refusal */
        assert_int_equal(store_open(s), -EBADMSG);
        assert_non_null(strstr(s->err, "closed in a clean stop"));
    }
    write_file(s, "registers.journal", b.p, b.n);
    assert_int_equal(store_open(s), 0);
    assert_register(&s->rig, "/b", "acknowledged", 0);
    s->clean = false;
    bytebuf_done(&older);
    bytebuf_done(&b);
}

/* Of two files of one store each may be an older copy; of another store neither fits. */
static void copies_that_do_not_go_on_from_each_other_are_refused(void **state)
{
    struct store *s = *state;
    struct bytebuf old_journal = { 0 }, old_snapshot = { 0 }, journal = { 0 }, snapshot = { 0 };

    assert_int_equal(create(&s->rig, "/a", "one"), 0);
    read_file(s, "registers.journal", &old_journal);
    fill_until_compaction(s);
    read_file(s, "registers.snapshot", &old_snapshot);
    assert_int_equal(unlinkat(s->dirfd, "registers.snapshot", 0), 0); /* to see the next one being written */
    CLEANUP(freep) char *value = xcalloc(1, 200000);
    struct stat st;
    while (fstatat(s->dirfd, "registers.snapshot", &st, 0) < 0) {
        struct register_op o = { REGISTER_SET, "/big", slice_of(value, 200000), REGISTER_ANY_VERSION, 0, 0 };
        assert_int_equal(multi(&s->rig, &o, 1), 0);
    }
    store_close(s);
    read_file(s, "registers.journal", &journal);
    read_file(s, "registers.snapshot", &snapshot);

    write_file(s, "registers.journal", old_journal.p, old_journal.n);
    assert_int_equal(store_open(s), -EBADMSG);
    assert_non_null(strstr(s->err, "registers.journal ends before its snapshot does"));
    write_file(s, "registers.journal", journal.p, journal.n);
    write_file(s, "registers.snapshot", old_snapshot.p, old_snapshot.n);
    assert_int_equal(store_open(s), -EBADMSG);
    assert_non_null(strstr(s->err, "registers.snapshot is an older copy"));
    assert_int_equal(unlinkat(s->dirfd, "registers.snapshot", 0), 0);
    assert_int_equal(store_open(s), -EBADMSG);
    assert_non_null(strstr(s->err, "registers.snapshot is missing"));

    struct uuid other = { { 1, 2, 3 } };
    write_file(s, "registers.journal", journal.p, journal.n);
    register_snapshot_seal(&snapshot, &other, 1000);
    write_file(s, "registers.snapshot", snapshot.p, snapshot.n);
    assert_int_equal(store_open(s), -EBADMSG);
    assert_non_null(strstr(s->err, "not of one store"));
    bytebuf_done(&old_journal);
    bytebuf_done(&old_snapshot);
    bytebuf_done(&journal);
    bytebuf_done(&snapshot);
}

/* S8. The change is refused, and so is everything after it; no clean marker vouches for what is on the disk. */
static void a_failed_write_ends_the_store_and_the_clean_marker(void **state)
{
    static const struct simdisk_config config = { .seed = 1 };
    static const struct simdisk_fault fault = { .ops = 1u << SIMDISK_SYNC, .under = "/d/registers.journal", .n = 1, .eno = EIO };
    struct simdisk *d = simdisk_new(&config);
    struct store *s = *state;
    char real_dir[sizeof s->dir];

    store_close(s);
    memcpy(real_dir, s->dir, sizeof s->dir);
    strcpy(s->dir, "/d");
    s->world.io = simdisk_io(d);
    s->clean = true;
    assert_int_equal(store_open(s), 0);
    assert_int_equal(create(&s->rig, "/a", "one"), 0);
    simdisk_plan(d, &fault, 1);
    struct register_op b = op(REGISTER_CREATE, "/b", "refused", 0), c = op(REGISTER_CREATE, "/c", "refused", 0);
    assert_int_equal(multi(&s->rig, &b, 1), -EIO);
    assert_true(simdisk_plan_was_hit(d));
    assert_int_equal(multi(&s->rig, &c, 1), -EIO);
    assert_int_equal(get(&s->rig, "/a").rc, -EIO);
    assert_int_equal(atomic_load(&s->failed), EIO);
    assert_true(datadir_failed(s->dd));
    store_close(s);
    s->clean = false;
    simdisk_power_cut(d, SIMDISK_CUT_ALL);
    assert_int_equal(simdisk_size(d, "/d/clean-shutdown", false), -1);
    assert_int_equal(store_open(s), 0);
    assert_register(&s->rig, "/a", "one", 0);
    assert_absent(&s->rig, "/b"); /* its bytes were lost */
    assert_absent(&s->rig, "/c");
    store_close(s);
    simdisk_free(d);
    memcpy(s->dir, real_dir, sizeof s->dir);
    s->world.io = &store_io_real;
    assert_int_equal(store_open(s), 0);
}

static void a_damaged_snapshot_or_a_missing_journal_is_refused(void **state)
{
    struct store *s = *state;
    struct bytebuf b = { 0 };

    fill_until_compaction(s);
    store_close(s);
    read_file(s, "registers.snapshot", &b);
    b.p[b.n / 2] ^= 1;
    write_file(s, "registers.snapshot", b.p, b.n);
    assert_int_equal(store_open(s), -EBADMSG);
    assert_non_null(strstr(s->err, "registers.snapshot is damaged"));

    b.p[b.n / 2] ^= 1;
    write_file(s, "registers.snapshot", b.p, b.n);
    read_file(s, "registers.journal", &b);
    assert_int_equal(unlinkat(s->dirfd, "registers.journal", 0), 0);
    assert_int_equal(store_open(s), -EBADMSG);
    assert_non_null(strstr(s->err, "missing beside its snapshot"));
    write_file(s, "registers.journal", b.p, b.n);
    assert_int_equal(store_open(s), 0);
    bytebuf_done(&b);
}

#define ONE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        REGISTERS_CONFORMANCE(ONE),
        ONE(a_watch_tells_of_nothing_else),
        ONE(a_torn_tail_is_dropped_whatever_its_length),
        ONE(a_tail_of_zeros_or_rubbish_is_dropped),
        ONE(damage_before_sound_changes_is_refused_with_a_reason),
        ONE(a_file_that_is_no_journal_is_refused),
        ONE(a_long_journal_is_folded_into_a_snapshot),
        ONE(after_a_clean_stop_a_lost_tail_is_refused),
        ONE(copies_that_do_not_go_on_from_each_other_are_refused),
        ONE(a_failed_write_ends_the_store_and_the_clean_marker),
        ONE(a_damaged_snapshot_or_a_missing_journal_is_refused),
    };
    return RUN(tests);
}
