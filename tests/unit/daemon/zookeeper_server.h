/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real ZooKeeper for a test: its own process (java), directory and port, which it keeps when it is started again. Gone with the
 * test's process.
 */
#ifndef KLOG_UNIT_ZOOKEEPER_SERVER_H
#define KLOG_UNIT_ZOOKEEPER_SERVER_H

#include <sys/types.h>

struct zookeeper_server {
    char dir[64];
    int port;
    pid_t pid; /* 0: it does not run */
};

const char *zookeeper_missing(void); /* what is not installed; NULL: nothing */
void zookeeper_server_init(struct zookeeper_server *z, int port); /* port 0: any that is free */
void zookeeper_server_start(struct zookeeper_server *z); /* until it serves */
void zookeeper_server_stop(struct zookeeper_server *z);  /* kill -9; what it has answered is on disk */
void zookeeper_server_pause(struct zookeeper_server *z);
void zookeeper_server_resume(struct zookeeper_server *z);
void zookeeper_server_done(struct zookeeper_server *z);
/* One of its four-letter words, "srvr"; the answer is the caller's to free, NULL when there is none. */
char *zookeeper_server_ask(const struct zookeeper_server *z, const char *word);
/* Ends the session that owns this ephemeral node (its whole path), as somebody who took it over. */
void zookeeper_server_end_session(const struct zookeeper_server *z, const char *path);

#endif
