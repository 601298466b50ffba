/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole broker in the test's process, on a directory and a port of its own, and a blocking client that
 * speaks structs to it. Everything here fails the test itself when something goes wrong.
 */
#ifndef KLOG_UNIT_RIG_H
#define KLOG_UNIT_RIG_H

#include "unit.h"

#include "daemon/broker.h"
#include "daemon/replica/partition.h"
#include "lib/base/world.h"
#include "lib/record/build.h"
#include "lib/wire/wire.h"

struct store_io;

struct rig {
    struct world world;
    struct broker b;
    char dir[64];
    char dirs[256]; /* log.dirs */
    int port;
};

/* overrides: "key", "value", ..., NULL; may be NULL. */
void rig_start(struct rig *g, const char *const *overrides);
/* The same on a disk of the test's making, with n log directories. */
void rig_start_on(struct rig *g, const struct store_io *io, int n_dirs, const char *const *overrides);
/* Its two halves. */
void rig_make_dir(struct rig *g);
void rig_start_in(struct rig *g, const struct store_io *io, int n_dirs, const char *const *overrides);
bool rig_stop(struct rig *g); /* clean; the directory stays for another start */
void rig_restart(struct rig *g, const char *const *overrides);
void rig_remove(struct rig *g); /* the directory of a broker that stopped */
void rig_done(struct rig *g);   /* stop, and the directory goes */
/* Through the cluster, as CreateTopics does; entries as overrides. */
void rig_create_topic(struct rig *g, const char *name, int32_t partitions, const char *const *entries);
void rig_delete_topic(struct rig *g, const char *name);
struct partition *rig_partition(struct rig *g, const char *topic, int32_t id); /* a reference */

/* ---- a client ---- */
int peer_open(struct rig *g);
void peer_send(int fd, const struct wire_message *m, int version, int32_t correlation, const void *body);
void peer_send_bytes(int fd, const void *p, size_t n);
/* The next whole reply; false at the end of the connection. The frame is in *ret, to be freed by
 * bytebuf_done. */
bool peer_receive(int fd, int32_t *ret_correlation, struct bytebuf *ret);
/* Receives, checks the correlation, decodes into a struct in the arena. */
void *peer_reply(int fd, const struct wire_message *m, int version, int32_t correlation, struct arena *a);
/* Request and reply. */
void *peer_ask(int fd, const struct wire_message *q, const struct wire_message *a, int version,
               const void *body, struct arena *arena);

/* ---- bodies ---- */
/* n records "VALUE-0" ...; one batch into ret. */
void make_batch(struct bytebuf *ret, const char *value, int n, int64_t timestamp);
/* One topic, one partition; in one, or its two halves. */
void peer_produce_begin(int fd, int version, const char *topic, int16_t acks, const struct bytebuf *records);
struct produce_response_partition_responses *peer_produce_end(int fd, int version, struct arena *a);
struct produce_response_partition_responses *peer_produce(int fd, int version, const char *topic,
                                                          int16_t acks, const struct bytebuf *records,
                                                          struct arena *a);
struct fetch_request *fetch_one(struct arena *a, const char *topic, int64_t offset, int32_t max_wait_ms);
struct fetch_response_partitions *peer_fetch(int fd, int version, const struct fetch_request *q,
                                             struct arena *a);
int64_t peer_offset(int fd, const char *topic, int64_t timestamp); /* ListOffsets v5; the error, negative */

#endif
