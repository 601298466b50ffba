# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/libloop.a
%C%_libloop_a_SOURCES = \
	%D%/conn.c %D%/conn.h %D%/conn_in.c %D%/conn_int.h %D%/conn_out.c \
	%D%/exec.h %D%/exec_threads.c \
	%D%/loop.c %D%/loop.h %D%/loop_int.h \
	%D%/net.h %D%/net_real.c \
	%D%/resolve.c %D%/thread.c %D%/thread.h %D%/workers.c %D%/workers.h
