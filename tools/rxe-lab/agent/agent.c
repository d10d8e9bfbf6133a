/* The agent of a guest: serves each connection in a process of its own, which makes objects of
 * verbs, uses them and reports, line by line. What a session made ends with it. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent.h"

#define LONGEST (1 << 20)

/* exec COMMAND: a shell runs it; the answer is its status and that many bytes that it wrote.
 * It dies with the connection. */
static void do_exec(const char *command, int connection)
{
	struct pollfd fds[2] = { { .fd = connection, .events = POLLRDHUP } };
	size_t length = 0, room = 1 << 16;
	char *output = malloc(room);
	int ends[2], status;
	ssize_t n;
	pid_t child;

	if (!output || pipe(ends))
		fail("exec");
	child = fork();
	if (child < 0)
		fail("fork");
	if (!child) {
		setpgid(0, 0);
		dup2(ends[1], 1);
		dup2(ends[1], 2);
		close(0);
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	setpgid(child, child);
	close(ends[1]);
	fds[1] = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			break;
		if (fds[0].revents)
			kill(-child, SIGKILL);
		if (length == room && !(output = realloc(output, room *= 2)))
			_exit(1);
		n = read(ends[0], output + length, room - length);
		if (n <= 0)
			break;
		length += (size_t)n;
	}
	waitpid(child, &status, 0);
	close(ends[0]);
	fprintf(answers, "ok status=%d bytes=%zu\n",
		WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), length);
	fwrite(output, 1, length, answers);
	free(output);
}

static const struct verb {
	const char *name;
	void (*function)(const struct words *words);
} verbs[] = {
	{ "pd", do_pd },	 { "mr", do_mr },	  { "mw", do_mw },
	{ "cq", do_cq },	 { "srq", do_srq },	  { "ah", do_ah },
	{ "qp", do_qp },	 { "modify", do_modify }, { "query", do_query },
	{ "attach", do_attach }, { "destroy", do_destroy }, { "send", do_send },
	{ "recv", do_recv },	 { "poll", do_poll },	  { "fill", do_fill },
	{ "check", do_check },	 { "read", do_read },	  { "write", do_write },
	{ "packet", do_packet },
};

static void serve(char *line, int connection)
{
	struct words words;

	if (!strncmp(line, "exec ", 5)) {
		do_exec(line + 5, connection);
		return;
	}
	split(&words, line);
	if (!words.count)
		return;
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
		if (!strcmp(words.word[0], verbs[i].name)) {
			verbs[i].function(&words);
			return;
		}
	}
	errno = 0;
	fail("%s is no verb", words.word[0]);
}

static void session(int connection)
{
	FILE *requests = fdopen(connection, "r");
	char *line = malloc(LONGEST);

	answers = fdopen(dup(connection), "w");
	if (!requests || !answers || !line)
		_exit(1);
	while (fgets(line, LONGEST, requests)) {
		if (!setjmp(request_end))
			serve(line, connection);
		if (fflush(answers))
			break;
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	struct sockaddr_in here = { .sin_family = AF_INET };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1, connection;

	if (argc != 3 || inet_pton(AF_INET, argv[1], &here.sin_addr) != 1) {
		fprintf(stderr, "usage: agent ADDRESS PORT\n");
		return 2;
	}
	here.sin_port = htons((uint16_t)atoi(argv[2]));
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(listener, (struct sockaddr *)&here, sizeof here) || listen(listener, 64)) {
		perror("agent");
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	while ((connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0 || errno == EINTR ||
	       errno == ECONNABORTED) {
		if (connection < 0)
			continue;
		if (!fork()) {
			/* Its own children are waited for. */
			signal(SIGCHLD, SIG_DFL);
			session(connection);
		}
		close(connection);
	}
	perror("agent");
	return 1;
}
