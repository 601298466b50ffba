/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ListTransactions: this broker coordinates none. The filters are judged all the same, so that a wrong one is told. On the
 * session's loop.
 */
#include <regex.h>
#include <string.h>

#include "daemon/api/api.h"
#include "lib/base/kerr.h"

enum { PATTERN_BYTES_MAX = 1024 };

static bool is_state(struct kstr s)
{
    static const char *const states[] = { "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit",
                                          "CompleteAbort", "Dead", "PrepareEpochFence" };

    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        if (kstr_eqz(s, states[i]))
            return true;
    }
    return false;
}

/* Kafka's are RE2's; what POSIX takes of these is enough to tell whether brackets match. */
static enum kerr pattern_check(struct kstr pattern)
{
    char text[PATTERN_BYTES_MAX + 1];
    regex_t re;

    if (pattern.n <= 0)
        return KERR_NONE;
    if (pattern.n > PATTERN_BYTES_MAX || memchr(pattern.p, '\0', (size_t)pattern.n) != NULL)
        return KERR_INVALID_REGULAR_EXPRESSION;
    memcpy(text, pattern.p, (size_t)pattern.n);
    text[pattern.n] = '\0';
    if (regcomp(&re, text, REG_EXTENDED | REG_NOSUB) != 0)
        return KERR_INVALID_REGULAR_EXPRESSION;
    regfree(&re);
    return KERR_NONE;
}

void handle_list_transactions(struct request *r)
{
    const struct list_transactions_request *q = r->body;
    struct list_transactions_response rsp;

    wire_defaults(&wire_list_transactions_response, &rsp);
    rsp.error_code = (int16_t)pattern_check(q->transactional_id_pattern);
    rsp.unknown_state_filters = arena_array(&r->arena, (size_t)q->n_state_filters, sizeof *rsp.unknown_state_filters);
    for (int32_t i = 0; rsp.error_code == KERR_NONE && i < q->n_state_filters; i++) {
        if (!is_state(q->state_filters[i]))
            rsp.unknown_state_filters[rsp.n_unknown_state_filters++] = q->state_filters[i];
    }
    request_reply(r, &rsp);
}
