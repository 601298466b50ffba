/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the changes of topics: the struct, and the steps that make its register operations. Meta loop. */
#ifndef KLOG_DAEMON_CHANGE_H
#define KLOG_DAEMON_CHANGE_H

#include "daemon/meta/cluster_int.h"
#include "lib/base/attr.h"

enum change_kind { CHANGE_CREATE, CHANGE_DELETE, CHANGE_GROW, CHANGE_CONFIGURE, CHANGE_REASSIGN, CHANGE_ELECT, CHANGE_BROKER };

struct change {
    struct cluster_change pub;
    struct cluster *cluster;
    enum change_kind kind;
    struct task task; /* to the meta loop, later back */
    TAILQ_ENTRY(change) link;
    struct topic_slot *slot;
    struct register_ops_list ops;
    int tries;                /* when others were faster */
    int sent;                 /* of ops, those that were written */
    struct register_op *part; /* those that are being written: fence and some of ops, whose paths and values they share */
    int n_part;
    bool begun;   /* its ops were handed to the registers */
    bool undoing; /* ... and are being taken back; err and text say why */
    enum kerr err;
    char text[320];
};

/* Checks the change against the image and fills ops; on an error text has one line, if there is more to say.
 */
enum kerr change_prepare_create(struct cluster *c, struct change *ch);
enum kerr change_prepare_delete(struct cluster *c, struct change *ch);
enum kerr change_prepare_grow(struct cluster *c, struct change *ch);
enum kerr change_prepare_configure(struct cluster *c, struct change *ch);
/* change_replicas.c: of one partition */
enum kerr change_prepare_reassign(struct cluster *c, struct change *ch);
enum kerr change_prepare_elect(struct cluster *c, struct change *ch);
int32_t change_list_length(const int32_t *list); /* one that -1 ends */

/* change_parts.c. More than one multi can carry goes in several: then the topic's register says meanwhile that it is unfinished
 * from partition `from` on. t: the topic as it is, NULL for a new one. */
void change_divide(struct cluster *c, struct change *ch, const struct cluster_topic *t, int32_t from);
/* Writes the next part; cb as of registers_multi(). */
void change_send(struct cluster *c, struct change *ch, void (*cb)(void *arg, int rc));
bool change_sent_all(const struct change *ch);

enum kerr change_refuse(struct change *ch, enum kerr err, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Hands it back to the loop it came from; the caller has taken it out of its queue. fmt NULL: text stays. */
void change_end(struct change *ch, enum kerr err, const char *fmt, ...) PRINTF_LIKE(3, 4);
void change_write(struct topic_slot *s, struct change *ch);
enum kerr change_kerr_of(int rc);

#endif
