# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/libbase.a
%C%_libbase_a_SOURCES =
