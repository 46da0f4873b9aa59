/* current objects --> older versions --> complete
 *
 * A helper reads slice by slice, so that it stays free for others, and a slice sees one state of
 * the catalog. The call stops before the row that would be one too many. `next` has the place of
 * the last one: "c" and its key in hex, or "o", its sequence, "-" and its key. */
#include "storage/objects/object_usage.h"

#include <inttypes.h>
#include <string.h>

#include "base/encode.h"
#include "storage/buckets/bucket_row.h"
#include "storage/versions/key_walk.h"
#include "storage/versions/version.h"

enum {
	SLICE_ROWS = 2000,
	ARENA_BYTES = 4 * 1024 * 1024,
	POSITION_MAX_BYTES = KEY_WALK_TEXT_MAX_BYTES + 1
};

/* Behind the row that was read last. */
struct position {
	bool is_older;
	struct buffer key;
	int64_t sequence; /* of an older version; 0: none of the key was read */
};
struct counting {
	struct call call; /* first */
	struct object_usage_params params;
	struct object_usage result;
	struct position position;
	bool is_misplaced; /* `after` was not a `next` */
	uint64_t rows;
};
struct slice {
	struct counting *counting;
	struct db *db;
	int64_t bucket;
	struct key_walk walk;
	size_t left; /* rows */
	bool full;   /* the call must not read on */
};

static bool read_position(struct position *position, struct span text);
static bool read_key(struct position *position, struct span hex);
static enum call_next object_usage_help(struct call *call, struct error *err);
static int count_slice(struct slice *slice, struct error *err);
static int count_rows(struct slice *slice, bool *out_ended, struct error *err);
static int count_behind(struct slice *slice, struct error *err);
static int count_scan(
	struct slice *slice, struct db_statement *scan, bool *out_ended, struct error *err);
static void take_current(struct slice *slice, struct db_statement *scan);
static struct object_usage_entry *entry_of(struct counting *counting, struct span key);
static void take_older(struct slice *slice, struct db_statement *scan);
static void move_to(struct counting *counting, struct span key, int64_t sequence);
static bool end_part(struct counting *counting);
static struct span print_position(struct arena *arena, const struct position *position);
static void object_usage_release(struct call *call);

static const struct call_kind kind = {
	.stages = {{.help = object_usage_help}}, .release = object_usage_release};

struct call *object_usage_call(struct store *store, const struct object_usage_params *params)
{
	struct counting *const counting = call_new(sizeof(*counting), &kind, store, ARENA_BYTES);
	struct arena *const arena = counting->call.arena;
	ASSERT(params->limit > 0 && params->limit <= OBJECT_USAGE_LIMIT_MAX);
	counting->params = *params;
	counting->params.bucket.name = arena_copy(arena, params->bucket.name);
	counting->params.prefix = arena_copy(arena, params->prefix);
	counting->result.entries =
		arena_take_array(arena, params->limit, sizeof(*counting->result.entries));
	counting->result.has_older = params->counts_older;
	buffer_init(&counting->position.key, POSITION_MAX_BYTES);
	counting->is_misplaced = params->after.len > 0 &&
		(!read_position(&counting->position, params->after) ||
			(counting->position.is_older && !params->counts_older));
	return &counting->call;
}

const struct object_usage *object_usage_result(const struct call *call)
{
	return &((const struct counting *)call)->result;
}

static bool read_position(struct position *position, struct span text)
{
	struct span rest = span_slice(text, 1, text.len);
	struct span sequence;
	uint64_t number = 0;
	position->is_older = text.data[0] == 'o';
	if (!position->is_older)
		return text.data[0] == 'c' && read_key(position, rest);
	if (!span_split(&rest, '-', &sequence) || rest.data == NULL ||
		!span_parse_u64(sequence, &number) || number > INT64_MAX)
		return false;
	position->sequence = (int64_t)number;
	return read_key(position, rest);
}

static bool read_key(struct position *position, struct span hex)
{
	if (hex.len % 2 != 0 || hex.len / 2 > KEY_WALK_TEXT_MAX_BYTES)
		return false;
	uint8_t *const room = buffer_reserve(&position->key, hex.len / 2);
	if (room == NULL || !decode_hex(hex, room, hex.len / 2))
		return false;
	buffer_commit(&position->key, hex.len / 2);
	return true;
}

static enum call_next object_usage_help(struct call *call, struct error *err)
{
	struct counting *const counting = (struct counting *)call;
	struct slice slice = {.counting = counting, .left = SLICE_ROWS};
	if (counting->is_misplaced) {
		error_set(err, ERROR_INVALID,
			"The parameter after must be the \"next\" of the reply before.");
		return CALL_FAILS;
	}
	slice.db = store_snapshot_take(call->store, err);
	if (slice.db == NULL)
		return CALL_FAILS;
	const int result = count_slice(&slice, err);
	store_snapshot_give(call->store, slice.db);
	if (result != 0)
		return CALL_FAILS;
	if (!slice.full && !counting->result.complete)
		return CALL_AGAIN;
	if (!counting->result.complete)
		counting->result.next = print_position(call->arena, &counting->position);
	return CALL_NEXT;
}

static int count_slice(struct slice *slice, struct error *err)
{
	struct counting *const counting = slice->counting;
	bool ended = false;
	if (bucket_row_find(slice->db, counting->params.bucket, &slice->bucket, err) != 0 ||
		count_behind(slice, err) != 0)
		return -1;
	const struct span no_delimiter = {NULL, 0};
	int result = key_walk_start(&slice->walk, counting->params.prefix, no_delimiter,
		buffer_span(&counting->position.key), err);
	if (result == 0)
		result = count_rows(slice, &ended, err);
	key_walk_release(&slice->walk);
	if (result == 0 && ended)
		counting->result.complete = end_part(counting);
	return result;
}

static int count_rows(struct slice *slice, bool *out_ended, struct error *err)
{
	const struct span from = buffer_span(&slice->walk.from);
	*out_ended = slice->walk.ended;
	if (*out_ended || slice->left == 0 || slice->full)
		return 0;
	return count_scan(slice,
		slice->counting->position.is_older
			? version_older_scan(slice->db, slice->bucket, from, err)
			: version_scan(slice->db, slice->bucket, from, err),
		out_ended, err);
}

/* The rest of the key in which the slice before ended. */
static int count_behind(struct slice *slice, struct error *err)
{
	struct counting *const counting = slice->counting;
	const struct span key = buffer_span(&counting->position.key);
	struct arena *const arena = arena_new(POSITION_MAX_BYTES);
	const struct object_place place = {slice->bucket, arena_copy(arena, key)};
	bool ignored;
	int result = 0;
	if (counting->position.sequence > 0 && span_starts(key, counting->params.prefix))
		result = count_scan(slice,
			version_older_scan_behind(
				slice->db, place, counting->position.sequence, err),
			&ignored, err);
	arena_free(arena);
	return result;
}

static int count_scan(
	struct slice *slice, struct db_statement *scan, bool *out_ended, struct error *err)
{
	const bool is_older = slice->counting->position.is_older;
	int got = 0;
	*out_ended = false;
	if (scan == NULL)
		return -1;
	while (slice->left > 0 && !slice->full && !*out_ended) {
		got = db_step(scan, err);
		*out_ended = got != 1 ||
			!span_starts(version_scan_key(scan), slice->counting->params.prefix);
		if (!*out_ended)
			(is_older ? take_older : take_current)(slice, scan);
	}
	db_reset(scan);
	return got < 0 ? -1 : 0;
}

static void take_current(struct slice *slice, struct db_statement *scan)
{
	struct counting *const counting = slice->counting;
	const struct span key = version_scan_key(scan);
	struct object_entry object;
	struct object_usage_entry *const entry =
		counting->rows == OBJECT_USAGE_ROWS_MAX ? NULL : entry_of(counting, key);
	slice->full = entry == NULL;
	if (slice->full)
		return;
	version_scan_entry(scan, &object);
	entry->objects++;
	entry->bytes += object.size;
	if (object.modified_ms > entry->modified_ms)
		entry->modified_ms = object.modified_ms;
	counting->result.objects++;
	counting->result.bytes += object.size;
	slice->left--;
	move_to(counting, key, 0);
}

/* The entry that the key belongs to; NULL when it would be one too many. */
static struct object_usage_entry *entry_of(struct counting *counting, struct span key)
{
	struct object_usage *const result = &counting->result;
	const struct span rest = span_slice(key, counting->params.prefix.len, key.len);
	const ptrdiff_t slash = span_find(rest, '/');
	const struct span name = slash < 0 ? rest : span_slice(rest, 0, (size_t)slash + 1);
	struct object_usage_entry *const last =
		result->count > 0 ? &result->entries[result->count - 1] : NULL;
	if (last != NULL && last->is_folder && span_equal(last->name, name))
		return last;
	if (result->count == counting->params.limit)
		return NULL;
	struct object_usage_entry *const entry = &result->entries[result->count++];
	entry->name = arena_copy(counting->call.arena, name);
	entry->is_folder = slash >= 0;
	return entry;
}

static void take_older(struct slice *slice, struct db_statement *scan)
{
	struct counting *const counting = slice->counting;
	struct version_older version;
	slice->full = counting->rows == OBJECT_USAGE_ROWS_MAX;
	if (slice->full)
		return;
	version_older_read(scan, &version);
	counting->result.older_versions++;
	counting->result.older_bytes += version.size;
	slice->left--;
	move_to(counting, version.key, version.sequence);
}

static void move_to(struct counting *counting, struct span key, int64_t sequence)
{
	counting->rows++;
	counting->position.sequence = sequence;
	buffer_reset(&counting->position.key);
	buffer_add_span(&counting->position.key, key);
}

/* All rows of one kind were read: moves to the other one, or returns true. */
static bool end_part(struct counting *counting)
{
	struct position *const position = &counting->position;
	if (position->is_older || !counting->params.counts_older)
		return true;
	position->is_older = true;
	position->sequence = 0;
	buffer_reset(&position->key);
	return false;
}

static struct span print_position(struct arena *arena, const struct position *position)
{
	const struct span key = buffer_span(&position->key);
	char hex[2 * POSITION_MAX_BYTES + 1];
	encode_hex(key, hex);
	return span_text(position->is_older
			? arena_format(arena, "o%" PRId64 "-%s", position->sequence, hex)
			: arena_format(arena, "c%s", hex));
}

static void object_usage_release(struct call *call)
{
	buffer_release(&((struct counting *)call)->position.key);
}
