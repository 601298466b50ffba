/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every back-end of the register store must do (the tests that take `struct store`), and what the
 * embedded one must survive on the disk. A second back-end runs through the same by its own store_open.
 */
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

struct store {
    char dir[64];
    int dirfd;
    struct loop *loop;
    struct world world;
    struct datadir *dd;
    struct registers *r;
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
    int rc = registers_open_embedded(s->dd, s->may_create, s->loop, note_failed, s, &s->r, s->err, sizeof s->err);
    if (rc < 0) {
        datadir_close(s->dd, datadir_was_clean(s->dd));
        s->dd = NULL;
    }
    return rc;
}

static void store_close(struct store *s)
{
    registers_close(s->r);
    s->r = NULL;
    datadir_close(s->dd, s->clean);
    s->dd = NULL;
}

static void store_reopen(struct store *s)
{
    store_close(s);
    assert_int_equal(store_open(s), 0);
}

static int setup(void **state)
{
    struct store *s = xcalloc(1, sizeof *s);

    log_set_level(LOG_LEVEL_ERROR);
    strcpy(s->dir, "registers.XXXXXX");
    if (mkdtemp(s->dir) == NULL)
        return -1;
    s->dirfd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    s->world = *test_world();
    s->world.io = &store_io_real;
    s->loop = loop_new(&s->world);
    s->may_create = true;
    *state = s;
    return store_open(s);
}

static int teardown(void **state)
{
    struct store *s = *state;

    registers_close(s->r);
    datadir_close(s->dd, false);
    loop_free(s->loop);
    close(s->dirfd);
    fs_remove_tree(AT_FDCWD, s->dir);
    free(s);
    return 0;
}

/* ---- calls that wait ---- */

struct answer {
    bool done;
    int rc;
    char value[256];
    int64_t version;
    char names[512];
};

static void got_multi(void *arg, int rc)
{
    struct answer *a = arg;
    a->rc = rc;
    a->done = true;
}

static void got_value(void *arg, int rc, struct slice value, int64_t version)
{
    struct answer *a = arg;
    a->rc = rc;
    snprintf(a->value, sizeof a->value, "%.*s", (int)value.n, value.n > 0 ? (const char *)value.p : "");
    a->version = version;
    a->done = true;
}

static void got_names(void *arg, int rc, const char *const *names, int n)
{
    struct answer *a = arg;
    a->rc = rc;
    a->names[0] = '\0';
    for (int i = 0; i < n; i++) {
        strcat(a->names, i > 0 ? " " : "");
        strcat(a->names, names[i]);
    }
    a->done = true;
}

static void wait_for(struct store *s, const bool *done)
{
    while (!*done)
        loop_run_once(s->loop, 1000);
}

static int multi(struct store *s, struct register_op *ops, int n)
{
    struct answer a = { 0 };
    registers_multi(s->r, ops, n, got_multi, &a);
    wait_for(s, &a.done);
    return a.rc;
}

static struct register_op op(enum register_op_kind kind, const char *path, const char *value, int64_t version)
{
    return (struct register_op){
        .kind = kind, .path = path, .value = slice_of(value, strlen(value)), .version = version
    };
}

static int one(struct store *s, enum register_op_kind kind, const char *path, const char *value,
               int64_t version)
{
    struct register_op o = op(kind, path, value, version);
    int rc = multi(s, &o, 1);
    assert_int_equal(rc, o.rc);
    return rc;
}

static int create(struct store *s, const char *path, const char *value)
{
    return one(s, REGISTER_CREATE, path, value, 0);
}

static struct answer get(struct store *s, const char *path)
{
    struct answer a = { 0 };
    registers_get(s->r, path, got_value, &a);
    wait_for(s, &a.done);
    return a;
}

static void assert_register(struct store *s, const char *path, const char *value, int64_t version)
{
    struct answer a = get(s, path);
    assert_int_equal(a.rc, 0);
    assert_string_equal(a.value, value);
    assert_int_equal(a.version, version);
}

static void assert_absent(struct store *s, const char *path)
{
    assert_int_equal(get(s, path).rc, -ENOENT);
}

static void assert_children(struct store *s, const char *path, int rc, const char *names)
{
    struct answer a = { 0 };
    registers_children(s->r, path, got_names, &a);
    wait_for(s, &a.done);
    assert_int_equal(a.rc, rc);
    assert_string_equal(a.names, names);
}

/* ---- every back-end ---- */

static void a_register_begins_at_version_0_and_counts_its_changes(void **state)
{
    struct store *s = *state;

    assert_int_equal(create(s, "/a", "one"), 0);
    assert_register(s, "/a", "one", 0);

    struct register_op o = op(REGISTER_SET, "/a", "two", 0);
    assert_int_equal(multi(s, &o, 1), 0);
    assert_int_equal(o.new_version, 1);
    assert_int_equal(one(s, REGISTER_SET, "/a", "", REGISTER_ANY_VERSION), 0);
    assert_register(s, "/a", "", 2);

    assert_int_equal(one(s, REGISTER_DELETE, "/a", "", 2), 0);
    assert_absent(s, "/a");
    assert_int_equal(create(s, "/a", "again"), 0);
    assert_register(s, "/a", "again", 0);
}

static void a_change_whose_condition_fails_changes_nothing(void **state)
{
    struct store *s = *state;

    assert_int_equal(create(s, "/a", "one"), 0);
    assert_int_equal(create(s, "/a", "x"), -EEXIST);
    assert_int_equal(create(s, "/no/parent", "x"), -ENOENT);
    assert_int_equal(one(s, REGISTER_SET, "/a", "x", 1), -ESTALE);
    assert_int_equal(one(s, REGISTER_SET, "/b", "x", REGISTER_ANY_VERSION), -ENOENT);
    assert_int_equal(one(s, REGISTER_DELETE, "/a", "", 7), -ESTALE);
    assert_int_equal(one(s, REGISTER_DELETE, "/b", "", REGISTER_ANY_VERSION), -ENOENT);
    assert_int_equal(one(s, REGISTER_CHECK, "/a", "", 1), -ESTALE);
    assert_int_equal(one(s, REGISTER_CHECK, "/a", "", 0), 0);
    assert_int_equal(create(s, "/a/b", ""), 0);
    assert_int_equal(one(s, REGISTER_DELETE, "/a", "", 0), -ENOTEMPTY);
    assert_register(s, "/a", "one", 0);
}

static void malformed_paths_and_huge_values_are_refused(void **state)
{
    struct store *s = *state;
    static const char *const bad[] = { "", "/", "a", "/a/", "//a", "/a//b" };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(create(s, bad[i], ""), -EINVAL);

    CLEANUP(freep) char *big = xcalloc(1, REGISTER_VALUE_MAX + 1);
    struct register_op o = { REGISTER_CREATE, "/big", slice_of(big, REGISTER_VALUE_MAX + 1), 0, 0, 0 };
    assert_int_equal(multi(s, &o, 1), -EINVAL);
    o.value.n--;
    assert_int_equal(multi(s, &o, 1), 0);
}

static void several_changes_happen_together_or_not_at_all(void **state)
{
    struct store *s = *state;
    struct register_op ops[] = {
        op(REGISTER_CREATE, "/t", "topic", 0),
        op(REGISTER_CREATE, "/t/p", "0", 0),
        op(REGISTER_SET, "/t", "topic2", 0),
        op(REGISTER_DELETE, "/old", "", 3),
    };

    assert_int_equal(create(s, "/old", "o"), 0);
    assert_int_equal(multi(s, ops, 4), -ESTALE);
    assert_int_equal(ops[0].rc, -ECANCELED);
    assert_int_equal(ops[2].rc, -ECANCELED);
    assert_int_equal(ops[3].rc, -ESTALE);
    assert_absent(s, "/t");
    assert_absent(s, "/t/p");

    ops[3].version = 0;
    assert_int_equal(multi(s, ops, 4), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(ops[i].rc, 0);
    assert_register(s, "/t", "topic2", 1);
    assert_register(s, "/t/p", "0", 0);
    assert_absent(s, "/old");
}

static void children_are_the_direct_ones_in_order(void **state)
{
    struct store *s = *state;

    assert_children(s, "/", 0, "");
    assert_children(s, "/b", -ENOENT, "");
    assert_int_equal(create(s, "/b", ""), 0);
    assert_int_equal(create(s, "/b/z", ""), 0);
    assert_int_equal(create(s, "/b/a", ""), 0);
    assert_int_equal(create(s, "/b/a/deep", ""), 0);
    assert_int_equal(create(s, "/a", ""), 0);
    assert_children(s, "/b", 0, "a z");
    assert_children(s, "/", 0, "a b");
    assert_children(s, "/b/z", 0, "");
}

struct seen {
    char paths[256];
    struct registers *unwatch_from;
    struct register_watch *w;
};

static void saw(void *arg, const char *path)
{
    struct seen *n = arg;
    strcat(n->paths, path);
    strcat(n->paths, " ");
    if (n->unwatch_from != NULL)
        registers_unwatch(n->unwatch_from, n->w);
}

static void a_watch_tells_of_changes_below_it_before_their_answer(void **state)
{
    struct store *s = *state;
    struct seen n = { .paths = "" };

    assert_int_equal(create(s, "/a", ""), 0);
    n.w = registers_watch(s->r, "/a", saw, &n);
    assert_int_equal(create(s, "/a/b", ""), 0);
    assert_string_equal(n.paths, "/a/b ");
    assert_int_equal(create(s, "/ab", ""), 0);
    assert_int_equal(create(s, "/a/b", ""), -EEXIST);
    assert_int_equal(one(s, REGISTER_CHECK, "/a", "", 0), 0);
    assert_int_equal(one(s, REGISTER_SET, "/a", "x", 0), 0);
    assert_int_equal(one(s, REGISTER_DELETE, "/a/b", "", 0), 0);
    assert_string_equal(n.paths, "/a/b /a /a/b ");

    registers_unwatch(s->r, n.w);
    assert_int_equal(one(s, REGISTER_SET, "/a", "y", 1), 0);
    assert_string_equal(n.paths, "/a/b /a /a/b ");
}

static void a_watch_may_end_itself(void **state)
{
    struct store *s = *state;
    struct seen n = { .paths = "", .unwatch_from = s->r };

    n.w = registers_watch(s->r, "/", saw, &n);
    struct register_op ops[] = { op(REGISTER_CREATE, "/a", "", 0), op(REGISTER_CREATE, "/b", "", 0) };
    assert_int_equal(multi(s, ops, 2), 0);
    assert_string_equal(n.paths, "/a ");
}

static void answers_come_in_the_order_of_the_calls(void **state)
{
    struct store *s = *state;
    struct register_op first = op(REGISTER_CREATE, "/a", "1", 0), second = op(REGISTER_SET, "/a", "2", 0);
    struct answer a[4] = { 0 };

    registers_multi(s->r, &first, 1, got_multi, &a[0]);
    registers_get(s->r, "/a", got_value, &a[1]);
    registers_multi(s->r, &second, 1, got_multi, &a[2]);
    registers_get(s->r, "/a", got_value, &a[3]);
    wait_for(s, &a[3].done);
    for (int i = 0; i < 4; i++) {
        assert_true(a[i].done);
        assert_int_equal(a[i].rc, 0);
    }
    assert_string_equal(a[1].value, "1");
    assert_string_equal(a[3].value, "2");
}

static void registers_outlive_the_process_and_ephemeral_ones_do_not(void **state)
{
    struct store *s = *state;

    assert_int_equal(create(s, "/ids", ""), 0);
    assert_int_equal(one(s, REGISTER_CREATE_EPHEMERAL, "/ids/1", "me", 0), 0);
    assert_int_equal(create(s, "/ids/1/below", ""), -EINVAL);
    assert_int_equal(one(s, REGISTER_SET, "/ids/1", "me too", 0), 0);
    assert_int_equal(one(s, REGISTER_CREATE_EPHEMERAL, "/ids/2", "you", 0), 0);
    assert_int_equal(one(s, REGISTER_DELETE, "/ids/2", "", 0), 0);
    assert_int_equal(create(s, "/gone", ""), 0);
    assert_int_equal(one(s, REGISTER_DELETE, "/gone", "", 0), 0);
    assert_int_equal(create(s, "/kept", "a"), 0);
    assert_int_equal(one(s, REGISTER_SET, "/kept", "b", 0), 0);

    store_reopen(s);
    assert_children(s, "/ids", 0, "");
    assert_register(s, "/kept", "b", 1);
    assert_absent(s, "/gone");
    assert_int_equal(one(s, REGISTER_CREATE_EPHEMERAL, "/ids/1", "me", 0), 0);
    assert_register(s, "/ids/1", "me", 0);
}

/* Adds one to /n by compare-and-set, 50 times, from a thread that has no loop. */
struct adder {
    struct store *s;
    pthread_t thread;
    struct register_op op;
    int64_t version;
    char text[24];
    int left;
    bool done;
};

static void adder_go(struct adder *a);

static void adder_read(void *arg, int rc, struct slice value, int64_t version)
{
    struct adder *a = arg;
    assert_int_equal(rc, 0);
    int n = snprintf(a->text, sizeof a->text, "%d", atoi((const char *)value.p) + 1);
    a->op = (struct register_op){ REGISTER_SET, "/n", slice_of(a->text, (size_t)n + 1), version, 0, 0 };
    adder_go(a);
}

static void adder_wrote(void *arg, int rc)
{
    struct adder *a = arg;
    assert_true(rc == 0 || rc == -ESTALE);
    a->left -= rc == 0;
    a->done = a->left == 0;
    if (!a->done)
        registers_get(a->s->r, "/n", adder_read, a);
}

static void adder_go(struct adder *a)
{
    registers_multi(a->s->r, &a->op, 1, adder_wrote, a);
}

static void *adder_run(void *arg)
{
    struct adder *a = arg;
    registers_get(a->s->r, "/n", adder_read, a);
    return NULL;
}

static void compare_and_set_loses_no_update(void **state)
{
    struct store *s = *state;
    struct adder a[4];
    struct register_op zero = { REGISTER_CREATE, "/n", slice_of("0", 2), 0, 0, 0 };

    assert_int_equal(multi(s, &zero, 1), 0);
    for (int i = 0; i < 4; i++) {
        a[i] = (struct adder){ .s = s, .left = 50 };
        assert_int_equal(pthread_create(&a[i].thread, NULL, adder_run, &a[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(a[i].thread, NULL);
        wait_for(s, &a[i].done);
    }
    assert_int_equal(get(s, "/n").version, 200);
    assert_int_equal(atoi(get(s, "/n").value), 200);
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

    assert_int_equal(create(s, "/a", "kept"), 0);
    read_file(s, "registers.journal", &before);
    assert_int_equal(one(s, REGISTER_SET, "/a", "torn", 0), 0);
    read_file(s, "registers.journal", &after);
    store_close(s);

    for (size_t n = before.n; n < after.n; n++) {
        write_file(s, "registers.journal", after.p, n);
        assert_int_equal(store_open(s), 0);
        assert_register(s, "/a", "kept", 0);
        assert_int_equal(create(s, "/b", "new"), 0);
        store_reopen(s);
        assert_register(s, "/b", "new", 0);
        store_close(s);
    }
    write_file(s, "registers.journal", after.p, after.n);
    assert_int_equal(store_open(s), 0);
    assert_register(s, "/a", "torn", 1);
    bytebuf_done(&before);
    bytebuf_done(&after);
}

static void a_tail_of_zeros_or_rubbish_is_dropped(void **state)
{
    struct store *s = *state;
    struct bytebuf b = { 0 };

    assert_int_equal(create(s, "/a", "kept"), 0);
    store_close(s);
    read_file(s, "registers.journal", &b);
    size_t n = b.n;
    for (int fill = 0; fill < 2; fill++) {
        b.n = n;
        memset(bytebuf_extend(&b, 5000), fill == 0 ? 0 : 'K', 5000);
        write_file(s, "registers.journal", b.p, b.n);
        assert_int_equal(store_open(s), 0);
        assert_register(s, "/a", "kept", 0);
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

    assert_int_equal(create(s, "/a", "one"), 0);
    read_file(s, "registers.journal", &b);
    size_t first_end = b.n;
    assert_int_equal(create(s, "/b", "two"), 0);
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
    assert_register(s, "/b", "two", 0);
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

    assert_int_equal(create(s, "/big", ""), 0);
    for (int i = 0; i < 64; i++) {
        struct register_op o = { REGISTER_SET, "/big", slice_of(value, 200000), REGISTER_ANY_VERSION, 0, 0 };
        assert_int_equal(multi(s, &o, 1), 0);
        if (fstatat(s->dirfd, "registers.snapshot", &st, 0) == 0)
            return;
    }
    fail_msg("no snapshot after 12 MB of changes");
}

static void a_long_journal_is_folded_into_a_snapshot(void **state)
{
    struct store *s = *state;
    struct stat st;

    assert_int_equal(create(s, "/a", "1"), 0);
    assert_int_equal(create(s, "/a/b", "2"), 0);
    assert_int_equal(one(s, REGISTER_CREATE_EPHEMERAL, "/a/c", "3", 0), 0);
    fill_until_compaction(s);
    assert_int_equal(one(s, REGISTER_SET, "/a/b", "after", 0), 0);
    store_reopen(s);

    assert_int_equal(fstatat(s->dirfd, "registers.journal", &st, 0), 0);
    assert_in_range(st.st_size, 16, 300000);
    assert_register(s, "/a", "1", 0);
    assert_register(s, "/a/b", "after", 1);
    assert_children(s, "/a", 0, "b");
    assert_true(get(s, "/big").version > 10);
}

/* A clean stop says where the registers end, so that nothing behind that can be taken for a torn change. */
static void after_a_clean_stop_a_lost_tail_is_refused(void **state)
{
    struct store *s = *state;
    struct bytebuf older = { 0 }, b = { 0 };

    assert_int_equal(create(s, "/a", "one"), 0);
    read_file(s, "registers.journal", &older);
    assert_int_equal(create(s, "/b", "acknowledged"), 0);
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
    assert_register(s, "/b", "acknowledged", 0);
    s->clean = false;
    bytebuf_done(&older);
    bytebuf_done(&b);
}

/* Of two files of one store each may be an older copy; of another store neither fits. */
static void copies_that_do_not_go_on_from_each_other_are_refused(void **state)
{
    struct store *s = *state;
    struct bytebuf old_journal = { 0 }, old_snapshot = { 0 }, journal = { 0 }, snapshot = { 0 };

    assert_int_equal(create(s, "/a", "one"), 0);
    read_file(s, "registers.journal", &old_journal);
    fill_until_compaction(s);
    read_file(s, "registers.snapshot", &old_snapshot);
    assert_int_equal(unlinkat(s->dirfd, "registers.snapshot", 0), 0); /* to see the next one being written */
    CLEANUP(freep) char *value = xcalloc(1, 200000);
    struct stat st;
    while (fstatat(s->dirfd, "registers.snapshot", &st, 0) < 0) {
        struct register_op o = { REGISTER_SET, "/big", slice_of(value, 200000), REGISTER_ANY_VERSION, 0, 0 };
        assert_int_equal(multi(s, &o, 1), 0);
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
    assert_int_equal(create(s, "/a", "one"), 0);
    simdisk_plan(d, &fault, 1);
    struct register_op b = op(REGISTER_CREATE, "/b", "refused", 0), c = op(REGISTER_CREATE, "/c", "refused", 0);
    assert_int_equal(multi(s, &b, 1), -EIO);
    assert_true(simdisk_plan_was_hit(d));
    assert_int_equal(multi(s, &c, 1), -EIO);
    assert_int_equal(get(s, "/a").rc, -EIO);
    assert_int_equal(atomic_load(&s->failed), EIO);
    assert_true(datadir_failed(s->dd));
    store_close(s);
    s->clean = false;
    simdisk_power_cut(d, SIMDISK_CUT_ALL);
    assert_int_equal(simdisk_size(d, "/d/clean-shutdown", false), -1);
    assert_int_equal(store_open(s), 0);
    assert_register(s, "/a", "one", 0);
    assert_absent(s, "/b"); /* its bytes were lost */
    assert_absent(s, "/c");
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
        ONE(a_register_begins_at_version_0_and_counts_its_changes),
        ONE(a_change_whose_condition_fails_changes_nothing),
        ONE(malformed_paths_and_huge_values_are_refused),
        ONE(several_changes_happen_together_or_not_at_all),
        ONE(children_are_the_direct_ones_in_order),
        ONE(a_watch_tells_of_changes_below_it_before_their_answer),
        ONE(a_watch_may_end_itself),
        ONE(answers_come_in_the_order_of_the_calls),
        ONE(registers_outlive_the_process_and_ephemeral_ones_do_not),
        ONE(compare_and_set_loses_no_update),
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
