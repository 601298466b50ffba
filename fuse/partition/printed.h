/* SPDX-License-Identifier: Apache-2.0 */
/* Getting text that has a map (X6 of ptext.h), as fetch.h's functions do for the others. Loop's thread. */
#ifndef KLOG_FUSE_PRINTED_H
#define KLOG_FUSE_PRINTED_H

#include "fuse/partition/pfile.h"

/* fetch_text() and fetch_ahead() of a text with a map. */
void printed_fetch(struct ptext *t, int64_t at, struct text_edge edge, struct fetch_wait *w);
void printed_ahead(struct ptext *t, int64_t at, int64_t until);

#endif
