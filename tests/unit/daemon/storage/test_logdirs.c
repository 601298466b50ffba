/* SPDX-License-Identifier: Apache-2.0 */
/* Log directories: whose they are, and that one's failing is told once, with the last one's word. */
#include "unit.h"
#include "world.h"

#include <fcntl.h>

#include "daemon/config/broker_config.h"
#include "daemon/storage/logdirs.h"
#include "lib/base/fsutil.h"
#include "lib/base/log.h"
#include "lib/store/io.h"

struct fixture {
    char dir[64];
    struct world world;
    struct broker_config config;
    int failed[8]; /* directories, in the order they were told */
    int n_failed;
    bool all;
    char err[512];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    log_set_level(LOG_LEVEL_ERROR + 1);
    f->world = *test_world();
    f->world.io = &store_io_real;
    test_dir_make(f->dir, sizeof f->dir, "klog-logdirs");
    broker_config_init(&f->config);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int rc = fs_remove_tree(AT_FDCWD, f->dir);
    broker_config_done(&f->config);
    free(f);
    return rc;
}

static void note_failed(void *arg, int dir, bool all)
{
    struct fixture *f = arg;
    f->failed[f->n_failed++] = dir;
    f->all = all;
}

/* names: "a,b" below the fixture's directory. */
static int open_dirs(struct fixture *f, const char *names, struct logdirs **ret)
{
    char list[512] = "", copy[64];
    snprintf(copy, sizeof copy, "%s", names);
    for (char *save = NULL, *name = strtok_r(copy, ",", &save); name != NULL; name = strtok_r(NULL, ",", &save))
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s/%s", list[0] == '\0' ? "" : ",", f->dir, name);
    assert_int_equal(broker_config_set(&f->config, "log.dirs", list, f->err, sizeof f->err), 0);
    return logdirs_open(&f->world, &f->config, note_failed, f, ret, f->err, sizeof f->err);
}

static void close_dirs(struct logdirs *ld, bool well)
{
    bool clean[8];
    for (int i = 0; i < 8; i++)
        clean[i] = well;
    assert_int_equal(logdirs_close(ld, clean), well);
}

static void a_new_directory_learns_whose_it_is_from_the_others(void **state)
{
    struct fixture *f = *state;
    struct logdirs *ld;
    char cluster[64];
    assert_int_equal(open_dirs(f, "b", &ld), 0);
    assert_int_equal(logdirs_identity(ld)->broker_id, 1);
    snprintf(cluster, sizeof cluster, "%s", logdirs_identity(ld)->cluster_id);
    assert_int_equal(strlen(cluster), 22);
    close_dirs(ld, true);

    assert_int_equal(open_dirs(f, "a,b", &ld), 0);
    assert_int_equal(logdirs_count(ld), 2);
    assert_int_equal(logdirs_identity(ld)->broker_id, 1);
    assert_string_equal(logdirs_identity(ld)->cluster_id, cluster);
    assert_false(logdirs_were_clean(ld)); /* the new one was never stopped */
    close_dirs(ld, true);

    assert_int_equal(open_dirs(f, "a,b", &ld), 0);
    assert_true(logdirs_were_clean(ld));
    close_dirs(ld, false);
    assert_int_equal(open_dirs(f, "a,b", &ld), 0);
    assert_false(logdirs_were_clean(ld));
    close_dirs(ld, true);
}

static void a_failed_start_leaves_the_clean_markers(void **state)
{
    struct fixture *f = *state;
    struct logdirs *ld;
    assert_int_equal(open_dirs(f, "a", &ld), 0);
    close_dirs(ld, true);
    assert_int_equal(open_dirs(f, "a,a", &ld), -EINVAL);
    assert_non_null(strstr(f->err, "is named twice"));
    assert_int_equal(open_dirs(f, "a", &ld), 0);
    assert_true(logdirs_were_clean(ld));
    close_dirs(ld, true);
}

static void an_error_is_the_directorys_only_when_it_has_failed(void **state)
{
    struct fixture *f = *state;
    struct logdirs *ld;
    assert_int_equal(open_dirs(f, "a,b", &ld), 0);
    assert_false(logdirs_note_error(ld, 0, ENOSPC));
    assert_false(logdirs_note_error(ld, -1, EIO));
    assert_int_equal(f->n_failed, 0);

    datadir_fail(logdirs_at(ld, 1), EIO, "test");
    assert_false(logdirs_note_error(ld, 0, EIO));
    assert_true(logdirs_note_error(ld, 1, EIO));
    assert_true(logdirs_note_error(ld, 1, EIO));
    assert_int_equal(f->n_failed, 1);
    assert_int_equal(f->failed[0], 1);
    assert_false(f->all);

    logdirs_fail(ld, 0, EIO);
    assert_int_equal(f->n_failed, 2);
    assert_int_equal(f->failed[1], 0);
    assert_true(f->all);
    bool clean[2] = { true, true };
    assert_false(logdirs_close(ld, clean)); /* no marker in one that has failed */
}

#define ONE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ONE(a_new_directory_learns_whose_it_is_from_the_others),
        ONE(a_failed_start_leaves_the_clean_markers),
        ONE(an_error_is_the_directorys_only_when_it_has_failed),
    };
    return RUN(tests);
}
