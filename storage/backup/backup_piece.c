#include "storage/backup/backup_piece.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/digest/xxh3.h"
#include "base/encode.h"
#include "storage/journal/journal_format.h"
#include "storage/packs/pack_format.h"

static bool parse_pack(struct span name, struct pack_id *out);
static bool parse_journal(struct span name, char out[JOURNAL_NAME_BYTES]);

void backup_key_of_pack(const struct pack_id *file, char out[BACKUP_KEY_BYTES])
{
	char text[PACK_ID_TEXT_BYTES];
	pack_id_format(file, text);
	snprintf(out, BACKUP_KEY_BYTES, BACKUP_PACKS "/%s", text);
}

void backup_key_of_journal(const char *name, struct span head, char out[BACKUP_KEY_BYTES])
{
	snprintf(out, BACKUP_KEY_BYTES, BACKUP_JOURNAL "/%s-%016" PRIx64, name, xxh3_64(head));
}

bool backup_key_path(const char *key, char out[BACKUP_NAME_BYTES])
{
	struct span rest = span_text(key);
	struct span kind;
	struct pack_id file;
	char name[JOURNAL_NAME_BYTES];
	if (!span_split(&rest, '/', &kind))
		return false;
	if (span_equal_text(kind, BACKUP_PACKS) && parse_pack(rest, &file)) {
		snprintf(out, BACKUP_NAME_BYTES, "packs/%.2s/%.32s.pack", (const char *)rest.data,
			(const char *)rest.data);
		return true;
	}
	if (!span_equal_text(kind, BACKUP_JOURNAL) || !parse_journal(rest, name))
		return false;
	snprintf(out, BACKUP_NAME_BYTES, "journal/%s", name);
	return true;
}

void backup_piece_name(
	const char *key, const struct backup_piece *piece, char out[BACKUP_NAME_BYTES])
{
	snprintf(out, BACKUP_NAME_BYTES, "%s.%" PRIu64 "-%" PRIu64, key, piece->from, piece->to);
}

/* Only the text that backup_piece_name would make. */
bool backup_piece_parse(const char *name, char out_key[BACKUP_KEY_BYTES], struct backup_piece *out)
{
	const char *dot = strrchr(name, '.');
	char again[BACKUP_NAME_BYTES];
	char path[BACKUP_NAME_BYTES];
	struct span range = span_text(dot != NULL ? dot + 1 : "");
	struct span from;
	*out = (struct backup_piece){.from = 0};
	if (dot == NULL || dot - name >= BACKUP_KEY_BYTES || !span_split(&range, '-', &from) ||
		!span_parse_u64(from, &out->from) || !span_parse_u64(range, &out->to) ||
		out->from >= out->to)
		return false;
	snprintf(out_key, BACKUP_KEY_BYTES, "%.*s", (int)(dot - name), name);
	backup_piece_name(out_key, out, again);
	return strcmp(again, name) == 0 && backup_key_path(out_key, path);
}

static bool parse_pack(struct span name, struct pack_id *out)
{
	char again[PACK_ID_TEXT_BYTES];
	if (!decode_hex(name, out->bytes, sizeof(out->bytes)))
		return false;
	pack_id_format(out, again);
	return span_equal_text(name, again);
}

/* NAME, '-' and 16 digits. */
static bool parse_journal(struct span name, char out[JOURNAL_NAME_BYTES])
{
	struct span rest = name;
	struct span file;
	uint8_t sum[sizeof(uint64_t)];
	enum journal_kind kind;
	uint64_t number;
	if (!span_split(&rest, '-', &file) || file.len >= JOURNAL_NAME_BYTES ||
		!decode_hex(rest, sum, sizeof(sum)))
		return false;
	snprintf(out, JOURNAL_NAME_BYTES, "%.*s", (int)file.len, (const char *)file.data);
	return journal_name_parse(out, &kind, &number);
}
