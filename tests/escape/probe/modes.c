/* Modes that make a program run as its owner: by every call that can give one. */

#include "probe.h"

#include <sys/stat.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

/* Gives the mode to the path by one call; -1 is the call's own refusal. */
static long give(const char *call, const char *path, mode_t mode)
{
	struct {
		uint64_t flags, mode, resolve;
	} how = { O_CREAT | O_WRONLY, mode, 0 };
	char above[512];
	long file;

	if (!strcmp(call, "chmod"))
		return syscall(SYS_chmod, path, mode);
	if (!strcmp(call, "chmod-high"))
		return syscall(SYS_chmod, path, 0xdeadbeef00000000 | mode);
	if (!strcmp(call, "fchmod"))
		return syscall(SYS_fchmod, need(open(path, O_RDONLY), path), mode);
	if (!strcmp(call, "nothing")) {
		file = syscall(SYS_openat, AT_FDCWD, path, O_ACCMODE);
		return file < 0 ? -1 : syscall(SYS_fchmod, file, mode);
	}
	if (!strcmp(call, "nothing-open")) {
		file = syscall(SYS_open, path, O_ACCMODE);
		return file < 0 ? -1 : syscall(SYS_fchmod, file, mode);
	}
	if (!strcmp(call, "fchmodat"))
		return syscall(SYS_fchmodat, AT_FDCWD, path, mode);
	if (!strcmp(call, "fchmodat2"))
		return syscall(SYS_fchmodat2, AT_FDCWD, path, mode, 0);
	if (!strcmp(call, "open"))
		return syscall(SYS_open, path, O_CREAT | O_WRONLY, mode);
	if (!strcmp(call, "openat"))
		return syscall(SYS_openat, AT_FDCWD, path, O_CREAT | O_WRONLY, mode);
	if (!strcmp(call, "openat2"))
		return syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
	if (!strcmp(call, "creat"))
		return syscall(SYS_creat, path, mode);
	if (!strcmp(call, "mkdir"))
		return syscall(SYS_mkdir, path, mode);
	if (!strcmp(call, "mkdirat"))
		return syscall(SYS_mkdirat, AT_FDCWD, path, mode);
	if (!strcmp(call, "mknod"))
		return syscall(SYS_mknod, path, S_IFREG | mode, 0);
	if (!strcmp(call, "mknodat"))
		return syscall(SYS_mknodat, AT_FDCWD, path, S_IFREG | mode, 0);
	if (strstr(call, "tmpfile")) {
		snprintf(above, sizeof above, "%s", path);
		*strrchr(above, '/') = 0;
		file = !strcmp(call, "tmpfile-open") ? syscall(SYS_open, above, O_TMPFILE | O_WRONLY, mode) :
		       syscall(SYS_openat, AT_FDCWD, above, O_TMPFILE | O_WRONLY, mode);
		if (file < 0)
			return -1;
		snprintf(above, sizeof above, "/proc/self/fd/%ld", file);
		return linkat(AT_FDCWD, above, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
	}
	errno = ENOSYS;
	unable(call);
}

/* CALL PATH MODE: the file is there before for the calls that change one. */
static void act_mode(char **words)
{
	const char *call = words[0], *path = words[1];
	mode_t mode = number(words[2]);
	struct stat seen;

	umask(0);
	if (strstr(call, "chmod"))
		close(need(open(path, O_CREAT | O_RDWR, 0700), path));
	attempt(give(call, path, mode), call);
	need(stat(path, &seen), path);
	if ((seen.st_mode & 07000) != (mode & 07000))
		held("the mode is %o", seen.st_mode & 07777);
	done("the mode is %o", seen.st_mode & 07777);
}

const struct act modes[] = {
	{ "mode", 3, act_mode },
	{ 0 },
};
