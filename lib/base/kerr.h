/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kafka's error codes, from one table (kerr.def): number, name, whether a client may retry, and
 * the errno that the mount shows for it.
 */
#ifndef KLOG_BASE_KERR_H
#define KLOG_BASE_KERR_H

#include <stdbool.h>

enum kerr {
#define KERR(name, code, retriable, eno, text) KERR_##name = code,
#include "lib/base/kerr.def"
#undef KERR
};

const char *kerr_name(int code);        /* "NOT_LEADER_OR_FOLLOWER"; "UNKNOWN_CODE" for what is not in the table */
const char *kerr_text(int code);        /* a sentence for people */
bool kerr_retriable(int code);
int kerr_errno(int code);               /* positive errno, 0 for KERR_NONE; filesystem.md section 2 */
enum kerr kerr_of_errno(int eno);       /* of a storage call: EIO, ENOSPC, ... -> KAFKA_STORAGE_ERROR */

#endif
