/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SaslHandshake: no listener asks who a client is. One that is set up to say so learns it here, as from Kafka on such a listener,
 * rather than from a connection that closes again and again. On the session's loop.
 */
#include "daemon/api/api.h"
#include "lib/base/kerr.h"

void handle_sasl_handshake(struct request *r)
{
    struct sasl_handshake_response *rsp = arena_alloc(&r->arena, sizeof *rsp);

    wire_defaults(&wire_sasl_handshake_response, rsp);
    rsp->error_code = KERR_ILLEGAL_SASL_STATE;
    request_reply(r, rsp);
}
