/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Member ids handed out by MEMBER_ID_REQUIRED whose member has not come back yet (KIP-394). Pure; under the shard's
 * lock.
 *
 * They hold up a rebalance, so that the member takes part in it, and expire after its session time-out. An id leaves
 * the table when its member joins with it, leaves, or is late. Nothing here is durable: after a restart such a member
 * is unknown, and asks for an id again.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/group/group_int.h"
#include "lib/base/mem.h"

/* One walk over all of them for each that expires: so they count for more than they take. */
enum { PENDING_BYTES = 1024 };

static int64_t pending_bytes(const struct group *g, const struct group_pending *p)
{
    return PENDING_BYTES + (int64_t)strlen(g->id) + (int64_t)strlen(p->id);
}

void group_pending_add(struct group *g, const char *id, int64_t due_ms)
{
    struct group_pending *p = xcalloc(1, sizeof *p);

    p->id = xstrdup(id);
    p->due_ms = due_ms;
    HASH_ADD_KEYPTR(hh, g->pending, p->id, strlen(p->id), p);
    group_bytes_count(g, pending_bytes(g, p));
    group_due_at(g, due_ms);
}

static void pending_free(struct group *g, struct group_pending *p)
{
    HASH_DEL(g->pending, p);
    group_bytes_count(g, -pending_bytes(g, p));
    free(p->id);
    free(p);
}

bool group_pending_remove(struct group *g, const char *id)
{
    struct group_pending *p;

    HASH_FIND_STR(g->pending, id, p);
    if (p != NULL)
        pending_free(g, p);
    return p != NULL;
}

int64_t group_pending_due_ms(const struct group *g)
{
    int64_t due = INT64_MAX;

    for (const struct group_pending *p = g->pending; p != NULL; p = p->hh.next)
        due = MIN(due, p->due_ms);
    return due;
}

bool group_pending_expire(struct group *g, int64_t now_ms)
{
    struct group_pending *p, *next;
    bool any = false;

    HASH_ITER (hh, g->pending, p, next)
        if (p->due_ms <= now_ms) {
            pending_free(g, p);
            any = true;
        }
    return any;
}
