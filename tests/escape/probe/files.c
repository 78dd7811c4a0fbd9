/* Acts on files: names, links, magic links, descriptors, devices, programs. Set-id modes are in modes.c. */

#include "probe.h"

#include <dirent.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>

/* Reads the beginning of what is open; an empty file is nothing that was had. */
static _Noreturn void read_open(int file)
{
	char text[65];
	long length = attempt(read(file, text, sizeof text - 1), "read");

	text[length] = 0;
	if (!length)
		held("it is empty");
	done("%s", text);
}

/* PATH */
static void act_read(char **words)
{
	read_open(attempt(open(words[0], O_RDONLY | O_NONBLOCK), words[0]));
}

/* DIRECTORY NAME: the name is looked up from a descriptor of the directory. */
static void act_read_at(char **words)
{
	int above = need(open(words[0], O_PATH | O_DIRECTORY), words[0]);

	read_open(attempt(openat(above, words[1], O_RDONLY), words[1]));
}

/* DESCRIPTOR NAME: from a descriptor that somebody else has opened. */
static void act_read_from(char **words)
{
	read_open(attempt(openat(number(words[0]), words[1], O_RDONLY), words[1]));
}

/* PATH: opened without any right to its contents, and then again by the link in /proc. */
static void act_reopen(char **words)
{
	char link[64];
	int file = attempt(open(words[0], O_PATH), words[0]);

	snprintf(link, sizeof link, "/proc/self/fd/%d", file);
	read_open(attempt(open(link, O_RDONLY), link));
}

/* PATH: opened for reading, and then again for writing by the link in /proc. */
static void act_reopen_to_write(char **words)
{
	char link[64];
	int file = need(open(words[0], O_RDONLY), words[0]);

	snprintf(link, sizeof link, "/proc/self/fd/%d", file);
	attempt(open(link, O_WRONLY), link);
	done("open for writing");
}

/* PATH FLAG...: rdonly, wronly, creat, trunc, directory, nonblock. */
static void act_open(char **words)
{
	int flags = 0;

	for (char **flag = words + 1; *flag; flag++)
		flags |= !strcmp(*flag, "wronly") ? O_WRONLY : !strcmp(*flag, "rdwr") ? O_RDWR :
			 !strcmp(*flag, "creat") ? O_CREAT : !strcmp(*flag, "trunc") ? O_TRUNC :
			 !strcmp(*flag, "directory") ? O_DIRECTORY : !strcmp(*flag, "nonblock") ? O_NONBLOCK : 0;
	attempt(open(words[0], flags | O_NOCTTY, 0644), words[0]);
	done("open");
}

/* PATH */
static void act_write(char **words)
{
	int file = attempt(open(words[0], O_WRONLY | O_CREAT, 0644), words[0]);

	attempt(write(file, "written\n", 8), "write");
	done("written");
}

static void act_list(char **words)
{
	struct dirent *entry;
	DIR *directory = opendir(words[0]);

	attempt(directory ? 0 : -1, words[0]);
	while ((entry = readdir(directory)))
		if (entry->d_name[0] != '.')
			done("%s", entry->d_name);
	held("nothing is in it");
}

static void act_stat(char **words)
{
	struct stat seen;

	attempt(lstat(words[0], &seen), words[0]);
	done("mode %o", seen.st_mode);
}

static void act_where(char **words)
{
	char target[256];
	long length = attempt(readlink(words[0], target, sizeof target - 1), words[0]);

	target[length] = 0;
	done("%s", target);
}

static void act_truncate(char **words)
{
	attempt(truncate(words[0], 1), words[0]);
	done("truncated");
}

static void act_touch(char **words)
{
	attempt(utimensat(AT_FDCWD, words[0], NULL, 0), words[0]);
	done("touched");
}

static void act_mark(char **words)
{
	attempt(setxattr(words[0], words[1], "1", 1, 0), words[1]);
	done("set");
}

static void act_marks(char **words)
{
	char names[512];

	attempt(listxattr(words[0], names, sizeof names), words[0]);
	done("listed");
}

static void act_mark_of(char **words)
{
	char value[512];

	attempt(getxattr(words[0], words[1], value, sizeof value), words[1]);
	done("read");
}

/* PATH: the right to raw sockets for whoever runs it. */
static void act_carry(char **words)
{
	static const unsigned char raw[20] = { 1, 0, 0, 2, 0, 0x20 };

	attempt(setxattr(words[0], "security.capability", raw, sizeof raw, 0), words[0]);
	done("set");
}

static void act_remove(char **words)
{
	attempt(unlink(words[0]), words[0]);
	done("removed");
}

/* PATH: made, and taken away again. */
static void act_directory(char **words)
{
	attempt(mkdir(words[0], 0755), words[0]);
	rmdir(words[0]);
	done("made");
}

/* KIND PATH: fifo, socket, char (1:3, the empty device), nothing (a character device 0:0), block (7:0); made, and taken
 * away again. */
static void act_node(char **words)
{
	const char *kind = words[0];
	mode_t mode = !strcmp(kind, "fifo") ? S_IFIFO : !strcmp(kind, "socket") ? S_IFSOCK :
		      !strcmp(kind, "block") ? S_IFBLK : S_IFCHR;
	dev_t device = !strcmp(kind, "char") ? makedev(1, 3) : !strcmp(kind, "block") ? makedev(7, 0) : 0;

	attempt(mknod(words[1], mode | 0600, device), words[1]);
	unlink(words[1]);
	done("made");
}

static void act_rename(char **words)
{
	attempt(rename(words[0], words[1]), words[0]);
	done("renamed");
}

/* ONE OTHER: both names stay, and each is then the other's. */
static void act_exchange(char **words)
{
	attempt(renameat2(AT_FDCWD, words[0], AT_FDCWD, words[1], RENAME_EXCHANGE), words[0]);
	done("exchanged");
}

static void act_link(char **words)
{
	attempt(link(words[0], words[1]), words[1]);
	done("linked");
}

/* DESCRIPTOR NEW: a name for a file of which only a descriptor is had. */
static void act_link_open(char **words)
{
	char from[64];
	int file = attempt(open(words[0], O_PATH), words[0]);

	snprintf(from, sizeof from, "/proc/self/fd/%d", file);
	attempt(linkat(AT_FDCWD, from, AT_FDCWD, words[1], AT_SYMLINK_FOLLOW), words[1]);
	done("linked");
}

static void act_give(char **words)
{
	attempt(chown(words[0], number(words[1]), -1), words[0]);
	done("given");
}

struct handle {
	struct file_handle head;
	unsigned char bytes[MAX_HANDLE_SZ];
};

static int handle_of(const char *path, struct handle *handle, int need_it)
{
	int mounted;
	long result;

	handle->head.handle_bytes = MAX_HANDLE_SZ;
	result = name_to_handle_at(AT_FDCWD, path, &handle->head, &mounted, 0);
	return need_it ? need(result, "name_to_handle_at") : attempt(result, "name_to_handle_at");
}

static void act_handle(char **words)
{
	struct handle handle;

	handle_of(words[0], &handle, 0);
	done("%u bytes", handle.head.handle_bytes);
}

/* DIRECTORY: of a file system in which the number 2 is that of the root, as it is in ext4; the handle is made up. */
static void act_by_handle(char **words)
{
	struct handle handle = { { 8, 1 }, { 2 } };
	int above = need(open(words[0], O_RDONLY | O_DIRECTORY), words[0]);
	long file = open_by_handle_at(above, &handle.head, O_RDONLY);

	/* A file system with other handles has understood the question, which is all that is asked. */
	if (file < 0 && (errno == ESTALE || errno == EOPNOTSUPP || errno == EINVAL))
		done("answered %s", strerrorname_np(errno));
	attempt(file, "open_by_handle_at");
	done("open");
}

/* PROGRAM WORD...: runs it, and tells of what it says. */
static void act_run(char **words)
{
	int pipes[2], status;
	char said[200];
	long length;
	pid_t child;

	need(pipe(pipes), "pipe");
	child = need(fork(), "fork");
	if (!child) {
		dup2(pipes[1], 1);
		execv(words[0], words);
		dprintf(pipes[1], "!%d", errno);
		_exit(1);
	}
	close(pipes[1]);
	length = read(pipes[0], said, sizeof said - 1);
	said[length > 0 ? length : 0] = 0;
	status = ended(child);
	if (said[0] == '!') {
		errno = atoi(said + 1);
		refused(words[0]);
	}
	if (WIFSIGNALED(status)) {
		/* As the kernel ended the program, so ends the act. */
		signal(WTERMSIG(status), SIG_DFL);
		kill(getpid(), WTERMSIG(status));
	}
	done("status %d, %s", WEXITSTATUS(status), said);
}

/* PATH: mapped as a program, the way a loader does it. */
static void act_map(char **words)
{
	int file = attempt(open(words[0], O_RDONLY), words[0]);
	void *at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);

	attempt(at == MAP_FAILED ? -1 : 0, "mmap");
	done("mapped");
}

/* PROGRAM: started, and once it has ended written through the link that it had to itself. */
static void act_overwrite(char **words)
{
	char link[64];
	int file;
	pid_t child = need(fork(), "fork");

	if (!child) {
		/* It would say its number among the answers. */
		close(1);
		execl(words[0], words[0], "linger", "", "/dev/null", "0", NULL);
		_exit(1);
	}
	/* Until the program runs the link leads to the probe. */
	for (int turn = 0; turn < 2000; turn++) {
		char target[256];
		long length;

		snprintf(link, sizeof link, "/proc/%d/exe", child);
		length = readlink(link, target, sizeof target - 1);
		if (length > 0) {
			target[length] = 0;
			if (!strcmp(target, words[0]))
				break;
		}
		usleep(1000);
	}
	file = open(link, O_PATH);
	kill(child, SIGKILL);
	ended(child);
	need(file, link);
	snprintf(link, sizeof link, "/proc/self/fd/%d", file);
	attempt(open(link, O_WRONLY), link);
	done("open for writing");
}

/* DIRECTORY TARGET NAME: something in the directory is a directory at one moment and a link to the target at the next,
 * while the name in it is read. */
static void act_swap(char **words)
{
	char place[512], kept_aside[512], name[768];
	long tries = 0;
	pid_t child;

	snprintf(place, sizeof place, "%s/swapped", words[0]);
	snprintf(kept_aside, sizeof kept_aside, "%s/aside", words[0]);
	snprintf(name, sizeof name, "%s/%s", place, words[2]);
	need(mkdir(place, 0755), place);
	need(symlink(words[1], kept_aside), kept_aside);
	child = need(fork(), "fork");
	if (!child)
		for (;;)
			renameat2(AT_FDCWD, place, AT_FDCWD, kept_aside, RENAME_EXCHANGE);
	for (; tries < 20000; tries++) {
		int file = open(name, O_RDONLY);

		if (file >= 0) {
			kill(child, SIGKILL);
			ended(child);
			read_open(file);
		}
	}
	kill(child, SIGKILL);
	ended(child);
	held("never in %ld tries", tries);
}

/* DIRECTORY NAME: from two directories below, the way up is walked while the lower one moves into the upper one and back;
 * with every move the same way leads to another place. */
static void act_climb(char **words)
{
	char deep[512], low[520], high[512];
	long tries = 0;
	pid_t child;
	int below;

	snprintf(deep, sizeof deep, "%s/deep", words[0]);
	snprintf(low, sizeof low, "%s/low", deep);
	snprintf(high, sizeof high, "%s/high", words[0]);
	need(mkdir(deep, 0755), deep);
	need(mkdir(low, 0755), low);
	below = need(open(low, O_PATH | O_DIRECTORY), low);
	child = need(fork(), "fork");
	if (!child)
		for (;;) {
			rename(low, high);
			rename(high, low);
		}
	for (; tries < 20000; tries++) {
		char name[768];
		int file;

		snprintf(name, sizeof name, "../../%s", words[1]);
		file = openat(below, name, O_RDONLY);
		if (file >= 0) {
			kill(child, SIGKILL);
			ended(child);
			read_open(file);
		}
	}
	kill(child, SIGKILL);
	ended(child);
	held("never in %ld tries", tries);
}

/* DIRECTORY NAME: what is above a directory that was opened before somebody outside moved it out of the tree. Whoever
 * does that is asked by a file, and answers by removing it. */
static void act_leave(char **words)
{
	char place[512], asked[512], name[768];
	int below;

	snprintf(place, sizeof place, "%s/leaving", words[0]);
	snprintf(asked, sizeof asked, "%s/leave", words[0]);
	snprintf(name, sizeof name, "../%s", words[1]);
	need(mkdir(place, 0755), place);
	below = need(open(place, O_PATH | O_DIRECTORY), place);
	need(open(asked, O_WRONLY | O_CREAT, 0644), asked);
	while (!access(asked, F_OK))
		usleep(1000);
	read_open(attempt(openat(below, name, O_RDONLY), name));
}

/* FIRST: whether any descriptor from this number on is open. */
static void act_descriptors(char **words)
{
	for (int descriptor = number(words[0]); descriptor < 4096; descriptor++)
		if (fcntl(descriptor, F_GETFD) != -1)
			done("%d is open", descriptor);
	held("none is open");
}

/* PATH: by the call that seals its own way of looking up. */
static void act_openat2(char **words)
{
	struct open_how how = { .flags = O_RDONLY };

	read_open(attempt(syscall(SYS_openat2, AT_FDCWD, words[0], &how, sizeof how), "openat2"));
}

/* PATH: a lease, by which the holder learns of others that open the file, and holds them up. */
static void act_lease(char **words)
{
	int file = need(open(words[0], O_RDONLY), words[0]);

	attempt(fcntl(file, F_SETLEASE, F_RDLCK), "F_SETLEASE");
	done("leased");
}

/* PATH: a signal whenever something happens in the directory. */
static void act_notify(char **words)
{
	int file = need(open(words[0], O_RDONLY | O_DIRECTORY), words[0]);

	attempt(fcntl(file, F_NOTIFY, DN_CREATE), "F_NOTIFY");
	done("watched");
}

const struct act files[] = {
	{ "read", 1, act_read },
	{ "read-at", 2, act_read_at },
	{ "read-from", 2, act_read_from },
	{ "reopen", 1, act_reopen },
	{ "reopen-to-write", 1, act_reopen_to_write },
	{ "open", 1, act_open },
	{ "openat2", 1, act_openat2 },
	{ "write", 1, act_write },
	{ "list", 1, act_list },
	{ "stat", 1, act_stat },
	{ "where", 1, act_where },
	{ "truncate", 1, act_truncate },
	{ "touch", 1, act_touch },
	{ "mark", 2, act_mark },
	{ "marks", 1, act_marks },
	{ "mark-of", 2, act_mark_of },
	{ "carry", 1, act_carry },
	{ "remove", 1, act_remove },
	{ "directory", 1, act_directory },
	{ "node", 2, act_node },
	{ "rename", 2, act_rename },
	{ "exchange", 2, act_exchange },
	{ "link", 2, act_link },
	{ "link-open", 2, act_link_open },
	{ "give", 2, act_give },
	{ "handle", 1, act_handle },
	{ "by-handle", 1, act_by_handle },
	{ "run", 1, act_run },
	{ "map", 1, act_map },
	{ "overwrite", 1, act_overwrite },
	{ "swap", 3, act_swap },
	{ "climb", 2, act_climb },
	{ "leave", 2, act_leave },
	{ "descriptors", 1, act_descriptors },
	{ "lease", 1, act_lease },
	{ "notify", 1, act_notify },
	{ 0 },
};
