/* SPDX-License-Identifier: GPL-2.0-only */
#include "worker/channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Room for the descriptors of a message, aligned as CMSG_FIRSTHDR() wants it. */
union channel_control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(CHANNEL_MAX_FDS * sizeof(int))];
};

static void put_fds(struct msghdr *msg, union channel_control *control, const int *fds, size_t n)
{
	struct cmsghdr *cmsg;

	memset(control, 0, sizeof(*control));
	msg->msg_control = control->bytes;
	msg->msg_controllen = CMSG_SPACE(n * sizeof(int));
	cmsg = CMSG_FIRSTHDR(msg);
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(cmsg), fds, n * sizeof(int));
}

int channel_send(int sock, const struct channel_part *parts, size_t n, const int *fds, size_t n_fds)
{
	struct iovec iov[CHANNEL_MAX_PARTS];
	struct msghdr msg = { .msg_iov = iov };
	union channel_control control;
	ssize_t sent;

	for (; msg.msg_iovlen < n; msg.msg_iovlen++)
		iov[msg.msg_iovlen] = (struct iovec) { (void *)parts[msg.msg_iovlen].data,
						       parts[msg.msg_iovlen].size };
	if (n_fds)
		put_fds(&msg, &control, fds, n_fds);
	do {
		sent = sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

static void take_fds(struct msghdr *msg, int *fds, size_t *n)
{
	struct cmsghdr *cmsg;

	*n = 0;
	for (cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		*n = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(cmsg), *n * sizeof(int));
	}
}

int channel_receive(int sock, void *data, size_t size, size_t *len, int *fds, size_t *n_fds,
		    int wait)
{
	struct iovec iov = { data, size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union channel_control control;
	ssize_t n;

	if (fds) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
	}
	do {
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n ? -errno : -EPIPE;
	if (fds)
		take_fds(&msg, fds, n_fds);
	if (msg.msg_flags & MSG_TRUNC)
		return -EPROTO;
	*len = (size_t)n;
	return 0;
}
