/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the group's state machine only. */
#ifndef KLOG_DAEMON_GROUP_INT_H
#define KLOG_DAEMON_GROUP_INT_H

#include "daemon/group/group.h"

/* group.c */
void group_move(struct group *g, enum group_state to);
void group_due_at(struct group *g, int64_t due_ms); /* a new deadline */
int64_t group_persist(struct group *g);             /* asks for the record; returns its seq */

/* group_member.c */
struct group_member *group_member_add(struct group *g, const struct group_join *rq, const char *id,
                                      int64_t now_ms);
void group_member_update(struct group *g, struct group_member *m, const struct group_join *rq);
/* What it had parked must have been answered: group_member_drop sees to that. */
void group_member_remove(struct group *g, struct group_member *m);
void group_member_rename(struct group *g, struct group_member *m, const char *id);
bool group_member_same_protocols(const struct group_member *m, const struct group_join *rq);
void group_member_assign(struct group_member *m, const void *p, int32_t n);
void group_member_alive(struct group *g, struct group_member *m, int64_t now_ms);
bool group_member_leads(const struct group *g, const struct group_member *m);
/* Member id and instance id of a request against the group: NONE and *ret, or 25, or 82. */
enum kerr group_member_check(const struct group *g, const char *member_id, const char *instance_id,
                             struct group_member **ret);

/* What the member that rq describes would count, without those bytes of `instead` (NULL none): is there room? */
bool group_bytes_fit(const struct group *g, const struct group_join *rq, const struct group_member *instead);
void group_bytes_count(struct group *g, int64_t delta);

/* group_pending.c */
void group_pending_add(struct group *g, const char *id, int64_t due_ms);
bool group_pending_remove(struct group *g, const char *id);
int64_t group_pending_due_ms(const struct group *g);
bool group_pending_expire(struct group *g, int64_t now_ms);

/* group_protocol.c */
void group_offers_add(struct group *g, const struct group_member *m);
void group_offers_remove(struct group *g, const struct group_member *m);
/* self: the member that this request replaces, NULL none. */
bool group_protocols_fit(struct group *g, const struct group_join *rq, const struct group_member *self);
char *group_protocol_choose(struct group *g); /* owned by the caller */

/* group_rebalance.c */
void group_prepare(struct group *g, int64_t now_ms);
void group_try_complete_join(struct group *g, int64_t now_ms);
void group_rebalance_tick(struct group *g, int64_t now_ms);
void group_member_drop(struct group *g, struct group_member *m, enum kerr err);
void group_expel(struct group *g, struct group_member *m, enum kerr err, int64_t now_ms);
void group_park_join(struct group *g, struct group_member *m, void *waiter);
void *group_unpark_join(struct group *g, struct group_member *m); /* NULL when nothing is parked */

/* group_sync.c */
void group_answer_sync(struct group *g, struct group_member *m, void *waiter, enum kerr err);
void group_syncs_fail(struct group *g, enum kerr err, int64_t now_ms);
void group_assignment_persisted(struct group *g, enum kerr err, int64_t now_ms);

/* group_join.c */
void group_answer_join_error(struct group *g, void *waiter, enum kerr err, const char *member_id);
void group_answer_join(struct group *g, struct group_member *m, void *waiter);
void group_return_forget(struct group_member *m);
void group_returns_persisted(struct group *g, int64_t seq, enum kerr err, int64_t now_ms);

#endif
