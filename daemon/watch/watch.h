/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What klogd tells those who watch it, by HTTP on http.listener: /metrics for Prometheus, a status page at / with the two files
 * it reads (/status.json, /history.json), /healthz and /readyz.
 *
 * Everything here runs on the HTTP server's own thread. Nothing of the broker waits for it; it takes the locks of partitions
 * and groups one at a time, as a client that asks for them does.
 */
#ifndef KLOG_DAEMON_WATCH_H
#define KLOG_DAEMON_WATCH_H

#include <stddef.h>
#include <stdint.h>

struct broker_config;
struct bytebuf;
struct cluster;
struct coordinator;
struct flusher;
struct http_server;
struct logdirs;
struct partitions;
struct server;
struct workers;
struct world;

/* What it looks at. */
struct watch_sources {
    int32_t id; /* this broker's */
    const char *cluster_id;
    struct server *server;
    struct partitions *partitions;
    struct cluster *cluster;
    struct coordinator *coordinator;
    struct flusher *flusher;
    struct workers *workers;
    struct logdirs *dirs;
};

struct watch;
/* Serves at config's http.listener from now on; until watch_serve() it only says that the broker is starting. NULL and one line
 * in err. */
struct watch *watch_new(const struct world *w, const struct broker_config *config, char *err, size_t err_size);
/* The broker serves; src is copied, and what it names stays until watch_stop(). NULL is fine. */
void watch_serve(struct watch *w, const struct watch_sources *src);
/* The broker stops: /readyz says so, and nothing of the broker is looked at when this returns. NULL is fine. */
void watch_stop(struct watch *w);
void watch_free(struct watch *w); /* NULL is fine */
const char *watch_address(const struct watch *w); /* as bound; valid as long as w */

#endif
