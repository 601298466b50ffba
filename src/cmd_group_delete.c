/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog group delete: one request a group, to its own coordinator, so that one that fails does not keep the
 * others. A group with members is refused by the broker, and the line says what to do. One thread.
 */
#include "src/commands.h"
#include "src/out.h"
#include "src/session.h"

static const struct option_spec options[] = {
    { "if-exists", 0, NULL, "a group that is not there is no failure" },
    { NULL, 0, NULL, NULL },
};

static enum kerr judge(struct client_call *call, int16_t version, const void *response)
{
    const struct delete_groups_response *r = response;

    (void)call, (void)version;
    return r->n_results == 1 ? (enum kerr)r->results[0].error_code : KERR_UNKNOWN_SERVER_ERROR;
}

/* One request a group: each has a coordinator of its own. */
static bool group_delete(struct session *s, const char *name)
{
    struct delete_groups_request req;
    struct kstr names[] = { kstr_of(name) };

    wire_defaults(&wire_delete_groups_request, &req);
    req.groups_names = names;
    req.n_groups_names = 1;
    const struct delete_groups_response *r =
        session_call(s, &(struct session_call){ .target = TARGET_COORDINATOR,
                                                .group = name,
                                                .request = &wire_delete_groups_request,
                                                .body = &req,
                                                .judge = judge });
    if (r == NULL)
        return false;
    enum kerr err = judge(NULL, 0, r);
    if (err == KERR_GROUP_ID_NOT_FOUND && args_has(s->args, "if-exists"))
        return true;
    if (err == KERR_NON_EMPTY_GROUP) {
        complain(s->args,
                 "group %s has members; stop them first ('klog group describe %s --members' names them)",
                 name, name);
        return false;
    }
    if (err != KERR_NONE) {
        complain_kerr(s->args, name, err, KSTR_NULL);
        return false;
    }
    if (args_has(s->args, "json"))
        out_json(stdout, json_pack("{s:s, s:b}", "group", name, "deleted", 1));
    else
        printf("%s deleted\n", name);
    return true;
}

static int run(const struct args *a)
{
    CLEANUP(session_close) struct session s = { 0 };
    bool ok = true;
    int rc = session_init(&s, a);

    if (rc != CLI_OK || (rc = session_connect(&s)) != CLI_OK)
        return rc;
    for (size_t i = 0; i < a->n_operands; i++)
        ok = group_delete(&s, a->operands[i]) && ok;
    return ok ? CLI_OK : CLI_FAILED;
}

const struct command cmd_group_delete = {
    .name = "delete",
    .operands = "GROUP...",
    .operands_min = 1,
    .operands_max = -1,
    .summary = "Deletes consumer groups and their positions",
    .text = "A group that has members is refused: stop them first.",
    .examples = "klog group delete billing\n"
                "klog group delete scratch --if-exists",
    .options = options,
    .online = true,
    .run = run,
};
