/* SPDX-License-Identifier: GPL-2.0-only */
#include "engine/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fds.h"
#include "base/io.h"

enum {
	ROW_KERNEL,
	ROW_USER_NAMESPACE,
	ROW_PRIVILEGE,
	ROW_BTF,
	ROW_LOCKDOWN,
	ROW_PID_NAMESPACE,
	ROW_OPEN_FILES,
	ROW_COST,
	ROW_OPTIONAL /* the first one */
};

/* Capabilities without which recording works, but … */
static const struct {
	unsigned int cap;
	const char *row, *name;
	const char *without;
} optional[] = {
	{ CAP_DAC_READ_SEARCH, "memory sharing", "CAP_DAC_READ_SEARCH",
	  "pages that forked workers share are copied when rbpf reads them" },
	{ CAP_CHECKPOINT_RESTORE, "mapped files", "CAP_CHECKPOINT_RESTORE",
	  "files that were deleted since they were mapped are not read" },
	{ CAP_SYS_NICE, "priority", "CAP_SYS_NICE",
	  "on a busy machine, processes of some ms may be missed" },
	{ CAP_SYSLOG, "kernel symbols", "CAP_SYSLOG", "frames of the kernel may have no names" },
	{ CAP_SYS_RESOURCE, "limits", "CAP_SYS_RESOURCE",
	  "those of open files and memory are not raised" },
};

_Static_assert(ROW_OPTIONAL + sizeof(optional) / sizeof(optional[0]) == ENVIRONMENT_ROWS,
	       "a row for each");

#define NEEDED	     "root (or CAP_BPF + CAP_PERFMON + CAP_SYS_PTRACE)"

#define OLDEST_MAJOR 5
#define OLDEST_MINOR 10

static const char BTF_PATH[] = "/sys/kernel/btf/vmlinux";

/* Whether this process has @cap; of root, where that cannot be asked for. */
static bool has_capability(unsigned int cap)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capget, &head, data))
		return geteuid() == 0;
	return data[cap / 32].effective & 1u << cap % 32;
}

bool environment_privileged(void)
{
	/* CAP_SYS_ADMIN stands for the other two, as before 5.8. */
	return has_capability(CAP_SYS_PTRACE) &&
	       (has_capability(CAP_SYS_ADMIN) ||
		(has_capability(CAP_PERFMON) && has_capability(CAP_BPF)));
}

bool environment_keeps_pages_shared(void)
{
	return has_capability(CAP_DAC_READ_SEARCH);
}

static bool is_older(const char *release, unsigned int than_major, unsigned int than_minor)
{
	unsigned int major, minor;

	return sscanf(release, "%u.%u", &major, &minor) == 2 &&
	       (major < than_major || (major == than_major && minor < than_minor));
}

/*
 * BPF's ring buffer takes a lock there that may sleep, where nothing may: "bpf: Use raw_spinlock_t
 * in ringbuf" is of 6.12.
 */
bool environment_may_hang(const char *release, bool realtime)
{
	return realtime && is_older(release, 6, 12);
}

static bool is_realtime(void)
{
	_cleanup_close_ int fd = open("/sys/kernel/realtime", O_RDONLY | O_CLOEXEC);
	char c;

	return fd >= 0 && read(fd, &c, 1) == 1 && c == '1';
}

static void probe_kernel(struct environment_row *row)
{
	struct utsname u;

	row->name = "kernel";
	row->needed = true;
	row->ok = !uname(&u);
	if (!row->ok)
		return;
	/* It may have what is needed: distributions bring much of newer kernels to theirs. */
	snprintf(row->detail, sizeof(row->detail), "%.64s %.32s%s", u.release, u.machine,
		 is_older(u.release, OLDEST_MAJOR, OLDEST_MINOR)
			 ? ": older than 5.10, with which rbpf is tested"
			 : "");
	if (!environment_may_hang(u.release, is_realtime()))
		return;
	row->ok = false;
	snprintf(row->detail, sizeof(row->detail),
		 "BPF programs could hang this kernel (%.64s with PREEMPT_RT)", u.release);
	snprintf(row->hint, sizeof(row->hint), "with PREEMPT_RT rbpf needs Linux 6.12 or newer");
}

static void probe_btf(struct environment_row *row)
{
	struct stat st;

	row->name = "btf";
	row->needed = true;
	row->ok = !stat(BTF_PATH, &st);
	if (row->ok) {
		snprintf(row->detail, sizeof(row->detail), "%s (%.1f MB)", BTF_PATH,
			 (double)st.st_size / 1e6);
		return;
	}
	snprintf(row->detail, sizeof(row->detail),
		 "this kernel has no BTF type information (%s is missing)", BTF_PATH);
	snprintf(row->hint, sizeof(row->hint),
		 "rbpf needs a kernel built with CONFIG_DEBUG_INFO_BTF=y (5.10 or newer)");
}

/* Say which of the capabilities that are needed root has not, as root of a container may. */
static void describe_weak_root(struct environment_row *row)
{
	const bool admin = has_capability(CAP_SYS_ADMIN);

	snprintf(row->detail, sizeof(row->detail),
		 "recording needs capabilities that this root has not:%s%s%s",
		 admin || has_capability(CAP_BPF) ? "" : " CAP_BPF",
		 admin || has_capability(CAP_PERFMON) ? "" : " CAP_PERFMON",
		 has_capability(CAP_SYS_PTRACE) ? "" : " CAP_SYS_PTRACE");
	snprintf(row->hint, sizeof(row->hint),
		 "run it on the host; or in a container that has them (docker run --privileged "
		 "--pid=host; Kubernetes: hostPID, securityContext)");
}

static void probe_privilege(struct environment_row *row)
{
	row->name = "privilege";
	row->needed = true;
	row->ok = environment_privileged();
	if (row->ok) {
		snprintf(row->detail, sizeof(row->detail), "%s",
			 geteuid() ? "capabilities" : "root");
		return;
	}
	if (!geteuid()) {
		describe_weak_root(row);
		return;
	}
	snprintf(row->detail, sizeof(row->detail), "recording needs " NEEDED);
	snprintf(row->hint, sizeof(row->hint), "run it with sudo");
}

static void probe_lockdown(struct environment_row *row)
{
	struct buf text _cleanup_buf_ = BUF_INIT;

	row->name = "lockdown";
	row->needed = true;
	row->ok = true;
	if (io_read_file(AT_FDCWD, "/sys/kernel/security/lockdown", 4096, &text)) {
		snprintf(row->detail, sizeof(row->detail), "not available");
		return;
	}
	if (strstr(buf_str(&text), "[confidentiality]")) {
		row->ok = false;
		snprintf(row->detail, sizeof(row->detail),
			 "kernel lockdown is in 'confidentiality' mode, which blocks BPF from "
			 "reading "
			 "memory");
		snprintf(row->hint, sizeof(row->hint),
			 "lockdown can only be relaxed at boot: lockdown=integrity on the kernel's "
			 "command line lets rbpf work");
		return;
	}
	snprintf(row->detail, sizeof(row->detail), "off, or in a mode that does not block rbpf");
}

/*
 * Whether rbpf is in the namespace of @type that is there at boot, whose inode is always @inode
 * (linux/proc_ns.h). So it counts, too, where that cannot be read.
 */
static void probe_namespace(struct environment_row *row, const char *type, unsigned int inode)
{
	char path[64], link[64], initial[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", type);
	snprintf(initial, sizeof(initial), "%s:[%u]", type, inode);
	n = readlink(path, link, sizeof(link) - 1);
	link[n > 0 ? n : 0] = '\0';
	row->needed = true;
	row->ok = n <= 0 || !strcmp(link, initial);
	if (row->ok)
		snprintf(row->detail, sizeof(row->detail), "the initial one");
}

static void probe_user_namespace(struct environment_row *row)
{
	row->name = "user namespace";
	probe_namespace(row, "user", 4026531837u); /* PROC_USER_INIT_INO */
	if (row->ok)
		return;
	snprintf(row->detail, sizeof(row->detail),
		 "rbpf runs in a user namespace, in which root may load no BPF programs");
	snprintf(row->hint, sizeof(row->hint),
		 "run it as root of the host: containers that do not run as root, and those with "
		 "user namespaces, are recorded from there");
}

static void probe_pid_namespace(struct environment_row *row)
{
	row->name = "pid namespace";
	probe_namespace(row, "pid", 4026531836u); /* PROC_PID_INIT_INO */
	if (row->ok)
		return;
	snprintf(row->detail, sizeof(row->detail),
		 "rbpf runs in the pid namespace of a container, where processes have other pids "
		 "than those that BPF programs see");
	snprintf(row->hint, sizeof(row->hint),
		 "run it on the host, or start the container with --pid=host");
}

bool environment_sees_all_processes(void)
{
	struct environment_row row = { 0 };

	probe_pid_namespace(&row);
	return row.ok;
}

static void probe_open_files(struct environment_row *row)
{
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	const size_t least = FDS_LEAST + FDS_CPU * (cpus > 0 ? (size_t)cpus : 1);
	const size_t limit = fds_raise_limit();

	row->name = "open files";
	row->needed = true;
	row->ok = limit >= least;
	if (row->ok) {
		snprintf(row->detail, sizeof(row->detail), "%zu at a time", limit);
		return;
	}
	snprintf(row->detail, sizeof(row->detail),
		 "rbpf may have %zu files open at a time, and needs %zu at least", limit, least);
	snprintf(row->hint, sizeof(row->hint), FDS_HINT);
}

bool environment_measures_bpf(void)
{
	struct buf text _cleanup_buf_ = BUF_INIT;

	return !io_read_file(AT_FDCWD, "/proc/sys/kernel/bpf_stats_enabled", 64, &text) &&
	       buf_str(&text)[0] == '1';
}

/* To have the kernel measure BPF programs takes CAP_SYS_ADMIN. */
static void probe_cost(struct environment_row *row)
{
	const bool always = environment_measures_bpf();

	row->name = "cost in the kernel";
	row->ok = always || has_capability(CAP_SYS_ADMIN);
	snprintf(row->detail, sizeof(row->detail), "%s",
		 always	   ? "kernel.bpf_stats_enabled is 1"
		 : row->ok ? "CAP_SYS_ADMIN"
			   : "CAP_SYS_ADMIN is missing: only the cost of samples is known");
	if (!row->ok)
		snprintf(row->hint, sizeof(row->hint), "sysctl kernel.bpf_stats_enabled=1");
}

static void probe_optional(struct environment_row *row, size_t i)
{
	row->name = optional[i].row;
	row->ok = has_capability(optional[i].cap);
	if (row->ok)
		snprintf(row->detail, sizeof(row->detail), "%s", optional[i].name);
	else
		snprintf(row->detail, sizeof(row->detail), "%s is missing: %s", optional[i].name,
			 optional[i].without);
}

size_t environment_probe(struct environment_row *rows)
{
	memset(rows, 0, ENVIRONMENT_ROWS * sizeof(*rows));
	probe_kernel(&rows[ROW_KERNEL]);
	probe_user_namespace(&rows[ROW_USER_NAMESPACE]);
	probe_privilege(&rows[ROW_PRIVILEGE]);
	probe_btf(&rows[ROW_BTF]);
	probe_lockdown(&rows[ROW_LOCKDOWN]);
	probe_pid_namespace(&rows[ROW_PID_NAMESPACE]);
	probe_open_files(&rows[ROW_OPEN_FILES]);
	probe_cost(&rows[ROW_COST]);
	for (size_t i = 0; ROW_OPTIONAL + i < ENVIRONMENT_ROWS; i++)
		probe_optional(&rows[ROW_OPTIONAL + i], i);
	return ENVIRONMENT_ROWS;
}

int environment_check(const char *what, const char *command, struct err *err)
{
	struct environment_row rows[ENVIRONMENT_ROWS];
	size_t i, n = environment_probe(rows);

	for (i = 0; i < n; i++) {
		if (rows[i].ok || !rows[i].needed)
			continue;
		if (i == ROW_PRIVILEGE && geteuid()) {
			err_set(err, -EPERM, ERR_ENV, "%s needs " NEEDED, what);
			err_hint(err, "sudo %s", command);
		} else {
			err_set(err, -EPERM, ERR_ENV, "%s", rows[i].detail);
			err_hint(err, "%s", rows[i].hint);
		}
		return -EPERM;
	}
	return 0;
}
