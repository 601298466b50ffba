/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups and offsets as records of __consumer_offsets, in Kafka's formats, so that any reader of that topic
 * understands them: offset keys version 1, group keys version 2, values version 3. Pure.
 *
 * A position belongs to a topic, not to its name: the topic's id goes along as a record header, 16 bytes, so that a
 * coordinator that loads the log knows it again. Records without it (of others, of earlier versions, and of version 4, whose
 * value has the id) are taken, too.
 */
#ifndef KLOG_DAEMON_GROUP_LOG_H
#define KLOG_DAEMON_GROUP_LOG_H

#include "daemon/group/committed.h"
#include "daemon/group/group.h"
#include "lib/record/build.h"
#include "lib/record/iter.h"
#include "lib/wire/wire.h"

#define GROUP_LOG_TOPIC_ID "topic.id"

/* ---- writing: one record each into the batch ---- */
void group_log_add_offset(struct batch_builder *b, const char *group, const struct committed_offset *o,
                          int64_t now_ms);
void group_log_add_offset_tombstone(struct batch_builder *b, const char *group, const char *topic,
                                    int32_t partition, int64_t now_ms);
void group_log_add_group(struct batch_builder *b, const struct group *g, int64_t now_ms);
void group_log_add_group_tombstone(struct batch_builder *b, const char *group, int64_t now_ms);

/* ---- reading ---- */
enum group_log_kind { GROUP_LOG_OFFSET, GROUP_LOG_GROUP, GROUP_LOG_OTHER };
struct group_log_record {
    enum group_log_kind kind; /* OTHER: a key of a later version; skip it */
    bool tombstone;
    const char *group;                        /* in the arena, as all strings */
    struct committed_offset offset;           /* kind OFFSET; key and hh unset */
    const struct group_metadata_value *value; /* kind GROUP, not a tombstone */
};
/* NULL, or why the record cannot be used (static): key or value are not of the form their version says, or name what
 * cannot be named. */
const char *group_log_read(const struct record *rec, struct arena *a, struct group_log_record *ret);
/* Puts members and generation of a group record into a fresh group (EMPTY, no members). NULL, or what had to be left
 * out or changed because no group can be so (static). */
const char *group_log_restore(struct group *g, const struct group_metadata_value *v, struct arena *a,
                              int64_t now_mono_ms);

#endif
