#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Files that a target names are opened by src/target/target_file.c and by nothing else, and are read,
# never mapped. So a call that takes a path, and mmap(), may stand only in the files that are listed
# below, with the reason why the path is none that a target chose. A path that is a string in the source
# is nobody's choice, and may be opened anywhere. Nor is a descriptor of such a file read, or its file
# system asked about it, but in a process that may hang: src/elf/ runs in such a one. Nor are memory and the
# files in /proc of a process read but in one that may hang (target/remote.h).
#
# usage: opens.sh [ROOT]     prints file:line: message for each violation, then exits 1
set -eu
cd "${1:-$(dirname "$0")/../..}"

# FILE CALL[,CALL]... why
allowed='
src/target/target_file.c open,statx,fstatfs,io_read_file	this is the module that does it, in a process that may hang
src/base/io.c openat,faccessat,readlinkat,statx	what the caller names: see io_read_file, outputs are the user'\''s
src/base/dir_entry.c open,openat	the recording and the output that the user names, and what is there
src/cmd/request_rules.c io_read_file	the rules that the user names
src/cmd/output.c stat	the recording and the output that the user names
src/elf/code.c dlopen	a constant: the name of the disassembler'\''s library
src/elf/debug_file.c readlink	/proc/self/fd/N: the text alone is used
src/profile/output.c openat	the output that the user names
src/profile/input.c open,openat	the recording that the user names
src/target/selection.c access	the control group that the user names, below /sys/fs/cgroup
src/engine/environment.c stat,readlink	constants: the type information of the kernel, /proc/self/ns
src/engine/mmap_watch.c mmap	a ring of the kernel'\''s
src/engine/bpf_object.c mmap	a BPF map
src/report/source_text.c open,openat	the directory that the user names, and what is in it and its directories: no link is followed
src/target/cpus.c io_read_file	a constant: which CPUs are online
src/target/fuse.c open,fstat,io_read_file	/proc/PID/ns/user and mountinfo, in a process that may hang
src/target/process.c opendir	/proc and /proc/PID/task, for which the kernel takes no lock of the process
src/target/memory_files.c open,pread,process_vm_readv	/proc/PID/mem, in a process that may hang or where the user has not asked for --guarded
src/target/own_pages.c pread	/proc/PID/pagemap, where memory_files.c reads
src/target/proxy.c open,readlink,mmap	this is the process that reads others; its memory that it shares
src/serve/work.c pread	a memfd
src/worker/file_losses.c readlink	/proc/self/fd/N: the text alone is used
src/worker/file_worker.c pread	what is on a block device
src/worker/sandbox.c open,fopen	/dev/null and /proc/self/statm, before there is a sandbox
src/worker/serve.c pread	a worker may hang
src/worker/worker.c fopen,pread	/proc/PID/stat of a worker; its memfd
'

# shellcheck disable=SC2016 # awk's own $0
find src -name '*.[ch]' 2>/dev/null | LC_ALL=C sort | ALLOWED=$allowed xargs -r awk '
BEGIN {
	waits = "fstat|fstatfs|pread"
	calls = "open|open64|openat|openat64|openat2|creat|fopen|fopen64|freopen|popen|opendir|scandir|" \
		"nftw|ftw|fts_open|glob|stat|lstat|fstatat|statx|statfs|statvfs|access|faccessat|" \
		"euidaccess|readlink|readlinkat|realpath|canonicalize_file_name|name_to_handle_at|" \
		"open_by_handle_at|chdir|chroot|getxattr|lgetxattr|truncate|mmap|mmap64|io_read_file|" \
		"dlopen|gzopen|json_load_file|process_vm_readv|" waits
	n = split(ENVIRON["ALLOWED"], line, "\n")
	for (i = 1; i <= n; i++) {
		if (split(line[i], field, /[ \t]+/) < 3)
			continue
		k = split(field[2], name, ",")
		while (k > 0)
			is_allowed[field[1], name[k--]] = 1
	}
}

function complain(message) {
	printf "%s:%d: %s\n", FILENAME, FNR, message
	failures++
}

/^[ \t]*(\/\*|\*|\/\/|#[ \t]*include)/ { next }

{
	code = $0
	gsub(/"([^"\\]|\\.)*"/, "\"\"", code)
	gsub(/\/\*.*\*\//, "", code)
	# A path that stands there as a string.
	gsub("(^|[^A-Za-z0-9_])(" calls ")\\((AT_FDCWD, )?\"\"", "", code)
	while (match(code, "(^|[^A-Za-z0-9_>.])(" calls ")[ \t]*\\(")) {
		word = substr(code, RSTART, RLENGTH)
		gsub(/[^a-z0-9_]/, "", word)
		code = substr(code, RSTART + RLENGTH)
		if ((FILENAME, word) in is_allowed || code ~ /^(int|const char|void) /) # a prototype
			continue
		if (word == "process_vm_readv") {
			complain(word "(): who reads a process may wait for ever: see target/remote.h")
		} else if (word ~ "^(" waits ")$") {
			if (FILENAME !~ "^src/(base|elf|profile)/")
				complain(word "(): the server of a file system may not answer: " \
					 "io_stat() and file_worker_read() are for files of targets")
		} else if (word ~ /^mmap/)
			complain(word "(): a file of a target is read, not mapped; " \
				 "what is none is to be listed in tests/lint/opens.sh")
		else
			complain(word "(): a path that a target chose is opened with target_file.h; " \
				 "any other is to be listed in tests/lint/opens.sh, with a reason")
	}
	if (code ~ /ELF_C_[A-Z_]*MMAP/)
		complain("libelf is to read files (ELF_C_READ), not to map them")
	if (code ~ /SYS_(open|openat|openat2|creat|mmap|stat|statx)([^A-Za-z0-9_]|$)/ &&
	    FILENAME != "src/target/target_file.c")
		complain("files are opened with target_file.h, or by a call of the C library")
}

END { exit failures != 0 }
' || exit 1 # xargs says 123
