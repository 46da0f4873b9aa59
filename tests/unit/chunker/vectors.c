#include "tests/unit/chunker/vectors.h"

#include <check.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/encode.h"
#include "base/file.h"
#include "base/memory.h"

#ifndef TEST_DATA_DIR
#define TEST_DATA_DIR "tests/data"
#endif

enum { VECTOR_MAX_BYTES = 1 << 20 };

struct buffer vectors_read(const char *name)
{
	const char *const given = getenv("DELTABUCKET_TEST_DATA");
	char path[4096];
	snprintf(path, sizeof(path), "%s/vectors/%s", given != NULL ? given : TEST_DATA_DIR, name);
	struct buffer file;
	struct error err = {0};
	buffer_init(&file, VECTOR_MAX_BYTES);
	ck_assert_msg(file_read_all(path, &file, &err) == 0, "%s", err.text);
	return file;
}

struct buffer vectors_read_hex(const char *name)
{
	struct buffer text = vectors_read(name);
	size_t digits = 0;
	for (size_t i = 0; i < text.len; i++) {
		if (!isspace(text.data[i]))
			text.data[digits++] = text.data[i];
	}
	struct buffer bytes;
	buffer_init(&bytes, VECTOR_MAX_BYTES);
	ck_assert(decode_hex(
		span_of(text.data, digits), buffer_reserve(&bytes, digits / 2), digits / 2));
	buffer_commit(&bytes, digits / 2);
	buffer_release(&text);
	return bytes;
}

bool vectors_line(struct span *rest, struct span *out_line)
{
	return rest->len > 0 && span_split(rest, '\n', out_line);
}

uint64_t vectors_number(struct span text)
{
	uint64_t value = 0;
	ck_assert_msg(span_parse_u64(text, &value), "not a number: %.*s", (int)text.len,
		(const char *)text.data);
	return value;
}

uint8_t *vectors_splitmix(uint64_t seed, size_t len)
{
	uint8_t *const bytes = memory_new(len);
	uint64_t state = seed;
	uint64_t z = 0;
	for (size_t i = 0; i < len; i++) {
		if (i % 8 == 0) {
			state += 0x9e3779b97f4a7c15;
			z = state;
			z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
			z = (z ^ z >> 27) * 0x94d049bb133111eb;
			z ^= z >> 31;
		}
		bytes[i] = (uint8_t)(z >> (i % 8 * 8));
	}
	return bytes;
}

uint8_t *vectors_linear(unsigned factor, unsigned offset, size_t len)
{
	uint8_t *const bytes = memory_new(len);
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(factor * i + offset);
	return bytes;
}

/* The sum of twelve uniform draws is close enough to normal. */
uint8_t *vectors_weights(uint64_t seed, size_t width, size_t count)
{
	enum { DRAWS = 12 };
	uint8_t *const draws = vectors_splitmix(seed, 2 * DRAWS * count);
	uint8_t *const bytes = memory_new(width * count);
	for (size_t i = 0; i < count; i++) {
		int64_t sum = 0;
		for (size_t k = 0; k < DRAWS; k++) {
			const uint8_t *const draw = draws + 2 * (i * DRAWS + k);
			sum += draw[0] | draw[1] << 8;
		}
		const float weight = (float)(sum - DRAWS * 32768) / 65536 / 50;
		uint32_t bits;
		memcpy(&bits, &weight, sizeof(bits));
		/* random low bits, because the sum has fewer bits than a mantissa */
		bits ^= width == 4 ? draws[2 * DRAWS * i] : 0;
		for (size_t k = 0; k < width; k++)
			bytes[i * width + k] = (uint8_t)(bits >> (8 * (4 - width + k)));
	}
	free(draws);
	return bytes;
}

uint8_t *vectors_words(uint64_t seed, size_t len)
{
	static const char *const words[] = {"the ", "policy ", "of ", "a ", "step ", "gradient ",
		"is ", "reward ", "and ", "token ", "to ", "in ", "batch ", "weights, ", "model. ",
		"loss\n"};
	uint8_t *const draws = vectors_splitmix(seed, len);
	uint8_t *const text = memory_new(len);
	size_t at = 0;
	for (size_t i = 0; at < len; i++) {
		const struct span word = span_slice(span_text(words[draws[i] % 16]), 0, len - at);
		memcpy(text + at, word.data, word.len);
		at += word.len;
	}
	free(draws);
	return text;
}

struct chunk_id vectors_id(struct span text)
{
	struct chunk_id id = {0};
	ck_assert_msg(chunk_id_parse(text, &id), "not an id: %.*s", (int)text.len,
		(const char *)text.data);
	return id;
}

struct chunk_id vectors_id_text(const char *text)
{
	return vectors_id(span_text(text));
}

void vectors_expect_id(struct chunk_id got, const char *expected)
{
	char text[CHUNK_ID_TEXT_BYTES];
	chunk_id_format(&got, text);
	ck_assert_str_eq(text, expected);
}
