/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One question to every broker of the cluster, where each knows only its part: which groups there are, how full the disks are.
 * A broker that does not answer counts until the metadata says that it has gone. Loop's thread.
 */
#ifndef KLOG_FUSE_EACH_BROKER_H
#define KLOG_FUSE_EACH_BROKER_H

#include "fuse/base/mount.h"
#include "lib/client/client.h"

struct each_broker {
    /* the caller fills these and keeps the struct until `end` */
    const struct wire_message *request;
    const void *body; /* kept until end */
    enum kerr (*judge)(struct client_call *call, int16_t version, const void *response); /* as of a client_call */
    /* host "": the only one there is. The response is valid during the call. */
    void (*answer)(struct each_broker *e, const char *host, const void *response);
    /* rc 0: every one that is there has answered; else as client_call's cb has it of the last that failed. */
    void (*end)(struct each_broker *e, int rc, enum kerr err);
    void *user;
    /* private */
    struct mount *mount;
    int64_t deadline_ms;
    size_t waiting;
    int rc;
    enum kerr err;
};
void each_broker_ask(struct mount *m, struct each_broker *e);

#endif
