# SPDX-License-Identifier: Apache-2.0
# klogfs is main.c over libklogfs.a, which the tests link too. Without libfuse3 only the parts that need none are built.
noinst_LIBRARIES += %D%/libklogfs.a
%C%_libklogfs_a_CPPFLAGS = $(AM_CPPFLAGS) $(FUSE_CFLAGS)
LIBS_KLOGFS = %D%/libklogfs.a $(LIBS_CLIENT) $(FUSE_LIBS)

# pure
%C%_libklogfs_a_SOURCES = %D%/view.c %D%/view.h
%C%_libklogfs_a_SOURCES += %D%/lines.c %D%/lines.h
%C%_libklogfs_a_SOURCES += %D%/text.c %D%/text.h
%C%_libklogfs_a_SOURCES += %D%/options.c %D%/options.h

if HAVE_FUSE
# the tree
%C%_libklogfs_a_SOURCES += %D%/fuse_api.h %D%/mount.h
%C%_libklogfs_a_SOURCES += %D%/request.c %D%/request.h
%C%_libklogfs_a_SOURCES += %D%/node.c %D%/node.h
%C%_libklogfs_a_SOURCES += %D%/topics.c %D%/topics.h %D%/limits.c
%C%_libklogfs_a_SOURCES += %D%/dir.c %D%/dir.h %D%/dir_attr.c %D%/lookup.c
%C%_libklogfs_a_SOURCES += %D%/admin.c %D%/admin.h

# files
%C%_libklogfs_a_SOURCES += %D%/file.c %D%/file.h
%C%_libklogfs_a_SOURCES += %D%/pfile.c %D%/pfile.h
%C%_libklogfs_a_SOURCES += %D%/ptext.c %D%/ptext.h
%C%_libklogfs_a_SOURCES += %D%/pfile_attr.c %D%/pfile_attr.h
%C%_libklogfs_a_SOURCES += %D%/pfile_read.c %D%/pfile_read.h
%C%_libklogfs_a_SOURCES += %D%/pfile_write.c %D%/pfile_write.h
%C%_libklogfs_a_SOURCES += %D%/ends.c %D%/ends_check.c %D%/stat_call.c %D%/stat_call.h
%C%_libklogfs_a_SOURCES += %D%/fetch.c
%C%_libklogfs_a_SOURCES += %D%/stream.c %D%/stream.h
%C%_libklogfs_a_SOURCES += %D%/poll_op.c %D%/poll_op.h
%C%_libklogfs_a_SOURCES += %D%/watch.c %D%/watch.h
%C%_libklogfs_a_SOURCES += %D%/poke.c %D%/poke.h
%C%_libklogfs_a_SOURCES += %D%/page.c %D%/page.h
%C%_libklogfs_a_SOURCES += %D%/config_file.c
%C%_libklogfs_a_SOURCES += %D%/status_file.c
%C%_libklogfs_a_SOURCES += %D%/groups.c %D%/groups.h %D%/group_admin.c
%C%_libklogfs_a_SOURCES += %D%/reader.c %D%/reader.h %D%/reader_part.c %D%/reader_member.c
%C%_libklogfs_a_SOURCES += %D%/reader_open.c %D%/reader_poll.c
%C%_libklogfs_a_SOURCES += %D%/position_file.c %D%/group_status.c
%C%_libklogfs_a_SOURCES += %D%/xattr.c %D%/xattr.h
%C%_libklogfs_a_SOURCES += %D%/statfs.c %D%/statfs.h

# the mount
%C%_libklogfs_a_SOURCES += %D%/ops.c %D%/ops.h
%C%_libklogfs_a_SOURCES += %D%/missed.c
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
