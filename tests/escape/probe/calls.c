/* System calls as such: by number, by the conventions of other architectures, and those with a history of holes. Where a
 * call that succeeds would change the machine, it is made with arguments that the kernel looks at and refuses. */

#include "probe.h"

#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <termios.h>

#define X32 0x40000000

static const struct {
	const char *name;
	long number;
	long arguments[6];
} by_name[] = {
	/* Whose arguments are refused where the call is not. */
	{ "reboot", SYS_reboot, { 0 } },
	{ "kexec_load", SYS_kexec_load, { 0, 99, 0, 0 } },
	{ "kexec_file_load", SYS_kexec_file_load, { -1, -1, 0, 0, 1 << 20 } },
	{ "init_module", SYS_init_module, { 0 } },
	{ "finit_module", SYS_finit_module, { -1 } },
	{ "delete_module", SYS_delete_module, { 0 } },
	{ "swapon", SYS_swapon, { 0, -1 } },
	{ "swapoff", SYS_swapoff, { 0 } },
	{ "acct", SYS_acct, { 1 } },
	{ "settimeofday", SYS_settimeofday, { 1 } },
	{ "clock_settime", SYS_clock_settime, { 0, 1 } },
	{ "clock_adjtime", SYS_clock_adjtime, { 0, 1 } },
	{ "adjtimex", SYS_adjtimex, { 1 } },
	{ "quotactl", SYS_quotactl, { -1 } },
	{ "iopl", SYS_iopl, { 99 } },
	{ "ioperm", SYS_ioperm, { -1, 1, 1 } },
	{ "sethostname", SYS_sethostname, { 0, -1 } },
	{ "setdomainname", SYS_setdomainname, { 0, -1 } },
	{ "quotactl_fd", 443, { -1, -1 } },
	{ "fsconfig", SYS_fsconfig, { -1, 99 } },
	{ "fsmount", SYS_fsmount, { -1 } },
	{ "statmount", 457, { 0 } },
	{ "listmount", 458, { 0 } },
	{ "process_madvise", SYS_process_madvise, { -1 } },
	{ "process_mrelease", SYS_process_mrelease, { -1 } },
	{ "io_uring_enter", SYS_io_uring_enter, { -1 } },
	{ "io_uring_register", SYS_io_uring_register, { -1 } },
	{ "move_pages", SYS_move_pages, { 0 } },
	{ "migrate_pages", SYS_migrate_pages, { 0 } },
	/* Which do no harm as they are. */
	{ "vhangup", SYS_vhangup, { 0 } },
	{ "syslog", SYS_syslog, { 10 } },
	{ "personality", SYS_personality, { 0xffffffff } },
	{ "memfd_create", SYS_memfd_create, { (long)"probe", 0 } },
	{ "inotify_init", SYS_inotify_init1, { 0 } },
	{ "fanotify_init", SYS_fanotify_init, { 0 } },
	{ "userfaultfd", SYS_userfaultfd, { 0 } },
	{ "userfaultfd-user", SYS_userfaultfd, { 1 } },
	{ "shmget", SYS_shmget, { IPC_PRIVATE, 4096, 0600 } },
	{ "semget", SYS_semget, { IPC_PRIVATE, 1, 0600 } },
	{ "msgget", SYS_msgget, { IPC_PRIVATE, 0600 } },
	{ "listen", SYS_listen, { 0, 1 } },
	{ "accept", SYS_accept, { 0, 0, 0 } },
	{ "bind", SYS_bind, { 0, 0, 0 } },
	{ "connect", SYS_connect, { 0, 0, 0 } },
};

/* NAME */
static void act_call(char **words)
{
	long made;

	/* Without a terminal, which some calls would take from everybody here. */
	setsid();
	for (size_t at = 0; at < sizeof by_name / sizeof *by_name; at++) {
		const long *a = by_name[at].arguments;

		if (strcmp(by_name[at].name, words[0]))
			continue;
		made = attempt(syscall(by_name[at].number, a[0], a[1], a[2], a[3], a[4], a[5]), words[0]);
		/* What outlives its maker is taken away again. */
		if (by_name[at].number == SYS_shmget)
			shmctl(made, IPC_RMID, NULL);
		else if (by_name[at].number == SYS_semget)
			semctl(made, 0, IPC_RMID);
		else if (by_name[at].number == SYS_msgget)
			msgctl(made, IPC_RMID, NULL);
		done("it returned");
	}
	errno = EINVAL;
	unable(words[0]);
}

/* FIRST LAST: whether the kernel has any call of these numbers. */
static void act_numbers(char **words)
{
	for (long at = number(words[0]); at <= number(words[1]); at++)
		if (syscall(at, -1, -1, -1, -1, -1, -1) != -1 || errno != ENOSYS)
			done("%ld is a call", at);
	held("none is a call");
}

/* NUMBER: as a 64-bit process asks for the calls of x32. */
static void act_x32(char **words)
{
	attempt(syscall(X32 | number(words[0]), -1, 0, 0, 0, 0, 0), "x32");
	done("it returned");
}

/* NUMBER: as a 32-bit process calls, from a 64-bit one. */
static void act_int80(char **words)
{
	long result = number(words[0]);

	__asm__ volatile("int $0x80" : "+a"(result) : "b"(-1), "c"(0), "d"(0), "S"(0), "D"(0) : "memory", "r8", "r9", "r10", "r11");
	if (result < 0 && result > -4096) {
		errno = -result;
		refused("int 0x80");
	}
	done("it returned %ld", result);
}

/* NUMBER: the same from 32-bit code, into which a 64-bit process may jump. */
static void act_far(char **words)
{
	long result = number(words[0]);

	__asm__ volatile("mov %%rsp, %%r12\n\t"
			 "pushq $0x23\n\t"
			 "pushq $1f\n\t"
			 "lretq\n\t"
			 ".code32\n"
			 "1:\tint $0x80\n\t"
			 "ljmp $0x33, $2f\n\t"
			 ".code64\n"
			 "2:\tmov %%r12, %%rsp"
			 : "+a"(result)
			 : "b"(-1), "c"(0), "d"(0), "S"(0), "D"(0)
			 : "memory", "cc", "r8", "r9", "r10", "r11", "r12");
	result = (int)result;
	if (result < 0 && result > -4096) {
		errno = -result;
		refused("int 0x80");
	}
	done("it returned %ld", result);
}

static void act_io_uring(char **words)
{
	struct io_uring_params parameters = { 0 };

	(void)words;
	attempt(syscall(SYS_io_uring_setup, 1, &parameters), "io_uring_setup");
	done("set up");
}

/* A map, the least that there is. */
static void act_bpf(char **words)
{
	union bpf_attr attributes = { .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1 };

	(void)words;
	attempt(syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof attributes), "bpf");
	done("made");
}

static void act_perf(char **words)
{
	struct perf_event_attr attributes = { .type = PERF_TYPE_SOFTWARE, .size = sizeof attributes,
					      .config = PERF_COUNT_SW_CPU_CLOCK, .exclude_kernel = 1, .exclude_hv = 1 };

	(void)words;
	attempt(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0), "perf_event_open");
	done("open");
}

/* REQUEST: a request to the terminal, if there is one, and else to standard input. */
static void act_terminal(char **words)
{
	int terminal = open("/dev/tty", O_RDWR);
	char key = 2;

	if (!strcmp(words[0], "open")) {
		attempt(terminal, "/dev/tty");
		done("open");
	}
	if (terminal < 0)
		terminal = 0;
	if (!strcmp(words[0], "type"))
		key = 'x';
	attempt(syscall(SYS_ioctl, terminal, number(words[1]), &key), words[0]);
	done("done");
}

/* A filter of its own that lets everything pass, over what is there. */
static void act_filter(char **words)
{
	struct {
		uint16_t code;
		uint8_t yes, no;
		uint32_t constant;
	} allow = { 6, 0, 0, SECCOMP_RET_ALLOW };
	struct {
		uint16_t length;
		void *program;
	} program = { 1, &allow };

	need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
	need(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program), "seccomp");
	act_call(words);
}

/* NAME: of a POSIX message queue; these have names of their own. */
static void act_queue(char **words)
{
	attempt(syscall(SYS_mq_open, words[0], O_CREAT | O_RDWR, 0600, NULL), "mq_open");
	syscall(SYS_mq_unlink, words[0]);
	done("open");
}

/* KEY: a segment of memory that others have made. */
static void act_segment(char **words)
{
	attempt(syscall(SYS_shmget, (int)number(words[0]), 0, 0), "shmget");
	done("found");
}

/* KEY: makes one and says its number; for the suite itself, without a sandbox. */
static void act_make_segment(char **words)
{
	done("%ld", attempt(syscall(SYS_shmget, (int)number(words[0]), 4096, IPC_CREAT | IPC_EXCL | 0666), "shmget"));
}

static void act_remove_segment(char **words)
{
	attempt(shmctl(number(words[0]), IPC_RMID, NULL), "shmctl");
	done("removed");
}

/* Memory that is not even the kernel's to read. */
static void act_secret_memory(char **words)
{
	(void)words;
	attempt(syscall(447, 0), "memfd_secret");
	done("open");
}

const struct act calls[] = {
	{ "call", 1, act_call },
	{ "numbers", 2, act_numbers },
	{ "x32", 1, act_x32 },
	{ "int80", 1, act_int80 },
	{ "far", 1, act_far },
	{ "io-uring", 0, act_io_uring },
	{ "bpf", 0, act_bpf },
	{ "perf", 0, act_perf },
	{ "terminal", 1, act_terminal },
	{ "filter", 1, act_filter },
	{ "queue", 1, act_queue },
	{ "segment", 1, act_segment },
	{ "make-segment", 1, act_make_segment },
	{ "remove-segment", 1, act_remove_segment },
	{ "secret-memory", 0, act_secret_memory },
	{ 0 },
};
