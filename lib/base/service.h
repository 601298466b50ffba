/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program that runs in the background owes its administrator: a log file that can be renamed away and opened anew, log lines
 * as journald and syslog read them, a pid file. Main thread, but for the lines themselves (log.h). Paths must be absolute where the
 * program changes its directory, and live as long as the program.
 */
#ifndef KLOG_BASE_SERVICE_H
#define KLOG_BASE_SERVICE_H

#include <stdbool.h>

/* Standard error, and so all log lines, goes to the end of this file, which is made (mode 0640) when it is not there. Returns 0 or
 * -errno. What standard error was before is kept for service_complain(). */
int service_log_to(const char *path);
/* The file of that name, after somebody renamed the one that is written: 0 or -errno, and lines go on into the old one. Nothing
 * without service_log_to(). */
int service_log_reopen(void);
/* "PROGRAM: TEXT" on standard error, and until service_settled() also where it led before service_log_to(): who started the program
 * looks there. */
void service_complain(const char *program, const char *text);
void service_settled(void);
/* Is standard error journald's (JOURNAL_STREAM)? Log lines then begin with their level, and have no time of their own. */
bool service_log_to_journal(void);

/* This process's number and a newline. 0 or -errno; a link or a directory there is refused. */
int service_pid_write(const char *path);
/* Unless the file tells of another process by now. */
void service_pid_remove(const char *path);

#endif
