/* SPDX-License-Identifier: Apache-2.0 */
/*
 * InitProducerId for idempotent producers: always a new id. The one they have (KIP-360 lets them send it) may
 * come from another life of the cluster and be somebody else's by now. There is no transaction coordinator,
 * and clients are told so by a code after which they stop, with the text from FindCoordinator, which they ask first.
 */
#include "daemon/api/api.h"
#include "daemon/api/services.h"
#include "daemon/meta/cluster.h"

static void answer(struct request *r, enum kerr err, int64_t id, int16_t epoch)
{
    struct init_producer_id_response rsp;

    wire_defaults(&wire_init_producer_id_response, &rsp);
    rsp.error_code = (int16_t)err;
    rsp.producer_id = err == KERR_NONE ? id : -1;
    rsp.producer_epoch = err == KERR_NONE ? epoch : -1;
    request_reply(r, &rsp);
}

static void got_id(void *arg, enum kerr err, int64_t id)
{
    answer(arg, err, id, 0);
}

void handle_init_producer_id(struct request *r)
{
    const struct init_producer_id_request *q = r->body;

    if (q->transactional_id.n == 0 || (q->producer_id < 0) != (q->producer_epoch < 0)) {
        answer(r, KERR_INVALID_REQUEST, -1, -1);
    } else if (!kstr_is_null(q->transactional_id)) {
        answer(r, KERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED, -1, -1);
    } else {
        cluster_new_producer_id(r->services->cluster, r->loop, got_id, r);
    }
}
