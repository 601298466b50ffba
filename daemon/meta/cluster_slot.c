/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One slot a topic: reads those of its registers that have changed, then makes the hosted partitions and the
 * image follow. The diagram is in cluster_int.h. Meta loop, but for the bodies of the jobs, which own
 * the slot's `load`, and read `hosted`, `n_hosted` and `image`, from start to done.
 *
 * Orders that matter: new logs are open before the image shows the topic; the image has forgotten a topic, and its
 * partitions take nothing more, before whoever deleted it is answered and its logs are removed; a name is free again while the logs of its last bearer are being removed (a
 * new topic waits for that in this slot).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/meta/cluster_int.h"
#include "daemon/replica/partition.h"
#include "daemon/storage/logdirs.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

enum {
    STRIPE_MIN = 8,  /* fewer partitions are not worth a job of their own */
    ROUND_MAX = 256, /* states of partitions that one round reads: those that are known are shown before the next are read */
};

#define B(state) (1u << (SLOT_##state))
static const uint8_t slot_next[SLOT_STATES] = {
    [SLOT_IDLE] = B(WRITING) | B(LOADING) | B(OPENING), /* OPENING: only at start, already loaded */
    [SLOT_WRITING] = B(IDLE),
    [SLOT_LOADING] = B(IDLE) | B(OPENING) | B(REMOVING),
    [SLOT_OPENING] = B(IDLE),
    [SLOT_REMOVING] = B(IDLE),
};

void cluster_note_idle(struct cluster *c, int delta)
{
    c->busy += delta;
    KCHECK(c->busy >= 0);
    if (c->busy == 0 && c->idle != NULL) {
        struct latch *idle = c->idle;
        c->idle = NULL;
        latch_open(idle);
    }
}

static void slot_move(struct topic_slot *s, enum slot_state to)
{
    KCHECK((slot_next[s->state] & (1u << to)) != 0);
    if (s->state == SLOT_IDLE)
        cluster_note_idle(s->cluster, +1);
    s->state = to;
    if (to == SLOT_IDLE)
        cluster_note_idle(s->cluster, -1);
}

struct topic_slot *slot_get(struct cluster *c, const char *name)
{
    struct topic_slot *s;

    HASH_FIND_STR(c->slots, name, s);
    if (s != NULL)
        return s;
    s = xcalloc(1, sizeof *s);
    s->cluster = c;
    s->name = xstrdup(name);
    TAILQ_INIT(&s->changes);
    HASH_ADD_KEYPTR(hh, c->slots, s->name, strlen(s->name), s);
    return s;
}

static void slot_free(struct topic_slot *s)
{
    KCHECK(s->state == SLOT_IDLE && TAILQ_EMPTY(&s->changes));
    HASH_DEL(s->cluster->slots, s);
    topic_load_done(&s->load);
    topic_wants_done(&s->wants);
    topic_wants_done(&s->dirty);
    cluster_image_put(s->image);
    free(s->name);
    free(s);
}

void slots_free(struct cluster *c)
{
    struct topic_slot *s, *next;

    HASH_ITER (hh, c->slots, s, next)
        slot_free(s);
}

/* ---- stripes: a range of what is to be done, on one worker ---- */

struct stripe {
    struct job job;
    struct topic_slot *slot;
    int32_t from, to;
    int rc;
};

static bool hosted_here(const struct topic_slot *s, const struct cluster_partition *p)
{
    for (int32_t i = 0; i < p->n_replicas; i++)
        if (p->replicas[i] == s->cluster->deps.id)
            return true;
    return false;
}

static void note_rc(struct stripe *sp, int rc)
{
    if (sp->rc == 0)
        sp->rc = rc;
}

/* The topic as the image had it when this round began; NULL: there was none, or another of its name. */
static const struct cluster_topic *topic_before(const struct topic_slot *s)
{
    return s->load.same ? cluster_image_topic(s->image, kstr_of(s->name)) : NULL;
}

static struct topic_config *config_now(const struct topic_slot *s)
{
    return s->load.config != NULL ? s->load.config : topic_before(s)->config;
}

/* Is its state the one that the hosted partition was told already? */
static bool is_known(const struct cluster_topic *before, int32_t id, const struct cluster_partition *p)
{
    return before != NULL && id < before->n_partitions && cluster_topic_partition(before, id)->version == p->version;
}

static void partition_follow(struct stripe *sp, struct partition *pt, const struct cluster_partition *p)
{
    struct topic_slot *s = sp->slot;
    struct partition_register r;

    if (p != NULL && !is_known(topic_before(s), pt->id, p)) {
        cluster_partition_register(p, &r);
        if (!partition_set_state(pt, &r.st)) {
            log_error("%s-%d: its register (leader %d, epoch %d) contradicts what was read before; it is not followed",
                      s->name, pt->id, p->leader, p->leader_epoch);
            note_rc(sp, -EIO);
        }
    }
    if (s->load.config != NULL)
        partition_set_config(pt, s->load.config);
}

/* Its replica was given to other brokers, by a state of a higher epoch than any that it was told (R1). */
static void partition_moves_away(struct stripe *sp, struct partition *pt, const struct cluster_partition *p)
{
    struct topic_slot *s = sp->slot;
    const struct cluster_deps *deps = &s->cluster->deps;
    int32_t id = pt->id;

    lock_take(&pt->mu);
    bool newer = p->leader_epoch > pt->replica.state.leader_epoch;
    pt->moved_away = newer; /* to be said as soon as it is being removed */
    lock_release(&pt->mu);
    if (!newer) {
        log_error("%s-%d: its register names this broker no more, in an epoch that it has seen before; its log is kept", s->name,
                  id);
        partition_unref(pt);
        return;
    }
    if (!deps->alone)
        deps->follow(deps->arg, pt, -1, NULL, -1);
    partition_unref(pt);
    log_info("%s-%d: other brokers have its replicas now; its log here goes", s->name, id);
    note_rc(sp, partitions_remove(deps->partitions, s->name, id));
}

/* A start makes the directories that a crash left out, and begins an epoch: from the second start on each has been
 * there, and after a clean stop from the first. */
static bool had_log(const struct topic_slot *s, const struct cluster_partition *p)
{
    return s->at_start && (logdirs_were_clean(s->cluster->deps.dirs) || p->leader_epoch > 1);
}

/* A new configuration concerns all partitions, everything else those whose registers were read. */
static int32_t n_touched(const struct topic_slot *s)
{
    return s->load.config != NULL ? s->load.n_partitions : s->load.n_read;
}

static int32_t touched_at(const struct topic_slot *s, int32_t i)
{
    return s->load.config != NULL ? i : s->load.read[i];
}

static void stripe_open(struct job *j)
{
    struct stripe *sp = container_of(j, struct stripe, job);
    struct topic_slot *s = sp->slot;
    struct partitions *ps = s->cluster->deps.partitions;
    size_t n = (size_t)(sp->to - sp->from), n_new = 0;
    CLEANUP(freep) struct partition_new *new = xcalloc(n + 1, sizeof *new);
    CLEANUP(freep) struct partition_register *states = xcalloc(n + 1, sizeof *states);

    for (int32_t i = sp->from; i < sp->to; i++) {
        int32_t id = touched_at(s, i);
        const struct cluster_partition *p = s->load.partitions[id];
        struct partition *pt = partitions_get(ps, kstr_of(s->name), id);
        if (pt != NULL && p != NULL && !hosted_here(s, p)) {
            partition_moves_away(sp, pt, p);
        } else if (pt != NULL) {
            partition_follow(sp, pt, p);
            partition_unref(pt);
        } else if (p != NULL && hosted_here(s, p)) {
            cluster_partition_register(p, &states[n_new]);
            new[n_new] = (struct partition_new){
                .id = id, .st = &states[n_new].st, .at_start = s->at_start, .was_here = had_log(s, p)
            };
            n_new++;
        }
    }
    if (n_new > 0)
        note_rc(sp, partitions_add(ps, s->name, &s->load.shape.id, config_now(s), new, n_new));
}

static void stripe_remove(struct job *j)
{
    struct stripe *sp = container_of(j, struct stripe, job);

    for (int32_t id = sp->from; id < sp->to; id++)
        note_rc(sp, partitions_remove(sp->slot->cluster->deps.partitions, sp->slot->name, id));
}

static void round_end(struct topic_slot *s);
static void remove_end(struct topic_slot *s);

static void stripe_done(struct job *j)
{
    struct stripe *sp = container_of(j, struct stripe, job);
    struct topic_slot *s = sp->slot;

    if (s->open_rc == 0)
        s->open_rc = sp->rc;
    free(sp);
    if (--s->jobs_left > 0)
        return;
    if (s->state == SLOT_OPENING)
        round_end(s);
    else
        remove_end(s);
}

static void stripes_start(struct topic_slot *s, int32_t from, int32_t to, void (*run)(struct job *j))
{
    const struct cluster_deps *deps = &s->cluster->deps;
    int32_t n = to - from, n_jobs = MAX(1, MIN(deps->config->num_io_threads, n / STRIPE_MIN));

    s->open_rc = 0;
    s->jobs_left = n_jobs;
    for (int32_t i = 0; i < n_jobs; i++) {
        struct stripe *sp = xcalloc(1, sizeof *sp);
        sp->slot = s;
        sp->from = from + (int32_t)((int64_t)n * i / n_jobs);
        sp->to = from + (int32_t)((int64_t)n * (i + 1) / n_jobs);
        sp->job.run = run;
        sp->job.done = stripe_done;
        sp->job.loop = s->cluster->deps.loop;
        workers_submit(deps->workers, &sp->job);
    }
}

/* ---- opening ---- */

static struct cluster_topic *topic_of_load(const struct topic_slot *s)
{
    struct cluster_topic *t = xcalloc(1, sizeof *t);
    const struct cluster_topic *before = topic_before(s);

    atomic_init(&t->refs, 1);
    t->name = xstrdup(s->name);
    t->id = s->load.shape.id;
    t->version = s->load.version;
    t->extra = s->load.shape.extra == NULL ? NULL : xstrdup(s->load.shape.extra);
    t->config = topic_config_ref(config_now(s));
    t->config_version = s->load.config != NULL ? s->load.config_version : before->config_version;
    t->n_partitions = s->load.n_partitions;
    t->partitions = xcalloc((size_t)t->n_partitions + 1, sizeof(*t->partitions));
    for (int32_t i = 0; i < t->n_partitions; i++) {
        struct cluster_partition *p = s->load.partitions[i];
        if (p == NULL)
            p = atomic_load_explicit(&before->partitions[i], memory_order_relaxed);
        atomic_init(&t->partitions[i], cluster_partition_ref(p));
    }
    t->internal = strcmp(s->name, "__consumer_offsets") == 0 || strcmp(s->name, "__transaction_state") == 0;
    return t;
}

/* Only states of partitions have changed: they are exchanged where they are. */
static bool only_states(const struct topic_slot *s)
{
    const struct cluster_topic *before = topic_before(s);

    return before != NULL && s->load.config == NULL && s->load.n_partitions == before->n_partitions &&
           s->load.version == before->version;
}

static void exchange_states(struct topic_slot *s)
{
    struct cluster *c = s->cluster;
    const struct cluster_topic *t = cluster_image_topic(c->image, kstr_of(s->name));

    for (int32_t i = 0; i < s->load.n_read; i++) {
        int32_t id = s->load.read[i];
        if (s->load.partitions[id] != NULL)
            cluster_replace_partition(c, t, id, take(&s->load.partitions[id]));
    }
    cluster_publish_same(c);
}

static void slot_release_load(struct topic_slot *s)
{
    topic_load_done(&s->load);
    topic_wants_done(&s->wants);
    cluster_image_put(s->image);
    s->image = NULL;
}

/* Half a topic is never shown: the change that made it takes it back. What was there before (a start, another
 * broker's change) is shown with the logs that could be opened. */
static bool change_will_undo(const struct topic_slot *s)
{
    const struct change *ch = TAILQ_FIRST(&s->changes);

    return s->open_rc < 0 && ch != NULL && change_is_begun(ch);
}

static void start_one_done(struct topic_slot *s, struct cluster_topic *t)
{
    struct cluster *c = s->cluster;

    c->start_topics[c->n_start_topics++] = t;
    if (--c->starting_left == 0)
        latch_open(&c->started);
}

/* Who leads is looked at once the hosted partitions and the image know what was read. */
static void look_at_touched(struct topic_slot *s)
{
    const struct cluster_topic *t = cluster_image_topic(s->cluster->image, kstr_of(s->name));

    for (int32_t i = 0; i < s->load.n_read; i++) {
        lead_look(s->cluster, t, s->load.read[i]);
        lead_see_to(s->cluster, t, s->load.read[i]);
    }
}

static void round_end(struct topic_slot *s)
{
    struct cluster *c = s->cluster;
    bool starting = c->starting_left > 0, undo = change_will_undo(s);
    struct cluster_topic *t = NULL;

    s->at_start = false;
    s->hosted = true;
    s->hosted_id = s->load.shape.id;
    s->n_hosted = MAX(s->n_hosted, s->load.n_partitions);
    if (starting)
        t = topic_of_load(s);
    else if (!undo && only_states(s))
        exchange_states(s);
    else if (!undo)
        cluster_publish_topic(c, s->name, topic_of_load(s));
    if (!starting && !undo)
        look_at_touched(s);
    slot_release_load(s);
    slot_move(s, SLOT_IDLE);
    if (starting)
        start_one_done(s, t);
    else
        slot_step(s);
}

static void open_begin(struct topic_slot *s)
{
    slot_move(s, SLOT_OPENING);
    stripes_start(s, 0, n_touched(s), stripe_open);
}

void slot_open_loaded(struct topic_slot *s)
{
    KCHECK(s->load.found && s->load.rc == 0);
    s->at_start = true;
    open_begin(s);
}

/* ---- removing ---- */

/* The logs are gone: this broker's note that they were to go may go too, and with the last broker's the topic's. */
struct forget {
    struct cluster *cluster;
    struct register_ops_list ops; /* one after the other, each by itself */
    int at;
};

static void forget_next(struct forget *f);

static void forgotten(void *arg, int rc)
{
    struct forget *f = arg;

    if (rc < 0 && rc != -ENOENT && rc != -ENOTEMPTY)
        log_warn("registers: cannot delete %s: %s", f->ops.ops[f->at].path, strerror(-rc));
    f->at++;
    forget_next(f);
}

static void forget_next(struct forget *f)
{
    struct cluster *c = f->cluster;

    if (f->at < f->ops.n) {
        registers_multi(c->deps.registers, &f->ops.ops[f->at], 1, forgotten, f);
        return;
    }
    cluster_note_idle(c, -1);
    ops_done(&f->ops);
    free(f);
}

static void forget_deletion(struct topic_slot *s, const struct uuid *id)
{
    struct cluster *c = s->cluster;
    struct forget *f = xcalloc(1, sizeof *f);

    f->cluster = c;
    cluster_note_idle(c, +1);
    cluster_forget_ops(c, id, &f->ops);
    forget_next(f);
}

/* Reads again afterwards: what is there now may be another topic of the same name. */
static void remove_end(struct topic_slot *s)
{
    if (s->n_kept == 0) {
        if (s->open_rc == 0) /* else the note makes the next start remove what is left */
            forget_deletion(s, &s->hosted_id);
        s->hosted = false;
    }
    s->n_hosted = s->n_kept;
    s->dirty.what |= TOPIC_ALL;
    slot_move(s, SLOT_IDLE);
    slot_step(s);
}

static void partition_leaves(struct topic_slot *s, int32_t id)
{
    const struct cluster_deps *deps = &s->cluster->deps;
    struct partition *pt = deps->alone ? NULL : partitions_get(deps->partitions, kstr_of(s->name), id);

    if (pt != NULL)
        deps->follow(deps->arg, pt, -1, NULL, -1);
    partition_unref(pt);
    partitions_retire(deps->partitions, s->name, id);
}

static void remove_begin(struct topic_slot *s, int32_t keep)
{
    if (keep == 0) {
        log_info("topic %s is deleted, partitions=%d", s->name, s->n_hosted);
        cluster_publish_topic(s->cluster, s->name, NULL);
        s->cluster->deps.topic_deleted(s->cluster->deps.arg, s->name, &s->hosted_id);
    }
    for (int32_t id = keep; id < s->n_hosted; id++)
        partition_leaves(s, id);
    s->n_kept = keep;
    slot_release_load(s);
    slot_move(s, SLOT_REMOVING);
    stripes_start(s, keep, s->n_hosted, stripe_remove);

    struct change *ch = TAILQ_FIRST(&s->changes);
    if (ch != NULL && change_is_begun(ch))
        change_gone(s, ch);
}

/* ---- loading ---- */

static void load_run(struct job *j)
{
    struct topic_slot *s = container_of(j, struct topic_slot, job);

    topic_load(s->cluster, s->name, s->image, &s->wants, s->changing, &s->load);
}

static void load_done(struct job *j)
{
    struct topic_slot *s = container_of(j, struct topic_slot, job);
    const struct topic_load *l = &s->load;
    bool same = l->found && s->hosted && uuid_eq(&l->shape.id, &s->hosted_id);

    s->unfinished = l->rc == 0 && l->unfinished;
    s->at_start = s->broken; /* its replica may have said that it has what is not here any more */
    if (l->rc == 0)
        s->broken = false;
    if (l->rc < 0) {
        if (l->rc != -EAGAIN && l->rc != -EREMOTEIO) /* which another call of the watch follows */
            log_error("topic %s: cannot read its registers: %s", s->name, topic_load_why(l));
        s->open_rc = l->rc;
        s->unread = l->rc == -EREMOTEIO;
    } else if (s->hosted && (!same || l->n_partitions < s->n_hosted)) {
        remove_begin(s, same ? l->n_partitions : 0);
        return;
    } else if (l->found) {
        open_begin(s);
        return;
    } else {
        s->open_rc = 0;
    }
    slot_release_load(s);
    slot_move(s, SLOT_IDLE);
    slot_step(s);
}

static void load_begin(struct topic_slot *s)
{
    topic_wants_take(&s->dirty, ROUND_MAX, &s->wants);
    s->unread = false;
    s->image = cluster_image_get(s->cluster);
    s->changing = !TAILQ_EMPTY(&s->changes) && change_is_begun(TAILQ_FIRST(&s->changes));
    slot_move(s, SLOT_LOADING);
    s->job = (struct job){ .run = load_run, .done = load_done, .loop = s->cluster->deps.loop };
    workers_submit(s->cluster->deps.workers, &s->job);
}

/* ---- steps ---- */

void slot_mark_dirty(struct topic_slot *s, unsigned what)
{
    s->dirty.what |= what;
    slot_step(s);
}

void slot_mark_partition(struct topic_slot *s, int32_t id)
{
    topic_wants_add(&s->dirty, id);
    slot_step(s);
}

void slot_begin_write(struct topic_slot *s)
{
    slot_move(s, SLOT_WRITING);
}

void slot_wrote(struct topic_slot *s)
{
    slot_move(s, SLOT_IDLE);
    slot_step(s);
}

void slot_step(struct topic_slot *s)
{
    if (s->cluster->starting)
        return;
    while (s->state == SLOT_IDLE) {
        struct change *ch = TAILQ_FIRST(&s->changes);
        if (s->cluster->stopping) {
            changes_fail(s->cluster, s, KERR_BROKER_NOT_AVAILABLE, "the broker is stopping");
            return;
        }
        if (topic_wants_any(&s->dirty))
            load_begin(s);
        else if (ch == NULL || (s->unread && change_is_begun(ch)))
            break;
        else if (change_is_begun(ch))
            change_synced(s, ch, s->open_rc);
        else
            change_begin(s, ch);
    }
    if (s->state == SLOT_IDLE && !s->hosted && !s->unfinished && !s->broken && TAILQ_EMPTY(&s->changes))
        slot_free(s);
}
