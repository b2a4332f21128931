#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# build.sh SEED SOURCE PREFIX: builds the CRuby of the source tree SOURCE with other struct layouts, which
# alter.rb chooses by the seed, as are the compiler, its level and whether the VM is in a library of its own;
# and puts what its programs need, stripped, into PREFIX. PREFIX/altered says what was done. Does nothing if that is there already.
#
#   JOBS=N     for make; 1 if not set
#   PLAIN=y    leave the layouts as they are
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
seed=$1
source=$(realpath "$2")
prefix=$(realpath -m "$3")
# What rubygems, the oracle and the other programs of the tests require.
extensions=continuation,digest,digest/md5,digest/rmd160,digest/sha1,digest/sha2,etc,io/wait,json,json/generator,json/parser
extensions+=,monitor,objspace,rbconfig/sizeof,stringio,zlib

[ ! -e "$prefix/altered" ] || exit 0
rm -rf "$prefix" "$prefix.tree"
mkdir -p "$prefix.tree"
cp -a "$source/." "$prefix.tree"
cd "$prefix.tree"
if [ -n "${PLAIN-}" ]; then echo 'as it is' >altered; else ruby "$here/alter.rb" "$seed" . >altered; fi

# Debian's source has no bundled gems, and make would fetch them.
: >gems/bundled_gems
compilers=(gcc clang)
compiler=${compilers[$((seed % 2))]}
level=-O$((seed / 2 % 4))
shared=$((seed % 3 == 0 ? 0 : 1))
options=(--prefix="$prefix" --disable-install-doc --disable-rpath --without-gmp --with-ext="$extensions"
	CC="$compiler" optflags="$level" debugflags=-g0 LDFLAGS="-Wl,-rpath,$prefix/lib")
[ $shared = 0 ] || options+=(--enable-shared)
echo "$compiler $level $([ $shared = 0 ] && echo static || echo shared)" >>altered
./configure -q "${options[@]}" >log 2>&1
make -j"${JOBS:-1}" V=0 >>log 2>&1
# By hand, as make install wants all that gems need, too.
version=$(sed -n 's/^ruby_version = //p' Makefile)
arch=$(sed -n 's/^arch = //p' Makefile)
mkdir -p "$prefix/bin" "$prefix/lib/ruby/$version/$arch"
cp ruby "$prefix/bin"
cp -r lib/. .ext/common/. "$prefix/lib/ruby/$version"
cp -r ".ext/$arch/." rbconfig.rb "$prefix/lib/ruby/$version/$arch"
strip "$prefix/bin/ruby"
if [ $shared = 1 ]; then
	cp -a libruby.so* "$prefix/lib"
	strip --strip-unneeded "$prefix"/lib/libruby.so.*.*.*
fi
cp altered "$prefix/altered"
cd /
rm -rf "$prefix.tree"
