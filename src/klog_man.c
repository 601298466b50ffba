/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints docs/man/klog.1 from the command table: src/klog-man > docs/man/klog.1 after changing a command (`make man` does
 * it). Parser, help, completion and manual come from one table, and a test sees that the page is what this prints. Built,
 * not installed.
 */
#include "src/cli.h"

int main(void)
{
    man_print(stdout, &klog_root);
    return ferror(stdout) != 0 || fflush(stdout) != 0;
}
