/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/thread_state.h"

_Thread_local struct thread_state thread_state;
