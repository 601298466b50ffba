/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The embedded back-end of the register store: one thread owns the tree and the journal.
 *
 * Calls from any thread queue a request. The thread takes all that is queued, works through it in
 * order, makes the changes durable in one frame with one fdatasync (group commit), and only then hands
 * the answers to the loop: nobody sees a register that a power cut could take back. Reads pass through the
 * same queue, so the order of calls is the order of effects.
 *
 * Locks: mu guards the two queues, the watches and `stopping`; it is a leaf. tree, journal and dead belong to
 * the thread. Watches are called on the loop, before the answer to the change that set them off.
 *
 * After a failed write or fdatasync (S8) every later change and read is refused; ENOSPC undoes the round and
 * goes on.
 */
#include "daemon/meta/registers.h"

#include <errno.h>
#include <string.h>
#include <sys/queue.h>

#include "daemon/config/ranks.h"
#include "daemon/meta/register_tree.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"
#include "lib/loop/loop.h"
#include "lib/loop/thread.h"
#include "lib/store/datadir.h"
#include "lib/store/register_journal.h"

enum { FRAME_BYTES_FULL = 16 * 1024 * 1024 }; /* what is asked beyond it waits for the next round */

enum item_kind { ITEM_MULTI, ITEM_GET, ITEM_CHILDREN, ITEM_SYNC, ITEM_EVENT, ITEM_SESSION };

struct item {
    enum item_kind kind;
    TAILQ_ENTRY(item) link;
    void *arg;
    int rc;
    union {
        struct {
            void (*cb)(void *arg, int rc);
            struct register_op *ops;
            int n;
        } multi;
        struct {
            void (*cb)(void *arg, int rc, struct slice value, int64_t version);
            uint8_t *value;
            size_t value_bytes;
            int64_t version;
        } get;
        struct {
            void (*cb)(void *arg, int rc, const char *const *names, int n);
            char **names;
            int n;
        } children;
        struct {
            void (*cb)(void *arg, int rc);
        } sync;
    };
    char *path; /* GET, CHILDREN, EVENT */
};
TAILQ_HEAD(item_queue, item);

struct register_watch {
    char *path;
    void (*cb)(void *arg, const char *path);
    void *arg;
    bool dead; /* unwatched while callbacks run; freed after them */
    TAILQ_ENTRY(register_watch) link;
};

struct embedded {
    struct registers base;
    struct loop *loop;
    struct thread *thread;

    struct lock mu;
    struct cond wake;
    struct item_queue asked, answered;    /* guarded by mu */
    TAILQ_HEAD(, register_watch) watches; /* guarded by mu */
    bool stopping;                        /* guarded by mu */
    bool delivering;                      /* guarded by mu */
    struct task deliver;

    void (*session_cb)(void *arg, enum registers_event ev); /* the loop's, as the next */
    void *session_arg;

    struct datadir *dd;                   /* set once, as the next two */
    void (*failed)(void *arg, int eno);
    void *failed_arg;

    struct register_tree tree; /* the thread's */
    struct register_journal journal;
    struct register_undo undo; /* of this round */
    int dead;                  /* -errno after a failed write */
};

static struct embedded *embedded_of(struct registers *r)
{
    return container_of(r, struct embedded, base);
}

/* ---- items ---- */

static struct item *item_new(enum item_kind kind, const char *path, void *arg)
{
    struct item *it = xcalloc(1, sizeof *it);

    it->kind = kind;
    it->path = path == NULL ? NULL : xstrdup(path);
    it->arg = arg;
    return it;
}

static void item_free(struct item *it)
{
    if (it->kind == ITEM_GET)
        free(it->get.value);
    if (it->kind == ITEM_CHILDREN) {
        for (int i = 0; i < it->children.n; i++)
            free(it->children.names[i]);
        free(it->children.names);
    }
    free(it->path);
    free(it);
}

static void item_ask(struct embedded *e, struct item *it)
{
    lock_take(&e->mu);
    TAILQ_INSERT_TAIL(&e->asked, it, link);
    cond_signal(&e->wake);
    lock_release(&e->mu);
}

/* ---- the thread ---- */

static void journal_op(struct embedded *e, const struct register_op *op)
{
    switch (op->kind) {
    case REGISTER_CREATE:
    case REGISTER_SET:
        if (!register_tree_is_ephemeral(&e->tree, op->path))
            register_journal_put(&e->journal, op->path, op->value, op->new_version);
        break;
    case REGISTER_DELETE:
        register_journal_drop(&e->journal, op->path);
        break;
    case REGISTER_CREATE_EPHEMERAL:
    case REGISTER_CHECK:
        break;
    }
}

/* Deletions of ephemeral registers must not reach the journal, and after the fact nobody can tell. */
static bool *find_ephemeral(const struct embedded *e, const struct register_op *ops, int n)
{
    bool *ret = xcalloc((size_t)n, sizeof *ret);

    for (int i = 0; i < n; i++)
        ret[i] = ops[i].kind == REGISTER_DELETE && register_tree_is_ephemeral(&e->tree, ops[i].path);
    return ret;
}

static void run_multi(struct embedded *e, struct item *it, struct item_queue *events)
{
    CLEANUP(freep) bool *ephemeral = find_ephemeral(e, it->multi.ops, it->multi.n);

    it->rc = register_tree_multi(&e->tree, it->multi.ops, it->multi.n, &e->undo);
    for (int i = 0; it->rc == 0 && i < it->multi.n; i++) {
        const struct register_op *op = &it->multi.ops[i];
        if (op->kind == REGISTER_CHECK)
            continue;
        if (!ephemeral[i])
            journal_op(e, op);
        struct item *event = item_new(ITEM_EVENT, op->path, NULL);
        TAILQ_INSERT_TAIL(events, event, link);
    }
}

static void run_get(struct embedded *e, struct item *it)
{
    struct slice value;

    it->rc = register_tree_get(&e->tree, it->path, &value, &it->get.version);
    if (it->rc < 0)
        return;
    it->get.value = xmalloc(value.n + 1);
    memcpy(it->get.value, value.p, value.n);
    it->get.value_bytes = value.n;
}

static void run_children(struct embedded *e, struct item *it)
{
    const char **names;
    int n;

    it->rc = register_tree_children(&e->tree, it->path, &names, &n);
    if (it->rc < 0)
        return;
    it->children.names = xcalloc((size_t)n + 1, sizeof *it->children.names);
    it->children.n = n;
    for (int i = 0; i < n; i++)
        it->children.names[i] = xstrdup(names[i]);
    free(names);
}

static void run_item(struct embedded *e, struct item *it, struct item_queue *events)
{
    if (e->dead < 0)
        it->rc = e->dead;
    else if (it->kind == ITEM_MULTI)
        run_multi(e, it, events);
    else if (it->kind == ITEM_GET)
        run_get(e, it);
    else if (it->kind == ITEM_CHILDREN)
        run_children(e, it);
}

/* S8: nobody knows what the disk has. */
static void die(struct embedded *e)
{
    e->dead = -EIO;
    log_error("registers: cannot write " REGISTERS_JOURNAL ": %s; changes of topics are refused until klogd is restarted on "
              "a sound disk",
              strerror(-e->journal.failed));
    datadir_fail(e->dd, -e->journal.failed, REGISTERS_JOURNAL);
    e->failed(e->failed_arg, -e->journal.failed);
}

static void tree_each(void *arg, void (*f)(void *f_arg, const char *path, struct slice value, int64_t version),
                      void *f_arg)
{
    register_tree_each(arg, f, f_arg);
}

/* Nothing of the round happened: what was answered by it is an error now, and nobody hears of it. */
static void round_fail(struct embedded *e, int rc, struct item_queue *round)
{
    struct item *it, *next;

    register_undo_revert(&e->tree, &e->undo);
    for (it = TAILQ_FIRST(round); it != NULL; it = next) {
        next = TAILQ_NEXT(it, link);
        it->rc = it->rc == 0 ? rc : it->rc;
        if (it->kind == ITEM_EVENT) {
            TAILQ_REMOVE(round, it, link);
            item_free(it);
        }
    }
    if (e->journal.failed == 0) {
        log_warn("registers: a change was refused: %s; free some space in the first log directory",
                 strerror(-rc));
        return;
    }
    die(e);
}

/* Works through what was asked, until the frame is full, and makes it durable. */
static void round_run(struct embedded *e, struct item_queue *asked, struct item_queue *done)
{
    struct item *it;

    while ((it = TAILQ_FIRST(asked)) != NULL && e->journal.frame.n < FRAME_BYTES_FULL) {
        TAILQ_REMOVE(asked, it, link);
        run_item(e, it, done); /* its events come first */
        TAILQ_INSERT_TAIL(done, it, link);
    }

    int rc = e->dead < 0 ? 0 : register_journal_commit(&e->journal);
    if (rc < 0) {
        round_fail(e, rc, done);
        return;
    }
    register_undo_commit(&e->undo);
    rc = e->dead < 0 ? 0 : register_journal_compact_if_due(&e->journal, tree_each, &e->tree);
    if (rc < 0 && e->journal.failed == 0)
        log_warn("registers: cannot write " REGISTERS_SNAPSHOT ": %s; the journal goes on growing",
                 strerror(-rc));
    if (e->journal.failed < 0 && e->dead == 0)
        die(e); /* what this round changed is durable, and answered so */
}

static void embedded_run(void *arg)
{
    struct embedded *e = arg;
    struct item_queue asked = TAILQ_HEAD_INITIALIZER(asked), done = TAILQ_HEAD_INITIALIZER(done);

    lock_take(&e->mu);
    for (;;) {
        while (TAILQ_EMPTY(&e->asked) && TAILQ_EMPTY(&asked) && !e->stopping)
            cond_wait(&e->wake, &e->mu);
        TAILQ_CONCAT(&asked, &e->asked, link);
        if (TAILQ_EMPTY(&asked))
            break;
        lock_release(&e->mu);

        round_run(e, &asked, &done);

        lock_take(&e->mu);
        TAILQ_CONCAT(&e->answered, &done, link);
        loop_post(e->loop, &e->deliver);
    }
    lock_release(&e->mu);
}

/* ---- on the loop ---- */

/* Watches may come and go inside a callback: the list only grows at its tail meanwhile, the dead stay until
 * the end. */
static void deliver_event(struct embedded *e, const char *path)
{
    struct register_watch *w;

    lock_take(&e->mu);
    TAILQ_FOREACH (w, &e->watches, link) {
        if (w->dead || !register_path_is_under(path, w->path))
            continue;
        lock_release(&e->mu);
        w->cb(w->arg, path);
        lock_take(&e->mu);
    }
    lock_release(&e->mu);
}

static void deliver_item(struct embedded *e, struct item *it)
{
    switch (it->kind) {
    case ITEM_EVENT:
        deliver_event(e, it->path);
        break;
    case ITEM_MULTI:
        it->multi.cb(it->arg, it->rc);
        break;
    case ITEM_GET:
        it->get.cb(it->arg, it->rc, slice_of(it->get.value, it->rc < 0 ? 0 : it->get.value_bytes),
                   it->get.version);
        break;
    case ITEM_CHILDREN:
        it->children.cb(it->arg, it->rc, (const char *const *)it->children.names,
                        it->rc < 0 ? 0 : it->children.n);
        break;
    case ITEM_SYNC:
        it->sync.cb(it->arg, it->rc);
        break;
    case ITEM_SESSION:
        if (e->session_cb != NULL)
            e->session_cb(e->session_arg, REGISTERS_CONNECTED);
        break;
    }
}

static void watch_free(struct register_watch *w)
{
    free(w->path);
    free(w);
}

static void reap_watches(struct embedded *e)
{
    struct register_watch *w, *next;

    for (w = TAILQ_FIRST(&e->watches); w != NULL; w = next) {
        next = TAILQ_NEXT(w, link);
        if (w->dead) {
            TAILQ_REMOVE(&e->watches, w, link);
            watch_free(w);
        }
    }
}

static void deliver_answers(struct task *t)
{
    struct embedded *e = container_of(t, struct embedded, deliver);
    struct item_queue round = TAILQ_HEAD_INITIALIZER(round);
    struct item *it;

    lock_take(&e->mu);
    TAILQ_CONCAT(&round, &e->answered, link);
    e->delivering = true;
    lock_release(&e->mu);

    while ((it = TAILQ_FIRST(&round)) != NULL) {
        TAILQ_REMOVE(&round, it, link);
        deliver_item(e, it);
        item_free(it);
    }

    lock_take(&e->mu);
    e->delivering = false;
    reap_watches(e);
    lock_release(&e->mu);
}

/* ---- the table ---- */

static void embedded_multi(struct registers *r, struct register_op *ops, int n, void (*cb)(void *arg, int rc),
                           void *arg)
{
    struct item *it = item_new(ITEM_MULTI, NULL, arg);

    it->multi.cb = cb;
    it->multi.ops = ops;
    it->multi.n = n;
    item_ask(embedded_of(r), it);
}

static void embedded_get(struct registers *r, const char *path,
                         void (*cb)(void *arg, int rc, struct slice value, int64_t version), void *arg)
{
    struct item *it = item_new(ITEM_GET, path, arg);

    it->get.cb = cb;
    item_ask(embedded_of(r), it);
}

static void embedded_children(struct registers *r, const char *path,
                              void (*cb)(void *arg, int rc, const char *const *names, int n), void *arg)
{
    struct item *it = item_new(ITEM_CHILDREN, path, arg);

    it->children.cb = cb;
    item_ask(embedded_of(r), it);
}

static struct register_watch *embedded_watch(struct registers *r, const char *path,
                                             void (*cb)(void *arg, const char *path), void *arg)
{
    struct embedded *e = embedded_of(r);
    struct register_watch *w = xcalloc(1, sizeof *w);

    w->path = xstrdup(path);
    w->cb = cb;
    w->arg = arg;
    lock_take(&e->mu);
    TAILQ_INSERT_TAIL(&e->watches, w, link);
    lock_release(&e->mu);
    return w;
}

static void embedded_unwatch(struct registers *r, struct register_watch *w)
{
    struct embedded *e = embedded_of(r);

    lock_take(&e->mu);
    w->dead = true;
    if (!e->delivering)
        reap_watches(e);
    lock_release(&e->mu);
}

static void embedded_sync(struct registers *r, void (*cb)(void *arg, int rc), void *arg)
{
    struct item *it = item_new(ITEM_SYNC, NULL, arg);

    it->sync.cb = cb;
    item_ask(embedded_of(r), it);
}

static void embedded_on_session(struct registers *r, void (*cb)(void *arg, enum registers_event ev), void *arg)
{
    struct embedded *e = embedded_of(r);

    e->session_cb = cb;
    e->session_arg = arg;
    if (cb != NULL)
        item_ask(e, item_new(ITEM_SESSION, NULL, NULL)); /* in the order of answers */
}

/* The process is the session. */
static void embedded_renew(struct registers *r)
{
    (void)r;
}

static int64_t embedded_last_reply_ms(struct registers *r)
{
    return world_mono_ms(loop_world(embedded_of(r)->loop));
}

static void queue_free(struct item_queue *q)
{
    struct item *it;

    while ((it = TAILQ_FIRST(q)) != NULL) {
        TAILQ_REMOVE(q, it, link);
        item_free(it);
    }
}

static void embedded_close(struct registers *r)
{
    struct embedded *e = embedded_of(r);
    struct register_watch *w;

    lock_take(&e->mu);
    e->stopping = true;
    cond_signal(&e->wake);
    lock_release(&e->mu);
    thread_join(e->base.exec, e->thread);

    loop_cancel(e->loop, &e->deliver);
    KCHECK(TAILQ_EMPTY(&e->asked));
    queue_free(&e->answered);
    TAILQ_FOREACH (w, &e->watches, link)
        w->dead = true;
    reap_watches(e);
    if (e->dead == 0)
        datadir_set_clean_note(e->dd, e->journal.sequence);
    register_journal_close(&e->journal);
    register_tree_done(&e->tree);
    lock_done(&e->mu);
    cond_done(&e->wake);
    free(e);
}

static const struct registers_ops embedded_ops = {
    .multi = embedded_multi,
    .get = embedded_get,
    .children = embedded_children,
    .watch = embedded_watch,
    .unwatch = embedded_unwatch,
    .sync = embedded_sync,
    .on_session = embedded_on_session,
    .renew = embedded_renew,
    .last_reply_ms = embedded_last_reply_ms,
    .close = embedded_close,
};

static int load_put(void *arg, const char *path, struct slice value, int64_t version)
{
    return register_tree_put(arg, path, value, version);
}

static int load_drop(void *arg, const char *path)
{
    return register_tree_drop(arg, path);
}

int registers_open_embedded(struct datadir *dd, bool may_create, int64_t compact_min, struct loop *lp,
                            void (*failed)(void *arg, int eno), void *failed_arg, struct registers **ret, char *err, size_t err_size)
{
    struct embedded *e = xcalloc(1, sizeof *e);
    struct register_sink sink = { .arg = &e->tree, .put = load_put, .drop = load_drop };

    int rc = register_journal_open(&e->journal, dd, may_create, compact_min, &sink, tree_each, &e->tree, err, err_size);
    if (rc < 0) {
        register_tree_done(&e->tree);
        free(e);
        return rc;
    }
    e->dd = dd;
    e->failed = failed;
    e->failed_arg = failed_arg;
    e->base.ops = &embedded_ops;
    e->base.exec = loop_world(lp)->exec;
    e->loop = lp;
    e->deliver.cb = deliver_answers;
    TAILQ_INIT(&e->asked);
    TAILQ_INIT(&e->answered);
    TAILQ_INIT(&e->watches);
    lock_init(&e->mu, LOCK_RANK_REGISTERS, "registers");
    cond_init(&e->wake, e->base.exec);
    e->thread = thread_start(e->base.exec, embedded_run, e, "klogd-registers");
    KCHECK(e->thread != NULL);
    *ret = &e->base;
    return 0;
}
