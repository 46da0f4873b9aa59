/* Each line is a word and what belongs to it:
 *
 *     deltabucket backup 1
 *     store ID                  sums SUMS, schema N, moment NAME
 *     file KEY LENGTH           its pieces follow
 *     piece FROM TO BLAKE3
 *     end BLAKE3                of all before it
 */
#include "storage/backup/backup_manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/encode.h"
#include "base/memory.h"

enum { DIGEST_LETTERS = 2 * BLAKE3_BYTES, END_BYTES = 4 + DIGEST_LETTERS + 1, WORDS_MAX = 4 };

static const char TITLE[] = "deltabucket backup 1\n";
static const char ANY_TITLE[] = "deltabucket backup ";

struct manifest_line {
	struct span words[WORDS_MAX];
	size_t count;
};

static bool has_digest(struct span text);
static bool take_line(struct backup_manifest *manifest, struct span text);
static bool split_line(struct span text, struct manifest_line *out);
static bool manifest_take_store(struct backup_manifest *manifest, const struct manifest_line *line);
static bool manifest_take_sums(struct backup_manifest *manifest, const struct manifest_line *line);
static bool manifest_take_schema(
	struct backup_manifest *manifest, const struct manifest_line *line);
static bool manifest_take_moment(
	struct backup_manifest *manifest, const struct manifest_line *line);
static bool manifest_take_file(struct backup_manifest *manifest, const struct manifest_line *line);
static bool manifest_take_piece(struct backup_manifest *manifest, const struct manifest_line *line);

static const struct {
	const char *word;
	size_t count; /* of words */
	bool (*take)(struct backup_manifest *manifest, const struct manifest_line *line);
} kinds[] = {{"piece", 4, manifest_take_piece}, {"file", 3, manifest_take_file},
	{"store", 2, manifest_take_store}, {"sums", 2, manifest_take_sums},
	{"schema", 2, manifest_take_schema}, {"moment", 2, manifest_take_moment}};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

void backup_manifest_release(struct backup_manifest *manifest)
{
	for (size_t i = 0; i < manifest->count; i++)
		free(manifest->files[i].pieces);
	free(manifest->files);
	*manifest = (struct backup_manifest){.count = 0};
}

struct backup_file *backup_manifest_add(
	struct backup_manifest *manifest, const char *key, uint64_t length)
{
	manifest->files = memory_make_room(
		manifest->files, manifest->count, &manifest->capacity, sizeof(*manifest->files));
	struct backup_file *file = &manifest->files[manifest->count++];
	*file = (struct backup_file){.length = length};
	ASSERT(strlen(key) < sizeof(file->key));
	snprintf(file->key, sizeof(file->key), "%s", key);
	return file;
}

void backup_file_add(struct backup_file *file, const struct backup_piece *piece)
{
	ASSERT(piece->from == backup_file_covered(file) && piece->to > piece->from);
	file->pieces =
		memory_make_room(file->pieces, file->count, &file->capacity, sizeof(*file->pieces));
	file->pieces[file->count++] = *piece;
}

uint64_t backup_file_covered(const struct backup_file *file)
{
	return file->count == 0 ? 0 : file->pieces[file->count - 1].to;
}

void backup_manifest_print(const struct backup_manifest *manifest, struct buffer *out)
{
	char text[DIGEST_LETTERS + BACKUP_MOMENT_BYTES];
	uint8_t digest[BLAKE3_BYTES];
	const size_t begin = out->len;
	buffer_add_text(out, TITLE);
	encode_hex(span_of(manifest->store, sizeof(manifest->store)), text);
	buffer_format(out, "store %s\n", text);
	backup_moment_print(&manifest->moment, text);
	buffer_format(out, "moment %s\nschema %u\nsums %" PRIu64 "\n", text, manifest->schema,
		manifest->sums);
	for (size_t i = 0; i < manifest->count; i++) {
		const struct backup_file *file = &manifest->files[i];
		buffer_format(out, "file %s %" PRIu64 "\n", file->key, file->length);
		for (size_t j = 0; j < file->count; j++) {
			encode_hex(span_of(file->pieces[j].digest, BLAKE3_BYTES), text);
			buffer_format(out, "piece %" PRIu64 " %" PRIu64 " %s\n",
				file->pieces[j].from, file->pieces[j].to, text);
		}
	}
	blake3(NULL, span_slice(buffer_span(out), begin, out->len), digest);
	encode_hex(span_of(digest, sizeof(digest)), text);
	buffer_format(out, "end %s\n", text);
}

int backup_manifest_parse(struct span text, struct backup_manifest *out, struct error *err)
{
	*out = (struct backup_manifest){.count = 0};
	if (!span_starts(text, span_text(TITLE)) && span_starts(text, span_text(ANY_TITLE)))
		return error_set(err, ERROR_UNSUPPORTED,
			"A newer deltabucketd made this backup; restore it with that one.");
	if (!span_starts(text, span_text(TITLE)) || !has_digest(text))
		return error_set(err, ERROR_CORRUPT, "It is not what was written.");
	struct span lines =
		span_slice(text, sizeof(TITLE) - 1, text.len - END_BYTES - (sizeof(TITLE) - 1));
	struct span line;
	bool is_right = true;
	while (is_right && lines.len > 0 && span_split(&lines, '\n', &line))
		is_right = take_line(out, line);
	return is_right ? 0
			: error_set(err, ERROR_CORRUPT, "A line of it cannot be understood: %.*s",
				  (int)(line.len < 100 ? line.len : 100), (const char *)line.data);
}

/* Of the last line. */
static bool has_digest(struct span text)
{
	uint8_t digest[BLAKE3_BYTES];
	char line[END_BYTES + 1] = "end ";
	if (text.len < sizeof(TITLE) - 1 + END_BYTES)
		return false;
	blake3(NULL, span_slice(text, 0, text.len - END_BYTES), digest);
	encode_hex(span_of(digest, sizeof(digest)), line + 4);
	line[END_BYTES - 1] = '\n';
	return span_equal(
		span_slice(text, text.len - END_BYTES, END_BYTES), span_of(line, END_BYTES));
}

static bool take_line(struct backup_manifest *manifest, struct span text)
{
	struct manifest_line line;
	if (!split_line(text, &line))
		return false;
	for (size_t i = 0; i < KINDS; i++)
		if (span_equal_text(line.words[0], kinds[i].word))
			return line.count == kinds[i].count && kinds[i].take(manifest, &line);
	return false;
}

static bool split_line(struct span text, struct manifest_line *out)
{
	out->count = 0;
	while (out->count < WORDS_MAX && span_split(&text, ' ', &out->words[out->count]))
		out->count++;
	return text.len == 0;
}

static bool manifest_take_store(struct backup_manifest *manifest, const struct manifest_line *line)
{
	return decode_hex(line->words[1], manifest->store, sizeof(manifest->store));
}

static bool manifest_take_sums(struct backup_manifest *manifest, const struct manifest_line *line)
{
	return span_parse_u64(line->words[1], &manifest->sums);
}

static bool manifest_take_schema(struct backup_manifest *manifest, const struct manifest_line *line)
{
	uint64_t schema = 0;
	const bool is_number = span_parse_u64(line->words[1], &schema) && schema <= UINT32_MAX;
	manifest->schema = (uint32_t)schema;
	return is_number;
}

static bool manifest_take_moment(struct backup_manifest *manifest, const struct manifest_line *line)
{
	return backup_moment_parse(line->words[1], &manifest->moment);
}

static bool manifest_take_file(struct backup_manifest *manifest, const struct manifest_line *line)
{
	char key[BACKUP_KEY_BYTES];
	char path[BACKUP_NAME_BYTES];
	uint64_t length;
	const struct span name = line->words[1];
	if (name.len >= sizeof(key) || !span_parse_u64(line->words[2], &length))
		return false;
	snprintf(key, sizeof(key), "%.*s", (int)name.len, (const char *)name.data);
	if (!backup_key_path(key, path))
		return false;
	backup_manifest_add(manifest, key, length);
	return true;
}

static bool manifest_take_piece(struct backup_manifest *manifest, const struct manifest_line *line)
{
	struct backup_piece piece;
	if (manifest->count == 0 || !span_parse_u64(line->words[1], &piece.from) ||
		!span_parse_u64(line->words[2], &piece.to) ||
		!decode_hex(line->words[3], piece.digest, sizeof(piece.digest)))
		return false;
	struct backup_file *file = &manifest->files[manifest->count - 1];
	if (piece.from != backup_file_covered(file) || piece.to <= piece.from ||
		piece.to > file->length || piece.to - piece.from > BACKUP_PIECE_MAX_BYTES)
		return false;
	backup_file_add(file, &piece);
	return true;
}
