/* SPDX-License-Identifier: Apache-2.0 */
/* For programs with nothing else to do: runs the loop until one call is done. */
#ifndef KLOG_CLIENT_SYNC_H
#define KLOG_CLIENT_SYNC_H

#include "lib/client/client.h"

/* Fills call.cb and call.user itself. Returns rc; on 0 *ret is the response, in arena memory of the caller.
 * The ret_ pointers may be NULL. */
int client_call_sync(struct loop *lp, struct client *c, struct client_call *call, struct arena *a,
                     enum kerr *ret_err, int16_t *ret_version, const void **ret);
int client_refresh_sync(struct loop *lp, struct client *c, const char *topic, int64_t deadline_ms);

#endif
