# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/libclient.a
%C%_libclient_a_SOURCES =
