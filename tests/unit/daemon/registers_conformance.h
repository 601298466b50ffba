/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every back-end of the register store must do, as tests over a rig that each back-end's own test fills; and calls that run
 * the rig's loop until they are answered.
 */
#ifndef KLOG_UNIT_REGISTERS_CONFORMANCE_H
#define KLOG_UNIT_REGISTERS_CONFORMANCE_H

#include "unit.h"

#include "daemon/meta/registers.h"
#include "lib/loop/loop.h"

/* First in the state of a test. */
struct registers_rig {
    struct loop *loop;
    struct registers *r;
    void (*reopen)(struct registers_rig *s); /* a clean stop, and the same registers again */
    bool has_multi_max;
};

struct answer {
    bool done;
    int rc;
    char value[256];
    int64_t version;
    char names[512];
};
/* Callbacks that fill one. */
void got_rc(void *arg, int rc);
void got_value(void *arg, int rc, struct slice value, int64_t version);
void got_names(void *arg, int rc, const char *const *names, int n);
void wait_for(struct registers_rig *s, const bool *done);

struct register_op op(enum register_op_kind kind, const char *path, const char *value, int64_t version);
int multi(struct registers_rig *s, struct register_op *ops, int n);
int one(struct registers_rig *s, enum register_op_kind kind, const char *path, const char *value, int64_t version);
int create(struct registers_rig *s, const char *path, const char *value);
struct answer get(struct registers_rig *s, const char *path);
int sync_reads(struct registers_rig *s);
void assert_register(struct registers_rig *s, const char *path, const char *value, int64_t version);
void assert_absent(struct registers_rig *s, const char *path);
void assert_children(struct registers_rig *s, const char *path, int rc, const char *names);

/* The paths that a watch was called with; each ends with a space. */
struct seen {
    char paths[1024];
    struct registers *unwatch_from; /* at the first call */
    struct register_watch *w;
};
void saw(void *arg, const char *path);
/* Was it told of path, or of something above it, since the last time? Forgets all of it. */
bool was_told(struct seen *n, const char *path);

/* What a session's listener was told: a letter each, C S X. */
struct session_seen {
    char events[64];
};
void saw_session(void *arg, enum registers_event ev);

#define REGISTERS_CONFORMANCE(X) \
    X(any_register_begins_at_version_0_and_counts_its_changes), X(any_change_whose_condition_fails_changes_nothing), \
        X(any_malformed_path_or_huge_value_is_refused), X(any_changes_happen_together_or_not_at_all), \
        X(any_children_are_the_direct_ones_in_order), X(any_watch_tells_of_changes_below_it_before_their_answer), \
        X(any_watch_tells_of_what_was_there_before_it), X(any_watch_may_end_itself), \
        X(any_answers_come_in_the_order_of_the_calls), X(any_registers_outlive_the_process_and_ephemeral_ones_do_not), \
        X(any_compare_and_set_loses_no_update), X(any_session_begins_connected)
#define X(name) name(void **state)
void REGISTERS_CONFORMANCE(X);
#undef X

#endif
