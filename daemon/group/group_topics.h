/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which topics the members of a group subscribe to. What a member offers is the clients' own business; only
 * of protocol type "consumer" is its form known: an i16 version, then the topics, whatever later versions add
 * behind them. Pure.
 */
#ifndef KLOG_DAEMON_GROUP_TOPICS_H
#define KLOG_DAEMON_GROUP_TOPICS_H

#include "daemon/group/group.h"

struct group_topic;
struct group_topics {
    bool known; /* false: it cannot be told, so every topic counts as subscribed */
    struct group_topic *table;
};

void group_topics_init(struct group_topics *t, const struct group *g);
void group_topics_done(struct group_topics *t);
bool group_topics_has(const struct group_topics *t, const char *topic);

#endif
