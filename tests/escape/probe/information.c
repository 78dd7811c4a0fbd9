/* Acts that find out: names, variables, processes, mounts, the machine. What is looked for is given, so that finding
 * something else of the same kind is no success. */

#include "probe.h"

#include <dirent.h>
#include <sys/utsname.h>

/* WHAT TEXT: host or domain. */
static void act_name(char **words)
{
	struct utsname names;
	const char *name;

	need(uname(&names), "uname");
	name = !strcmp(words[0], "domain") ? names.domainname : names.nodename;
	if (strcmp(name, words[1]))
		held("%s", name);
	done("%s", name);
}

/* TEXT: in any variable of its own. */
static void act_variable(char **words)
{
	extern char **environ;

	for (char **variable = environ; *variable; variable++)
		if (strstr(*variable, words[0]))
			done("%.40s", *variable);
	held("in no variable");
}

/* Whether a file holds a text; -1 if it cannot be read. */
static int holds(const char *path, const char *text)
{
	static char contents[1 << 20];
	int file = open(path, O_RDONLY | O_NONBLOCK);
	size_t have = 0;
	long length;

	if (file < 0)
		return -1;
	while (have < sizeof contents && (length = read(file, contents + have, sizeof contents - have)) > 0)
		have += length;
	close(file);
	return memmem(contents, have, text, strlen(text)) != NULL;
}

/* PATH TEXT */
static void act_find(char **words)
{
	int found = holds(words[0], words[1]);

	attempt(found, words[0]);
	if (!found)
		held("not in %s", words[0]);
	done("in %s", words[0]);
}

/* FILE TEXT: in a file of any process but this one and the one that started it, which were told the text. */
static void act_find_in_processes(char **words)
{
	DIR *directory = opendir("/proc");
	struct dirent *entry;
	char path[512];

	attempt(directory ? 0 : -1, "/proc");
	while ((entry = readdir(directory))) {
		int pid = atoi(entry->d_name);

		if (pid <= 0 || pid == getpid() || pid == getppid())
			continue;
		snprintf(path, sizeof path, "/proc/%d/%s", pid, words[0]);
		if (holds(path, words[1]) == 1)
			done("in %s", path);
	}
	held("of no process");
}

/* COUNT: whether more processes than this are to be seen. */
static void act_crowded(char **words)
{
	DIR *directory = opendir("/proc");
	struct dirent *entry;
	long count = 0;

	attempt(directory ? 0 : -1, "/proc");
	while ((entry = readdir(directory)))
		count += atoi(entry->d_name) > 0;
	if (count <= number(words[0]))
		held("%ld", count);
	done("%ld", count);
}

/* Whether a controller shows a group other than the root of what is seen. */
static void act_own_group(char **words)
{
	char line[512];
	FILE *file = fopen("/proc/self/cgroup", "r");

	(void)words;
	attempt(file ? 0 : -1, "/proc/self/cgroup");
	while (fgets(line, sizeof line, file)) {
		char *path = strrchr(line, ':');

		if (path && strcmp(path, ":/\n"))
			done("%.60s", path + 1);
	}
	held("/");
}

/* Whether the process has a terminal, by the number that /proc shows. */
static void act_has_terminal(char **words)
{
	char text[512], *at;
	int file = need(open("/proc/self/stat", O_RDONLY), "stat"), terminal = 0;
	long length = need(read(file, text, sizeof text - 1), "stat");

	(void)words;
	text[length] = 0;
	at = strrchr(text, ')');
	sscanf(at + 2, "%*c %*d %*d %*d %d", &terminal);
	if (!terminal)
		held("none");
	done("%d", terminal);
}

/* Physical addresses of its own memory. */
static void act_frames(char **words)
{
	uint64_t page[1];
	int file = attempt(open("/proc/self/pagemap", O_RDONLY), "pagemap");
	off_t at = (uintptr_t)words / getpagesize() * sizeof page;

	attempt(pread(file, page, sizeof page, at), "pagemap");
	if (!(page[0] & ((1ULL << 55) - 1)))
		held("the numbers are 0");
	done("%llx", (unsigned long long)page[0]);
}

const struct act information[] = {
	{ "name", 2, act_name },
	{ "variable", 1, act_variable },
	{ "find", 2, act_find },
	{ "find-in-processes", 2, act_find_in_processes },
	{ "crowded", 1, act_crowded },
	{ "own-group", 0, act_own_group },
	{ "has-terminal", 0, act_has_terminal },
	{ "frames", 0, act_frames },
	{ 0 },
};
