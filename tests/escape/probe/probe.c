/* `probe ACT [WORD...]` tries one thing and prints one JSON object: {"id", "act", "outcome", "errno", "detail"}.
 * `probe - [FILTER]` reads "ID ACT [WORD...]" line by line from standard input and prints one object for each, in that
 * order. With the name of a file it first puts the system call filter on itself that the file holds.
 *
 * Outcomes: "ok" the act did it; "refused" the kernel said errno; "held" nothing was refused and nothing was had;
 * "killed" the kernel ended it by a signal, which detail names; "unable" it could not be tried; "silent" it ended without
 * a word. No act harms the machine where it succeeds: the suite runs all of them as root without a sandbox. */

#include "probe.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* How long one act may take, in seconds; then it is killed, and the detail is SIGALRM. */
#define PATIENCE 20

/* How an act ends that has spoken. */
#define SPOKEN 0
#define SILENT 99

static const struct act *const areas[] = { files, modes, mounts, processes, privilege, calls, network, resources, information };

static const char *own_id = "";
static const char *own_act = "";

/* Puts text into a JSON string; what is not plain becomes a question mark. */
static void quote(char *to, size_t size, const char *from)
{
	size_t at = 0;

	for (; *from && at + 3 < size; from++) {
		if (*from == '"' || *from == '\\')
			to[at++] = '\\';
		to[at++] = *from >= ' ' && *from <= '~' ? *from : '?';
	}
	to[at] = 0;
}

static void say(const char *id, const char *act, const char *outcome, int error, const char *detail)
{
	char line[1024], quoted[640];
	const char *name = error ? strerrorname_np(error) : "";
	char number[16];
	int length;

	/* A number that the library has no name for says itself. */
	if (!name) {
		snprintf(number, sizeof number, "E%d", error);
		name = number;
	}
	quote(quoted, sizeof quoted, detail);
	length = snprintf(line, sizeof line, "{\"id\":\"%s\",\"act\":\"%s\",\"outcome\":\"%s\",\"errno\":\"%s\",\"detail\":\"%s\"}\n",
			  id, act, outcome, name, quoted);
	/* One write, so that lines of an act that forks do not mix. Nobody is left to tell if it fails. */
	if (write(1, line, length) < 0)
		_exit(SILENT);
}

static _Noreturn void end(const char *outcome, int error, const char *format, va_list words)
{
	char detail[320];

	vsnprintf(detail, sizeof detail, format, words);
	say(own_id, own_act, outcome, error, detail);
	_exit(SPOKEN);
}

void done(const char *format, ...)
{
	va_list words;

	va_start(words, format);
	end("ok", 0, format, words);
}

void held(const char *format, ...)
{
	va_list words;

	va_start(words, format);
	end("held", 0, format, words);
}

void refused(const char *what)
{
	int error = errno;

	say(own_id, own_act, "refused", error, what);
	_exit(SPOKEN);
}

void unable(const char *what)
{
	int error = errno;

	say(own_id, own_act, "unable", error, what);
	_exit(SPOKEN);
}

long attempt(long result, const char *what)
{
	if (result == -1)
		refused(what);
	return result;
}

long need(long result, const char *what)
{
	if (result == -1)
		unable(what);
	return result;
}

long number(const char *word)
{
	char *rest;
	long value = strtol(word, &rest, 0);

	if (!*word || *rest) {
		errno = EINVAL;
		unable(word);
	}
	return value;
}

int is_alone(void)
{
	/* In a sandbox an act's parent is pid 2, which on a machine is a kernel thread. */
	return getppid() == 2;
}

int ended(pid_t child)
{
	int status;

	/* Also for one that ends with another signal than SIGCHLD. */
	while (waitpid(child, &status, __WALL) < 0)
		if (errno != EINTR)
			unable("wait");
	return status;
}

static const struct act *find(const char *name)
{
	for (size_t area = 0; area < sizeof areas / sizeof *areas; area++)
		for (const struct act *act = areas[area]; act->name; act++)
			if (!strcmp(act->name, name))
				return act;
	return NULL;
}

/* Runs one act in a process of its own and says what became of it if it did not itself. */
static void run(const char *id, char **words)
{
	const struct act *act = find(words[0]);
	int given = 0, status;
	pid_t child;

	while (words[given + 1])
		given++;
	if (!act || given < act->words) {
		say(id, words[0], "unable", 0, act ? "it needs more words" : "there is no such act");
		return;
	}
	child = fork();
	if (child < 0) {
		say(id, words[0], "unable", errno, "fork");
		return;
	}
	if (child == 0) {
		own_id = id;
		own_act = words[0];
		signal(SIGPIPE, SIG_IGN);
		alarm(PATIENCE);
		act->run(words + 1);
		_exit(SILENT);
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	if (WIFSIGNALED(status)) {
		char name[32];

		snprintf(name, sizeof name, "SIG%s", sigabbrev_np(WTERMSIG(status)));
		say(id, words[0], "killed", 0, name);
	} else if (WEXITSTATUS(status) != SPOKEN) {
		say(id, words[0], "silent", 0, "it ended without a word");
	}
}

/* Every process that is started from here on has the filter. */
static void put_on(const char *path)
{
	static struct sock_filter instructions[BPF_MAXINSNS];
	struct sock_fprog program = { 0, instructions };
	int file = open(path, O_RDONLY);
	long length = read(file, instructions, sizeof instructions);

	program.len = length / sizeof *instructions;
	if (length <= 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0) {
		perror(path);
		_exit(70);
	}
	close(file);
}

/* Where many sandboxes share /tmp, a word that names it is one of the directory that this one has instead. */
static char *scratch(char *word)
{
	const char *own = getenv("ESCAPE_SCRATCH");
	char *place;

	if (!own || strncmp(word, "/tmp", 4) || (word[4] && word[4] != '/'))
		return word;
	return asprintf(&place, "%s%s", own, word + 4) < 0 ? word : place;
}

static int run_all(void)
{
	static char line[4096];
	char *words[32];

	while (fgets(line, sizeof line, stdin)) {
		int count = 0;

		for (char *word = strtok(line, " \n"); word && count < 31; word = strtok(NULL, " \n"))
			words[count++] = scratch(word);
		words[count] = NULL;
		if (count >= 2)
			run(words[0], words + 1);
	}
	return 0;
}

int main(int count, char **words)
{
	if (count < 2) {
		fprintf(stderr, "probe ACT [WORD...], or probe - with one act a line on standard input\n");
		return 2;
	}
	if (!strcmp(words[1], "stand"))
		stand(words + 2);
	if (!strcmp(words[1], "linger"))
		linger(words + 2);
	if (!strcmp(words[1], "neighbour"))
		neighbour(words + 2);
	if (!strcmp(words[1], "-")) {
		if (words[2])
			put_on(words[2]);
		return run_all();
	}
	run("", words + 1);
	return 0;
}
