/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that run the loop until they are done. On the loop's thread, outside of any callback. */
#include "lib/client/sync.h"

#include "lib/base/check.h"

struct waiting {
    bool done;
    int rc;
    enum kerr err;
    int16_t version;
    struct arena *arena;
    const struct wire_message *message;
    const void *response;
};

/* The response goes with its frame, so the caller gets a copy of the frame and what is decoded from that. */
static void keep_response(struct waiting *w, struct client_call *call)
{
    const struct rcbuf *frame = client_call_frame(call);
    const uint8_t *copy = arena_dup(w->arena, frame->p, frame->n);
    int32_t id;
    struct slice body;
    void *response = arena_alloc(w->arena, wire_msg_size(w->message));
    int rc = wire_response_header_read(w->message->api_key, w->version, slice_of(copy, frame->n), &id, &body);
    if (rc == 0)
        rc = wire_decode(w->message, w->version, body, w->arena, response);
    KCHECK(rc == 0);
    w->response = response;
}

static void on_call_end(struct client_call *call, int rc, enum kerr err, int16_t version,
                        const void *response)
{
    struct waiting *w = call->user;
    w->done = true;
    w->rc = rc;
    w->err = err;
    w->version = version;
    if (rc == 0 && response != NULL)
        keep_response(w, call);
}

int client_call_sync(struct loop *lp, struct client *c, struct client_call *call, struct arena *a,
                     enum kerr *ret_err, int16_t *ret_version, const void **ret)
{
    struct waiting w = { .arena = a, .message = wire_api_find(call->request->api_key)->response };
    call->cb = on_call_end;
    call->user = &w;
    client_call(c, call);
    while (!w.done)
        loop_run_once(lp, -1);
    if (ret_err != NULL)
        *ret_err = w.err;
    if (w.rc == 0 && ret_version != NULL)
        *ret_version = w.version;
    if (w.rc == 0 && ret != NULL)
        *ret = w.response;
    return w.rc;
}

static void on_refresh_end(struct client_refresh *r, int rc)
{
    struct waiting *w = r->user;
    w->done = true;
    w->rc = rc;
}

int client_refresh_sync(struct loop *lp, struct client *c, const char *topic, int64_t deadline_ms)
{
    struct waiting w = { 0 };
    struct client_refresh r = {
        .topic = topic, .deadline_ms = deadline_ms, .cb = on_refresh_end, .user = &w
    };
    client_refresh(c, &r);
    while (!w.done)
        loop_run_once(lp, -1);
    return w.rc;
}
