/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first round of the cluster: base registers, identity, this broker's registration, a new leader epoch for each
 * partition that it leads, then every topic's registers and logs. Main thread, which may block; open_all() and
 * publish_all() run on the meta loop by loop_call().
 *
 * The order is the promise. Epochs are raised before a log is opened, so that no batch is written in the epoch of an
 * earlier life; the topics are published when every one of the registers is there, so that no client sees a part. A
 * log that is newer than the registers (they were lost, or lag) raises its partition's epoch above its own. What a
 * failed start has taken is given back by cluster_starter_done().
 */
#include "daemon/meta/cluster_start.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/replica/partition.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"
#include "lib/loop/thread.h"

#define MULTI_BYTES_MAX (256 * 1024)

static int fail(int rc, const char *what, char *err, size_t err_size)
{
    snprintf(err, err_size, "registers: cannot %s: %s", what,
             rc == -EREMOTEIO ? "no answer; is there a ZooKeeper at zookeeper.connect?" : strerror(-rc));
    return rc;
}

/* ---- base registers ---- */

static int ensure_in(struct registers *r, const char *path, char *value)
{
    struct register_ops_list l = { 0 };

    ops_add(&l, REGISTER_CREATE, xstrdup(path), value, 0);
    int rc = registers_multi_wait(r, l.ops, l.n);
    ops_done(&l);
    return rc == -EEXIST ? 0 : rc;
}

static int ensure(struct cluster *c, const char *path, char *value)
{
    return ensure_in(c->deps.registers, path, value);
}

/* What meta.properties can hold. */
static bool is_cluster_id(const char *text, size_t n)
{
    return n > 0 && n < 64 && strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.") == n;
}

/* Brokers that start together may all make one: the first stays. */
int cluster_agree_on_id(struct registers *r, const struct world *w, bool may_make, char ret[64], char *err, size_t err_size)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    int64_t version;
    int rc = 0;

    if (ret[0] == '\0' && may_make) {
        struct uuid id;
        char text[UUID_TEXT_LEN + 1];
        uuid_random(w->random, &id);
        uuid_text(&id, text);
        rc = ensure_in(r, "/cluster", NULL);
        if (rc == 0)
            rc = ensure_in(r, "/cluster/id", xstrdup(text));
    }
    if (rc == 0)
        rc = registers_get_wait(r, "/cluster/id", &b, &version);
    if (rc == -ENOENT)
        return 0;
    if (rc < 0)
        return fail(rc, "read /cluster/id", err, err_size);
    if (ret[0] == '\0' && !is_cluster_id(bytebuf_cstr(&b), b.n)) {
        snprintf(err, err_size, "registers: /cluster/id is malformed: %.64s; put back what the other brokers' meta.properties say",
                 bytebuf_cstr(&b));
        return -EBADMSG;
    }
    if (ret[0] == '\0')
        snprintf(ret, 64, "%.63s", bytebuf_cstr(&b));
    return 0;
}

static int ensure_base(struct cluster *c)
{
    static const char *const paths[] = {
        "/cluster",
        "/brokers",
        "/brokers/ids",
        "/brokers/topics",
        "/config",
        "/config/topics",
        "/config/brokers",
        "/klog",
        "/klog/broker_epoch",
        "/admin",
        "/admin/delete_topics",
        "/latest_producer_id_block",
    };
    int rc = 0;

    for (size_t i = 0; i < ARRAY_LEN(paths) && rc == 0; i++)
        rc = ensure(c, paths[i], NULL);
    if (rc < 0)
        return rc;

    CLEANUP(freep) char *epoch = xasprintf("/klog/broker_epoch/%d", c->deps.id);
    CLEANUP(freep) char *config = xasprintf("/config/brokers/%d", c->deps.id);
    rc = ensure(c, epoch, epoch_register_encode(&(struct epoch_register){ 0 }));
    return rc < 0 ? rc : ensure(c, config, config_register_encode(NULL, 0, NULL));
}

/* Several versions side by side: all of them know what the cluster works by. */
static int check_level(struct cluster *c, char *err, size_t err_size)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    int64_t version;
    int32_t level;

    int rc = ensure(c, "/klog/level", level_register_encode(CLUSTER_LEVEL));
    if (rc == 0)
        rc = registers_get_wait(c->deps.registers, "/klog/level", &b, &version);
    if (rc < 0)
        return fail(rc, "read /klog/level", err, err_size);
    if (level_register_decode(slice_of(b.p, b.n), &level) < 0) {
        snprintf(err, err_size, "the register /klog/level is malformed: %.100s", bytebuf_cstr(&b));
        return -EBADMSG;
    }
    if (level > CLUSTER_LEVEL) {
        snprintf(err, err_size, "the cluster works at level %d (/klog/level), and this klogd knows level %d only: start a newer version",
                 level, CLUSTER_LEVEL);
        return -EPROTO;
    }
    return 0;
}

/* The embedded registers belong to one broker. One of another number would host nothing. */
static int check_broker(struct cluster *c, char *err, size_t err_size)
{
    char me[16], **names;
    int n, rc = registers_children_wait(c->deps.registers, "/klog/broker_epoch", &names, &n);

    if (rc == -ENOENT)
        return 0; /* the first start */
    if (rc < 0)
        return fail(rc, "list the brokers", err, err_size);
    snprintf(me, sizeof me, "%d", c->deps.id);
    bool known = n == 0;
    for (int i = 0; i < n; i++)
        known |= strcmp(names[i], me) == 0;
    if (!known) {
        snprintf(err, err_size,
                 "the registers belong to broker %.16s, meta.properties says %s: put back the right meta.properties",
                 names[0], me);
        rc = -ESTALE;
    }
    registers_names_free(names, n);
    return rc;
}

static int check_identity(struct cluster *c, char *err, size_t err_size)
{
    struct bytebuf b = { 0 };
    int64_t version;

    int rc = ensure(c, "/cluster/id", xstrdup(c->deps.cluster_id));
    if (rc == 0)
        rc = registers_get_wait(c->deps.registers, "/cluster/id", &b, &version);
    if (rc < 0) {
        fail(rc, "read /cluster/id", err, err_size);
    } else if (strcmp(bytebuf_cstr(&b), c->deps.cluster_id) != 0) {
        snprintf(err, err_size,
                 "the registers belong to cluster %.64s, the log directories to cluster %s: "
                 "start klogd with the directories that belong together",
                 bytebuf_cstr(&b), c->deps.cluster_id);
        rc = -ESTALE;
    }
    bytebuf_done(&b);
    return rc;
}

int cluster_start_registers(struct cluster_starter *st, char *err, size_t err_size)
{
    struct cluster *c = st->cluster;
    struct brokers_load l = { 0 };

    int rc = c->deps.alone ? check_broker(c, err, err_size) : 0;
    if (rc < 0)
        return rc;
    rc = ensure_base(c);
    if (rc < 0)
        return fail(rc, "make the first registers", err, err_size);
    rc = check_identity(c, err, err_size);
    if (rc == 0 && !c->deps.alone)
        rc = check_level(c, err, err_size);
    if (rc < 0)
        return rc;
    rc = cluster_enlist(c);
    if (rc == -EEXIST || rc == -ESTALE) {
        snprintf(err, err_size, "a broker %d is there already: give this one another broker.id",
                 c->deps.id);
        c->deps.replaced(c->deps.arg);
        return rc;
    }
    if (rc < 0)
        return fail(rc, "register this broker", err, err_size);

    cluster_watch(c); /* before anything is read: others may be writing */
    brokers_load(c, &l);
    if (l.rc == 0) {
        cluster_publish_first(c, l.defaults, l.brokers, l.n_brokers);
        c->deps.settings(c->deps.arg, &l.defaults->config);
    } else {
        rc = fail(l.rc, "read the brokers", err, err_size);
    }
    brokers_load_done(&l);
    return rc;
}

/* ---- new epochs ---- */

struct bump {
    struct cluster *cluster;
    struct register_ops_list ops;
    struct bumped {
        struct cluster_partition **of; /* the fence has none */
        struct partition_register reg;
    } *to; /* by index of ops */
    size_t cap;
};

/* A state that was written takes the place of the one that was read. */
static void replace(struct cluster_partition **p, struct partition_register *r, int64_t version)
{
    r->st.version = version;
    struct cluster_partition *after = cluster_partition_new(r);
    cluster_partition_unref(*p);
    *p = after;
}

static int bump_send(struct bump *b)
{
    if (b->ops.n == 0)
        return 0;
    int rc = registers_multi_wait(b->cluster->deps.registers, b->ops.ops, b->ops.n);
    for (int i = 0; rc == 0 && i < b->ops.n; i++)
        if (b->to[i].of != NULL)
            replace(b->to[i].of, &b->to[i].reg, b->ops.ops[i].new_version);
    ops_done(&b->ops);
    return rc;
}

static struct bumped *bump_room(struct bump *b)
{
    if ((size_t)b->ops.n == b->cap) {
        b->cap = b->cap == 0 ? 64 : 2 * b->cap;
        b->to = xreallocarray(b->to, b->cap, sizeof *b->to);
    }
    return &b->to[b->ops.n];
}

static void bump_fence(struct bump *b)
{
    struct cluster *c = b->cluster;

    bump_room(b)->of = NULL;
    ops_add(&b->ops, REGISTER_CHECK, xasprintf("/klog/broker_epoch/%d", c->deps.id), NULL, c->broker_epoch);
}

/* R1: a restarted leader never goes on in its old epoch. */
static int bump_partition(struct bump *b, const char *topic, int32_t id, struct cluster_partition **p)
{
    struct cluster *c = b->cluster;
    char writer[64];

    if ((*p)->leader != c->deps.id)
        return 0;
    if (b->ops.n == 0)
        bump_fence(b);
    struct bumped *to = bump_room(b);
    to->of = p;
    cluster_partition_register(*p, &to->reg);
    to->reg.st.leader_epoch++;
    to->reg.st.leader_be = c->broker_epoch;
    cluster_writer(c, writer);
    ops_add(&b->ops, REGISTER_SET, xasprintf("/brokers/topics/%s/partitions/%d/state", topic, id),
            partition_register_encode(&to->reg, writer), (*p)->version);
    return b->ops.bytes < MULTI_BYTES_MAX - 4096 ? 0 : bump_send(b);
}

static int bump_all(struct cluster_starter *st)
{
    struct bump b = { .cluster = st->cluster };
    int rc = 0;

    for (int i = 0; i < st->n && rc == 0; i++)
        for (int32_t p = 0; p < st->loads[i].n_partitions && rc == 0; p++)
            rc = bump_partition(&b, st->names[i], p, &st->loads[i].partitions[p]);
    if (rc == 0)
        rc = bump_send(&b);
    ops_done(&b.ops);
    free(b.to);
    return rc;
}

/* ---- topics ---- */

static int compare_loads(const void *a, const void *b)
{
    const struct topic_load *const *x = a, *const *y = b;

    return memcmp(&(*x)->shape.id, &(*y)->shape.id, sizeof(struct uuid));
}

/* Not served; its registers may be put right while klogd runs. What another broker, or a hand, wrote to registers that many
 * share must keep nobody from serving the other topics. */
static void give_up(struct cluster_starter *st, int i, const char *why)
{
    log_error("%s; topic %s is not served until its registers are right", why, st->names[i]);
    st->broken = xreallocarray(st->broken, (size_t)st->n_broken + 1, sizeof(*st->broken));
    st->broken[st->n_broken++] = xstrdup(st->names[i]);
    topic_load_done(&st->loads[i]);
}

/* Some topic that has the id of another one, and that one; false: there is none. */
static bool find_twins(const struct cluster_starter *st, int *ret_a, int *ret_b)
{
    CLEANUP(freep) const struct topic_load **by_id = xcalloc((size_t)st->n + 1, sizeof *by_id);

    for (int i = 0; i < st->n; i++)
        by_id[i] = &st->loads[i];
    qsort(by_id, (size_t)st->n, sizeof *by_id, compare_loads);
    for (int i = 1; i < st->n; i++) {
        if (!uuid_eq(&by_id[i - 1]->shape.id, &by_id[i]->shape.id))
            continue;
        *ret_a = (int)(by_id[i - 1] - st->loads);
        *ret_b = (int)(by_id[i] - st->loads);
        return true;
    }
    return false;
}

static void drop_missing(struct cluster_starter *st);

/* A topic is its id: no two have the same. Nobody knows which of two it is, so neither is served. */
static int check_ids(struct cluster_starter *st, char *err, size_t err_size)
{
    int a, b;

    while (find_twins(st, &a, &b)) {
        snprintf(err, err_size, "registers: the topics %s and %s have one topic id: put back a copy of them", st->names[a],
                 st->names[b]);
        if (st->cluster->deps.alone)
            return -EBADMSG;
        give_up(st, a, err);
        give_up(st, b, err);
        drop_missing(st);
    }
    return 0;
}

enum { LOAD_TRIES = 20 }; /* of a topic that others are changing */

/* What vanishes while it is read is being deleted, when others may be at it. */
static int load_one(struct cluster *c, const char *name, struct topic_load *ret, char *err, size_t err_size)
{
    static const struct topic_wants all = { .what = TOPIC_ALL };
    int tries = c->deps.alone ? 1 : LOAD_TRIES;

    topic_load(c, name, c->image, &all, false, ret);
    while (ret->rc == -EAGAIN && --tries > 0) {
        topic_load_done(ret);
        topic_load(c, name, c->image, &all, false, ret);
    }
    if (ret->rc == -EAGAIN) {
        snprintf(err, err_size,
                 "registers: topic %s is incomplete, a register of it or of its partitions is missing: put back a "
                 "copy of the registers",
                 name);
        return -EBADMSG;
    }
    if (ret->rc < 0)
        snprintf(err, err_size, "registers: topic %s cannot be read: %s", name, topic_load_why(ret));
    return ret->rc;
}

/* Of those that are gone, or not there yet, only the slot stays that will hear of their end. */
static void drop_missing(struct cluster_starter *st)
{
    int n = 0;

    for (int i = 0; i < st->n; i++) {
        if (st->loads[i].found) {
            st->names[n] = st->names[i];
            st->loads[n++] = st->loads[i];
            continue;
        }
        topic_load_done(&st->loads[i]);
        free(st->names[i]);
    }
    st->n = n;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int load_all(struct cluster_starter *st, char *err, size_t err_size)
{
    struct cluster *c = st->cluster;

    int rc = registers_children_wait(c->deps.registers, "/brokers/topics", &st->names, &st->n);
    if (rc < 0)
        return fail(rc, "list the topics", err, err_size);
    st->loads = xcalloc((size_t)st->n + 1, sizeof *st->loads);
    for (int i = 0; i < st->n && rc == 0; i++) {
        rc = load_one(c, st->names[i], &st->loads[i], err, err_size);
        if (rc != -EBADMSG || c->deps.alone)
            continue;
        give_up(st, i, err);
        rc = 0;
    }
    if (rc < 0)
        return rc;
    drop_missing(st);
    rc = check_ids(st, err, err_size);
    if (st->n_broken > 0)
        qsort(st->broken, (size_t)st->n_broken, sizeof(*st->broken), compare_names);
    return rc;
}

/* On the meta loop: all slots begin to open their logs at once. */
static void open_all(void *arg)
{
    struct cluster_starter *st = arg;
    struct cluster *c = st->cluster;

    c->starting_left = st->n;
    c->start_topics = xcalloc((size_t)st->n + 1, sizeof(*c->start_topics));
    for (int i = 0; i < st->n; i++) {
        struct topic_slot *s = slot_get(c, st->names[i]);
        s->load = st->loads[i];
        memset(&st->loads[i], 0, sizeof st->loads[i]);
        s->image = cluster_image_get(c);
        slot_open_loaded(s);
    }
    for (int i = 0; i < st->n_broken; i++)
        slot_get(c, st->broken[i])->broken = true;
}

/* ---- logs that are newer than the registers ---- */

/* An old copy of the registers knows older epochs than the log, which would then take nothing more: R1 asks for an
 * epoch that nobody has used. */
static int raise_epoch(struct cluster *c, const char *topic, int32_t id, int32_t latest, struct cluster_partition **p)
{
    struct partition_register r;
    struct register_ops_list l = { 0 };
    char writer[64];

    cluster_partition_register(*p, &r);
    r.st.leader_epoch = latest + 1;
    cluster_writer(c, writer);
    ops_add(&l, REGISTER_CHECK, xasprintf("/klog/broker_epoch/%d", c->deps.id), NULL, c->broker_epoch);
    ops_add(&l, REGISTER_SET, xasprintf("/brokers/topics/%s/partitions/%d/state", topic, id),
            partition_register_encode(&r, writer), r.st.version);
    int rc = registers_multi_wait(c->deps.registers, l.ops, l.n);
    if (rc == 0)
        replace(p, &r, l.ops[1].new_version);
    ops_done(&l);
    return rc;
}

static int follow_log(struct cluster *c, struct cluster_topic *t, int32_t id)
{
    struct cluster_partition *p = atomic_load_explicit(&t->partitions[id], memory_order_relaxed);
    struct partition *pt = partitions_get(c->deps.partitions, kstr_of(t->name), id);
    int32_t latest = pt == NULL || pt->log == NULL ? -1 : plog_epoch_latest(pt->log);
    struct partition_register r;
    int rc = 0;

    if (p->leader == c->deps.id && latest > p->leader_epoch && latest < INT32_MAX - 1) {
        log_error("%s-%d: its log has leader epoch %d, its register only %d: the registers are an older copy; it goes on "
                  "in epoch %d",
                  t->name, id, latest, p->leader_epoch, latest + 1);
        rc = raise_epoch(c, t->name, id, latest, &p);
        atomic_store_explicit(&t->partitions[id], p, memory_order_relaxed);
        cluster_partition_register(p, &r);
        if (rc == 0)
            partition_set_state(pt, &r.st);
    }
    partition_unref(pt);
    return rc;
}

static int follow_logs(struct cluster *c)
{
    int rc = 0;

    for (size_t i = 0; i < c->n_start_topics && rc == 0; i++)
        for (int32_t p = 0; p < c->start_topics[i]->n_partitions && rc == 0; p++)
            rc = follow_log(c, c->start_topics[i], p);
    return rc;
}

static void publish_all(void *arg)
{
    struct cluster *c = arg;

    cluster_publish_topics(c, c->start_topics, c->n_start_topics);
    c->start_topics = NULL;
    c->n_start_topics = 0;
}

int cluster_start_topics(struct cluster_starter *st, char *err, size_t err_size)
{
    struct cluster *c = st->cluster;

    int rc = load_all(st, err, err_size);
    if (rc < 0)
        return rc;
    rc = cluster_clear_orphans(st, err, err_size);
    if (rc < 0)
        return rc;
    if (c->deps.alone) /* else each is elected, when all of them are known */
        rc = bump_all(st);
    if (rc < 0)
        return fail(rc, "begin new leader epochs", err, err_size);

    loop_call(c->deps.loop, open_all, st);
    if (st->n > 0)
        latch_wait(&c->started);
    if (c->deps.alone)
        rc = follow_logs(c);
    loop_call(c->deps.loop, publish_all, c);
    return rc < 0 ? fail(rc, "begin new leader epochs", err, err_size) : 0;
}

void cluster_starter_done(struct cluster_starter *st)
{
    for (int i = 0; i < st->n; i++)
        topic_load_done(&st->loads[i]);
    free(st->loads);
    registers_names_free(st->names, st->n);
    registers_names_free(st->broken, st->n_broken);
}
