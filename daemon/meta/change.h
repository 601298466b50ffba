/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the changes of topics: the struct, and the steps that make its register operations. Meta loop. */
#ifndef KLOG_DAEMON_CHANGE_H
#define KLOG_DAEMON_CHANGE_H

#include "daemon/meta/cluster_int.h"
#include "lib/base/attr.h"

enum change_kind { CHANGE_CREATE, CHANGE_DELETE, CHANGE_GROW, CHANGE_CONFIGURE, CHANGE_BROKER };

struct change {
    struct cluster_change pub;
    struct cluster *cluster;
    enum change_kind kind;
    struct task task; /* to the meta loop, later back */
    TAILQ_ENTRY(change) link;
    struct topic_slot *slot;
    struct register_ops_list ops;
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

enum kerr change_refuse(struct change *ch, enum kerr err, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Hands it back to the loop it came from; the caller has taken it out of its queue. fmt NULL: text stays. */
void change_end(struct change *ch, enum kerr err, const char *fmt, ...) PRINTF_LIKE(3, 4);
void change_write(struct topic_slot *s, struct change *ch);
enum kerr change_kerr_of(int rc);

#endif
