/* Packets that no device would send: whole datagrams, with the ICRC that the caller computed. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent.h"

#define ROCE_PORT 4791
#define LONGEST 9000

/* The socket stays unconnected and never fragments, so that the IPv4 identification is 0. */
void do_packet(const struct words *words)
{
	const char *to = text(words, "to"), *hex = text(words, "hex");
	uint16_t from = (uint16_t)number(words, "from");
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(from) };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(from) };
	int v4 = inet_pton(AF_INET, to, &(struct in_addr){ 0 }) == 1;
	struct sockaddr *address = v4 ? (struct sockaddr *)&four : (struct sockaddr *)&six;
	socklen_t size = v4 ? sizeof four : sizeof six;
	size_t length = strlen(hex) / 2;
	uint8_t bytes[LONGEST];
	int fd, why, never = IP_PMTUDISC_DO;

	errno = 0;
	if (length > sizeof bytes)
		fail("%zu bytes, at most %zu", length, sizeof bytes);
	for (size_t i = 0; i < length; i++)
		if (sscanf(hex + 2 * i, "%2hhx", bytes + i) != 1)
			fail("%s is no hex", hex);
	fd = socket(address->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, address, size) ||
	    (v4 && setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &never, sizeof never))) {
		why = errno;
		close(fd);
		errno = why;
		fail("UDP port %u", from);
	}
	four.sin_port = six.sin6_port = htons(ROCE_PORT);
	inet_pton(v4 ? AF_INET : AF_INET6, to,
		  v4 ? (void *)&four.sin_addr : (void *)&six.sin6_addr);
	if (sendto(fd, bytes, length, 0, address, size) != (ssize_t)length) {
		why = errno;
		close(fd);
		errno = why;
		fail("sending to %s", to);
	}
	close(fd);
	fputs("ok\n", answers);
}
