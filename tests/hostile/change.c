/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Maps a file and changes it all the while.
 *
 *	change truncate FILE	it is empty, and then whole again
 *	change scribble FILE	some bytes behind its header are others, and then the same again
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char *contents;
static size_t size;

static void shrink(int fd)
{
	ftruncate(fd, 0);
	usleep((useconds_t)(rand() % 1000));
	pwrite(fd, contents, size, 0);
	usleep((useconds_t)(rand() % 3000));
}

static void scribble(int fd)
{
	size_t at = 64 + (size_t)rand() % (size - 128);
	unsigned char junk[8];
	size_t i;

	for (i = 0; i < sizeof(junk); i++)
		junk[i] = rand() & 1 ? 0xff : (unsigned char)rand();
	pwrite(fd, junk, sizeof(junk), (off_t)at);
	usleep(50);
	if (rand() % 16 == 0)
		pwrite(fd, contents, size, 0);
}

int main(int argc, char **argv)
{
	struct stat st;
	int fd;

	if (argc != 3)
		return 2;
	fd = open(argv[2], O_RDWR);
	if (fd < 0) {
		/* What root made belongs to root: a file of one's own takes its place. */
		char copy[4096];

		fd = open(argv[2], O_RDONLY);
		fstat(fd, &st);
		contents = malloc((size_t)st.st_size);
		read(fd, contents, (size_t)st.st_size);
		close(fd);
		snprintf(copy, sizeof(copy), "%s.%d", argv[2], (int)getpid());
		fd = open(copy, O_RDWR | O_CREAT | O_TRUNC, 0755);
		if (fd < 0 || write(fd, contents, (size_t)st.st_size) != st.st_size)
			return 1;
		size = (size_t)st.st_size;
	}
	if (mmap(NULL, 0x2000, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		return 1;
	srand((unsigned int)getpid());
	printf("{\"ready\":true}\n");
	fflush(stdout);
	for (;;)
		argv[1][0] == 't' ? shrink(fd) : scribble(fd);
}
