/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The listeners, and the sessions on every reactor. Addresses are bound first, before the logs are opened, so
 * that a second daemon fails at once; connections are accepted only when the broker can answer.
 */
#ifndef KLOG_DAEMON_SERVER_H
#define KLOG_DAEMON_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

struct broker;
struct server;

/* Binds every listener of the configuration; NULL and one line in err. */
struct server *server_new(struct broker *b, char *err, size_t err_size);
/* max.connections from now on; connections that are there stay. Any thread. NULL is fine. */
void server_limit_connections(struct server *s, int32_t max);
/* Listens and accepts from now on. 0 or -errno with one line in err. */
int server_start(struct server *s, char *err, size_t err_size);
/* Accepts nothing more, answers parked requests, lets the others finish and their answers leave, closes;
 * after some seconds it stops waiting. Blocks. */
void server_stop(struct server *s);
void server_free(struct server *s);

/* "127.0.0.1:9092, [::1]:9092", with the ports that were bound. */
void server_addresses(const struct server *s, struct bytebuf *ret);

#endif
