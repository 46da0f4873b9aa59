/* Rows are gathered to frames of about a MiB, compressed one by one. What is written is not
 * believed: it is read once more before it counts. */
#include "storage/journal/snapshot.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/format/compress.h"
#include "base/memory.h"
#include "storage/db/db_rows.h"
#include "storage/db/db_sums.h"

enum { FRAME_BYTES = 1024 * 1024, LEVEL = 1, FILE_MODE = 0600, PATH_BYTES = 4096 };
static const size_t ROWS_MAX_BYTES = (size_t)2 << 30;

struct snapshot_writer {
	const struct snapshot_plan *plan;
	const char *path;
	int fd;
	off_t end;
	struct buffer rows; /* of the next frame */
	struct compressor *compressor;
	uint8_t *packed;
	size_t packed_capacity;
	struct journal_tail tail;
};

struct snapshot_reader {
	FILE *file;
	const char *path;
	uint64_t left; /* bytes of the file */
	struct compressor *compressor;
	uint8_t *packed;
	uint8_t *rows;
	struct table_sums *sums; /* of the rows so far */
	struct row_digest digest;
	struct row *row;
	struct journal_tail tail;
	snapshot_take_fn *take;
	void *owner;
};

static int write_file(
	struct db *db, const struct snapshot_plan *plan, const char *path, struct error *err);
static int write_all(struct snapshot_writer *writer, struct db *db, struct error *err);
static int write_bytes(struct snapshot_writer *writer, struct span bytes, struct error *err);
static int snapshot_take_row(void *owner, struct span row, struct error *err);
static int write_frame(struct snapshot_writer *writer, struct error *err);
static int write_tail(struct snapshot_writer *writer, struct db *db, struct error *err);
static int read_all(struct snapshot_reader *reader, struct error *err);
static int read_bytes(struct snapshot_reader *reader, void *into, size_t len, struct error *err);
static int read_frames(struct snapshot_reader *reader, struct error *err);
static int read_frame(
	struct snapshot_reader *reader, const struct journal_frame *frame, struct error *err);
static int add_rows(struct snapshot_reader *reader, struct span rows, struct error *err);
static void add_row(struct snapshot_reader *reader);
static int check_tail(struct snapshot_reader *reader, struct error *err);
static int broken(const struct snapshot_reader *reader, const char *why, struct error *err);

int snapshot_make(
	struct db *db, const struct snapshot_plan *plan, uint64_t *out_bytes, struct error *err)
{
	const struct file_ops *files = plan->files;
	char unfinished[PATH_BYTES];
	uint64_t sums;
	snprintf(unfinished, sizeof(unfinished), "%s" SNAPSHOT_UNFINISHED, plan->path);
	int result = write_file(db, plan, unfinished, err);
	if (result == 0)
		result = snapshot_read(unfinished, &sums, NULL, NULL, err);
	if (result == 0)
		result = file_size(unfinished, out_bytes, err);
	if (result == 0 && files->rename(files, unfinished, plan->path) != 0)
		result = error_set_errno(err, "%s cannot be renamed", unfinished);
	if (result == 0)
		return file_sync_name(files, plan->path, err);
	files->unlink(files, unfinished);
	return -1;
}

int snapshot_read(const char *path, uint64_t *out_sums, snapshot_take_fn *take, void *owner,
	struct error *err)
{
	struct snapshot_reader reader = {.path = path, .take = take, .owner = owner};
	if (file_size(path, &reader.left, err) != 0)
		return -1;
	reader.file = fopen(path, "rbe");
	if (reader.file == NULL)
		return error_set_errno(err, "%s cannot be opened", path);
	reader.compressor = compressor_new();
	reader.sums = memory_new(sizeof(*reader.sums));
	reader.row = memory_new(sizeof(*reader.row));
	row_digest_init(&reader.digest);
	const int result = read_all(&reader, err);
	*out_sums = table_sums_total(reader.sums);
	fclose(reader.file);
	compressor_free(reader.compressor);
	row_digest_release(&reader.digest);
	free(reader.row);
	free(reader.sums);
	free(reader.packed);
	free(reader.rows);
	return result;
}

int snapshot_read_header(const char *path, struct journal_header *out, struct error *err)
{
	uint8_t bytes[JOURNAL_HEADER_BYTES];
	FILE *file = fopen(path, "rbe");
	if (file == NULL)
		return error_set_errno(err, "%s cannot be opened", path);
	const bool is_there = fread(bytes, sizeof(bytes), 1, file) == 1;
	fclose(file);
	if (!is_there)
		return error_set(err, ERROR_CORRUPT, "%s: its header is cut off.", path);
	return journal_header_decode(JOURNAL_SNAPSHOT, bytes, out, err) == 0
		? 0
		: error_wrap(err, "%s", path);
}

static int write_file(
	struct db *db, const struct snapshot_plan *plan, const char *path, struct error *err)
{
	struct snapshot_writer writer = {.plan = plan, .path = path};
	const struct file_ops *files = plan->files;
	writer.fd = files->open(files, path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, FILE_MODE);
	if (writer.fd < 0)
		return error_set_errno(err, "%s cannot be made", path);
	buffer_init(&writer.rows, ROWS_MAX_BYTES);
	writer.compressor = compressor_new();
	int result = write_all(&writer, db, err);
	if (result == 0)
		result = file_sync(files, writer.fd, path, err);
	close(writer.fd);
	compressor_free(writer.compressor);
	buffer_release(&writer.rows);
	free(writer.packed);
	return result;
}

static int write_all(struct snapshot_writer *writer, struct db *db, struct error *err)
{
	uint8_t bytes[JOURNAL_HEADER_BYTES];
	journal_header_encode(JOURNAL_SNAPSHOT, writer->plan->header, bytes);
	if (write_bytes(writer, span_of(bytes, sizeof(bytes)), err) != 0 ||
		db_rows_scan(db, snapshot_take_row, writer, err) != 0 ||
		write_frame(writer, err) != 0)
		return -1;
	return write_tail(writer, db, err);
}

static int write_bytes(struct snapshot_writer *writer, struct span bytes, struct error *err)
{
	const struct snapshot_plan *plan = writer->plan;
	if (file_write_at(plan->files, writer->fd, bytes, writer->end, writer->path, err) != 0)
		return -1;
	writer->end += (off_t)bytes.len;
	return 0;
}

static int snapshot_take_row(void *owner, struct span row, struct error *err)
{
	struct snapshot_writer *writer = owner;
	buffer_add_span(&writer->rows, row);
	writer->tail.rows++;
	if (buffer_check(&writer->rows, "a frame of a snapshot", err) != 0)
		return -1;
	return writer->rows.len < FRAME_BYTES ? 0 : write_frame(writer, err);
}

static int write_frame(struct snapshot_writer *writer, struct error *err)
{
	const struct span rows = buffer_span(&writer->rows);
	const size_t bound = compress_bound(rows.len);
	uint8_t head[JOURNAL_FRAME_BYTES];
	if (rows.len == 0)
		return 0;
	if (!writer->plan->goes_on(writer->plan->owner))
		return error_set(err, ERROR_BUSY, "The store is closing.");
	if (bound > writer->packed_capacity) {
		free(writer->packed);
		writer->packed = memory_new(bound);
		writer->packed_capacity = bound;
	}
	const size_t stored = compress_zstd(writer->compressor, rows, writer->packed, bound, LEVEL);
	ASSERT(stored > 0 && stored <= UINT32_MAX);
	const struct span packed = span_of(writer->packed, stored);
	const struct journal_frame frame = {.stored = (uint32_t)stored,
		.rows = (uint32_t)rows.len,
		.sum = xxh3_64_seeded(packed, rows.len)};
	journal_frame_encode(&frame, head);
	buffer_reset(&writer->rows);
	writer->tail.frames++;
	return write_bytes(writer, span_of(head, sizeof(head)), err) != 0
		? -1
		: write_bytes(writer, packed, err);
}

static int write_tail(struct snapshot_writer *writer, struct db *db, struct error *err)
{
	const struct journal_frame last = {.rows = 0};
	uint8_t bytes[JOURNAL_FRAME_BYTES + JOURNAL_TAIL_BYTES];
	struct table_sums *sums = memory_new(sizeof(*sums));
	int result = db_sums_load(db, sums, err);
	writer->tail.sums = table_sums_total(sums);
	free(sums);
	journal_frame_encode(&last, bytes);
	journal_tail_encode(&writer->tail, bytes + JOURNAL_FRAME_BYTES);
	return result != 0 ? -1 : write_bytes(writer, span_of(bytes, sizeof(bytes)), err);
}

static int read_all(struct snapshot_reader *reader, struct error *err)
{
	struct journal_header header;
	uint8_t bytes[JOURNAL_HEADER_BYTES];
	if (read_bytes(reader, bytes, sizeof(bytes), err) != 0)
		return -1;
	if (journal_header_decode(JOURNAL_SNAPSHOT, bytes, &header, err) != 0)
		return error_wrap(err, "%s", reader->path);
	return read_frames(reader, err) != 0 ? -1 : check_tail(reader, err);
}

static int read_bytes(struct snapshot_reader *reader, void *into, size_t len, struct error *err)
{
	if (len > reader->left || fread(into, len, 1, reader->file) != 1)
		return broken(reader, "it is cut off", err);
	reader->left -= len;
	return 0;
}

static int read_frames(struct snapshot_reader *reader, struct error *err)
{
	for (;;) {
		struct journal_frame frame;
		uint8_t head[JOURNAL_FRAME_BYTES];
		if (read_bytes(reader, head, sizeof(head), err) != 0)
			return -1;
		journal_frame_decode(head, &frame);
		if (frame.rows == 0)
			return 0;
		if (read_frame(reader, &frame, err) != 0)
			return -1;
	}
}

/* `stored` is no more than the file has, and the checksum proves `rows` before it sizes
 * anything. */
static int read_frame(
	struct snapshot_reader *reader, const struct journal_frame *frame, struct error *err)
{
	if (frame->stored > reader->left || frame->rows > ROWS_MAX_BYTES)
		return broken(reader, "a frame is damaged", err);
	free(reader->packed);
	reader->packed = memory_new((size_t)frame->stored + 1);
	const struct span packed = span_of(reader->packed, frame->stored);
	if (read_bytes(reader, reader->packed, frame->stored, err) != 0)
		return -1;
	if (xxh3_64_seeded(packed, frame->rows) != frame->sum)
		return broken(reader, "a frame does not match its checksum", err);
	free(reader->rows);
	reader->rows = memory_new(frame->rows);
	if (decompress_zstd(reader->compressor, packed, reader->rows, frame->rows, err) != 0)
		return error_wrap(err, "%s", reader->path);
	reader->tail.frames++;
	const struct span rows = span_of(reader->rows, frame->rows);
	if (add_rows(reader, rows, err) != 0)
		return -1;
	return reader->take == NULL ? 0 : reader->take(reader->owner, rows, err);
}

static int add_rows(struct snapshot_reader *reader, struct span rows, struct error *err)
{
	int got;
	while ((got = row_bytes_take(&rows, reader->row, err)) == 1) {
		reader->tail.rows++;
		if (reader->row->operation == ROW_REMOVE ||
			(reader->sums->count == TABLE_SUMS_MAX - 1))
			return broken(reader, "it has a row that no snapshot has", err);
		if (reader->row->operation == ROW_PUT)
			add_row(reader);
	}
	return got;
}

static void add_row(struct snapshot_reader *reader)
{
	const struct row *row = reader->row;
	struct table_sum *sum = &reader->sums->tables[table_sums_place(reader->sums, row->table)];
	for (size_t i = 0; i < row->count; i++) {
		const struct row_value *value = &row->values[i];
		if (value->kind == ROW_NULL)
			row_digest_add_null(&reader->digest);
		else if (value->kind == ROW_NUMBER)
			row_digest_add_number(&reader->digest, value->number);
		else
			row_digest_add_bytes(&reader->digest, value->bytes);
	}
	sum->rows++;
	sum->sum += row_digest_end(&reader->digest);
}

static int check_tail(struct snapshot_reader *reader, struct error *err)
{
	uint8_t bytes[JOURNAL_TAIL_BYTES];
	struct journal_tail said;
	if (read_bytes(reader, bytes, sizeof(bytes), err) != 0)
		return -1;
	if (!journal_tail_decode(bytes, &said) || said.frames != reader->tail.frames ||
		said.rows != reader->tail.rows || reader->left != 0)
		return broken(reader, "it is not whole", err);
	if (said.sums != table_sums_total(reader->sums))
		return broken(reader, "its rows do not add up to the sums of the catalog", err);
	return 0;
}

static int broken(const struct snapshot_reader *reader, const char *why, struct error *err)
{
	return error_set(err, ERROR_CORRUPT, "%s: %s.", reader->path, why);
}
