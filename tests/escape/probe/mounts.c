/* Acts on mounts, and on the roots that they make, by the old calls and the new. */

#include "probe.h"

#include <sched.h>
#include <sys/mount.h>

#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif

/* PATH: a new file system there. */
static void act_mount(char **words)
{
	attempt(mount("tmpfs", words[0], "tmpfs", 0, NULL), words[0]);
	done("mounted");
}

static void act_bind(char **words)
{
	attempt(mount(words[0], words[1], NULL, MS_BIND, NULL), words[1]);
	done("bound");
}

/* PATH: made writable, and free of what its flags hold back. */
static void act_remount(char **words)
{
	attempt(mount(NULL, words[0], NULL, MS_REMOUNT | MS_BIND, NULL), words[0]);
	done("remounted");
}

static void act_unmount(char **words)
{
	attempt(umount2(words[0], MNT_DETACH), words[0]);
	done("unmounted");
}

static void act_open_tree(char **words)
{
	attempt(syscall(SYS_open_tree, AT_FDCWD, words[0], 1 | O_CLOEXEC), "open_tree");
	done("copied");
}

static void act_open_tree_attr(char **words)
{
	attempt(syscall(SYS_open_tree_attr, AT_FDCWD, words[0], 1 | O_CLOEXEC, NULL, 0), "open_tree_attr");
	done("copied");
}

static void act_fsopen(char **words)
{
	attempt(syscall(SYS_fsopen, words[0], 0), "fsopen");
	done("open");
}

static void act_fspick(char **words)
{
	attempt(syscall(SYS_fspick, AT_FDCWD, words[0], 0), "fspick");
	done("open");
}

/* PATH: without its read-only flag. */
static void act_mount_setattr(char **words)
{
	struct {
		uint64_t set, clear, propagation, userns;
	} attributes = { 0, 1, 0, 0 };

	attempt(syscall(SYS_mount_setattr, AT_FDCWD, words[0], 0, &attributes, sizeof attributes), "mount_setattr");
	done("set");
}

static void act_move_mount(char **words)
{
	attempt(syscall(SYS_move_mount, AT_FDCWD, words[0], AT_FDCWD, words[1], 0), "move_mount");
	done("moved");
}

static void act_pivot(char **words)
{
	attempt(syscall(SYS_pivot_root, words[0], words[0]), "pivot_root");
	done("pivoted");
}

static void act_chroot(char **words)
{
	attempt(chroot(words[0]), "chroot");
	done("chrooted");
}

const struct act mounts[] = {
	{ "mount", 1, act_mount },
	{ "bind", 2, act_bind },
	{ "remount", 1, act_remount },
	{ "unmount", 1, act_unmount },
	{ "open-tree", 1, act_open_tree },
	{ "open-tree-attr", 1, act_open_tree_attr },
	{ "fsopen", 1, act_fsopen },
	{ "fspick", 1, act_fspick },
	{ "mount-setattr", 1, act_mount_setattr },
	{ "move-mount", 2, act_move_mount },
	{ "pivot", 1, act_pivot },
	{ "chroot", 1, act_chroot },
	{ 0 },
};
