/* One of many that run at once: it keeps what others might find, waits until all are there, and then tries every other by
 * its number and by what it keeps. What it tries is counted by the answer, because there are too many to name each. */

#include "probe.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>

/* As many as may ask at once without being turned away. */
#define QUEUE 1024
/* The descriptor that is kept for others to take. */
#define KEPT 40

enum way {
	SEE, MEMORY_FILE, ROOT, DESCRIPTORS, VARIABLES, SIGNAL, HANDLE, TAKE, READ_MEMORY, GROUP, TRACE,
	SCRATCH, TREE, ABSTRACT, LOCAL, PORT, SEGMENT, MESSAGES, SHARED, WAYS
};

static const char *const ways[WAYS] = {
	"see", "memory-file", "root", "descriptors", "variables", "signal", "handle", "take", "read-memory", "group", "trace",
	"scratch", "tree", "abstract", "local", "port", "segment", "messages", "shared"
};

/* By way and errno; 0 is success. */
static long tally[WAYS][134];

static volatile sig_atomic_t signals;
static int listeners[3] = { -1, -1, -1 };

static void count(enum way way, long result)
{
	int error = result == -1 ? errno : 0;

	tally[way][error < 134 ? error : 133]++;
}

static void told(int number)
{
	(void)number;
	signals++;
}

static socklen_t local(struct sockaddr_un *address, int file, const char *name)
{
	memset(address, 0, sizeof *address);
	address->sun_family = AF_UNIX;
	snprintf(address->sun_path + !file, sizeof address->sun_path - 1, "%s", name);
	return offsetof(struct sockaddr_un, sun_path) + !file + strlen(name);
}

static int listening(int family, const void *address, socklen_t length)
{
	int own = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (own < 0)
		return -1;
	if (bind(own, address, length) < 0 || listen(own, QUEUE) < 0) {
		close(own);
		return -1;
	}
	return own;
}

static int connected(int family, const void *address, socklen_t length)
{
	int own = socket(family, SOCK_STREAM, 0), result;

	if (own < 0)
		return -1;
	result = connect(own, address, length);
	if (result < 0) {
		int error = errno;

		close(own);
		errno = error;
		return -1;
	}
	close(own);
	return 0;
}

/* Everything that is known of one neighbour but the numbers of its processes. */
static void by_name(const char *nonce, int key, long index, int port, const char *scratch, const char *tree)
{
	struct sockaddr_in host = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_un address;
	struct stat seen;
	char name[320];
	socklen_t length;
	int file;

	file = open(scratch, O_RDONLY);
	count(SCRATCH, file);
	close(file);
	file = open(tree, O_RDONLY);
	count(TREE, file);
	close(file);
	snprintf(name, sizeof name, "many-%s-%ld", nonce, index);
	length = local(&address, 0, name);
	count(ABSTRACT, connected(AF_UNIX, &address, length));
	snprintf(name, sizeof name, "%s.socket", scratch);
	length = local(&address, 1, name);
	count(LOCAL, connected(AF_UNIX, &address, length));
	host.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	count(PORT, connected(AF_INET, &host, sizeof host));
	count(SEGMENT, syscall(SYS_shmget, key + (int)index, 0, 0));
	snprintf(name, sizeof name, "many-%s-%ld", nonce, index);
	file = syscall(SYS_mq_open, name, O_RDONLY, 0, NULL);
	count(MESSAGES, file);
	close(file);
	snprintf(name, sizeof name, "/dev/shm/share-%s-%ld", nonce, index);
	count(SHARED, stat(name, &seen));
}

static void opened(enum way way, pid_t pid, const char *what)
{
	char path[64];
	int file;

	snprintf(path, sizeof path, "/proc/%d/%s", pid, what);
	file = open(path, O_RDONLY);
	count(way, file);
	close(file);
}

static void by_number(pid_t pid)
{
	char text[sizeof kept];
	struct iovec here = { text, sizeof text }, there = { kept, sizeof text };
	struct stat seen;
	char path[64];
	int handle;

	snprintf(path, sizeof path, "/proc/%d", pid);
	count(SEE, stat(path, &seen));
	opened(MEMORY_FILE, pid, "mem");
	opened(ROOT, pid, "root");
	opened(DESCRIPTORS, pid, "fd");
	opened(VARIABLES, pid, "environ");
	count(SIGNAL, kill(pid, SIGURG));
	handle = syscall(SYS_pidfd_open, pid, 0);
	count(HANDLE, handle);
	/* Without a handle the number stands for it: what refuses the call may stand before what looks at it. */
	count(TAKE, syscall(SYS_pidfd_getfd, handle < 0 ? pid : handle, KEPT, 0) == -1 ? -1 : 0);
	close(handle);
	count(READ_MEMORY, syscall(SYS_process_vm_readv, pid, &here, 1, &there, 1, 0));
	count(GROUP, getpgid(pid));
}

/* Traced by a child, with which the tracing ends. */
static void trace(const pid_t *pids, size_t many)
{
	int pipes[2];
	pid_t child;

	if (pipe(pipes) < 0 || (child = fork()) < 0) {
		perror("trace");
		exit(70);
	}
	if (!child) {
		for (size_t at = 0; at < many; at++) {
			unsigned char error = ptrace(PTRACE_SEIZE, pids[at], NULL, NULL) == -1 ? errno : 0;

			if (write(pipes[1], &error, 1) != 1)
				_exit(70);
		}
		_exit(0);
	}
	close(pipes[1]);
	for (unsigned char error; read(pipes[0], &error, 1) == 1;) {
		errno = error;
		count(TRACE, error ? -1 : 0);
	}
	close(pipes[0]);
	ended(child);
}

static long processes_seen(void)
{
	DIR *directory = opendir("/proc");
	struct dirent *entry;
	long seen = 0;

	if (!directory)
		return -errno;
	while ((entry = readdir(directory)))
		seen += atoi(entry->d_name) > 0;
	closedir(directory);
	return seen;
}

static void tell_tally(void)
{
	printf("{\"processes\":%ld,\"tried\":{", processes_seen());
	for (int way = 0; way < WAYS; way++) {
		const char *separator = "";

		printf("%s\"%s\":{", way ? "," : "", ways[way]);
		for (int error = 0; error < 134; error++) {
			if (!tally[way][error])
				continue;
			printf("%s\"%s\":%ld", separator, error ? strerrorname_np(error) : "ok", tally[way][error]);
			separator = ",";
		}
		printf("}");
	}
	printf("}}\n");
	fflush(stdout);
}

static const char *kept_or(long result)
{
	return result == -1 ? strerrorname_np(errno) : "ok";
}

/* NONCE KEY INDEX TREE. On standard input: `pid PID` for each process of all, `name INDEX PORT SCRATCH TREE` for each
 * other, `try`, and when all have tried `end`. */
void neighbour(char **words)
{
	struct sockaddr_in host = { .sin_family = AF_INET };
	socklen_t length = sizeof host;
	struct sockaddr_un address;
	char scratch[300], name[320], *line = NULL, tree[300];
	const char *temporary = getenv("TMPDIR"), *states[WAYS];
	pid_t *pids = NULL;
	size_t many = 0, size = 0;
	long callers = 0;
	int file, segment, queue, key;

	if (!words[0] || !words[1] || !words[2] || !words[3])
		exit(2);
	key = atoi(words[1]);
	strncpy(kept, words[0], sizeof kept - 1);
	signal(SIGURG, told);
	snprintf(scratch, sizeof scratch, "%s/many-%s-%s", temporary ? temporary : "/tmp", words[0], words[2]);
	snprintf(tree, sizeof tree, "%s/kept", words[3]);
	file = open(scratch, O_RDWR | O_CREAT | O_EXCL, 0644);
	states[SCRATCH] = kept_or(file);
	dup2(file, KEPT);
	close(file);
	file = open(tree, O_RDWR | O_CREAT | O_EXCL, 0644);
	states[TREE] = kept_or(file);
	close(file);
	snprintf(name, sizeof name, "many-%s-%s", words[0], words[2]);
	listeners[0] = listening(AF_UNIX, &address, local(&address, 0, name));
	states[ABSTRACT] = kept_or(listeners[0]);
	snprintf(name, sizeof name, "%s.socket", scratch);
	listeners[1] = listening(AF_UNIX, &address, local(&address, 1, name));
	states[LOCAL] = kept_or(listeners[1]);
	host.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listeners[2] = listening(AF_INET, &host, sizeof host);
	states[PORT] = kept_or(listeners[2]);
	getsockname(listeners[2], (void *)&host, &length);
	segment = syscall(SYS_shmget, key + atoi(words[2]), 4096, IPC_CREAT | IPC_EXCL | 0666);
	states[SEGMENT] = kept_or(segment);
	snprintf(name, sizeof name, "many-%s-%s", words[0], words[2]);
	queue = syscall(SYS_mq_open, name, O_CREAT | O_EXCL | O_RDWR, 0666, &(struct mq_attr){ .mq_maxmsg = 1, .mq_msgsize = 1 });
	states[MESSAGES] = kept_or(queue);
	snprintf(name, sizeof name, "/dev/shm/share-%s-%s", words[0], words[2]);
	states[SHARED] = kept_or(mkdir(name, 0755));
	printf("{\"port\":%d,\"scratch\":\"%s\",\"keeps\":{", ntohs(host.sin_port), scratch);
	for (int way = SCRATCH; way < WAYS; way++)
		printf("%s\"%s\":\"%s\"", way > SCRATCH ? "," : "", ways[way], states[way]);
	printf("}}\n");
	fflush(stdout);

	while (getline(&line, &size, stdin) > 0 && strcmp(line, "end\n")) {
		long number, port;
		int pid;

		if (sscanf(line, "pid %d", &pid) == 1) {
			/* Itself and who started it: they are no neighbours. In a sandbox they have other numbers. */
			if (pid == getpid() || pid == getppid())
				continue;
			pids = realloc(pids, (many + 1) * sizeof *pids);
			pids[many++] = pid;
		} else if (sscanf(line, "name %ld %ld %299s %299s", &number, &port, scratch, tree) == 4) {
			if (number != atol(words[2]))
				by_name(words[0], key, number, port, scratch, tree);
		} else if (!strcmp(line, "try\n")) {
			for (size_t at = 0; at < many; at++)
				by_number(pids[at]);
			trace(pids, many);
			tell_tally();
		}
	}
	for (int at = 0; at < 3; at++)
		while (listeners[at] >= 0 && accept(listeners[at], NULL, NULL) >= 0)
			callers++;
	shmctl(segment, IPC_RMID, NULL);
	snprintf(name, sizeof name, "many-%s-%s", words[0], words[2]);
	syscall(SYS_mq_unlink, name);
	rmdir((snprintf(name, sizeof name, "/dev/shm/share-%s-%s", words[0], words[2]), name));
	snprintf(scratch, sizeof scratch, "%s/many-%s-%s", temporary ? temporary : "/tmp", words[0], words[2]);
	unlink(scratch);
	unlink((snprintf(name, sizeof name, "%s.socket", scratch), name));
	printf("{\"signals\":%d,\"callers\":%ld}\n", (int)signals, callers);
	fflush(stdout);
	exit(0);
}
