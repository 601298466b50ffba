/* SPDX-License-Identifier: Apache-2.0 */
/*
 * S5, over a kill: a partition's directory that an earlier start made, and was killed before it had synced its name. What is flushed
 * in it afterwards is there after a power cut.
 */
#include "storetest.h"

#include "tests/sim/simdisk.h"

static void a_directory_that_was_made_before_a_kill_is_synced(void **state)
{
    struct fixture *f = *state;
    const struct simdisk_config cfg = { .seed = 1 };
    struct simdisk *d = simdisk_new(&cfg);

    snprintf(f->path, sizeof f->path, "/data");
    f->io = simdisk_io(d);
    must_open_dir(f);
    datadir_close(f->dd, false);
    assert_int_equal(io_sync_dir(f->io, AT_FDCWD, "/"), 0);
    assert_int_equal(f->io->mkdirat(f->io, AT_FDCWD, "/data/orders-0", 0755), 0);
    simdisk_kill(d);

    must_open(f);
    assert_int_equal(append_n(f, 3, 100).err, KERR_NONE);
    assert_int_equal(flush(f), 0);
    shut(f, false);
    simdisk_power_cut(d, SIMDISK_CUT_NONE);

    must_open(f);
    assert_int_equal(ends_of(f).end_offset, 3);
    shut(f, false);
    simdisk_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test_setup(a_directory_that_was_made_before_a_kill_is_synced, fixture_setup) };
    return RUN(tests);
}
