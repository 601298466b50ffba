/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which broker looks after a group (FindCoordinator): asked once, kept until somebody doubts it. All calls of a client for
 * one group share the question and its answer. A refusal is told once, and the next call asks anew; a question that fails
 * leaves nothing behind, and who still waits asks again, until its own deadline. On the loop's thread.
 */
#include <errno.h>
#include <string.h>

#include "lib/client/client_int.h"

struct coordinator {
    struct client *c;
    char *group;
    enum coordinator_known known;
    int32_t id;
    enum kerr err; /* COORDINATOR_REFUSED */
    struct client_call call;
    struct find_coordinator_request body;
    UT_hash_handle hh;
};

static enum kerr coordinator_judge(struct client_call *call, int16_t version, const void *response)
{
    (void)call;
    (void)version;
    return (enum kerr)((const struct find_coordinator_response *)response)->error_code;
}

static void coordinator_free(struct coordinator *co)
{
    HASH_DEL(co->c->coordinators, co);
    client_cancel(co->c, &co->call);
    free(co->group);
    free(co);
}

static void coordinator_on_end(struct client_call *call, int rc, enum kerr err, int16_t version,
                               const void *response)
{
    (void)err;
    (void)version;
    struct coordinator *co = container_of(call, struct coordinator, call);
    struct client *c = co->c;
    const struct find_coordinator_response *r = response;
    if (rc != 0) {
        coordinator_free(co); /* the next look asks again, until the call's own deadline */
    } else if (r->error_code != KERR_NONE) {
        co->known = COORDINATOR_REFUSED;
        co->err = (enum kerr)r->error_code;
    } else {
        co->known = COORDINATOR_KNOWN;
        co->id = broker_upsert(c, r->node_id, r->host, r->port)->id;
    }
    if (!c->ends)
        client_stir(c);
}

static void coordinator_ask(struct client *c, const char *group)
{
    struct coordinator *co = xcalloc(1, sizeof *co);
    co->c = c;
    co->group = xstrdup(group);
    co->known = COORDINATOR_ASKING;
    HASH_ADD_KEYPTR(hh, c->coordinators, co->group, strlen(co->group), co);
    wire_defaults(&wire_find_coordinator_request, &co->body);
    co->body.key = kstr_of(co->group);
    co->call = (struct client_call){
        .target = TARGET_ANY,
        .request = &wire_find_coordinator_request,
        .body = &co->body,
        .max_version = 3, /* the last that asks for one group */
        .deadline_ms = loop_now_ms(c->loop) + c->cfg.request_timeout_ms,
        .judge = coordinator_judge,
        .cb = coordinator_on_end,
    };
    client_call(c, &co->call);
}

enum coordinator_known coordinator_find(struct client *c, const char *group, int32_t *ret_id,
                                        enum kerr *ret_err)
{
    struct coordinator *co;
    HASH_FIND_STR(c->coordinators, group, co);
    if (co == NULL) {
        coordinator_ask(c, group);
        return COORDINATOR_ASKING;
    }
    *ret_id = co->id;
    *ret_err = co->err;
    enum coordinator_known known = co->known;
    if (known == COORDINATOR_REFUSED)
        coordinator_free(co); /* the next call asks anew */
    return known;
}

void coordinator_forget(struct client *c, const char *group)
{
    struct coordinator *co;
    HASH_FIND_STR(c->coordinators, group, co);
    if (co != NULL && co->known != COORDINATOR_ASKING)
        coordinator_free(co);
}

void coordinators_done(struct client *c)
{
    while (c->coordinators != NULL)
        coordinator_free(c->coordinators);
}
