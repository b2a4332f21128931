/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "target/container.h"

#define ID    "3f2a9c1b0d4e5f60718293a4b5c6d7e8f90123456789abcdef0123456789abcd"
#define OTHER "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define POD   "0fb5c1c7-5e2b-4c76-8dfe-4ab9d7e2c4f1"

static const char *container_of(const char *path, struct buf *out)
{
	buf_reset(out);
	cgroup_container(path, out);
	cr_assert_not(buf_failed(out));
	return buf_str(out);
}

static const char *path_of(const char *text, struct buf *out)
{
	buf_reset(out);
	cgroup_path(text, out);
	cr_assert_not(buf_failed(out));
	return buf_str(out);
}

struct sample {
	const char *path, *container;
};

static void expect_containers(const struct sample *samples, size_t n)
{
	struct buf out = BUF_INIT;

	for (size_t i = 0; i < n; i++)
		cr_expect_str_eq(container_of(samples[i].path, &out), samples[i].container, "%s",
				 samples[i].path);
	buf_deinit(&out);
}

Test(container, ids)
{
	static const struct sample samples[] = {
		/* Docker: cgroupfs, systemd, rootless; with a systemd inside */
		{ "/docker/" ID, ID },
		{ "/system.slice/docker-" ID ".scope", ID },
		{ "/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" ID ".scope",
		  ID },
		{ "/docker/" ID "/system.slice/ssh.service", ID },
		{ "/system.slice/docker-" ID ".scope/init.scope", ID },
		/* Kubernetes: containerd, CRI-O, Docker */
		{ "/kubepods/burstable/pod" POD "/" ID, ID },
		{ "/kubepods/pod" POD "/" ID, ID },
		{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0fb5c1c7_5e2b_"
		  "4c76_8dfe_4ab9d7e2c4f1.slice/cri-containerd-" ID ".scope",
		  ID },
		{ "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod0fb5c1c7_5e2b_"
		  "4c76_8dfe_4ab9d7e2c4f1.slice/crio-" ID ".scope",
		  ID },
		{ "/kubepods.slice/kubepods-podx.slice/crio-" ID ".scope/container", ID },
		{ "/kubepods.slice/kubepods-podx.slice/docker-" ID ".scope", ID },
		{ "/system.slice/containerd.service/"
		  "kubepods-burstable-podx.slice:cri-containerd:" ID,
		  ID },
		{ "/k8s.io/" ID, ID },
		/* Podman: root, rootless, cgroupfs, split; nerdctl; Amazon ECS */
		{ "/machine.slice/libpod-" ID ".scope", ID },
		{ "/machine.slice/libpod-" ID ".scope/container", ID },
		{ "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID
		  ".scope/container",
		  ID },
		{ "/libpod_parent/libpod-" ID, ID },
		{ "/system.slice/web.service/libpod-payload-" ID, ID },
		{ "/system.slice/nerdctl-" ID ".scope", ID },
		{ "/ecs/0123456789abcdef0123456789abcdef/" ID, ID },
		/* as seen from a cgroup namespace beside it */
		{ "/../docker-" ID ".scope", ID },
	};

	expect_containers(samples, ARRAY_SIZE(samples));
}

Test(container, names)
{
	static const struct sample samples[] = {
		{ "/lxc/web", "web" },
		{ "/lxc/101/ns/init.scope", "101" },
		{ "/lxc.payload.web-1/system.slice/puma.service", "web-1" },
		{ "/lxc.payload/web", "web" },
		{ "/lxc.payload.user-1000_c1/.lxc", "user-1000_c1" },
		{ "/machine.slice/machine-debian.scope/payload", "debian" },
		{ "/machine.slice/machine-my\\x2dweb.scope/payload/init.scope", "my-web" },
		{ "/machine.slice/systemd-nspawn@web.service/payload/system.slice", "web" },
		{ "/machine.slice/systemd-nspawn@my\\x2dweb.service", "my-web" },
	};

	expect_containers(samples, ARRAY_SIZE(samples));
}

Test(container, the_innermost)
{
	static const struct sample samples[] = {
		{ "/docker/" OTHER "/docker/" ID, ID },
		{ "/lxc.payload.host/docker/" ID, ID },
		{ "/docker/" OTHER "/kubelet.slice/kubelet-kubepods.slice/cri-containerd-" ID
		  ".scope",
		  ID },
		{ "/docker/" ID "/lxc/inner/lxc.payload.innermost/x", "innermost" },
		{ "/system.slice/docker-" ID ".scope/machine.slice/libpod-conmon-" OTHER ".scope",
		  ID },
	};

	expect_containers(samples, ARRAY_SIZE(samples));
}

Test(container, none)
{
	static const char *const paths[] = {
		"",
		"/",
		"//",
		"/init.scope",
		"/user.slice/user-1000.slice/session-3.scope",
		"/user.slice/user-1000.slice/user@1000.service/app.slice/app-foo-42.scope",
		"/system.slice/docker.service",
		"/system.slice/containerd.service",
		"/system.slice/lxc.service",
		"/docker",
		"/lxc",
		"/lxc/",
		"/lxc.payload.",
		"/lxc.monitor.web",
		"/lxc.monitor/web",
		"/kubepods.slice/kubepods-pod0fb5c1c7_5e2b_4c76_8dfe_4ab9d7e2c4f1.slice",
		/* the monitors beside a container, a pod of several */
		"/machine.slice/libpod-conmon-" ID ".scope",
		"/system.slice/crio-conmon-" ID ".scope",
		"/machine.slice/machine-libpod_pod_" ID ".slice",
		"/libpod_parent/libpod_pod_" ID,
		/* virtual machines */
		"/machine.slice/machine-qemu\\x2d1\\x2dvm.scope",
		/* not 64 hex digits */
		"/docker/3f2a9c1b0d4e",
		"/docker/" ID "0",
		"/docker/g" ID,
		"/docker/3F2A9C1B0D4E5F60718293A4B5C6D7E8F90123456789ABCDEF0123456789ABCD",
		"/machine.slice/machine-.scope",
		"/machine.slice/machine-x.slice",
		"/systemd-nspawn@.service",
	};
	struct buf out = BUF_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		cr_expect_str_eq(container_of(paths[i], &out), "", "%s", paths[i]);
	buf_deinit(&out);
}

Test(container, escapes_that_are_none)
{
	static const struct sample samples[] = {
		{ "/machine-a\\x2.scope", "a\\x2" },	     { "/machine-a\\.scope", "a\\" },
		{ "/machine-a\\x00b.scope", "a\\x00b" },     { "/machine-\\xzz.scope", "\\xzz" },
		{ "/machine-\\xc3\\xa4.scope", "\xc3\xa4" },
	};

	expect_containers(samples, ARRAY_SIZE(samples));
}

#define V1_DOCKER                                                                                  \
	"12:pids:/docker/" ID "\n11:hugetlb:/docker/" ID "\n4:cpu,cpuacct:/docker/" ID "\n"        \
	"1:name=systemd:/docker/" ID "\n"

Test(container, line_of_a_process)
{
	static const struct sample samples[] = {
		{ "0::/\n", "/" },
		{ "0::/user.slice/user-0.slice/session-1.scope\n",
		  "/user.slice/user-0.slice/session-1.scope" },
		{ "0::/system.slice/docker-" ID ".scope", "/system.slice/docker-" ID ".scope" },
		{ V1_DOCKER, "/docker/" ID },
		/* hybrid, where version 2 knows nothing of the container */
		{ V1_DOCKER "0::/system.slice/containerd.service\n", "/docker/" ID },
		{ V1_DOCKER "0::/\n", "/docker/" ID },
		/* some controllers are not divided further */
		{ "3:cpuset:/docker/" ID "\n2:memory:/docker/" ID "/system.slice/a.service\n"
		  "1:cpu:/docker/" ID "\n",
		  "/docker/" ID "/system.slice/a.service" },
		/* none names a container: version 2, systemd, the longest */
		{ "3:memory:/user.slice/a/very/long/path\n1:name=systemd:/user.slice/b\n0::/c\n",
		  "/c" },
		{ "3:memory:/user.slice/a/very/long/path\n1:name=systemd:/user.slice/b\n0::/\n",
		  "/user.slice/b" },
		{ "3:memory:/a\n2:cpu:/a/bc\n1:name=systemd:/\n0::/\n", "/a/bc" },
		{ "9:name=systemd:/\n4:memory:/\n0::/\n", "/" },
		/* colons, and a group that was removed */
		{ "1:name=systemd:/x.slice:cri-containerd:" ID "\n",
		  "/x.slice:cri-containerd:" ID },
		{ "0::/system.slice/a.service (deleted)\n", "/system.slice/a.service" },
	};
	struct buf out = BUF_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		cr_expect_str_eq(path_of(samples[i].path, &out), samples[i].container, "%s",
				 samples[i].path);
	buf_deinit(&out);
}

Test(container, garbage)
{
	static const char *const texts[] = {
		"",	"\n",		"\n\n\n",      ":",	    "::",     "0:",	"0::",
		"::/x", "x::/docker/y", "-1::/docker", "0::docker", " 0::/x", "0 ::/x", "0:/x",
	};
	struct buf out = BUF_INIT;
	char text[400];
	uint32_t state = 1;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		cr_expect_str_eq(path_of(texts[i], &out), "", "\"%s\"", texts[i]);
	cr_expect_str_eq(path_of("nonsense\n0::/a\n:::\n", &out), "/a");
	for (size_t round = 0; round < 20000; round++) {
		static const char bytes[] = "0123abcdef:/-.\\x\n lxcpayload.scope machine-";
		size_t n;

		for (n = 0; n < round % sizeof(text); n++) {
			state = state * 1664525 + 1013904223;
			text[n] = bytes[(state >> 16) % (sizeof(bytes) - 1)];
		}
		text[n] = '\0';
		path_of(text, &out);
		container_of(text, &out);
	}
	buf_deinit(&out);
}

Test(container, status)
{
	static const struct {
		const char *text;
		pid_t ns_pid;
		uid_t uid;
	} samples[] = {
		{ "Name:\truby\nUid:\t1000\t0\t0\t0\nNSpid:\t4242\n", 4242, 1000 },
		{ "Uid:\t0\t5\t5\t5\nNSpid:\t4242\t17\t1\nNSpgid:\t9\t9\t9\n", 1, 0 },
		{ "Name:\tNSpid:\t7\nUid:\t4294967294\t1\n", 0, 4294967294 },
		{ "NSpid:\t42\t\n", 0, (uid_t)-1 },
		{ "NSpid:\t-1\nUid:\tx\n", 0, (uid_t)-1 },
		{ "NSpid:\nUid:\n", 0, (uid_t)-1 },
		{ "NSpid:\t99999999999999999999999999\nUid:\t4294967296\n", 0, (uid_t)-1 },
		{ "", 0, (uid_t)-1 },
		{ "NSpid:\t42", 42, (uid_t)-1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		struct process_context p = PROCESS_CONTEXT_INIT;

		process_context_of_status(samples[i].text, &p);
		cr_expect_eq(p.ns_pid, samples[i].ns_pid, "%s", samples[i].text);
		cr_expect_eq(p.uid, samples[i].uid, "%s", samples[i].text);
	}
}

Test(container, own)
{
	struct process_context p = PROCESS_CONTEXT_INIT;

	cr_assert_eq(process_context_read(getpid(), &p), 0);
	cr_expect(!*p.cgroup || *p.cgroup == '/', "%s", p.cgroup);
	cr_expect_eq(p.ns_pid, getpid());
	cr_expect_eq(p.uid, getuid());
	process_context_deinit(&p);
	cr_expect(!p.cgroup && !p.container && !p.ns_pid && p.uid == (uid_t)-1);
	process_context_deinit(&p);
}

Test(container, of_nobody)
{
	struct process_context p = PROCESS_CONTEXT_INIT;

	cr_assert_eq(process_context_read(0x3fffffff, &p), 0, "what is unknown is no error");
	cr_expect_str_eq(p.cgroup, "");
	cr_expect_str_eq(p.container, "");
	cr_expect(!p.ns_pid && p.uid == (uid_t)-1);
	process_context_deinit(&p);
}

/*
 * A process that waits in a pid namespace of its own, or -1. Its parent is another that is gone at
 * once: who has called unshare() cannot start anything more once that process has ended, which
 * LeakSanitizer wants to.
 */
static pid_t start_in_namespace(void)
{
	pid_t middle, pid = -1;
	int fds[2];

	cr_assert_eq(pipe(fds), 0);
	middle = fork();
	if (!middle) {
		if (unshare(CLONE_NEWPID))
			_exit(1);
		pid = fork();
		if (!pid) {
			alarm(10); /* a test that fails leaves nothing behind */
			pause();
			_exit(0);
		}
		_exit(write(fds[1], &pid, sizeof(pid)) != sizeof(pid));
	}
	cr_assert_gt(middle, 0);
	close(fds[1]);
	if (read(fds[0], &pid, sizeof(pid)) != sizeof(pid))
		pid = -1;
	close(fds[0]);
	waitpid(middle, NULL, 0);
	return pid;
}

Test(container, pid_in_a_namespace)
{
	struct process_context p = PROCESS_CONTEXT_INIT;
	pid_t pid = start_in_namespace();

	if (pid < 0) {
		cr_skip_test("no pid namespace can be made here");
	}
	cr_expect_eq(process_context_read(pid, &p), 0);
	cr_expect_eq(p.ns_pid, 1);
	process_context_deinit(&p);
	kill(pid, SIGKILL);
}
