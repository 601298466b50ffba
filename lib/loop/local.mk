# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/libloop.a
%C%_libloop_a_SOURCES =
