/* Each pack of the catalog against its file, and the file against itself: header, footers or table,
 * the index beside it, the records. Then the rows against the file: the chunks that segments and
 * xorbs name must be in it.
 *
 * A row and what leads to it are read in one snapshot; the file is read after that. When a
 * server runs, gc may have moved the pack meanwhile. So faults are gathered first, and told only
 * if the row is still the same. */
#include "storage/fsck/fsck_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/core/pack_row.h"
#include "storage/packs/pack_scan.h"
#include "storage/packs/pack_table.h"

enum { NUMBERS = 256, TRIES = 3, INDEX_MAX_BYTES = 8 * 1024 * 1024 };
static const uint32_t NO_CHUNK = UINT32_MAX; /* the fault is one of the whole pack */

struct pack_fault {
	enum finding_kind kind;
	uint32_t first; /* the first chunk, or NO_CHUNK */
	uint32_t count; /* of chunks */
	char detail[ERROR_TEXT_BYTES];
};
struct pack_look {
	struct fsck *fsck;
	int64_t number;
	struct pack_record record;
	/* chunks that segments lead to, and those of xorbs (pack_table.h) */
	uint8_t named[PACK_MAX_CHUNKS / 8];
	uint8_t in_xorbs[PACK_MAX_CHUNKS / 8];
	struct backend_file *file;
	struct pack_index *index;
	struct pack_fault *faults;
	size_t fault_count;
	size_t fault_capacity;
};

static const char SQL_SEGMENTS[] = "SELECT first, count FROM segments WHERE pack = ?1";
static const char SQL_XORBS[] = "SELECT first, count FROM xorbs WHERE pack = ?1";
static const char SQL_KNOWN[] = "SELECT chunk FROM damaged_chunks WHERE pack = ?1 ORDER BY chunk";

static int check_pack(struct fsck *fsck, int64_t number, struct error *err);
static int look_at(struct pack_look *look, bool *out_is_there, struct error *err);
static int read_rows(struct pack_look *look, bool *out_is_there, struct error *err);
static int mark(struct pack_look *look, const char *sql, uint8_t *marks, struct error *err);
static int look_at_file(struct pack_look *look, struct error *err);
static int tell_unopened(struct pack_look *look, const char *name, struct error *err);
static int fsck_take_name_aside(void *taker, const char *name, uint64_t size, struct error *err);
static int check_length(struct pack_look *look, struct error *err);
static int read_index(struct pack_look *look, struct error *err);
static enum finding_kind sidecar_kind(const struct pack_look *look);
static struct pack_index *read_sidecar(
	struct pack_look *look, bool *out_is_there, struct error *err);
static void check_presence(struct pack_look *look);
static int check_records(struct pack_look *look, struct error *err);
static bool fsck_spend(void *owner, size_t bytes);
static void fsck_take_chunk(void *owner, uint32_t chunk, const struct error *why);
static int list_known(struct pack_look *look, struct error *err);
static void add_fault(
	struct pack_look *look, enum finding_kind kind, uint32_t first, const char *detail);
static int pass_damage(struct pack_look *look, enum finding_kind kind, struct error *err);
static int has_moved(struct pack_look *look, bool *out_has, struct error *err);
static int tell_all(struct pack_look *look, struct error *err);
static int tell_fault(struct pack_look *look, const struct pack_fault *fault, struct error *err);
static bool is_wanted(const struct pack_look *look);
static enum finding_kind dead_kind(enum finding_kind kind);
static void name_subject(const struct pack_look *look, const struct pack_fault *fault,
	char out[FINDING_SUBJECT_BYTES]);
static void name_file(const struct pack_record *record, char *out, size_t size);
static void release_look(struct pack_look *look);

int fsck_packs(struct fsck *fsck, struct error *err)
{
	int64_t numbers[NUMBERS];
	int64_t after = INT64_MIN;
	size_t count = NUMBERS;
	while (count == NUMBERS) {
		if (pack_row_numbers(fsck->db, after, numbers, NUMBERS, &count, err) != 0)
			return fsck_tell_failure(fsck, FINDING_TABLE, "table packs", err);
		for (size_t i = 0; i < count; i++)
			if (check_pack(fsck, numbers[i], err) != 0)
				return -1;
		after = count > 0 ? numbers[count - 1] : after;
	}
	return 0;
}

static int check_pack(struct fsck *fsck, int64_t number, struct error *err)
{
	struct pack_look *look = memory_new(sizeof(*look));
	bool is_there = false;
	bool is_settled = false;
	int result = 0;
	for (int i = 1; result == 0 && !is_settled; i++) {
		release_look(look);
		*look = (struct pack_look){.fsck = fsck, .number = number};
		bool has_changed = false;
		result = look_at(look, &is_there, err);
		if (result == 0 && look->fault_count > 0 && fsck->params->is_online)
			result = has_moved(look, &has_changed, err);
		is_settled = !has_changed || i == TRIES;
	}
	if (result == 0 && is_there)
		fsck->report->packs++;
	if (result == 0)
		result = tell_all(look, err);
	release_look(look);
	free(look);
	return result;
}

/* A pack that is being removed may lose its file at any time, and nothing leads to it. */
static int look_at(struct pack_look *look, bool *out_is_there, struct error *err)
{
	if (read_rows(look, out_is_there, err) != 0)
		return pass_damage(look, FINDING_TABLE, err);
	if (!*out_is_there || look->record.state == PACK_CONDEMNED)
		return 0;
	return look_at_file(look, err);
}

static int read_rows(struct pack_look *look, bool *out_is_there, struct error *err)
{
	struct db *db = look->fsck->db;
	if (db_snapshot_begin(db, err) != 0)
		return -1;
	const int found = pack_row_find(db, look->number, &look->record, err);
	int result = found < 0 ? -1 : 0;
	*out_is_there = found == 1;
	if (found == 1 &&
		(mark(look, SQL_SEGMENTS, look->named, err) != 0 ||
			mark(look, SQL_XORBS, look->in_xorbs, err) != 0 ||
			(look->fsck->params->is_quick && list_known(look, err) != 0)))
		result = -1;
	db_snapshot_end(db);
	return result;
}

/* Rows that name chunks behind the pack's end were told by fsck_links. */
static int mark(struct pack_look *look, const char *sql, uint8_t *marks, struct error *err)
{
	struct db_statement *rows = db_query(look->fsck->db, sql, err, db_i64(look->number));
	int got;
	while ((got = db_step(rows, err)) == 1) {
		const int64_t first = db_column_i64(rows, 0);
		const int64_t end = first + db_column_i64(rows, 1);
		for (int64_t i = first; first >= 0 && i < end && i < PACK_MAX_CHUNKS; i++)
			marks[i / 8] |= (uint8_t)(1 << (i % 8));
	}
	db_reset(rows);
	return got;
}

static int look_at_file(struct pack_look *look, struct error *err)
{
	struct backend *backend = look->fsck->backend;
	char name[PACK_NAME_BYTES];
	pack_format_name(pack_record_file(&look->record), PACK_FILE_PACK, name);
	if (backend->ops->open(backend, name, &look->file, err) != 0)
		return tell_unopened(look, name, err);
	if (check_length(look, err) != 0 || read_index(look, err) != 0)
		return -1;
	if (look->index == NULL)
		return 0;
	check_presence(look);
	return look->fsck->params->is_quick ? 0 : check_records(look, err);
}

static int tell_unopened(struct pack_look *look, const char *name, struct error *err)
{
	struct backend *backend = look->fsck->backend;
	const char *wanted = name;
	if (err->kind != ERROR_NOT_FOUND)
		return pass_damage(look, FINDING_PACK, err);
	*err = (struct error){0};
	if (backend->ops->list_aside(backend, fsck_take_name_aside, &wanted, err) != 0)
		return -1;
	if (wanted == NULL)
		add_fault(look, FINDING_PACK_ASIDE, NO_CHUNK, "Its file is in set-aside/.");
	else
		add_fault(look, FINDING_PACK, NO_CHUNK, "Its file is missing.");
	return 0;
}

static int fsck_take_name_aside(void *taker, const char *name, uint64_t size, struct error *err)
{
	const char **wanted = taker;
	(void)size, (void)err;
	if (*wanted != NULL && strcmp(*wanted, name) == 0)
		*wanted = NULL;
	return 0;
}

static int check_length(struct pack_look *look, struct error *err)
{
	uint64_t size = 0;
	char text[ERROR_TEXT_BYTES];
	if (look->file->backend->ops->size(look->file, &size, err) != 0)
		return -1;
	if (size >= look->record.length)
		return 0;
	snprintf(text, sizeof(text),
		"Its file has %" PRIu64 " bytes, and %" PRIu64 " were committed.", size,
		look->record.length);
	add_fault(look, FINDING_PACK, NO_CHUNK, text);
	return 0;
}

/* The pack describes itself in its footers or its table; a sealed one is described once more by the
 * index beside it. Either will do. */
static int read_index(struct pack_look *look, struct error *err)
{
	struct error own_damage = {0};
	struct error sidecar_damage = {0};
	bool has_sidecar = false;
	const struct pack_record *record = &look->record;
	struct pack_index *own = pack_own_index(look->file, &record->id, pack_record_file(record),
		record->length, &own_damage);
	struct pack_index *sidecar = look->record.state == PACK_OPEN
		? NULL
		: read_sidecar(look, &has_sidecar, &sidecar_damage);
	look->index = own != NULL ? own : sidecar;
	if (own != NULL)
		pack_index_free(sidecar);
	else
		*err = own_damage;
	/* a file that is cut off is not to be written again */
	const bool is_served = sidecar != NULL && look->fault_count == 0;
	if (own == NULL &&
		pass_damage(look, is_served ? FINDING_PACK_COPY : FINDING_PACK, err) != 0)
		return -1;
	if (own != NULL && sidecar == NULL && has_sidecar)
		add_fault(look, sidecar_kind(look), NO_CHUNK, sidecar_damage.text);
	return 0;
}

/* The index beside a pack that was never compacted is not synced, and is made again when it is
 * needed: a power cut may leave anything there. */
static enum finding_kind sidecar_kind(const struct pack_look *look)
{
	return pack_id_equal(pack_record_file(&look->record), &look->record.id) ? FINDING_PACK_INDEX
										: FINDING_PACK_COPY;
}

/* NULL also when there is none: a start makes it again. */
static struct pack_index *read_sidecar(
	struct pack_look *look, bool *out_is_there, struct error *err)
{
	struct backend *backend = look->fsck->backend;
	const struct pack_id *file = pack_record_file(&look->record);
	struct pack_index *index = NULL;
	struct buffer bytes;
	char name[PACK_NAME_BYTES];
	pack_format_name(file, PACK_FILE_INDEX, name);
	buffer_init(&bytes, INDEX_MAX_BYTES);
	const int got = backend->ops->get(backend, name, &bytes, err);
	*out_is_there = got == 0 || err->kind != ERROR_NOT_FOUND;
	if (got == 0 && pack_id_equal(file, &look->record.id))
		index = pack_index_decode(buffer_span(&bytes), err);
	else if (got == 0)
		index = pack_table_decode(buffer_span(&bytes), &look->record.id, file, err);
	buffer_release(&bytes);
	if (index == NULL ||
		(index->length == look->record.length &&
			pack_id_equal(&index->pack, &look->record.id)))
		return index;
	error_set(err, ERROR_CORRUPT, "Its index describes another length or another pack.");
	pack_index_free(index);
	return NULL;
}

static void check_presence(struct pack_look *look)
{
	for (uint32_t i = 0; i < PACK_MAX_CHUNKS; i++) {
		if (pack_index_find(look->index, i) != NULL)
			continue;
		if (pack_table_lives(look->named, i))
			add_fault(look, FINDING_PACK, i, "The file does not have it.");
		else if (pack_table_lives(look->in_xorbs, i))
			add_fault(look, FINDING_XORB, i,
				"A xorb that clients may name has it, and the file does not.");
	}
}

static int check_records(struct pack_look *look, struct error *err)
{
	struct backend *backend = look->fsck->backend;
	struct backend_file *file;
	char name[PACK_NAME_BYTES];
	const struct pack_scan scan = {
		.spend = fsck_spend, .found = fsck_take_chunk, .owner = look};
	pack_format_name(pack_record_file(&look->record), PACK_FILE_PACK, name);
	if (backend->ops->open_uncached(backend, name, &file, err) != 0)
		return tell_unopened(look, name, err);
	look->fsck->report->chunks += look->index->count;
	const int result = pack_scan_records(file, look->index, 0, &scan, err);
	file->backend->ops->close(file);
	return result;
}

static bool fsck_spend(void *owner, size_t bytes)
{
	((struct pack_look *)owner)->fsck->report->pack_bytes += bytes;
	return true;
}

static void fsck_take_chunk(void *owner, uint32_t chunk, const struct error *why)
{
	struct pack_look *look = owner;
	const bool is_wanted =
		pack_table_lives(look->named, chunk) || pack_table_lives(look->in_xorbs, chunk);
	add_fault(look, is_wanted ? FINDING_CHUNK : FINDING_DEAD_CHUNK, chunk, why->text);
}

/* What a reader has found before. */
static int list_known(struct pack_look *look, struct error *err)
{
	struct db_statement *rows = db_query(look->fsck->db, SQL_KNOWN, err, db_i64(look->number));
	int got;
	while ((got = db_step(rows, err)) == 1) {
		const struct error why = {.text = "It was found damaged before."};
		const int64_t chunk = db_column_i64(rows, 0);
		if (chunk >= 0 && chunk < PACK_MAX_CHUNKS)
			fsck_take_chunk(look, (uint32_t)chunk, &why);
	}
	db_reset(rows);
	return got;
}

/* Adjacent chunks of one kind are one fault. */
static void add_fault(
	struct pack_look *look, enum finding_kind kind, uint32_t first, const char *detail)
{
	struct pack_fault *last =
		look->fault_count > 0 ? &look->faults[look->fault_count - 1] : NULL;
	if (last != NULL && last->kind == kind && first != NO_CHUNK && last->first != NO_CHUNK &&
		last->first + last->count == first) {
		last->count++;
		return;
	}
	look->faults = memory_make_room(
		look->faults, look->fault_count, &look->fault_capacity, sizeof(*look->faults));
	struct pack_fault *fault = &look->faults[look->fault_count++];
	*fault = (struct pack_fault){.kind = kind, .first = first, .count = first != NO_CHUNK};
	snprintf(fault->detail, sizeof(fault->detail), "%s", detail);
}

/* Makes a fault of an error that tells of damage. */
static int pass_damage(struct pack_look *look, enum finding_kind kind, struct error *err)
{
	if (fsck_is_fatal(err))
		return -1;
	add_fault(look, kind, NO_CHUNK, err->text);
	*err = (struct error){0};
	return 0;
}

static int has_moved(struct pack_look *look, bool *out_has, struct error *err)
{
	struct pack_record now;
	const int found = pack_row_find(look->fsck->db, look->number, &now, err);
	*out_has = found == 0 ||
		(found == 1 &&
			(now.state != look->record.state ||
				!pack_id_equal(&now.file, &look->record.file)));
	return found < 0 ? fsck_tell_failure(look->fsck, FINDING_TABLE, "table packs", err) : 0;
}

static int tell_all(struct pack_look *look, struct error *err)
{
	for (size_t i = 0; i < look->fault_count; i++)
		if (tell_fault(look, &look->faults[i], err) != 0)
			return -1;
	return 0;
}

static int tell_fault(struct pack_look *look, const struct pack_fault *fault, struct error *err)
{
	const bool is_whole = fault->first == NO_CHUNK;
	struct finding finding = {.kind = is_wanted(look) ? fault->kind : dead_kind(fault->kind),
		.detail = fault->detail,
		.number = look->number,
		.chunk = is_whole ? 0 : fault->first,
		.chunks = fault->count};
	name_subject(look, fault, finding.subject);
	if (finding_severity_of(finding.kind) == FINDING_DAMAGE &&
		reach_add_chunks(look->fsck->reach, look->number, finding.chunk,
			is_whole ? PACK_MAX_CHUNKS : fault->count, err) != 0 &&
		fsck_tell_failure(look->fsck, FINDING_TABLE, "catalog.db", err) != 0)
		return -1;
	return fsck_tell_finding(look->fsck, &finding, err);
}

/* Whether anything leads to the pack. */
static bool is_wanted(const struct pack_look *look)
{
	for (size_t i = 0; i < sizeof(look->named); i++)
		if ((look->named[i] | look->in_xorbs[i]) != 0)
			return true;
	return false;
}

static enum finding_kind dead_kind(enum finding_kind kind)
{
	return kind == FINDING_PACK || kind == FINDING_PACK_COPY ? FINDING_DEAD_PACK : kind;
}

static void name_subject(const struct pack_look *look, const struct pack_fault *fault,
	char out[FINDING_SUBJECT_BYTES])
{
	char pack[PACK_ID_TEXT_BYTES];
	char in[PACK_ID_TEXT_BYTES + 16];
	pack_id_format(&look->record.id, pack);
	name_file(&look->record, in, sizeof(in));
	if (fault->first == NO_CHUNK)
		snprintf(out, FINDING_SUBJECT_BYTES, "pack %s%s", pack, in);
	else if (fault->count == 1)
		snprintf(out, FINDING_SUBJECT_BYTES, "chunk %u of pack %s%s", fault->first, pack,
			in);
	else
		snprintf(out, FINDING_SUBJECT_BYTES, "chunks %u to %u of pack %s%s", fault->first,
			fault->first + fault->count - 1, pack, in);
}

/* " in FILE.pack", when that has another name than the pack. */
static void name_file(const struct pack_record *record, char *out, size_t size)
{
	char name[PACK_ID_TEXT_BYTES];
	const struct pack_id *file = pack_record_file(record);
	pack_id_format(file, name);
	out[0] = '\0';
	if (!pack_id_equal(file, &record->id))
		snprintf(out, size, " in %s.pack", name);
}

static void release_look(struct pack_look *look)
{
	if (look->file != NULL)
		look->file->backend->ops->close(look->file);
	pack_index_free(look->index);
	free(look->faults);
}
