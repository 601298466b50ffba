/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who uses which group on this mount: the open files of as/, and those who have to wait until what a closed one still has
 * to commit is committed. Knows nothing of how they read. Loop's thread.
 */
#include <errno.h>
#include <string.h>

#include "fuse/base/mount.h"
#include "fuse/cluster/groups.h"

static bool group_is_closing(const struct mount *m, const char *group)
{
    const struct group_user *u;
    LIST_FOREACH (u, &m->group_users, link) {
        if (u->closing && strcmp(u->group, group) == 0)
            return true;
    }
    return false;
}

bool group_is_read(const struct mount *m, const char *group, const struct topic *t, int32_t partition)
{
    const struct group_user *u;
    LIST_FOREACH (u, &m->group_users, link) {
        bool alone = u->partition >= 0 && !u->closing && !u->lost;
        if (alone && u->topic == t && (partition < 0 || u->partition == partition) && strcmp(u->group, group) == 0)
            return true;
    }
    return false;
}

void group_wait(struct mount *m, struct group_wait *w)
{
    if (group_is_closing(m, w->group))
        TAILQ_INSERT_TAIL(&m->group_waits, w, link);
    else
        w->cb(w, 0);
}

void group_waits_go(struct mount *m, const char *group)
{
    struct group_wait *w, *next;
    if (group_is_closing(m, group))
        return;
    for (w = TAILQ_FIRST(&m->group_waits); w != NULL; w = next) {
        next = TAILQ_NEXT(w, link);
        if (strcmp(w->group, group) != 0)
            continue;
        TAILQ_REMOVE(&m->group_waits, w, link);
        w->cb(w, 0);
    }
}

void group_waits_cancel(struct mount *m)
{
    struct group_wait *w;
    while ((w = TAILQ_FIRST(&m->group_waits)) != NULL) {
        TAILQ_REMOVE(&m->group_waits, w, link);
        w->cb(w, -ECANCELED);
    }
}

void group_user_begin(struct mount *m, struct group_user *u)
{
    LIST_INSERT_HEAD(&m->group_users, u, link);
}

void group_user_end(struct group_user *u)
{
    LIST_REMOVE(u, link);
}
