/* SPDX-License-Identifier: Apache-2.0 */
/* ListGroups: all groups this broker coordinates, by state (version 4) and type (5) if asked so. */
#include <strings.h>

#include "daemon/api/api.h"
#include "daemon/api/group_api.h"
#include "daemon/api/services.h"
#include "lib/base/mem.h"

#define GROUP_TYPE "classic"

struct listing {
    struct request *r;
    struct list_groups_response *rsp;
    int32_t room;
    unsigned states; /* bit of each state that was asked for */
    bool too_large;
};

/* Of a group in the answer, beside its names; the list doubles as it grows. */
enum { ENTRY_BYTES = 3 * (int)sizeof(struct list_groups_response_groups) + 32 };

static bool is_word(struct kstr s, const char *word)
{
    return s.n == (int32_t)strlen(word) && strncasecmp(s.p, word, (size_t)s.n) == 0;
}

static bool is_in(const struct kstr *list, int32_t n, const char *word)
{
    for (int32_t i = 0; i < n; i++)
        if (is_word(list[i], word))
            return true;
    return n <= 0;
}

/* One bit a state; looked for once, however many groups there are and names were given. */
static unsigned states_asked(const struct list_groups_request *q)
{
    unsigned states = 0;

    for (int state = 0; state < GROUP_STATES; state++)
        if (is_in(q->states_filter, q->n_states_filter, group_state_name((enum group_state)state)))
            states |= 1u << state;
    return states;
}

static void make_room(struct listing *ls)
{
    if (ls->rsp->n_groups < ls->room)
        return;
    ls->room = MAX(64, 2 * ls->room);
    struct list_groups_response_groups *more =
        arena_array(&ls->r->arena, (size_t)ls->room, sizeof *ls->rsp->groups);
    if (ls->rsp->n_groups > 0)
        memcpy(more, ls->rsp->groups, (size_t)ls->rsp->n_groups * sizeof *more);
    ls->rsp->groups = more;
}

static void list_group(void *arg, struct group_entry *e)
{
    struct listing *ls = arg;
    const struct group *g = e->group;
    const char *type = g->protocol_type != NULL ? g->protocol_type : "";

    if ((ls->states >> g->state & 1) == 0 || ls->too_large)
        return;
    ls->too_large = !request_answer_room(ls->r, strlen(g->id) + strlen(type) + ENTRY_BYTES);
    if (ls->too_large)
        return;
    make_room(ls);
    ls->rsp->groups[ls->rsp->n_groups++] = (struct list_groups_response_groups){
        .group_id = kstr_of(arena_strdup(&ls->r->arena, g->id)),
        .protocol_type = kstr_of(arena_strdup(&ls->r->arena, type)),
        .group_state = kstr_of(group_state_name(g->state)),
        .group_type = kstr_of(GROUP_TYPE),
    };
}

void handle_list_groups(struct request *r)
{
    const struct list_groups_request *q = r->body;
    struct list_groups_response rsp;
    struct listing ls = { .r = r, .rsp = &rsp, .states = states_asked(q) };

    wire_defaults(&wire_list_groups_response, &rsp);
    if (is_in(q->types_filter, q->n_types_filter, GROUP_TYPE))
        rsp.error_code = (int16_t)coordinator_each(r->services->coordinator, list_group, &ls);
    if (ls.too_large)
        request_close(r, "the ListGroups answer it asked for is too large");
    else
        request_reply(r, &rsp);
}
