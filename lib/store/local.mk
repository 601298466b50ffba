# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/libstore.a
%C%_libstore_a_SOURCES =
