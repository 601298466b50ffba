/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog run: its command line, judged whole before anything is connected, so that a misspelt option runs no
 * COMMAND. What it becomes is struct run_settings; the rest is run_*.c, with the rules in run.h. Every topic
 * must be there at the start: a misspelt name would be waited for in vain. One thread.
 */
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/when.h"
#include "src/commands.h"
#include "src/run.h"

enum {
    LINES_DEFAULT = 1000,
    WORKERS_MAX = 1000,
    RETRIES_MAX = 1000000,
    BACKOFF_DEFAULT_MS = 1000,
    SESSION_TIMEOUT_DEFAULT_MS = 45000
};

static const struct option_spec options[] = {
    { "group", 'g', "GROUP",
      "the consumer group whose positions are used; it comes into being with the first" },
    { "follow", 'f', NULL, "go on at the end and wait for more, until a signal comes" },
    { "lines", 'n', "N", "give COMMAND at most N records at a time [1000]" },
    { "each", 0, NULL, "one COMMAND a record; $KLOG_KEY is its key" },
    { "workers", 'P', "N", "run up to N COMMANDs at a time, never two for one partition [1]" },
    { "retry", 0, "N", "give what COMMAND failed on to it again, up to N times [0]" },
    { "backoff", 0, "DURATION",
      "wait so long before the first retry, then twice as long each, up to 1m [1s]" },
    { "dead-letter", 0, "TOPIC", "then write it to TOPIC, and go on after it" },
    { "from", 0, "start|end|TIME", "where a group begins that has no position yet [start]" },
    { "instance", 0, "NAME",
      "a name of its own in the group: after a restart it has its partitions again at once" },
    { "session-timeout", 0, "DURATION",
      "when it was killed, its partitions go to others after this long [45s]" },
    { NULL, 0, NULL, NULL },
};

static int take_from(const struct args *a, struct run_settings *ret)
{
    const char *text = args_get(a, "from", "start");

    ret->from = strcmp(text, "start") == 0 ? POSITION_START : POSITION_END;
    if (ret->from == POSITION_START || strcmp(text, "end") == 0)
        return CLI_OK;
    if (time_parse(text, clock_wall_ms(), &ret->from))
        return CLI_OK;
    return complain_usage(a,
                          "--from takes 'start', 'end', or a time like 1700000000000, 2026-01-02T03:04:05Z, "
                          "10:00 or -2h, not '%s'",
                          text);
}

static int take_duration(const struct args *a, const char *option, int64_t otherwise, int64_t *ret_ms)
{
    const char *text = args_get(a, option, NULL);

    *ret_ms = otherwise;
    if (text == NULL || (duration_parse(text, ret_ms) && *ret_ms > 0 && *ret_ms <= INT32_MAX))
        return CLI_OK;
    return complain_usage(a, "--%s takes a duration like 500ms, 5s or 1m, not '%s'", option, text);
}

static int take_numbers(const struct args *a, struct run_settings *ret)
{
    int rc;

    if ((rc = args_get_int(a, "lines", 1, INT32_MAX, LINES_DEFAULT, &ret->batch_max)) != CLI_OK ||
        (rc = args_get_int(a, "workers", 1, WORKERS_MAX, 1, &ret->workers)) != CLI_OK ||
        (rc = args_get_int(a, "retry", 0, RETRIES_MAX, 0, &ret->retries)) != CLI_OK)
        return rc;
    if ((rc = take_duration(a, "backoff", BACKOFF_DEFAULT_MS, &ret->backoff_ms)) != CLI_OK)
        return rc;
    return take_duration(a, "session-timeout", SESSION_TIMEOUT_DEFAULT_MS, &ret->session_timeout_ms);
}

static int take_words(const struct args *a, struct run_settings *ret)
{
    size_t n_command = a->n_operands - a->n_before_dashes;

    if (ret->group == NULL || ret->group[0] == '\0')
        return complain_usage(a, "it needs a group: -g GROUP");
    if (a->n_before_dashes == 0)
        return complain_usage(a, "it needs a topic before --");
    if (!a->dashes || n_command == 0)
        return complain_usage(a, "it needs a COMMAND after --");
    if (ret->each && args_has(a, "lines"))
        return complain_usage(a, "--each is one record at a time; --lines says otherwise");
    ret->topics = a->operands;
    ret->n_topics = a->n_before_dashes;
    for (size_t i = 0; i < ret->n_topics && ret->dead_letters != NULL; i++) {
        if (strcmp(ret->topics[i], ret->dead_letters) == 0)
            return complain_usage(a, "dead letters in %s would be given to COMMAND again; name another topic",
                                  ret->dead_letters);
    }
    return CLI_OK;
}

static int settings_take(const struct args *a, struct run_settings *ret)
{
    int rc;

    *ret = (struct run_settings){
        .group = args_get(a, "group", NULL),
        .each = args_has(a, "each"),
        .follow = args_has(a, "follow"),
        .dead_letters = args_get(a, "dead-letter", NULL),
        .instance = args_get(a, "instance", NULL),
    };
    if ((rc = take_words(a, ret)) != CLI_OK || (rc = take_numbers(a, ret)) != CLI_OK ||
        (rc = take_from(a, ret)) != CLI_OK)
        return rc;
    if (ret->each)
        ret->batch_max = 1;
    return CLI_OK;
}

/* Every topic must be there: a misspelt one would be waited for in vain. */
static int topics_check(struct session *s, struct run_settings *set)
{
    size_t n = set->n_topics;
    const char **topics = arena_array(&s->arena, n + 1, sizeof *topics);

    memcpy(topics, set->topics, n * sizeof *topics);
    if (set->dead_letters != NULL)
        topics[n++] = set->dead_letters;
    const struct metadata_response *md = session_metadata(s, topics, n);
    if (md == NULL)
        return CLI_FAILED;
    for (int32_t i = 0; i < md->n_topics; i++) {
        const struct metadata_response_topics *t = &md->topics[i];
        char name[256];
        snprintf(name, sizeof name, "%.*s", KSTR_FMT(t->name));
        if (t->error_code != KERR_NONE && t->n_partitions == 0) {
            complain_kerr(s->args, name, t->error_code, KSTR_NULL);
            return CLI_FAILED;
        }
        if (set->dead_letters != NULL && strcmp(name, set->dead_letters) == 0)
            set->n_dead_letters = t->n_partitions;
    }
    return CLI_OK;
}

/* COMMAND's words with the NULL that exec wants. */
static void command_take(struct session *s, struct run_settings *set)
{
    const struct args *a = s->args;
    size_t n = a->n_operands - a->n_before_dashes;
    char **words = arena_array(&s->arena, n + 1, sizeof *words);

    for (size_t i = 0; i < n; i++)
        words[i] = arena_strdup(&s->arena, a->operands[a->n_before_dashes + i]);
    set->command = words;
}

static int run(const struct args *a)
{
    CLEANUP(session_close) struct session s = { 0 };
    struct run_settings set;
    int rc = settings_take(a, &set);

    if (rc != CLI_OK || (rc = session_init(&s, a)) != CLI_OK || (rc = session_connect(&s)) != CLI_OK ||
        (rc = topics_check(&s, &set)) != CLI_OK)
        return rc;
    command_take(&s, &set);
    return run_records(&s, &set);
}

const struct command cmd_run = {
    .name = "run",
    .operands = "TOPIC... -- COMMAND [ARG]...",
    .operands_min = 0,
    .operands_max = -1,
    .summary = "Gives a group's records to COMMAND, and commits those it exited 0 on",
    .text =
        "COMMAND gets records as lines on its standard input: of one partition, in order, up to --lines\n"
        "of them or what is there. When it exits 0, all of them are committed, whether it read them or\n"
        "not; when it fails they are not, and come again: after a pause with --retry, else with the next\n"
        "klog run. Whatever is killed, klog, COMMAND, the broker or the machine: no record is skipped,\n"
        "and at most one batch of a partition is given again.\n"
        "\n"
        "Partitions are shared with every other member of the group, be it klog run, the mount or any\n"
        "Kafka client. Without -f it ends when it has dealt with all that its partitions held when it got\n"
        "them.\n"
        "\n"
        "COMMAND finds KLOG_GROUP, KLOG_TOPIC, KLOG_PARTITION and KLOG_OFFSET (of the first record) in\n"
        "its environment, with --each also KLOG_TIMESTAMP (ms) and KLOG_KEY (not set where there is no\n"
        "key, or where it has a NUL or is over 64 KiB). Dead letters keep key, value, headers and time;\n"
        "their headers klog.topic, klog.partition, klog.offset, klog.timestamp, klog.group, klog.failure\n"
        "and klog.attempts tell where they come from.\n"
        "\n"
        "After kill -9 the other members wait for --session-timeout before they share its partitions out.\n"
        "With --instance the next klog run of the same name goes on at once; then it does not leave the\n"
        "group when it ends, either.\n"
        "\n"
        "On SIGINT, SIGTERM or SIGHUP nothing more is begun; running COMMANDs end in peace, what they did\n"
        "is committed, the group is left. A second signal ends them with SIGTERM.",
    .exits = "0 the end was reached, or a signal came, and all that COMMAND was given is\n"
             "committed; 1 klog failed; 2 wrong usage; 3 COMMAND failed, and what it was given is\n"
             "not committed; 126 COMMAND cannot be run; 127 there is no COMMAND",
    .examples =
        "klog run -g billing orders -- ./bill.sh\n"
        "klog run -g thumbs -f -P 4 --each images -- sh -c 'convert \"$(cat)\" \"thumb/$KLOG_OFFSET.png\"'\n"
        "klog run -g load -f -n 10000 --retry 5 --dead-letter orders.failed orders -- psql -qc '\\copy "
        "orders from stdin'\n"
        "klog run -g audit --from -1h orders payments -- tee -a audit.log",
    .options = options,
    .online = true,
    .run = run,
};
