#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"

jmp_buf request_end;
FILE *answers;

void split(struct words *words, char *line)
{
	char *rest = NULL;

	words->count = 0;
	for (char *w = strtok_r(line, " \r\n", &rest); w; w = strtok_r(NULL, " \r\n", &rest)) {
		if (words->count == MAX_WORDS) {
			errno = 0;
			fail("more than %d words", MAX_WORDS);
		}
		words->word[words->count++] = w;
	}
}

const char *text_or_null(const struct words *words, const char *key)
{
	size_t length = strlen(key);

	for (int i = 1; i < words->count; i++)
		if (!strncmp(words->word[i], key, length) && words->word[i][length] == '=')
			return words->word[i] + length + 1;
	return NULL;
}

const char *text(const struct words *words, const char *key)
{
	const char *found = text_or_null(words, key);

	errno = 0;
	if (!found)
		fail("%s needs %s=", words->word[0], key);
	return found;
}

static uint64_t parse(const char *key, const char *value)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(value, &end, 0);
	if (errno || end == value || *end)
		fail("%s=%s is no number", key, value);
	return n;
}

uint64_t number(const struct words *words, const char *key)
{
	return parse(key, text(words, key));
}

uint64_t number_or(const struct words *words, const char *key, uint64_t otherwise)
{
	const char *found = text_or_null(words, key);

	return found ? parse(key, found) : otherwise;
}

union ibv_gid gid_of(const char *address)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff } };

	if (inet_pton(AF_INET, address, gid.raw + 12) == 1)
		return gid;
	errno = 0;
	if (inet_pton(AF_INET6, address, gid.raw) != 1)
		fail("%s is no address", address);
	return gid;
}

void fail(const char *format, ...)
{
	int why = errno;
	va_list list;

	fputs("err ", answers);
	va_start(list, format);
	vfprintf(answers, format, list);
	va_end(list);
	if (why)
		fprintf(answers, ": %s (errno %d)", strerror(why), why);
	fputc('\n', answers);
	longjmp(request_end, 1);
}
