/* One listing of the folder tells everything about sealed packs. Only packs that were open are
 * walked. For files that no row names the header is read: it says which store made the file, and in
 * which life. Bytes after a pack's committed length mean nothing, and stay there until the pack is
 * compacted. */
#include "storage/packs/pack_recovery.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/packs/pack_store_parts.h"

enum { NAMED_MAX = 8 }; /* in a message */

struct recovered { /* a pack of the catalog, and what the listing found of it */
	const struct pack_record *record;
	const struct pack_id *file;
	uint64_t size;
	bool is_there;
	bool is_aside;
	bool has_index;
	bool is_staged; /* its bytes are rows of the catalog; its file is not looked at */
};
enum stray_fate { STRAY_ASIDE, STRAY_GARBAGE, STRAY_HELD };
struct stray { /* a file that no row names */
	char *name;
	uint64_t size;
	struct pack_id file;
	enum pack_file_kind kind;
	bool is_leftover; /* a sidecar that was never finished */
	bool has_origin;
	struct pack_origin origin;
};
struct pack_recovery {
	struct pack_store *store;
	struct pack_names names;
	struct pack_origin origin;
	struct recovered *packs; /* sorted by file */
	struct stray *strays;
	size_t stray_count;
	size_t stray_capacity;
	struct pack_facts facts;
};

static void name_missing(const struct pack_recovery *recovery, struct buffer *out);
static void take_records(struct pack_recovery *recovery);
static struct recovered expect(
	const struct pack_recovery *recovery, const struct pack_record *record);
static int pack_recovery_compare(const void *a, const void *b);
static int list_files(struct pack_recovery *recovery, struct error *err);
static int pack_recovery_take_name(void *taker, const char *name, uint64_t size, struct error *err);
static bool is_leftover(const char *name);
static struct recovered *find_named(
	const struct pack_recovery *recovery, const struct pack_id *file);
static void add_stray(struct pack_recovery *recovery, const struct stray *stray);
static int pack_recovery_take_name_aside(
	void *taker, const char *name, uint64_t size, struct error *err);
static void gather_facts(struct pack_recovery *recovery);
static bool is_missing(const struct recovered *pack);
static void read_origin(const struct pack_recovery *recovery, struct stray *stray);
static void note_stray(struct pack_recovery *recovery, const struct stray *stray);
static bool is_of_store(const struct pack_recovery *recovery, const struct stray *stray);
static bool has_store(const struct pack_origin *origin);
static void learn_packs(const struct pack_recovery *recovery);
static int settle_files(struct pack_recovery *recovery, bool is_whole, struct error *err);
static int bring_back(
	const struct pack_recovery *recovery, struct recovered *pack, struct error *err);
static int settle_stray(const struct pack_recovery *recovery, const struct stray *stray,
	enum stray_fate fate, struct error *err);
static enum stray_fate fate_of(
	const struct pack_recovery *recovery, const struct stray *stray, bool is_whole);
static bool is_removal(const struct pack_recovery *recovery, const struct stray *stray);
static void settle_pack(const struct pack_recovery *recovery, const struct recovered *pack);
static int check_pack(const struct recovered *pack, struct error *err);
static int make_index(
	const struct pack_recovery *recovery, const struct recovered *pack, struct error *err);
static int walk_open_pack(const struct pack_recovery *recovery, const struct pack_record *record,
	struct backend_file *file, struct error *err);
static void complain(const struct pack_recovery *recovery, enum log_level level,
	const struct pack_id *pack, struct error *err);
static void feed_packs(const struct pack_recovery *recovery);

struct pack_recovery *pack_recovery_look(struct pack_store *store, const struct pack_names *names,
	const struct pack_origin *origin, struct error *err)
{
	struct pack_recovery *recovery = memory_new(sizeof(*recovery));
	recovery->store = store;
	recovery->names = *names;
	recovery->origin = *origin;
	take_records(recovery);
	if (!pack_store_is_far(store) && list_files(recovery, err) != 0) {
		pack_recovery_free(recovery);
		return NULL;
	}
	gather_facts(recovery);
	return recovery;
}

const struct pack_facts *pack_recovery_facts(const struct pack_recovery *recovery)
{
	return &recovery->facts;
}

void pack_recovery_tell_missing(const struct pack_recovery *recovery, struct store_health *health)
{
	const struct pack_facts *facts = &recovery->facts;
	struct buffer text;
	if (facts->missing == 0)
		return;
	buffer_init(&text, ERROR_TEXT_BYTES);
	buffer_format(&text, "%zu of %zu had no file at the start: ", facts->missing, facts->named);
	name_missing(recovery, &text);
	buffer_add_text(&text, ".");
	store_health_set_missing(health, facts->missing, buffer_text(&text));
	buffer_release(&text);
}

void pack_recovery_free(struct pack_recovery *recovery)
{
	if (recovery == NULL)
		return;
	for (size_t i = 0; i < recovery->stray_count; i++)
		free(recovery->strays[i].name);
	free(recovery->strays);
	free(recovery->packs);
	free(recovery);
}

int pack_recovery_settle(struct pack_recovery *recovery, bool is_whole,
	struct pack_record **out_sealed, size_t *out_sealed_count, struct error *err)
{
	learn_packs(recovery);
	if (settle_files(recovery, is_whole, err) != 0)
		return -1;
	*out_sealed = memory_new_array(recovery->names.record_count + 1, sizeof(**out_sealed));
	*out_sealed_count = 0;
	for (size_t i = 0; i < recovery->names.record_count; i++) {
		if (recovery->packs[i].is_staged)
			continue;
		settle_pack(recovery, &recovery->packs[i]);
		if (recovery->packs[i].record->state != PACK_OPEN)
			continue;
		struct pack_record *sealed = &(*out_sealed)[(*out_sealed_count)++];
		*sealed = *recovery->packs[i].record;
		sealed->state = PACK_SEALED;
	}
	feed_packs(recovery);
	return 0;
}

void pack_recovery_accept(const struct pack_recovery *recovery)
{
	learn_packs(recovery);
	recovery->store->backend->reads_only = true;
	for (size_t i = 0; i < recovery->names.record_count; i++) {
		struct error damage = {0};
		if (!recovery->packs[i].is_staged && check_pack(&recovery->packs[i], &damage) != 0)
			complain(recovery, LOG_ERROR, &recovery->packs[i].record->id, &damage);
	}
}

static void name_missing(const struct pack_recovery *recovery, struct buffer *out)
{
	size_t named = 0;
	for (size_t i = 0; i < recovery->names.record_count && named < NAMED_MAX; i++) {
		char name[PACK_NAME_BYTES];
		if (!is_missing(&recovery->packs[i]))
			continue;
		pack_format_name(recovery->packs[i].file, PACK_FILE_PACK, name);
		buffer_format(out, "%s%s", named++ > 0 ? ", " : "", name);
	}
	if (recovery->facts.missing > named)
		buffer_format(out, " and %zu more", recovery->facts.missing - named);
}

static void take_records(struct pack_recovery *recovery)
{
	size_t count = recovery->names.record_count;
	recovery->packs = memory_new_array(count + 1, sizeof(*recovery->packs));
	for (size_t i = 0; i < count; i++)
		recovery->packs[i] = expect(recovery, &recovery->names.records[i]);
	qsort(recovery->packs, count, sizeof(*recovery->packs), pack_recovery_compare);
}

/* A far place is not asked: its sealed packs count as there. */
static struct recovered expect(
	const struct pack_recovery *recovery, const struct pack_record *record)
{
	const bool is_far = pack_store_is_far(recovery->store);
	const bool is_stored = is_far && record->state != PACK_OPEN;
	return (struct recovered){.record = record,
		.file = pack_record_file(record),
		.size = is_stored ? record->length : 0,
		.is_there = is_stored,
		.has_index = is_stored,
		.is_staged = is_far && !is_stored};
}

static int pack_recovery_compare(const void *a, const void *b)
{
	return memcmp(((const struct recovered *)a)->file, ((const struct recovered *)b)->file,
		sizeof(struct pack_id));
}

static int list_files(struct pack_recovery *recovery, struct error *err)
{
	struct backend *const backend = recovery->store->backend;
	return backend->ops->list(backend, pack_recovery_take_name, recovery, err) != 0
		? -1
		: backend->ops->list_aside(backend, pack_recovery_take_name_aside, recovery, err);
}

static int pack_recovery_take_name(void *taker, const char *name, uint64_t size, struct error *err)
{
	struct pack_recovery *recovery = taker;
	ASSERT(recovery->packs != NULL);
	struct stray stray = {.size = size, .is_leftover = is_leftover(name)};
	bool is_ours = pack_format_parse_name(name, &stray.file, &stray.kind);
	struct recovered *pack = is_ours ? find_named(recovery, &stray.file) : NULL;
	(void)err;
	if (pack != NULL && stray.kind == PACK_FILE_INDEX) {
		pack->has_index = true;
	} else if (pack != NULL) {
		pack->is_there = true;
		pack->size = size;
	} else if (is_ours || stray.is_leftover) {
		stray.name = memory_copy_text(name);
		add_stray(recovery, &stray);
	}
	return 0;
}

/* Unfinished sidecars have the sidecar's name and ".tmp-". Names of another form do not belong to
 * the store, and stay. A backend accepts no name that begins with a dot. */
static bool is_leftover(const char *name)
{
	return name[0] != '.' && strlen(name) > PACK_ID_TEXT_BYTES && strstr(name, ".tmp-") != NULL;
}

static struct recovered *find_named(
	const struct pack_recovery *recovery, const struct pack_id *file)
{
	const struct recovered wanted = {.file = file};
	size_t count = recovery->names.record_count;
	return count == 0 ? NULL
			  : bsearch(&wanted, recovery->packs, count, sizeof(*recovery->packs),
				    pack_recovery_compare);
}

static void add_stray(struct pack_recovery *recovery, const struct stray *stray)
{
	recovery->strays = memory_make_room(recovery->strays, recovery->stray_count,
		&recovery->stray_capacity, sizeof(*recovery->strays));
	recovery->strays[recovery->stray_count++] = *stray;
}

static int pack_recovery_take_name_aside(
	void *taker, const char *name, uint64_t size, struct error *err)
{
	struct pack_recovery *recovery = taker;
	struct pack_id file;
	enum pack_file_kind kind;
	struct recovered *pack =
		pack_format_parse_name(name, &file, &kind) ? find_named(recovery, &file) : NULL;
	(void)err;
	if (pack != NULL && kind == PACK_FILE_PACK && !pack->is_there) {
		pack->is_aside = true;
		pack->size = size;
	}
	return 0;
}

static void gather_facts(struct pack_recovery *recovery)
{
	struct pack_facts *facts = &recovery->facts;
	facts->named = recovery->names.record_count;
	for (size_t i = 0; i < facts->named; i++)
		facts->missing += is_missing(&recovery->packs[i]);
	for (size_t i = 0; i < recovery->stray_count; i++) {
		read_origin(recovery, &recovery->strays[i]);
		note_stray(recovery, &recovery->strays[i]);
	}
}

static bool is_missing(const struct recovered *pack)
{
	return !pack->is_there && !pack->is_aside && !pack->is_staged;
}

static void read_origin(const struct pack_recovery *recovery, struct stray *stray)
{
	const struct backend_ops *ops = recovery->store->backend->ops;
	uint8_t header[PACK_HEADER_BYTES];
	const struct iovec part = {.iov_base = header, .iov_len = sizeof(header)};
	struct error ignored = {0}; /* a file that cannot be read has no origin */
	struct backend_file *file;
	if (stray->is_leftover || stray->kind != PACK_FILE_PACK || stray->size < sizeof(header) ||
		ops->open(recovery->store->backend, stray->name, &file, &ignored) != 0)
		return;
	if (ops->read(file, &part, 1, 0, &ignored) == 0)
		stray->has_origin = pack_format_read_origin(header, &stray->origin);
	ops->close(file);
}

static void note_stray(struct pack_recovery *recovery, const struct stray *stray)
{
	struct pack_facts *facts = &recovery->facts;
	if (stray->is_leftover || stray->kind != PACK_FILE_PACK)
		return;
	facts->unnamed++;
	if (is_of_store(recovery, stray)) {
		if (stray->origin.life >= facts->newest_life)
			snprintf(facts->newest_name, sizeof(facts->newest_name), "%s", stray->name);
		facts->newest_life = stray->origin.life > facts->newest_life ? stray->origin.life
									     : facts->newest_life;
	} else if (stray->has_origin && has_store(&stray->origin)) {
		facts->foreign++;
		snprintf(facts->foreign_name, sizeof(facts->foreign_name), "%s", stray->name);
	}
}

static bool is_of_store(const struct pack_recovery *recovery, const struct stray *stray)
{
	return stray->has_origin && has_store(&stray->origin) &&
		memcmp(stray->origin.store, recovery->origin.store, PACK_STORE_BYTES) == 0;
}

/* Packs from before stores had an id do not name their store. */
static bool has_store(const struct pack_origin *origin)
{
	static const uint8_t none[PACK_STORE_BYTES];
	return memcmp(origin->store, none, sizeof(none)) != 0;
}

/* Makes the packs known to the cache. */
static void learn_packs(const struct pack_recovery *recovery)
{
	for (size_t i = 0; i < recovery->names.record_count; i++)
		if (!recovery->packs[i].is_staged)
			pack_cache_add_record(recovery->store->cache, recovery->packs[i].record);
}

/* Brings back wanted files before it removes any. */
static int settle_files(struct pack_recovery *recovery, bool is_whole, struct error *err)
{
	for (size_t i = 0; i < recovery->names.record_count; i++)
		if (recovery->packs[i].is_aside &&
			bring_back(recovery, &recovery->packs[i], err) != 0)
			return -1;
	for (size_t i = 0; i < recovery->stray_count; i++) {
		const struct stray *stray = &recovery->strays[i];
		if (settle_stray(recovery, stray, fate_of(recovery, stray, is_whole), err) != 0)
			return -1;
	}
	return recovery->store->backend->ops->sync_names(recovery->store->backend, err);
}

static int bring_back(
	const struct pack_recovery *recovery, struct recovered *pack, struct error *err)
{
	struct backend *backend = recovery->store->backend;
	struct error ignored = {0}; /* without it the index is made again */
	char name[PACK_NAME_BYTES];
	pack_format_name(pack->file, PACK_FILE_INDEX, name);
	pack->has_index = backend->ops->bring_back(backend, name, &ignored) == 0;
	pack_format_name(pack->file, PACK_FILE_PACK, name);
	const struct log_field field = log_text("name", name);
	log_event(recovery->store->log, LOG_WARNING, NULL, "brought_back", &field, 1);
	pack->is_there = true;
	return backend->ops->bring_back(backend, name, err);
}

static int settle_stray(const struct pack_recovery *recovery, const struct stray *stray,
	enum stray_fate fate, struct error *err)
{
	static const char *const events[] = {[STRAY_ASIDE] = "set_aside",
		[STRAY_GARBAGE] = "orphan_removed",
		[STRAY_HELD] = "held_for_backup"};
	static const enum log_level levels[] = {
		[STRAY_ASIDE] = LOG_WARNING, [STRAY_GARBAGE] = LOG_INFO, [STRAY_HELD] = LOG_INFO};
	struct backend *backend = recovery->store->backend;
	const struct log_field fields[] = {
		log_text("name", stray->name), log_number("bytes", (int64_t)stray->size)};
	log_event(recovery->store->log, levels[fate], NULL, events[fate], fields, 2);
	if (fate == STRAY_HELD)
		return 0;
	return fate == STRAY_GARBAGE ? backend->ops->remove(backend, stray->name, err)
				     : backend->ops->set_aside(backend, stray->name, err);
}

/* Sidecars are copies: in a store without damage nothing needs one whose pack no row names. Nor an
 * empty file, which a kill before the header leaves. What a backup may name stays where it is until
 * gc removes it. */
static enum stray_fate fate_of(
	const struct pack_recovery *recovery, const struct stray *stray, bool is_whole)
{
	bool is_copy = stray->is_leftover || stray->kind == PACK_FILE_INDEX;
	bool is_of_last_life =
		is_of_store(recovery, stray) && stray->origin.life == recovery->origin.life;
	if (is_removal(recovery, stray) && backup_holds_any(recovery->store->holds))
		return STRAY_HELD;
	if (is_removal(recovery, stray) ||
		(is_whole && (is_copy || stray->size == 0 || is_of_last_life)))
		return STRAY_GARBAGE;
	return STRAY_ASIDE;
}

static bool is_removal(const struct pack_recovery *recovery, const struct stray *stray)
{
	for (size_t i = 0; i < recovery->names.removal_count; i++)
		if (!stray->is_leftover &&
			pack_id_equal(&recovery->names.removals[i], &stray->file))
			return true;
	return false;
}

static void settle_pack(const struct pack_recovery *recovery, const struct recovered *pack)
{
	struct error damage = {0};
	int result = check_pack(pack, &damage);
	if (result == 0 && pack->record->state == PACK_OPEN)
		result = make_index(recovery, pack, &damage);
	if (result != 0)
		complain(recovery, LOG_ERROR, &pack->record->id, &damage);
}

static int check_pack(const struct recovered *pack, struct error *err)
{
	if (!pack->is_there)
		return error_set(err, ERROR_CORRUPT, "its file is missing.");
	if (pack->size < pack->record->length)
		return error_set(err, ERROR_CORRUPT,
			"its file has %llu bytes, but %llu are committed.",
			(unsigned long long)pack->size, (unsigned long long)pack->record->length);
	return 0;
}

/* The pack was open: its index is made now, of the committed bytes alone. */
static int make_index(
	const struct pack_recovery *recovery, const struct recovered *pack, struct error *err)
{
	const struct backend_ops *ops = recovery->store->backend->ops;
	struct backend_file *file;
	char name[PACK_NAME_BYTES];
	pack_format_name(pack->file, PACK_FILE_PACK, name);
	if (ops->open(recovery->store->backend, name, &file, err) != 0)
		return -1;
	int result = walk_open_pack(recovery, pack->record, file, err);
	ops->close(file);
	return result;
}

static int walk_open_pack(const struct pack_recovery *recovery, const struct pack_record *record,
	struct backend_file *file, struct error *err)
{
	struct pack_index *index = pack_index_walk(file, &record->id, record->length, err);
	if (index == NULL)
		return -1;
	int result = 0;
	if (index->count != record->chunks)
		result = error_set(err, ERROR_CORRUPT,
			"its footers count %u chunks, but %u are committed.", index->count,
			record->chunks);
	struct error save = {0};
	if (result == 0 && pack_index_save(index, recovery->store->backend, &save) != 0)
		complain(recovery, LOG_WARNING, &record->id,
			&save); /* it is made again when it is needed */
	pack_index_free(index);
	return result;
}

static void complain(const struct pack_recovery *recovery, enum log_level level,
	const struct pack_id *pack, struct error *err)
{
	char text[PACK_ID_TEXT_BYTES];
	pack_id_format(pack, text);
	error_wrap(err, "Pack %s", text);
	log_failure(recovery->store->log, level, NULL, "pack_damaged", err);
}

/* Feeds packs that are sealed just now, or were sealed without getting an index: they enter the
 * chunk index like any pack that seals. */
static void feed_packs(const struct pack_recovery *recovery)
{
	struct pack_id *packs = memory_new_array(recovery->names.record_count + 1, sizeof(*packs));
	size_t count = 0;
	for (size_t i = 0; i < recovery->names.record_count; i++) {
		const struct recovered *pack = &recovery->packs[i];
		bool lacks_index = !pack->has_index && pack_id_equal(pack->file, &pack->record->id);
		if (pack->is_there && !pack->is_staged && pack->record->state != PACK_CONDEMNED &&
			(pack->record->state == PACK_OPEN || lacks_index))
			packs[count++] = pack->record->id;
	}
	if (recovery->store->helpers != NULL)
		pack_feed_submit(recovery->store, packs, count);
	free(packs);
}
