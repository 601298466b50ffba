/* SPDX-License-Identifier: Apache-2.0 */
/* A data directory: lock, identity, clean marker, what is in it. */
#include "storetest.h"

static int try_open(struct fixture *f, const char *cluster, int32_t broker, struct datadir **ret, char *err)
{
    struct datadir_identity id = { .broker_id = broker };
    snprintf(id.cluster_id, sizeof id.cluster_id, "%s", cluster);
    return datadir_open(f->path, world_of(f), &id, ret, err, 256);
}

/* Case C26. */
static void a_second_opening_is_refused_and_names_the_directory(void **state)
{
    struct fixture *f = *state;
    struct datadir *other;
    char err[256];

    must_open_dir(f);
    assert_int_equal(try_open(f, "", 1, &other, err), -EBUSY);
    assert_non_null(strstr(err, f->path));
    datadir_close(f->dd, false);
    assert_int_equal(try_open(f, "", 1, &f->dd, err), 0);
}

static void another_cluster_or_broker_is_refused_and_touches_nothing(void **state)
{
    struct fixture *f = *state;
    struct datadir *other;
    char err[256];

    assert_int_equal(try_open(f, "one", 1, &f->dd, err), 0);
    struct uuid id = *datadir_id(f->dd);
    datadir_close(f->dd, true);
    assert_int_equal(try_open(f, "two", 1, &other, err), -ESTALE);
    assert_non_null(strstr(err, "cluster one"));
    assert_int_equal(try_open(f, "one", 2, &other, err), -ESTALE);
    assert_non_null(strstr(err, "broker 1"));
    assert_int_equal(try_open(f, "", -1, &f->dd, err), 0);
    assert_true(uuid_eq(&id, datadir_id(f->dd)));
    assert_true(datadir_was_clean(f->dd));
}

static void the_identity_is_made_once_and_kept(void **state)
{
    struct fixture *f = *state;
    struct datadir_identity a = { .broker_id = 7 }, b = { .broker_id = -1 };
    char err[256];

    assert_int_equal(datadir_open(f->path, world_of(f), &a, &f->dd, err, sizeof err), 0);
    assert_int_equal(strlen(a.cluster_id), UUID_TEXT_LEN);
    datadir_close(f->dd, false);
    assert_int_equal(datadir_open(f->path, world_of(f), &b, &f->dd, err, sizeof err), 0);
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

static void write_text(const char *dir, const char *name, const char *text)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void assert_refused(struct fixture *f, const char *text, const char *why)
{
    struct bytebuf b = { 0 };
    struct datadir *dd = NULL;
    char err[512] = "", path[PATH_MAX];

    snprintf(path, sizeof path, "%s/meta.properties", f->path);
    struct datadir_identity id = { .broker_id = 1 };
    assert_int_equal(datadir_open(f->path, world_of(f), &id, &dd, err, sizeof err), -EBADMSG);
    assert_non_null(strstr(err, why));
    assert_non_null(strstr(err, path));
    if (text == NULL) {
        assert_int_equal(access(path, F_OK), -1);
    } else {
        assert_int_equal(fs_read_file(AT_FDCWD, path, 65536, &b), 0);
        assert_string_equal(bytebuf_cstr(&b), text);
        bytebuf_done(&b);
    }
}

static void an_identity_that_cannot_be_read_is_refused_untouched(void **state)
{
    struct fixture *f = *state;
    static const char *const bad[][2] = {
        { "", "damaged" },
        { "version=0\ncluster.id=4oaV76yd", "does not say" },
        { "version=0\nclust", "damaged" },
        { "cluster.id=one\nbroker.id=1\ndirectory.id=BwcHBwcHBwcHBwcHBwcHBw\n", "damaged" },
        { "version=1\ncluster.id=one\nnode.id=1\ndirectory.id=BwcHBwcHBwcHBwcHBwcHBw\n", "version 1" },
        { "version=0\ncluster.id=one\nbroker.id=1\ndirectory.id=BwcHBwcHBwcHBwc", "damaged" },
        { "version=0\ncluster.id=one\ndirectory.id=BwcHBwcHBwcHBwcHBwcHBw\n", "broker.id" },
    };
    char path[PATH_MAX];

    must_open_dir(f);
    datadir_close(f->dd, true);
    f->dd = NULL;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        write_text(f->path, "meta.properties", bad[i][0]);
        assert_refused(f, bad[i][0], bad[i][1]);
    }
    snprintf(path, sizeof path, "%s/meta.properties", f->path);
    assert_int_equal(unlink(path), 0);
    assert_refused(f, NULL, "missing");
    assert_int_equal(mkdir(path, 0755), 0); /* it cannot be read */
    struct datadir_identity id = { .broker_id = 1 };
    char err[512];
    assert_int_equal(datadir_open(f->path, world_of(f), &id, &f->dd, err, sizeof err), -EBADMSG);
    f->dd = NULL;
    assert_int_equal(rmdir(path), 0);

    snprintf(path, sizeof path, "%s/clean-shutdown", f->path);
    assert_int_equal(access(path, F_OK), 0); /* nothing of it was used */
    assert_int_equal(unlink(path), 0);
    must_open_dir(f); /* now it is empty, but for the lock */
}

/* Guests do not make a directory one with data. */
static void an_empty_directory_with_guests_gets_an_identity(void **state)
{
    struct fixture *f = *state;
    char path[PATH_MAX];
    const char *guests[] = { "lost+found", "backup-2024", ".Trash-0", "old-delete" };

    assert_true(mkdir(f->path, 0755) == 0 || errno == EEXIST);
    for (size_t i = 0; i < ARRAY_LEN(guests); i++) {
        snprintf(path, sizeof path, "%s/%s", f->path, guests[i]);
        assert_int_equal(mkdir(path, 0755), 0);
        write_text(path, "notes.txt", "mine");
    }
    must_open_dir(f);
    assert_int_equal(datadir_clear_leftovers(f->dd), 0);
    datadir_close(f->dd, true);
    for (size_t i = 0; i < ARRAY_LEN(guests); i++) {
        snprintf(path, sizeof path, "%s/%s/notes.txt", f->path, guests[i]);
        assert_int_equal(access(path, F_OK), 0);
    }
    f->dd = NULL;
    must_open_dir(f);
}

static void the_marker_carries_a_note(void **state)
{
    struct fixture *f = *state;

    must_open_dir(f);
    assert_int_equal(datadir_clean_note(f->dd), -1);
    datadir_set_clean_note(f->dd, 77);
    datadir_close(f->dd, true);
    must_open_dir(f);
    assert_int_equal(datadir_clean_note(f->dd), 77);
    datadir_close(f->dd, false);
    must_open_dir(f);
    assert_int_equal(datadir_clean_note(f->dd), -1);
}

struct seen {
    int n;
    char names[8][300];
    struct partition_dir dirs[8];
};

static void see(void *arg, const char *topic, int32_t partition, const struct partition_dir *p)
{
    struct seen *s = arg;
    s->dirs[s->n] = *p;
    snprintf(s->names[s->n++], sizeof s->names[0], "%s/%d", topic, partition);
}

static void partitions_are_listed_and_found(void **state)
{
    struct fixture *f = *state;
    struct seen s = { 0 };
    struct partition_dir p;
    char path[PATH_MAX];
    const char *others[] = { "meta", "x-01", "-3", "a-b-c" };

    must_open(f);
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        snprintf(path, sizeof path, "%s/%s", f->path, others[i]);
        assert_int_equal(mkdir(path, 0755), 0);
    }
    assert_int_equal(datadir_list(f->dd, see, &s), 0);
    assert_int_equal(s.n, 1);
    assert_string_equal(s.names[0], "orders/0");
    assert_true(s.dirs[0].is_ours);
    assert_int_equal(s.dirs[0].id_rc, 0);
    assert_true(uuid_eq(&s.dirs[0].topic_id, &f->topic_id));

    assert_int_equal(datadir_find(f->dd, "orders", 0, &p), 0);
    assert_true(p.is_there && p.is_ours && uuid_eq(&p.topic_id, &f->topic_id));
    assert_int_equal(datadir_find(f->dd, "orders", 1, &p), 0);
    assert_false(p.is_there);
    write_text(f->path, "orders-0/partition.metadata", "version: 0\ntopic_id: x\n");
    assert_int_equal(datadir_find(f->dd, "orders", 0, &p), 0);
    assert_true(p.is_ours);
    assert_int_equal(p.id_rc, -EBADMSG);
    snprintf(path, sizeof path, "%s/backup-7", f->path);
    assert_int_equal(mkdir(path, 0755), 0);
    write_text(path, "notes", "");
    assert_int_equal(datadir_find(f->dd, "backup", 7, &p), 0);
    assert_true(p.is_there && !p.is_ours);
}

static void a_log_without_a_record_is_known(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *file, *text;
        bool unwritten;
    } cases[] = {
        { "orders-0/00000000000000000000.log", "x", false },
        { "orders-0/00000000000000000000.log", "", true },
        { "orders-0/00000000000000000007.log", "", false }, /* its records have been deleted, or its first segment is lost */
        { "orders-0/00000000000000000000.start", "", false },
        { "orders-0/notes", "", false },
    };

    must_open(f);
    assert_true(datadir_is_unwritten(f->dd, "orders", 0));
    assert_false(datadir_is_unwritten(f->dd, "orders", 1)); /* not there */
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char path[PATH_MAX];
        write_text(f->path, cases[i].file, cases[i].text);
        assert_int_equal(datadir_is_unwritten(f->dd, "orders", 0), cases[i].unwritten);
        snprintf(path, sizeof path, "%s/%s", f->path, cases[i].file);
        if (i > 1)
            assert_int_equal(unlink(path), 0);
    }
    assert_true(datadir_is_unwritten(f->dd, "orders", 0));
}

/* Only names as a deletion makes them, with nothing but a log's files in them. */
static void only_own_leftovers_are_removed(void **state)
{
    struct fixture *f = *state;
    char path[PATH_MAX], name[300];
    struct {
        const char *name, *file;
        bool stays;
    } dirs[] = {
        { "orders-0.0123456789abcdef-delete", "00000000000000000000.log", false },
        { "orders-1.0123456789abcdef-delete", NULL, false },
        { "orders-2.0123456789abcdef-delete", "notes.txt", true },
        { "orders-3.0123456789ABCDEF-delete", "00000000000000000000.log", true },
        { "old-delete", "00000000000000000000.log", true },
        { "orders.0123456789abcdef-delete", "00000000000000000000.log", true },
        { "orders-4.0123456789abcdef-delete", "partition.flushed", false },
        { name, "partition.metadata", false },
    };

    snprintf(name, sizeof name, "%0200d.0123456789abcdef-delete", 7);
    must_open_dir(f);
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        snprintf(path, sizeof path, "%s/%s", f->path, dirs[i].name);
        assert_int_equal(mkdir(path, 0755), 0);
        if (dirs[i].file != NULL)
            write_text(path, dirs[i].file, "x");
    }
    write_text(f->path, "cleaner-horizon-checkpoint.tmp", "0\n");
    write_text(f->path, "mine.tmp", "x");
    assert_int_equal(datadir_clear_leftovers(f->dd), 0);
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        snprintf(path, sizeof path, "%s/%s", f->path, dirs[i].name);
        assert_int_equal(access(path, F_OK), dirs[i].stays ? 0 : -1);
    }
    assert_false(datadir_has_file(f->dd, "cleaner-horizon-checkpoint.tmp"));
    assert_true(datadir_has_file(f->dd, "mine.tmp"));
}

static void a_directory_can_be_set_aside_again_and_again(void **state)
{
    struct fixture *f = *state;
    char path[PATH_MAX], to[256], topic[250];

    memset(topic, 'n', 249);
    topic[249] = '\0';
    must_open_dir(f);
    for (int i = 1; i <= 3; i++) {
        snprintf(path, sizeof path, "%s/%s-2024", f->path, topic);
        assert_int_equal(mkdir(path, 0755), 0);
        write_text(path, "00000000000000000000.log", "x");
        assert_int_equal(datadir_set_aside(f->dd, topic, 2024, &f->topic_id, to), 0);
        assert_int_equal(access(path, F_OK), -1);
        assert_true(datadir_has_file(f->dd, to));
        assert_non_null(strstr(to, i == 1 ? "-stray" : i == 2 ? ".2-stray" : ".3-stray"));
    }
}

/* Case C17: 300 segments through a handful of descriptors. */
static void many_segments_need_few_descriptors(void **state)
{
    struct fixture *f = *state;

    f->cfg.segment_bytes = 1024;
    must_open(f);
    datadir_set_file_limit(f->dd, 8, INT_MAX);
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
    datadir_set_file_limit(f->dd, 8, INT_MAX);
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

/* S8: closed before its sync, a file would not tell of a write-back that failed. */
static void what_waits_for_a_flush_stays_open(void **state)
{
    struct fixture *f = *state;

    f->cfg.segment_bytes = 1024;
    must_open(f);
    datadir_set_file_limit(f->dd, 2, INT_MAX);
    for (int i = 0; i < 20; i++) {
        append_n(f, 1, 900);
        assert_true(filecache_open_files(datadir_files(f->dd)) > i);
    }
    assert_int_equal(flush(f), 0);
    assert_true(filecache_open_files(datadir_files(f->dd)) <= 2);
}

/* A flush needs descriptors itself: those that wait for one do not take all. */
static void no_segment_is_begun_while_too_many_wait_for_a_flush(void **state)
{
    struct fixture *f = *state;
    int n = 0;

    f->cfg.segment_bytes = 1024;
    must_open(f);
    datadir_set_file_limit(f->dd, 4, 10);
    while (append_n(f, 1, 900).err == KERR_NONE)
        assert_true(++n < 20);
    assert_true(n >= 7);
    assert_true(filecache_open_files(datadir_files(f->dd)) <= 10);
    assert_int_equal(append_n(f, 1, 900).err, KERR_KAFKA_STORAGE_ERROR);
    assert_int_equal(append_n(f, 1, 10).base_offset, -1);
    assert_false(datadir_failed(f->dd));
    assert_int_equal(flush(f), 0);
    assert_int_equal(append_n(f, 1, 900).base_offset, n);
    assert_int_equal(check_log(f), n + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_second_opening_is_refused_and_names_the_directory),
        T(another_cluster_or_broker_is_refused_and_touches_nothing),
        T(the_identity_is_made_once_and_kept),
        T(the_clean_marker_counts_once),
        T(a_failed_directory_leaves_no_clean_marker),
        T(an_identity_that_cannot_be_read_is_refused_untouched),
        T(an_empty_directory_with_guests_gets_an_identity),
        T(the_marker_carries_a_note),
        T(partitions_are_listed_and_found),
        T(a_log_without_a_record_is_known),
        T(only_own_leftovers_are_removed),
        T(a_directory_can_be_set_aside_again_and_again),
        T(many_segments_need_few_descriptors),
        T(what_waits_for_a_flush_stays_open),
        T(no_segment_is_begun_while_too_many_wait_for_a_flush),
    };
    return RUN(tests);
}
