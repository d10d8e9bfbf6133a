/* Looking at and changing registered memory. */
#include <errno.h>
#include <string.h>

#include "agent.h"

static uint8_t *part(const struct words *words, uint64_t length)
{
	struct region *region = region_of(words, "mr");
	uint64_t offset = number_or(words, "offset", 0);

	errno = 0;
	if (offset > region->length || length > region->length - offset)
		fail("%llu bytes from %llu are not in a region of %zu", (unsigned long long)length,
		     (unsigned long long)offset, region->length);
	return region->memory + offset;
}

/* Bytes that tell their place and whose they are. */
static uint8_t pattern(uint64_t seed, uint64_t i)
{
	return (i * 7 + seed * 13) % 251;
}

void do_fill(const struct words *words)
{
	uint64_t length = number(words, "length"), seed = number(words, "seed");
	uint8_t *bytes = part(words, length);

	for (uint64_t i = 0; i < length; i++)
		bytes[i] = pattern(seed, i);
	fputs("ok\n", answers);
}

void do_check(const struct words *words)
{
	uint64_t length = number(words, "length"), seed = number(words, "seed");
	uint8_t *bytes = part(words, length);

	for (uint64_t i = 0; i < length; i++) {
		if (bytes[i] != pattern(seed, i)) {
			fprintf(answers, "ok same=0 at=%llu got=%u wanted=%u\n", (unsigned long long)i,
				bytes[i], pattern(seed, i));
			return;
		}
	}
	fputs("ok same=1\n", answers);
}

void do_read(const struct words *words)
{
	uint64_t length = number(words, "length");
	uint8_t *bytes = part(words, length);

	fputs("ok hex=", answers);
	for (uint64_t i = 0; i < length; i++)
		fprintf(answers, "%02x", bytes[i]);
	fputc('\n', answers);
}

void do_write(const struct words *words)
{
	const char *hex = text(words, "hex");
	uint64_t length = strlen(hex) / 2;
	uint8_t *bytes = part(words, length);

	for (uint64_t i = 0; i < length; i++) {
		errno = 0;
		if (sscanf(hex + 2 * i, "%2hhx", bytes + i) != 1)
			fail("%s is no hex", hex);
	}
	fputs("ok\n", answers);
}
