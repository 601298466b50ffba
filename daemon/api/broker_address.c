/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a client is told to find a broker: at the endpoint of the listener that it came in on itself, since the others may be
 * in networks that it does not see. A broker without such a listener is not shown to it, as in Kafka. This broker is
 * reached as this client reached it.
 */
#include "daemon/api/admin.h"
#include "daemon/api/services.h"

bool answer_broker_address(struct request *r, const struct cluster_broker *b, const char **ret_host, int32_t *ret_port)
{
    if (b->id == r->services->id) {
        request_listener(r, ret_host, ret_port);
        return true;
    }
    const struct cluster_endpoint *e = cluster_broker_endpoint(b, request_listener_name(r));
    if (e == NULL)
        return false;
    *ret_host = e->host;
    *ret_port = e->port;
    return true;
}
