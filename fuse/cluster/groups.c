/* SPDX-License-Identifier: Apache-2.0 */
/* Asking for groups and their positions; see groups.h. Loop's thread. */
#include "fuse/cluster/groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/base/missed.h"
#include "fuse/base/mount.h"
#include "lib/view/names.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

/* Groups that are asked for their positions at the same time, for a listing. */
#define GROUPS_ASKED_AT_ONCE 32

int group_errno(int rc, enum kerr err)
{
    switch (err) {
    case KERR_UNKNOWN_MEMBER_ID:
    case KERR_ILLEGAL_GENERATION:
    case KERR_REBALANCE_IN_PROGRESS:
    case KERR_FENCED_INSTANCE_ID:
    case KERR_NON_EMPTY_GROUP:
    case KERR_GROUP_SUBSCRIBED_TO_TOPIC:
    case KERR_INCONSISTENT_GROUP_PROTOCOL: /* its members share by rules that as/ does not know */
        return EBUSY;
    case KERR_INVALID_GROUP_ID:
        return EINVAL;
    case KERR_GROUP_ID_NOT_FOUND:
        return ENOENT;
    default:
        return rc == 0 ? 0 : request_errno(rc);
    }
}

/* ---- positions ---- */

static void on_positions(struct positions_fetch *f, int rc, enum kerr err, const struct position *p, size_t n)
{
    struct group_ask *a = container_of(f, struct group_ask, fetch);
    free(a->wanted);
    a->wanted = NULL;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (p[i].err != KERR_NONE)
            rc = -kerr_errno(err = p[i].err);
    }
    a->cb(a, rc == 0 ? 0 : -group_errno(rc, err), p, rc == 0 ? n : 0);
}

static void on_ask_settled(struct group_wait *w, int rc)
{
    struct group_ask *a = container_of(w, struct group_ask, wait);
    if (rc != 0) {
        a->cb(a, -EIO, NULL, 0);
        return;
    }
    a->wanted = xcalloc((size_t)a->n + 1, sizeof *a->wanted);
    for (int32_t i = 0; i < a->n; i++)
        a->wanted[i] = (struct position){ .topic = a->topic, .partition = a->first + i };
    a->fetch = (struct positions_fetch){ .group = a->group,
                                         .wanted = a->wanted,
                                         .n_wanted = (size_t)a->n,
                                         .deadline_ms = mount_deadline_ms(a->mount),
                                         .cb = on_positions };
    positions_fetch(a->mount->client, &a->fetch);
}

void group_ask(struct mount *m, struct group_ask *a)
{
    a->mount = m;
    a->wait = (struct group_wait){ .group = a->group, .cb = on_ask_settled };
    group_wait(m, &a->wait);
}

/* ---- members ---- */

static void on_looked(struct client_call *call, int rc, enum kerr err, int16_t version, const void *response)
{
    struct group_look *l = call->user;
    const struct describe_groups_response *r = response;
    (void)version;
    if (rc == 0 && r->n_groups != 1)
        rc = -EIO;
    if (rc == 0)
        err = (enum kerr)r->groups[0].error_code;
    if (rc == 0 && err != KERR_NONE && err != KERR_GROUP_ID_NOT_FOUND) /* which has no members */
        rc = -kerr_errno(err);
    l->cb(l, rc == 0 ? 0 : -group_errno(rc, err), rc == 0 ? &r->groups[0] : NULL);
}

static enum kerr judge_look(struct client_call *call, int16_t version, const void *response)
{
    const struct describe_groups_response *r = response;
    (void)call;
    (void)version;
    return r->n_groups == 1 ? (enum kerr)r->groups[0].error_code : KERR_NONE;
}

void group_look(struct mount *m, struct group_look *l)
{
    l->name = kstr_of(l->group);
    wire_defaults(&wire_describe_groups_request, &l->body);
    l->body.groups = &l->name;
    l->body.n_groups = 1;
    l->call = (struct client_call){ .target = TARGET_COORDINATOR,
                                    .topic = l->group,
                                    .request = &wire_describe_groups_request,
                                    .body = &l->body,
                                    .max_version = -1,
                                    .deadline_ms = mount_deadline_ms(m),
                                    .judge = judge_look,
                                    .cb = on_looked,
                                    .user = l };
    client_call(m->client, &l->call);
}

bool group_has_members(const struct describe_groups_response_groups *it)
{
    return !kstr_eqz(it->group_state, "Empty") && !kstr_eqz(it->group_state, "Dead");
}

/* ---- which groups there are ---- */

struct list_item {
    struct groups_list *list;
    size_t i;
    struct group_ask ask;
};

static void list_go_on(struct groups_list *l);

static void list_end(struct groups_list *l)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->n; i++) {
        if (l->names[i] != NULL)
            l->names[kept++] = l->names[i];
    }
    l->n = kept;
    l->cb(l, l->rc);
}

static void on_list_item(struct group_ask *a, int rc, const struct position *p, size_t n)
{
    struct list_item *item = container_of(a, struct list_item, ask);
    struct groups_list *l = item->list;
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any |= p[i].offset >= 0;
    if (!any) {
        free(l->names[item->i]);
        l->names[item->i] = NULL;
    }
    if (rc != 0 && rc != -ENOENT) /* it may have gone meanwhile */
        l->rc = rc;
    free(item);
    l->asking--;
    list_go_on(l);
}

static void list_ask_one(struct groups_list *l, size_t i)
{
    struct list_item *item = xcalloc(1, sizeof *item);
    item->list = l;
    item->i = i;
    item->ask = (struct group_ask){
        .group = l->names[i], .topic = l->topic, .n = l->n_partitions, .cb = on_list_item
    };
    group_ask(l->mount, &item->ask);
}

static void list_go_on(struct groups_list *l)
{
    while (l->rc == 0 && l->asking < GROUPS_ASKED_AT_ONCE && l->asked < l->n) {
        l->asking++;
        list_ask_one(l, l->asked++);
    }
    if (l->asking == 0)
        list_end(l);
}

/* Each broker knows the groups that it coordinates; one that moves just now may be told of by two. */
static bool is_listed(const struct groups_list *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->names[i], name) == 0)
            return true;
    return false;
}

static void on_groups(struct each_broker *e, const char *host, const void *response)
{
    struct groups_list *l = container_of(e, struct groups_list, ask);
    const struct list_groups_response *r = response;
    size_t n_new = r->n_groups > 0 ? (size_t)r->n_groups : 0, n_before = l->n;
    (void)host;

    if (r->error_code != KERR_NONE) {
        l->rc = group_errno(-kerr_errno((enum kerr)r->error_code), (enum kerr)r->error_code);
        return;
    }
    l->names = xreallocarray(l->names, l->n + n_new + 1, sizeof *l->names);
    for (size_t i = 0; i < n_new; i++) {
        char *name = xstrndup(r->groups[i].group_id.p, (size_t)MAX(r->groups[i].group_id.n, 0));
        if (group_name_ok(name) && (n_before == 0 || !is_listed(l, name)))
            l->names[l->n++] = name;
        else
            free(name);
    }
}

static void on_all_groups(struct each_broker *e, int rc, enum kerr err)
{
    struct groups_list *l = container_of(e, struct groups_list, ask);

    if (rc != 0)
        l->rc = group_errno(rc, err);
    l->rc = l->rc == 0 ? 0 : -l->rc;
    list_go_on(l);
}

static enum kerr judge_groups(struct client_call *call, int16_t version, const void *response)
{
    const struct list_groups_response *r = response;
    (void)call;
    (void)version;
    return (enum kerr)r->error_code;
}

void groups_list(struct mount *m, struct groups_list *l)
{
    l->mount = m;
    l->names = NULL;
    l->n = l->asked = l->asking = 0;
    l->rc = 0;
    wire_defaults(&wire_list_groups_request, &l->body);
    l->ask = (struct each_broker){ .request = &wire_list_groups_request,
                                   .body = &l->body,
                                   .judge = judge_groups,
                                   .answer = on_groups,
                                   .end = on_all_groups };
    each_broker_ask(m, &l->ask);
}
