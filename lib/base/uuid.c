/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UUIDs as Kafka writes them. uuid_random makes ones of version 4 whose text does not begin with '-', since
 * it is typed behind options; uuid_parse takes exactly what uuid_text writes: 22 digits, no bits beyond the
 * sixteenth byte. Any thread; no state.
 */
#include "lib/base/uuid.h"

#include <stddef.h>

#include "lib/base/world.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void uuid_random(struct random *r, struct uuid *ret)
{
    char text[UUID_TEXT_LEN + 1];

    do {                                            /* a name that starts with '-' looks like an option to tools */
        r->fill(r, ret->b, sizeof ret->b);
        ret->b[6] = (uint8_t)((ret->b[6] & 0x0f) | 0x40);
        ret->b[8] = (uint8_t)((ret->b[8] & 0x3f) | 0x80);
        uuid_text(ret, text);
    } while (text[0] == '-');
}

void uuid_text(const struct uuid *u, char ret[UUID_TEXT_LEN + 1])
{
    for (int i = 0; i < UUID_TEXT_LEN; i++) {
        int bit = i * 6, byte = bit / 8;
        uint32_t two = (uint32_t)u->b[byte] << 8 | (byte + 1 < 16 ? u->b[byte + 1] : 0);
        ret[i] = digits[(two >> (10 - bit % 8)) & 63];
    }
    ret[UUID_TEXT_LEN] = '\0';
}

bool uuid_parse(const char *text, struct uuid *ret)
{
    struct uuid u = { { 0 } };

    if (strlen(text) != UUID_TEXT_LEN)
        return false;
    for (int i = 0; i < UUID_TEXT_LEN; i++) {
        const char *d = strchr(digits, text[i]);
        if (d == NULL)
            return false;
        int bit = i * 6, byte = bit / 8;
        uint32_t two = (uint32_t)(d - digits) << (10 - bit % 8);
        u.b[byte] |= (uint8_t)(two >> 8);
        if (byte + 1 < 16)
            u.b[byte + 1] |= (uint8_t)two;
        else if ((two & 0xff) != 0)
            return false;                           /* bits beyond the sixteenth byte */
    }
    *ret = u;
    return true;
}
