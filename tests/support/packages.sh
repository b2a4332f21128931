#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# packages.sh build|demo|test: install the Debian packages that building or testing needs and that are
# missing. Without root it only says which are missing.
set -eu

build="gcc libc6-dev clang llvm bpftool libbpf-dev libelf-dev libdw-dev liblzma-dev libiberty-dev zlib1g-dev libdeflate-dev libjansson-dev
	libncurses-dev libmicrohttpd-dev libcapstone-dev pkg-config"
demo="$build ruby"
test="$demo clang-format libclang-rt-14-dev libcriterion-dev mandoc ruby-minitest libc6-dbg locales puma ruby-rack
	ruby-sinatra ruby-actionpack ruby-activejob ruby-rspec-core rake ruby-activerecord ruby-railties ruby-sqlite3 ruby-sidekiq redis-tools ruby-oj ruby-nokogiri
	gdb binutils libxml2-utils chromium nodejs npm procps util-linux bsdutils zsh fish qemu-system-x86 qemu-system-arm
	gcc-aarch64-linux-gnu libc6-arm64-cross golang-go valgrind graphviz ruby-stackprof e2fsprogs kmod cpio xz-utils zstd tmux"

case ${1:-} in
build) wanted=$build ;;
demo) wanted=$demo ;;
test) wanted=$test ;;
*)
	echo "usage: packages.sh build|demo|test" >&2
	exit 2
	;;
esac

installed() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing=
for package in $wanted; do
	case $package in
	nodejs | npm) command -v "${package%js}" >/dev/null && continue ;;
	esac
	installed "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ]; then
	echo "packages.sh: not root, cannot install:$missing" >&2
	exit 0
fi
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
[ -n "$(find /var/lib/apt/lists -name '*_Packages*' -mmin -1440 2>/dev/null | head -n 1)" ] ||
	apt-get update -q
# shellcheck disable=SC2086
apt-get install -q -y --no-install-recommends $missing >build-packages.log 2>&1 || {
	tail -n 20 build-packages.log >&2
	exit 1
}
rm -f build-packages.log
