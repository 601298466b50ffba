/* SPDX-License-Identifier: Apache-2.0 */
/* The make-believe brokers from inside. */
#ifndef KLOG_TESTS_FAKEBROKER_INT_H
#define KLOG_TESTS_FAKEBROKER_INT_H

#include "fakebroker.h"

struct fake_request {
    struct fake_broker *b;
    struct conn *conn;
    struct wire_request_header h;
    const struct wire_api *api;
    struct arena a;
    void *body;
    enum kerr err;       /* of the script */
    enum kerr err_after; /* likewise: when it is done */
    bool hold, mute;
};

void fake_answer(struct fake_request *rq, const void *response);

/* fakegroup.c */
void fake_join_group(struct fake_request *rq);
void fake_sync_group(struct fake_request *rq);
void fake_heartbeat(struct fake_request *rq);
void fake_leave_group(struct fake_request *rq);
void fake_offset_commit(struct fake_request *rq);
void fake_offset_fetch(struct fake_request *rq);

#endif
