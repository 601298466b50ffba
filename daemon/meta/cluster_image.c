/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images: immutable, shared by reference. A new one is made from the one before by the meta loop
 * (loops[0]'s thread) and swapped in under image_mu, which is held for a pointer copy only.
 */
#include <string.h>

#include "daemon/meta/cluster_int.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

/* ---- topics ---- */

static struct cluster_topic *topic_ref(struct cluster_topic *t)
{
    atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

void cluster_topic_unref(struct cluster_topic *t)
{
    if (t == NULL || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) > 1)
        return;
    topic_config_unref(t->config);
    free(t->partitions);
    free(t->name);
    free(t);
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
    free(d);
}

/* ---- images ---- */

static void brokers_free(struct cluster_broker *brokers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(brokers[i].host);
        free(brokers[i].rack);
    }
    free(brokers);
}

void cluster_image_put(struct cluster_image *img)
{
    if (img == NULL || atomic_fetch_sub_explicit(&img->refs, 1, memory_order_acq_rel) > 1)
        return;
    for (size_t i = 0; i < img->n_topics; i++)
        cluster_topic_unref(img->topics[i]);
    free(img->topics);
    brokers_free(img->brokers, img->n_brokers);
    cluster_defaults_unref(img->defaults);
    free(img);
}

struct cluster_image *cluster_image_get(struct cluster *c)
{
    lock_take(&c->image_mu);
    struct cluster_image *img = c->image;
    atomic_fetch_add_explicit(&img->refs, 1, memory_order_relaxed);
    lock_release(&c->image_mu);
    return img;
}

static void copy_brokers(struct cluster_image *img, const struct cluster_broker *brokers, size_t n)
{
    img->brokers = xcalloc(n, sizeof *img->brokers);
    img->n_brokers = n;
    for (size_t i = 0; i < n; i++) {
        img->brokers[i] = brokers[i];
        img->brokers[i].host = xstrdup(brokers[i].host);
        img->brokers[i].rack = brokers[i].rack == NULL ? NULL : xstrdup(brokers[i].rack);
    }
    img->controller_id = n == 0 ? -1 : brokers[0].id;
}

static struct cluster_image *image_like(const struct cluster_image *old)
{
    struct cluster_image *img = xcalloc(1, sizeof *img);

    atomic_init(&img->refs, 1);
    img->sequence = old->sequence + 1;
    copy_brokers(img, old->brokers, old->n_brokers);
    img->defaults = cluster_defaults_ref(old->defaults);
    return img;
}

static void publish(struct cluster *c, struct cluster_image *img)
{
    lock_take(&c->image_mu);
    struct cluster_image *old = c->image;
    c->image = img;
    lock_release(&c->image_mu);
    cluster_image_put(old);
}

void cluster_publish_first(struct cluster *c, struct cluster_defaults *defaults,
                           const struct cluster_broker *brokers, size_t n_brokers)
{
    struct cluster_image *img = xcalloc(1, sizeof *img);

    atomic_init(&img->refs, 1);
    img->topics = xcalloc(1, sizeof(*img->topics));
    img->defaults = cluster_defaults_ref(defaults);
    copy_brokers(img, brokers, n_brokers);
    publish(c, img);
}

static int compare_topics(const void *a, const void *b)
{
    return strcmp((*(struct cluster_topic *const *)a)->name, (*(struct cluster_topic *const *)b)->name);
}

void cluster_publish_topics(struct cluster *c, struct cluster_topic **topics, size_t n)
{
    struct cluster_image *img = image_like(c->image);

    img->topics = topics;
    img->n_topics = n;
    qsort(img->topics, n, sizeof(*img->topics), compare_topics);
    publish(c, img);
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
    struct cluster_image *img = image_like(c->image);

    img->topics = topics_without(c->image, name, &img->n_topics);
    if (t != NULL) {
        size_t at = img->n_topics++;
        for (; at > 0 && strcmp(img->topics[at - 1]->name, name) > 0; at--)
            img->topics[at] = img->topics[at - 1];
        img->topics[at] = t;
    }
    KCHECK(img->n_topics == 0 || img->topics[img->n_topics - 1] != NULL);
    publish(c, img);
}

void cluster_publish_brokers(struct cluster *c, struct cluster_defaults *defaults,
                             const struct cluster_broker *brokers, size_t n_brokers)
{
    struct cluster_image *old = c->image, *img = xcalloc(1, sizeof *img);

    atomic_init(&img->refs, 1);
    img->sequence = old->sequence + 1;
    img->defaults = cluster_defaults_ref(defaults);
    copy_brokers(img, brokers, n_brokers);
    img->topics = xcalloc(old->n_topics + 1, sizeof(*img->topics));
    img->n_topics = old->n_topics;
    for (size_t i = 0; i < old->n_topics; i++)
        img->topics[i] = topic_ref(old->topics[i]);
    publish(c, img);
}
