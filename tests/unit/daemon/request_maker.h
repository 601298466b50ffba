/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes up requests that a broker can do something with: bodies of any API and version from the tables that the
 * schemas give, with names of a small world (topics, groups, members, settings), ids that earlier answers
 * told, record batches that parse, and, now and then in each place, what nobody should send: empty and longest
 * strings, extreme numbers, arrays of thousands. The same seed gives the same requests, but for the ids that
 * answers brought. One thread a maker.
 */
#ifndef KLOG_UNIT_REQUEST_MAKER_H
#define KLOG_UNIT_REQUEST_MAKER_H

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/uuid.h"
#include "lib/wire/wire.h"

enum { REMEMBERED = 16, MEMBER_ID_MAX = 128 };

struct conf_key;

/* What answers told, the last ones of each. */
struct memory {
    struct uuid topic_ids[REMEMBERED];
    char member_ids[REMEMBERED][MEMBER_ID_MAX];
    int64_t numbers[4][REMEMBERED]; /* by enum remembered */
    unsigned n_topic_ids, n_member_ids, n_numbers[4];
};

struct request_maker {
    uint64_t seed;
    struct memory memory;
    int elements_left;               /* of arrays, in the message that is being made */
    const struct conf_key *last_key; /* the setting whose name was made last: a value follows */
};

uint64_t maker_next(struct request_maker *k);
uint32_t maker_below(struct request_maker *k, uint32_t n); /* 0 .. n - 1 */
/* Once in n. */
bool maker_once_in(struct request_maker *k, uint32_t n);
/* A body for m in the arena. It can be encoded in that version. */
void *maker_body(struct request_maker *k, const struct wire_message *m, int version, struct arena *a);
/* Keeps the ids of an answer, and judges its error codes: the first that is in no table of Kafka's is returned,
 * 0 when there is none. */
int maker_look_at(struct request_maker *k, const struct wire_message *m, int version, const void *msg);

#endif
