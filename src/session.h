/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command's connection to the cluster: brokers from -b or the environment, one client on one loop, requests
 * one after the other until the command's deadline. Whatever goes wrong is said on standard error here, so
 * that commands only pass the status on. One thread.
 */
#ifndef KLOG_SRC_SESSION_H
#define KLOG_SRC_SESSION_H

#include "lib/base/world.h"
#include "lib/client/sync.h"
#include "src/cli.h"

struct session {
    const struct args *args;
    char *brokers; /* "host:port,host:port" */
    int64_t timeout_ms;
    struct world world;
    struct loop *loop;
    struct workers *workers;
    struct client *client;
    struct arena arena; /* requests and responses live as long as the session */
};

/* Settings and arena; nothing is connected yet, so that a command can first judge the rest of its line.
 * CLI_OK, or CLI_USAGE after saying why. session_close in either case, and of a zeroed session. */
int session_init(struct session *s, const struct args *a);
/* Both at once, of the brokers named, whatever the options say, and without a word when none is there. */
int session_open(struct session *s, const struct args *a, const char *brokers, int64_t timeout_ms);
/* CLI_OK, or CLI_FAILED after saying why (no broker reached). */
int session_connect(struct session *s);
void session_close(struct session *s);

struct session_call {
    enum client_target target;
    int32_t broker_id; /* of TARGET_BROKER */
    const char *group; /* of TARGET_COORDINATOR */
    const struct wire_message *request;
    const void *body;
    int16_t max_version; /* 0: the newest both sides know */
    enum kerr (*judge)(struct client_call *call, int16_t version, const void *response);
};
/* The response, or NULL after saying why. */
const void *session_call(struct session *s, const struct session_call *c);
/* The same without a word: 0 and *ret, or -errno of client_call_sync. */
int session_try(struct session *s, const struct session_call *c, const void **ret);

/* Says why a call named `what` ended with rc and err, as client_call tells them. */
void session_complain(const struct session *s, const char *what, int rc, enum kerr err);

/* Metadata of these topics, or of all when n is 0; no topic is ever created by it. NULL after saying why. */
struct metadata_response;
const struct metadata_response *session_metadata(struct session *s, const char *const *topics, size_t n);

/* "orders: there is no such topic (UNKNOWN_TOPIC_OR_PARTITION)"; the broker's own text is used when it sent
 * one. */
void complain_kerr(const struct args *a, const char *what, int err, struct kstr text);

/* Adds the default port where it is missing. NULL when a part is malformed; free() it. */
char *brokers_normalise(const char *text);
/* Tries each broker once (as long as `timeout_ms` each): 0 when one accepts a connection, else -errno, and a
 * line about the last in err. */
int brokers_probe(const char *brokers, int timeout_ms, char *err, size_t err_size);

#endif
