/* The files of a journal as a damaged or hostile disk may hold them. The first byte chooses: the rows
 * of a change, a log, a snapshot, or rows that a snapshot is made of. In logs and snapshots headers,
 * digests and checksums are put right first unless the second byte is odd: the rest would hardly
 * ever be looked at. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/format/compress.h"
#include "base/little_endian.h"
#include "base/memory.h"
#include "storage/db/row_bytes.h"
#include "storage/journal/journal_reader.h"
#include "storage/journal/snapshot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CAP_BYTES = 64 * 1024 * 1024, ROWS_BYTES = 1024 * 1024, PATH_BYTES = 64, LEVEL = 1 };

/* Whether the rows are well formed, and how many come before the first that is not. What is taken
 * lies in the bytes, and is encoded as it was. */
static bool check_rows(struct span rows, uint64_t *out_count, bool *out_removes)
{
	struct row *const row = memory_new(sizeof *row);
	struct error err = {0};
	struct buffer again;
	struct span rest = rows;
	int got;
	buffer_init(&again, CAP_BYTES);
	*out_count = 0;
	*out_removes = false;
	for (struct span from = rest; (got = row_bytes_take(&rest, row, &err)) == 1; from = rest) {
		const struct span taken = span_slice(from, 0, from.len - rest.len);
		ASSERT(taken.len > 0 && row->count <= ROW_VALUES_MAX);
		ASSERT(memchr(row->table, '\0', sizeof row->table) != NULL);
		buffer_reset(&again);
		row_bytes_begin(&again, row->operation, row->table, row->count);
		for (size_t i = 0; i < row->count; i++)
			row_bytes_add(&again, &row->values[i]);
		/* a name with a NUL in it is shorter as a text */
		ASSERT(strlen(row->table) < taken.data[1] ||
			span_equal(buffer_span(&again), taken));
		*out_removes |= row->operation == ROW_REMOVE;
		++*out_count;
	}
	ASSERT(got == 0 ? rest.len == 0 && err.kind == ERROR_NONE : err.kind == ERROR_CORRUPT);
	buffer_release(&again);
	free(row);
	return got == 0;
}

static void try_rows(uint8_t *bytes, size_t size)
{
	uint64_t count;
	bool removes;
	(void)check_rows(span_of(bytes, size), &count, &removes);
}

/* A file without a name that has these bytes; the path leads to it until the result is closed. */
static int make_file(struct span bytes, char out_path[PATH_BYTES])
{
	const int fd = memfd_create("fuzz_journal", MFD_CLOEXEC);
	ASSERT(fd >= 0);
	for (size_t at = 0; at < bytes.len;) {
		const ssize_t written = write(fd, bytes.data + at, bytes.len - at);
		ASSERT(written > 0);
		at += (size_t)written;
	}
	snprintf(out_path, PATH_BYTES, "/proc/self/fd/%d", fd);
	return fd;
}

/* Reads the header as if its checksum were right, and writes it back as one that is. */
static void put_header(enum journal_kind kind, uint8_t *bytes, struct journal_header *out)
{
	struct error err = {0};
	struct journal_header blank = {0};
	uint8_t right[JOURNAL_HEADER_BYTES];
	journal_header_encode(kind, &blank, right);
	memcpy(bytes, right, 12); /* kind and version */
	little_endian_put(bytes + 88, xxh3_64(span_of(bytes, 88)), 8);
	ASSERT(journal_header_decode(kind, bytes, out, &err) == 0);
	journal_header_encode(kind, out, bytes);
}

static void put_records(uint8_t *bytes, size_t size)
{
	struct journal_header header;
	if (size < JOURNAL_HEADER_BYTES)
		return;
	put_header(JOURNAL_LOG, bytes, &header);
	struct digest128 before = header.point.digest;
	for (size_t at = JOURNAL_HEADER_BYTES; size - at >= JOURNAL_RECORD_BYTES;) {
		struct journal_record record;
		(void)journal_record_decode(bytes + at, &record);
		const size_t left = size - at - JOURNAL_RECORD_BYTES;
		record.bytes %= 1024; /* else hardly a second one would follow */
		if (record.bytes > left)
			return;
		journal_record_encode(&record, &before,
			span_of(bytes + at + JOURNAL_RECORD_BYTES, record.bytes), bytes + at);
		before = record.digest;
		at += JOURNAL_RECORD_BYTES + record.bytes;
	}
}

/* Each record lies behind the one before, and proves itself. */
static void check_log(const char *path, size_t size)
{
	struct journal_header header;
	struct journal_record record;
	struct span rows;
	struct error err = {0};
	int got;
	struct journal_reader *const reader = journal_reader_open(path, &header, &err);
	if (reader == NULL) {
		ASSERT(err.kind == ERROR_CORRUPT || err.kind == ERROR_UNSUPPORTED);
		return;
	}
	struct digest128 before = header.point.digest;
	uint64_t offset = journal_reader_offset(reader);
	ASSERT(offset == JOURNAL_HEADER_BYTES);
	while ((got = journal_reader_next(reader, &record, &rows, &err)) == 1) {
		offset += JOURNAL_RECORD_BYTES + rows.len;
		ASSERT(rows.len == record.bytes && offset == journal_reader_offset(reader));
		ASSERT(offset <= size && journal_record_holds(&record, &before, rows));
		before = record.digest;
		try_rows((uint8_t *)rows.data, rows.len);
	}
	ASSERT(got == 0 ? offset == size : err.kind == ERROR_CORRUPT);
	journal_reader_close(reader);
}

static void try_log(uint8_t *bytes, size_t size)
{
	char path[PATH_BYTES];
	if (bytes[0] % 2 == 0)
		put_records(bytes + 1, size - 1);
	const int fd = make_file(span_of(bytes + 1, size - 1), path);
	check_log(path, size - 1);
	close(fd);
}

/* The checksums of the frames, up to where the tail must be. */
static void put_frames(uint8_t *bytes, size_t size)
{
	struct journal_header header;
	struct journal_frame frame = {.rows = 1};
	struct journal_tail tail;
	size_t at = JOURNAL_HEADER_BYTES;
	if (size < JOURNAL_HEADER_BYTES)
		return;
	put_header(JOURNAL_SNAPSHOT, bytes, &header);
	while (frame.rows > 0 && size - at >= JOURNAL_FRAME_BYTES) {
		journal_frame_decode(bytes + at, &frame);
		if (frame.stored > size - at - JOURNAL_FRAME_BYTES)
			return;
		frame.rows %= ROWS_BYTES; /* a right checksum proves it, and it sizes memory */
		frame.sum = xxh3_64_seeded(
			span_of(bytes + at + JOURNAL_FRAME_BYTES, frame.stored), frame.rows);
		journal_frame_encode(&frame, bytes + at);
		at += JOURNAL_FRAME_BYTES + (frame.rows > 0 ? frame.stored : 0);
	}
	if (size - at < JOURNAL_TAIL_BYTES)
		return;
	(void)journal_tail_decode(bytes + at, &tail);
	journal_tail_encode(&tail, bytes + at);
}

/* Gives what snapshot_read does, and the sums of the rows. */
static int read_snapshot(struct span bytes, uint64_t *out_sums)
{
	char path[PATH_BYTES];
	struct error err = {0};
	struct journal_header header;
	const int fd = make_file(bytes, path);
	const int result = snapshot_read(path, out_sums, NULL, NULL, &err);
	ASSERT(result == 0 ? err.kind == ERROR_NONE
			   : err.kind == ERROR_CORRUPT || err.kind == ERROR_UNSUPPORTED);
	ASSERT(snapshot_read_header(path, &header, &err) == 0 || result != 0);
	close(fd);
	return result;
}

static void try_snapshot(uint8_t *bytes, size_t size)
{
	uint64_t sums;
	if (bytes[0] % 2 == 0)
		put_frames(bytes + 1, size - 1);
	(void)read_snapshot(span_of(bytes + 1, size - 1), &sums);
}

static void add_frame(struct buffer *out, struct compressor *compressor, struct span rows)
{
	uint8_t head[JOURNAL_FRAME_BYTES];
	const size_t bound = compress_bound(rows.len);
	uint8_t *const packed = memory_new(bound);
	const size_t stored = compress_zstd(compressor, rows, packed, bound, LEVEL);
	ASSERT(stored > 0);
	journal_frame_encode(&(const struct journal_frame){.stored = (uint32_t)stored,
				     .rows = (uint32_t)rows.len,
				     .sum = xxh3_64_seeded(span_of(packed, stored), rows.len)},
		head);
	buffer_add(out, head, sizeof head);
	buffer_add(out, packed, stored);
	free(packed);
}

/* A snapshot of these rows, in one frame, that says what they add up to. */
static int read_made(struct span rows, uint64_t count, uint64_t said, uint64_t *out_sums)
{
	static const struct journal_header header;
	struct buffer bytes;
	uint8_t part[JOURNAL_HEADER_BYTES];
	struct compressor *const compressor = compressor_new();
	buffer_init(&bytes, CAP_BYTES);
	journal_header_encode(JOURNAL_SNAPSHOT, &header, part);
	buffer_add(&bytes, part, JOURNAL_HEADER_BYTES);
	if (rows.len > 0)
		add_frame(&bytes, compressor, rows);
	journal_frame_encode(&(const struct journal_frame){0}, part);
	buffer_add(&bytes, part, JOURNAL_FRAME_BYTES);
	journal_tail_encode(
		&(const struct journal_tail){.frames = rows.len > 0, .rows = count, .sums = said},
		part);
	buffer_add(&bytes, part, JOURNAL_TAIL_BYTES);
	const int result = read_snapshot(buffer_span(&bytes), out_sums);
	compressor_free(compressor);
	buffer_release(&bytes);
	return result;
}

/* A snapshot is whole when it has only rows that it may have, and says what they add up to. */
static void try_made(uint8_t *bytes, size_t size)
{
	const struct span rows = span_of(bytes, size);
	uint64_t count;
	uint64_t sums;
	uint64_t again;
	bool removes;
	const bool are_right = check_rows(rows, &count, &removes);
	(void)read_made(rows, count, 0, &sums);
	const int result = read_made(rows, count, sums, &again);
	ASSERT(sums == again);
	if (!are_right || removes)
		ASSERT(result != 0);
	else if (count < TABLE_SUMS_MAX - 1)
		ASSERT(result == 0);
	ASSERT(read_made(rows, count, sums + 1, &again) != 0);
	ASSERT(read_made(rows, count + 1, sums, &again) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const tries[])(uint8_t * bytes, size_t size) = {
		try_rows, try_log, try_snapshot, try_made};
	if (size < 2)
		return 0;
	uint8_t *const bytes = memory_new(size - 1);
	memcpy(bytes, data + 1, size - 1);
	tries[data[0] % (sizeof tries / sizeof tries[0])](bytes, size - 1);
	free(bytes);
	return 0;
}
