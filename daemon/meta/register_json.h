/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of the cluster's registers, as JSON with Kafka's field names (replication.md 1.3). Pure; any
 * thread. Decoders return -EBADMSG for what is not of the form, and leave *ret alone. Encoders return text to
 * free.
 */
#ifndef KLOG_DAEMON_REGISTER_JSON_H
#define KLOG_DAEMON_REGISTER_JSON_H

#include "daemon/meta/cluster.h"
#include "daemon/replica/election.h"

void cluster_broker_done(struct cluster_broker *b); /* cluster_brokers.c */

/* /brokers/topics/T/partitions/P/state: what the replica sees, and what a change of the replicas needs. */
struct partition_register {
    struct partition_state st; /* version: of the register */
    int32_t adding[REPLICA_MAX], n_adding;
    int32_t removing[REPLICA_MAX], n_removing;
    /* While nobody may lead: what members of the in-sync set say of their logs. A new epoch forgets them. */
    struct election_claim claims[REPLICA_MAX];
    int32_t n_claims;
    char *extra; /* owned: fields that this version does not know, as a JSON object; NULL none */
};
/* writer: "id.broker-epoch.counter", which makes an ambiguous write decidable (R3). */
char *partition_register_encode(const struct partition_register *p, const char *writer);
/* Whoever wrote it, what is taken is sound (state_is_sound), and no broker is named twice. ret->extra is the caller's to
 * free. */
int partition_register_decode(struct slice v, int64_t version, struct partition_register *ret);

/* /brokers/topics/T. A topic that takes several multis to make, grow or delete says so meanwhile: the partitions from
 * unfinished_from on are not there for anybody, and 0 means the topic itself. Whoever finds that its writer has
 * gone clears them away. */
struct topic_register {
    struct uuid id;          /* never zero */
    int32_t unfinished_from; /* -1: it is whole */
    int32_t writer;          /* broker and its epoch, when it is not */
    int64_t writer_be;
    char *extra; /* owned: fields that this version does not know, as a JSON object; NULL none */
};
char *topic_register_encode(const struct topic_register *t);
int topic_register_decode(struct slice v, struct topic_register *ret); /* ret->extra is the caller's to free */

/* /config/topics/T, /config/brokers/N */
/* extra: as below, NULL none. */
char *config_register_encode(const struct topic_config_entry *entries, size_t n, const char *extra);
/* What this version does not know of it: settings, fields, a higher version number, as a JSON object that the caller frees;
 * NULL: nothing. */
char *config_register_extra(struct slice v, bool (*is_known)(const char *key));
int config_register_decode(struct slice v, struct topic_config_entry **ret, size_t *ret_n);
void config_entries_free(struct topic_config_entry *entries, size_t n);

/* ---- /klog/level ---- */
/* What all brokers of a cluster have to know to take part: a version that cannot work beside an earlier one raises this number, and
 * the register once no broker of an earlier version is left. */
enum { CLUSTER_LEVEL = 1 };
char *level_register_encode(int32_t level);
int level_register_decode(struct slice v, int32_t *ret);

/* /brokers/ids/N: endpoints and rack; what is decoded is freed with cluster_broker_done() */
char *broker_register_encode(const struct cluster_broker *b);
int broker_register_decode(struct slice v, int32_t id, struct cluster_broker *ret);
/* /klog/broker_epoch/N */
struct epoch_register {
    int64_t base;
    char mark[UUID_TEXT_LEN + 1]; /* of the process that wrote it; "" none */
};
char *epoch_register_encode(const struct epoch_register *e);
int epoch_register_decode(struct slice v, struct epoch_register *ret);

/* /latest_producer_id_block */
char *id_block_encode(int32_t broker_id, int64_t first, int64_t last);
int id_block_decode(struct slice v, int64_t *ret_last);

#endif
