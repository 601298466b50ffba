/* SPDX-License-Identifier: Apache-2.0 */
/*
 * S5, for directories and over kills: the name of a log directory, and of a partition's, may have been made by a start that was
 * killed before it had synced it. What is flushed in them afterwards is there after a power cut.
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

static void so_is_a_log_directory_wherever_the_kill_was(void **state)
{
    struct fixture *f = *state;

    for (int64_t at = 0;; at++) {
        const struct simdisk_config cfg = { .seed = (uint64_t)at };
        struct simdisk *d = simdisk_new(&cfg);
        struct datadir_identity id = { .broker_id = 1 };
        char err[256];

        snprintf(f->path, sizeof f->path, "/var/lib/data");
        f->io = simdisk_io(d);
        simdisk_stop_in(d, at);
        bool was_stopped = datadir_open(f->path, world_of(f), &id, &f->dd, err, sizeof err) < 0;
        if (!was_stopped)
            datadir_close(f->dd, false);
        simdisk_kill(d);

        must_open_dir(f);
        datadir_close(f->dd, false);
        simdisk_power_cut(d, SIMDISK_CUT_NONE);
        assert_true(simdisk_size(d, "/var/lib/data/meta.properties", false) > 0);
        simdisk_free(d);
        if (!was_stopped)
            return;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_directory_that_was_made_before_a_kill_is_synced, fixture_setup),
        cmocka_unit_test_setup(so_is_a_log_directory_wherever_the_kill_was, fixture_setup),
    };
    return RUN(tests);
}
