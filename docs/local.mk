# SPDX-License-Identifier: Apache-2.0
EXTRA_DIST += %D%/FAQ.md %D%/CLUSTER.md %D%/ARCHITECTURE.md %D%/DISK-FORMAT.md %D%/HACKING.md %D%/filesystem.md %D%/COMPATIBILITY.md %D%/WATCHING.md

# Manual pages. klogd.properties(5) is printed from the tables of keys, klog(1) from that of commands; after changing
# one: make man
dist_man_MANS += %D%/man/klogd.8 %D%/man/klogfs.8 %D%/man/klogd.properties.5 %D%/man/klog.1 %D%/man/klog.7
noinst_PROGRAMS += %D%/print-keys
%C%_print_keys_SOURCES = %D%/print_keys.c
%C%_print_keys_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
%C%_print_keys_LDADD = $(LIBS_KLOGD)
man: $(noinst_PROGRAMS)
	%D%/print-keys >$(srcdir)/%D%/man/klogd.properties.5
	src/klog-man >$(srcdir)/%D%/man/klog.1
.PHONY: man
# The tables of metrics in WATCHING.md are what klogd and klogfs print.
noinst_PROGRAMS += %D%/print-metrics
%C%_print_metrics_SOURCES = %D%/print_metrics.c
%C%_print_metrics_LDADD = $(LIBS_KLOGD)
watching: %D%/print-metrics
	%D%/print-metrics klogd >watching.tmp
	%D%/print-metrics klogfs >watching-fs.tmp
	sed -i -e '/^<!-- metrics/,/^<!-- end/{/^| `/d;/^|---/r watching.tmp' -e '}' \
	    -e '/^<!-- klogfs metrics/,/^<!-- end/{/^| `/d;/^|---/r watching-fs.tmp' -e '}' $(srcdir)/%D%/WATCHING.md
	rm -f watching.tmp watching-fs.tmp
.PHONY: watching

# systemd
EXTRA_DIST += %D%/systemd/klogd.service.in %D%/systemd/klogfs.service.in %D%/systemd/klogd.properties
CLEANFILES += klogd.service klogfs.service
systemdsystemunit_DATA = klogd.service klogfs.service
klogd.service: %D%/systemd/klogd.service.in Makefile
	$(AM_V_GEN)sed -e 's|@sbindir[@]|$(sbindir)|' -e 's|@bindir[@]|$(bindir)|' $(srcdir)/%D%/systemd/klogd.service.in >$@
klogfs.service: %D%/systemd/klogfs.service.in Makefile
	$(AM_V_GEN)sed -e 's|@sbindir[@]|$(sbindir)|' -e 's|@bindir[@]|$(bindir)|' $(srcdir)/%D%/systemd/klogfs.service.in >$@

# The user of klogd.service and the group of klogfs.service: systemd-sysusers makes them, or ./quickstart, or a package.
sysusersdir = $(prefix)/lib/sysusers.d
dist_sysusers_DATA = %D%/systemd/sysusers.d/klog.conf

# bash completion: the file is named as the command
bashcompletiondir = $(datadir)/bash-completion/completions
EXTRA_DIST += %D%/klog.bash
install-data-local:
	$(MKDIR_P) '$(DESTDIR)$(bashcompletiondir)'
	$(INSTALL_DATA) $(srcdir)/%D%/klog.bash '$(DESTDIR)$(bashcompletiondir)/klog'
uninstall-local:
	rm -f '$(DESTDIR)$(bashcompletiondir)/klog'
