/* SPDX-License-Identifier: Apache-2.0 */
/* ListPartitionReassignments: none is ever going on; tools ask before they describe a topic. */
#include "daemon/api/api.h"

void handle_list_partition_reassignments(struct request *r)
{
    struct list_partition_reassignments_response rsp;

    wire_defaults(&wire_list_partition_reassignments_response, &rsp);
    request_reply(r, &rsp);
}
