/* SPDX-License-Identifier: Apache-2.0 */
/* Names and ids of topics, and when to ask for them again; see topics.h. Loop's thread. */
#include "fuse/cluster/topics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/base/missed.h"
#include "fuse/base/mount.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

LIST_HEAD(topics_wait_list, topics_wait);

/* A refresh on its way, and who waits for it. */
struct flight {
    struct mount *mount;
    char *name; /* NULL: all */
    struct client_refresh refresh;
    struct topics_wait_list waiting;
    LIST_ENTRY(flight) link;
};

struct topics {
    struct topic *by_name;
    LIST_HEAD(, flight) flights;
};

struct topics *topics_new(struct mount *m)
{
    (void)m;
    struct topics *t = xcalloc(1, sizeof *t);
    LIST_INIT(&t->flights);
    return t;
}

void topics_free(struct topics *t)
{
    if (t == NULL)
        return;
    KCHECK(LIST_EMPTY(&t->flights));
    HASH_CLEAR(by_name, t->by_name);
    free(t);
}

/* ---- identity ---- */

void topic_listen(struct topic *t, struct topic_listener *l)
{
    l->listening = !t->gone;
    if (l->listening)
        LIST_INSERT_HEAD(&t->listeners, l, link);
}

void topic_unlisten(struct topic_listener *l)
{
    if (l->listening)
        LIST_REMOVE(l, link);
    l->listening = false;
}

static void listeners_tell(struct topic *t)
{
    struct topic_listener *l;
    topic_ref(t);
    while ((l = LIST_FIRST(&t->listeners)) != NULL) {
        topic_unlisten(l);
        l->cb(l);
    }
    topic_unref(t);
}

void topic_vanish(struct topic *t)
{
    if (t->gone)
        return;
    HASH_DELETE(by_name, t->mount->topics->by_name, t);
    t->gone = true;
    if (t->refs > 0)
        listeners_tell(t);
}

static struct topic *topic_new(struct mount *m, const char *name, const struct uuid *id)
{
    struct topic *t = xcalloc(1, sizeof *t);
    t->refs = 1;
    t->mount = m;
    t->name = xstrdup(name);
    t->id = *id;
    t->max_message_bytes = MAX_MESSAGE_BYTES_DEFAULT;
    LIST_INIT(&t->listeners);
    HASH_ADD_KEYPTR(by_name, m->topics->by_name, t->name, strlen(t->name), t);
    return t;
}

static struct topic *topic_by_name(struct mount *m, const char *name)
{
    struct topic *t;
    HASH_FIND(by_name, m->topics->by_name, name, strlen(name), t);
    return t;
}

struct topic *topic_of(struct mount *m, const struct client_topic *ct)
{
    struct topic *t = topic_by_name(m, ct->name);
    if (t != NULL && uuid_eq(&t->id, &ct->id))
        return topic_ref(t);
    if (t != NULL)
        topic_vanish(t);
    return topic_new(m, ct->name, &ct->id);
}

struct topic *topic_ref(struct topic *t)
{
    if (t != NULL)
        t->refs++;
    return t;
}

void topic_unref(struct topic *t)
{
    if (t == NULL || --t->refs > 0)
        return;
    topic_vanish(t);
    free(t->name);
    free(t);
}

/* What the mount holds of a topic is compared with what the broker says now. */
static void topic_compare(struct mount *m, const char *name)
{
    struct topic *t = topic_by_name(m, name);
    if (t != NULL)
        topic_judge(t);
}

void topic_judge(struct topic *t)
{
    const struct client_topic *ct = client_topic(t->mount->client, t->name);
    if (ct == NULL || ct->err == KERR_UNKNOWN_TOPIC_OR_PARTITION || !uuid_eq(&ct->id, &t->id))
        topic_vanish(t);
}

static void topics_compare(struct mount *m)
{
    struct topic *t, *next;
    HASH_ITER (by_name, m->topics->by_name, t, next)
        topic_judge(t);
}

/* ---- asking ---- */

static bool topic_known(const struct client_topic *ct)
{
    return ct != NULL && ct->err != KERR_UNKNOWN_TOPIC_OR_PARTITION &&
           ct->err != KERR_INVALID_TOPIC_EXCEPTION;
}

static int topic_rc(struct mount *m, const char *name, int rc)
{
    if (rc != 0 || name == NULL)
        return rc;
    return topic_known(client_topic(m->client, name)) ? 0 : -ENOENT;
}

static void ignore_topic(void *arg, const struct client_topic *ct)
{
    (void)arg;
    (void)ct;
}

static bool topics_fresh(struct mount *m, const char *name, int64_t max_age_ms)
{
    int64_t now = loop_now_ms(m->loop);
    if (name == NULL) {
        int64_t at = client_each_topic(m->client, ignore_topic, NULL);
        return at >= 0 && at + max_age_ms > now;
    }
    const struct client_topic *ct = client_topic(m->client, name);
    return topic_known(ct) && ct->fetched_ms + max_age_ms > now;
}

static bool same_name(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static void topics_answer(struct topics_wait *w, int rc)
{
    free(w->name);
    w->name = NULL;
    w->cb(w, rc);
}

static void on_refreshed(struct client_refresh *r, int rc)
{
    struct flight *fl = r->user;
    struct mount *m = fl->mount;
    LIST_REMOVE(fl, link);
    if (fl->name != NULL && (rc == 0 || rc == -ENOENT))
        topic_compare(m, fl->name);
    else if (rc == 0)
        topics_compare(m);
    struct topics_wait *w;
    while ((w = LIST_FIRST(&fl->waiting)) != NULL) {
        LIST_REMOVE(w, link);
        bool known = rc == -ETIMEDOUT && w->known_will_do && topics_fresh(m, fl->name, INT64_MAX / 2);
        topics_answer(w, known ? 0 : topic_rc(m, fl->name, rc));
    }
    free(fl->name);
    free(fl);
}

static struct flight *flight_begin(struct mount *m, const char *name)
{
    struct flight *fl = xcalloc(1, sizeof *fl);
    fl->mount = m;
    fl->name = name == NULL ? NULL : xstrdup(name);
    LIST_INIT(&fl->waiting);
    LIST_INSERT_HEAD(&m->topics->flights, fl, link);
    fl->refresh = (struct client_refresh){
        .topic = fl->name, .deadline_ms = mount_deadline_ms(m), .cb = on_refreshed, .user = fl
    };
    return fl;
}

void topics_ask(struct mount *m, struct topics_wait *w, const char *name, int64_t max_age_ms)
{
    w->name = name == NULL ? NULL : xstrdup(name);
    w->known_will_do = max_age_ms > 0;
    if (topics_fresh(m, name, max_age_ms) ||
        (w->known_will_do && mount_misses_brokers(m) && topics_fresh(m, name, INT64_MAX / 2))) {
        topics_answer(w, 0);
        return;
    }
    struct flight *fl;
    LIST_FOREACH (fl, &m->topics->flights, link) {
        if (same_name(fl->name, name) && max_age_ms > 0)
            break;
    }
    bool begin = fl == NULL;
    if (begin)
        fl = flight_begin(m, name);
    LIST_INSERT_HEAD(&fl->waiting, w, link);
    if (begin)
        client_refresh(m->client, &fl->refresh);
}

struct doubt {
    struct topics_wait wait;
    struct topic *topic; /* owned reference */
};

static void on_doubt(struct topics_wait *w, int rc)
{
    struct doubt *d = container_of(w, struct doubt, wait);
    (void)rc; /* on_refreshed has compared */
    d->topic->doubted = false;
    topic_unref(d->topic);
    free(d);
}

void topic_doubt(struct topic *t)
{
    if (t->gone || t->doubted || t->mount->stopping)
        return;
    struct doubt *d = xcalloc(1, sizeof *d);
    t->doubted = true;
    d->topic = topic_ref(t);
    d->wait.cb = on_doubt;
    topics_ask(t->mount, &d->wait, t->name, 0);
}
