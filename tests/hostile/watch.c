/* SPDX-License-Identifier: GPL-2.0-only */
/* Says "opened FILE" each time that one of these files is opened to be read or written. */
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char events[4096] __attribute__((aligned(8)));
	int fd = inotify_init(), i;
	ssize_t n, at;

	for (i = 1; i < argc; i++)
		if (inotify_add_watch(fd, argv[i], IN_OPEN) != i)
			return 1;
	printf("{\"ready\":true}\n");
	fflush(stdout);
	while ((n = read(fd, events, sizeof(events))) > 0) {
		for (at = 0; at < n;) {
			const struct inotify_event *event = (const void *)(events + at);

			printf("opened %s\n", argv[event->wd]);
			at += (ssize_t)(sizeof(*event) + event->len);
		}
		fflush(stdout);
	}
	return 1;
}
