/* Acts that take as much as they can get, up to an end that a machine stands. */

#include "probe.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

/* MEBIBYTES: all of them touched. */
static void act_memory(char **words)
{
	long size = number(words[0]) << 20;
	char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	attempt(at == MAP_FAILED ? -1 : 0, "mmap");
	for (long byte = 0; byte < size; byte += 4096)
		at[byte] = 1;
	done("%s MiB", words[0]);
}

/* COUNT: processes that are all there at once. */
static void act_processes(char **words)
{
	long most = number(words[0]), count = 0;
	int error = 0;

	/* They end with this one, whichever way it ends. */
	setpgid(0, 0);
	for (; count < most; count++) {
		pid_t child = fork();

		if (child < 0) {
			error = errno;
			break;
		}
		if (!child) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			alarm(0);
			for (;;)
				pause();
		}
	}
	signal(SIGTERM, SIG_IGN);
	kill(0, SIGTERM);
	for (long at = 0; at < count; at++)
		wait(NULL);
	errno = error;
	attempt(error ? -1 : 0, "fork");
	done("%ld processes", count);
}

/* DEPTH: every process starts another, and so do all of these, until there are two to this power. The first that cannot
 * is told of by a pipe, on which all of them wait for the end. */
static void act_bomb(char **words)
{
	int ends[2], failed[2];
	unsigned char error = 0;

	setpgid(0, 0);
	need(pipe(ends), "pipe");
	need(pipe(failed), "pipe");
	for (long depth = number(words[0]); depth > 0; depth--) {
		pid_t child = fork();

		if (child < 0) {
			error = errno;
			if (write(failed[1], &error, 1) < 0)
				_exit(1);
			break;
		}
	}
	if (getpid() != getpgrp()) {
		close(ends[1]);
		close(failed[1]);
		_exit(read(ends[0], &error, 1));
	}
	/* All others have said what went wrong once the pipe has no end but this one; they wait. */
	close(failed[1]);
	if (read(failed[0], &error, 1) < 0)
		unable("read");
	signal(SIGTERM, SIG_IGN);
	kill(0, SIGTERM);
	while (wait(NULL) > 0)
		continue;
	errno = error;
	attempt(error ? -1 : 0, "fork");
	done("2 to the power of %s", words[0]);
}

static void *stay(void *nothing)
{
	for (;;)
		pause();
	return nothing;
}

static void act_threads(char **words)
{
	pthread_attr_t small;
	pthread_t thread;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 16384);
	for (long count = number(words[0]); count > 0; count--) {
		errno = pthread_create(&thread, &small, stay, NULL);
		attempt(errno ? -1 : 0, "pthread_create");
	}
	done("%s threads", words[0]);
}

/* COUNT: descriptors that are open at once. */
static void act_descriptors_open(char **words)
{
	for (long count = number(words[0]); count > 0; count--)
		attempt(open("/dev/null", O_RDONLY), "open");
	done("%s descriptors", words[0]);
}

/* PATH KIBIBYTES: a file of that size. */
static void act_fill(char **words)
{
	static char block[1024];
	int file = need(open(words[0], O_WRONLY | O_CREAT, 0644), words[0]);
	int error = 0;

	for (long count = number(words[1]); count > 0 && !error; count--)
		if (write(file, block, sizeof block) < 0)
			error = errno;
	unlink(words[0]);
	errno = error;
	attempt(error ? -1 : 0, "write");
	done("%s KiB", words[1]);
}

/* PATH KIBIBYTES: by the call that asks for the room first. */
static void act_allocate(char **words)
{
	int file = need(open(words[0], O_WRONLY | O_CREAT, 0644), words[0]);
	long result = fallocate(file, 0, 0, number(words[1]) << 10);
	int error = errno;

	unlink(words[0]);
	errno = error;
	attempt(result, "fallocate");
	done("%s KiB", words[1]);
}

/* DIRECTORY COUNT: empty files, which take no room but their names. */
static void act_crowd(char **words)
{
	long count = 0;
	int error = 0;
	char path[512];

	for (; count < number(words[1]) && !error; count++) {
		snprintf(path, sizeof path, "%s/crowd-%ld", words[0], count);
		int file = open(path, O_WRONLY | O_CREAT, 0600);

		if (file < 0)
			error = errno;
		close(file);
	}
	for (long at = 0; at < count; at++) {
		snprintf(path, sizeof path, "%s/crowd-%ld", words[0], at);
		unlink(path);
	}
	errno = error;
	attempt(error ? -1 : 0, "open");
	done("%ld files", count);
}

static const struct {
	const char *name;
	int resource;
} limits[] = {
	{ "core", RLIMIT_CORE }, { "files", RLIMIT_NOFILE }, { "processes", RLIMIT_NPROC },
};

/* WHAT VALUE: the soft limit to this, the hard one as high as that needs. */
static void act_limit(char **words)
{
	for (size_t at = 0; at < sizeof limits / sizeof *limits; at++) {
		struct rlimit limit;

		if (strcmp(limits[at].name, words[0]))
			continue;
		need(getrlimit(limits[at].resource, &limit), words[0]);
		limit.rlim_cur = number(words[1]);
		if (limit.rlim_max < limit.rlim_cur)
			limit.rlim_max = limit.rlim_cur;
		attempt(setrlimit(limits[at].resource, &limit), words[0]);
		done("set");
	}
	errno = EINVAL;
	unable(words[0]);
}

/* MILLISECONDS of processor time, however long that takes. */
static void act_burn(char **words)
{
	struct timespec used;
	long wanted = number(words[0]);

	alarm(0);
	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	while (used.tv_sec * 1000 + used.tv_nsec / 1000000 < wanted);
	done("%ld ms", wanted);
}

/* NAME: a process that no signal but one ends, and that does not end. */
static void act_stay(char **words)
{
	prctl(PR_SET_NAME, words[0]);
	alarm(0);
	for (int one = 1; one < 32; one++)
		signal(one, SIG_IGN);
	for (;;)
		pause();
}

const struct act resources[] = {
	{ "memory", 1, act_memory },
	{ "processes", 1, act_processes },
	{ "bomb", 1, act_bomb },
	{ "threads", 1, act_threads },
	{ "open-many", 1, act_descriptors_open },
	{ "fill", 2, act_fill },
	{ "allocate", 2, act_allocate },
	{ "crowd", 2, act_crowd },
	{ "limit", 2, act_limit },
	{ "burn", 1, act_burn },
	{ "stay", 1, act_stay },
	{ 0 },
};
