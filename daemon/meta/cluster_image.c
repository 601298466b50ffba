/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images: immutable, shared by reference. A new one is made from the one before by the meta loop
 * (loops[0]'s thread) and swapped in under image_mu, which is held for a pointer copy only. What has not changed is
 * shared: an image whose topics are those of the one before has the same list of them.
 *
 * One partition's register changes far more often than anything else, so that costs neither a copy of the image nor one
 * of the topic: the new state takes the old one's place in the topic that all images share. Whoever had an image may
 * still be reading the old state. It goes with the image in whose time it was replaced, and images go in
 * the order in which they came: each holds a reference on the next.
 */
#include <string.h>

#include "daemon/meta/cluster_int.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

/* ---- topics ---- */

struct cluster_topics { /* by name; immutable */
    struct cluster_topic **topics;
    size_t n;
    atomic_int refs;
};

static struct cluster_topic *topic_ref(struct cluster_topic *t)
{
    atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

void cluster_topic_unref(struct cluster_topic *t)
{
    if (t == NULL || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) > 1)
        return;
    for (int32_t i = 0; i < t->n_partitions; i++)
        cluster_partition_unref(atomic_load_explicit(&t->partitions[i], memory_order_relaxed));
    topic_config_unref(t->config);
    free(t->partitions);
    free(t->extra);
    free(t->name);
    free(t);
}

/* Takes the array and the references in it. */
static struct cluster_topics *topics_new(struct cluster_topic **topics, size_t n)
{
    struct cluster_topics *l = xcalloc(1, sizeof *l);

    l->topics = topics;
    l->n = n;
    atomic_init(&l->refs, 1);
    return l;
}

static struct cluster_topics *topics_ref(struct cluster_topics *l)
{
    atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
    return l;
}

static void topics_unref(struct cluster_topics *l)
{
    if (l == NULL || atomic_fetch_sub_explicit(&l->refs, 1, memory_order_acq_rel) > 1)
        return;
    for (size_t i = 0; i < l->n; i++)
        cluster_topic_unref(l->topics[i]);
    free(l->topics);
    free(l);
}

static int compare_to_topic(const void *key, const void *elem)
{
    const struct kstr *name = key;
    const struct cluster_topic *t = *(struct cluster_topic *const *)elem;
    int order = strncmp(name->p, t->name, (size_t)name->n);

    return order != 0 ? order : -(t->name[name->n] != '\0');
}

const struct cluster_topic *cluster_image_topic(const struct cluster_image *img, struct kstr name)
{
    if (name.n <= 0 || memchr(name.p, '\0', (size_t)name.n) != NULL)
        return NULL;
    struct cluster_topic **t =
        bsearch(&name, img->topics, img->n_topics, sizeof(*img->topics), compare_to_topic);
    return t == NULL ? NULL : *t;
}

const struct cluster_topic *cluster_image_topic_by_id(const struct cluster_image *img, const struct uuid *id)
{
    if (uuid_is_zero(id))
        return NULL;
    for (size_t i = 0; i < img->n_topics; i++)
        if (uuid_eq(&img->topics[i]->id, id))
            return img->topics[i];
    return NULL;
}

const struct cluster_broker *cluster_image_broker(const struct cluster_image *img, int32_t id)
{
    for (size_t i = 0; i < img->n_brokers; i++)
        if (img->brokers[i].id == id)
            return &img->brokers[i];
    return NULL;
}

const struct cluster_broker *cluster_image_leader(const struct cluster_image *img, const struct cluster_partition *p)
{
    const struct cluster_broker *b = p->leader < 0 ? NULL : cluster_image_broker(img, p->leader);

    return b != NULL && b->epoch <= p->leader_be ? b : NULL;
}

bool cluster_is_alive(struct cluster *c, int32_t id, int64_t epoch)
{
    if (c->deps.alone)
        return true;
    struct cluster_image *img = cluster_image_get(c);
    const struct cluster_broker *b = cluster_image_broker(img, id);
    bool alive = b != NULL && b->epoch == epoch;
    cluster_image_put(img);
    return alive;
}

/* ---- the broker's configuration ---- */

struct cluster_defaults *cluster_defaults_ref(struct cluster_defaults *d)
{
    atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
    return d;
}

void cluster_defaults_unref(struct cluster_defaults *d)
{
    if (d == NULL || atomic_fetch_sub_explicit(&d->refs, 1, memory_order_acq_rel) > 1)
        return;
    broker_config_done(&d->config);
    free(d->extra);
    free(d);
}

/* ---- brokers ---- */

struct cluster_brokers { /* immutable */
    struct cluster_broker *brokers;
    size_t n;
    atomic_int refs;
};

static struct cluster_brokers *brokers_new(const struct cluster_broker *brokers, size_t n)
{
    struct cluster_brokers *l = xcalloc(1, sizeof *l);

    l->brokers = xcalloc(n + 1, sizeof *l->brokers);
    l->n = n;
    for (size_t i = 0; i < n; i++)
        cluster_broker_copy(&l->brokers[i], &brokers[i]);
    atomic_init(&l->refs, 1);
    return l;
}

static struct cluster_brokers *brokers_ref(struct cluster_brokers *l)
{
    atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
    return l;
}

static void brokers_unref(struct cluster_brokers *l)
{
    if (l == NULL || atomic_fetch_sub_explicit(&l->refs, 1, memory_order_acq_rel) > 1)
        return;
    for (size_t i = 0; i < l->n; i++)
        cluster_broker_done(&l->brokers[i]);
    free(l->brokers);
    free(l);
}

/* ---- images ---- */

static void image_free(struct cluster_image *img)
{
    for (size_t i = 0; i < img->n_replaced; i++)
        cluster_partition_unref(img->replaced[i]);
    free(img->replaced);
    topics_unref(img->topics_of);
    brokers_unref(img->brokers_of);
    cluster_defaults_unref(img->defaults);
    free(img);
}

/* The last reference on an old image may be the last but one on those that came after it. */
void cluster_image_put(struct cluster_image *img)
{
    while (img != NULL && atomic_fetch_sub_explicit(&img->refs, 1, memory_order_acq_rel) == 1) {
        struct cluster_image *next = img->next;
        image_free(img);
        img = next;
    }
}

struct cluster_image *cluster_image_get(struct cluster *c)
{
    lock_take(&c->image_mu);
    struct cluster_image *img = c->image;
    atomic_fetch_add_explicit(&img->refs, 1, memory_order_relaxed);
    lock_release(&c->image_mu);
    return img;
}

/* Takes the references. */
static struct cluster_image *image_new(struct cluster_defaults *defaults, struct cluster_topics *topics,
                                       struct cluster_brokers *brokers)
{
    struct cluster_image *img = xcalloc(1, sizeof *img);

    atomic_init(&img->refs, 1);
    img->defaults = defaults;
    img->topics_of = topics;
    img->topics = topics->topics;
    img->n_topics = topics->n;
    img->brokers_of = brokers;
    img->brokers = brokers->brokers;
    img->n_brokers = brokers->n;
    img->controller_id = brokers->n == 0 ? -1 : brokers->brokers[0].id;
    return img;
}

static void publish(struct cluster *c, struct cluster_image *img)
{
    struct cluster_image *old = c->image;

    if (old != NULL) {
        img->sequence = old->sequence + 1;
        atomic_fetch_add_explicit(&img->refs, 1, memory_order_relaxed);
        old->next = img;
    }
    lock_take(&c->image_mu);
    c->image = img;
    lock_release(&c->image_mu);
    cluster_image_put(old);
}

void cluster_publish_first(struct cluster *c, struct cluster_defaults *defaults,
                           const struct cluster_broker *brokers, size_t n_brokers)
{
    publish(c, image_new(cluster_defaults_ref(defaults), topics_new(xcalloc(1, sizeof(struct cluster_topic *)), 0),
                         brokers_new(brokers, n_brokers)));
}

static int compare_topics(const void *a, const void *b)
{
    return strcmp((*(struct cluster_topic *const *)a)->name, (*(struct cluster_topic *const *)b)->name);
}

static void publish_list(struct cluster *c, struct cluster_topic **topics, size_t n)
{
    publish(c, image_new(cluster_defaults_ref(c->image->defaults), topics_new(topics, n),
                         brokers_ref(c->image->brokers_of)));
}

void cluster_publish_topics(struct cluster *c, struct cluster_topic **topics, size_t n)
{
    qsort(topics, n, sizeof(*topics), compare_topics);
    publish_list(c, topics, n);
}

/* The topics of the image with room for one more, without the one called name. */
static struct cluster_topic **topics_without(const struct cluster_image *old, const char *name, size_t *ret_n)
{
    struct cluster_topic **topics = xcalloc(old->n_topics + 1, sizeof(*topics));
    size_t n = 0;

    for (size_t i = 0; i < old->n_topics; i++)
        if (strcmp(old->topics[i]->name, name) != 0)
            topics[n++] = topic_ref(old->topics[i]);
    *ret_n = n;
    return topics;
}

void cluster_publish_topic(struct cluster *c, const char *name, struct cluster_topic *t)
{
    size_t n;
    struct cluster_topic **topics = topics_without(c->image, name, &n);

    if (t != NULL) {
        size_t at = n++;
        for (; at > 0 && strcmp(topics[at - 1]->name, name) > 0; at--)
            topics[at] = topics[at - 1];
        topics[at] = t;
    }
    publish_list(c, topics, n);
}

void cluster_publish_brokers(struct cluster *c, struct cluster_defaults *defaults,
                             const struct cluster_broker *brokers, size_t n_brokers)
{
    publish(c, image_new(cluster_defaults_ref(defaults), topics_ref(c->image->topics_of),
                         brokers_new(brokers, n_brokers)));
}

enum kerr cluster_elsewhere(struct cluster *c, struct kstr topic, const struct uuid *topic_id, int32_t id)
{
    bool by_name = uuid_is_zero(topic_id);
    struct cluster_image *img = cluster_image_get(c);
    const struct cluster_topic *t = by_name ? cluster_image_topic(img, topic) : cluster_image_topic_by_id(img, topic_id);
    enum kerr err = KERR_NOT_LEADER_OR_FOLLOWER;

    if (t == NULL)
        err = by_name ? KERR_UNKNOWN_TOPIC_OR_PARTITION : KERR_UNKNOWN_TOPIC_ID;
    else if (id < 0 || id >= t->n_partitions)
        err = KERR_UNKNOWN_TOPIC_OR_PARTITION;
    cluster_image_put(img);
    return err;
}

/* ---- one partition ---- */

void cluster_replace_partition(struct cluster *c, const struct cluster_topic *t, int32_t id,
                               struct cluster_partition *p)
{
    struct cluster_image *img = c->image;

    KCHECK(id >= 0 && id < t->n_partitions);
    if (img->n_replaced == img->cap_replaced) {
        img->cap_replaced = img->cap_replaced == 0 ? 4 : 2 * img->cap_replaced;
        img->replaced = xreallocarray(img->replaced, img->cap_replaced, sizeof(*img->replaced));
    }
    img->replaced[img->n_replaced++] = atomic_exchange_explicit(&t->partitions[id], p, memory_order_acq_rel);
}

void cluster_publish_same(struct cluster *c)
{
    const struct cluster_image *img = c->image;

    publish(c, image_new(cluster_defaults_ref(img->defaults), topics_ref(img->topics_of), brokers_ref(img->brokers_of)));
}
