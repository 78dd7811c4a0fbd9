/* What every column of the suite starts on: a host with things to find. It has a name, a mount, a terminal, a descriptor,
 * a group, an inheritable capability and a variable that a sandbox must not show or pass on, and a /tmp of its own; all of
 * them are private to the processes that start here, so that nothing of the machine is changed. */

#include "probe.h"

#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* The descriptor that is left open. */
#define LEAKED 40

char kept[64];

static void check(long result, const char *what)
{
	if (result == -1) {
		fprintf(stderr, "probe stand: %s: %s\n", what, strerror(errno));
		_exit(70);
	}
}

/* A terminal, whose other end this process keeps. */
static int terminal(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

	check(master, "posix_openpt");
	check(grantpt(master), "grantpt");
	check(unlockpt(master), "unlockpt");
	return master;
}

static void take_terminal(int master)
{
	int slave;

	check(setsid(), "setsid");
	slave = open(ptsname(master), O_RDWR | O_CLOEXEC);
	check(slave, "terminal");
	check(ioctl(slave, TIOCSCTTY, 0), "TIOCSCTTY");
}

/* Everything that is permitted becomes inheritable. */
static void inheritable(void)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct sets[2];

	check(syscall(SYS_capget, &header, sets), "capget");
	for (int half = 0; half < 2; half++)
		sets[half].inheritable = sets[half].permitted;
	check(syscall(SYS_capset, &header, sets), "capset");
}

/* ROOM NONCE GROUP UID COMMAND...; uid 0 stays root. */
void stand(char **words)
{
	char mounted[512];
	struct rlimit core;
	gid_t group;
	uid_t user;
	int room, master, status;
	pid_t child;

	if (!words[0] || !words[1] || !words[2] || !words[3] || !words[4])
		exit(2);
	group = atoi(words[2]);
	user = atoi(words[3]);
	check(unshare(CLONE_NEWNS | CLONE_NEWUTS), "unshare");
	check(mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL), "make / private");
	snprintf(mounted, sizeof mounted, "%s/mounted", words[0]);
	check(mount("tmpfs", mounted, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755"), mounted);
	check(mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777"), "/tmp");
	check(sethostname("escape-host", 11), "sethostname");
	check(setdomainname("escape-domain", 13), "setdomainname");
	master = terminal();
	child = fork();
	check(child, "fork");
	if (child) {
		/* Only the first of the two ends the other: the terminal goes with this process. */
		while (waitpid(child, &status, 0) < 0)
			check(errno == EINTR ? 0 : -1, "wait");
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	}
	take_terminal(master);
	room = open(words[0], O_RDONLY | O_DIRECTORY);
	check(room, words[0]);
	check(dup2(room, LEAKED), "dup2");
	close(room);
	check(getrlimit(RLIMIT_CORE, &core), "getrlimit");
	core.rlim_cur = core.rlim_max;
	check(setrlimit(RLIMIT_CORE, &core), "setrlimit");
	check(setgroups(1, &group), "setgroups");
	if (user) {
		check(setresgid(user, user, user), "setresgid");
		check(setresuid(user, user, user), "setresuid");
	} else {
		inheritable();
	}
	check(prctl(PR_SET_PDEATHSIG, SIGKILL), "parent death");
	check(setenv("ESCAPE_NONCE", words[1], 1), "setenv");
	execv(words[4], words + 4);
	check(-1, words[4]);
	_exit(70);
}

/* NONCE FILE UID: keeps the nonce in memory, in its words and its environment, and the file open as descriptor 40. */
void linger(char **words)
{
	sigset_t kept_back;
	int file;

	if (!words[0] || !words[1] || !words[2])
		exit(2);
	check(prctl(PR_SET_PDEATHSIG, SIGKILL), "parent death");
	strncpy(kept, words[0], sizeof kept - 1);
	file = open(words[1], O_RDONLY);
	check(file, words[1]);
	check(dup2(file, LEAKED), "dup2");
	if (atoi(words[2])) {
		check(setresgid(atoi(words[2]), atoi(words[2]), atoi(words[2])), "setresgid");
		check(setresuid(atoi(words[2]), atoi(words[2]), atoi(words[2])), "setresuid");
	}
	/* Changing the uid made it a stranger to its own user. */
	check(prctl(PR_SET_DUMPABLE, 1), "dumpable");
	check(prctl(PR_SET_PDEATHSIG, SIGKILL), "parent death");
	sigemptyset(&kept_back);
	sigaddset(&kept_back, SIGUSR2);
	check(sigprocmask(SIG_BLOCK, &kept_back, NULL), "SIGUSR2");
	printf("%d\n", getpid());
	fflush(stdout);
	for (;;)
		pause();
}
