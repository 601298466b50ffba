/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kafka's error codes as a table, made of kerr.def, which is the only place that knows them. A code that is
 * not in it came from a newer broker: it has a name and a text that say so, is not retriable, and is EIO on
 * the mount. The way back, from an errno of the store to a code, is kerr_of_errno; what has no code of its
 * own is KAFKA_STORAGE_ERROR. Pure; any thread.
 */
#include "lib/base/kerr.h"

#include <errno.h>
#include <stddef.h>

#include "lib/base/attr.h"

struct kerr_row {
    int code;
    const char *name, *text;
    bool retriable;
    int eno;
};

static const struct kerr_row rows[] = {
#define KERR(name, code, retriable, eno, text) { code, #name, text, retriable, eno },
#include "lib/base/kerr.def"
#undef KERR
};

static const struct kerr_row *kerr_row(int code)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].code == code)
            return &rows[i];
    return NULL;
}

const char *kerr_name(int code)
{
    const struct kerr_row *r = kerr_row(code);

    return r != NULL ? r->name : "UNKNOWN_CODE";
}

const char *kerr_text(int code)
{
    const struct kerr_row *r = kerr_row(code);

    return r != NULL ? r->text : "an error code that klog does not know";
}

bool kerr_retriable(int code)
{
    const struct kerr_row *r = kerr_row(code);

    return r != NULL && r->retriable;
}

int kerr_errno(int code)
{
    const struct kerr_row *r = kerr_row(code);

    return r != NULL ? r->eno : EIO;
}

enum kerr kerr_of_errno(int eno)
{
    switch (eno) {
    case 0:
        return KERR_NONE;
    case EMSGSIZE:
        return KERR_MESSAGE_TOO_LARGE;
    case ERANGE:
        return KERR_OFFSET_OUT_OF_RANGE;
    case EBADMSG:
        return KERR_CORRUPT_MESSAGE;
    case ENOENT:
        return KERR_UNKNOWN_TOPIC_OR_PARTITION;
    default:
        return KERR_KAFKA_STORAGE_ERROR;
    }
}
