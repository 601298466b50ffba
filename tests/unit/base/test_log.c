/* SPDX-License-Identifier: Apache-2.0 */
/* What a log line is: one line, whatever a client put into a name. */
#include "unit.h"

#include <unistd.h>

#include "lib/base/log.h"

/* The line that f writes to standard error, without its time. */
static void logged(const char *text, char *ret, size_t size)
{
    int pipe_fds[2], saved = dup(STDERR_FILENO);

    assert_int_equal(pipe(pipe_fds), 0);
    dup2(pipe_fds[1], STDERR_FILENO);
    log_error("group %s: lost", text);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(pipe_fds[1]);
    ssize_t n = read(pipe_fds[0], ret, size - 1);
    close(pipe_fds[0]);
    assert_true(n > 25);
    ret[n] = '\0';
    memmove(ret, ret + 25, (size_t)n - 24);
}

static void a_line_stays_one_line(void **state)
{
    (void)state;
    char line[4096];

    logged("g", line, sizeof line);
    assert_string_equal(line, "ERROR group g: lost\n");
    logged("\xc3\xbc", line, sizeof line);
    assert_string_equal(line, "ERROR group \xc3\xbc: lost\n");
    logged("x\n2026-01-02T03:04:05.678Z ERROR all is lost\r\x1b[2J\x7f", line, sizeof line);
    assert_string_equal(line, "ERROR group x?2026-01-02T03:04:05.678Z ERROR all is lost??[2J?: lost\n");
}

static void a_long_one_is_cut(void **state)
{
    (void)state;
    char line[4096], name[3000];

    memset(name, '\n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    logged(name, line, sizeof line);
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
    assert_in_range(strlen(line), 1000, 2048);
}

struct kept {
    int n;
    enum log_level level;
    char line[2048];
};

static void keep(void *arg, enum log_level level, const char *line)
{
    struct kept *k = arg;

    k->n++;
    k->level = level;
    snprintf(k->line, sizeof k->line, "%s", line);
}

static void a_sink_gets_the_text_of_lines_that_the_level_lets_through(void **state)
{
    (void)state;
    struct kept k = { 0 };

    log_set_sink(keep, &k);
    log_debug("not this");
    log_warn("group %s: lost\n", "g");
    log_set_sink(NULL, NULL);
    assert_int_equal(k.n, 1);
    assert_int_equal(k.level, LOG_LEVEL_WARN);
    assert_string_equal(k.line, "group g: lost?");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_stays_one_line),
        cmocka_unit_test(a_long_one_is_cut),
        cmocka_unit_test(a_sink_gets_the_text_of_lines_that_the_level_lets_through),
    };
    return RUN(tests);
}
