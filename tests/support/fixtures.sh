#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# fixtures.sh: make what the unit tests need and no Debian package holds. What is there is left as it is.
#
#   build/locale     a locale with a decimal comma
#   build/ruby-vm    the VM of this Debian's Ruby with its symbols (vm.so) and without (vm-stripped.so).
#                    Debian's libruby is stripped, so vm.c is compiled from the source package; the
#                    configured headers are those of the -dev package.
#
# Needs no root. Where something cannot be made this says so and exits with 1; the tests that need it are
# skipped then.
set -euo pipefail
# shellcheck source=tests/support/apt.sh
. "$(dirname "$0")/apt.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top"

work=$(mktemp -d "${TMPDIR:-/tmp}/rbpf-fixtures.XXXXXX")
trap 'rm -rf "$work"' EXIT

make_locale() {
	mkdir -p "$work/locale"
	localedef -i de_DE -f UTF-8 "$work/locale/de_DE.UTF-8" >"$work/log" 2>&1 || {
		tail -n 5 "$work/log" >&2
		return 1
	}
	mkdir -p build
	mv "$work/locale" build/locale
}

make_ruby_vm() {
	local version arch config out=$work/ruby-vm
	version=$(ruby -e 'puts RbConfig::CONFIG.values_at("MAJOR", "MINOR").join(".")')
	# shellcheck disable=SC1091
	apt_types='deb deb-src' apt_begin "$work/state" "$(dpkg --print-architecture)" \
		"$(. /etc/os-release && echo "$VERSION_CODENAME")"
	apt_fetch_only "ruby$version-dev"
	(cd "$work" && apt_get source --download-only "ruby$version")
	dpkg-deb -x "$apt_state"/cache/archives/*.deb "$work/dev"
	mkdir "$work/source" "$out"
	tar -x -C "$work/source" --strip-components=1 -f "$work/ruby${version}"_*.orig.tar.*z
	arch=$(ruby -e 'puts RbConfig::CONFIG["rubyarchhdrdir"]')
	config=$work/dev$arch
	cp "$work"/source/probes.{dmyh,h} # as without DTrace
	${CC:-cc} -shared -fPIC -O2 -w -I"$work/source" -I"$work/source/include" -I"$config" \
		-o "$out/vm.so" "$work/source/vm.c"
	strip -o "$out/vm-stripped.so" "$out/vm.so"
	mkdir -p build
	mv "$out" build/ruby-vm
}

# Each part is a process of its own, so that one that fails does not keep the other from being made.
if [ $# != 0 ]; then
	"make_$1"
	exit
fi
status=0
for part in locale ruby_vm; do
	[ ! -e "build/${part/_/-}" ] || continue
	echo "making build/${part/_/-}"
	"$top/tests/support/fixtures.sh" "$part" || {
		echo "fixtures.sh: cannot make build/${part/_/-}" >&2
		status=1
	}
done
exit $status
