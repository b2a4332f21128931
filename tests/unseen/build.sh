#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# build.sh SEED SOURCE PREFIX: builds the CRuby of the source tree SOURCE (a release's, or a checkout) with other
# struct layouts, which alter.rb chooses by the seed, as are the compiler, its level, whether it optimises at link
# time, whether the VM is in a library of its own, and whether symbols and debug information stay; and puts what
# its programs need into PREFIX. PREFIX/altered says what was done. Does nothing if that is there already.
#
#   JOBS=N       for make; 1 if not set
#   PLAIN=y      leave the layouts as they are
#   GC=NAME...   build these collectors as modules (RUBY_GC_LIBRARY), from 3.4 on
#   LIBC=musl    with gcc and musl (Debian packages musl-dev, musl-tools), without what needs other libraries
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
seed=$1
source=$(realpath "$2")
prefix=$(realpath -m "$3")
# What rubygems, the oracle and the other programs of the tests require.
extensions=continuation,digest,digest/md5,digest/rmd160,digest/sha1,digest/sha2,etc,io/wait,json,json/generator,json/parser
extensions+=,monitor,objspace,rbconfig/sizeof,stringio
# A collector is built as an extension is, and is among those that are chosen.
for i in ${GC-}; do extensions+=,$i; done

[ ! -e "$prefix/altered" ] || exit 0
rm -rf "$prefix" "$prefix.tree"
mkdir -p "$prefix.tree"
cp -a "$source/." "$prefix.tree"
cd "$prefix.tree"
if [ -n "${PLAIN-}" ]; then echo 'as it is' >altered; else ruby "$here/alter.rb" "$seed" . >altered; fi

# Debian's source has no bundled gems, and make would fetch them.
: >gems/bundled_gems
[ -e configure ] || ./autogen.sh >log 2>&1
compilers=(gcc clang)
compiler=${compilers[$((seed % 2))]}
if [ "${LIBC-}" = musl ]; then
	# The kernel's headers are beside those of the other libc, which must not be found.
	mkdir "$prefix.tree/kernel"
	ln -s /usr/include/linux /usr/include/asm-generic "/usr/include/$(gcc -print-multiarch)/asm" "$prefix.tree/kernel"
	compiler="musl-gcc -isystem $prefix.tree/kernel"
else
	extensions+=,zlib
fi
flags=-O$((seed / 2 % 4))
shared=$((seed % 3 == 0 ? 0 : 1))
# clang's objects for the linker are nothing that GNU ld reads.
lto=$((seed % 5 == 0 && seed % 2 == 0))
debug=$((seed % 4 == 3))
[ $lto = 0 ] || flags+=' -flto'
options=(--prefix="$prefix" --disable-install-doc --disable-rpath --without-gmp --with-ext="$extensions"
	CC="$compiler" optflags="$flags" "debugflags=-g$debug" LDFLAGS="-Wl,-rpath,$prefix/lib")
[ $shared = 0 ] || options+=(--enable-shared)
# Their machine code has offsets of structs that are fixed before they are compiled.
[ -n "${PLAIN-}" ] || options+=(--disable-yjit --disable-zjit)
[ -z "${GC-}" ] || options+=(--with-modular-gc="$prefix/gc")
echo "$compiler $flags $([ $shared = 0 ] && echo static || echo shared)$([ $debug = 0 ] || echo ', with debug information')${GC:+, collectors $GC}" >>altered
./configure -q "${options[@]}" >>log 2>&1
make -j"${JOBS:-1}" V=0 >>log 2>&1
for i in ${GC-}; do
	make install-modular-gc MODULAR_GC="$i" V=0 >>log 2>&1
done
# By hand, as make install wants all that gems need, too.
version=$(sed -n 's/^ruby_version = //p' Makefile)
arch=$(sed -n 's/^arch = //p' Makefile)
mkdir -p "$prefix/bin" "$prefix/lib/ruby/$version/$arch"
cp ruby "$prefix/bin"
cp -r lib/. .ext/common/. "$prefix/lib/ruby/$version"
cp -r ".ext/$arch/." rbconfig.rb "$prefix/lib/ruby/$version/$arch"
[ $debug = 1 ] || strip "$prefix/bin/ruby"
if [ $shared = 1 ]; then
	cp -a libruby.so* "$prefix/lib"
	[ $debug = 1 ] || strip --strip-unneeded "$prefix"/lib/libruby.so.*.*.*
fi
cp altered "$prefix/altered"
cd /
rm -rf "$prefix.tree"
