#include "storage/journal/journal_reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/memory.h"

struct journal_reader {
	FILE *file;
	char *path;
	uint64_t size;
	uint64_t offset;
	struct digest128 digest; /* of the record before */
	uint8_t *rows;
	size_t capacity;
};

static int read_header(
	struct journal_reader *reader, struct journal_header *out, struct error *err);
static int fail(const struct journal_reader *reader, const char *why, struct error *err);
static void make_room(struct journal_reader *reader, size_t bytes);

struct journal_reader *journal_reader_open(
	const char *path, struct journal_header *out_header, struct error *err)
{
	struct journal_reader *reader = memory_new(sizeof(*reader));
	reader->path = memory_copy_text(path);
	reader->file = fopen(path, "rbe");
	if (reader->file == NULL)
		error_set_errno(err, "%s cannot be opened", path);
	else if (file_size(path, &reader->size, err) == 0 &&
		read_header(reader, out_header, err) == 0)
		return reader;
	journal_reader_close(reader);
	return NULL;
}

int journal_reader_next(struct journal_reader *reader, struct journal_record *out,
	struct span *out_rows, struct error *err)
{
	uint8_t head[JOURNAL_RECORD_BYTES];
	if (reader->offset >= reader->size)
		return 0;
	const uint64_t left = reader->size - reader->offset;
	if (left < sizeof(head) || fread(head, sizeof(head), 1, reader->file) != 1 ||
		!journal_record_decode(head, out) || out->bytes > left - sizeof(head))
		return fail(reader, "it is cut off", err);
	make_room(reader, out->bytes);
	*out_rows = span_of(reader->rows, out->bytes);
	if (out->bytes > 0 && fread(reader->rows, out->bytes, 1, reader->file) != 1)
		return fail(reader, "it cannot be read", err);
	if (!journal_record_holds(out, &reader->digest, *out_rows))
		return fail(reader, "it does not match its digest", err);
	reader->digest = out->digest;
	reader->offset += sizeof(head) + out->bytes;
	return 1;
}

uint64_t journal_reader_offset(const struct journal_reader *reader)
{
	return reader->offset;
}

void journal_reader_close(struct journal_reader *reader)
{
	if (reader == NULL)
		return;
	if (reader->file != NULL)
		fclose(reader->file);
	free(reader->rows);
	free(reader->path);
	free(reader);
}

static int read_header(struct journal_reader *reader, struct journal_header *out, struct error *err)
{
	uint8_t bytes[JOURNAL_HEADER_BYTES];
	if (fread(bytes, sizeof(bytes), 1, reader->file) != 1)
		return error_set(err, ERROR_CORRUPT, "%s: its header is cut off.", reader->path);
	if (journal_header_decode(JOURNAL_LOG, bytes, out, err) != 0)
		return error_wrap(err, "%s", reader->path);
	reader->digest = out->point.digest;
	reader->offset = sizeof(bytes);
	return 0;
}

static int fail(const struct journal_reader *reader, const char *why, struct error *err)
{
	return error_set(err, ERROR_CORRUPT, "%s: the record at byte %" PRIu64 ": %s.",
		reader->path, reader->offset, why);
}

/* The file has at least that many bytes left, so its size bounds this. */
static void make_room(struct journal_reader *reader, size_t bytes)
{
	if (bytes <= reader->capacity)
		return;
	free(reader->rows);
	reader->rows = memory_new(bytes);
	reader->capacity = bytes;
}
