/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FindCoordinator: a group's coordinator is the leader of its partition of __consumer_offsets, which is
 * created when somebody first asks. There is no transaction coordinator, and clients are told so by a code after which
 * they stop: one that says "not now" has them ask for ever. On the session's loop.
 */

#include "daemon/api/admin.h"
#include "daemon/api/api.h"
#include "daemon/api/group_api.h"
#include "daemon/api/services.h"
#include "lib/base/log.h"

enum { KEY_GROUP, KEY_TRANSACTION };
enum { KEYS_MAX = 100000 }; /* of one request: they are looked up on the loop */
enum { CREATE_TIMEOUT_MS = 10000 }; /* clients ask again, and wait at least 30 s for an answer */

/* ---- the answer ---- */

static void not_found(struct find_coordinator_response_coordinators *out, enum kerr err, const char *text)
{
    out->node_id = out->port = -1;
    out->host = kstr_of("");
    out->error_code = (int16_t)err;
    out->error_message = kstr_of(text);
}

static void found(struct request *r, const struct cluster_broker *b,
                  struct find_coordinator_response_coordinators *out)
{
    const char *host;
    int32_t port;

    if (!answer_broker_address(r, b, &host, &port)) {
        not_found(out, KERR_COORDINATOR_NOT_AVAILABLE, "the group's coordinator has no listener of this name");
        return;
    }
    out->node_id = b->id;
    out->host = kstr_of(arena_strdup(&r->arena, host));
    out->port = port;
}

static void find_group(struct request *r, const struct cluster_image *img,
                       struct find_coordinator_response_coordinators *out)
{
    const struct cluster_topic *t = cluster_image_topic(img, kstr_of(OFFSETS_TOPIC));
    const struct cluster_broker *b = NULL;

    if (t != NULL) {
        int32_t id = coordinator_partition_of(out->key, t->n_partitions);
        b = cluster_image_leader(img, cluster_topic_partition(t, id));
    }
    if (b != NULL)
        found(r, b, out);
    else if (t != NULL)
        not_found(out, KERR_COORDINATOR_NOT_AVAILABLE,
                  "the group's partition of " OFFSETS_TOPIC " has no leader");
    else
        not_found(out, KERR_COORDINATOR_NOT_AVAILABLE, OFFSETS_TOPIC " could not be created");
}

static void find(struct request *r, const struct cluster_image *img, struct kstr key,
                 struct find_coordinator_response_coordinators *out)
{
    const struct find_coordinator_request *q = r->body;

    /* without an error clients print it all the same: "NONE", and since version 4 nothing */
    *out = (struct find_coordinator_response_coordinators){
        .key = key,
        .error_message = kstr_of(r->api_version < 4 ? "NONE" : ""),
    };
    if (q->key_type == KEY_GROUP)
        find_group(r, img, out);
    else if (q->key_type == KEY_TRANSACTION)
        not_found(out, KERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED, NO_TRANSACTIONS);
    else
        not_found(out, KERR_INVALID_REQUEST, "the key type is not known");
}

static void reply(struct request *r)
{
    const struct find_coordinator_request *q = r->body;
    struct cluster_image *img = cluster_image_get(r->services->cluster);
    struct find_coordinator_response rsp;
    struct find_coordinator_response_coordinators one;

    wire_defaults(&wire_find_coordinator_response, &rsp);
    if (r->api_version >= 4) {
        rsp.n_coordinators = q->n_coordinator_keys;
        rsp.coordinators = arena_array(&r->arena, (size_t)q->n_coordinator_keys, sizeof *rsp.coordinators);
        for (int32_t i = 0; i < q->n_coordinator_keys; i++)
            find(r, img, q->coordinator_keys[i], &rsp.coordinators[i]);
    } else {
        find(r, img, q->key, &one);
        rsp.error_code = one.error_code;
        rsp.error_message = one.error_message;
        rsp.node_id = one.node_id;
        rsp.host = one.host;
        rsp.port = one.port;
    }
    request_reply(r, &rsp);
    cluster_image_put(img);
}

/* ---- the topic ---- */

static void created(struct admin *a, int32_t i, enum kerr err, const char *text,
                    const struct cluster_change *ch)
{
    (void)a;
    (void)i;
    (void)ch;
    if (err != KERR_NONE && err != KERR_TOPIC_ALREADY_EXISTS)
        log_error("%s cannot be created: %s; groups cannot work without it", OFFSETS_TOPIC,
                  text != NULL ? text : kerr_text(err));
}

static void created_all(struct admin *a)
{
    reply(a->r);
}

/* With no settings of its own: the cluster knows how this topic has to be. */
static void create_topic(struct request *r)
{
    static const struct admin_ops ops = { created, created_all };
    struct admin *a = admin_begin(r, &ops, NULL, 1);

    admin_change(a, 0, cluster_change_new(kstr_of(OFFSETS_TOPIC)), cluster_create_topic);
    admin_wait(a, CREATE_TIMEOUT_MS);
}

void handle_find_coordinator(struct request *r)
{
    const struct find_coordinator_request *q = r->body;

    if (q->n_coordinator_keys > KEYS_MAX) {
        request_close(r, "the request names more than 100000 groups at once");
        return;
    }
    struct cluster_image *img = cluster_image_get(r->services->cluster);
    if (q->key_type == KEY_GROUP && cluster_image_topic(img, kstr_of(OFFSETS_TOPIC)) == NULL)
        create_topic(r);
    else
        reply(r);
    cluster_image_put(img);
}
