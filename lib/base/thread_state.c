/* SPDX-License-Identifier: Apache-2.0 */
/* The one variable of thread_state.h. Each thread begins with none of it set, and only it touches its own. */
#include "lib/base/thread_state.h"

_Thread_local struct thread_state thread_state;
