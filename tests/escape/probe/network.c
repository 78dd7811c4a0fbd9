/* Acts that talk to somebody: sockets of every family, over the host's loopback, by names of files and without, both ways. */

#include "probe.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

/* How long an answer is waited for, in milliseconds. */
#define ANSWER 1000

/* FAMILY TYPE PROTOCOL, as numbers. */
static void act_socket(char **words)
{
	/* As the call is made, not as the library makes it: the kernel takes the lower half of each. */
	attempt(syscall(SYS_socket, number(words[0]), number(words[1]), number(words[2])), "socket");
	done("made");
}

/* Whether there is a socket of any family and type, or the call is answered otherwise than by EPERM. */
static void act_families(char **words)
{
	(void)words;
	for (long family = 0; family < 64; family++)
		for (long type = 0; type <= 10; type++)
			if (syscall(SYS_socket, family, type, 0) != -1 || errno != EPERM)
				done("%ld %ld", family, type);
	held("every one is refused");
}

static void act_pair(char **words)
{
	int ends[2];

	attempt(syscall(SYS_socketpair, number(words[0]), number(words[1]), number(words[2]), ends), "socketpair");
	done("made");
}

static struct sockaddr_in host(const char *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(number(port)) };

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

/* PORT [PROTOCOL] */
static void act_connect(char **words)
{
	struct sockaddr_in address = host(words[0]);
	int own = attempt(socket(AF_INET, SOCK_STREAM, words[1] ? number(words[1]) : 0), "socket");

	attempt(connect(own, (void *)&address, sizeof address), "connect");
	done("connected");
}

static void act_connect6(char **words)
{
	struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_port = htons(number(words[0])),
					.sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int own = attempt(socket(AF_INET6, SOCK_STREAM, 0), "socket");

	attempt(connect(own, (void *)&address, sizeof address), "connect");
	done("connected");
}

/* Sends to the host and waits for an answer. */
static _Noreturn void ask(const char *port, const void *question, size_t length)
{
	struct sockaddr_in address = host(port);
	int own = attempt(socket(AF_INET, SOCK_DGRAM, 0), "socket");
	struct pollfd answer = { own, POLLIN, 0 };
	char text[512];

	attempt(connect(own, (void *)&address, sizeof address), "connect");
	attempt(send(own, question, length, 0), "send");
	if (need(poll(&answer, 1, ANSWER), "poll") == 0)
		held("no answer");
	attempt(recv(own, text, sizeof text, 0), "receive");
	done("answered");
}

/* PORT: the host answers whatever it is sent. */
static void act_datagram(char **words)
{
	ask(words[0], "x", 1);
}

/* PORT NAME: a question for the address of a name, in which a secret could stand. */
static void act_resolve(char **words)
{
	unsigned char question[300] = { 0x12, 0x34, 1, 0, 0, 1 };
	size_t at = 12, length = strlen(words[1]);

	need(length > 60 ? (errno = ENAMETOOLONG, -1) : 0, "name");
	question[at++] = length;
	memcpy(question + at, words[1], length);
	at += length + 1;
	question[at + 1] = question[at + 3] = 1;
	ask(words[0], question, at + 4);
}

/* The addresses of all network devices, from the kernel. */
static void act_devices(char **words)
{
	struct {
		struct nlmsghdr head;
		struct rtgenmsg which;
	} question = { { sizeof question, RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 1, 0 }, { AF_UNSPEC } };
	char text[8192];
	int own = attempt(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), "socket");

	(void)words;
	attempt(send(own, &question, sizeof question, 0), "send");
	attempt(recv(own, text, sizeof text, 0), "receive");
	done("answered");
}

static socklen_t name_of(const char *name, struct sockaddr_un *address)
{
	size_t length = strlen(name);

	memset(address, 0, sizeof *address);
	address->sun_family = AF_UNIX;
	need(length >= sizeof address->sun_path ? (errno = ENAMETOOLONG, -1) : 0, "name");
	memcpy(address->sun_path, name, length);
	/* A name that begins with @ is no path: it stands in the network namespace. */
	if (name[0] == '@')
		address->sun_path[0] = 0;
	return offsetof(struct sockaddr_un, sun_path) + length + (name[0] != '@');
}

/* NAME */
static void act_connect_local(char **words)
{
	struct sockaddr_un address;
	socklen_t length = name_of(words[0], &address);
	int own = attempt(socket(AF_UNIX, SOCK_STREAM, 0), "socket");

	attempt(connect(own, (void *)&address, length), "connect");
	done("connected");
}

/* NAME: whether somebody comes to it. */
static void act_listen_local(char **words)
{
	struct sockaddr_un address;
	socklen_t length = name_of(words[0], &address);
	int own = attempt(socket(AF_UNIX, SOCK_STREAM, 0), "socket");
	struct pollfd caller = { own, POLLIN, 0 };

	attempt(bind(own, (void *)&address, length), "bind");
	attempt(listen(own, 1), "listen");
	if (need(poll(&caller, 1, 2 * ANSWER), "poll") == 0)
		held("nobody came");
	done("somebody came");
}

/* PORT: the same of a port, where any free one will do for 0. */
static void act_listen(char **words)
{
	struct sockaddr_in address = host(words[0]);
	int own = attempt(socket(AF_INET, SOCK_STREAM, 0), "socket");

	attempt(bind(own, (void *)&address, sizeof address), "bind");
	attempt(listen(own, 1), "listen");
	done("listening");
}

/* TYPE HOW NAME: from one end of a connected pair, to a name that the pair is not connected to. */
static void act_send_beside(char **words)
{
	struct sockaddr_un address;
	socklen_t length = name_of(words[2], &address);
	struct iovec text = { "stray", 5 };
	struct msghdr message = { .msg_name = &address, .msg_namelen = length, .msg_iov = &text, .msg_iovlen = 1 };
	struct mmsghdr many = { .msg_hdr = message };
	int ends[2];

	attempt(socketpair(AF_UNIX, number(words[0]), 0, ends), "socketpair");
	if (!strcmp(words[1], "sendto"))
		attempt(sendto(ends[0], "stray", 5, 0, (void *)&address, length), "sendto");
	else if (!strcmp(words[1], "sendmmsg"))
		attempt(sendmmsg(ends[0], &many, 1, 0), "sendmmsg");
	else
		attempt(sendmsg(ends[0], &message, 0), "sendmsg");
	/* Some kinds of socket send to their own other end whatever the name is. */
	if (recv(ends[1], (char[8]){ 0 }, 8, MSG_DONTWAIT) > 0)
		held("it went to the other end");
	done("sent");
}

const struct act network[] = {
	{ "socket", 3, act_socket },
	{ "families", 0, act_families },
	{ "pair", 3, act_pair },
	{ "connect", 1, act_connect },
	{ "connect6", 1, act_connect6 },
	{ "datagram", 1, act_datagram },
	{ "resolve", 2, act_resolve },
	{ "devices", 0, act_devices },
	{ "connect-local", 1, act_connect_local },
	{ "listen-local", 1, act_listen_local },
	{ "listen", 1, act_listen },
	{ "send-beside", 3, act_send_beside },
	{ 0 },
};
