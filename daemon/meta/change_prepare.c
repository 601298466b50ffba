/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a change of a topic must fulfil, and the register operations it becomes. Meta loop; no I/O. The image
 * is the newest, and the topic's slot lets one change through at a time; registers' versions guard against
 * other brokers.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/meta/change.h"
#include "daemon/meta/config_ops.h"
#include "daemon/meta/placement.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"

enum kerr change_refuse(struct change *ch, enum kerr err, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(ch->text, sizeof ch->text, fmt, ap);
    va_end(ap);
    return err;
}

static const struct cluster_topic *topic_of(struct cluster *c, const struct change *ch)
{
    return cluster_image_topic(c->image, kstr_of(ch->pub.topic));
}

static bool is_offsets_topic(const struct change *ch)
{
    return strcmp(ch->pub.topic, OFFSETS_TOPIC) == 0;
}

/* R2: only this incarnation of the broker may write. */
static void add_fence(struct cluster *c, struct change *ch)
{
    ops_add(&ch->ops, REGISTER_CHECK, xasprintf("/klog/broker_epoch/%d", c->deps.id), NULL,
            c->broker_epoch);
}

/* ---- replicas ---- */

static enum kerr check_assigned(struct cluster *c, struct change *ch, const int32_t *list, int32_t n_expected)
{
    int32_t n = 0;

    for (; list[n] >= 0; n++) {
        if (cluster_image_broker(c->image, list[n]) == NULL)
            return change_refuse(ch, KERR_INVALID_REPLICA_ASSIGNMENT,
                                 "the assignment names broker %d, which is not there", list[n]);
        for (int32_t i = 0; i < n; i++)
            if (list[i] == list[n])
                return change_refuse(ch, KERR_INVALID_REPLICA_ASSIGNMENT,
                                     "the assignment names broker %d twice for one "
                                     "partition",
                                     list[n]);
    }
    if (n == 0 || n > REPLICA_MAX || n != n_expected)
        return change_refuse(ch, KERR_INVALID_REPLICA_ASSIGNMENT,
                             "every partition needs the same number of replicas, "
                             "1 to %d",
                             REPLICA_MAX);
    return KERR_NONE;
}

int32_t change_list_length(const int32_t *list)
{
    int32_t n = 0;

    while (list[n] >= 0)
        n++;
    return n;
}

static enum kerr check_assignment(struct cluster *c, struct change *ch, int32_t n_replicas)
{
    enum kerr err = KERR_NONE;

    for (int32_t i = 0; i < ch->pub.n_assignment && err == KERR_NONE; i++)
        err = check_assigned(c, ch, ch->pub.assignment[i], n_replicas);
    return err;
}

/* Which broker gets the first leader depends on the topic's name, so that the leaders of many small topics spread. */
static uint32_t seed_of(const char *topic)
{
    uint32_t seed = 0;

    for (const char *p = topic; *p != '\0'; p++)
        seed = seed * 31 + (uint8_t)*p;
    return seed;
}

/* All replicas are in sync, there is nothing to be behind of. */
static void fill_partition(struct cluster *c, struct partition_register *r)
{
    struct partition_state *st = &r->st;

    st->n_isr = st->n_replicas;
    memcpy(st->isr, st->replicas, sizeof st->isr);
    for (int32_t i = 0; i < st->n_isr; i++)
        st->isr_be[i] = cluster_image_broker(c->image, st->isr[i])->epoch;
    st->leader = st->replicas[0];
    st->leader_be = st->isr_be[0];
}

static void add_partition(struct change *ch, int32_t id, const char *text)
{
    ops_add(&ch->ops, REGISTER_CREATE, xasprintf("/brokers/topics/%s/partitions/%d", ch->pub.topic, id), NULL, 0);
    ops_add(&ch->ops, REGISTER_CREATE, xasprintf("/brokers/topics/%s/partitions/%d/state", ch->pub.topic, id),
            xstrdup(text), 0);
}

/* Registers of partitions with the same replicas are the same: thousands are not encoded one by one on the meta loop. */
static void add_partitions(struct cluster *c, struct change *ch, int32_t from, int32_t to, int32_t n_replicas)
{
    CLEANUP(freep) char *text = NULL;
    struct partition_register r = { .st.n_replicas = n_replicas };
    int32_t before[REPLICA_MAX];
    size_t bytes = (size_t)n_replicas * sizeof before[0];
    struct placement *pl = placement_new(c->image->brokers, c->image->n_brokers, seed_of(ch->pub.topic));
    char writer[64];

    cluster_writer(c, writer);
    for (int32_t id = from; id < to; id++) {
        if (ch->pub.assignment != NULL)
            memcpy(r.st.replicas, ch->pub.assignment[id - from], bytes);
        else
            placement_of(pl, id, n_replicas, r.st.replicas);
        if (text == NULL || memcmp(r.st.replicas, before, bytes) != 0) {
            fill_partition(c, &r);
            free(text);
            text = partition_register_encode(&r, writer);
            memcpy(before, r.st.replicas, bytes);
        }
        add_partition(ch, id, text);
    }
    placement_free(pl);
}

/* ---- create ---- */

static enum kerr check_new_name(struct cluster *c, struct change *ch)
{
    const char *name = ch->pub.topic;

    if (topic_of(c, ch) != NULL)
        return change_refuse(ch, KERR_TOPIC_ALREADY_EXISTS, "the topic %s is there already", name);
    for (size_t i = 0; i < c->image->n_topics; i++)
        if (topic_names_collide(name, c->image->topics[i]->name))
            return change_refuse(ch, KERR_INVALID_TOPIC_EXCEPTION,
                                 "the name %s differs from the topic %s only in . and _", name,
                                 c->image->topics[i]->name);
    for (struct topic_slot *s = c->slots; s != NULL; s = s->hh.next) {
        const struct change *other = TAILQ_FIRST(&s->changes);
        if (other != NULL && other != ch && other->begun && topic_names_collide(name, s->name))
            return change_refuse(ch, KERR_INVALID_TOPIC_EXCEPTION,
                                 "the name %s differs from the topic %s only in . and _", name, s->name);
    }
    return KERR_NONE;
}

static enum kerr check_new_counts(struct cluster *c, struct change *ch)
{
    struct cluster_change *pub = &ch->pub;
    const struct broker_config *cfg = &c->image->defaults->config;

    if (pub->assignment != NULL && (pub->n_partitions != -1 || pub->replication_factor != -1))
        return change_refuse(ch, KERR_INVALID_REQUEST, "give either counts or an assignment, not both");
    if (pub->assignment != NULL) {
        pub->n_partitions = pub->n_assignment;
        pub->replication_factor = change_list_length(pub->assignment[0]);
    }
    if (pub->n_partitions == -1)
        pub->n_partitions = cfg->num_partitions;
    if (pub->replication_factor == -1)
        pub->replication_factor = cfg->default_replication_factor;

    if (pub->n_partitions <= 0 || pub->n_partitions > CLUSTER_PARTITIONS_MAX)
        return change_refuse(ch, KERR_INVALID_PARTITIONS, "a topic has 1 to %d partitions, not %d",
                             CLUSTER_PARTITIONS_MAX, pub->n_partitions);
    if (pub->assignment != NULL)
        return check_assignment(c, ch, pub->replication_factor);
    if (pub->replication_factor <= 0 || pub->replication_factor > REPLICA_MAX ||
        (size_t)pub->replication_factor > c->image->n_brokers)
        return change_refuse(ch, KERR_INVALID_REPLICATION_FACTOR,
                             "the replication factor %d is not possible: brokers that "
                             "are there=%zu",
                             pub->replication_factor, c->image->n_brokers);
    return KERR_NONE;
}

/* The settings after the change, checked; *ret_text is the register's new value. */
static enum kerr settle_config(struct cluster *c, struct change *ch, const struct topic_config *before,
                               char **ret_text)
{
    struct config_settings s = { 0 };
    char err[320];
    enum kerr kerr = KERR_NONE;

    if (before != NULL && !ch->pub.replace)
        s.entries = topic_config_entries(before, &s.n);
    struct topic_config *plain = topic_config_new(&c->image->defaults->config, NULL, 0, err, sizeof err);
    KCHECK(plain != NULL);
    int rc =
        config_settings_apply(&s, &topic_config_table, plain, ch->pub.ops, ch->pub.n_ops, err, sizeof err);
    topic_config_unref(plain);

    struct topic_config *after =
        rc < 0 ? NULL : topic_config_new(&c->image->defaults->config, s.entries, s.n, err, sizeof err);
    if (after == NULL)
        kerr = change_refuse(ch, KERR_INVALID_CONFIG, "%s", err);
    else if (is_offsets_topic(ch) && (!after->compact || after->delete_))
        kerr = change_refuse(ch, KERR_INVALID_CONFIG,
                             "cleanup.policy of %s must be compact: anything else would let the positions of groups "
                             "expire", OFFSETS_TOPIC);
    else
        *ret_text = config_register_encode(s.entries, s.n, before == NULL ? NULL : before->extra);
    topic_config_unref(after);
    config_settings_done(&s);
    return kerr;
}

/* ---- the topic of the groups' positions ---- */

/* Instead of whatever the change says of the key. */
static void set_key(struct cluster_change *pub, const char *key, const char *value)
{
    int32_t kept = 0;

    for (int32_t i = 0; i < pub->n_ops; i++) {
        if (strcmp(pub->ops[i].key, key) != 0) {
            pub->ops[kept++] = pub->ops[i];
            continue;
        }
        free(pub->ops[i].key);
        free(pub->ops[i].value);
    }
    pub->n_ops = kept;
    cluster_change_add_op(pub, CONFIG_OP_SET, kstr_of(key), kstr_of(value));
}

/* Whoever asks for it, it becomes as the broker needs it: positions must not expire with their records, and how many
 * partitions it has decides where each group is looked for. What else was asked for stays. */
static void settle_offsets_topic(struct cluster *c, struct change *ch)
{
    const struct broker_config *cfg = &c->image->defaults->config;
    struct cluster_change *pub = &ch->pub;
    char segment_bytes[16];

    snprintf(segment_bytes, sizeof segment_bytes, "%d", cfg->offsets_topic_segment_bytes);
    cluster_change_unassign(pub);
    pub->n_partitions = cfg->offsets_topic_num_partitions;
    pub->replication_factor = MIN(cfg->offsets_topic_replication_factor, (int32_t)c->image->n_brokers);
    set_key(pub, "cleanup.policy", "compact");
    set_key(pub, "compression.type", "producer");
    set_key(pub, "segment.bytes", segment_bytes);
}

enum kerr change_prepare_create(struct cluster *c, struct change *ch)
{
    char *config = NULL;
    const char *name = ch->pub.topic;

    enum kerr err = check_new_name(c, ch);
    if (err == KERR_NONE && is_offsets_topic(ch))
        settle_offsets_topic(c, ch);
    if (err == KERR_NONE)
        err = check_new_counts(c, ch);
    if (err == KERR_NONE)
        err = settle_config(c, ch, NULL, &config);
    if (err != KERR_NONE)
        return err;

    uuid_random(c->deps.world->random, &ch->pub.topic_id);
    add_fence(c, ch);
    ops_add(&ch->ops, REGISTER_CREATE, xasprintf("/config/topics/%s", name), config, 0);
    ops_add(&ch->ops, REGISTER_CREATE, xasprintf("/brokers/topics/%s", name),
            topic_register_encode(&(struct topic_register){ .id = ch->pub.topic_id, .unfinished_from = -1 }), 0);
    ops_add(&ch->ops, REGISTER_CREATE, xasprintf("/brokers/topics/%s/partitions", name), NULL, 0);
    add_partitions(c, ch, 0, ch->pub.n_partitions, ch->pub.replication_factor);
    change_divide(c, ch, NULL, 0);
    return KERR_NONE;
}

/* ---- delete ---- */

/* The notes come first: whatever stops the deletion half-way, its logs may go. Each broker that may have some takes its own
 * back when they have gone. */
static void add_notes(struct cluster *c, struct change *ch, const struct cluster_topic *t)
{
    char id[UUID_TEXT_LEN + 1];

    uuid_text(&t->id, id);
    ops_add(&ch->ops, REGISTER_CREATE, xasprintf("/admin/delete_topics/%s", id), xstrdup(t->name), 0);
    if (c->deps.alone)
        return;
    CLEANUP(freep) int32_t *brokers = NULL;
    int32_t n = cluster_topic_brokers(t, &brokers);
    for (int32_t i = 0; i < n; i++)
        ops_add(&ch->ops, REGISTER_CREATE, xasprintf("/admin/delete_topics/%s/%d", id, brokers[i]), NULL, 0);
}

static void add_deletion(struct cluster *c, struct change *ch, const struct cluster_topic *t)
{
    add_notes(c, ch, t);
    for (int32_t i = 0; i < t->n_partitions; i++) {
        ops_add(&ch->ops, REGISTER_DELETE, xasprintf("/brokers/topics/%s/partitions/%d/state", t->name, i),
                NULL, REGISTER_ANY_VERSION);
        ops_add(&ch->ops, REGISTER_DELETE, xasprintf("/brokers/topics/%s/partitions/%d", t->name, i), NULL,
                REGISTER_ANY_VERSION);
    }
    ops_add(&ch->ops, REGISTER_DELETE, xasprintf("/brokers/topics/%s/partitions", t->name), NULL,
            REGISTER_ANY_VERSION);
    ops_add(&ch->ops, REGISTER_DELETE, xasprintf("/brokers/topics/%s", t->name), NULL, REGISTER_ANY_VERSION);
    ops_add(&ch->ops, REGISTER_DELETE, xasprintf("/config/topics/%s", t->name), NULL, REGISTER_ANY_VERSION);
    change_divide(c, ch, t, 0);
}

enum kerr change_prepare_delete(struct cluster *c, struct change *ch)
{
    const struct cluster_topic *t = topic_of(c, ch);

    if (t == NULL)
        return KERR_UNKNOWN_TOPIC_OR_PARTITION;
    if (!uuid_is_zero(&ch->pub.topic_id) && !uuid_eq(&ch->pub.topic_id, &t->id))
        return KERR_UNKNOWN_TOPIC_ID;
    if (is_offsets_topic(ch))
        return change_refuse(ch, KERR_INVALID_TOPIC_EXCEPTION,
                             "%s holds the positions of all groups and cannot be deleted; delete groups instead",
                             t->name);
    if (!c->deps.config->delete_topic_enable)
        return change_refuse(ch, KERR_TOPIC_DELETION_DISABLED, "delete.topic.enable is false on this broker");

    add_fence(c, ch);
    add_deletion(c, ch, t);
    return KERR_NONE;
}

/* ---- grow ---- */

enum kerr change_prepare_grow(struct cluster *c, struct change *ch)
{
    const struct cluster_topic *t = topic_of(c, ch);

    if (t == NULL)
        return KERR_UNKNOWN_TOPIC_OR_PARTITION;
    if (is_offsets_topic(ch))
        return change_refuse(ch, KERR_INVALID_TOPIC_EXCEPTION,
                             "the number of partitions of %s says where each group's positions are, and cannot change",
                             t->name);
    int32_t n = ch->pub.n_partitions, n_replicas = cluster_topic_partition(t, 0)->n_replicas;
    if (n > CLUSTER_PARTITIONS_MAX)
        return change_refuse(ch, KERR_INVALID_PARTITIONS, "a topic has at most %d partitions",
                             CLUSTER_PARTITIONS_MAX);
    if (n <= t->n_partitions)
        return change_refuse(ch, KERR_INVALID_PARTITIONS,
                             "the topic has %d partitions already, and they can only become "
                             "more, not %d",
                             t->n_partitions, n);
    if (ch->pub.assignment != NULL && ch->pub.n_assignment != n - t->n_partitions)
        return change_refuse(ch, KERR_INVALID_REPLICA_ASSIGNMENT,
                             "the assignment has %d partitions where %d are added", ch->pub.n_assignment,
                             n - t->n_partitions);
    enum kerr err = check_assignment(c, ch, n_replicas);
    if (err != KERR_NONE)
        return err;
    if ((size_t)n_replicas > c->image->n_brokers)
        return change_refuse(ch, KERR_INVALID_REPLICATION_FACTOR,
                             "the topic has %d replicas, brokers that are there=%zu", n_replicas,
                             c->image->n_brokers);

    add_fence(c, ch);
    add_partitions(c, ch, t->n_partitions, n, n_replicas);
    change_divide(c, ch, t, t->n_partitions);
    return KERR_NONE;
}

/* ---- configure ---- */

enum kerr change_prepare_configure(struct cluster *c, struct change *ch)
{
    const struct cluster_topic *t = topic_of(c, ch);
    char *text = NULL;

    if (t == NULL)
        return KERR_UNKNOWN_TOPIC_OR_PARTITION;
    enum kerr err = settle_config(c, ch, t->config, &text);
    if (err != KERR_NONE)
        return err;

    add_fence(c, ch);
    ops_add(&ch->ops, REGISTER_SET, xasprintf("/config/topics/%s", ch->pub.topic), text, t->config_version);
    return KERR_NONE;
}
