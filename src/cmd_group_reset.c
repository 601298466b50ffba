/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog group reset: moves a group's positions, as kafka-consumer-groups --reset-offsets does: it shows what
 * would be done, and does it only with --execute. A group that has members is refused, since they would go on
 * from where they are.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/when.h"
#include "src/commands.h"
#include "src/group_entries.h"

static const struct option_spec options[] = {
    { "topic", 't', "TOPIC[:N,N...]",
      "positions in this topic, or in these of its partitions; may be given again" },
    { "all-topics", 0, NULL, "in every topic the group has positions in" },
    { "to-earliest", 0, NULL, "to the first record there is" },
    { "to-latest", 0, NULL, "to the end: only what comes from now on is read" },
    { "to-current", 0, NULL, "to where they are, within what the log still has" },
    { "to-offset", 0, "N", "to offset N" },
    { "shift-by", 0, "N", "N records on, or back when N is negative" },
    { "to-datetime", 0, "TIME",
      "to the first record from that time on: epoch ms or s, RFC 3339, 2026-11-30, 10:00 (local time), -2h" },
    { "by-duration", 0, "DURATION",
      "to the first record of the last DURATION: PT1H30M, P2D, 90s, 30m, 1h, 2d" },
    { "dry-run", 0, NULL, "show what would be done; this is what happens without --execute" },
    { "execute", 0, NULL, "do it" },
    { NULL, 0, NULL, NULL },
};

static const struct column columns[] = {
    { "group", "GROUP", false },           { "topic", "TOPIC", false }, { "partition", "PARTITION", false },
    { "new_offset", "NEW-OFFSET", false }, { NULL, NULL, false },
};

/* ---- what is asked ---- */
enum goal { GOAL_EARLIEST, GOAL_LATEST, GOAL_CURRENT, GOAL_OFFSET, GOAL_SHIFT, GOAL_TIME };

struct wish {
    enum goal goal;
    int64_t n; /* offset, shift, or time in ms */
};

static int wish_take_number(const struct args *a, const char *option, int64_t min, enum goal goal,
                            struct wish *ret)
{
    ret->goal = goal;
    return args_get_int(a, option, min, INT64_MAX, 0, &ret->n);
}

static int wish_take_time(const struct args *a, const char *text, struct wish *ret)
{
    ret->goal = GOAL_TIME;
    if (time_parse(text, clock_wall_ms(), &ret->n))
        return CLI_OK;
    return complain_usage(a, "'%s' is no time; write it like 1700000000000, 2026-01-02T03:04:05Z, 2026-01-02, 10:00 or -2h",
                          text);
}

static int wish_take_duration(const struct args *a, const char *text, struct wish *ret)
{
    int64_t ms;

    if (!duration_parse(text, &ms))
        return complain_usage(a, "'%s' is no duration; write it like PT1H30M, P2D, 90s, 30m, 1h or 2d", text);
    ret->goal = GOAL_TIME;
    ret->n = MAX(clock_wall_ms() - ms, 0);
    return CLI_OK;
}

static int wish_parse(const struct args *a, struct wish *ret)
{
    static const char *const goals[] = { "to-earliest", "to-latest",   "to-current", "to-offset",
                                         "shift-by",    "to-datetime", "by-duration" };
    const char *chosen = NULL;
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(goals); i++) {
        if (args_has(a, goals[i])) {
            chosen = goals[i];
            n++;
        }
    }
    if (n != 1)
        return complain_usage(
            a, n == 0 ? "it needs to know where to: --to-earliest, --to-latest, --to-offset N, ..."
                      : "it takes one goal, not several");
    if (strcmp(chosen, "to-offset") == 0)
        return wish_take_number(a, chosen, 0, GOAL_OFFSET, ret);
    if (strcmp(chosen, "shift-by") == 0)
        return wish_take_number(a, chosen, -INT64_MAX, GOAL_SHIFT, ret);
    if (strcmp(chosen, "to-datetime") == 0)
        return wish_take_time(a, args_get(a, chosen, ""), ret);
    if (strcmp(chosen, "by-duration") == 0)
        return wish_take_duration(a, args_get(a, chosen, ""), ret);
    ret->goal = strcmp(chosen, "to-earliest") == 0 ? GOAL_EARLIEST
                : strcmp(chosen, "to-latest") == 0 ? GOAL_LATEST
                                                   : GOAL_CURRENT;
    return CLI_OK;
}

/* ---- which partitions ---- */
struct target {
    const struct part *part;
    const char *topic;
    int64_t current, goal; /* -1: none */
};

struct scope { /* one --topic */
    const char *topic;
    const char *partitions; /* "0,1", NULL all */
};

static bool partitions_are_numbers(const char *list)
{
    return list[0] != '\0' && list[strspn(list, "0123456789,")] == '\0' && list[0] != ',' &&
           list[strlen(list) - 1] != ',' && strstr(list, ",,") == NULL;
}

static int scopes_parse(struct session *s, struct scope **ret, size_t *ret_n)
{
    const struct args *a = s->args;
    const char *text;
    size_t n = 0;

    *ret = arena_array(&s->arena, a->n_options, sizeof **ret);
    for (; (text = args_nth(a, "topic", n)) != NULL; n++) {
        struct scope *sc = &(*ret)[n];
        const char *colon = strchr(text, ':');
        sc->topic = colon != NULL ? arena_printf(&s->arena, "%.*s", (int)(colon - text), text) : text;
        sc->partitions = colon != NULL ? colon + 1 : NULL;
        if (colon != NULL && !partitions_are_numbers(sc->partitions))
            return complain_usage(a, "'%s' is not of the form TOPIC:N,N...", text);
    }
    *ret_n = n;
    if ((n == 0) == !args_has(a, "all-topics"))
        return complain_usage(a, "say which positions: --topic TOPIC, or --all-topics");
    return CLI_OK;
}

static bool scope_lists(const struct scope *sc, int32_t partition)
{
    if (sc->partitions == NULL)
        return true;
    for (const char *p = sc->partitions; *p != '\0'; p += strcspn(p, ","), p += *p == ',') {
        if (strtoll(p, NULL, 10) == partition)
            return true;
    }
    return false;
}

/* Without scopes: does the group have a position there? */
static bool wanted(const struct scope *scopes, size_t n, const struct target *t)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(scopes[i].topic, t->topic) == 0 && scope_lists(&scopes[i], t->part->meta->partition_index))
            return true;
    }
    return n == 0 && t->current >= 0;
}

static int64_t group_current(const struct group *g, const char *topic, int32_t partition)
{
    for (size_t i = 0; i < g->n_positions; i++) {
        if (g->positions[i].partition == partition && strcmp(g->positions[i].topic, topic) == 0)
            return g->positions[i].offset;
    }
    return -1;
}

static size_t scope_topics(struct session *s, const struct group *g, const struct scope *scopes, size_t n,
                           const char ***ret)
{
    size_t n_topics = 0;

    *ret = arena_array(&s->arena, n + g->n_positions, sizeof **ret);
    for (size_t i = 0; i < n; i++)
        (*ret)[n_topics++] = scopes[i].topic;
    for (size_t i = 0; i < g->n_positions && n == 0; i++) {
        if (i == 0 || strcmp(g->positions[i].topic, g->positions[i - 1].topic) != 0)
            (*ret)[n_topics++] = g->positions[i].topic;
    }
    return n_topics;
}

/* Every partition that a scope names must be there. */
static bool scopes_are_there(const struct session *s, const struct scope *scopes, size_t n,
                             const struct target *targets, size_t n_targets)
{
    for (size_t i = 0; i < n; i++) {
        for (const char *p = scopes[i].partitions; p != NULL && *p != '\0';
             p += strcspn(p, ","), p += *p == ',') {
            bool found = false;
            for (size_t k = 0; k < n_targets && !found; k++)
                found = strcmp(targets[k].topic, scopes[i].topic) == 0 &&
                        targets[k].part->meta->partition_index == strtoll(p, NULL, 10);
            if (!found) {
                complain(s->args, "topic %s has no partition %.*s", scopes[i].topic, (int)strcspn(p, ","), p);
                return false;
            }
        }
    }
    return true;
}

/* ---- where to ---- */
static int64_t target_goal(const struct session *s, const struct wish *w, const struct target *t)
{
    const struct part *p = t->part;
    int64_t at = t->current;

    switch (w->goal) {
    case GOAL_EARLIEST:
        return p->start_offset;
    case GOAL_LATEST:
        return p->end_offset;
    case GOAL_TIME:
        return p->at_offset >= 0 ? p->at_offset : p->end_offset; /* nothing is that young */
    case GOAL_OFFSET:
        at = w->n;
        break;
    case GOAL_SHIFT:
        if (at >= 0 && __builtin_add_overflow(at, w->n, &at))
            at = w->n < 0 ? 0 : INT64_MAX;
        break;
    case GOAL_CURRENT:
        break;
    }
    if (t->current < 0 && w->goal != GOAL_OFFSET) {
        complain(s->args, "%s partition %d: the group has no position there to start from", t->topic,
                 p->meta->partition_index);
        return -1;
    }
    int64_t inside = MAX(MIN(at, p->end_offset), p->start_offset);
    if (inside != at)
        complain(s->args, "%s partition %d: offset %lld is outside of the log; %lld is taken", t->topic,
                 p->meta->partition_index, (long long)at, (long long)inside);
    return inside;
}

/* ---- the command ---- */
static bool group_may_be_moved(const struct session *s, const struct group *g)
{
    if (!group_has_members(g))
        return true;
    complain(s->args,
             "group %s has %d members (its state is %.*s): positions can only be reset while it has none; "
             "stop them first",
             g->name, g->told->n_members, KSTR_FMT(g->told->group_state));
    return false;
}

static size_t targets_find(struct session *s, const struct group *g, const struct scope *scopes,
                           size_t n_scopes, struct target **ret, bool *ret_failed)
{
    const char **topics;
    struct part *parts;
    size_t n_topics = scope_topics(s, g, scopes, n_scopes, &topics), n = 0;

    *ret_failed = true;
    if (n_topics == 0) {
        complain(s->args, "group %s has no positions; name a topic with --topic", g->name);
        return 0;
    }
    const struct metadata_response *md = session_metadata(s, topics, n_topics);
    if (md == NULL)
        return 0;
    size_t n_parts = parts_list(s, md, &parts, ret_failed);
    if (*ret_failed)
        return 0;
    *ret_failed = !parts_ask_ends(s, parts, n_parts);
    parts_complain(s, parts, n_parts);
    *ret = arena_array(&s->arena, n_parts, sizeof **ret);
    for (size_t i = 0; i < n_parts; i++) {
        struct target *t = &(*ret)[n];
        t->part = &parts[i];
        t->topic = arena_printf(&s->arena, "%.*s", KSTR_FMT(parts[i].topic->name));
        t->current = group_current(g, t->topic, parts[i].meta->partition_index);
        n += wanted(scopes, n_scopes, t);
    }
    if (!scopes_are_there(s, scopes, n_scopes, *ret, n))
        *ret_failed = true;
    return n;
}

static bool targets_ask_time(struct session *s, const struct wish *w, struct target *targets, size_t n)
{
    if (w->goal != GOAL_TIME)
        return true;
    struct part *parts = arena_array(&s->arena, n, sizeof *parts);
    for (size_t i = 0; i < n; i++) {
        parts[i] = *targets[i].part;
        targets[i].part = &parts[i];
    }
    bool ok = parts_ask_time(s, parts, n, w->n);
    parts_complain(s, parts, n);
    return ok;
}

static void targets_print(const struct session *s, const struct group *g, const struct target *targets,
                          size_t n)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(
            rows, json_pack("{s:s, s:s, s:i, s:o, s:I}", "group", g->name, "topic", targets[i].topic,
                            "partition", (int)targets[i].part->meta->partition_index, "current_offset",
                            json_offset(targets[i].current), "new_offset", (json_int_t)targets[i].goal));
    out_rows(stdout, args_has(s->args, "json"), columns, rows);
}

static int targets_commit(struct session *s, const struct group *g, const struct target *targets, size_t n)
{
    struct position *positions = arena_array(&s->arena, n, sizeof *positions);

    if (!args_has(s->args, "execute")) {
        complain(s->args, "nothing was changed; --execute does it");
        return CLI_OK;
    }
    for (size_t i = 0; i < n; i++)
        positions[i] = (struct position){ .topic = targets[i].topic,
                                          .partition = targets[i].part->meta->partition_index,
                                          .offset = targets[i].goal,
                                          .leader_epoch = -1 };
    return group_commit(s, g->name, positions, n);
}

static int reset(struct session *s, const struct wish *w, const struct scope *scopes, size_t n_scopes)
{
    struct group g;
    struct target *targets = NULL;
    bool failed;

    if (group_describe(s, s->args->operands[0], &g) != CLI_OK || !group_may_be_moved(s, &g))
        return CLI_FAILED;
    size_t n = targets_find(s, &g, scopes, n_scopes, &targets, &failed);
    if (failed || n == 0 || !targets_ask_time(s, w, targets, n))
        return CLI_FAILED;
    for (size_t i = 0; i < n; i++) {
        targets[i].goal = target_goal(s, w, &targets[i]);
        failed |= targets[i].goal < 0;
    }
    if (failed)
        return CLI_FAILED;
    int rc = targets_commit(s, &g, targets, n);
    if (rc == CLI_OK)
        targets_print(s, &g, targets, n);
    return rc;
}

static int run(const struct args *a)
{
    CLEANUP(session_close) struct session s = { 0 };
    struct wish w = { 0 };
    struct scope *scopes = NULL;
    size_t n_scopes = 0;
    int rc = wish_parse(a, &w);

    if (rc != CLI_OK || (rc = session_init(&s, a)) != CLI_OK ||
        (rc = scopes_parse(&s, &scopes, &n_scopes)) != CLI_OK)
        return rc;
    if (args_has(a, "execute") && args_has(a, "dry-run"))
        return complain_usage(a, "--execute and --dry-run exclude each other");
    if ((rc = session_connect(&s)) != CLI_OK)
        return rc;
    return reset(&s, &w, scopes, n_scopes);
}

const struct command cmd_group_reset = {
    .name = "reset",
    .operands = "GROUP",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Moves the positions of a group",
    .text = "Nothing is changed without --execute. The group must have no members. A position outside of the "
            "log is\n"
            "moved to the nearest end; a time after the last record means the end. A group that does not "
            "exist is made\n"
            "by giving it positions.",
    .examples = "klog group reset billing --all-topics --to-earliest\n"
                "klog group reset billing --topic orders:0,1 --shift-by -100 --execute\n"
                "klog group reset billing -t orders --to-datetime 2026-01-02T03:04:05Z --execute\n"
                "klog group reset billing -t orders --by-duration 1h --execute",
    .options = options,
    .online = true,
    .run = run,
};
