/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The register store: small named values with versions, shared by all brokers of a cluster. The
 * embedded back-end keeps them in a journal in the first log directory; another back-end keeps the same
 * registers in ZooKeeper. Names are paths ("/brokers/topics/orders"). One conformance test serves all.
 *
 * A parent must exist before its child. Calls take effect in the order they are made, and are answered in that order; a
 * watch is called before any answer that shows the change that set it off.
 *
 * A store that is elsewhere is reached in sessions. While it cannot be reached (SUSPENDED) calls wait for it, for a session's
 * time-out at most; what was sent and got no answer ends with -EREMOTEIO. For a change that means: nobody knows whether it
 * happened (R3), read the register and see. A session that was lost for too long is gone, with its ephemeral registers
 * (EXPIRED): every call ends with -EREMOTEIO until registers_renew(). The embedded store is always CONNECTED.
 *
 * Threads: calls from any thread, where nothing else is said; callbacks run on the loop given at opening, never inside the
 * call that they answer.
 */
#ifndef KLOG_DAEMON_REGISTERS_H
#define KLOG_DAEMON_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/slice.h"

struct exec;
struct registers;
struct loop;

enum register_op_kind {
    REGISTER_CREATE,           /* -EEXIST if it is there, -ENOENT without its parent; version becomes 0 */
    REGISTER_CREATE_EPHEMERAL, /* goes with the session (embedded: with the process) */
    REGISTER_SET,              /* compare-and-set: -ESTALE if the version differs; -ENOENT */
    REGISTER_DELETE,           /* same condition; -ENOTEMPTY while it has children */
    REGISTER_CHECK,            /* only the condition */
};
#define REGISTER_ANY_VERSION (-1)

struct register_op {
    enum register_op_kind kind;
    const char *path;
    struct slice value; /* CREATE, SET: at most 256 KiB */
    int64_t version;    /* expected, or REGISTER_ANY_VERSION */
    /* answer */
    int rc; /* this op's own error; -ECANCELED when another op failed */
    int64_t new_version; /* of CREATE and SET */
};

/* All of them happen, durably, or none. cb's rc: 0 or the first op's error; -EINVAL for a malformed path or a value that is
 * too large; -E2BIG for more than REGISTERS_MULTI_MAX, which was not even sent (the embedded store has no such limit);
 * -EREMOTEIO: nobody knows whether it happened; -EACCES: not with our credentials; -EIO. ops must live until cb. */
#define REGISTERS_MULTI_MAX (256 * 1024)
void registers_multi(struct registers *r, struct register_op *ops, int n, void (*cb)(void *arg, int rc),
                     void *arg);
size_t registers_multi_bytes(const struct register_op *ops, int n); /* what counts against REGISTERS_MULTI_MAX */
/* Value and version; -ENOENT; -EREMOTEIO: no answer, ask again. The value is valid during the callback. */
void registers_get(struct registers *r, const char *path,
                   void (*cb)(void *arg, int rc, struct slice value, int64_t version), void *arg);
/* Names of the direct children, sorted; errors as of get. */
void registers_children(struct registers *r, const char *path,
                        void (*cb)(void *arg, int rc, const char *const *names, int n), void *arg);
/* cb whenever path or something below it is created, changed or deleted, until unwatched, over suspensions and new sessions.
 * It is given the path of that register, or of one above it: then anything below may have changed. "PATH/" says only that
 * the list of PATH's children is another one; what is below those that came is told of by itself, then or soon. It carries no value: read
 * the register, then act on what was read. Several changes may be one call, a call may come for none, and after a suspension
 * or a new session comes one for the watch's own path. On the loop; calls made after it wait until nothing can be missed. */
struct register_watch;
struct register_watch *registers_watch(struct registers *r, const char *path,
                                       void (*cb)(void *arg, const char *path), void *arg);
void registers_unwatch(struct registers *r, struct register_watch *w); /* on the loop: no call after it */

/* cb (rc 0 or -EREMOTEIO) when everything that was answered to anybody before this call is shown by our reads. */
void registers_sync(struct registers *r, void (*cb)(void *arg, int rc), void *arg);

/* ---- sessions ---- */
enum registers_event {
    REGISTERS_CONNECTED, /* calls are answered */
    REGISTERS_SUSPENDED, /* not reached just now; the session may live */
    REGISTERS_EXPIRED,   /* the session is gone, and its ephemeral registers are gone or going: registers_renew() */
};
/* On the loop. cb is told the present state soon, then each change, in order with answers and watches. One listener; cb
 * NULL: none, not even for what is under way. */
void registers_on_session(struct registers *r, void (*cb)(void *arg, enum registers_event ev), void *arg);
/* On the loop, after EXPIRED: begins a new session, which CONNECTED tells of. Nothing in other states. */
void registers_renew(struct registers *r);
/* Monotonic clock (world_mono_ms) when the store was last heard of, for R17; embedded: now. */
int64_t registers_last_reply_ms(struct registers *r);

/* The same for threads that may block, while the loop runs in another one. The names are the caller's to
 * free. */
int registers_multi_wait(struct registers *r, struct register_op *ops, int n);
int registers_get_wait(struct registers *r, const char *path, struct bytebuf *ret, int64_t *ret_version);
/* Many at once, as registers_get_wait() of each: ret[i].rc says what became of paths[i]. The values are the caller's to free
 * (bytebuf_done), whatever it was. */
struct register_got {
    int rc;
    int64_t version;
    struct bytebuf value;
};
void registers_get_many_wait(struct registers *r, char *const *paths, int n, struct register_got *ret);
int registers_sync_wait(struct registers *r);
int registers_children_wait(struct registers *r, const char *path, char ***ret_names, int *ret_n);
void registers_names_free(char **names, int n);

/* The ZooKeeper back-end is in zookeeper.h. The embedded one: registers.journal and .snapshot in dd, which must be open longer. Recovers a torn tail;
 * -EBADMSG with a line in err when something else is damaged or missing, and then nothing is touched. may_create: there
 * is no data yet, so a new store is right. compact_min: as register_journal_open() takes it. failed is called once, from the store's own thread, when what is on the disk
 * has become unknown (S8): everything is refused from then on. Blocks. */
struct datadir;
int registers_open_embedded(struct datadir *dd, bool may_create, int64_t compact_min, struct loop *lp,
                            void (*failed)(void *arg, int eno), void *failed_arg, struct registers **ret, char *err, size_t err_size);
/* Finishes what was asked, calls back no more. Not while the loop runs in another thread. The embedded back-end leaves
 * the sequence of its last change to dd's clean marker. */
void registers_close(struct registers *r);

/* The table behind the interface, for back-ends. */
struct registers_ops {
    void (*multi)(struct registers *, struct register_op *, int, void (*)(void *, int), void *);
    void (*get)(struct registers *, const char *, void (*)(void *, int, struct slice, int64_t), void *);
    void (*children)(struct registers *, const char *, void (*)(void *, int, const char *const *, int),
                     void *);
    struct register_watch *(*watch)(struct registers *, const char *, void (*)(void *, const char *), void *);
    void (*unwatch)(struct registers *, struct register_watch *);
    void (*sync)(struct registers *, void (*)(void *, int), void *);
    void (*on_session)(struct registers *, void (*)(void *, enum registers_event), void *);
    void (*renew)(struct registers *);
    int64_t (*last_reply_ms)(struct registers *);
    void (*close)(struct registers *);
};
struct registers {
    const struct registers_ops *ops;
    struct exec *exec; /* for those who wait for an answer */
};

#endif
