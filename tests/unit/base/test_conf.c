/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of settings: defaults, ranges, and files of key=value lines with what properties(5) allows in them. A bad value
 * changes nothing, and says in one line what, where and what was meant.
 */
#include "unit.h"

#include <fcntl.h>
#include <unistd.h>

#include "lib/base/conf.h"

struct sample {
    bool on;
    int32_t count;
    int64_t big;
    double ratio;
    char *path;
    char *policy;
    int level;
};

static const char *const levels[] = { "low", "high", NULL };
static const char *const policies[] = { "delete", "compact", NULL };
static const struct conf_key keys[] = {
    { "auto.create", CONF_BOOL, "true", 0, 0, NULL, offsetof(struct sample, on), "", false },
    { "num.things", CONF_INT, "3", 1, 100, NULL, offsetof(struct sample, count), "", false },
    { "retention.ms", CONF_LONG, "604800000", -1, 9e18, NULL, offsetof(struct sample, big), "", false },
    { "dirty.ratio", CONF_DOUBLE, "0.5", 0, 1, NULL, offsetof(struct sample, ratio), "", false },
    { "log.dir", CONF_STRING, "", 0, 0, NULL, offsetof(struct sample, path), "", false },
    { "cleanup.policy", CONF_LIST, "delete", 0, 0, policies, offsetof(struct sample, policy), "", false },
    { "level", CONF_ENUM, "low", 0, 0, levels, offsetof(struct sample, level), "", false },
};
static const struct conf_table table = { keys, sizeof keys / sizeof keys[0], "sample" };

static int setup(void **state)
{
    struct sample *s = calloc(1, sizeof *s);

    conf_defaults(&table, s);
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    conf_done(&table, *state);
    free(*state);
    return 0;
}

static void defaults_are_what_the_table_says(void **state)
{
    struct sample *s = *state;

    assert_true(s->on);
    assert_int_equal(s->count, 3);
    assert_int_equal(s->big, 604800000);
    assert_true(s->ratio == 0.5);
    assert_string_equal(s->path, "");
    assert_string_equal(s->policy, "delete");
    assert_int_equal(s->level, 0);
}

static void an_unknown_key_names_the_nearest_one(void **state)
{
    char err[256];

    assert_int_equal(conf_set(&table, *state, "num.thing", "4", err, sizeof err), -EINVAL);
    assert_string_equal(err, "unknown sample key \"num.thing\"; the nearest known one is num.things");
}

static void a_bad_value_is_refused_and_the_old_one_kept(void **state)
{
    static const char *const bad[][2] = {
        { "num.things", "0" }, { "num.things", "101" }, { "num.things", "4x" }, { "num.things", "" },
        { "retention.ms", "99999999999999999999" }, { "dirty.ratio", "nan" }, { "dirty.ratio", "1.5" },
        { "auto.create", "yes" }, { "level", "middle" }, { "cleanup.policy", "delete,shred" },
    };
    struct sample *s = *state;
    char err[256];

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(conf_set(&table, s, bad[i][0], bad[i][1], err, sizeof err), -EINVAL);
        assert_non_null(strstr(err, bad[i][0]));
    }
    defaults_are_what_the_table_says(state);
    assert_int_equal(conf_set(&table, s, "level", "middle", err, sizeof err), -EINVAL);
    assert_string_equal(err, "bad value \"middle\" for the sample key level: use one of low, high");
}

static void values_come_back_as_text(void **state)
{
    static const char *const set[][2] = {
        { "num.things", "7" }, { "retention.ms", "-1" }, { "auto.create", "false" },
        { "level", "high" }, { "cleanup.policy", "compact,delete" }, { "log.dir", "/a b" },
    };
    char err[256], text[64];

    for (size_t i = 0; i < sizeof set / sizeof set[0]; i++) {
        assert_int_equal(conf_set(&table, *state, set[i][0], set[i][1], err, sizeof err), 0);
        conf_get(conf_find(&table, set[i][0]), *state, text, sizeof text);
        assert_string_equal(text, set[i][1]);
    }
}

static void a_copy_owns_its_strings(void **state)
{
    struct sample copy;
    char err[64];

    conf_copy(&table, &copy, *state, sizeof copy);
    assert_int_equal(conf_set(&table, *state, "log.dir", "/new", err, sizeof err), 0);
    assert_string_equal(copy.path, "");
    conf_done(&table, &copy);
}

static int read_text(void *obj, const char *text, char *err, size_t size)
{
    FILE *f = fopen("test_conf.properties", "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    int rc = conf_read_file(&table, obj, "test_conf.properties", err, size);
    unlink("test_conf.properties");
    return rc;
}

static void a_file_is_read_with_comments_and_continued_lines(void **state)
{
    struct sample *s = *state;
    char err[256];

    assert_int_equal(read_text(s, "# first\n\n num.things = 9 \nlog.dir=/data/\\\n   more\n! c\nlevel: high", err, sizeof err), 0);
    assert_int_equal(s->count, 9);
    assert_string_equal(s->path, "/data/more");
    assert_int_equal(s->level, 1);
}

static void an_error_in_a_file_names_its_line(void **state)
{
    char err[256];

    assert_int_equal(read_text(*state, "num.things=1\nnum.thingz=2\n", err, sizeof err), -EINVAL);
    assert_string_equal(err, "test_conf.properties line 2: unknown sample key \"num.thingz\"; the nearest known one is num.things");
    assert_int_equal(read_text(*state, "nonsense\n", err, sizeof err), -EINVAL);
    assert_string_equal(err, "test_conf.properties line 1: \"nonsense\" is not of the form key=value");
    assert_int_equal(conf_read_file(&table, *state, "no-such-file", err, sizeof err), -ENOENT);
}

/* What was read before a file breaks off is not the configuration. */
static void a_file_that_cannot_be_read_to_its_end_is_an_error(void **state)
{
    char err[256] = "";

    assert_int_equal(conf_read_file(&table, *state, "/", err, sizeof err), -EISDIR);
    assert_string_equal(err, "cannot read the configuration file /: Is a directory");
    assert_int_equal(conf_read_file(&table, *state, "/proc/self/mem", err, sizeof err), -EIO);
    assert_string_equal(err, "cannot read the configuration file /proc/self/mem: Input/output error");
}

static void a_file_that_is_not_text_is_refused(void **state)
{
    char err[256] = "";
    int fd = open("test_conf.properties", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_int_equal(write(fd, "num.things=4\nlog.dir=/a\0b\n", 27), 27);
    close(fd);
    assert_int_equal(conf_read_file(&table, *state, "test_conf.properties", err, sizeof err), -EINVAL);
    assert_string_equal(err, "test_conf.properties line 2: it has a NUL byte: is this a configuration file?");
    unlink("test_conf.properties");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(defaults_are_what_the_table_says),
        T(an_unknown_key_names_the_nearest_one),
        T(a_bad_value_is_refused_and_the_old_one_kept),
        T(values_come_back_as_text),
        T(a_copy_owns_its_strings),
        T(a_file_is_read_with_comments_and_continued_lines),
        T(an_error_in_a_file_names_its_line),
        T(a_file_that_cannot_be_read_to_its_end_is_an_error),
        T(a_file_that_is_not_text_is_refused),
    };
    return RUN(tests);
}
