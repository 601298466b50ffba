# SPDX-License-Identifier: Apache-2.0
# noinst_LIBRARIES += %D%/libloop.a   comes with the first source
