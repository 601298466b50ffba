# SPDX-License-Identifier: Apache-2.0
# klogfs is main.c over libklogfs.a, which the tests link too. Without libfuse3 only the parts that need none are built.
noinst_LIBRARIES += %D%/libklogfs.a
%C%_libklogfs_a_CPPFLAGS = $(AM_CPPFLAGS) $(FUSE_CFLAGS)
LIBS_KLOGFS = %D%/libklogfs.a $(LIBS_METRICS) $(LIBS_CLIENT) $(FUSE_LIBS)

# pure: built and tested without libfuse3, too
%C%_libklogfs_a_SOURCES = %D%/base/options.c %D%/base/options.h
%C%_libklogfs_a_SOURCES += %D%/meter/under_way.c %D%/meter/under_way.h
%C%_libklogfs_a_SOURCES += %D%/text/line_index.c %D%/text/line_index.h
%C%_libklogfs_a_SOURCES += %D%/text/lines.c %D%/text/lines.h
%C%_libklogfs_a_SOURCES += %D%/text/map.c %D%/text/map.h
%C%_libklogfs_a_SOURCES += %D%/text/text.c %D%/text/text.h

if HAVE_FUSE
# base: the mount, its requests, the time-out
%C%_libklogfs_a_SOURCES += %D%/base/fuse_api.h %D%/base/mount.h
%C%_libklogfs_a_SOURCES += %D%/base/missed.c %D%/base/missed.h
%C%_libklogfs_a_SOURCES += %D%/base/request.c %D%/base/request.h

# meter: what is told to those who watch klogfs
%C%_libklogfs_a_SOURCES += %D%/meter/meter.c %D%/meter/meter.h %D%/meter/meter_int.h
%C%_libklogfs_a_SOURCES += %D%/meter/page.c %D%/meter/metrics.def

# cluster: what brokers are asked of topics, groups and disks
%C%_libklogfs_a_SOURCES += %D%/cluster/groups.c %D%/cluster/groups.h %D%/cluster/group_users.c
%C%_libklogfs_a_SOURCES += %D%/cluster/each_broker.c %D%/cluster/each_broker.h
%C%_libklogfs_a_SOURCES += %D%/cluster/statfs.c %D%/cluster/statfs.h
%C%_libklogfs_a_SOURCES += %D%/cluster/topics.c %D%/cluster/topics.h %D%/cluster/limits.c

# partition: its ends, its text, its news
%C%_libklogfs_a_SOURCES += %D%/partition/ends.c %D%/partition/ends_check.c
%C%_libklogfs_a_SOURCES += %D%/partition/fetch.c
%C%_libklogfs_a_SOURCES += %D%/partition/pfile.c %D%/partition/pfile.h
%C%_libklogfs_a_SOURCES += %D%/partition/place.c %D%/partition/place.h
%C%_libklogfs_a_SOURCES += %D%/partition/poke.c %D%/partition/poke.h
%C%_libklogfs_a_SOURCES += %D%/partition/printed.c %D%/partition/printed.h
%C%_libklogfs_a_SOURCES += %D%/partition/ptext.c %D%/partition/ptext.h
%C%_libklogfs_a_SOURCES += %D%/partition/stat_call.c %D%/partition/stat_call.h
%C%_libklogfs_a_SOURCES += %D%/partition/text_ask.c
%C%_libklogfs_a_SOURCES += %D%/partition/watch.c %D%/partition/watch.h

# tree: nodes, names, open files
%C%_libklogfs_a_SOURCES += %D%/tree/dir.c %D%/tree/dir.h %D%/tree/dir_attr.c %D%/tree/lookup.c
%C%_libklogfs_a_SOURCES += %D%/tree/file.c %D%/tree/file.h
%C%_libklogfs_a_SOURCES += %D%/tree/node.c %D%/tree/node.h
%C%_libklogfs_a_SOURCES += %D%/tree/poll_op.c %D%/tree/poll_op.h

# file: partitions as files that are read, followed and appended to
%C%_libklogfs_a_SOURCES += %D%/file/append.c %D%/file/append.h %D%/file/append_int.h
%C%_libklogfs_a_SOURCES += %D%/file/append_close.c %D%/file/append_send.c
%C%_libklogfs_a_SOURCES += %D%/file/merged.c %D%/file/merged.h
%C%_libklogfs_a_SOURCES += %D%/file/pfile_attr.c %D%/file/pfile_attr.h
%C%_libklogfs_a_SOURCES += %D%/file/pfile_read.c %D%/file/pfile_read.h
%C%_libklogfs_a_SOURCES += %D%/file/stream.c %D%/file/stream.h

# page: small texts that are made when somebody looks
%C%_libklogfs_a_SOURCES += %D%/page/config_file.c
%C%_libklogfs_a_SOURCES += %D%/page/page.c %D%/page/page.h
%C%_libklogfs_a_SOURCES += %D%/page/status_file.c
%C%_libklogfs_a_SOURCES += %D%/page/xattr.c %D%/page/xattr.h

# group: what is read as a group, and the groups themselves
%C%_libklogfs_a_SOURCES += %D%/group/group_files.h %D%/group/group_admin.c %D%/group/group_status.c %D%/group/position_file.c
%C%_libklogfs_a_SOURCES += %D%/group/reader.c %D%/group/reader.h %D%/group/reader_part.c %D%/group/reader_member.c
%C%_libklogfs_a_SOURCES += %D%/group/reader_open.c %D%/group/reader_poll.c

# all of them together
%C%_libklogfs_a_SOURCES += %D%/admin.c %D%/admin.h
%C%_libklogfs_a_SOURCES += %D%/kinds.c %D%/kinds.h
%C%_libklogfs_a_SOURCES += %D%/ops.c %D%/ops.h
%C%_libklogfs_a_SOURCES += %D%/session.c %D%/session.h
%C%_libklogfs_a_SOURCES += %D%/stale.c %D%/stale.h

bin_PROGRAMS += %D%/klogfs
%C%_klogfs_SOURCES = %D%/main.c
%C%_klogfs_CPPFLAGS = $(AM_CPPFLAGS) $(FUSE_CFLAGS)
%C%_klogfs_LDADD = $(LIBS_KLOGFS)

# mount(8) looks for its helper in sbin.
install-exec-hook:
	$(MKDIR_P) '$(DESTDIR)$(sbindir)'
	cd '$(DESTDIR)$(sbindir)' && rm -f mount.klogfs && ln -s '$(bindir)/klogfs' mount.klogfs
uninstall-hook:
	rm -f '$(DESTDIR)$(sbindir)/mount.klogfs'
endif
