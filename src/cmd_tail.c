/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog tail: the last records of the mount's paths, and with -f what comes then, in milliseconds. Records are counted, not offsets:
 * where compaction left gaps it begins earlier until there are enough. Several paths have headers as tail has them. One thread.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/attr.h"
#include "lib/base/mem.h"
#include "src/commands.h"
#include "src/paths.h"
#include "src/stream.h"

static const struct option_spec options[] = {
    { "follow", 'f', NULL, "then wait for more, for ever" },
    { "lines", 'n', "N", "so many records (10)" },
    { NULL, 0, NULL, NULL },
};

struct tail {
    struct path path;
    struct stream stream;
    int64_t reach; /* offsets before the end that were asked for */
    bool live;     /* the last records are printed */
};

struct tails {
    struct session s;
    int64_t lines;
    bool follow;
    struct tail *all;
    size_t n;
    const struct tail *last; /* whose header was printed */
};

/* With its own range it has all of that; else so many offsets before the end. */
static void tail_open(struct tails *ts, struct tail *t)
{
    struct view v = t->path.at.view;
    if ((v.parts & VIEW_RANGE) == 0) {
        v.parts |= VIEW_RANGE;
        v.range = (struct range){ .from = { .kind = BOUND_LAST, .value = t->reach } };
    }
    if (ts->follow)
        v.parts |= VIEW_FOLLOW;
    stream_open(&ts->s, &t->path, &v, &t->stream);
}

/* Leaves the last lines of what is held; returns how many lines there were. */
static int64_t keep_last(struct bytebuf *b, int64_t lines)
{
    int64_t n = 0;
    size_t at = b->n;
    while (at > 0 && n <= lines) {
        const uint8_t *nl = at > 1 ? memrchr(b->p, '\n', at - 1) : NULL;
        if (++n > lines)
            break;
        at = nl == NULL ? 0 : (size_t)(nl - b->p) + 1;
    }
    bytebuf_consume(b, at);
    return n;
}

static void tail_header(struct tails *ts, const struct tail *t)
{
    if (ts->n > 1 && ts->last != t) {
        printf("%s==> %s <==\n", ts->last == NULL ? "" : "\n", t->path.text);
        fflush(stdout);
    }
    ts->last = t;
}

static bool tail_print(struct tails *ts, struct tail *t)
{
    if (t->stream.text.n > 0 || !ts->follow)
        tail_header(ts, t);
    return stream_write(&t->stream);
}

/* There were too few: from further back. */
static bool tail_reaches_back(struct tails *ts, struct tail *t, int64_t got)
{
    bool own = (t->path.at.view.parts & VIEW_RANGE) != 0;
    if (own || got >= ts->lines || !reading_has_before(t->stream.reading))
        return false;
    stream_close(&t->stream);
    t->reach = MIN(t->reach, INT64_MAX / 8) * 4;
    tail_open(ts, t);
    return true;
}

/* Takes a step with what is here. STREAM_SOME: there may be more at once; else as stream_look. */
static int tail_step(struct tails *ts, struct tail *t)
{
    int rc = stream_look(&t->stream);
    if (rc == STREAM_FAILED)
        return rc;
    if (!t->live) {
        bool settled = rc == STREAM_END || reading_is_live(t->stream.reading);
        int64_t got = keep_last(&t->stream.text, ts->lines);
        if (!settled)
            return rc;
        if (tail_reaches_back(ts, t, got))
            return STREAM_SOME;
        t->live = true;
    }
    return tail_print(ts, t) ? rc : STREAM_FAILED;
}

/* So many of them may go on: their last records come in the order of the operands. */
static size_t tails_turn(const struct tails *ts)
{
    size_t i = 0;
    while (i < ts->n && (ts->all[i].live || ts->all[i].stream.reading == NULL))
        i++;
    return MIN(i + 1, ts->n);
}

static bool any_woken(const struct tails *ts)
{
    for (size_t i = 0; i < tails_turn(ts); i++) {
        if (ts->all[i].stream.reading != NULL && ts->all[i].stream.woken)
            return true;
    }
    return false;
}

static void tail_end(struct tail *t)
{
    stream_close(&t->stream);
    t->stream = (struct stream){ .s = NULL };
}

/* One after the other, or all at once where they go on. */
static int tails_run(struct tails *ts)
{
    int status = CLI_OK;
    size_t open = ts->n;
    for (size_t i = 0; i < ts->n; i++)
        tail_open(ts, &ts->all[i]);
    while (open > 0) {
        for (size_t i = 0; i < tails_turn(ts); i++) {
            struct tail *t = &ts->all[i];
            int rc = STREAM_SOME;
            while (t->stream.reading != NULL && t->stream.woken && rc == STREAM_SOME)
                rc = tail_step(ts, t);
            if (rc != STREAM_FAILED && rc != STREAM_END)
                continue;
            if (stream_status(&t->stream, rc) != CLI_OK)
                status = CLI_FAILED;
            tail_end(t);
            open--;
        }
        while (open > 0 && !any_woken(ts))
            loop_run_once(ts->s.loop, -1);
    }
    return status;
}

static int tails_find(struct tails *ts, const char *const *paths, size_t n)
{
    ts->all = arena_array(&ts->s.arena, n, sizeof *ts->all);
    ts->n = n;
    for (size_t i = 0; i < n; i++) {
        ts->all[i] = (struct tail){ .reach = ts->lines };
        int rc = path_find(&ts->s, paths[i], &ts->all[i].path);
        if (rc == CLI_OK)
            rc = path_may_read(&ts->s, &ts->all[i].path);
        if (rc != CLI_OK)
            return rc;
    }
    return CLI_OK;
}

static int run(const struct args *a)
{
    struct tails ts = { .follow = args_has(a, "follow") };
    const char **paths;
    size_t n;
    int rc = args_get_int(a, "lines", 0, INT64_MAX / 8, 10, &ts.lines);
    if (rc == CLI_OK)
        rc = session_init(&ts.s, a);
    if (rc == CLI_OK && (rc = session_connect(&ts.s)) == CLI_OK &&
        (rc = paths_expand(&ts.s, a->operands, a->n_operands, &paths, &n)) == CLI_OK &&
        (rc = tails_find(&ts, paths, n)) == CLI_OK)
        rc = tails_run(&ts);
    session_close(&ts.s);
    return rc;
}

const struct command cmd_tail = {
    .name = "tail",
    .operands = "PATH...",
    .operands_min = 1,
    .operands_max = -1,
    .summary = "Prints the last records, and with -f those that come",
    .text = "PATH is as for klog cat. New records are there within milliseconds. A path with a range of its own has the last records of "
            "that.",
    .examples = "klog tail orders/p0\n"
                "klog tail -f -n 0 orders/json/all",
    .options = options,
    .online = true,
    .run = run,
};
