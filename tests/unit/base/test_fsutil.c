/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files read and written whole: that reading is bounded, goes to the end of a short file, and that a tree is removed with all in it
 * but not what its links name.
 */
#include "unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fsutil.h"
#include "lib/base/mem.h"

struct fixture {
    char path[32];
    int fd;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    strcpy(f->path, "test_fsutil.XXXXXX");
    assert_non_null(mkdtemp(f->path));
    f->fd = open(f->path, O_RDONLY | O_DIRECTORY);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    close(f->fd);
    assert_int_equal(fs_remove_tree(AT_FDCWD, f->path), 0);
    assert_int_equal(access(f->path, F_OK), -1);
    free(f);
    return 0;
}

static void make_file(const struct fixture *f, const char *name, const char *text)
{
    CLEANUP(closep) int fd = openat(f->fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_int_equal(fs_write_all(fd, text, strlen(text)), 0);
}

static void a_file_larger_than_allowed_is_not_read(void **state)
{
    struct fixture *f = *state;
    struct bytebuf b = { 0 };

    make_file(f, "x", "0123456789");
    assert_int_equal(fs_read_file(f->fd, "x", 9, &b), -EFBIG);
    assert_int_equal(fs_read_file(f->fd, "none", 9, &b), -ENOENT);
    assert_int_equal(b.n, 0);
}

static void a_tree_is_removed_with_all_in_it(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(mkdirat(f->fd, "a", 0755), 0);
    assert_int_equal(mkdirat(f->fd, "a/b", 0755), 0);
    assert_int_equal(symlinkat("/etc", f->fd, "a/b/link"), 0);   /* the link goes, not what it names */
    assert_int_equal(fs_remove_tree(f->fd, "a"), 0);
    assert_int_equal(faccessat(f->fd, "a", F_OK, 0), -1);
    assert_int_equal(access("/etc", F_OK), 0);
    assert_int_equal(fs_remove_tree(f->fd, "a"), 0);
}

static void a_short_file_is_read_to_its_end(void **state)
{
    struct fixture *f = *state;
    char got[16];

    make_file(f, "x", "0123456789");
    int fd = openat(f->fd, "x", O_RDONLY);
    assert_int_equal(fs_pread_full(fd, got, sizeof got, 4), 6);
    assert_memory_equal(got, "456789", 6);
    close(fd);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_file_larger_than_allowed_is_not_read),
        T(a_tree_is_removed_with_all_in_it),
        T(a_short_file_is_read_to_its_end),
    };
    return RUN(tests);
}
