#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# run.sh [SUITE:ARCH...]: some live tests under the kernels of Debian's suites, in QEMU, amd64 and
# arm64; prints a line for each. All of them if none is named. rbpf is cross-built for another
# machine than this one.
#
#   RBPF       the binary under test for this machine, ./rbpf if not set
#   JOBS       guests at a time; as many as there are CPUs if not set
#   CPU_LIMIT  of a guest: seconds of QEMU's CPU time, 900 if not set
#
# How long a guest takes by the wall clock depends on what else runs here. So it is ended when QEMU has used
# that CPU time, or when for two minutes it neither used a CPU nor wrote to its console.
#
# What is fetched and built stays in build/kernels, so does what each guest wrote (SUITE-ARCH.log).
# Remove that for newer kernels. Needs neither root nor BPF.
set -euo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
kernels=$top/build/kernels
here=$top/tests/kernels
native=$(dpkg --print-architecture)
PATH=$PATH:/usr/sbin:/sbin # mke2fs

all=()
for i in amd64 arm64; do
	all+=("bullseye:$i" "bookworm:$i" "trixie:$i" "sid:$i")
done

die() {
	echo "run.sh: $*" >&2
	exit 1
}

# GNU's name of a Debian architecture.
machine() {
	case $1 in
	amd64) echo x86_64 ;;
	arm64) echo aarch64 ;;
	*) die "architecture $1 is not known" ;;
	esac
}

# What is in a root, whose name changes with it: one that is there is left as it is.
packages="dash coreutils ruby ruby-minitest libc6-dev libbpf-dev libdw-dev libelf-dev liblzma-dev
	libiberty-dev zlib1g-dev libdeflate-dev libjansson-dev libncurses-dev libmicrohttpd-dev libcapstone-dev"
root_of() { # ARCH
	echo "$kernels/root-$1-$(echo "$packages" | cksum | cut -d ' ' -f 1)"
}

# A root of the release that rbpf is built on, and a disk with rbpf and the tests.
prepare() { # ARCH
	local root gnu suite
	root=$(root_of "$1")
	gnu=$(machine "$1")
	# shellcheck disable=SC1091
	suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
	# shellcheck disable=SC2086
	"$here/fetch.sh" root "$suite" "$1" "$root" $packages
	rm -rf "$kernels/disk-$1"
	mkdir -p "$kernels/disk-$1/tests"
	if [ "$1" = "$native" ]; then
		cp "${RBPF:-$top/rbpf}" "$kernels/disk-$1/rbpf"
	else
		"${MAKE:-make}" --no-print-directory -s -C "$top" CROSS_COMPILE="$gnu-linux-gnu-" \
			SYSROOT="$root/root" O="build/$1" "build/$1/rbpf" >/dev/null
		cp "$top/build/$1/rbpf" "$kernels/disk-$1/rbpf"
	fi
	cp -r "$top"/tests/{kernels,live,programs} "$kernels/disk-$1/tests"
	rm -f "$kernels/disk-$1.image"
	mke2fs -q -t ext4 -O ^has_journal,^metadata_csum -d "$kernels/disk-$1" \
		"$kernels/disk-$1.image" 64M >"$kernels/mke2fs.log"
}

# Boots a kernel; its console goes to $log. The guest's clock counts instructions (4 ns each): were it
# the host's, a guest that has to wait for a CPU would miss ticks.
boot() { # SUITE ARCH
	local dir=$kernels/$1-$2 gnu console qemu
	gnu=$(machine "$2")
	case $2 in
	# QEMU before 8.0 gets the flags of cmpxchg16b wrong, which now and then crashes a kernel. One
	# CPU, as with -icount a second does not come up.
	amd64)
		console=ttyS0
		qemu=(-machine q35 -cpu 'max,la57=off,cx16=off' -smp 1)
		;;
	arm64)
		console=ttyAMA0
		qemu=(-machine 'virt,gic-version=3' -cpu 'max,pauth-impdef=on' -smp 2)
		;;
	esac
	(cd "$here" && echo init | cpio --quiet -o -H newc) | cat "$dir/initramfs" - >"$dir/initrd"
	(ulimit -t "${CPU_LIMIT:-900}" &&
		exec setpriv --pdeathsig KILL "qemu-system-$gnu" "${qemu[@]}" -accel tcg \
		-icount shift=2,sleep=off -m 1G -nodefaults -no-user-config -display none -no-reboot \
		-kernel "$dir/kernel" -initrd "$dir/initrd" \
		-append "console=$console quiet panic=-1 mitigations=off" \
		-drive "if=virtio,format=raw,snapshot=on,file=$(root_of "$2")/image" \
		-drive "if=virtio,format=raw,snapshot=on,file=$kernels/disk-$2.image" \
		-serial "file:$log" </dev/null) &
	await $!
}

# Waits for QEMU, which is ended if it makes no progress.
await() { # PID
	local now last="" since=$SECONDS
	while kill -0 "$1" 2>/dev/null; do
		# Its user and system time. The name of the program, the second word, has no space.
		now="$(stat -c %s "$log") $(cut -d ' ' -f 14,15 "/proc/$1/stat" 2>/dev/null)"
		if [ "$now" != "$last" ]; then
			last=$now since=$SECONDS
		elif [ $((SECONDS - since)) -ge 120 ]; then
			echo 'no progress for two minutes'
			kill -KILL "$1"
		fi
		sleep 1
	done
	wait "$1"
}

run() { # SUITE:ARCH
	local suite=${1%:*} arch=${1#*:} log=$kernels/${1/:/-}.log release status runs
	SECONDS=0
	: >"$log"
	release=$(<"$kernels/$suite-$arch/release")
	boot "$suite" "$arch" >"$log.qemu" 2>&1 || echo "qemu: status $?" >>"$log"
	tr -d '\r' <"$log" >"$log.text"
	mv "$log.text" "$log"
	status=$(sed -n 's/^guest: status //p' "$log")
	runs=$(sed -n 's/^\([1-9][0-9]* runs\), .*, 0 skips$/\1/p' "$log")
	if [ "$status" = 0 ] && [ -n "$runs" ]; then
		echo "$release: ok, $runs, $SECONDS s"
		return
	fi
	echo "$release: FAILED, $SECONDS s; see ${log#"$top/"}"
	grep -E '^(bpf .*FAIL|[A-Za-z]+#test_.* = [FE]$)' "$log" || tail -n 20 "$log"
	# What QEMU says tells a guest that was ended from one that crashed.
	[ -n "$status" ] || {
		echo "$release: the guest ended before the tests did"
		cat "$log.qemu"
	}
	return 1
}

if [ "${1-}" = --one ]; then
	run "$2"
	exit
fi
[ $# != 0 ] || set -- "${all[@]}"
for i in "$@"; do
	case $i in
	*:amd64 | *:arm64) ;;
	*) die "not SUITE:ARCH: $i" ;;
	esac
done
mkdir -p "$kernels"
for i in $(printf '%s\n' "${@#*:}" | sort -u); do prepare "$i"; done
for i in "$@"; do
	"$here/fetch.sh" kernel "${i%:*}" "${i#*:}" "$kernels/${i/:/-}"
done
# xargs' own status, 123, says that one failed.
printf '%s\n' "$@" | xargs -P "${JOBS:-$(nproc)}" -n 1 "$0" --one || die 'not every kernel passed'
