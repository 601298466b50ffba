/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lasting watches over subtrees, made of ZooKeeper's, which fire once and see one node each. For every node below a watch one
 * data watch and one child watch are armed, and armed again before anybody is told that they fired, so that who reads because
 * he was told reads behind the new watch and misses nothing.
 *
 * A sweep arms what is there when a watch is set or a connection is new; whoever wants to read waits for its end (swept), and
 * then nothing changes unseen. What appears later is told of when its own watches are armed. Arming goes on with a bounded
 * number of requests under way, so that ten thousand nodes hold up nobody.
 *
 * Pure: asks for watches through its table, is given answers and events; knows no ZooKeeper. One thread.
 */
#ifndef KLOG_DAEMON_REGISTER_WATCHES_H
#define KLOG_DAEMON_REGISTER_WATCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

struct watch_node;
TAILQ_HEAD(watch_node_list, watch_node);

/* What a request is for; comes back with its answer. An answer of an earlier connection is nothing any more. */
struct watch_ask {
    unsigned connection;
    bool sweep;
};

/* Requests are made in the order of these calls. */
struct register_watches_env {
    void *arg;
    void (*arm_data)(void *arg, const char *path, struct watch_ask ask);     /* -> register_watches_on_data */
    void (*arm_children)(void *arg, const char *path, struct watch_ask ask); /* -> register_watches_on_children */
    void (*disarm)(void *arg, const char *path); /* both, of our side alone: there is no connection */
    void (*swept)(void *arg);
};

struct register_watch {
    char *path;
    void (*cb)(void *arg, const char *path);
    void *arg;
    bool dead; /* removed while callbacks run; freed after them */
    TAILQ_ENTRY(register_watch) link;
};

struct register_watches {
    struct register_watches_env env;
    TAILQ_HEAD(, register_watch) watches;
    struct watch_node *by_path;                   /* uthash: all nodes */
    struct watch_node_list waiting, armed, loose; /* each node is in one: to be armed; armed or being armed; neither */
    size_t under_way;                             /* requests of sweeps, and of what was found since */
    size_t sweep_left;                            /* requests of sweeps under way, and nodes that wait for one */
    unsigned connection; /* counts them */
    bool connected;
    int telling; /* depth of callbacks */
};

enum register_watch_event { WATCH_CREATED, WATCH_DELETED, WATCH_CHANGED, WATCH_CHILD };

void register_watches_init(struct register_watches *ws, const struct register_watches_env *env);
void register_watches_done(struct register_watches *ws);

struct register_watch *register_watches_add(struct register_watches *ws, const char *path,
                                            void (*cb)(void *arg, const char *path), void *arg);
void register_watches_remove(struct register_watches *ws, struct register_watch *w);

/* A sweep begins; swept() may come inside the call. */
void register_watches_connected(struct register_watches *ws);
/* session_lost: the watches are gone with it; else some are armed still, until register_watches_disarm(). */
void register_watches_disconnected(struct register_watches *ws, bool session_lost);
/* Takes back at most n nodes' watches, so that the next connection begins without. True: there are more. Only while it is
 * not connected. */
bool register_watches_disarm(struct register_watches *ws, int n);
bool register_watches_sweeping(const struct register_watches *ws);
/* Tells each watch that anything below it may have changed. */
void register_watches_tell_all(struct register_watches *ws);

/* rc: 0, -ENOENT, or another error: nothing is armed. */
void register_watches_on_data(struct register_watches *ws, const char *path, struct watch_ask ask, int rc);
void register_watches_on_children(struct register_watches *ws, const char *path, struct watch_ask ask, int rc,
                                  const char *const *names, int n);
void register_watches_on_event(struct register_watches *ws, enum register_watch_event ev, const char *path);

#endif
