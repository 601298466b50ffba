/* SPDX-License-Identifier: Apache-2.0 */
/* A data directory: lock, identity, clean marker, what is in it. */
#include "storetest.h"

static int try_open(const char *path, const char *cluster, int32_t broker, struct datadir **ret, char *err)
{
    struct datadir_identity id = { .broker_id = broker };
    snprintf(id.cluster_id, sizeof id.cluster_id, "%s", cluster);
    return datadir_open(path, NULL, &id, ret, err, 256);
}

/* Case C26. */
static void a_second_opening_is_refused_and_names_the_directory(void **state)
{
    struct fixture *f = *state;
    struct datadir *other;
    char err[256];

    must_open_dir(f);
    assert_int_equal(try_open(f->path, "", 1, &other, err), -EBUSY);
    assert_non_null(strstr(err, f->path));
    datadir_close(f->dd, false);
    assert_int_equal(try_open(f->path, "", 1, &f->dd, err), 0);
}

static void another_cluster_or_broker_is_refused_and_touches_nothing(void **state)
{
    struct fixture *f = *state;
    struct datadir *other;
    char err[256];

    assert_int_equal(try_open(f->path, "one", 1, &f->dd, err), 0);
    struct uuid id = *datadir_id(f->dd);
    datadir_close(f->dd, true);
    assert_int_equal(try_open(f->path, "two", 1, &other, err), -ESTALE);
    assert_non_null(strstr(err, "cluster one"));
    assert_int_equal(try_open(f->path, "one", 2, &other, err), -ESTALE);
    assert_non_null(strstr(err, "broker 1"));
    assert_int_equal(try_open(f->path, "", -1, &f->dd, err), 0);
    assert_true(uuid_eq(&id, datadir_id(f->dd)));
    assert_true(datadir_was_clean(f->dd));
}

static void the_identity_is_made_once_and_kept(void **state)
{
    struct fixture *f = *state;
    struct datadir_identity a = { .broker_id = 7 }, b = { .broker_id = -1 };
    char err[256];

    assert_int_equal(datadir_open(f->path, NULL, &a, &f->dd, err, sizeof err), 0);
    assert_int_equal(strlen(a.cluster_id), UUID_TEXT_LEN);
    datadir_close(f->dd, false);
    assert_int_equal(datadir_open(f->path, NULL, &b, &f->dd, err, sizeof err), 0);
    assert_string_equal(a.cluster_id, b.cluster_id);
    assert_int_equal(b.broker_id, 7);
}

static void the_clean_marker_counts_once(void **state)
{
    struct fixture *f = *state;

    must_open_dir(f);
    assert_false(datadir_was_clean(f->dd));
    datadir_close(f->dd, true);
    must_open_dir(f);
    assert_true(datadir_was_clean(f->dd));
    datadir_close(f->dd, false);
    must_open_dir(f);
    assert_false(datadir_was_clean(f->dd));
}

static void a_failed_directory_leaves_no_clean_marker(void **state)
{
    struct fixture *f = *state;

    must_open_dir(f);
    datadir_fail(f->dd, EIO, "a test");
    datadir_close(f->dd, true);
    must_open_dir(f);
    assert_false(datadir_was_clean(f->dd));
    assert_false(datadir_failed(f->dd));
}

static void an_unreadable_identity_is_made_anew_and_is_not_clean(void **state)
{
    struct fixture *f = *state;
    char path[PATH_MAX];

    must_open_dir(f);
    datadir_close(f->dd, true);
    snprintf(path, sizeof path, "%s/meta.properties", f->path);
    assert_int_equal(truncate(path, 0), 0);
    must_open_dir(f);
    assert_false(datadir_was_clean(f->dd));
}

struct seen {
    int n;
    char names[8][300];
    struct uuid id;
};

static void see(void *arg, const char *topic, int32_t partition, const struct uuid *id)
{
    struct seen *s = arg;
    snprintf(s->names[s->n++], sizeof s->names[0], "%s/%d", topic, partition);
    s->id = *id;
}

static void partitions_are_listed_and_leftovers_removed(void **state)
{
    struct fixture *f = *state;
    struct seen s = { 0 };
    char path[PATH_MAX];
    const char *others[] = { "orders-0.0123456789abcdef-delete", "meta", "x-01", "-3", "a-b-c" };

    must_open(f);
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        snprintf(path, sizeof path, "%s/%s", f->path, others[i]);
        assert_int_equal(mkdir(path, 0755), 0);
    }
    assert_int_equal(datadir_list(f->dd, see, &s), 0);
    assert_int_equal(s.n, 1);
    assert_string_equal(s.names[0], "orders/0");
    assert_true(uuid_eq(&s.id, &f->topic_id));
    snprintf(path, sizeof path, "%s/%s", f->path, others[0]);
    assert_int_equal(access(path, F_OK), -1);
}

/* Case C17: 300 segments through a handful of descriptors. */
static void many_segments_need_few_descriptors(void **state)
{
    struct fixture *f = *state;

    f->cfg.segment_bytes = 1024;
    must_open(f);
    datadir_set_file_limit(f->dd, 8);
    int64_t bytes = 0;
    for (int i = 0; i < 300; i++) {
        append_n(f, 1, 900);
        if (i % 4 == 3)
            assert_int_equal(flush(f), 0);
        assert_true(filecache_open_files(datadir_files(f->dd)) <= 12);
    }
    assert_int_equal(count_files(f, ".log"), 300);
    assert_int_equal(check_log(f), 300);
    assert_true(filecache_open_files(datadir_files(f->dd)) <= 8);
    reopen(f, true);
    datadir_set_file_limit(f->dd, 8);
    assert_int_equal(check_log(f), 300);
    int64_t o, ts;
    assert_int_equal(plog_find_time(f->l, T0 + 1, 300, &o, &ts), 0);
    assert_int_equal(o, -1);
    assert_true(filecache_open_files(datadir_files(f->dd)) <= 8);
    DIR *d;
    const struct dirent *de;
    char path[PATH_MAX];
    file_path(f, ".", path);
    d = opendir(path);
    while ((de = readdir(d)) != NULL)
        bytes += de->d_name[0] == '.' ? 0 : file_size(f, de->d_name);
    closedir(d);
    assert_true(bytes < 3 * ends_of(f).size_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_second_opening_is_refused_and_names_the_directory),
        T(another_cluster_or_broker_is_refused_and_touches_nothing),
        T(the_identity_is_made_once_and_kept),
        T(the_clean_marker_counts_once),
        T(a_failed_directory_leaves_no_clean_marker),
        T(an_unreadable_identity_is_made_anew_and_is_not_clean),
        T(partitions_are_listed_and_leftovers_removed),
        T(many_segments_need_few_descriptors),
    };
    return RUN(tests);
}
