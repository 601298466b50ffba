/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small HTTP server for those who watch a program: GET and HEAD of a few paths, answered by one function on a thread of its
 * own, so that nobody who asks can hold up what the program is for. libmicrohttpd reads the requests; connections, their memory
 * and their time are bounded.
 */
#ifndef KLOG_METRICS_HTTP_H
#define KLOG_METRICS_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/buf.h"

struct http_server;
struct loop;
struct world;

struct http_answer {
    unsigned status;    /* 200; 404 when the handler leaves it 0 */
    const char *type;   /* static; "text/plain; charset=utf-8" when the handler leaves it NULL */
    struct bytebuf body; /* the server takes it over */
};
/* path is what stands before a "?", as it came but for %XX. On the server's thread. */
typedef void http_handler(void *arg, const char *path, struct http_answer *ret);

/* Can this program do it at all? It was built with libmicrohttpd. */
bool http_is_possible(void);
/* Is that HOST:PORT? No host: all addresses; port 0: any free one. err: one line that begins with what. */
bool http_address_ok(const char *address, const char *what, char *err, size_t err_size);
/* Listens there and serves. NULL and one line in err, which begins with what. Blocks where a name has to be resolved. */
struct http_server *http_server_new(const struct world *w, const char *address, const char *what, http_handler *handler,
                                    void *arg, char *err, size_t err_size);
/* Closes all connections and waits for the thread. NULL is fine. Not from the server's own thread. */
void http_server_free(struct http_server *s);
const char *http_server_address(const struct http_server *s); /* "127.0.0.1:9644", as bound; valid as long as s */
struct loop *http_server_loop(struct http_server *s);         /* of its thread, for timers beside the requests */

#endif
