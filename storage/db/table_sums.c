/* A short list searched from the front, because a database has a few dozen tables. Encoded, it is a
 * version byte, for each table its name, rows and sum, and a checksum. A row is digested as its
 * values with their kinds and lengths, so that neighbouring values cannot be confused. */
#include "storage/db/table_sums.h"

#include <string.h>

#include "base/digest/xxh3.h"
#include "base/little_endian.h"

enum { VERSION = 1, WORD_BYTES = 8, ROW_MAX_BYTES = 1024 * 1024 * 1024 };
enum value_kind { VALUE_NULL, VALUE_NUMBER, VALUE_BYTES };

static void add_word(struct buffer *out, uint64_t word);
static bool take_table(struct span *rest, struct table_sums *out);

size_t table_sums_place(struct table_sums *sums, const char *name)
{
	size_t place = 0;
	while (place < sums->count && strcmp(sums->names[place], name) != 0)
		place++;
	if (place < sums->count)
		return place;
	ASSERT(place < TABLE_SUMS_MAX && strlen(name) < TABLE_NAME_BYTES);
	memcpy(sums->names[place], name, strlen(name) + 1);
	sums->tables[place] = (struct table_sum){0};
	sums->count++;
	return place;
}

void table_sums_encode(const struct table_sums *sums, struct buffer *out)
{
	size_t begin = out->len;
	buffer_add_byte(out, VERSION);
	for (size_t i = 0; i < sums->count; i++) {
		size_t len = strlen(sums->names[i]);
		buffer_add_byte(out, (uint8_t)len);
		buffer_add(out, sums->names[i], len);
		add_word(out, (uint64_t)sums->tables[i].rows);
		add_word(out, sums->tables[i].sum);
	}
	add_word(out, xxh3_64(span_slice(buffer_span(out), begin, out->len - begin)));
}

uint64_t table_sums_total(const struct table_sums *sums)
{
	uint64_t total = 0;
	for (size_t i = 0; i < sums->count; i++) {
		uint8_t words[2 * WORD_BYTES];
		const struct table_sum *table = &sums->tables[i];
		if (table->rows == 0 || strcmp(sums->names[i], "sqlite_schema") == 0)
			continue;
		little_endian_put(words, (uint64_t)table->rows, WORD_BYTES);
		little_endian_put(words + WORD_BYTES, table->sum, WORD_BYTES);
		total += xxh3_64_seeded(
			span_of(words, sizeof(words)), xxh3_64(span_text(sums->names[i])));
	}
	return total;
}

int table_sums_decode(struct span bytes, struct table_sums *out, struct error *err)
{
	out->count = 0;
	if (bytes.len < 9 || bytes.data[0] != VERSION ||
		little_endian_get(bytes.data + bytes.len - 8, 8) !=
			xxh3_64(span_slice(bytes, 0, bytes.len - 8)))
		return error_set(err, ERROR_CORRUPT,
			"The counts and sums of the catalog's tables are damaged.");
	struct span rest = span_slice(bytes, 1, bytes.len - 9);
	while (rest.len > 0)
		if (!take_table(&rest, out))
			return error_set(err, ERROR_CORRUPT,
				"The counts and sums of the catalog's tables do not add up.");
	return 0;
}

void row_digest_init(struct row_digest *digest)
{
	buffer_init(&digest->bytes, ROW_MAX_BYTES);
}

void row_digest_release(struct row_digest *digest)
{
	buffer_release(&digest->bytes);
}

void row_digest_add_null(struct row_digest *digest)
{
	buffer_add_byte(&digest->bytes, VALUE_NULL);
}

void row_digest_add_number(struct row_digest *digest, int64_t number)
{
	buffer_add_byte(&digest->bytes, VALUE_NUMBER);
	add_word(&digest->bytes, (uint64_t)number);
}

void row_digest_add_bytes(struct row_digest *digest, struct span bytes)
{
	buffer_add_byte(&digest->bytes, VALUE_BYTES);
	add_word(&digest->bytes, bytes.len);
	buffer_add_span(&digest->bytes, bytes);
}

uint64_t row_digest_end(struct row_digest *digest)
{
	uint64_t sum = xxh3_64(buffer_span(&digest->bytes));
	buffer_reset(&digest->bytes);
	return sum;
}

static void add_word(struct buffer *out, uint64_t word)
{
	uint8_t bytes[8];
	little_endian_put(bytes, word, sizeof(bytes));
	buffer_add(out, bytes, sizeof(bytes));
}

/* Takes one table from the front; false when the bytes do not hold one. */
static bool take_table(struct span *rest, struct table_sums *out)
{
	char name[TABLE_NAME_BYTES];
	size_t len = rest->data[0];
	if (len == 0 || len >= TABLE_NAME_BYTES || rest->len < 1 + len + 16 ||
		out->count == TABLE_SUMS_MAX)
		return false;
	memcpy(name, rest->data + 1, len);
	name[len] = '\0';
	out->tables[table_sums_place(out, name)] = (struct table_sum){
		.rows = (int64_t)little_endian_get(rest->data + 1 + len, 8),
		.sum = little_endian_get(rest->data + 1 + len + 8, 8),
	};
	*rest = span_slice(*rest, 1 + len + 16, rest->len);
	return strlen(name) == len;
}
