#include "storage/db/row_bytes.h"

#include <string.h>

#include "base/little_endian.h"

enum { NUMBER_BYTES = 8, LENGTH_BYTES = 4 };

static bool take_head(struct span *rest, struct row *out);
static bool take_byte(struct span *rest, uint8_t *out);
static bool take_word(struct span *rest, unsigned bytes, uint64_t *out);
static bool take_bytes(struct span *rest, size_t len, struct span *out);
static bool take_value(struct span *rest, struct row_value *out);

void row_bytes_begin(
	struct buffer *out, enum row_operation operation, const char *table, size_t count)
{
	const size_t len = strlen(table);
	ASSERT(len < TABLE_NAME_BYTES && count <= ROW_VALUES_MAX);
	buffer_add_byte(out, (uint8_t)operation);
	buffer_add_byte(out, (uint8_t)len);
	buffer_add(out, table, len);
	buffer_add_byte(out, (uint8_t)count);
}

void row_bytes_add(struct buffer *out, const struct row_value *value)
{
	uint8_t word[NUMBER_BYTES];
	buffer_add_byte(out, (uint8_t)value->kind);
	if (value->kind == ROW_NUMBER) {
		little_endian_put(word, (uint64_t)value->number, NUMBER_BYTES);
		buffer_add(out, word, NUMBER_BYTES);
	} else if (value->kind != ROW_NULL) {
		ASSERT(value->bytes.len <= UINT32_MAX);
		little_endian_put(word, value->bytes.len, LENGTH_BYTES);
		buffer_add(out, word, LENGTH_BYTES);
		buffer_add_span(out, value->bytes);
	}
}

int row_bytes_take(struct span *rest, struct row *out, struct error *err)
{
	if (rest->len == 0)
		return 0;
	bool is_right = take_head(rest, out);
	for (size_t i = 0; is_right && i < out->count; i++)
		is_right = take_value(rest, &out->values[i]);
	if (is_right && out->operation == ROW_NEXT)
		is_right = out->count == 1 && out->values[0].kind == ROW_NUMBER;
	return is_right ? 1 : error_set(err, ERROR_CORRUPT, "A row of the journal is malformed.");
}

static bool take_head(struct span *rest, struct row *out)
{
	uint8_t operation;
	uint8_t len;
	uint8_t count;
	struct span name;
	if (!take_byte(rest, &operation) || operation < ROW_PUT || operation > ROW_NEXT ||
		!take_byte(rest, &len) || len >= TABLE_NAME_BYTES ||
		!take_bytes(rest, len, &name) || !take_byte(rest, &count) || count > ROW_VALUES_MAX)
		return false;
	out->operation = (enum row_operation)operation;
	if (memchr(name.data, '\0', len) != NULL)
		return false;
	memcpy(out->table, name.data, len);
	out->table[len] = '\0';
	out->count = count;
	return true;
}

static bool take_byte(struct span *rest, uint8_t *out)
{
	struct span byte;
	if (!take_bytes(rest, 1, &byte))
		return false;
	*out = byte.data[0];
	return true;
}

static bool take_word(struct span *rest, unsigned bytes, uint64_t *out)
{
	struct span word;
	if (!take_bytes(rest, bytes, &word))
		return false;
	*out = little_endian_get(word.data, bytes);
	return true;
}

static bool take_bytes(struct span *rest, size_t len, struct span *out)
{
	if (rest->len < len)
		return false;
	*out = span_slice(*rest, 0, len);
	*rest = span_slice(*rest, len, rest->len - len);
	return true;
}

static bool take_value(struct span *rest, struct row_value *out)
{
	uint8_t kind;
	uint64_t word = 0;
	if (!take_byte(rest, &kind) || kind > ROW_TEXT)
		return false;
	*out = (struct row_value){.kind = (enum row_value_kind)kind};
	if (kind == ROW_NULL)
		return true;
	if (!take_word(rest, kind == ROW_NUMBER ? NUMBER_BYTES : LENGTH_BYTES, &word))
		return false;
	out->number = kind == ROW_NUMBER ? (int64_t)word : 0;
	return kind == ROW_NUMBER || take_bytes(rest, (size_t)word, &out->bytes);
}
