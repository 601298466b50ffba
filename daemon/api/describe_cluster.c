/* SPDX-License-Identifier: Apache-2.0 */
/* DescribeCluster (KIP-700): the brokers, as Metadata has them. None is ever fenced: a broker that may not serve is not
 * there. */
#include "daemon/api/admin.h"
#include "daemon/api/api.h"
#include "daemon/api/services.h"

enum { ENDPOINT_BROKERS = 1, ENDPOINT_CONTROLLERS = 2 };

static void fill_brokers(struct request *r, const struct cluster_image *img,
                         struct describe_cluster_response *rsp)
{
    rsp->brokers = arena_array(&r->arena, img->n_brokers, sizeof *rsp->brokers);
    for (size_t i = 0; i < img->n_brokers; i++) {
        const struct cluster_broker *b = &img->brokers[i];
        const char *host;
        int32_t port;
        if (!answer_broker_address(r, b, &host, &port))
            continue;
        rsp->brokers[rsp->n_brokers++] = (struct describe_cluster_response_brokers){
            .broker_id = b->id,
            .host = kstr_of(host),
            .port = port,
            .rack = kstr_of(b->rack),
        };
    }
}

void handle_describe_cluster(struct request *r)
{
    const struct describe_cluster_request *q = r->body;
    struct cluster_image *img = cluster_image_get(r->services->cluster);
    struct describe_cluster_response rsp;

    wire_defaults(&wire_describe_cluster_response, &rsp);
    if (q->endpoint_type == ENDPOINT_CONTROLLERS) {
        rsp.error_code = KERR_MISMATCHED_ENDPOINT_TYPE;
        rsp.error_message = kstr_of("this is a broker (1), no controller (2)");
    } else if (q->endpoint_type != ENDPOINT_BROKERS) {
        rsp.error_code = KERR_UNSUPPORTED_ENDPOINT_TYPE;
        rsp.error_message = kstr_of("only brokers (1) can be described here");
    } else {
        rsp.cluster_id = kstr_of(cluster_id(r->services->cluster));
        rsp.controller_id = img->controller_id;
        fill_brokers(r, img, &rsp);
        if (q->include_cluster_authorized_operations)
            rsp.cluster_authorized_operations = CLUSTER_OPERATIONS;
    }
    request_reply(r, &rsp);
    cluster_image_put(img);
}
