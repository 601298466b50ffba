/* SPDX-License-Identifier: Apache-2.0 */
/* UUIDs in Kafka's text form: 22 characters of URL-safe base64 without padding. */
#ifndef KLOG_BASE_UUID_H
#define KLOG_BASE_UUID_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define UUID_TEXT_LEN 22

struct uuid {
    uint8_t b[16];
};

struct random;
void uuid_random(struct random *r, struct uuid *ret); /* version 4; never starts with '-' in text form */
void uuid_text(const struct uuid *u, char ret[UUID_TEXT_LEN + 1]);
bool uuid_parse(const char *text, struct uuid *ret);
static inline bool uuid_is_zero(const struct uuid *u)
{
    static const struct uuid zero;
    return memcmp(u, &zero, sizeof zero) == 0;
}
static inline bool uuid_eq(const struct uuid *a, const struct uuid *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

#endif
