/* Acts that ask for more rights: ids, programs that carry rights, capabilities, user and other namespaces, keyrings. */

#include "probe.h"

#include <grp.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* WHAT: uid, gid, reuid, resuid, fsuid, groups; each asks for 0. */
static void act_become(char **words)
{
	const char *what = words[0];
	gid_t group = 0;
	long result;

	if (!strcmp(what, "uid"))
		result = setuid(0);
	else if (!strcmp(what, "gid"))
		result = setgid(0);
	else if (!strcmp(what, "reuid"))
		result = setreuid(0, 0);
	else if (!strcmp(what, "resuid"))
		result = setresuid(0, 0, 0);
	else if (!strcmp(what, "groups"))
		result = setgroups(1, &group);
	else {
		/* The call has no way to refuse; a second one tells what came of the first. */
		setfsuid(0);
		if (setfsuid(-1) != 0)
			held("the file uid is another");
		result = 0;
	}
	attempt(result, what);
	done("root");
}

/* One of the five sets, by the calls for it: the file in /proc that shows all of them is not in every view. */
static unsigned long long set_of(const char *name)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct halves[2] = { { 0 } };
	unsigned long long set = 0;

	if (!strcmp(name, "CapBnd") || !strcmp(name, "CapAmb")) {
		for (long one = 0; one < 64; one++) {
			long has = !strcmp(name, "CapBnd") ? prctl(PR_CAPBSET_READ, one)
							  : prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, one, 0, 0);

			/* The kernel knows no capability of this number. */
			if (has < 0 && errno == EINVAL)
				break;
			set |= (unsigned long long)need(has, name) << one;
		}
		return set;
	}
	need(syscall(SYS_capget, &header, halves), "capget");
	for (int half = 0; half < 2; half++) {
		unsigned part = !strcmp(name, "CapInh") ? halves[half].inheritable :
				!strcmp(name, "CapPrm") ? halves[half].permitted : halves[half].effective;

		set |= (unsigned long long)part << (32 * half);
	}
	return set;
}

/* SET: CapInh, CapPrm, CapEff, CapBnd or CapAmb. */
static void act_capabilities(char **words)
{
	unsigned long long set = set_of(words[0]);

	if (!set)
		held("empty");
	done("%016llx", set);
}

/* GID: whether the process is in the group. */
static void act_group(char **words)
{
	gid_t groups[64];
	long count = need(getgroups(64, groups), "getgroups");

	for (long at = 0; at < count; at++)
		if (groups[at] == (gid_t)number(words[0]))
			done("in group %u", groups[at]);
	held("not in it");
}

/* Says who it is; what a program with rights of its own is asked. */
static void act_rights(char **words)
{
	(void)words;
	done("uid=%d capabilities=%016llx", geteuid(), set_of("CapEff"));
}

/* PROGRAM KIND: a program that carries a uid or capabilities, as the files of the suite's own make them. */
static void act_raise(char **words)
{
	char said[400];
	long length;
	int pipes[2];
	pid_t child;

	need(pipe(pipes), "pipe");
	child = need(fork(), "fork");
	if (!child) {
		dup2(pipes[1], 1);
		execl(words[0], words[0], "rights", NULL);
		dprintf(1, "!%d", errno);
		_exit(1);
	}
	close(pipes[1]);
	length = read(pipes[0], said, sizeof said - 1);
	said[length > 0 ? length : 0] = 0;
	ended(child);
	if (said[0] == '!') {
		errno = atoi(said + 1);
		refused(words[0]);
	}
	if (!strcmp(words[1], "uid") ? strstr(said, "uid=0 ") != NULL : !strstr(said, "capabilities=0000000000000000"))
		done("raised");
	held("it ran as everybody else");
}

/* What is not there any more is asked for again. */
static void act_capset(char **words)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct sets[2] = { { 0 } };

	/* CAP_NET_RAW alone. */
	(void)words;
	sets[0].permitted = sets[0].effective = sets[0].inheritable = 1 << 13;
	attempt(syscall(SYS_capset, &header, sets), "capset");
	done("set");
}

/* WHAT: an attribute of the process that keeps or gives rights. */
static void act_attribute(char **words)
{
	const char *what = words[0];
	long result;

	if (!strcmp(what, "ambient"))
		/* Only what is inheritable and permitted can be raised. */
		result = prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 13, 0, 0);
	else if (!strcmp(what, "secure-bits"))
		result = prctl(PR_SET_SECUREBITS, 0);
	else if (!strcmp(what, "keep"))
		result = prctl(PR_SET_KEEPCAPS, 1);
	else if (!strcmp(what, "bounding"))
		result = prctl(PR_CAPBSET_READ, 13);
	else {
		errno = EINVAL;
		unable(what);
	}
	if (!strcmp(what, "bounding") && result == 0)
		held("it is not in the set");
	attempt(result, what);
	done("set");
}

/* Whether programs may still give rights: ok is yes. */
static void act_new_privileges(char **words)
{
	(void)words;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) {
		attempt(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0), "PR_SET_NO_NEW_PRIVS");
		done("switched off");
	}
	done("they may");
}

static const struct {
	const char *name;
	unsigned long flag;
} kinds[] = {
	{ "user", CLONE_NEWUSER }, { "mount", CLONE_NEWNS }, { "pid", CLONE_NEWPID }, { "net", CLONE_NEWNET },
	{ "ipc", CLONE_NEWIPC }, { "uts", CLONE_NEWUTS }, { "cgroup", CLONE_NEWCGROUP }, { "time", CLONE_NEWTIME },
};

static unsigned long kind(const char *name)
{
	for (size_t at = 0; at < sizeof kinds / sizeof *kinds; at++)
		if (!strcmp(kinds[at].name, name))
			return kinds[at].flag;
	errno = EINVAL;
	unable(name);
}

static void act_unshare(char **words)
{
	attempt(syscall(SYS_unshare, kind(words[0])), "unshare");
	done("unshared");
}

/* KIND: by the call that makes a process as well. */
static void act_clone(char **words)
{
	long child = attempt(syscall(SYS_clone, kind(words[0]) | SIGCHLD, 0, 0, 0, 0), "clone");

	if (!child)
		_exit(0);
	ended(child);
	done("cloned");
}

/* The flags stand where no filter can read them. */
static void act_clone3(char **words)
{
	struct clone_args arguments = { .flags = words[0] ? kind(words[0]) : 0, .exit_signal = SIGCHLD };
	long child = attempt(syscall(SYS_clone3, &arguments, sizeof arguments), "clone3");

	if (!child)
		_exit(0);
	ended(child);
	done("cloned");
}

static void *nothing(void *nothing)
{
	return nothing;
}

static void act_thread(char **words)
{
	pthread_t thread;

	(void)words;
	errno = pthread_create(&thread, NULL, nothing, NULL);
	attempt(errno ? -1 : 0, "pthread_create");
	pthread_join(thread, NULL);
	done("started");
}

/* NAME: the namespace of that name that the process is in, entered again. */
static void act_enter(char **words)
{
	char path[64];
	int file;

	snprintf(path, sizeof path, "/proc/self/ns/%s", words[0]);
	file = need(open(path, O_RDONLY), path);
	attempt(setns(file, 0), "setns");
	done("entered");
}

static void act_get_keyring(char **words)
{
	/* KEYCTL_GET_KEYRING_ID of the session's keyring, not to be made. */
	(void)words;
	attempt(syscall(SYS_keyctl, 0, -3, 0), "keyctl");
	done("found");
}

static void act_add_key(char **words)
{
	/* The keyring of this process alone, which goes with it. */
	attempt(syscall(SYS_add_key, "user", words[0], "x", 1, -2), "add_key");
	done("added");
}

static void act_request_key(char **words)
{
	long key = syscall(SYS_request_key, "user", words[0], NULL, 0);

	/* That there is none has been looked up. */
	if (key < 0 && errno == ENOKEY)
		done("looked up");
	attempt(key, "request_key");
	done("found");
}

const struct act privilege[] = {
	{ "become", 1, act_become },
	{ "capabilities", 1, act_capabilities },
	{ "group", 1, act_group },
	{ "rights", 0, act_rights },
	{ "raise", 2, act_raise },
	{ "capset", 0, act_capset },
	{ "attribute", 1, act_attribute },
	{ "new-privileges", 0, act_new_privileges },
	{ "unshare", 1, act_unshare },
	{ "clone", 1, act_clone },
	{ "clone3", 0, act_clone3 },
	{ "thread", 0, act_thread },
	{ "enter", 1, act_enter },
	{ "get-keyring", 0, act_get_keyring },
	{ "add-key", 1, act_add_key },
	{ "request-key", 1, act_request_key },
	{ 0 },
};
