# SPDX-License-Identifier: Apache-2.0
# klogd is main.c over libklogd.a, which the tests link too.
noinst_LIBRARIES += %D%/libklogd.a
%C%_libklogd_a_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
%C%_libklogd_a_SOURCES =
LIBS_KLOGD = %D%/libklogd.a lib/store/libstore.a $(LIBS_CLIENT) $(JANSSON_LIBS)

# configuration
%C%_libklogd_a_SOURCES += %D%/broker_config.c %D%/broker_config.h
%C%_libklogd_a_SOURCES += %D%/broker_listeners.c
%C%_libklogd_a_SOURCES += %D%/topic_config.c %D%/topic_config.h

# replicas
%C%_libklogd_a_SOURCES += %D%/replica/replica.c %D%/replica/replica.h
EXTRA_DIST += %D%/replica/README.md
