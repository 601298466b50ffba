/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FindCoordinator: this broker coordinates neither groups nor transactions. It is offered all the same:
 * clients take other features (LZ4 in librdkafka) from its presence, and the answer is the one that they know
 * as "not now".
 */
#include "daemon/api/api.h"
#include "lib/base/kerr.h"

static const char text[] = "this broker has no group or transaction coordinator";

static void fill_coordinators(struct request *r, struct find_coordinator_response *rsp)
{
    const struct find_coordinator_request *q = r->body;

    rsp->n_coordinators = q->n_coordinator_keys;
    rsp->coordinators = arena_array(&r->arena, (size_t)q->n_coordinator_keys + 1, sizeof *rsp->coordinators);
    for (int32_t i = 0; i < q->n_coordinator_keys; i++)
        rsp->coordinators[i] = (struct find_coordinator_response_coordinators){
            .key = q->coordinator_keys[i],
            .node_id = -1,
            .host = kstr_of(""),
            .port = -1,
            .error_code = KERR_COORDINATOR_NOT_AVAILABLE,
            .error_message = kstr_of(text),
        };
}

void handle_find_coordinator(struct request *r)
{
    struct find_coordinator_response rsp;

    wire_defaults(&wire_find_coordinator_response, &rsp);
    if (r->api_version >= 4) {
        fill_coordinators(r, &rsp);
    } else {
        rsp.error_code = KERR_COORDINATOR_NOT_AVAILABLE;
        rsp.error_message = kstr_of(text);
        rsp.node_id = rsp.port = -1;
    }
    request_reply(r, &rsp);
}
