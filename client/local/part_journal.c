/* The first line names the plan; each further line is "<part> <checksum>". Lines are appended and
 * never synced: part_journal_verify compares the recorded parts with the file before they count.
 * The journal is rewritten from memory when it belongs to another plan, when its last line was cut
 * off, and when parts were forgotten. */
#include "client/local/part_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/digest/xxh3.h"
#include "base/file.h"
#include "base/memory.h"

enum {
	JOURNAL_MAX_BYTES = 64 * 1024 * 1024,
	VERIFY_BLOCK_BYTES = 1024 * 1024,
	IDENTITY_MAX_BYTES = 256,
	PARTS_MAX = 1000000
};

struct part_entry {
	bool is_complete;
	uint64_t checksum;
};

struct part_journal {
	struct part_plan plan; /* its identity borrows `identity` */
	char *identity;
	const struct file_ops *files;
	char *path;
	int fd;
	uint64_t length; /* of the file: where the next line goes */
	struct part_entry *parts;
	size_t count;
};

struct part_reader {
	const struct file_ops *files;
	int fd;
	const char *path;
	uint8_t *block; /* of VERIFY_BLOCK_BYTES */
};

static bool take_text(struct part_journal *journal, struct span text);
static void format_first_line(const struct part_journal *journal, struct buffer *out);
static void take_line(struct part_journal *journal, struct span line);
static int rewrite(struct part_journal *journal, struct error *err);
static int append(struct part_journal *journal, struct span text, struct error *err);
static int part_checksum(const struct part_reader *reader, uint64_t offset, uint64_t left,
	uint64_t *out, struct error *err);

size_t part_plan_count(const struct part_plan *plan)
{
	ASSERT(plan->part_bytes > 0);
	return plan->size == 0 ? 1 : (size_t)((plan->size - 1) / plan->part_bytes + 1);
}

uint64_t part_plan_offset(const struct part_plan *plan, size_t part)
{
	return (uint64_t)part * plan->part_bytes;
}

uint64_t part_plan_bytes(const struct part_plan *plan, size_t part)
{
	ASSERT(part < part_plan_count(plan));
	const uint64_t left = plan->size - part_plan_offset(plan, part);
	return left < plan->part_bytes ? left : plan->part_bytes;
}

struct part_journal *part_journal_open(const struct file_ops *files, const char *path,
	const struct part_plan *plan, struct error *err)
{
	ASSERT(plan->identity.len <= IDENTITY_MAX_BYTES && plan->part_bytes > 0);
	struct part_journal *const journal = memory_new(sizeof(*journal));
	journal->identity = memory_new(plan->identity.len + 1);
	memcpy(journal->identity, plan->identity.data, plan->identity.len);
	journal->plan = *plan;
	journal->plan.identity = span_text(journal->identity);
	journal->files = files;
	journal->path = memory_copy_text(path);
	journal->count = part_plan_count(plan);
	struct buffer text;
	buffer_init(&text, JOURNAL_MAX_BYTES);
	struct error ignored = {0};
	journal->fd = files->open(files, path, O_RDWR | O_CREAT, 0600);
	if (journal->fd < 0) {
		error_set_errno(err, "opening %s", path);
		goto fail;
	}
	if (journal->count > PARTS_MAX) {
		error_set(err, ERROR_TOO_LARGE, "%s would hold over %d parts", path, PARTS_MAX);
		goto fail;
	}
	journal->parts = memory_new_array(journal->count, sizeof(*journal->parts));
	/* A journal that cannot be read counts as empty. */
	if (file_read_all(path, &text, &ignored) != 0)
		buffer_reset(&text);
	journal->length = text.len;
	if (!take_text(journal, buffer_span(&text)) && rewrite(journal, err) != 0)
		goto fail;
	buffer_release(&text);
	return journal;
fail:
	buffer_release(&text);
	part_journal_close(journal);
	return NULL;
}

void part_journal_close(struct part_journal *journal)
{
	if (journal == NULL)
		return;
	if (journal->fd >= 0)
		close(journal->fd);
	free(journal->parts);
	free(journal->path);
	free(journal->identity);
	free(journal);
}

bool part_journal_has(const struct part_journal *journal, size_t part)
{
	ASSERT(part < journal->count);
	return journal->parts[part].is_complete;
}

size_t part_journal_count(const struct part_journal *journal)
{
	size_t complete = 0;
	for (size_t i = 0; i < journal->count; i++)
		complete += journal->parts[i].is_complete;
	return complete;
}

int part_journal_verify(
	struct part_journal *journal, int fd, const char *data_path, struct error *err)
{
	const struct part_reader reader = {.files = journal->files,
		.fd = fd,
		.path = data_path,
		.block = memory_new(VERIFY_BLOCK_BYTES)};
	const size_t before = part_journal_count(journal);
	int result = 0;
	for (size_t i = 0; i < journal->count && result == 0; i++) {
		uint64_t checksum = 0;
		if (!journal->parts[i].is_complete)
			continue;
		result = part_checksum(&reader, part_plan_offset(&journal->plan, i),
			part_plan_bytes(&journal->plan, i), &checksum, err);
		journal->parts[i].is_complete =
			result == 0 && checksum == journal->parts[i].checksum;
	}
	free(reader.block);
	if (result == 0 && part_journal_count(journal) != before)
		result = rewrite(journal, err);
	return result;
}

int part_journal_add(
	struct part_journal *journal, size_t part, uint64_t checksum, struct error *err)
{
	ASSERT(part < journal->count);
	struct buffer line;
	buffer_init(&line, 64);
	buffer_format(&line, "%zu %" PRIu64 "\n", part, checksum);
	const int result = append(journal, buffer_span(&line), err);
	buffer_release(&line);
	if (result == 0)
		journal->parts[part] =
			(struct part_entry){.is_complete = true, .checksum = checksum};
	return result;
}

int part_journal_restart(struct part_journal *journal, struct error *err)
{
	memset(journal->parts, 0, journal->count * sizeof(*journal->parts));
	return rewrite(journal, err);
}

/* Takes the parts from the text of a journal. False when the file must be rewritten: it was made
 * for another plan, or its last line was cut off. */
static bool take_text(struct part_journal *journal, struct span text)
{
	struct buffer first;
	buffer_init(&first, 1024);
	format_first_line(journal, &first);
	const bool ours = span_starts(text, buffer_span(&first));
	struct span rest = ours ? span_slice(text, first.len, text.len) : (struct span){0};
	buffer_release(&first);
	while (rest.len > 0) {
		const ptrdiff_t end = span_find(rest, '\n');
		/* rewriting drops this line, so that the next one does not continue it */
		if (end < 0)
			return false;
		take_line(journal, span_slice(rest, 0, (size_t)end));
		rest = span_slice(rest, (size_t)end + 1, rest.len);
	}
	return ours;
}

static void format_first_line(const struct part_journal *journal, struct buffer *out)
{
	buffer_format(out, "deltabucket-parts 1 %" PRIu64 " %" PRIu64 " %s\n", journal->plan.size,
		journal->plan.part_bytes, journal->identity);
}

static void take_line(struct part_journal *journal, struct span line)
{
	struct span rest = line;
	struct span number;
	struct span checksum;
	uint64_t part;
	uint64_t value;
	if (!span_split(&rest, ' ', &number) || !span_split(&rest, ' ', &checksum) ||
		!span_parse_u64(number, &part) || !span_parse_u64(checksum, &value) ||
		part >= journal->count)
		return;
	journal->parts[part] = (struct part_entry){.is_complete = true, .checksum = value};
}

/* Rewrites the file from the parts in memory. */
static int rewrite(struct part_journal *journal, struct error *err)
{
	struct buffer text;
	buffer_init(&text, JOURNAL_MAX_BYTES);
	format_first_line(journal, &text);
	for (size_t i = 0; i < journal->count; i++)
		if (journal->parts[i].is_complete)
			buffer_format(&text, "%zu %" PRIu64 "\n", i, journal->parts[i].checksum);
	int result = buffer_check(&text, journal->path, err);
	if (result == 0 && journal->files->ftruncate(journal->files, journal->fd, 0) != 0)
		result = error_set_errno(err, "emptying %s", journal->path);
	journal->length = 0;
	if (result == 0)
		result = append(journal, buffer_span(&text), err);
	buffer_release(&text);
	return result;
}

static int append(struct part_journal *journal, struct span text, struct error *err)
{
	if (file_write_at(journal->files, journal->fd, text, (off_t)journal->length, journal->path,
		    err) != 0)
		return -1;
	journal->length += text.len;
	return 0;
}

static int part_checksum(const struct part_reader *reader, uint64_t offset, uint64_t left,
	uint64_t *out, struct error *err)
{
	struct xxh3_stream *const stream = xxh3_stream_new();
	int result = 0;
	while (left > 0 && result == 0) {
		const size_t len = left < VERIFY_BLOCK_BYTES ? (size_t)left : VERIFY_BLOCK_BYTES;
		const struct iovec block = {.iov_base = reader->block, .iov_len = len};
		result = file_read_at(
			reader->files, reader->fd, block, (off_t)offset, reader->path, err);
		if (result == 0)
			xxh3_stream_add(stream, span_of(reader->block, len));
		offset += len;
		left -= len;
	}
	const struct digest128 digest = xxh3_stream_result(stream);
	xxh3_stream_free(stream);
	memcpy(out, digest.bytes, sizeof(*out));
	return result;
}
