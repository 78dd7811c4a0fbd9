/* What every act of the probe has: its words, and the ways in which it can end. An act runs in a process of its own and
 * ends by calling one of the four functions that do not return; what the kernel does to it instead is seen by its parent. */

#ifndef PROBE_H
#define PROBE_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

struct act {
	const char *name;
	/* How many words it needs after its name; it may get more. */
	int words;
	/* What it does with them; the list ends with NULL. */
	void (*run)(char **words);
};

/* The acts of each area; a list ends with an act without a name. */
extern const struct act files[], modes[], mounts[], processes[], privilege[], calls[], network[], resources[], information[];

/* The act did what it was to try. */
_Noreturn void done(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Every call was accepted, and what was to be had was not. */
_Noreturn void held(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The kernel refused `what`, as errno says. */
_Noreturn void refused(const char *what);
/* The act could not be tried at all: its own preparation failed, as errno says. */
_Noreturn void unable(const char *what);

/* A result that is not -1; otherwise the act is refused, or for `need` cannot be tried. */
long attempt(long result, const char *what);
long need(long result, const char *what);

/* A number as C writes it; an act with another word cannot be tried. */
long number(const char *word);

/* Whether process 1 is that of a pid namespace around the probe. Where it is the machine's it is left alone. */
int is_alone(void);

/* Waits for a child of the act, and gives its status as wait(2) does. */
int ended(pid_t child);

/* What `probe linger` keeps for others to look for, at an address that is the same in every probe. */
extern char kept[64];

/* The first part of the program: what all columns of the suite start on. Executes the command that it ends with. */
_Noreturn void stand(char **words);
/* A process that does nothing but be there, for others to reach. */
_Noreturn void linger(char **words);
/* One of many that try each other. */
_Noreturn void neighbour(char **words);

#endif
