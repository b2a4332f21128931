/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The process that reads files: what it may do, what becomes of it when it does something else, and
 * what rbpf makes of a worker that lies, hangs, or dies.
 */
#include "worker/file_worker.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/stop.h"
#include "elf/cfi.h"
#include "elf/symbols.h"
#include "support/elf_builder.h"
#include "worker/channel.h"
#include "worker/fork_server.h"
#include "worker/sandbox.h"

static struct worker_file own_exe(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	cr_assert_geq(fd, 0);
	return (struct worker_file) { .fd = fd, .path = "/test" };
}

static size_t count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	cr_assert_not_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* ---- what a worker may do ---- */

/* The value of @key in /proc/PID/status. */
static unsigned long long status_of(pid_t pid, const char *key)
{
	char path[64], line[256];
	unsigned long long value = ~0ull;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	cr_assert_not_null(file);
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, key, strlen(key)) && line[strlen(key)] == ':')
			cr_assert_eq(sscanf(line + strlen(key), ":\t%llx", &value), 1, "%s", key);
	fclose(file);
	return value;
}

Test(worker, has_no_privileges)
{
	static const char *const caps[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };
	struct file_worker w;
	char path[64];
	struct stat st;
	size_t i;

	file_worker_init(&w, NULL);
	cr_assert_eq(file_worker_prepare(&w), 0);
	for (i = 0; i < 2; i++) {
		pid_t pid = i ? w.worker.pid : w.fork_server.pid;

		/* What it does first is over once it has answered. */
		if (i) {
			struct worker_file exe = own_exe();
			struct elf_headers h;

			cr_assert_eq(file_worker_headers(&w, &exe, &h), 0);
			elf_headers_deinit(&h);
			close(exe.fd);
		}
		for (size_t k = 0; k < ARRAY_SIZE(caps); k++)
			if (!geteuid() || k < 3)
				cr_expect_eq(status_of(pid, caps[k]), 0, "%s", caps[k]);
		cr_expect_eq(status_of(pid, "NoNewPrivs"), 1);
		snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
		cr_assert_eq(stat(path, &st), 0);
		cr_expect_eq(st.st_uid, 0, "not dumpable: its files in /proc are root's");
		if (!geteuid())
			cr_expect_eq(status_of(pid, "Uid"), 0x65534);
	}
#ifndef __SANITIZE_ADDRESS__
	cr_expect_eq(status_of(w.worker.pid, "Seccomp"), 2);
#endif
	file_worker_deinit(&w);
}

/* AddressSanitizer needs other calls: a worker built with it may make any. */
#ifndef __SANITIZE_ADDRESS__
/* What a worker with other intentions does, by the byte that it is sent. */
static void try_forbidden(int sock, int memfd, uint64_t max_memory)
{
	char what = 0, name[] = "/etc/hostname";
	size_t len;

	(void)memfd;
	(void)max_memory;
	channel_receive(sock, &what, 1, &len, NULL, NULL, 1);
	switch (what) {
	case 's':
		socket(AF_INET, SOCK_STREAM, 0);
		break;
	case 'f':
		fork();
		break;
	case 'e':
		execv(name, (char *[]) { name, NULL });
		break;
	case 'k':
		kill(getppid(), 0);
		break;
	case 'x':
		mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		break;
	case 'm':
		mmap(NULL, 4096, PROT_READ, MAP_SHARED, memfd, 0);
		break;
	case 't':
		if (ftruncate(memfd, 1 << 20))
			_exit(3);
		break;
	case 'o':
		/* Refused, since libdw tries. */
		_exit(open(name, O_RDONLY) < 0 && errno == EACCES ? 42 : 3);
	}
	_exit(3);
}

static int status_after(struct fork_server *k, char what)
{
	const struct channel_part part = { &what, 1 };
	int memfd = memfd_create("test", MFD_CLOEXEC), socks[2], status = 0;
	pid_t pid;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks), 0);
	cr_assert_eq(fork_server_spawn(k, socks[1], memfd, &pid), 0);
	cr_assert_eq(channel_send(socks[0], &part, 1, NULL, 0), 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid, "a child of this process");
	close(memfd);
	close(socks[0]);
	close(socks[1]);
	return status;
}

Test(worker, system_calls_that_end_it)
{
	static const char forbidden[] = "sfekxmt";
	struct fork_server k = FORK_SERVER_INIT;
	size_t i, fds = count_fds();

	cr_assert_eq(fork_server_start(&k, try_forbidden, SANDBOX_MAX_MEMORY), 0);
	for (i = 0; i < sizeof(forbidden) - 1; i++) {
		int status = status_after(&k, forbidden[i]);

		cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "%c: %x", forbidden[i],
			  (unsigned int)status);
	}
	cr_expect_eq(status_after(&k, 'o'), 42 << 8);
	fork_server_stop(&k);
	cr_expect_eq(count_fds(), fds);
}
#endif

/* ---- files ---- */

static void expect_answers(struct file_worker *w)
{
	struct worker_file exe = own_exe();
	struct elf_symbols symbols = ELF_SYMBOLS_INIT;
	struct elf_headers headers = ELF_HEADERS_INIT;
	struct cfi_rules rules = CFI_RULES_INIT;
	struct cfi_table table = CFI_TABLE_INIT;

	cr_assert_eq(cfi_rules_init(&rules), 0);
	cr_assert_eq(file_worker_headers(w, &exe, &headers), 0);
	cr_expect_gt(headers.n, 0);
	cr_assert_eq(file_worker_table(w, &exe, headers.base, &rules, &table), 0);
	cr_expect_gt(table.rows, 1000);
	cr_assert_eq(file_worker_symbols(w, &exe, &symbols), 0);
	cr_expect_gt(symbols.n, 1000);
	elf_symbols_deinit(&symbols);
	elf_headers_deinit(&headers);
	cfi_table_deinit(&table);
	cfi_rules_deinit(&rules);
	close(exe.fd);
}

Test(worker, another_one_after_it_was_killed)
{
	size_t fds = count_fds();
	struct file_worker w;
	pid_t first;

	file_worker_init(&w, NULL);
	expect_answers(&w);
	first = w.worker.pid;
	kill(first, SIGKILL);
	expect_answers(&w);
	cr_expect_neq(w.worker.pid, first);
	cr_expect_eq(w.losses.files, 0, "that was no file's fault");
	file_worker_deinit(&w);
	cr_expect_eq(count_fds(), fds);
}

/* Whoever stops a control group sends it to all of its processes. */
Test(worker, signals_that_are_for_rbpf)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
	struct file_worker w;
	pid_t first;

	file_worker_init(&w, NULL);
	expect_answers(&w);
	first = w.worker.pid;
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		kill(w.fork_server.pid, signals[i]);
		kill(w.worker.pid, signals[i]);
	}
	expect_answers(&w);
	cr_expect_eq(w.worker.pid, first);
	kill(first, SIGKILL);
	expect_answers(&w);
	cr_expect_neq(w.worker.pid, first, "the fork server is there, too");
	file_worker_deinit(&w);
}

static size_t count_symbols(struct file_worker *w, const struct worker_file *file)
{
	struct elf_symbols symbols;
	size_t n;

	cr_assert_eq(file_worker_symbols(w, file, &symbols), 0);
	n = symbols.n;
	elf_symbols_deinit(&symbols);
	return n;
}

Test(worker, reads_in_the_background)
{
	size_t fds = count_fds(), n;
	struct worker_file exe = own_exe();
	struct elf_symbols symbols;
	struct file_worker w;
	int r, polls = 0;

	file_worker_init(&w, NULL);
	cr_expect_eq(file_worker_fd(&w), -1);
	cr_assert_eq(file_worker_begin(&w, FILE_SYMBOLS, &exe, 0), 0);
	cr_expect_eq(file_worker_begin(&w, FILE_SYMBOLS, &exe, 0), -EBUSY);
	n = count_symbols(&w, &exe);
	/* Who polls the descriptor need not look at any other time. */
	do {
		struct pollfd pfd = { .fd = file_worker_fd(&w), .events = POLLIN };

		cr_assert_eq(poll(&pfd, 1, -1), 1);
		r = file_worker_symbols_end(&w, false, &symbols);
		polls++;
	} while (r == -EAGAIN);
	cr_assert_eq(r, 0);
	cr_expect_eq(symbols.n, n);
	cr_expect_leq(polls, 20);
	elf_symbols_deinit(&symbols);

	/* It was killed by somebody, once: that is no file's fault. */
	cr_assert_eq(file_worker_begin(&w, FILE_SYMBOLS, &exe, 0), 0);
	kill(w.background.pid, SIGKILL);
	cr_assert_eq(file_worker_symbols_end(&w, true, &symbols), 0);
	cr_expect_eq(symbols.n, n);
	elf_symbols_deinit(&symbols);
	cr_expect_eq(w.losses.files, 0);

	cr_assert_eq(file_worker_begin(&w, FILE_SYMBOLS, &exe, 0), 0);
	file_worker_abandon(&w);
	cr_expect_eq(file_worker_fd(&w), -1);
	cr_assert_eq(file_worker_begin(&w, FILE_SYMBOLS, &exe, 0), 0);
	close(exe.fd);
	cr_assert_eq(file_worker_symbols_end(&w, true, &symbols), 0,
		     "it has a descriptor of its own");
	elf_symbols_deinit(&symbols);
	file_worker_deinit(&w);
	cr_expect_eq(count_fds(), fds);
}

Test(worker, the_fork_server_is_gone)
{
	struct worker_file exe = own_exe();
	struct elf_headers headers;
	struct file_worker w;

	file_worker_init(&w, NULL);
	expect_answers(&w);
	kill(w.fork_server.pid, SIGKILL);
	kill(w.worker.pid, SIGKILL);
	cr_expect_eq(file_worker_headers(&w, &exe, &headers), -EIO);
	file_worker_deinit(&w);
	close(exe.fd);
}

Test(worker, what_elf_functions_say_is_passed_on)
{
	struct elf_symbols symbols = ELF_SYMBOLS_INIT;
	struct worker_file text = { .fd = elf_builder_memfd("#!/bin/sh\n", 10), .path = "/text" };
	struct buf out = BUF_INIT;
	struct elf_headers h;
	struct file_worker w;

	file_worker_init(&w, NULL);
	cr_expect_eq(file_worker_headers(&w, &text, &h), -ENOEXEC);
	cr_expect_eq(file_worker_symbols(&w, &text, &symbols), -ENOEXEC);
	cr_expect_eq(file_worker_demangle(&w, "main", &out), -ENOENT);
	cr_expect_eq(file_worker_demangle(&w, "_ZN3foo3barEv", &out), 0);
	cr_expect_str_eq(buf_str(&out), "foo::bar");
	cr_expect_eq(w.losses.files, 0);
	buf_deinit(&out);
	file_worker_deinit(&w);
	close(text.fd);
}

Test(worker, names_that_take_for_ever)
{
	/*
	 * Rust: within what is not printed, a function with a number of lifetimes that takes years
	 * to count to.
	 */
	static const char name[] = "_RXIC0FGZZZZZZZZZZ_";
	struct buf out = BUF_INIT;
	struct file_worker w;

	file_worker_init(&w, NULL);
	cr_expect_eq(file_worker_demangle(&w, name, &out), -EIO);
	cr_expect_eq(w.bad_names, 1);
	cr_expect_eq(file_worker_demangle(&w, "_ZN3foo3barEv", &out), 0,
		     "others are not concerned");
	w.bad_names = FILE_WORKER_MAX_BAD_NAMES - 1;
	cr_expect_eq(file_worker_demangle(&w, name, &out), -EIO);
	cr_expect_eq(file_worker_demangle(&w, "_ZN3foo3barEv", &out), -EIO, "too many of them");
	cr_expect_str_eq(buf_str(&out), "foo::bar");
	buf_deinit(&out);
	file_worker_deinit(&w);
}

/* ---- workers that are not what they should be ---- */

struct fake {
	const void *answer; /* what it says to each request; NULL: nothing */
	size_t size;
	bool spin; /* it uses CPU time instead */
	bool die;
	unsigned int spawned;
};

static void fake_main(const struct fake *fake, int sock)
{
	const struct channel_part part = { fake->answer, fake->size };
	struct pollfd pfd = { .fd = sock, .events = POLLIN };
	static char request[CHANNEL_MAX_BYTES];

	while (poll(&pfd, 1, -1) > 0 && recv(sock, request, sizeof(request), 0) > 0) {
		if (fake->die)
			_exit(0);
		while (fake->spin)
			;
		if (fake->answer)
			channel_send(sock, &part, 1, NULL, 0);
	}
	_exit(0);
}

static int fake_spawn(void *arg, int sock, int memfd, pid_t *ret)
{
	struct fake *fake = arg;

	(void)memfd;
	fake->spawned++;
	*ret = fork();
	if (*ret)
		return *ret < 0 ? -errno : 0;
	/* The other end must not stay open here. */
	for (int fd = 3; fd < 256; fd++)
		if (fd != sock)
			close(fd);
	fake_main(fake, sock);
	_exit(0);
}

static void expect_given_up_in_background(struct fake *fake, const struct file_worker_options *opts,
					  const char *why)
{
	struct worker_file exe = own_exe();
	struct elf_symbols symbols = ELF_SYMBOLS_INIT;
	size_t fds = count_fds();
	unsigned int spawned;
	struct file_worker w;

	file_worker_init(&w, opts);
	cr_assert_eq(file_worker_begin(&w, FILE_SYMBOLS, &exe, 0), 0);
	cr_expect_eq(file_worker_symbols_end(&w, true, &symbols), -EIO, "%s", why);
	cr_expect_eq(w.losses.files, 1, "%s", why);
	cr_expect_not_null(strstr(w.losses.names[0], why), "%s: %s", why, w.losses.names[0]);
	spawned = fake->spawned;
	cr_expect_eq(file_worker_begin(&w, FILE_SYMBOLS, &exe, 0), -EIO);
	cr_expect_eq(fake->spawned, spawned, "%s: not looked into again", why);
	file_worker_deinit(&w);
	cr_expect_eq(count_fds(), fds, "%s", why);
	close(exe.fd);
}

static void expect_given_up(struct fake *fake, const char *why)
{
	const struct file_worker_options opts = { .spawn = fake_spawn,
						  .spawn_arg = fake,
						  .max_cpu_ns = 50000000,
						  .stall_ns = 100000000 };
	struct worker_file exe = own_exe();
	struct elf_headers headers;
	size_t fds = count_fds();
	unsigned int spawned;
	struct file_worker w;

	file_worker_init(&w, &opts);
	cr_expect_eq(file_worker_headers(&w, &exe, &headers), -EIO, "%s", why);
	cr_expect_eq(w.losses.files, 1, "%s", why);
	cr_expect_not_null(strstr(w.losses.names[0], why), "%s: %s", why, w.losses.names[0]);
	spawned = fake->spawned;
	cr_expect_eq(file_worker_headers(&w, &exe, &headers), -EIO);
	cr_expect_eq(fake->spawned, spawned, "%s: not looked into again", why);
	cr_expect_eq(w.losses.files, 1, "%s: counted once", why);
	file_worker_deinit(&w);
	cr_expect_eq(count_fds(), fds, "%s", why);
	close(exe.fd);
	expect_given_up_in_background(fake, &opts, why);
}

Test(worker, lies)
{
	struct {
		struct worker_message m;
		char bytes[64];
	} says = { .m = { .says = WORKER_ANSWER, .inline_size = 64 } };
	struct fake fake = { .answer = &says };

	for (fake.size = 1; fake.size <= sizeof(says); fake.size++)
		expect_given_up(&fake, "makes no sense");
	fake.size = sizeof(says.m);
	says.m.inline_size = 0;
	says.m.result = 1;
	expect_given_up(&fake, "makes no sense");
	says.m.result = -EAGAIN;
	expect_given_up(&fake, "makes no sense");
	says.m.result = 0;
	says.m.shared_size = 1 << 20;
	expect_given_up(&fake, "makes no sense");
	says.m.shared_size = UINT64_MAX;
	expect_given_up(&fake, "too much memory");
	says.m.shared_size = SANDBOX_MAX_MEMORY;
	expect_given_up(&fake, "too much memory"); /* which there is, but not for that */
	says.m = (struct worker_message) { .says = 7 };
	expect_given_up(&fake, "makes no sense");
	/* Nobody said that other files are to be had. */
	says.m = (struct worker_message) { .says = WORKER_OPEN, .inline_size = 64 };
	memcpy(says.bytes, "/etc/shadow", 12);
	fake.size = sizeof(says);
	expect_given_up(&fake, "makes no sense");
}

/* Of files that belong to the one it reads it may ask for some, not for ever. */
Test(worker, asks_for_other_files_again_and_again)
{
	struct {
		struct worker_message m;
		char bytes[64];
	} says = { .m = { .says = WORKER_OPEN, .inline_size = 64 }, .bytes = "/no/such/file/" };
	struct fake fake = { .answer = &says, .size = sizeof(says) };
	const struct file_worker_options opts = { .spawn = fake_spawn, .spawn_arg = &fake };
	struct worker_file exe = own_exe();
	struct elf_symbols symbols;
	struct file_worker w;

	memset(says.bytes + 14, 'x', 49);
	exe.pid = getpid();
	file_worker_init(&w, &opts);
	cr_expect_eq(file_worker_symbols(&w, &exe, &symbols), -EIO);
	cr_assert_eq(w.losses.files, 1);
	cr_expect_not_null(strstr(w.losses.names[0], "makes no sense"), "%s", w.losses.names[0]);
	file_worker_deinit(&w);
	close(exe.fd);
}

/* All are counted, some are named. */
Test(worker, many_files_are_given_up)
{
	struct file_losses l = { 0 };
	int fds[FILE_LOSSES_NAMES + 2];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		char path[16];
		struct worker_file file = { .path = path };

		snprintf(path, sizeof(path), "/file%zu", i);
		file.fd = fds[i] = elf_builder_memfd("text", 4);
		cr_expect(!file_losses_has(&l, &file));
		file_losses_add(&l, &file, WORKER_CRASHED);
		file_losses_add(&l, &file, WORKER_CRASHED);
		cr_expect(file_losses_has(&l, &file));
		cr_expect_eq(l.files, i + 1, "each once");
	}
	cr_expect_eq(l.n_names, FILE_LOSSES_NAMES);
	cr_expect_str_eq(l.names[FILE_LOSSES_NAMES - 1], "/file3 (its parser crashed)");
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	file_losses_deinit(&l);
}

Test(worker, uses_no_time_and_says_nothing)
{
	struct fake fake = { 0 };

	expect_given_up(&fake, "hangs");
}

Test(worker, uses_too_much_time)
{
	struct fake fake = { .spin = true };

	expect_given_up(&fake, "took too long");
}

Test(worker, ends)
{
	struct fake fake = { .die = true };

	expect_given_up(&fake, "crashed");
}

/* Of file systems without a device, such as that of memfds, anybody may be the server. */
Test(worker, two_files_of_a_file_system_hang)
{
	struct fake fake = { 0 };
	const struct file_worker_options opts = { .spawn = fake_spawn,
						  .spawn_arg = &fake,
						  .stall_ns = 50000000 };
	struct worker_file exe = own_exe();
	struct elf_headers headers;
	struct file_worker w;
	struct stat st;
	int fds[3];
	char byte;

	cr_assert_eq(fstat(exe.fd, &st), 0);
	file_worker_init(&w, &opts);
	for (size_t i = 0; i < 3; i++) {
		fds[i] = elf_builder_memfd("text", 4);
		cr_expect_eq(file_worker_read(&w, fds[i], &byte, 1, 0), -EIO);
		cr_expect_eq(fake.spawned, i < 2 ? i + 1 : 2, "the third is not tried");
	}
	cr_expect_eq(w.losses.files, 2);
	if (major(st.st_dev)) {
		cr_expect_eq(file_worker_read(&w, exe.fd, &byte, 1, 0), 1, "by rbpf itself");
		cr_expect_eq(file_worker_headers(&w, &exe, &headers), -EIO);
		cr_expect_eq(fake.spawned, 3, "one on a device is tried");
	}
	for (size_t i = 0; i < 3; i++)
		close(fds[i]);
	close(exe.fd);
	file_worker_deinit(&w);
}

/* Pieces of a file, also of one that is larger than what is read at once. */
Test(worker, reads_bytes)
{
	const size_t size = (9u << 20) + 5;
	struct file_worker w;
	char *bytes = malloc(size), *got = malloc(size);
	int fd;

	cr_assert(bytes && got);
	for (size_t i = 0; i < size; i++)
		bytes[i] = (char)(i ^ i >> 8 ^ i >> 16);
	fd = elf_builder_memfd(bytes, size);
	file_worker_init(&w, NULL);
	cr_expect_eq(file_worker_read(&w, fd, got, size, 0), size);
	cr_expect_arr_eq(got, bytes, size);
	cr_expect_eq(file_worker_read(&w, fd, got, 100, 4321), 100);
	cr_expect_arr_eq(got, bytes + 4321, 100);
	cr_expect_eq(file_worker_read(&w, fd, got, 100, size - 7), 7);
	cr_expect_eq(file_worker_read(&w, fd, got, 100, size + 7), 0);
	cr_expect_eq(file_worker_read(NULL, fd, got, 100, size - 7), 7);
	cr_expect_eq(file_worker_read(NULL, -1, got, 100, 0), -EBADF);
	file_worker_deinit(&w);
	close(fd);
	free(bytes);
	free(got);
}

Test(worker, is_not_waited_for_when_rbpf_is_to_end)
{
	struct fake fake = { 0 };
	const struct file_worker_options opts = { .spawn = fake_spawn,
						  .spawn_arg = &fake,
						  .stall_ns = UINT64_MAX };
	struct worker_file exe = own_exe();
	struct elf_headers headers;
	struct file_worker w;

	file_worker_init(&w, &opts);
	stop_at(clock_ns(CLOCK_MONOTONIC));
	cr_expect_eq(file_worker_headers(&w, &exe, &headers), -EIO);
	cr_expect_eq(w.losses.files, 0, "that was no file's fault");
	cr_expect_eq(fake.spawned, 1);
	cr_expect_eq(file_worker_headers(&w, &exe, &headers), -EIO);
	cr_expect_eq(fake.spawned, 1, "nothing is asked any more");
	file_worker_deinit(&w);
	close(exe.fd);
}
