/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request on its way through the broker: decoded body, a place to answer, and cancellation when the
 * client goes away. Lives on its session's loop; every function here on that thread.
 */
#ifndef KLOG_DAEMON_REQUEST_H
#define KLOG_DAEMON_REQUEST_H

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/loop/loop.h"
#include "lib/wire/wire.h"

struct services;
struct session;

/* No answer takes more than this, whatever a request of some bytes names: less than clients take at once (librdkafka's
 * receive.message.max.bytes is 100,000,000), and a Metadata answer of 500,000 partitions fits. Pieces of logs do not
 * count: they have a limit of their own, and take no memory. */
enum { REQUEST_ANSWER_BYTES_MAX = 90 << 20 };

struct request {
    const struct services *services; /* the handlers' own; the server does not look into it */
    struct session *session;
    struct loop *loop;
    int16_t api_key, api_version;
    int32_t correlation_id;
    struct kstr client_id;
    const struct wire_api *api;
    struct rcbuf *frame; /* the bytes; produce patches batches in place in it */
    struct arena arena;  /* body and answer; freed with the request */
    const void *body;    /* the decoded struct */
    int64_t received_ms; /* loop time */
    int64_t began_ns;    /* the world's clock; 0: nobody watches */
    /* Set by a handler that parks the request; called once if the session dies first. The handler must then
     * stop and call request_drop(). NULL: the handler will answer anyway. */
    void (*cancel)(struct request *r);
    /* Set by a handler that waits for something that may not come: the broker is stopping, answer now with
     * what there is. NULL: the handler will answer by itself. */
    void (*finish)(struct request *r);
    /* Set by a handler whose answer holds more than memory: the answer could not be sent, let go of it. */
    void (*unsent)(struct request *r);
    void *op; /* the handler's own */
    size_t answer_bytes; /* what request_answer_room gave */
    /* private: the session's queue, in order, and the answer until it is its turn */
    TAILQ_ENTRY(request) link;
    bool ended;
    size_t charge_bytes; /* of session.request_bytes */
    struct rcbuf *reply; /* NULL: no answer is due */
    struct wire_gap *gaps;
    size_t n_gaps;
};

/* n more bytes for the answer, which are then there in the arena. False: it would pass REQUEST_ANSWER_BYTES_MAX, or
 * memory is out. A handler whose answer may be larger than what was asked calls this before each thing that it adds,
 * with all that the thing copies and its structs; on false the thing gets an error, is left out where the answer may
 * be a part, or the request is closed. An answer that is too large all the same closes its connection. */
bool request_answer_room(struct request *r, size_t n);

/* answer(r) returns the response in the arena; NULL closes the connection with the line in *ret_why. On a worker it has
 * the request, its body and arena for itself, and must not look at the session. Both end the request. */
typedef const void *request_answerer(struct request *r, const char **ret_why);
/* Works the answer out and encodes it on a worker: for what may take longer than a reactor may wait
 * (docs/ARCHITECTURE.md). bytes: about what the answer takes while it is made. */
void request_answer_on_worker(struct request *r, size_t bytes, request_answerer *answer);
/* The same where it is long, else at once. */
void request_answer(struct request *r, bool is_long, size_t bytes, request_answerer *answer);

/* A handler works a request off in pieces, a task each, so that a reactor's other connections are served in between: from
 * hold to release nothing more is read of this client, so that its requests take effect in their order. The request has no
 * cancel() meanwhile. */
void request_hold(struct request *r);
void request_release(struct request *r);

/* Exactly one of these ends the request and frees it. Replies leave in request order, whatever the order of
 * these calls. */
void request_reply(
    struct request *r,
    const void *response); /* gaps' ext must be struct plog_span *: sent by sendfile, released after */
void request_reply_raw(
    struct request *r,
    struct bytebuf *body);                  /* an encoded body; takes the bytes. For ApiVersions' own rule */
void request_reply_none(struct request *r); /* acks=0 */
void request_drop(struct request *r);       /* after cancel */
void request_close(struct request *r, const char *why); /* answers nothing, closes the connection */

/* What the session knows of its client (KIP-511) and its listener. */
bool request_client_is_klog(const struct request *r);
void request_client_software(struct request *r, struct kstr name, struct kstr version);
const char *request_peer(const struct request *r); /* "127.0.0.1:4711" */
const char *request_listener_name(const struct request *r); /* of the listener it came in on */
/* Host and port to advertise to this client: advertised.listeners of the listener it came in on. The host is
 * valid as long as the request. */
void request_listener(struct request *r, const char **ret_host, int32_t *ret_port);

/* ---- handlers: one a file in daemon/api/, named handle_<api>; table in daemon/api/api.c ---- */
typedef void request_handler(struct request *r);
struct api {
    int16_t key, min_version, max_version;
    request_handler *handler;
};
/* What is served, for server_new(). */
struct server_apis {
    const struct api *(*find)(int16_t key); /* NULL: not served */
    /* Answers an ApiVersions request of a version that is not served, so that every client understands it (KIP-511). */
    request_handler *versions_unsupported;
};

#endif
