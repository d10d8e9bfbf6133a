/* The agent's line protocol: a request is a verb and KEY=VALUE words, its answer one line that
 * begins with "ok" or "err". */
#ifndef WORDS_H
#define WORDS_H

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>

#include <infiniband/verbs.h>

#define MAX_WORDS 256

struct words {
	int count;
	char *word[MAX_WORDS];
};

/* Splits a line in place. */
void split(struct words *words, char *line);

/* The value of KEY=, or NULL. */
const char *text_or_null(const struct words *words, const char *key);

/* The value of KEY=; without it the request fails. */
const char *text(const struct words *words, const char *key);

/* The same as numbers, decimal or 0x. */
uint64_t number(const struct words *words, const char *key);
uint64_t number_or(const struct words *words, const char *key, uint64_t otherwise);

/* An IPv4 or IPv6 address as a GID. */
union ibv_gid gid_of(const char *address);

/* Ends the request with "err" and a reason; `errno` is added if it is not 0. Where the request
 * ends is where the loop over lines last called setjmp. */
extern jmp_buf request_end;
extern FILE *answers;
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif
