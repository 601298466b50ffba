# SPDX-License-Identifier: Apache-2.0
# `make deb`: Debian packages in deb/. `make check-deb`: builds them in a bare Debian, installs, upgrades, purges.
EXTRA_DIST += %D%/grafana/klog.json %D%/prometheus/klog.rules.yml \
    %D%/deb %D%/check-deb %D%/Dockerfile %D%/Dockerfile.dockerignore \
    %D%/debian/changelog %D%/debian/control %D%/debian/copyright %D%/debian/rules %D%/debian/source/format %D%/debian/not-installed \
    %D%/debian/klog.lintian-overrides %D%/debian/klogd.lintian-overrides %D%/debian/klogfs.lintian-overrides \
    %D%/debian/klog.install %D%/debian/klog.docs \
    %D%/debian/klogd.install %D%/debian/klogd.postinst %D%/debian/klogd.postrm \
    %D%/debian/klogfs.install %D%/debian/klogfs.links %D%/debian/klogfs.default %D%/debian/klogfs.postinst
deb:
	$(MAKE) $(AM_MAKEFLAGS) dist
	$(srcdir)/%D%/deb '$(abs_top_builddir)/deb' '$(distdir).tar.xz'
check-deb:
	$(srcdir)/%D%/check-deb
.PHONY: deb check-deb
