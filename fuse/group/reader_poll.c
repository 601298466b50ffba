/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Polls of as/G/follow/: readable is what a read would be answered with at once: bytes, an error, or the end
 * of it all. What is not there yet is fetched first, so that "readable" is never said of what turns out to be
 * nothing. A poll acknowledges nothing (E1): a member whose reader polls keeps its last line in hand until
 * the next read, or until others have waited for it long enough. Loop's thread.
 */
#include <stdlib.h>

#include "fuse/group/reader.h"
#include "fuse/tree/poll_op.h"
#include "lib/base/mem.h"

struct reader_poll {
    struct poll_op op;
    TAILQ_ENTRY(reader_poll) link;
};

/* Is `at` behind the first byte of a line, and before its end? */
static bool is_inside_line(const struct reader *g, int64_t at)
{
    size_t low = g->first, high = g->n_lines;
    while (low < high) { /* the first line that ends behind `at` */
        size_t mid = low + (high - low) / 2;
        if (g->lines[mid].end <= at)
            low = mid + 1;
        else
            high = mid;
    }
    return low < g->n_lines && at > (low == g->first ? g->start : g->lines[low - 1].end);
}

static bool reader_is_readable(const struct reader *g)
{
    if (g->error != 0 || g->user.lost || g->user.closing || g->topic_gone)
        return true;
    if (g->releasing || g->orphaned) /* the rest of the line in hand, no more */
        return is_inside_line(g, g->at);
    return g->at < reader_end(g) || reader_is_past(g);
}

/* There is nothing to read: is that certain by now? Asks the partitions where it is not. */
static bool reader_has_looked(struct reader *g)
{
    if (g->releasing || (g->member != NULL && !g->assigned))
        return true;   /* others are at it; it is told when it has partitions */
    if (g->orphaned) { /* all read: forgotten before anything new is put behind it */
        reader_ack(g, g->at);
        reader_cut(g, g->at);
    }
    return reader_is_dry(g);
}

/* Tells who was polled before, once, that there is more than it knows of (E3). */
static void reader_tell(struct reader *g, bool readable)
{
    bool news = readable && (!g->polled || reader_end(g) != g->polled_end);
    g->polled = readable;
    g->polled_end = reader_end(g);
    if (news && g->h != NULL)
        handle_poll_tell(g->h);
}

void reader_polls_go(struct reader *g)
{
    struct reader_poll *p;
    if (TAILQ_EMPTY(&g->polls) && (g->h == NULL || g->h->poll == NULL))
        return;
    bool readable = reader_is_readable(g);
    if (!readable && !reader_has_looked(g))
        return; /* the answer comes back here */
    if (!readable)
        reader_park(g);
    reader_tell(g, readable);
    while ((p = TAILQ_FIRST(&g->polls)) != NULL) {
        TAILQ_REMOVE(&g->polls, p, link);
        poll_op_end(&p->op, readable);
        free(p);
    }
}

void reader_poll(struct handle *h, fuse_req_t req, struct fuse_pollhandle *ph)
{
    struct reader *g = h->reader;
    struct reader_poll *p = xcalloc(1, sizeof *p);
    poll_op_begin(&p->op, h, req, ph);
    if (!g->follow || g->h == NULL) { /* as any plain file */
        poll_op_end(&p->op, true);
        free(p);
        return;
    }
    TAILQ_INSERT_TAIL(&g->polls, p, link);
    reader_look_again(g);
    reader_go(g);
}
