/* Acts on other processes: tracing, memory, descriptors, signals, limits, and outliving the end. */

#include "probe.h"

#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>

/* PID */
static void act_trace(char **words)
{
	pid_t pid = number(words[0]);

	attempt(ptrace(PTRACE_SEIZE, pid, NULL, NULL), "PTRACE_SEIZE");
	done("traced");
}

/* The own child lets itself be traced. */
static void act_trace_child(char **words)
{
	int status;
	pid_t child = need(fork(), "fork");

	(void)words;
	if (!child)
		_exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 ? errno : 0);
	status = ended(child);
	errno = WEXITSTATUS(status);
	attempt(errno ? -1 : 0, "PTRACE_TRACEME");
	done("traced");
}

static long memory(int call, char **words, char *text, size_t size)
{
	/* The last byte alone is written: it is the end of what is kept. */
	struct iovec here = { text, size }, there = { kept + sizeof kept - size, size };

	return syscall(call, (pid_t)number(words[0]), &here, 1, &there, 1, 0);
}

/* PID: what `probe linger` keeps. */
static void act_read_memory(char **words)
{
	char text[sizeof kept];

	attempt(memory(SYS_process_vm_readv, words, text, sizeof text), "process_vm_readv");
	done("%s", text);
}

static void act_write_memory(char **words)
{
	char text[1] = "";

	attempt(memory(SYS_process_vm_writev, words, text, 1), "process_vm_writev");
	done("written");
}

/* PID: by the file that /proc has for it. */
static void act_open_memory(char **words)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%ld/mem", number(words[0]));
	attempt(open(path, O_RDWR), path);
	done("open");
}

/* PID DESCRIPTOR */
static void act_take_descriptor(char **words)
{
	/* Without a handle the call is made all the same: what refuses it may stand before what looks at it. */
	int handle = syscall(SYS_pidfd_open, (pid_t)number(words[0]), 0);

	attempt(syscall(SYS_pidfd_getfd, handle, (int)number(words[1]), 0), "pidfd_getfd");
	done("taken");
}

static void act_handle_process(char **words)
{
	attempt(syscall(SYS_pidfd_open, (pid_t)number(words[0]), 0), "pidfd_open");
	done("open");
}

/* PID: whether two processes share their memory tells addresses of the kernel apart. */
static void act_compare(char **words)
{
	attempt(syscall(SYS_kcmp, getpid(), (pid_t)number(words[0]), 1, 0, 0), "kcmp");
	done("compared");
}

/* PID: where it keeps its locks. */
static void act_robust_list(char **words)
{
	void *head;
	size_t length;

	attempt(syscall(SYS_get_robust_list, (pid_t)number(words[0]), &head, &length), "get_robust_list");
	done("%p", head);
}

/* WAY PID: a signal that does nothing to who has no handler for it. */
static void act_signal(char **words)
{
	const char *way = words[0];
	pid_t pid = number(words[1]);
	siginfo_t info = { .si_signo = SIGURG, .si_code = SI_QUEUE };
	int pipes[2];
	long result;

	if (!strcmp(way, "kill")) {
		result = kill(pid, SIGURG);
	} else if (!strcmp(way, "all")) {
		/* Signal 0 asks whether there is anybody at all. */
		result = kill(-1, 0);
	} else if (!strcmp(way, "group")) {
		result = kill(-pid, SIGURG);
	} else if (!strcmp(way, "tkill")) {
		result = syscall(SYS_tkill, pid, SIGURG);
	} else if (!strcmp(way, "tgkill")) {
		result = syscall(SYS_tgkill, pid, pid, SIGURG);
	} else if (!strcmp(way, "queue")) {
		result = syscall(SYS_rt_sigqueueinfo, pid, SIGURG, &info);
	} else if (!strcmp(way, "thread-queue")) {
		result = syscall(SYS_rt_tgsigqueueinfo, pid, pid, SIGURG, &info);
	} else if (!strcmp(way, "handle")) {
		int handle = attempt(syscall(SYS_pidfd_open, pid, 0), "pidfd_open");

		result = syscall(SYS_pidfd_send_signal, handle, SIGURG, NULL, 0);
	} else if (!strcmp(way, "owner")) {
		/* Whoever owns the descriptor is told of what happens on it. */
		need(pipe(pipes), "pipe");
		result = fcntl(pipes[0], F_SETOWN, pid);
	} else {
		errno = EINVAL;
		unable(way);
	}
	attempt(result, way);
	done("signalled");
}

/* PID: by the kernel, for what happens on a descriptor that the process was made the owner of. `probe linger` keeps the
 * signal from being delivered, so that it can be seen that it came. */
static void act_tell(char **words)
{
	int pipes[2];

	need(pipe(pipes), "pipe");
	attempt(fcntl(pipes[0], F_SETOWN, (pid_t)number(words[0])), "F_SETOWN");
	attempt(fcntl(pipes[0], F_SETSIG, SIGUSR2), "F_SETSIG");
	attempt(fcntl(pipes[0], F_SETFL, O_ASYNC | O_NONBLOCK), "O_ASYNC");
	need(write(pipes[1], "x", 1), "write");
	done("told");
}

/* PID SIGNAL, or `child SIGNAL` for a process that the act starts: is it still there, and does it run? */
static void act_end(char **words)
{
	int own = !strcmp(words[0], "child"), sent = number(words[1]);
	char path[64], text[256] = "", *state;
	pid_t target;
	long length;
	int file;

	if (own) {
		target = need(fork(), "fork");
		if (!target)
			for (;;)
				pause();
	} else {
		target = number(words[0]);
		errno = EPERM;
		if (target == 1 && !is_alone())
			unable("process 1 is the machine's");
	}
	attempt(kill(target, sent), "kill");
	snprintf(path, sizeof path, "/proc/%d/stat", target);
	/* Long enough for what is not ignored to have come. */
	for (int turn = 0; turn < 200; turn++) {
		file = open(path, O_RDONLY);
		length = file < 0 ? 0 : read(file, text, sizeof text - 1);
		close(file);
		text[length > 0 ? length : 0] = 0;
		state = strrchr(text, ')');
		if (!state || strchr("ZTXt", state[2])) {
			kill(own ? target : 0, 0);
			if (own)
				kill(target, SIGKILL);
			done("it is in state %c", state ? state[2] : '-');
		}
		usleep(1000);
	}
	if (own)
		kill(target, SIGKILL);
	held("it goes on");
}

/* WHAT PID: what somebody else may change of a process, to hold it up. */
static void act_slow(char **words)
{
	const char *what = words[0];
	pid_t pid = number(words[1]);
	struct rlimit limit;
	struct sched_param parameters = { 0 };
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attributes = { .size = 48, .nice = 19 };
	unsigned long processors[16];
	long result;

	if (!strcmp(what, "limit")) {
		result = prlimit(pid, RLIMIT_NOFILE, NULL, &limit);
		if (!result)
			result = prlimit(pid, RLIMIT_NOFILE, &limit, NULL);
	} else if (!strcmp(what, "limit-high")) {
		/* The kernel takes the lower half alone for the process. */
		result = syscall(SYS_prlimit64, 0x100000000 | pid, RLIMIT_NOFILE, NULL, &limit);
	} else if (!strcmp(what, "nice")) {
		result = setpriority(PRIO_PROCESS, pid, 19);
	} else if (!strcmp(what, "nice-group")) {
		result = setpriority(PRIO_PGRP, pid, 19);
	} else if (!strcmp(what, "nice-user")) {
		result = setpriority(PRIO_USER, 0, 19);
	} else if (!strcmp(what, "io")) {
		result = syscall(SYS_ioprio_set, 1, pid, 3 << 13);
	} else if (!strcmp(what, "io-user")) {
		result = syscall(SYS_ioprio_set, 3, getuid(), 3 << 13);
	} else if (!strcmp(what, "affinity")) {
		result = syscall(SYS_sched_getaffinity, pid, sizeof processors, processors);
		if (result > 0)
			result = syscall(SYS_sched_setaffinity, pid, result, processors);
	} else if (!strcmp(what, "scheduler")) {
		result = syscall(SYS_sched_setscheduler, pid, SCHED_OTHER, &parameters);
	} else if (!strcmp(what, "parameters")) {
		result = syscall(SYS_sched_setparam, pid, &parameters);
	} else if (!strcmp(what, "attributes")) {
		result = syscall(SYS_sched_setattr, pid, &attributes, 0);
	} else {
		errno = EINVAL;
		unable(what);
	}
	attempt(result, what);
	done("set");
}

/* A policy that takes a processor from everybody else. */
static void act_realtime(char **words)
{
	struct sched_param parameters = { 1 };

	(void)words;
	attempt(syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &parameters), "SCHED_FIFO");
	done("set");
}

/* Starts a process in a session of its own, with another parent, which is there to stay. Once this one has ended it ends
 * `killed`, if that is not 0. */
static void outlive(const char *name, pid_t killed)
{
	int open_here[2];
	char nothing;
	pid_t child;

	need(pipe(open_here), "pipe");
	child = need(fork(), "fork");
	if (child) {
		ended(child);
		done("started");
	}
	close(open_here[1]);
	setsid();
	signal(SIGHUP, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	if (fork())
		_exit(0);
	alarm(0);
	prctl(PR_SET_NAME, name);
	/* Nobody waits for the end of what it would write. */
	for (int descriptor = 0; descriptor < 3; descriptor++)
		close(descriptor);
	if (killed && read(open_here[0], &nothing, 1) == 0)
		kill(killed, SIGKILL);
	for (;;)
		pause();
}

/* NAME */
static void act_outlive(char **words)
{
	outlive(words[0], 0);
}

/* PID NAME, or `child NAME` for a process that the act starts. */
static void act_desert(char **words)
{
	pid_t target;

	if (strcmp(words[0], "child")) {
		target = number(words[0]);
		errno = EPERM;
		if (target == 1 && !is_alone())
			unable("process 1 is the machine's");
		outlive(words[1], target);
	}
	target = need(fork(), "fork");
	if (!target)
		for (;;)
			pause();
	outlive(words[1], target);
}

/* An end that leaves what was in memory to whoever collects such things. */
static void act_dump(char **words)
{
	struct rlimit limit;
	int status;
	pid_t child = need(fork(), "fork");

	need(chdir(words[0]), words[0]);
	if (!child) {
		chdir(words[0]);
		getrlimit(RLIMIT_CORE, &limit);
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_CORE, &limit);
		signal(SIGABRT, SIG_DFL);
		abort();
	}
	status = ended(child);
	if (WIFSIGNALED(status) && WCOREDUMP(status))
		done("dumped");
	held("not dumped");
}

/* WHAT PID: facts about a process that is to be unseen. */
static void act_ask(char **words)
{
	const char *what = words[0];
	pid_t pid = number(words[1]);
	long result;

	errno = 0;
	if (!strcmp(what, "group"))
		result = getpgid(pid);
	else if (!strcmp(what, "session"))
		result = getsid(pid);
	else if (!strcmp(what, "scheduler"))
		result = sched_getscheduler(pid);
	else if (!strcmp(what, "priority"))
		result = getpriority(PRIO_PROCESS, pid);
	else if (!strcmp(what, "io"))
		result = syscall(SYS_ioprio_get, 1, pid);
	else
		result = kill(pid, 0);
	attempt(result == -1 && errno ? -1 : 0, what);
	done("%ld", result);
}

const struct act processes[] = {
	{ "trace", 1, act_trace },
	{ "trace-child", 0, act_trace_child },
	{ "read-memory", 1, act_read_memory },
	{ "write-memory", 1, act_write_memory },
	{ "open-memory", 1, act_open_memory },
	{ "take-descriptor", 2, act_take_descriptor },
	{ "handle-process", 1, act_handle_process },
	{ "compare", 1, act_compare },
	{ "robust-list", 1, act_robust_list },
	{ "signal", 2, act_signal },
	{ "tell", 1, act_tell },
	{ "end", 2, act_end },
	{ "slow", 2, act_slow },
	{ "realtime", 0, act_realtime },
	{ "outlive", 1, act_outlive },
	{ "desert", 2, act_desert },
	{ "dump", 1, act_dump },
	{ "ask", 2, act_ask },
	{ 0 },
};
