/* SPDX-License-Identifier: Apache-2.0 */
/* S10: damage is found wherever it is, what is good is never taken for it, and a log that let go of it and was copied on is byte for
 * byte what it was. */
#include "storetest.h"

#include "lib/store/plog_scrub.h"

enum { BATCHES = 24, FILES = 16 }; /* of two records */

struct original {
    struct bytebuf all; /* the batches, as a leader has them */
    struct bytebuf file[FILES];
    char name[FILES][32];
    int n;
};

static void read_whole(const char *path, struct bytebuf *ret)
{
    assert_int_equal(io_read_file(&store_io_real, AT_FDCWD, path, 1 << 20, ret), 0);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Names of the .log files, rising. */
static int list_logs(const struct fixture *f, char name[FILES][32])
{
    char path[PATH_MAX];
    int n = 0;

    file_path(f, ".", path);
    DIR *d = opendir(path);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (strlen(e->d_name) == 24 && strcmp(e->d_name + 20, ".log") == 0)
            snprintf(name[n++], 32, "%.31s", e->d_name);
    closedir(d);
    qsort(name, (size_t)n, 32, by_name);
    return n;
}

static void take_original(struct fixture *f, struct original *o)
{
    char path[PATH_MAX];

    memset(o, 0, sizeof *o);
    o->n = list_logs(f, o->name);
    for (int i = 0; i < o->n; i++) {
        file_path(f, o->name[i], path);
        read_whole(path, &o->file[i]);
        bytebuf_add(&o->all, o->file[i].p, o->file[i].n);
    }
}

static void original_done(struct original *o)
{
    for (int i = 0; i < o->n; i++)
        bytebuf_done(&o->file[i]);
    bytebuf_done(&o->all);
}

static void fill(struct fixture *f)
{
    f->cfg.segment_bytes = 2000;
    must_open(f);
    for (int i = 0; i < BATCHES; i++)
        assert_int_equal(append_n(f, 2, 300).base_offset, 2 * i);
    assert_int_equal(flush(f), 0);
}

static void flip(const struct fixture *f, const char *name, off_t at)
{
    char path[PATH_MAX];
    uint8_t b;

    file_path(f, name, path);
    int fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, &b, 1, at), 1);
    b ^= 0x10;
    assert_int_equal(pwrite(fd, &b, 1, at), 1);
    close(fd);
}

/* The first damage, and in *ret_eno why; -1: none. A piece at a time. */
static int64_t scrub(struct fixture *f, int64_t piece, int *ret_eno)
{
    struct scrub_cursor c;
    struct scrub_found found = { .damage_at = -1 };

    scrub_begin(f->l, &c, 0, false);
    while (!c.done && found.damage_at < 0)
        assert_int_equal(plog_scrub(f->l, &c, piece, &found), 0);
    *ret_eno = found.eno;
    return found.damage_at;
}

static int64_t scrubbed(struct fixture *f)
{
    int eno;
    int64_t in_pieces = scrub(f, 700, &eno);

    assert_int_equal(scrub(f, 1 << 20, &eno), in_pieces);
    return in_pieces;
}

/* From the log's end on, as a follower copies. */
static void copy_on(struct fixture *f, const struct original *o)
{
    struct plog_copied c;

    assert_int_equal(plog_append_copy(f->l, slice_of(o->all.p, o->all.n), f->now_ms, &c), 0);
    assert_int_equal(c.end_offset, 2 * BATCHES);
    assert_int_equal(flush(f), 0);
}

static void assert_as_it_was(struct fixture *f, const struct original *o)
{
    char name[FILES][32], path[PATH_MAX];

    assert_int_equal(list_logs(f, name), o->n);
    for (int i = 0; i < o->n; i++) {
        struct bytebuf b = { 0 };
        assert_string_equal(name[i], o->name[i]);
        file_path(f, name[i], path);
        read_whole(path, &b);
        assert_int_equal(b.n, o->file[i].n);
        assert_memory_equal(b.p, o->file[i].p, b.n);
        bytebuf_done(&b);
    }
    assert_int_equal(scrubbed(f), -1);
    assert_int_equal(check_log(f), 2 * BATCHES);
}

/* Mended at once, or after a kill between the cut and the copying. */
static void mend(struct fixture *f, const struct original *o, int64_t damage_at, bool killed)
{
    assert_int_equal(plog_mend(f->l, damage_at), 0);
    assert_true(ends_of(f).end_offset <= damage_at);
    if (killed) {
        reopen(f, false);
        assert_false(f->rec.holed);
    }
    copy_on(f, o);
    assert_as_it_was(f, o);
    reopen(f, false);
    assert_false(f->rec.holed);
    assert_false(f->rec.lost_end);
    assert_as_it_was(f, o);
}

static void every_byte_of_a_batch_is_looked_at(void **state)
{
    struct fixture *f = *state;
    struct original o;

    fill(f);
    take_original(f, &o);
    assert_int_equal(scrubbed(f), -1);
    int64_t size = 12 + get_be32(o.file[1].p + 8);
    int64_t base = (int64_t)get_be64(o.file[1].p);
    for (int64_t at = 0; at < 2 * size; at += at < size ? 1 : 97) {
        int64_t want = at < size ? base : base + 2;
        flip(f, o.name[1], at);
        int64_t got = scrubbed(f);
        flip(f, o.name[1], at);
        if (got != want)
            fail_msg("byte %lld: damage at %lld, not %lld", (long long)at, (long long)got, (long long)want);
    }
    original_done(&o);
}

static void damage_is_let_go_of_and_copied_anew(void **state)
{
    struct fixture *f = *state;
    struct original o;

    fill(f);
    take_original(f, &o);
    assert_true(o.n >= 6);
    for (int k = 0; k < 2 * o.n; k++) { /* in each file, the newest too */
        flip(f, o.name[k / 2], 900);
        int64_t at = scrubbed(f);
        assert_int_equal(at, (int64_t)get_be64(o.file[k / 2].p) + 2); /* the second batch */
        mend(f, &o, at, k % 2 == 1);
    }
    original_done(&o);
}

static void a_file_that_is_missing_is_damage(void **state)
{
    struct fixture *f = *state;
    struct original o;
    int eno;

    fill(f);
    take_original(f, &o);
    for (int i = 0; i < o.n; i++) {
        int64_t base = (int64_t)get_be64(o.file[i].p);
        file_remove(f, o.name[i]);
        assert_int_equal(scrub(f, 1 << 20, &eno), base);
        assert_int_equal(eno, ENOENT);
        mend(f, &o, base, i % 2 == 1);
    }
    original_done(&o);
}

/* Found at a start; the front too, which leaves nothing that could be copied on. */
static void a_file_that_is_missing_at_a_start(void **state)
{
    struct fixture *f = *state;
    struct original o;

    fill(f);
    take_original(f, &o);
    for (int i = 0; i + 1 < o.n; i++) {
        shut(f, i % 2 == 0);
        file_remove(f, o.name[i]);
        must_open(f);
        assert_true(f->rec.holed);
        assert_int_equal(f->rec.holed_from, (int64_t)get_be64(o.file[i].p));
        mend(f, &o, f->rec.holed_from, i % 2 == 1);
    }
    original_done(&o);
}

static void damage_that_a_start_finds(void **state)
{
    struct fixture *f = *state;
    struct original o;
    char path[PATH_MAX];

    fill(f);
    take_original(f, &o);
    for (int i = 0; i + 1 < o.n; i++) {
        shut(f, false);
        file_path(f, "partition.checkpoint", path); /* it is read from its front on */
        assert_true(unlink(path) == 0 || errno == ENOENT);
        flip(f, o.name[i], 900);
        must_open(f);
        assert_true(f->rec.holed);
        assert_int_equal(f->rec.holed_from, (int64_t)get_be64(o.file[i].p) + 2);
        mend(f, &o, f->rec.holed_from, i % 2 == 1);
    }
    original_done(&o);
}

/* Two files in each other's place, of equal sizes or not. */
static void files_that_were_exchanged(void **state)
{
    struct fixture *f = *state;
    struct original o;
    char a[PATH_MAX], b[PATH_MAX], aside[PATH_MAX];

    fill(f);
    take_original(f, &o);
    for (int i = 0; i < 4; i++) {
        shut(f, i >= 2);
        file_path(f, o.name[1], a);
        file_path(f, o.name[i % 2 == 0 ? 3 : o.n - 1], b);
        file_path(f, "x", aside);
        assert_int_equal(rename(a, aside) + rename(b, a) + rename(aside, b), 0);
        must_open(f);
        int64_t at = f->rec.holed ? f->rec.holed_from : scrubbed(f);
        assert_int_equal(at, (int64_t)get_be64(o.file[1].p));
        mend(f, &o, at, i % 2 == 1);
    }
    original_done(&o);
}

/* ---- a disk that refuses to read ---- */
static const char *sick_file; /* name; from byte 700 on */
static bool sick_fd[1024];

static int sick_openat(const struct store_io *io, int dirfd, const char *path, int flags, mode_t mode)
{
    (void)io;
    int fd = store_io_real.openat(&store_io_real, dirfd, path, flags, mode);
    if (fd >= 0)
        sick_fd[fd] = sick_file != NULL && strstr(path, sick_file) != NULL;
    return fd;
}

static int64_t sick_pread(const struct store_io *io, int fd, void *p, size_t n, off_t at)
{
    (void)io;
    if (sick_fd[fd] && sick_file != NULL && at + (off_t)n > 700)
        return -EIO;
    return store_io_real.pread(&store_io_real, fd, p, n, at);
}

static void a_sector_that_cannot_be_read(void **state)
{
    struct fixture *f = *state;
    static struct store_io sick; /* the teardown uses it */
    struct original o;
    int eno;

    sick = store_io_real;
    sick.openat = sick_openat;
    sick.pread = sick.pread_once = sick_pread;
    f->io = &sick;
    fill(f);
    take_original(f, &o);
    sick_file = o.name[2];
    reopen(f, true);
    assert_int_equal(scrub(f, 1 << 20, &eno), (int64_t)get_be64(o.file[2].p));
    assert_int_equal(eno, EIO);
    assert_int_equal(plog_mend(f->l, (int64_t)get_be64(o.file[2].p) + 2), 0); /* the segment goes unread */
    assert_false(datadir_failed(f->dd));
    assert_int_equal(ends_of(f).end_offset, (int64_t)get_be64(o.file[2].p));
    sick_file = NULL; /* what is written anew can be read */
    copy_on(f, &o);
    assert_as_it_was(f, &o);
    original_done(&o);
}

/* What moves under a reader is not damage. */
static void a_log_that_is_cut_and_retained_meanwhile_is_good(void **state)
{
    struct fixture *f = *state;
    struct scrub_cursor c;
    struct scrub_found found;

    fill(f);
    scrub_begin(f->l, &c, 0, false);
    for (int i = 0; !c.done; i++) {
        assert_int_equal(plog_scrub(f->l, &c, 700, &found), 0);
        assert_int_equal(found.damage_at, -1);
        if (i == 3)
            assert_int_equal(plog_delete_before(f->l, 9), 0);
        if (i == 6)
            assert_int_equal(plog_truncate(f->l, 30), 0);
        if (i == 8)
            assert_int_equal(append_n(f, 2, 300).base_offset, 30);
        assert_true(i < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(every_byte_of_a_batch_is_looked_at),
        T(damage_is_let_go_of_and_copied_anew),
        T(a_file_that_is_missing_is_damage),
        T(a_file_that_is_missing_at_a_start),
        T(damage_that_a_start_finds),
        T(files_that_were_exchanged),
        T(a_sector_that_cannot_be_read),
        T(a_log_that_is_cut_and_retained_meanwhile_is_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
