/* SPDX-License-Identifier: Apache-2.0 */
/* Disks that fail or fill up under a running broker (S2, S8). The disk is a table of functions here. */
#include "rig.h"

#include <dirent.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/store/io.h"

static atomic_int syncs_to_fail, writes_to_fail;
static atomic_int write_error;

static bool take_one(atomic_int *left)
{
    int n = atomic_load(left);
    while (n > 0)
        if (atomic_compare_exchange_weak(left, &n, n - 1))
            return true;
    return false;
}

static int failing_fdatasync(const struct store_io *io, int fd)
{
    (void)io;
    return take_one(&syncs_to_fail) ? -EIO : store_io_real.fdatasync(&store_io_real, fd);
}

static int64_t failing_pwritev(const struct store_io *io, int fd, const struct iovec *iov, int n_iov,
                               off_t at)
{
    (void)io;
    return take_one(&writes_to_fail) ? -atomic_load(&write_error)
                                     : store_io_real.pwritev(&store_io_real, fd, iov, n_iov, at);
}

static struct store_io failing_io(void)
{
    struct store_io io = store_io_real;
    io.fdatasync = failing_fdatasync;
    io.pwritev = failing_pwritev;
    return io;
}

static struct produce_response_partition_responses *produce_to(int fd, int32_t partition,
                                                               const struct bytebuf *batch, struct arena *a)
{
    struct produce_request_partition_data part = { .index = partition,
                                                   .records = { batch->p, (int32_t)batch->n, NULL } };
    struct produce_request_topic_data data = { .name = kstr_of("t"), .partition_data = &part, .n_partition_data = 1 };
    struct produce_request q = {
        .transactional_id = KSTR_NULL, .acks = -1, .timeout_ms = 10000, .topic_data = &data, .n_topic_data = 1
    };
    struct produce_response *rsp = peer_ask(fd, &wire_produce_request, &wire_produce_response, 9, &q, a);
    return &rsp->responses[0].partition_responses[0];
}

static void a_failed_sync_takes_its_directory_offline_and_no_other(void **state)
{
    (void)state;
    struct rig g = { 0 };
    struct arena a;
    struct bytebuf batch = { 0 };
    struct store_io io = failing_io();
    arena_init(&a);
    make_batch(&batch, "v", 3, clock_wall_ms());
    rig_start_on(&g, &io, 2, NULL);
    rig_create_topic(&g, "t", 2, NULL);
    struct partition *zero = rig_partition(&g, "t", 0), *one = rig_partition(&g, "t", 1);
    assert_int_not_equal(zero->dir, one->dir);
    int fd = peer_open(&g);
    assert_int_equal(produce_to(fd, 0, &batch, &a)->error_code, 0);

    atomic_store(&syncs_to_fail, 1);
    assert_int_equal(produce_to(fd, 0, &batch, &a)->error_code, KERR_KAFKA_STORAGE_ERROR);
    assert_int_equal(produce_to(fd, 0, &batch, &a)->error_code,
                     KERR_KAFKA_STORAGE_ERROR); /* never tried again */
    assert_int_equal(peer_fetch(fd, 11, fetch_one(&a, "t", 0, 1000), &a)->error_code,
                     KERR_KAFKA_STORAGE_ERROR);
    assert_int_equal(peer_fetch(fd, 5, fetch_one(&a, "t", 0, 1000), &a)->error_code,
                     KERR_NOT_LEADER_OR_FOLLOWER);
    assert_int_equal(produce_to(fd, 1, &batch, &a)->error_code, 0);
    assert_int_equal(produce_to(fd, 1, &batch, &a)->base_offset, 3);

    partition_unref(zero);
    partition_unref(one);
    close(fd);
    assert_false(rig_stop(&g)); /* not clean, and it says so */
    rig_remove(&g);
    bytebuf_done(&batch);
    arena_done(&a);
}

static void a_full_disk_refuses_records_until_there_is_room(void **state)
{
    (void)state;
    struct rig g = { 0 };
    struct arena a;
    struct bytebuf batch = { 0 };
    struct store_io io = failing_io();
    arena_init(&a);
    make_batch(&batch, "v", 3, clock_wall_ms());
    rig_start_on(&g, &io, 1, NULL);
    rig_create_topic(&g, "t", 1, NULL);
    int fd = peer_open(&g);
    assert_int_equal(produce_to(fd, 0, &batch, &a)->error_code, 0);
    atomic_store(&write_error, ENOSPC);
    atomic_store(&writes_to_fail, 1000000);
    assert_int_equal(produce_to(fd, 0, &batch, &a)->error_code, KERR_KAFKA_STORAGE_ERROR);
    assert_int_equal(peer_fetch(fd, 11, fetch_one(&a, "t", 0, 0), &a)->records.n, batch.n);
    atomic_store(&writes_to_fail, 0);
    assert_int_equal(produce_to(fd, 0, &batch, &a)->base_offset, 3);
    assert_int_equal(peer_fetch(fd, 11, fetch_one(&a, "t", 0, 0), &a)->records.n, 2 * batch.n);
    close(fd);
    rig_done(&g);
    bytebuf_done(&batch);
    arena_done(&a);
}

/* In a process of its own, since it ends with it. */
static void lose_the_last_directory(struct rig *g)
{
    struct arena a;
    struct bytebuf batch = { 0 };
    struct store_io io = failing_io();
    arena_init(&a);
    make_batch(&batch, "v", 3, clock_wall_ms());
    rig_start_in(g, &io, 1, NULL);
    rig_create_topic(g, "t", 1, NULL);
    int fd = peer_open(g);
    atomic_store(&syncs_to_fail, 1);
    log_set_level(LOG_LEVEL_ERROR + 1);
    produce_to(fd, 0, &batch, &a);
    _exit(99);
}

static void the_last_directory_takes_the_process_with_it(void **state)
{
    (void)state;
    struct rig g = { 0 };
    char marker[300];
    int status;
    rig_make_dir(&g);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        lose_the_last_directory(&g);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), BROKER_EXIT_STORAGE);
    snprintf(marker, sizeof marker, "%s/data0/clean-shutdown", g.dir);
    assert_int_equal(access(marker, F_OK), -1);
    rig_remove(&g);
}

/* ---- a directory that fails while logs are opened ---- */
static atomic_bool second_fails;

static int second_dir_fdatasync(const struct store_io *io, int fd)
{
    char link[64], path[PATH_MAX];
    (void)io;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n < 0 ? 0 : n] = '\0';
    if (atomic_load(&second_fails) && strstr(path, "/data1/t-") != NULL)
        return -EIO;
    return store_io_real.fdatasync(&store_io_real, fd);
}

static int partitions_in(const struct rig *g, int dir)
{
    char path[300];
    int n = 0;
    snprintf(path, sizeof path, "%s/data%d", g->dir, dir);
    DIR *d = opendir(path);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        n += strncmp(e->d_name, "t-", 2) == 0;
    closedir(d);
    return n;
}

static void a_log_of_a_directory_that_fails_at_the_start_is_not_begun_anew_in_another(void **state)
{
    (void)state;
    struct rig g = { 0 };
    struct arena a;
    struct bytebuf batch = { 0 };
    struct store_io io = store_io_real;
    char path[300];

    arena_init(&a);
    io.fdatasync = second_dir_fdatasync;
    make_batch(&batch, "v", 3, clock_wall_ms());
    rig_start_on(&g, &io, 2, NULL);
    rig_create_topic(&g, "t", 8, NULL);
    int fd = peer_open(&g);
    for (int i = 0; i < 8; i++)
        assert_int_equal(produce_to(fd, i, &batch, &a)->error_code, 0);
    close(fd);
    assert_true(rig_stop(&g));
    assert_int_equal(partitions_in(&g, 0), 4);
    snprintf(path, sizeof path, "%s/data1/clean-shutdown", g.dir); /* as after a kill: logs are scanned, and what is there synced */
    assert_int_equal(unlink(path), 0);
    for (int i = 0; i < 8; i++) {
        snprintf(path, sizeof path, "%s/data1/t-%d/partition.checkpoint", g.dir, i);
        unlink(path);
    }

    atomic_store(&second_fails, true);
    rig_start_in(&g, &io, 2, NULL);
    fd = peer_open(&g);
    int served = 0;
    for (int i = 0; i < 8; i++) {
        const struct produce_response_partition_responses *pr = produce_to(fd, i, &batch, &a);
        served += pr->error_code == 0;
        assert_true(pr->error_code == KERR_KAFKA_STORAGE_ERROR || pr->base_offset == 3);
    }
    assert_int_equal(served, 4);
    assert_int_equal(partitions_in(&g, 0), 4);
    close(fd);
    assert_false(rig_stop(&g));
    rig_remove(&g);
    bytebuf_done(&batch);
    arena_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_sync_takes_its_directory_offline_and_no_other),
        cmocka_unit_test(a_full_disk_refuses_records_until_there_is_room),
        cmocka_unit_test(a_log_of_a_directory_that_fails_at_the_start_is_not_begun_anew_in_another),
        cmocka_unit_test(the_last_directory_takes_the_process_with_it),
    };
    return RUN(tests);
}
