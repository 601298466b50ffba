/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watch. A file is in `files` while a stream waits for it or the kernel knows it; in each round all files
 * that are in no poll on its way go into one poll a broker. A round comes at once for a stream; otherwise
 * polls come back at most every WATCH_PAUSE_MS, so that a file that is written all the time costs a hundred
 * small answers a second. Loop's thread.
 */
#include "fuse/partition/watch.h"

#include <errno.h>
#include <stdlib.h>

#include "fuse/base/missed.h"
#include "fuse/base/mount.h"
#include "fuse/partition/pfile.h"
#include "fuse/partition/poke.h"
#include "fuse/partition/stat_call.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#define WATCH_PAUSE_MS 10
/* The pause grows by 1 ms for so many watched files, since each answer tells of all of them. */
#define WATCH_FILES_PER_PAUSE_MS 8
/* A poll over most of a broker's files waits long. One over newcomers comes back soon; files that are in no
 * hurry wait for it meanwhile, so that in the end all are in one again. */
#define WATCH_WAIT_MS     10000
#define WATCH_WAIT_FEW_MS 250
#define WATCH_RETRY_MS    1000
/* Polls on their way at one broker; with so many, streams that begin to wait do so until the next comes back.
 */
#define WATCH_POLLS_MAX 3
/* Files watched only because the kernel knows them; the longest not looked up goes first. */
#define WATCH_KNOWN_MAX 1024

struct watch {
    struct mount *mount;
    TAILQ_HEAD(, pfile) files; /* in_watch; the longest not looked up first */
    size_t n;
    LIST_HEAD(, poll) polls; /* on their way */
    bool stopping;
    struct deferred round;
    struct timer pause;
};

struct poll {
    struct watch *watch;
    int32_t leader;
    bool few; /* over newcomers */
    LIST_ENTRY(poll) link;
    struct client_call call;
    struct klog_stat_request body;
    struct arena arena;
    struct pfile **files; /* with a reference each */
    struct pfile *first;  /* one of them: the call goes to its leader */
    size_t n;
    int64_t sent_ns;
};

static void watch_round(struct deferred *d);
static void on_pause(struct timer *t);

struct watch *watch_new(struct mount *m)
{
    struct watch *w = xcalloc(1, sizeof *w);
    w->mount = m;
    w->round.cb = watch_round;
    w->pause.cb = on_pause;
    TAILQ_INIT(&w->files);
    LIST_INIT(&w->polls);
    return w;
}

void watch_stop(struct watch *w)
{
    w->stopping = true;
    timer_clear(w->mount->loop, &w->pause);
    loop_defer_cancel(w->mount->loop, &w->round);
}

void watch_free(struct watch *w)
{
    if (w == NULL)
        return;
    KCHECK(LIST_EMPTY(&w->polls) && w->n == 0);
    free(w);
}

static bool wanted_now(const struct pfile *f)
{
    return !LIST_EMPTY(&f->wakers);
}

static void watch_add(struct watch *w, struct pfile *f)
{
    if (f->in_watch || f->key.topic->gone)
        return;
    f->in_watch = true;
    TAILQ_INSERT_TAIL(&w->files, f, watch_link);
    w->n++;
}

static void watch_remove(struct watch *w, struct pfile *f)
{
    if (!f->in_watch)
        return;
    f->in_watch = false;
    TAILQ_REMOVE(&w->files, f, watch_link);
    w->n--;
}

static void watch_round_after(struct watch *w, int64_t ms)
{
    if (!w->stopping && !timer_is_set(&w->pause))
        timer_set(w->mount->loop, &w->pause, loop_now_ms(w->mount->loop) + ms);
}

static int64_t watch_pause_ms(const struct watch *w)
{
    return WATCH_PAUSE_MS + (int64_t)w->n / WATCH_FILES_PER_PAUSE_MS;
}

void watch_want(struct watch *w, struct pfile *f)
{
    watch_add(w, f);
    if (!f->watching && !w->stopping)
        loop_defer(w->mount->loop, &w->round);
}

void watch_kernel_knows(struct watch *w, struct pfile *f, bool knows)
{
    f->kernel_knows = knows;
    if (!knows || w->stopping || w->mount->poke == NULL)
        return;
    if (f->in_watch) {
        TAILQ_REMOVE(&w->files, f, watch_link);
        TAILQ_INSERT_TAIL(&w->files, f, watch_link);
        return;
    }
    watch_add(w, f);
    if (!f->in_watch)
        return;
    struct pfile *oldest = TAILQ_FIRST(&w->files);
    if (w->n > WATCH_KNOWN_MAX && !wanted_now(oldest))
        watch_remove(w, oldest);
    watch_round_after(w, watch_pause_ms(w));
}

void watch_drop(struct watch *w, struct pfile *f)
{
    KCHECK(!f->watching);
    watch_remove(w, f);
}

/* ---- news ---- */

static void watchers_tell(struct watch *w, struct pfile *f, bool elsewhere)
{
    const struct known_node *n;
    TAILQ_FOREACH (n, &f->known_nodes, link) {
        if (elsewhere || n->id != f->own_node) /* this mount's append told those of the node that it came by */
            poke_file(w->mount->poke, pfile_topic(f), n->path, n->id);
    }
}

/* The kernel itself tells inotify watchers of this mount's appends; they are told here of what is more. While
 * an append is on its way nobody knows yet whose the news are. */
void watch_judge(struct watch *w, struct pfile *f)
{
    int64_t grown = f->watched_end - f->told_end;
    if (f->own_sends > 0 || grown <= 0)
        return;
    bool elsewhere = f->told_end >= 0 && grown > f->own_records;
    f->own_records = MAX(f->own_records - grown, 0);
    f->told_end = f->watched_end;
    if (f->kernel_knows && w->mount->poke != NULL)
        watchers_tell(w, f, elsewhere);
}

static void on_news(void *arg, struct pfile *f, enum kerr err, const struct ends *e)
{
    struct poll *p = arg;
    struct watch *w = p->watch;
    f->news_failed = err != KERR_NONE;
    if (err == KERR_UNKNOWN_TOPIC_OR_PARTITION || err == KERR_UNKNOWN_TOPIC_ID)
        topic_doubt(f->key.topic);
    if (err != KERR_NONE) {
        client_topic_is_stale(w->mount->client, pfile_topic(f));
        watch_round_after(w, WATCH_RETRY_MS);
        return;
    }
    f->watched_end = e->end_offset;
    if (f->check != NULL || (p->sent_ns >= f->ends_ns && ends_are_doubtful(f, e))) {
        ends_check(f, e, p->sent_ns, NULL);
        return;
    }
    ends_set(f, e, p->sent_ns);
    watch_judge(w, f);
    pfile_wake(f);
}

/* Files that nobody wants news of any more leave the watch; the others go into the next round. */
static void poll_files_back(struct poll *p)
{
    struct watch *w = p->watch;
    for (size_t i = 0; i < p->n; i++) {
        struct pfile *f = p->files[i];
        f->watching = false;
        if (f->key.topic->gone)
            watch_remove(w, f);
        else if (wanted_now(f) && !w->stopping && !f->news_failed)
            loop_defer(w->mount->loop, &w->round);
        else if (!wanted_now(f) && (!f->kernel_knows || w->mount->poke == NULL))
            watch_remove(w, f);
        pfile_unref(f);
    }
}

static void on_poll(struct client_call *call, int rc, enum kerr err, int16_t version, const void *response)
{
    struct poll *p = call->user;
    struct watch *w = p->watch;
    const struct klog_stat_response *r = response;
    (void)err;
    (void)version;
    LIST_REMOVE(p, link);
    bool failed = rc != 0 || r->error_code != KERR_NONE;
    if (rc == -ENOENT)
        topic_judge(p->first->key.topic);
    if (failed) {
        for (size_t i = 0; i < p->n; i++)
            client_topic_is_stale(w->mount->client, pfile_topic(p->files[i]));
        for (size_t i = 0; i < p->n; i++) {
            p->files[i]->watching = false;
            if (p->files[i]->key.topic->gone)
                watch_remove(w, p->files[i]);
            pfile_unref(p->files[i]);
        }
    } else {
        stat_each(r, p->files, p->n, on_news, p);
        poll_files_back(p);
    }
    watch_round_after(w, failed && rc != -ENOENT ? WATCH_RETRY_MS : watch_pause_ms(w));
    arena_done(&p->arena);
    free(p->files);
    free(p);
}

/* ---- a round ---- */

static int32_t leader_of(struct pfile *f)
{
    const struct client_partition *p = pfile_metadata(f);
    return p == NULL ? -1 : p->leader;
}

/* What an answer has shown since is no news, but those who wait for inotify have to be told of it. */
static void watch_begin_at(struct watch *w, struct pfile *f)
{
    if (f->watched_end < 0)
        f->watched_end = f->told_end;
    if (!wanted_now(f) || !f->ends_known || f->ends.end_offset <= f->watched_end)
        return;
    f->watched_end = f->ends.end_offset;
    watch_judge(w, f);
}

/* Files that can go into one poll with `first`: the same broker leads them, or (none known) it alone. */
static size_t poll_collect(struct pfile *first, struct pfile **ret)
{
    int32_t leader = leader_of(first);
    size_t n = 0;
    for (struct pfile *f = first; f != NULL; f = TAILQ_NEXT(f, watch_link)) {
        if (!f->watching && (f == first || (leader >= 0 && leader_of(f) == leader))) {
            f->watching = true;
            watch_begin_at(f->mount->watch, f);
            ret[n++] = pfile_ref(f);
        }
    }
    return n;
}

static int polls_at(const struct watch *w, int32_t leader, bool *ret_few)
{
    const struct poll *p;
    int n = 0;
    LIST_FOREACH (p, &w->polls, link) {
        n += p->leader == leader;
        if (ret_few != NULL)
            *ret_few |= p->leader == leader && p->few;
    }
    return n;
}

static void poll_send(struct watch *w, struct pfile *first)
{
    struct mount *m = w->mount;
    struct poll *p = xcalloc(1, sizeof *p);
    p->watch = w;
    p->files = xreallocarray(NULL, w->n, sizeof *p->files);
    p->n = poll_collect(first, p->files);
    p->first = first;
    p->leader = leader_of(first);
    p->few = polls_at(w, p->leader, NULL) > 0;
    int32_t wait_ms = p->few ? WATCH_WAIT_FEW_MS : WATCH_WAIT_MS;
    arena_init(&p->arena);
    stat_build(&p->arena, p->files, p->n, wait_ms, true, &p->body);
    p->sent_ns = clock_mono_ns();
    p->call = (struct client_call){ .target = TARGET_LEADER,
                                    .topic = pfile_topic(first),
                                    .topic_id = first->key.topic->id,
                                    .partition = pfile_partition(first),
                                    .request = &wire_klog_stat_request,
                                    .body = &p->body,
                                    .max_version = -1,
                                    .parks = true,
                                    .deadline_ms = mount_deadline_ms(m) + wait_ms,
                                    .cb = on_poll,
                                    .user = p };
    LIST_INSERT_HEAD(&w->polls, p, link);
    client_call(m->client, &p->call);
}

static void watch_round(struct deferred *d)
{
    struct watch *w = container_of(d, struct watch, round);
    struct pfile *f;
    TAILQ_FOREACH (f, &w->files, watch_link) {
        bool few = false;
        if (f->watching || polls_at(w, leader_of(f), &few) >= WATCH_POLLS_MAX || (few && !wanted_now(f)))
            continue; /* the next that comes back starts a round */
        poll_send(w, f);
    }
}

static void on_pause(struct timer *t)
{
    struct watch *w = container_of(t, struct watch, pause);
    watch_round(&w->round);
}
