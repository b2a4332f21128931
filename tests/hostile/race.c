/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Makes NAME a symbolic link to SECRET, a FIFO, a file of its own, a directory and nothing, in
 * turns, as fast as it can, with OTHER as a name that it may use meanwhile.
 *
 *	race NAME SECRET OTHER
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	const char *name = argv[1], *secret = argv[2], *other = argv[3];
	unsigned int turn;
	int fd;

	if (argc != 4)
		return 2;
	printf("{\"ready\":true}\n");
	fflush(stdout);
	for (turn = 0;; turn++) {
		unlink(other);
		switch (turn % 4) {
		case 0:
			symlink(secret, other);
			break;
		case 1:
			mkfifo(other, 0666);
			break;
		case 2:
			fd = open(other, O_WRONLY | O_CREAT | O_TRUNC, 0644);
			write(fd, "0 1000 mine\n", 12);
			close(fd);
			break;
		case 3:
			unlink(name);
			continue;
		}
		rename(other, name);
		usleep(20);
	}
}
