/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topics as the mount knows them: a name and an id. A topic deleted and made again under its name is another
 * one: nodes of the old one answer ESTALE. Metadata is asked for again when it is older than a second. Loop's
 * thread.
 */
#ifndef KLOG_FUSE_TOPICS_H
#define KLOG_FUSE_TOPICS_H

#include <sys/queue.h>
#include <uthash.h>

#include "lib/base/uuid.h"
#include "lib/client/client.h"

struct mount;
struct topics;

/* What Kafka allows without a topic's own word. */
#define MAX_MESSAGE_BYTES_DEFAULT 1048588

/* What was proved so short a time ago holds still: nothing is deleted, and made anew, in less. */
#define SURE_NS 1000000

/* Somebody who is told once that a topic is gone; taken off the list before cb. */
struct topic_listener {
    void (*cb)(struct topic_listener *l);
    bool listening;                  /* private */
    LIST_ENTRY(topic_listener) link; /* private */
};

struct topic {
    int refs;
    struct mount *mount;
    char *name;
    struct uuid id;            /* zero: the broker tells no ids */
    bool gone;                 /* deleted, or another stands under its name */
    int64_t sure_ns;           /* when a broker last proved that it is there; 0 never */
    int32_t max_message_bytes; /* of its configuration; the default until it is known */
    int64_t limits_ms;         /* when that was asked for, 0 never, on the loop's clock */
    bool doubted;              /* it is being asked whether it is gone */
    uint32_t turn;             /* `any`: whose turn it is */
    LIST_HEAD(, topic_listener) listeners;
    UT_hash_handle by_name; /* in the table unless gone */
};

struct topics *topics_new(struct mount *m);
void topics_free(struct topics *t);

/* The topic that the metadata describes, with a reference for the caller. */
struct topic *topic_of(struct mount *m, const struct client_topic *ct);
struct topic *topic_ref(struct topic *t); /* NULL is fine */
void topic_vanish(struct topic *t);      /* a broker said so: its id is of no topic any more */
void topic_unref(struct topic *t);

void topic_listen(struct topic *t, struct topic_listener *l);
void topic_unlisten(struct topic_listener *l);

/* A broker does not know the topic: has it gone? Asks, and what it finds shows in t->gone. */
void topic_doubt(struct topic *t);
/* It has: what stands in the metadata now was asked for since. */
void topic_judge(struct topic *t);

struct topics_wait {
    /* 0, or -ENOENT: no such topic, or -errno. client_topic() and client_each_topic() then have the metadata.
     */
    void (*cb)(struct topics_wait *w, int rc);
    char *name;                   /* private; NULL: all */
    bool known_will_do;           /* private: when the brokers are missed, what is known answers */
    LIST_ENTRY(topics_wait) link; /* private */
};
/* Has the metadata of one topic (or of all: NULL) made at most max_age_ms old. cb may run before this
 * returns. */
void topics_ask(struct mount *m, struct topics_wait *w, const char *name, int64_t max_age_ms);

/* cb when the topic's limits are known well enough (asks for them when they are not); may run before this
 * returns. */
struct limits_wait {
    void (*cb)(struct limits_wait *w);
};
void topic_limits_ask(struct topic *t, struct limits_wait *w);

#endif
