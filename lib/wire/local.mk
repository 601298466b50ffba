# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/libwire.a
%C%_libwire_a_SOURCES =
