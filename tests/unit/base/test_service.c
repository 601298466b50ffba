/* SPDX-License-Identifier: Apache-2.0 */
/* Log file, journal and pid file of a program in the background. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/service.h"

static char dir[] = "/tmp/klog-service-XXXXXX";
static char path[64], moved[64];
static int real_stderr;

static int begin(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/log", dir);
    snprintf(moved, sizeof moved, "%s/log.1", dir);
    real_stderr = dup(STDERR_FILENO);
    return real_stderr < 0;
}

static int end(void **state)
{
    (void)state;
    dup2(real_stderr, STDERR_FILENO);
    close(real_stderr);
    unlink(path);
    unlink(moved);
    return rmdir(dir);
}

static const char *content(const char *of)
{
    static char text[1024];
    FILE *f = fopen(of, "re");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

/* One line is said after each step; it must be in one file only, whole, and the last. */
static void a_renamed_log_file_is_opened_anew(void **state)
{
    (void)state;
    assert_int_equal(service_log_reopen(), 0); /* there is none yet */
    assert_int_equal(service_log_to("/no/such/directory/log"), -ENOENT);
    assert_int_equal(service_log_to(path), 0);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07137, 0);
    log_set_style(LOG_STYLE_JOURNAL, NULL);
    log_error("one");
    assert_int_equal(rename(path, moved), 0);
    log_warn("two");
    assert_int_equal(service_log_reopen(), 0);
    log_info("three");
    assert_string_equal(content(moved), "<3>one\n<4>two\n");
    assert_string_equal(content(path), "<6>three\n");

    /* what cannot be opened anew: lines go on where they went */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(service_log_reopen(), -EISDIR);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(service_log_reopen(), 0);
    log_set_style(LOG_STYLE_SYSLOG, "klogfs");
    log_error("four\n");
    char wanted[64];
    snprintf(wanted, sizeof wanted, "<27>klogfs[%ld]: four?\n", (long)getpid());
    assert_string_equal(content(path), wanted);
    log_set_style(LOG_STYLE_PEOPLE, NULL);
    dup2(real_stderr, STDERR_FILENO);
}

static void complaints_are_told_where_the_program_was_started(void **state)
{
    (void)state;
    int fds[2];
    char said[64];
    assert_int_equal(pipe(fds), 0);
    assert_true(dup2(fds[1], STDERR_FILENO) >= 0);
    close(fds[1]);
    unlink(path);
    service_settled();
    assert_int_equal(service_log_to(path), 0);
    service_complain("klogd", "no");
    service_settled();
    service_complain("klogd", "late");
    assert_int_equal(read(fds[0], said, sizeof said), strlen("klogd: no\n"));
    assert_memory_equal(said, "klogd: no\n", strlen("klogd: no\n"));
    assert_int_equal(read(fds[0], said, sizeof said), 0); /* nobody holds it any more */
    close(fds[0]);
    assert_string_equal(content(path), "klogd: no\nklogd: late\n");
    dup2(real_stderr, STDERR_FILENO);
}

static void the_journal_is_known_by_its_number(void **state)
{
    (void)state;
    struct stat st;
    char here[64];
    assert_int_equal(fstat(STDERR_FILENO, &st), 0);
    unsetenv("JOURNAL_STREAM");
    assert_false(service_log_to_journal());
    setenv("JOURNAL_STREAM", "1:1", 1); /* of whoever started a shell under systemd */
    assert_false(service_log_to_journal());
    snprintf(here, sizeof here, "%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
    setenv("JOURNAL_STREAM", here, 1);
    assert_true(service_log_to_journal());
    log_set_style(LOG_STYLE_PEOPLE, NULL);
    unsetenv("JOURNAL_STREAM");
}

static void the_pid_file_is_removed_by_its_own_process_alone(void **state)
{
    (void)state;
    char wanted[32];
    unlink(path);
    snprintf(wanted, sizeof wanted, "%ld\n", (long)getpid());
    assert_int_equal(service_pid_write(path), 0);
    assert_string_equal(content(path), wanted);
    service_pid_remove(path);
    assert_int_equal(access(path, F_OK), -1);
    service_pid_remove(path); /* gone already: nothing */

    FILE *f = fopen(path, "we");
    fputs("1 and what a killed process had left of it\n", f);
    fclose(f);
    service_pid_remove(path);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(service_pid_write(path), 0);
    assert_string_equal(content(path), wanted);
    service_pid_remove(path);

    assert_int_equal(symlink(moved, path), 0); /* a trap in a directory that others write */
    assert_int_equal(service_pid_write(path), -ELOOP);
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_renamed_log_file_is_opened_anew),
        cmocka_unit_test(complaints_are_told_where_the_program_was_started),
        cmocka_unit_test(the_journal_is_known_by_its_number),
        cmocka_unit_test(the_pid_file_is_removed_by_its_own_process_alone),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
