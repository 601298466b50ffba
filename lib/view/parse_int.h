/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the parser. One thread a parser. */
#ifndef KLOG_VIEW_PARSE_INT_H
#define KLOG_VIEW_PARSE_INT_H

#include "lib/view/parse.h"

bool json_line_parse(struct line_parser *p, const char *line, size_t n, struct line_record *ret);

#endif
