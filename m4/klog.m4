dnl SPDX-License-Identifier: Apache-2.0
dnl KLOG_WITH(name, VARIABLE, pkg-config modules, what it is for)
AC_DEFUN([KLOG_WITH], [
  AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1], [$4 @<:@auto@:>@])], [], [with_$1=auto])
  have_$1=no
  AS_IF([test "x$with_$1" != xno], [
    PKG_CHECK_MODULES([$2], [$3], [have_$1=yes], [
      AS_IF([test "x$with_$1" = xyes], [AC_MSG_ERROR([--with-$1 was asked for, but $3 was not found])])])])
  AS_IF([test $have_$1 = yes], [AC_DEFINE([HAVE_$2], [1], [$4])])
  AM_CONDITIONAL([HAVE_$2], [test $have_$1 = yes])
])

dnl KLOG_WITH_LIB(name, VARIABLE, header, library, function, what it is for): as KLOG_WITH, for what pkg-config does not know
AC_DEFUN([KLOG_WITH_LIB], [
  AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1], [$6 @<:@auto@:>@])], [], [with_$1=auto])
  have_$1=no
  AS_IF([test "x$with_$1" != xno], [
    AC_CHECK_HEADER([$3], [AC_CHECK_LIB([$4], [$5], [have_$1=yes])])
    AS_IF([test "x$with_$1" = xyes && test $have_$1 = no], [AC_MSG_ERROR([--with-$1 was asked for, but $3 and lib$4 were not found])])])
  AS_IF([test $have_$1 = yes], [AC_DEFINE([HAVE_$2], [1], [$6]) AC_SUBST([$2_LIBS], [-l$4])])
  AM_CONDITIONAL([HAVE_$2], [test $have_$1 = yes])
])

AC_DEFUN([AX_NEED_HEADER], [
  AC_CHECK_HEADER([$1], [], [AC_MSG_ERROR([the header $1 was not found; on Debian: apt-get install $2])])
])

AC_DEFUN([KLOG_TRY_FLAG], [
  AC_MSG_CHECKING([whether $CC takes $1])
  klog_saved=$CFLAGS
  CFLAGS="$CFLAGS -Werror $1"
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
    [AC_MSG_RESULT([yes]); WARN_CFLAGS="$WARN_CFLAGS $1"], [AC_MSG_RESULT([no])])
  CFLAGS=$klog_saved
])

AC_DEFUN([KLOG_WARNINGS], [
  AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [warnings are errors, for CI])])
  WARN_CFLAGS=
  m4_foreach_w([klog_flag], [-Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes
      -Wold-style-definition -Wvla -Wwrite-strings -Wundef -Wformat=2 -Wthread-safety],
    [KLOG_TRY_FLAG(klog_flag)])
  AS_IF([test "x$enable_werror" = xyes], [WARN_CFLAGS="$WARN_CFLAGS -Werror"])
  AC_SUBST([WARN_CFLAGS])
])

dnl --enable-sanitizers=address,undefined or =thread; the flags must reach the compiler and the linker.
AC_DEFUN([KLOG_SANITIZERS], [
  AC_ARG_ENABLE([sanitizers],
    [AS_HELP_STRING([--enable-sanitizers@<:@=LIST@:>@], [build with sanitizers @<:@address,undefined@:>@])],
    [], [enable_sanitizers=no])
  SAN_FLAGS=
  AS_CASE([$enable_sanitizers],
    [no], [],
    dnl gcc tests the address of a thread-local variable for null by the flags of an addition that the linker then takes out; what
    dnl is really null is address sanitizer's business, too
    [yes], [SAN_FLAGS="-fsanitize=address,undefined -fno-sanitize=null -fno-sanitize-recover=all -fno-omit-frame-pointer"],
    [SAN_FLAGS="-fsanitize=$enable_sanitizers -fno-sanitize-recover=all -fno-omit-frame-pointer"])
  AC_SUBST([SAN_FLAGS])
])
