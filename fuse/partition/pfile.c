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

static void on_topic_gone(struct topic_listener *l)
{
    pfile_wake(container_of(l, struct pfile, on_gone));
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
    f->plain.file = f;
    LIST_INIT(&f->texts);
    LIST_INIT(&f->lenses);
    TAILQ_INIT(&f->known_nodes);
    LIST_INIT(&f->tails_waiting);
    LIST_INIT(&f->wakers);
    f->on_gone.cb = on_topic_gone;
    topic_listen(t, &f->on_gone);
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
    KCHECK(LIST_EMPTY(&f->wakers) && LIST_EMPTY(&f->tails_waiting) && f->check == NULL);
    struct mount *m = f->mount;
    watch_drop(m->watch, f);
    ptext_unref(f->plain.text);
    KINVARIANT("X1", LIST_EMPTY(&f->texts) && LIST_EMPTY(&f->lenses));
    HASH_DEL(m->pfiles, f);
    topic_unlisten(&f->on_gone);
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

/* Those who begin to wait anew meanwhile wait for the next news. */
void pfile_wake(struct pfile *f)
{
    LIST_HEAD(, pfile_waker) told = LIST_HEAD_INITIALIZER(told);
    struct pfile_waker *w;
    pfile_ref(f);
    while ((w = LIST_FIRST(&f->wakers)) != NULL) {
        LIST_REMOVE(w, link);
        LIST_INSERT_HEAD(&told, w, link);
    }
    while ((w = LIST_FIRST(&told)) != NULL) {
        pfile_unwake(w);
        w->cb(w);
    }
    pfile_unref(f);
}

/* What is woken may let go of any file, so the next one is held as well. */
void pfiles_wake(struct mount *m)
{
    struct pfile *f = m->pfiles, *next;
    if (f != NULL)
        pfile_ref(f);
    for (; f != NULL; f = next) {
        next = f->hh.next;
        if (next != NULL)
            pfile_ref(next);
        pfile_wake(f);
        pfile_unref(f);
    }
}

/* ---- last lines of closed files ---- */

void tails_ask(struct pfile *f, struct tails_wait *w)
{
    if (f->tails_done == f->tails_sent) {
        w->cb(w);
        return;
    }
    w->need = f->tails_sent;
    LIST_INSERT_HEAD(&f->tails_waiting, w, link);
}

void tail_sent(struct pfile *f)
{
    f->tails_sent++;
}

void tail_answered(struct pfile *f)
{
    struct tails_wait *w, *next;
    f->tails_done++;
    for (w = LIST_FIRST(&f->tails_waiting); w != NULL; w = next) {
        next = LIST_NEXT(w, link);
        if (w->need <= f->tails_done) {
            LIST_REMOVE(w, link);
            w->cb(w);
        }
    }
}
