/* SPDX-License-Identifier: Apache-2.0 */
/* What several commands need to know of topics and their partitions; see topic_entries.c. */
#ifndef KLOG_SRC_TOPIC_ENTRIES_H
#define KLOG_SRC_TOPIC_ENTRIES_H

#include "src/out.h"
#include "src/session.h"

struct part {
    const struct metadata_response_topics *topic;
    const struct metadata_response_partitions *meta;
    int64_t start_offset, end_offset; /* -1 unknown */
    int64_t size_bytes;               /* -1 unknown: only klog's brokers tell */
    int64_t at_offset, at_timestamp;  /* of the time asked for; -1 none */
    int err;                          /* why something is unknown */
};

/* The partitions of the response's topics in order of name and index, in the session's arena. Topics with an
 * error are left out after saying so; *ret_failed tells. */
size_t parts_list(struct session *s, const struct metadata_response *md, struct part **ret, bool *ret_failed);
/* Fills start_offset and end_offset, and size_bytes where the broker tells; true when every partition could
 * be asked. */
bool parts_ask_ends(struct session *s, struct part *parts, size_t n);
/* Fills at_offset and at_timestamp for a ListOffsets timestamp. */
bool parts_ask_time(struct session *s, struct part *parts, size_t n, int64_t timestamp_ms);
/* Prints what is wrong with each partition that has err set. */
void parts_complain(const struct session *s, const struct part *parts, size_t n);

/* "KEY=VALUE" cut in two, in the session's arena; false when there is no '=' or no key. */
bool pair_split(struct session *s, const char *text, char **ret_key, char **ret_value);

#endif
