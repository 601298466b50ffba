/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a partition file and its base (rules of pfile.h and ptext.h). Loop's thread. */
#include "fuse/partition/pfile.h"

#include <stdlib.h>

#include "fuse/base/mount.h"
#include "fuse/partition/watch.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

struct pfile *pfile_find(struct mount *m, struct topic *t, int32_t partition)
{
    struct pfile_key key = { t, partition };
    struct pfile *f;
    HASH_FIND(hh, m->pfiles, &key, sizeof key, f);
    return f;
}

struct pfile *pfile_get(struct mount *m, struct topic *t, int32_t partition)
{
    struct pfile *f = pfile_find(m, t, partition);
    if (f != NULL)
        return pfile_ref(f);
    f = xcalloc(1, sizeof *f);
    f->key = (struct pfile_key){ topic_ref(t), partition };
    f->mount = m;
    f->refs = 1;
    f->watched_end = f->told_end = -1;
    STAILQ_INIT(&f->ends_waiting);
    LIST_INIT(&f->texts);
    TAILQ_INIT(&f->known_nodes);
    LIST_INIT(&f->tails_waiting);
    LIST_INIT(&f->parked);
    LIST_INIT(&f->polled);
    LIST_INIT(&f->wakers);
    HASH_ADD(hh, m->pfiles, key, sizeof f->key, f);
    return f;
}

struct pfile *pfile_ref(struct pfile *f)
{
    f->refs++;
    return f;
}

void pfile_unref(struct pfile *f)
{
    if (f == NULL || --f->refs > 0)
        return;
    KCHECK(LIST_EMPTY(&f->parked) && LIST_EMPTY(&f->wakers) && LIST_EMPTY(&f->tails_waiting) && f->check == NULL);
    struct mount *m = f->mount;
    watch_drop(m->watch, f);
    ptext_unref(f->text);
    KINVARIANT("X1", LIST_EMPTY(&f->texts));
    HASH_DEL(m->pfiles, f);
    topic_unref(f->key.topic);
    free(f);
}

const struct client_partition *pfile_metadata(const struct pfile *f)
{
    const struct client_topic *ct = client_topic(f->mount->client, pfile_topic(f));
    int32_t id = pfile_partition(f);
    if (ct == NULL || id >= ct->n_partitions || ct->partitions[id].id != id)
        return NULL;
    return &ct->partitions[id];
}

void pfile_wake_me(struct pfile *f, struct pfile_waker *w)
{
    if (w->waiting)
        return;
    w->waiting = true;
    LIST_INSERT_HEAD(&f->wakers, w, link);
    watch_want(f->mount->watch, f);
}

void pfile_unwake(struct pfile_waker *w)
{
    if (w->waiting)
        LIST_REMOVE(w, link);
    w->waiting = false;
}

int64_t pfile_ino_text(const struct pfile *f)
{
    if (f->held > 0)
        return f->held_from;
    return f->ends_known ? f->ends.start_text : 0;
}
