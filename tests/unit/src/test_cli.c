/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: what is parsed, what is refused and with which words, and that help, completion and man
 * page are whole. */
#include "unit.h"

#include <unistd.h>

#include "lib/base/mem.h"
#include "src/session.h"

/* What was printed on standard error during f. */
static char *errors_of(int (*f)(void *arg), void *arg, int *ret_rc)
{
    FILE *tmp = tmpfile();
    int saved = dup(STDERR_FILENO);

    assert_non_null(tmp);
    fflush(stderr);
    dup2(fileno(tmp), STDERR_FILENO);
    *ret_rc = f(arg);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    char *text = xcalloc(1, 4096);
    rewind(tmp);
    assert_true(fread(text, 1, 4095, tmp) < 4095);
    fclose(tmp);
    return text;
}

struct line {
    const char *words[16]; /* NULL-terminated */
    struct args args;
};

static int parse(void *arg)
{
    struct line *l = arg;
    int n = 0;

    while (l->words[n] != NULL)
        n++;
    return args_parse(&klog_root, n, (char *const *)(uintptr_t)l->words, &l->args);
}

static int run(void *arg)
{
    struct line *l = arg;
    int n = 0;

    while (l->words[n] != NULL)
        n++;
    return cli_main(&klog_root, n, (char *const *)(uintptr_t)l->words);
}

#define LINE(...) (&(struct line){ .words = { "klog", __VA_ARGS__ } })

static void refused(struct line *l, const char *first_line)
{
    int rc;
    char *said = errors_of(run, l, &rc);

    said[strcspn(said, "\n")] = '\0';
    assert_string_equal(said, first_line);
    assert_int_equal(rc, CLI_USAGE);
    free(said);
}

static void options_may_stand_anywhere(void **state)
{
    struct line *l =
        LINE("-b", "h:1", "topic", "create", "a", "-p3", "--config", "x=y", "--config=z=1", "--", "-b");
    int64_t n;

    (void)state;
    assert_int_equal(parse(l), CLI_OK);
    assert_string_equal(l->args.path, "klog topic create");
    assert_string_equal(args_get(&l->args, "brokers", NULL), "h:1");
    assert_int_equal(args_get_int(&l->args, "partitions", 1, 10, 0, &n), CLI_OK);
    assert_int_equal(n, 3);
    assert_string_equal(args_nth(&l->args, "config", 0), "x=y");
    assert_string_equal(args_nth(&l->args, "config", 1), "z=1");
    assert_null(args_nth(&l->args, "config", 2));
    assert_int_equal(l->args.n_operands, 2);
    assert_string_equal(l->args.operands[0], "a");
    assert_string_equal(l->args.operands[1], "-b");
    assert_false(args_has(&l->args, "json"));
    args_done(&l->args);
}

static void words_after_dashes_are_told_apart(void **state)
{
    struct line *l = LINE("run", "a", "-g", "g", "b", "--", "cat", "-n", "--", "x"),
                *without = LINE("ping", "a");

    (void)state;
    assert_int_equal(parse(l), CLI_OK);
    assert_true(l->args.dashes);
    assert_int_equal(l->args.n_before_dashes, 2);
    assert_int_equal(l->args.n_operands, 6);
    assert_string_equal(l->args.operands[3], "-n");
    assert_string_equal(l->args.operands[4], "--");
    args_done(&l->args);
    assert_int_equal(parse(without), CLI_OK);
    assert_false(without->args.dashes);
    assert_int_equal(without->args.n_before_dashes, 1);
    args_done(&without->args);
}

static void the_last_of_an_option_counts(void **state)
{
    struct line *l = LINE("topic", "list", "--timeout", "3", "--timeout=4");

    (void)state;
    assert_int_equal(parse(l), CLI_OK);
    assert_string_equal(args_get(&l->args, "timeout", "5"), "4");
    args_done(&l->args);
}

static void wrong_words_name_the_nearest_right_one(void **state)
{
    (void)state;
    refused(LINE("topc"), "klog: there is no command 'topc'; did you mean 'topic'?");
    refused(LINE("topic", "lst"), "klog topic: there is no command 'lst'; did you mean 'list'?");
    refused(LINE("zzzzzzzz"), "klog: there is no command 'zzzzzzzz'");
    refused(LINE("topic", "list", "--jsn"),
            "klog topic list: there is no option '--jsn'; did you mean --json?");
    refused(LINE("topic", "create", "t", "--part", "3"),
            "klog topic create: there is no option '--part'; did you mean --partitions?");
    refused(LINE("ping", "-x"), "klog ping: there is no option '-x'");
}

static void missing_and_superfluous_things_are_named(void **state)
{
    (void)state;
    refused(LINE(NULL), "klog: a command is missing");
    refused(LINE("topic"), "klog topic: a command is missing");
    refused(LINE("topic", "create"), "klog topic create: it needs TOPIC...");
    refused(LINE("topic", "list", "x"), "klog topic list: it takes no operand, but got 'x'");
    refused(LINE("topic", "alter", "a", "b"), "klog topic alter: 'b' is one operand too many");
    refused(LINE("topic", "create", "a", "-p"), "klog topic create: -p needs a value: -p N");
    refused(LINE("topic", "list", "--timeout"),
            "klog topic list: --timeout needs a value: --timeout SECONDS");
    refused(LINE("topic", "list", "--json=yes"), "klog topic list: --json takes no value");
}

static void bad_values_are_refused_before_anything_is_connected(void **state)
{
    (void)state;
    refused(LINE("topic", "create", "a", "-p", "0"),
            "klog topic create: --partitions must be a whole number from 1 to 2147483647, not '0'");
    refused(LINE("topic", "create", "a", "-c", "x"), "klog topic create: 'x' is not of the form KEY=VALUE");
    refused(LINE("topic", "alter", "a"),
            "klog topic alter: nothing to change: give --partitions, --config or --delete-config");
    refused(LINE("config", "get", "group", "g"),
            "klog config get: 'group' has no settings; say 'topic' or 'broker'");
    refused(LINE("config", "get", "broker", "x"), "klog config get: 'x' is no broker id");
    refused(LINE("config", "set", "topic", "t"),
            "klog config set: nothing to change: give KEY=VALUE or --delete KEY");
    refused(LINE("offsets", "t", "--at", "soon"),
            "klog offsets: 'soon' is no time; write it like 1700000000000, 2026-01-02T03:04:05Z, 2026-01-02, 10:00 or -2h");
    refused(LINE("group", "reset", "g", "--all-topics"),
            "klog group reset: it needs to know where to: --to-earliest, --to-latest, --to-offset N, ...");
    refused(LINE("group", "reset", "g", "--all-topics", "--to-latest", "--shift-by", "1"),
            "klog group reset: it takes one goal, not several");
    refused(LINE("group", "reset", "g", "--to-latest"),
            "klog group reset: say which positions: --topic TOPIC, or --all-topics");
    refused(LINE("group", "reset", "g", "-t", "t:1,,2", "--to-latest"),
            "klog group reset: 't:1,,2' is not of the form TOPIC:N,N...");
    refused(LINE("group", "reset", "g", "-t", "t", "--to-offset", "-1"),
            "klog group reset: --to-offset must be a whole number from 0 to 9223372036854775807, not '-1'");
    refused(LINE("group", "reset", "g", "-t", "t", "--by-duration", "1 hour"),
            "klog group reset: '1 hour' is no duration; write it like PT1H30M, P2D, 90s, 30m, 1h or 2d");
    refused(LINE("run", "t", "--", "cat"), "klog run: it needs a group: -g GROUP");
    refused(LINE("run", "-g", "g", "--", "cat"), "klog run: it needs a topic before --");
    refused(LINE("run", "-g", "g", "t", "cat"), "klog run: it needs a COMMAND after --");
    refused(LINE("run", "-g", "g", "t", "--"), "klog run: it needs a COMMAND after --");
    refused(LINE("run", "-g", "g", "--each", "-n", "5", "t", "--", "cat"),
            "klog run: --each is one record at a time; --lines says otherwise");
    refused(LINE("run", "-g", "g", "--dead-letter", "b", "a", "b", "--", "cat"),
            "klog run: dead letters in b would be given to COMMAND again; name another topic");
    refused(LINE("run", "-g", "g", "-P", "0", "t", "--", "cat"),
            "klog run: --workers must be a whole number from 1 to 1000, not '0'");
    refused(LINE("run", "-g", "g", "--backoff", "5", "t", "--", "cat"),
            "klog run: --backoff takes a duration like 500ms, 5s or 1m, not '5'");
    refused(
        LINE("run", "-g", "g", "--from", "here", "t", "--", "cat"),
        "klog run: --from takes 'start', 'end', or a time like 1700000000000, 2026-01-02T03:04:05Z, 10:00 or "
        "-2h, not 'here'");
    refused(LINE("group", "describe"), "klog group describe: name groups, or say --all");
    refused(LINE("group", "describe", "g", "--members", "--state"),
            "klog group describe: --members and --state are two different tables; ask for one");
    refused(LINE("topic", "list", "--timeout", "1s"),
            "klog topic list: --timeout must be a whole number from 1 to 3600, not '1s'");
    refused(LINE("topic", "list", "-b", "a:b"),
            "klog topic list: 'a:b' is no list of brokers; it looks like HOST:PORT,HOST:PORT");
}

static void an_unreachable_broker_is_a_failure_with_its_reason(void **state)
{
    int rc;

    (void)state;
    char *said = errors_of(run, LINE("topic", "list", "-b", "127.0.0.1:1"), &rc);
    assert_int_equal(rc, CLI_FAILED);
    assert_string_equal(
        said, "klog topic list: no broker can be reached: 127.0.0.1:1: Connection refused; is klogd "
              "running? (-b or KLOG_BROKERS name another)\n");
    free(said);
}

static void broker_lists_get_the_default_port(void **state)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        { "a", "a:9092" },
        { "a:1", "a:1" },
        { "a,b:2", "a:9092,b:2" },
        { " a:1, b:2 ", "a:1,b:2" },
        { "[::1]", "[::1]:9092" },
        { "[::1]:5", "[::1]:5" },
        { "", NULL },
        { "a,", NULL },
        { "a, ", NULL },
        { "a:", NULL },
        { ":1", NULL },
        { "a:0", NULL },
        { "a:65536", NULL },
        { "::1", NULL },
        { "http://a:1", NULL },
        { "a b", NULL },
        { "[::1", NULL },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *got = brokers_normalise(cases[i].in);
        if (cases[i].out == NULL)
            assert_null(got);
        else
            assert_string_equal(got, cases[i].out);
        free(got);
    }
}

/* ---- what is made from the table ---- */
static char *printed(void (*f)(FILE *out, const struct command *c), const struct command *c)
{
    char *text;
    size_t n;
    FILE *out = open_memstream(&text, &n);

    f(out, c);
    fclose(out);
    return text;
}

static void completion_knows_commands_and_options(void **state)
{
    struct line *l = LINE("topic", "delete");

    (void)state;
    char *words = printed(words_print_subcommands, &klog_root);
    assert_non_null(strstr(words, "topic\nconfig\ngroup\nrun\noffsets\n"));
    free(words);
    assert_int_equal(parse(l), CLI_OK);
    words = printed(words_print_options, l->args.command);
    assert_string_equal(words, "--if-exists\n--brokers\n--timeout\n--json\n--help\n--version\n--debug\n");
    free(words);
    args_done(&l->args);
}

static void check_command(const struct command *c, const char *path)
{
    char name[64];

    snprintf(name, sizeof name, "%s%s%s", path, path[0] != '\0' ? " " : "", c->name);
    assert_non_null(c->operands);
    assert_true(strlen(c->summary) <= 80);
    assert_true((c->run != NULL) != (c->children != NULL));
    if (c->run != NULL && c->examples == NULL)
        fail_msg("%s has no example", name);
    for (const struct option_spec *o = c->options; o != NULL && o->name != NULL; o++) {
        if (command_option(c, o->name, strlen(o->name)) != o)
            fail_msg("%s has two options --%s", name, o->name);
    }
    for (const struct command *const *k = c->children; k != NULL && *k != NULL; k++)
        check_command(*k, name);
}

static void every_command_is_described(void **state)
{
    (void)state;
    check_command(&klog_root, "");
}

static void the_man_page_is_what_the_table_says(void **state)
{
    const char *srcdir = getenv("srcdir");
    CLEANUP(freep) char *path = xasprintf("%s/docs/man/klog.1", srcdir != NULL ? srcdir : ".");
    FILE *f = fopen(path, "r");
    char *page = printed(man_print, &klog_root), *there = xcalloc(1, 1 << 16);

    (void)state;
    assert_non_null(f);
    assert_true(fread(there, 1, (1 << 16) - 1, f) > 0);
    fclose(f);
    assert_string_equal(there, page); /* else: src/klog-man > docs/man/klog.1 */
    free(page);
    free(there);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_may_stand_anywhere),
        cmocka_unit_test(words_after_dashes_are_told_apart),
        cmocka_unit_test(the_last_of_an_option_counts),
        cmocka_unit_test(wrong_words_name_the_nearest_right_one),
        cmocka_unit_test(missing_and_superfluous_things_are_named),
        cmocka_unit_test(bad_values_are_refused_before_anything_is_connected),
        cmocka_unit_test(an_unreachable_broker_is_a_failure_with_its_reason),
        cmocka_unit_test(broker_lists_get_the_default_port),
        cmocka_unit_test(completion_knows_commands_and_options),
        cmocka_unit_test(every_command_is_described),
        cmocka_unit_test(the_man_page_is_what_the_table_says),
    };

    setenv("TZ", "UTC", 1);
    unsetenv("KLOG_BROKERS");
    return RUN(tests);
}
