/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What klogfs tells those who watch it, by HTTP on -o http.listener: /metrics for Prometheus, /healthz and /readyz. Without the
 * option there is no meter, and nothing is counted: requests and answers then never come by here.
 */
#ifndef KLOG_FUSE_METER_H
#define KLOG_FUSE_METER_H

#include <stddef.h>
#include <stdint.h>

#include "fuse/base/fuse_api.h"

struct meter;
struct mount;

/* Listens at the mount's http_listener and answers from now on; the mount's options, world and loop are there, and the loop's
 * thread is the caller's. NULL and one line in err. */
struct meter *meter_new(struct mount *m, char *err, size_t err_size);
/* All requests of the session and their answers are counted from now on. Between mounting and the first request. 0, or -errno. */
int meter_attach(struct meter *t, struct fuse_session *se);
/* The mount is served, until meter_stop(): /readyz says so. Loop's thread. */
void meter_serve(struct meter *t);
void meter_stop(struct meter *t); /* NULL is fine */
/* Ends the HTTP server; what is counted still may be. Before meter_free(), and before the loop goes. NULL is fine. */
void meter_close(struct meter *t);
void meter_free(struct meter *t); /* nobody answers any more. NULL is fine */
/* struct client_config's sent(), with the meter. */
void meter_sent(void *meter, int16_t api_key);

#endif
