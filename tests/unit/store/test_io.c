/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rule S6 on the real disk: what a replaced file holds, and what stays when replacing fails. What survives a power cut is
 * test_crash's.
 */
#include "unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fsutil.h"
#include "lib/store/io.h"

struct fixture {
    char path[32];
    int fd;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    strcpy(f->path, "test_io.XXXXXX");
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
    free(f);
    return 0;
}

static void a_replaced_file_has_the_new_bytes_and_leaves_no_temporary(void **state)
{
    struct fixture *f = *state;
    struct bytebuf b = { 0 };

    assert_int_equal(io_replace_file(&store_io_real, f->fd, ".", "x", "old", 3), 0);
    assert_int_equal(io_replace_file(&store_io_real, f->fd, ".", "x", "newer", 5), 0);
    assert_int_equal(fs_read_file(f->fd, "x", 100, &b), 0);
    assert_string_equal(bytebuf_cstr(&b), "newer");
    assert_int_equal(faccessat(f->fd, "x.tmp", F_OK, 0), -1);
    bytebuf_done(&b);
}

static void a_failed_replacement_keeps_the_old_file(void **state)
{
    struct fixture *f = *state;
    struct bytebuf b = { 0 };

    assert_int_equal(io_replace_file(&store_io_real, f->fd, ".", "x", "old", 3), 0);
    assert_int_equal(mkdirat(f->fd, "x.tmp", 0755), 0); /* the temporary cannot be made */
    assert_int_equal(io_replace_file(&store_io_real, f->fd, ".", "x", "new", 3), -EISDIR);
    assert_int_equal(fs_read_file(f->fd, "x", 100, &b), 0);
    assert_string_equal(bytebuf_cstr(&b), "old");
    bytebuf_done(&b);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_replaced_file_has_the_new_bytes_and_leaves_no_temporary),
        T(a_failed_replacement_keeps_the_old_file),
    };
    return RUN(tests);
}
