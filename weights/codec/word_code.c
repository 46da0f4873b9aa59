/* A block of this mode has all gaps first and then the planes of all differences. Unchanged words
 * take no bytes, and differences compress better than the words. */
#include "weights/codec/word_code.h"

#include "weights/codec/gap_code.h"

enum { STRETCH = 64 /* words compared at once, because equal words mostly stand together */ };

static inline uint64_t load_word(const uint8_t *from, size_t width)
{
	uint64_t word = 0;
	memcpy(&word, from, width);
	return word;
}

/* Callers pass a constant `width`, so that the compiler loads whole words. */
static inline struct word_code_changes scan_words(
	const struct word_code *code, struct span base, struct span next, size_t width)
{
	const size_t words = base.len / width;
	size_t found = 0;
	size_t behind_last = 0;
	for (size_t from = 0; from < words; from += STRETCH) {
		const size_t to = words - from < STRETCH ? words : from + STRETCH;
		if (memcmp(base.data + from * width, next.data + from * width,
			    (to - from) * width) == 0)
			continue;
		for (size_t i = from; i < to; i++) {
			const uint64_t difference = load_word(base.data + i * width, width) ^
				load_word(next.data + i * width, width);
			if (difference == 0)
				continue;
			code->gaps[found] = (uint32_t)(i - behind_last);
			memcpy(code->words + found++ * width, &difference, width);
			behind_last = i + 1;
		}
	}
	return (struct word_code_changes){
		.count = found, .parameter = gap_code_parameter(behind_last - found, found)};
}

struct word_code_changes word_code_scan(
	const struct word_code *code, struct span base, struct span next)
{
	ASSERT(base.len == next.len && base.len % code->planes.width == 0);
	switch (code->planes.width) {
	case 1:
		return scan_words(code, base, next, 1);
	case 2:
		return scan_words(code, base, next, 2);
	case 4:
		return scan_words(code, base, next, 4);
	default:
		return scan_words(code, base, next, 8);
	}
}

size_t word_code_bound(const struct word_code *code, size_t changes)
{
	return changes * GAP_CODE_BYTES_MOST + BIT_STREAM_SLACK +
		plane_code_bound(changes * code->planes.width);
}

size_t word_code_encode(
	const struct word_code *code, const struct word_code_changes *changes, uint8_t *into)
{
	struct bit_writer writer = {.at = into};
	gap_code_write(&writer, code->gaps, changes->count, changes->parameter);
	uint8_t *const end = bit_writer_end(&writer);
	const struct span words = span_of(code->words, changes->count * code->planes.width);
	return (size_t)(end - into) + plane_code_encode(&code->planes, words, end);
}

int word_code_read(const struct word_code *code, const struct word_code_changes *changes,
	struct span payload, size_t bytes, struct error *err)
{
	const size_t width = code->planes.width;
	ASSERT(changes->count <= bytes / width);
	struct bit_reader reader = bit_reader_open(payload);
	if (!gap_code_read(&reader, changes->parameter, changes->count, (uint32_t)(bytes / width),
		    code->gaps))
		return error_set(err, ERROR_INVALID, "a block changes a word beyond its end");
	const uint64_t gap_bytes = bit_reader_bytes(&reader);
	if (gap_bytes > payload.len)
		return error_set(err, ERROR_INVALID, "a block's gaps are cut off");
	const struct span planes = span_slice(payload, gap_bytes, payload.len);
	return plane_code_decode(&code->planes, planes, code->words, changes->count * width, err);
}

int word_code_decode(const struct word_code *code, const struct word_code_changes *changes,
	struct span payload, struct span base, uint8_t *into, struct error *err)
{
	const size_t width = code->planes.width;
	if (word_code_read(code, changes, payload, base.len, err) != 0)
		return -1;
	if (into != base.data)
		memcpy(into, base.data, base.len);
	for (size_t i = 0; i < changes->count; i++)
		for (size_t byte = 0; byte < width; byte++)
			into[code->gaps[i] * width + byte] ^= code->words[i * width + byte];
	return 0;
}
