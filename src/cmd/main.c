/* SPDX-License-Identifier: GPL-2.0-only */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd/command.h"

/*
 * A closed standard stream would give its number to the next file that is opened, and a message
 * would end up in it. It is replaced by one opened the wrong way round, so that using it still
 * fails.
 */
static void fill_standard_streams(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDONLY);
		if (fd == STDIN_FILENO) {
			close(fd);
			fd = open("/dev/null", O_WRONLY);
		}
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	fill_standard_streams();
	/*
	 * A reader that had enough shows as EPIPE, which io.h handles; children get SIG_DFL back.
	 */
	signal(SIGPIPE, SIG_IGN);
	return command_main(argc, argv);
}
