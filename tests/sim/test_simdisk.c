/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated disk: what programs see of it, what it may lose, and what it must not. */
#include "unit.h"

#include <fcntl.h>

#include "lib/base/attr.h"
#include "lib/base/mem.h"
#include "tests/sim/simdisk.h"

enum { SEEDS = 300 };

static struct simdisk *disk_of(uint64_t seed)
{
    const struct simdisk_config cfg = { .seed = seed };
    return simdisk_new(&cfg);
}

static int must_openat(const struct store_io *io, const char *path, int flags)
{
    int fd = io->openat(io, AT_FDCWD, path, flags, 0644);
    assert_true(fd >= 0);
    return fd;
}

static void put(const struct store_io *io, int fd, const char *text, int64_t at)
{
    assert_int_equal(io_pwrite_all(io, fd, text, strlen(text), at), 0);
}

static void fill(const struct store_io *io, int fd, char c, size_t n, int64_t at)
{
    CLEANUP(freep) char *p = xmalloc(n);
    memset(p, c, n);
    assert_int_equal(io_pwrite_all(io, fd, p, n, at), 0);
}

static void make_file(const struct store_io *io, const char *path, const char *text, bool sync)
{
    int fd = must_openat(io, path, O_RDWR | O_CREAT);
    put(io, fd, text, 0);
    if (sync) {
        assert_int_equal(io->fsync(io, fd), 0);
        assert_int_equal(io_sync_dir(io, AT_FDCWD, "/"), 0);
    }
    assert_int_equal(io->close(io, fd), 0);
}

static void assert_holds(struct simdisk *d, const char *path, const char *text)
{
    char p[64] = "";
    assert_int_equal(simdisk_peek(d, path, false, p, sizeof p - 1, 0), strlen(text));
    assert_string_equal(p, text);
}

static void assert_gone(struct simdisk *d, const char *path)
{
    assert_int_equal(simdisk_size(d, path, false), -1);
}

/* ---- what programs see ---- */

static int count_name(void *arg, const char *name, enum io_kind kind)
{
    int *n = arg;
    assert_int_equal(kind, strcmp(name, "dir") == 0 ? IO_DIRECTORY : IO_FILE);
    (*n)++;
    return 0;
}

static void files_are_as_they_were_written(void **state)
{
    struct simdisk *d = disk_of(1);
    const struct store_io *io = simdisk_io(d);
    struct io_stat st;
    char p[8];
    int n = 0;

    (void)state;
    assert_int_equal(io->openat(io, AT_FDCWD, "/a", O_RDWR, 0), -ENOENT);
    int fd = must_openat(io, "/a", O_RDWR | O_CREAT);
    put(io, fd, "end", 10000);
    assert_int_equal(io->pread(io, fd, p, 8, 9998), 5);
    assert_memory_equal(p, "\0\0end", 5);
    assert_int_equal(io->seek_data(io, fd, 0), 8192);
    assert_int_equal(io->fstat(io, fd, &st), 0);
    assert_int_equal(st.size, 10003);
    assert_int_equal(io->ftruncate(io, fd, 10001), 0);
    assert_int_equal(io->ftruncate(io, fd, 10004), 0);
    assert_int_equal(io->pread(io, fd, p, 8, 10000), 4);
    assert_memory_equal(p, "e\0\0\0", 4);
    assert_int_equal(io->mkdirat(io, AT_FDCWD, "dir", 0755), 0);
    assert_int_equal(io->mkdirat(io, AT_FDCWD, "dir", 0755), -EEXIST);
    assert_int_equal(io->renameat(io, AT_FDCWD, "a", AT_FDCWD, "dir/b"), 0);
    assert_int_equal(io->statat(io, AT_FDCWD, "a", 0, &st), -ENOENT);
    assert_int_equal(io->unlinkat(io, AT_FDCWD, "dir", AT_REMOVEDIR), -ENOTEMPTY);
    assert_int_equal(io->list(io, AT_FDCWD, "/", count_name, &n), 0);
    assert_int_equal(io->list(io, AT_FDCWD, "/dir", count_name, &n), 0);
    assert_int_equal(n, 2);
    int dirfd = must_openat(io, "/dir", O_RDONLY | O_DIRECTORY);
    assert_int_equal(io->unlinkat(io, dirfd, "b", 0), 0);
    assert_int_equal(io->pread(io, fd, p, 8, 10000), 4); /* as long as it is open */
    assert_int_equal(io->close(io, fd), 0);
    assert_int_equal(io->close(io, dirfd), 0);
    assert_int_equal(io->unlinkat(io, AT_FDCWD, "dir", AT_REMOVEDIR), 0);
    simdisk_free(d);
}

struct names {
    char text[64];
};

static int add_name(void *arg, const char *name, enum io_kind kind)
{
    (void)kind;
    strcat(((struct names *)arg)->text, name);
    return 0;
}

static void names_are_listed_in_an_order_of_the_seed(void **state)
{
    struct names first = { "" };
    bool others = false;

    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct names again = { "" };
        for (int twice = 0; twice < 2; twice++) {
            struct simdisk *d = disk_of(seed);
            const struct store_io *io = simdisk_io(d);
            struct names v = { "" };
            for (int i = 0; i < 8; i++)
                make_file(io, (char[]){ '/', (char)('a' + i), '\0' }, "", false);
            assert_int_equal(io->list(io, AT_FDCWD, "/", add_name, &v), 0);
            assert_int_equal(strlen(v.text), 8);
            if (twice)
                assert_string_equal(v.text, again.text);
            again = v;
            simdisk_free(d);
        }
        if (seed == 0)
            first = again;
        others |= strcmp(first.text, again.text) != 0;
    }
    assert_true(others);
}

static void a_lock_goes_with_its_descriptor(void **state)
{
    struct simdisk *d = disk_of(1);
    const struct store_io *io = simdisk_io(d);

    (void)state;
    int a = must_openat(io, "/lock", O_RDWR | O_CREAT), b = must_openat(io, "/lock", O_RDWR);
    assert_int_equal(io->trylock(io, a), 0);
    assert_int_equal(io->trylock(io, b), -EBUSY);
    io->close(io, a);
    assert_int_equal(io->trylock(io, b), 0);
    simdisk_kill(d);
    a = must_openat(io, "/lock", O_RDWR);
    assert_int_equal(io->trylock(io, a), 0);
    simdisk_free(d);
}

/* ---- shortages ---- */

static void a_full_disk_writes_short_and_then_refuses(void **state)
{
    const struct simdisk_config cfg = { .seed = 1, .capacity = 20000 };
    struct simdisk *d = simdisk_new(&cfg);
    const struct store_io *io = simdisk_io(d);
    uint8_t p[30000] = { 1 };
    struct iovec iov = { p, sizeof p };
    int64_t total, left;

    (void)state;
    int fd = must_openat(io, "/a", O_RDWR | O_CREAT);
    assert_int_equal(io->pwritev(io, fd, &iov, 1, 0), 4 * SIMDISK_PAGE);
    assert_int_equal(io->pwritev(io, fd, &iov, 1, 4 * SIMDISK_PAGE), -ENOSPC);
    assert_int_equal(io->fallocate(io, fd, true, 4 * SIMDISK_PAGE, 1), -ENOSPC);
    assert_int_equal(io->space(io, fd, &total, &left), 0);
    assert_int_equal(total, 20000);
    assert_true(left < SIMDISK_PAGE);
    assert_int_equal(io->unlinkat(io, AT_FDCWD, "/a", 0), 0);
    assert_true(simdisk_used(d) > 4 * SIMDISK_PAGE); /* until it is closed ... */
    simdisk_power_cut(d, SIMDISK_CUT_ALL);
    assert_true(simdisk_used(d) < SIMDISK_PAGE);
    fd = must_openat(io, "/b", O_RDWR | O_CREAT);
    assert_int_equal(io->fallocate(io, fd, true, 0, 3 * SIMDISK_PAGE), 0);
    assert_int_equal(simdisk_size(d, "/b", false), 0);
    iov.iov_len = 3 * SIMDISK_PAGE; /* what was set aside is there */
    assert_int_equal(io->pwritev(io, fd, &iov, 1, 0), 3 * SIMDISK_PAGE);
    simdisk_free(d);
}

static void descriptors_run_out(void **state)
{
    const struct simdisk_config cfg = { .seed = 1, .fd_limit = 2 };
    struct simdisk *d = simdisk_new(&cfg);
    const struct store_io *io = simdisk_io(d);
    int n = 0;

    (void)state;
    int fd = must_openat(io, "/a", O_RDWR | O_CREAT);
    assert_true(simdisk_take_descriptor(d));
    assert_false(simdisk_take_descriptor(d));
    assert_int_equal(io->openat(io, AT_FDCWD, "/b", O_RDWR | O_CREAT, 0644), -EMFILE);
    assert_gone(d, "/b");
    assert_int_equal(io->list(io, AT_FDCWD, "/", count_name, &n), -EMFILE);
    simdisk_give_descriptor(d);
    assert_int_equal(io->list(io, AT_FDCWD, "/", count_name, &n), 0);
    io->close(io, fd);
    assert_int_equal(simdisk_descriptors(d), 0);
    simdisk_free(d);
}

/* ---- ends of a life ---- */

static void what_was_synced_and_nothing_else_survives_the_worst_cut(void **state)
{
    struct simdisk *d = disk_of(1);
    const struct store_io *io = simdisk_io(d);

    (void)state;
    make_file(io, "/kept", "synced", true);
    int fd = must_openat(io, "/kept", O_RDWR);
    put(io, fd, " and more", 6);
    make_file(io, "/lost", "its name was not synced", false);
    assert_false(simdisk_is_durable(d, "/kept", 0, 15));
    assert_true(simdisk_is_durable(d, "/kept", 0, 6));
    assert_int_equal(simdisk_size(d, "/kept", true), 6);
    simdisk_power_cut(d, SIMDISK_CUT_NONE);
    assert_holds(d, "/kept", "synced");
    assert_gone(d, "/lost");
    assert_true(simdisk_is_durable(d, "/kept", 0, 6));
    simdisk_free(d);
}

static void a_journal_takes_names_with_any_sync(void **state)
{
    (void)state;
    for (int journal = 0; journal < 2; journal++) {
        const struct simdisk_config cfg = { .seed = 1, .journal = journal };
        struct simdisk *d = simdisk_new(&cfg);
        const struct store_io *io = simdisk_io(d);
        make_file(io, "/other", "x", false);
        int fd = must_openat(io, "/a", O_RDWR | O_CREAT);
        assert_int_equal(io->fsync(io, fd), 0);
        simdisk_power_cut(d, SIMDISK_CUT_NONE);
        assert_int_equal(simdisk_size(d, "/a", false), journal ? 0 : -1);
        assert_int_equal(simdisk_size(d, "/other", false), journal ? 0 : -1); /* without its bytes */
        simdisk_free(d);
    }
}

static void kill_keeps_what_was_done(void **state)
{
    struct simdisk *d = disk_of(1);
    const struct store_io *io = simdisk_io(d);

    (void)state;
    make_file(io, "/a", "abc", false);
    must_openat(io, "/a", O_RDWR);
    simdisk_kill(d);
    assert_int_equal(simdisk_descriptors(d), 0);
    assert_holds(d, "/a", "abc");
    simdisk_free(d);
}

static void at_the_call_of_the_end_everything_stops(void **state)
{
    enum { N = 3 * SIMDISK_SECTOR };
    static const char p[N];
    bool none = false, half = false, synced = false, unsynced = false;

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct simdisk *d = disk_of(seed);
        const struct store_io *io = simdisk_io(d);
        struct io_stat st;
        int fd = must_openat(io, "/a", O_RDWR | O_CREAT);
        simdisk_stop_in(d, 0);
        assert_int_equal(io_pwrite_all(io, fd, p, N, 0), -EIO);
        assert_true(simdisk_stopped(d));
        assert_int_equal(io->fstat(io, fd, &st), -EIO);
        assert_int_equal(io->openat(io, AT_FDCWD, "/b", O_RDWR | O_CREAT, 0), -EIO);
        simdisk_kill(d);
        assert_false(simdisk_stopped(d));
        int64_t n = simdisk_size(d, "/a", false);
        assert_in_range(n, 0, N);
        assert_int_equal(n % SIMDISK_SECTOR, 0);
        none |= n == 0;
        half |= n == SIMDISK_SECTOR;

        fd = must_openat(io, "/a", O_RDWR);
        simdisk_stop_in(d, 0);
        assert_int_equal(io->fsync(io, fd), -EIO);
        synced |= simdisk_size(d, "/a", true) == -1 && n > 0;
        simdisk_kill(d);
        assert_int_equal(io_sync_dir(io, AT_FDCWD, "/"), 0);
        unsynced |= simdisk_size(d, "/a", true) == 0 && n > 0;
        synced |= simdisk_size(d, "/a", true) == n && n > 0;
        simdisk_free(d);
    }
    assert_true(none && half && synced && unsynced);
}

static void a_rename_happens_wholly_or_not(void **state)
{
    int old = 0, new = 0, empty = 0;

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct simdisk *d = disk_of(seed);
        const struct store_io *io = simdisk_io(d);
        char p[8] = "";
        make_file(io, "/a", "old", true);
        make_file(io, "/a.tmp", "new", false);
        assert_int_equal(io->renameat(io, AT_FDCWD, "/a.tmp", AT_FDCWD, "/a"), 0);
        simdisk_power_cut_any(d);
        assert_true(simdisk_peek(d, "/a", false, p, 7, 0) >= 0);
        assert_true(strcmp(p, "old") == 0 || simdisk_size(d, "/a.tmp", false) == -1);
        old += strcmp(p, "old") == 0;
        new += strcmp(p, "new") == 0;
        empty += p[0] == '\0';
        simdisk_free(d);
    }
    assert_true(old > 0 && new > 0 && empty > 0);
}

/* Names of different files are independent; one may be lost and the next there. */
static void names_survive_as_a_subset_that_could_be(void **state)
{
    bool seen[4] = { false };

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct simdisk *d = disk_of(seed);
        const struct store_io *io = simdisk_io(d);
        make_file(io, "/a", "", false);
        make_file(io, "/b", "", false);
        assert_int_equal(io->renameat(io, AT_FDCWD, "/b", AT_FDCWD, "/c"), 0);
        simdisk_power_cut_any(d);
        bool a = simdisk_size(d, "/a", false) >= 0, b = simdisk_size(d, "/b", false) >= 0;
        bool c = simdisk_size(d, "/c", false) >= 0;
        assert_false(b && c);
        seen[a + 2 * (b || c)] = true;
        simdisk_free(d);
    }
    assert_true(seen[0] && seen[1] && seen[2] && seen[3]);
}

static void each_sector_is_old_or_new(void **state)
{
    enum { N = 3 * SIMDISK_PAGE, SYNCED = SIMDISK_PAGE + 1000 };
    bool hole_before_data = false, half_page = false;

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct simdisk *d = disk_of(seed);
        const struct store_io *io = simdisk_io(d);
        char p[N];
        int fd = must_openat(io, "/a", O_RDWR | O_CREAT);
        fill(io, fd, 'o', SYNCED, 0);
        assert_int_equal(io->fsync(io, fd), 0);
        assert_int_equal(io_sync_dir(io, AT_FDCWD, "/"), 0);
        fill(io, fd, 'n', N - SYNCED, SYNCED);
        simdisk_power_cut(d, seed % 2 ? SIMDISK_CUT_SECTORS : SIMDISK_CUT_PAGES);
        int64_t n = simdisk_peek(d, "/a", false, p, N, 0);
        assert_in_range(n, SYNCED, N);
        for (int i = 0; i < SYNCED; i++)
            assert_int_equal(p[i], 'o');
        for (int64_t i = SYNCED; i < n; i++) {
            assert_true(p[i] == 'n' || p[i] == '\0');
            assert_true(i % SIMDISK_SECTOR == 0 || i == SYNCED || p[i] == p[i - 1]);
        }
        hole_before_data |= n == N && p[SYNCED] == '\0' && p[N - 1] == 'n';
        half_page |= n == N && p[2 * SIMDISK_PAGE] != p[N - 1];
        simdisk_free(d);
    }
    assert_true(hole_before_data && half_page);
}

/* Two files, written in turns: what survives in order is a prefix of what was done. */
static void a_cut_in_order_leaves_a_prefix(void **state)
{
    bool some = false;

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct simdisk *d = disk_of(seed);
        const struct store_io *io = simdisk_io(d);
        int a = must_openat(io, "/a", O_RDWR | O_CREAT), b = must_openat(io, "/b", O_RDWR | O_CREAT);
        assert_int_equal(io_sync_dir(io, AT_FDCWD, "/"), 0);
        for (int i = 0; i < 10; i++)
            fill(io, i % 2 == 0 ? a : b, (char)('0' + i), 100, i / 2 * 100);
        simdisk_power_cut(d, SIMDISK_CUT_IN_ORDER);
        int64_t n = simdisk_size(d, "/a", false), m = simdisk_size(d, "/b", false);
        assert_true(m / 100 == n / 100 || (n % 100 == 0 && m / 100 == n / 100 - 1) || n == m);
        some |= n > 0 && n < 500;
        simdisk_free(d);
    }
    assert_true(some);
}

static void a_truncation_keeps_the_old_bytes_or_cuts_them_off(void **state)
{
    bool old = false, cut = false, again = false;

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        enum { N = 4 * SIMDISK_PAGE, TO = SIMDISK_PAGE };
        struct simdisk *d = disk_of(seed);
        const struct store_io *io = simdisk_io(d);
        char p[N];
        int fd = must_openat(io, "/a", O_RDWR | O_CREAT);
        fill(io, fd, 'o', N, 0);
        assert_int_equal(io->fsync(io, fd), 0);
        assert_int_equal(io_sync_dir(io, AT_FDCWD, "/"), 0);
        assert_int_equal(io->ftruncate(io, fd, TO), 0);
        fill(io, fd, 'n', SIMDISK_PAGE, TO);
        simdisk_power_cut_any(d);
        int64_t n = simdisk_peek(d, "/a", false, p, N, 0);
        bool kept = n == N;
        assert_in_range(n, TO, N);
        for (int64_t i = 0; i < n; i++)
            assert_true(i < TO || kept ? p[i] == 'o' : p[i] == 'n' || p[i] == '\0');
        old |= kept;
        cut |= n == TO;
        again |= n == 2 * TO && p[n - 1] == 'n';
        simdisk_free(d);
    }
    assert_true(old && cut && again);
}

/* ---- errors ---- */

static void a_failed_sync_is_told_once_and_loses_what_it_was_about(void **state)
{
    static const struct simdisk_fault plan = { .ops = 1u << SIMDISK_SYNC, .under = "/a", .n = 1, .eno = EIO };
    (void)state;
    for (int cut = 0; cut < 2; cut++) {
        struct simdisk *d = disk_of(1);
        const struct store_io *io = simdisk_io(d);
        make_file(io, "/a", "old", true);
        int fd = must_openat(io, "/a", O_RDWR);
        put(io, fd, "new", 0);
        simdisk_plan(d, &plan, 1);
        assert_int_equal(io->fsync(io, fd), -EIO);
        assert_true(simdisk_plan_was_hit(d));
        assert_int_equal(io->fsync(io, fd), 0);
        assert_holds(d, "/a", "new");
        assert_false(simdisk_is_durable(d, "/a", 0, 3));
        if (cut)
            simdisk_power_cut(d, SIMDISK_CUT_ALL);
        else
            simdisk_drop_cache(d);
        assert_holds(d, "/a", "old");
        simdisk_free(d);
    }
}

static void a_failed_write_back_is_told_to_each_descriptor_once(void **state)
{
    const struct simdisk_chances always = { .write_back = 1000000, .lost = 1000000 };
    struct simdisk *d = disk_of(3);
    const struct store_io *io = simdisk_io(d);
    int a = must_openat(io, "/a", O_RDWR | O_CREAT), b = must_openat(io, "/a", O_RDWR);
    int told = 0;

    (void)state;
    put(io, a, "abc", 0);
    simdisk_set_chances(d, &always);
    for (int i = 0; i < 20; i++)
        make_file(io, "/other", "x", false);
    simdisk_set_chances(d, &(struct simdisk_chances){ 0 });
    for (int i = 0; i < 4; i++)
        told += (io->fsync(io, a) == -EIO) + 10 * (io->fsync(io, b) == -EIO);
    assert_int_equal(told, 11);
    simdisk_free(d);
}

static void faults_come_as_planned(void **state)
{
    static const struct simdisk_fault plan[] = {
        { .ops = 1u << SIMDISK_WRITE, .under = "/dir/", .at = 1, .n = 2, .eno = EDQUOT, .part = true },
        { .ops = 1u << SIMDISK_OPEN | 1u << SIMDISK_CREATE, .at = 0, .n = 1, .eno = EMFILE },
    };
    struct simdisk *d = disk_of(1);
    const struct store_io *io = simdisk_io(d);

    (void)state;
    assert_int_equal(io->mkdirat(io, AT_FDCWD, "/dir", 0755), 0);
    simdisk_plan(d, plan, 2);
    assert_int_equal(io->openat(io, AT_FDCWD, "/dir/a", O_RDWR | O_CREAT, 0), -EMFILE);
    int fd = must_openat(io, "/dir/a", O_RDWR | O_CREAT), other = must_openat(io, "/b", O_RDWR | O_CREAT);
    put(io, other, "x", 0);
    fill(io, fd, '1', 1000, 0);
    CLEANUP(freep) char *p = xcalloc(1, 1000);
    assert_int_equal(io_pwrite_all(io, fd, p, 1000, 1000), -EDQUOT);
    assert_in_range(simdisk_size(d, "/dir/a", false), 1001, 2000);
    assert_int_equal(io_pwrite_all(io, fd, p, 1000, 1000), -EDQUOT);
    fill(io, fd, '5', 1000, 1000);
    simdisk_free(d);
}

static void parts_and_early_write_back_change_nothing_that_is_seen(void **state)
{
    const struct simdisk_chances often = { .part = 500000, .write_back = 500000 };

    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct simdisk *d = disk_of(seed);
        const struct store_io *io = simdisk_io(d);
        char p[10000];
        simdisk_set_chances(d, &often);
        int fd = must_openat(io, "/a", O_RDWR | O_CREAT);
        for (int i = 0; i < 100; i++)
            fill(io, fd, (char)('a' + i % 26), 100, i * 100);
        assert_int_equal(io->ftruncate(io, fd, 5000), 0);
        fill(io, fd, 'z', 5000, 5000);
        assert_int_equal(io_pread_full(io, fd, p, sizeof p, 0), sizeof p);
        for (int i = 0; i < 10000; i++)
            assert_int_equal(p[i], i < 5000 ? 'a' + i / 100 % 26 : 'z');
        simdisk_free(d);
    }
}

static void rot_is_read_until_it_is_written_over(void **state)
{
    struct simdisk *d = disk_of(1);
    const struct store_io *io = simdisk_io(d);
    char p[4];

    (void)state;
    make_file(io, "/a", "abcd", true);
    assert_true(simdisk_poke(d, "/a", "X", 1, 2));
    assert_holds(d, "/a", "abXd");
    assert_false(simdisk_poke(d, "/a", "X", 1, 4));
    int fd = must_openat(io, "/a", O_RDWR);
    assert_true(simdisk_spoil(d, "/a", 1));
    assert_int_equal(io->pread(io, fd, p, 4, 0), -EIO);
    put(io, fd, "efgh", 0);
    assert_int_equal(io->pread(io, fd, p, 4, 0), 4);
    simdisk_power_cut(d, SIMDISK_CUT_NONE);
    assert_holds(d, "/a", "abXd");
    simdisk_free(d);
}

/* ---- times ---- */

struct watch {
    int64_t sum_ns;
    int n, stopped;
};

static void note_time(void *arg, enum simdisk_op op, int64_t ns)
{
    struct watch *w = arg;
    (void)op;
    w->sum_ns += ns;
    w->n++;
}

static void note_stop(void *arg)
{
    ((struct watch *)arg)->stopped++;
}

static void calls_take_time_by_the_seed(void **state)
{
    struct watch w[2] = { { 0 } };

    (void)state;
    for (int i = 0; i < 2; i++) {
        const struct simdisk_config cfg = { .seed = 5, .hooks = { .arg = &w[i], .took = note_time, .stopped = note_stop } };
        struct simdisk *d = simdisk_new(&cfg);
        const struct store_io *io = simdisk_io(d);
        make_file(io, "/a", "abc", true);
        assert_int_equal(w[i].n, 7); /* open, write, fsync, open, fsync, close, close */
        simdisk_stop_in(d, 0);
        assert_int_equal(io->unlinkat(io, AT_FDCWD, "/a", 0), -EIO);
        assert_int_equal(w[i].stopped, 1);
        assert_int_equal(w[i].n, 7);
        simdisk_free(d);
    }
    assert_int_equal(w[0].sum_ns, w[1].sum_ns);
    assert_true(w[0].sum_ns > 600000);
}

#define T(f) cmocka_unit_test(f)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(files_are_as_they_were_written),
        T(names_are_listed_in_an_order_of_the_seed),
        T(a_lock_goes_with_its_descriptor),
        T(a_full_disk_writes_short_and_then_refuses),
        T(descriptors_run_out),
        T(what_was_synced_and_nothing_else_survives_the_worst_cut),
        T(a_journal_takes_names_with_any_sync),
        T(kill_keeps_what_was_done),
        T(at_the_call_of_the_end_everything_stops),
        T(a_rename_happens_wholly_or_not),
        T(names_survive_as_a_subset_that_could_be),
        T(each_sector_is_old_or_new),
        T(a_cut_in_order_leaves_a_prefix),
        T(a_truncation_keeps_the_old_bytes_or_cuts_them_off),
        T(a_failed_sync_is_told_once_and_loses_what_it_was_about),
        T(a_failed_write_back_is_told_to_each_descriptor_once),
        T(faults_come_as_planned),
        T(parts_and_early_write_back_change_nothing_that_is_seen),
        T(rot_is_read_until_it_is_written_over),
        T(calls_take_time_by_the_seed),
    };
    return RUN(tests);
}
