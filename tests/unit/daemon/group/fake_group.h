/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer group in a test tube: time is a number, answers are kept in tickets, records are written when
 * the test says so. */
#ifndef KLOG_TESTS_FAKE_GROUP_H
#define KLOG_TESTS_FAKE_GROUP_H

#include "daemon/group/group.h"

enum { FAKE_ASSIGNMENT_MAX = 64, FAKE_MEMBERS_MAX = 32, FAKE_ID_MAX = 40 };

struct ticket {  /* one join or sync, and what it was answered */
    int answers; /* G5: 0 while it waits, then 1 */
    bool is_join;
    enum kerr err;
    int32_t generation;
    char protocol_type[FAKE_ID_MAX], protocol[FAKE_ID_MAX], leader[FAKE_ID_MAX], member_id[FAKE_ID_MAX];
    bool skip_assignment;
    int32_t n_members; /* -1: no list came */
    char members[FAKE_MEMBERS_MAX][FAKE_ID_MAX];
    char assignment[FAKE_ASSIGNMENT_MAX];
    struct ticket *next;
};

struct fake {
    struct group_env env;
    struct group *g;
    int64_t now_ms;
    int64_t writing[64]; /* seqs of records on their way, oldest first */
    int n_writing;
    int n_records; /* asked for so far */
    int next_id;
    struct ticket *tickets; /* all there ever were */
    void (*before_tick)(const struct fake *f); /* NULL: nobody looks */
};

struct fake_join { /* what is not given is ordinary */
    const char *id, *instance;
    const char *type;                 /* "consumer" */
    const char *protocols;            /* "range"; separated by commas */
    const char *metadata;             /* "m" */
    const char *client;               /* "c" */
    int32_t session_ms, rebalance_ms; /* 10 s, 60 s */
    bool id_required, can_skip;
};

struct fake *fake_new(int32_t initial_delay_ms);
/* Checks G2, G3 and G5 at the end: unloads the group, after which every ticket has been answered once. */
void fake_free(struct fake *f);
void fake_check(const struct fake *f); /* G2 and G3, now */

struct ticket *fake_join(struct fake *f, struct fake_join j);
/* assignments: "id=bytes,id=bytes"; NULL for a follower. */
struct ticket *fake_sync(struct fake *f, const char *id, int32_t generation, const char *assignments);
struct ticket *fake_sync_as(struct fake *f, const char *id, const char *instance, int32_t generation,
                            const char *type, const char *protocol, const char *assignments);
enum kerr fake_heartbeat(struct fake *f, const char *id, int32_t generation);
enum kerr fake_leave(struct fake *f, const char *id);
enum kerr fake_commit(struct fake *f, const char *id, int32_t generation);
void fake_written(struct fake *f, enum kerr err); /* every record on its way ends so */
void fake_sleep(struct fake *f, int64_t ms);      /* time passes; deadlines are met as they come */

/* A group of n dynamic members, in the state. ids: what each got. */
struct fake *fake_in_state(enum group_state state, int n, char ids[][FAKE_ID_MAX]);

#define assert_waits(t) assert_int_equal((t)->answers, 0)
#define assert_answer(t, e)                                     \
    do {                                                        \
        assert_int_equal((t)->answers, 1);                      \
        assert_string_equal(kerr_name((t)->err), kerr_name(e)); \
    } while (0)
#define assert_err(got, e) assert_string_equal(kerr_name(got), kerr_name(e))
#define assert_state(f, s) assert_string_equal(group_state_name((f)->g->state), group_state_name(s))

#endif
