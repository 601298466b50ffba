/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One slot a topic: reads its registers when they have changed, then makes the hosted partitions and the
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

enum { STRIPE_MIN = 8 }; /* fewer partitions are not worth a job of their own */

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

/* ---- stripes: a range of the topic's partitions on one worker ---- */

struct stripe {
    struct job job;
    struct topic_slot *slot;
    int32_t from, to;
    int rc;
};

static bool hosted_here(const struct topic_slot *s, const struct partition_state *st)
{
    for (int32_t i = 0; i < st->n_replicas; i++)
        if (st->replicas[i] == s->cluster->deps.id)
            return true;
    return false;
}

static void note_rc(struct stripe *sp, int rc)
{
    if (sp->rc == 0)
        sp->rc = rc;
}

static void partition_follow(struct stripe *sp, const struct cluster_topic *before, int32_t id)
{
    struct topic_slot *s = sp->slot;
    const struct partition_state *st = &s->load.partitions[id].st;
    struct partition *pt = partitions_get(s->cluster->deps.partitions, kstr_of(s->name), id);
    if (pt == NULL)
        return;

    bool known = before != NULL && id < before->n_partitions && before->partitions[id].version == st->version;
    if (!known && !partition_set_state(pt, st)) {
        log_error("%s-%d: its register (leader %d, epoch %d) contradicts what was read before; it is not followed",
                  s->name, id, st->leader, st->leader_epoch);
        note_rc(sp, -EIO);
    }
    partition_set_config(pt, s->load.config);
    partition_unref(pt);
}

/* A start makes the directories that a crash left out, and begins an epoch: from the second start on each has been
 * there, and after a clean stop from the first. */
static bool had_log(const struct topic_slot *s, const struct partition_state *st)
{
    return s->at_start && (logdirs_were_clean(s->cluster->deps.dirs) || st->leader_epoch > 1);
}

static void stripe_open(struct job *j)
{
    struct stripe *sp = container_of(j, struct stripe, job);
    struct topic_slot *s = sp->slot;
    const struct cluster_topic *before = cluster_image_topic(s->image, kstr_of(s->name));
    int32_t n_old = s->hosted ? s->n_hosted : 0;
    CLEANUP(freep) struct partition_new *new = xcalloc((size_t)(sp->to - sp->from) + 1, sizeof *new);
    size_t n_new = 0;

    for (int32_t id = sp->from; id < sp->to; id++) {
        const struct partition_state *st = &s->load.partitions[id].st;
        if (id < n_old)
            partition_follow(sp, before, id);
        else if (hosted_here(s, st))
            new[n_new++] = (struct partition_new){ .id = id, .st = st, .at_start = s->at_start, .was_here = had_log(s, st) };
    }
    if (n_new > 0)
        note_rc(sp, partitions_add(s->cluster->deps.partitions, s->name, &s->load.id, s->load.config, new, n_new));
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

    atomic_init(&t->refs, 1);
    t->name = xstrdup(s->name);
    t->id = s->load.id;
    t->config = topic_config_ref(s->load.config);
    t->config_version = s->load.config_version;
    t->n_partitions = s->load.n_partitions;
    t->partitions = xcalloc((size_t)t->n_partitions + 1, sizeof *t->partitions);
    for (int32_t i = 0; i < t->n_partitions; i++)
        t->partitions[i] = s->load.partitions[i].st;
    t->internal = strcmp(s->name, "__consumer_offsets") == 0 || strcmp(s->name, "__transaction_state") == 0;
    return t;
}

static void slot_release_load(struct topic_slot *s)
{
    topic_load_done(&s->load);
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

static void round_end(struct topic_slot *s)
{
    struct cluster *c = s->cluster;

    s->at_start = false;
    s->hosted = true;
    s->hosted_id = s->load.id;
    s->n_hosted = MAX(s->n_hosted, s->load.n_partitions);
    struct cluster_topic *t = change_will_undo(s) ? NULL : topic_of_load(s);
    bool starting = c->starting_left > 0;
    if (!starting && t != NULL)
        cluster_publish_topic(c, s->name, t);
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
    stripes_start(s, 0, s->load.n_partitions, stripe_open);
}

void slot_open_loaded(struct topic_slot *s)
{
    KCHECK(s->load.found && s->load.rc == 0);
    s->at_start = true;
    open_begin(s);
}

/* ---- removing ---- */

/* The logs are gone: the note that they were to go may go too. */
struct forget {
    struct cluster *cluster;
    struct register_ops_list ops;
};

static void forgotten(void *arg, int rc)
{
    struct forget *f = arg;

    if (rc < 0 && rc != -ENOENT)
        log_warn("registers: cannot delete %s: %s", f->ops.ops[0].path, strerror(-rc));
    cluster_note_idle(f->cluster, -1);
    ops_done(&f->ops);
    free(f);
}

static void forget_deletion(struct topic_slot *s, const struct uuid *id)
{
    char text[UUID_TEXT_LEN + 1];
    struct forget *f = xcalloc(1, sizeof *f);

    uuid_text(id, text);
    f->cluster = s->cluster;
    cluster_note_idle(s->cluster, +1);
    ops_add(&f->ops, REGISTER_DELETE, xasprintf("/admin/delete_topics/%s", text), NULL, REGISTER_ANY_VERSION);
    registers_multi(s->cluster->deps.registers, f->ops.ops, f->ops.n, forgotten, f);
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
    s->dirty = true;
    slot_move(s, SLOT_IDLE);
    slot_step(s);
}

static void remove_begin(struct topic_slot *s, int32_t keep)
{
    if (keep == 0) {
        log_info("topic %s is deleted, partitions=%d", s->name, s->n_hosted);
        cluster_publish_topic(s->cluster, s->name, NULL);
        s->cluster->deps.topic_deleted(s->cluster->deps.arg, s->name, &s->hosted_id);
    }
    for (int32_t id = keep; id < s->n_hosted; id++)
        partitions_retire(s->cluster->deps.partitions, s->name, id);
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

    topic_load(s->cluster, s->name, &s->image->defaults->config, &s->load);
}

static void load_done(struct job *j)
{
    struct topic_slot *s = container_of(j, struct topic_slot, job);
    const struct topic_load *l = &s->load;
    bool same = l->found && s->hosted && uuid_eq(&l->id, &s->hosted_id);

    if (l->rc < 0) {
        if (l->rc != -EAGAIN)
            log_error("topic %s: cannot read its registers: %s", s->name, strerror(-l->rc));
        s->open_rc = l->rc;
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
    s->dirty = false;
    s->image = cluster_image_get(s->cluster);
    slot_move(s, SLOT_LOADING);
    s->job = (struct job){ .run = load_run, .done = load_done, .loop = s->cluster->deps.loop };
    workers_submit(s->cluster->deps.workers, &s->job);
}

/* ---- steps ---- */

void slot_mark_dirty(struct topic_slot *s)
{
    s->dirty = true;
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
    while (s->state == SLOT_IDLE) {
        struct change *ch = TAILQ_FIRST(&s->changes);
        if (s->cluster->stopping) {
            changes_fail(s->cluster, s, KERR_BROKER_NOT_AVAILABLE, "the broker is stopping");
            return;
        }
        if (s->dirty)
            load_begin(s);
        else if (ch == NULL)
            break;
        else if (change_is_begun(ch))
            change_synced(s, ch, s->open_rc);
        else
            change_begin(s, ch);
    }
    if (s->state == SLOT_IDLE && !s->hosted)
        slot_free(s);
}
