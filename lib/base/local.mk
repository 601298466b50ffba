# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/libbase.a
%C%_libbase_a_CPPFLAGS = $(AM_CPPFLAGS) $(ISAL_CFLAGS)
%C%_libbase_a_SOURCES = \
	%D%/arena.c %D%/arena.h \
	%D%/attr.h \
	%D%/buf.c %D%/buf.h \
	%D%/check.c %D%/check.h \
	%D%/clock.c %D%/clock.h \
	%D%/conf.c %D%/conf.h \
	%D%/crc32c.c %D%/crc32c.h \
	%D%/fsutil.c %D%/fsutil.h \
	%D%/hostport.c %D%/hostport.h \
	%D%/kerr.c %D%/kerr.def %D%/kerr.h \
	%D%/lock.c %D%/lock.h \
	%D%/log.c %D%/log.h \
	%D%/machine.c \
	%D%/mem.c %D%/mem.h \
	%D%/murmur2.c %D%/murmur2.h \
	%D%/nearest.c %D%/nearest.h \
	%D%/random.c \
	%D%/service.c %D%/service.h \
	%D%/slice.h \
	%D%/thread_state.c %D%/thread_state.h \
	%D%/utf16.c %D%/utf16.h \
	%D%/uuid.c %D%/uuid.h \
	%D%/varint.h \
	%D%/when.c %D%/when.h \
	%D%/world.h
