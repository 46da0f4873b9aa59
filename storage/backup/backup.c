#include "storage/backup/backup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "storage/backup/backup_internal.h"
#include "storage/backup/backup_mark.h"
#include "storage/backup/backup_source.h"

/* The journal leads to every change but for the second until its next snapshot is made. */
enum { SOURCE_TRIES = 60, SOURCE_PAUSE_MS = 500 };

static const char MENDS[] = "`deltabucketd scrub` mends it";

/* Whether the place has a moment of this change, and whether what it needs is known here. */
enum same { SAME_NONE, SAME_UNREAD, SAME_READ };

struct round {
	struct backup *backup;
	struct backup_source source;
	struct backup_manifest manifest;
	struct backup_report *out;
	uint8_t hold[BACKUP_HOLD_ID_BYTES];
	bool looks; /* what is there was listed in this round */
};

static int take_hold(struct round *round, struct error *err);
static int make_moment(struct round *round, struct error *err);
static int read_source(struct round *round, struct error *err);
static bool backup_knows(void *owner, const char *key);
static int check_goes_on(const struct backup *backup, struct error *err);
static int begin(struct round *round, struct error *err);
static enum same find_same(const struct round *round, struct backup_manifest *out);
static int ship_missing(struct round *round, struct error *err);
static int ship_missing_of(
	struct round *round, const struct source_file *source, struct error *err);
static bool is_whole(const struct backup *backup, const struct backup_manifest *manifest);
static bool has_all(const struct backup *backup, const struct backup_manifest *manifest);
static bool has_more(const struct backup_manifest *manifest, const struct backup_manifest *before);
static int ship_all(struct round *round, struct error *err);
static int ship_file(struct round *round, const struct source_file *source, struct error *err);
static void merge_last(struct backup_file *file);
static int ship_piece(struct round *round, const struct source_file *source,
	struct backup_file *file, bool *out_is_read, struct error *err);
static int put_piece(struct round *round, const char *key, const struct backup_piece *piece,
	struct span bytes, struct error *err);
static int check_pack(struct round *round, const struct source_file *source, struct error *err);
static void note_damage(struct round *round, const struct source_file *source);
static void note_lack(struct round *round, const char *key, const char *why);
static int put_manifest(struct round *round, struct error *err);

struct backup *backup_open(const struct backup_params *params, struct error *err)
{
	struct backup *backup = memory_new(sizeof(*backup));
	backup->params = *params;
	backup->known = backup_known_new();
	backup->own = backup_known_new();
	backup->marked = backup_known_new();
	backup->piece = memory_new(BACKUP_PIECE_MAX_BYTES);
	backup->notes = backup_notes_open(params->files, params->folder, params->place, err);
	if (backup->notes != NULL)
		backup->target = backup_look_open(backup, err);
	if (backup->target == NULL) {
		backup_close(backup);
		return NULL;
	}
	backup->target->tell = params->tell;
	backup->target->owner = params->owner;
	return backup;
}

void backup_close(struct backup *backup)
{
	if (backup == NULL)
		return;
	backup_moments_release(&backup->moments);
	backup_target_free(backup->target);
	backup_notes_close(backup->notes);
	backup_known_free(backup->known);
	backup_known_free(backup->own);
	backup_known_free(backup->marked);
	backup_lacks_release(&backup->lacks);
	free(backup->piece);
	free(backup);
}

bool backup_is_far(const struct backup *backup)
{
	return backup->target->is_far;
}

bool backup_is_current(struct backup *backup)
{
	struct backup_moment now;
	uint8_t store[BACKUP_STORE_BYTES];
	struct backup_moments moments = {.count = 0};
	struct error ignored;
	if (backup_source_peek_whole(backup->params.folder, &now, store, &ignored) != 0 ||
		backup_moments_list(backup->target, &moments, &ignored) != 0)
		return false;
	bool result = false;
	if (moments.count > 0)
		result = moments.items[moments.count - 1].life == now.life &&
			moments.items[moments.count - 1].change == now.change;
	backup_moments_release(&moments);
	return result;
}

int backup_round(struct backup *backup, struct backup_report *out, struct error *err)
{
	struct round round = {.backup = backup, .out = out};
	*out = (struct backup_report){.unnoted = "", .lacks = &backup->lacks};
	backup_lacks_release(&backup->lacks);
	if (backup_notes_renew(backup->notes, err) != 0 || take_hold(&round, err) != 0)
		return -1;
	out->unnoted = backup_notes_lack(backup->notes);
	int result = make_moment(&round, err);
	/* Only a hold that lasted until now proves that nothing went that the moment names. */
	struct error ended = {0};
	const struct backup_holder *holder = &backup->params.holder;
	if (holder->end(holder->owner, round.hold, &ended) != 0 && result == 0) {
		*err = ended;
		result = -1;
	}
	if (result == 0 && out->is_new)
		result = backup_look_check(backup, round.source.store, err);
	if (result == 0 && out->is_new)
		result = put_manifest(&round, err);
	if (result != 0)
		backup->look_due_ms = 0;
	backup_source_release(&round.source);
	backup_manifest_release(&round.manifest);
	return result;
}

int backup_manifest_of(struct backup *backup, const struct backup_moment *moment,
	struct backup_manifest *out, struct error *err)
{
	if (backup_notes_manifest(backup->notes, moment, out, err) == 0 &&
		memcmp(out->store, backup->vault.store, sizeof(out->store)) == 0)
		return 0;
	backup_manifest_release(out);
	return backup_vault_manifest(&backup->vault, moment, out, err);
}

static int take_hold(struct round *round, struct error *err)
{
	const struct backup_holder *holder = &round->backup->params.holder;
	char name[8 + BACKUP_ID_BYTES] = "to-";
	backup_notes_id(round->backup->params.place, name + strlen(name));
	return holder->take(holder->owner, name, round->hold, err);
}

/* A moment of this change stays the only one, unless it lacks what another one would have. */
static int make_moment(struct round *round, struct error *err)
{
	struct backup_manifest same;
	struct backup_report *out = round->out;
	if (read_source(round, err) != 0 || begin(round, err) != 0 || ship_missing(round, err) != 0)
		return -1;
	const enum same found = find_same(round, &same);
	int result = 0;
	if (found == SAME_NONE || (found == SAME_READ && !is_whole(round->backup, &same)))
		result = ship_all(round, err);
	for (size_t i = 0; i < round->source.count; i++)
		note_damage(round, &round->source.files[i]);
	out->is_new = result == 0 &&
		(found == SAME_NONE ||
			(found == SAME_READ &&
				(!has_all(round->backup, &same) ||
					has_more(&round->manifest, &same))));
	if (out->is_new)
		out->moment = round->source.moment;
	backup_manifest_release(&same);
	return result;
}

static int read_source(struct round *round, struct error *err)
{
	const struct source_options options = {.folder = round->backup->params.folder,
		.knows = backup_knows,
		.owner = round->backup};
	for (int i = 0;; i++) {
		if (backup_source_read(&options, &round->source, err) == 0)
			return 0;
		backup_source_release(&round->source);
		if (err->kind != ERROR_BUSY || i == SOURCE_TRIES ||
			check_goes_on(round->backup, err) != 0)
			return -1;
		nanosleep(&(struct timespec){.tv_nsec = SOURCE_PAUSE_MS * 1000000L}, NULL);
	}
}

static bool backup_knows(void *owner, const char *key)
{
	return backup_known_has(((struct backup *)owner)->known, key);
}

static int check_goes_on(const struct backup *backup, struct error *err)
{
	const struct backup_params *params = &backup->params;
	return params->goes_on(params->owner)
		? 0
		: error_set(err, ERROR_BUSY,
			  "It was interrupted. What is there stays, and the next backup goes on with it.");
}

/* Before the first piece: in each round the place may be another one, or not be there. */
static int begin(struct round *round, struct error *err)
{
	struct backup *backup = round->backup;
	if (backup->is_begun &&
		memcmp(backup->vault.store, round->source.store, sizeof(backup->vault.store)) != 0)
		return error_set(err, ERROR_INVALID, "There is another store in %s now.",
			backup->params.folder);
	if (backup_look_check(backup, round->source.store, err) != 0)
		return -1;
	round->looks = clock_monotonic_ms() >= backup->look_due_ms;
	return round->looks ? backup_look(backup, err) : 0;
}

/* A start and each change have numbers of their own: a moment of the same numbers has the same
 * content. A manifest that is damaged or gone is as if there were none. */
static enum same find_same(const struct round *round, struct backup_manifest *out)
{
	const struct backup_moments *moments = &round->backup->moments;
	const struct backup_moment *now = &round->source.moment;
	struct error why = {0};
	*out = (struct backup_manifest){.count = 0};
	round->out->moment = *now;
	for (size_t i = moments->count; i-- > 0;) {
		const struct backup_moment *moment = &moments->items[i];
		if (moment->life != now->life || moment->change != now->change)
			continue;
		const bool is_read = backup_manifest_of(round->backup, moment, out, &why) == 0;
		if (!is_read)
			backup_manifest_release(out);
		if (!is_read && (why.kind == ERROR_CORRUPT || why.kind == ERROR_NOT_FOUND))
			continue;
		round->out->moment = *moment;
		return is_read ? SAME_READ : SAME_UNREAD;
	}
	return SAME_NONE;
}

/* What the moments there need and the place has lost, under the names that it had. */
static int ship_missing(struct round *round, struct error *err)
{
	const struct backup_source *source = &round->source;
	for (size_t i = 0; i < source->count && round->looks; i++)
		if (ship_missing_of(round, &source->files[i], err) != 0)
			return -1;
	if (round->looks)
		round->out->missing = backup_known_count_missing(round->backup->known);
	return 0;
}

/* Only exactly the bytes that were there. */
static int ship_missing_of(
	struct round *round, const struct source_file *source, struct error *err)
{
	struct backup *backup = round->backup;
	struct backup_piece piece;
	size_t at = 0;
	while (backup_known_next_missing(backup->known, source->key, &at, &piece)) {
		uint8_t digest[BLAKE3_BYTES];
		struct error ignored;
		const struct span bytes =
			span_of(backup->piece, (size_t)(piece.to - piece.from));
		if (check_goes_on(backup, err) != 0)
			return -1;
		if (piece.to > source->length || source_file_read(source, piece.from,
							 backup->piece, bytes.len, &ignored) != 0)
			continue;
		blake3(NULL, bytes, digest);
		if (memcmp(digest, piece.digest, sizeof(digest)) == 0 &&
			put_piece(round, source->key, &piece, bytes, err) != 0)
			return -1;
	}
	return 0;
}

/* Nothing of it is missing at the place, and nothing could not be read. */
static bool is_whole(const struct backup *backup, const struct backup_manifest *manifest)
{
	for (size_t i = 0; i < manifest->count; i++)
		if (backup_file_covered(&manifest->files[i]) < manifest->files[i].length)
			return false;
	return has_all(backup, manifest);
}

static bool has_all(const struct backup *backup, const struct backup_manifest *manifest)
{
	for (size_t i = 0; i < manifest->count; i++)
		for (size_t j = 0; j < manifest->files[i].count; j++)
			if (!backup_known_is_there(backup->known, manifest->files[i].key,
				    &manifest->files[i].pieces[j]))
				return false;
	return true;
}

/* Bytes of a file of both that `before` could not read. */
static bool has_more(const struct backup_manifest *manifest, const struct backup_manifest *before)
{
	for (size_t i = 0; i < manifest->count; i++)
		for (size_t j = 0; j < before->count; j++)
			if (strcmp(manifest->files[i].key, before->files[j].key) == 0 &&
				backup_file_covered(&manifest->files[i]) >
					backup_file_covered(&before->files[j]))
				return true;
	return false;
}

static int ship_all(struct round *round, struct error *err)
{
	const struct backup_source *source = &round->source;
	struct backup_manifest *manifest = &round->manifest;
	memcpy(manifest->store, source->store, sizeof(manifest->store));
	manifest->moment = source->moment;
	manifest->schema = source->schema;
	manifest->sums = source->sums;
	for (size_t i = 0; i < source->count; i++)
		if (ship_file(round, &source->files[i], err) != 0)
			return -1;
	return 0;
}

/* A pack that cannot be read is damage of the store, and no reason to go without a backup of the
 * rest. The journal must be whole. */
static int ship_file(struct round *round, const struct source_file *source, struct error *err)
{
	struct backup_file *file =
		backup_manifest_add(&round->manifest, source->key, source->length);
	bool is_read = true;
	const uint64_t before = round->out->pieces;
	round->out->files++;
	round->out->bytes += source->length;
	backup_known_fill(round->backup->known, file);
	if (backup_file_covered(file) < file->length)
		merge_last(file);
	while (is_read && backup_file_covered(file) < file->length)
		if (ship_piece(round, source, file, &is_read, err) != 0)
			return -1;
	if (!is_read)
		note_lack(round, source->key, err->text);
	if (!is_read && source->fd >= 0)
		return -1;
	return is_read && round->out->pieces > before ? check_pack(round, source, err) : 0;
}

/* A pack that describes itself wrongly is marked, so that a restore and each later run know it. */
static int check_pack(struct round *round, const struct source_file *source, struct error *err)
{
	struct backup *backup = round->backup;
	const char *folder = backup->params.folder;
	struct error why = {0};
	if (source_file_check(source, folder, &why) == 0)
		return 0;
	error_advise(&why, "%s", MENDS);
	note_lack(round, source->key, why.text);
	if (backup_mark_put(&backup->vault, source, folder, err) != 0)
		return -1;
	return backup_look_take_mark(backup, source->key, 0, err);
}

/* What an earlier run has shipped damaged, or the server knows to be so. */
static void note_damage(struct round *round, const struct source_file *source)
{
	const struct backup *backup = round->backup;
	struct error why = {0};
	error_set(&why, ERROR_CORRUPT, "It described itself wrongly when it was shipped.");
	if (backup_known_has(backup->marked, source->key)) {
		if (source_file_check(source, backup->params.folder, &why) != 0)
			error_advise(&why, "%s", MENDS);
		note_lack(round, source->key, why.text);
	}
	if (source->damaged == 0)
		return;
	error_set(&why, ERROR_CORRUPT,
		"%u chunks of it are damaged; `deltabucket damage` says which keys and steps need them.",
		source->damaged);
	note_lack(round, source->key, why.text);
}

/* A file that grows leaves small pieces. Each time a piece is no larger than what follows on it,
 * the two travel as one: so a file has few pieces, and each byte travels a few times at most. */
static void merge_last(struct backup_file *file)
{
	while (file->count > 0) {
		const struct backup_piece *last = &file->pieces[file->count - 1];
		if (last->to - last->from > file->length - last->to ||
			file->length - last->from > BACKUP_PIECE_MAX_BYTES)
			return;
		file->count--;
	}
}

static int ship_piece(struct round *round, const struct source_file *source,
	struct backup_file *file, bool *out_is_read, struct error *err)
{
	struct backup *backup = round->backup;
	struct backup_piece piece = {.from = backup_file_covered(file), .to = file->length};
	if (piece.to - piece.from > BACKUP_PIECE_MAX_BYTES)
		piece.to = piece.from + BACKUP_PIECE_MAX_BYTES;
	const struct span bytes = span_of(backup->piece, (size_t)(piece.to - piece.from));
	if (check_goes_on(backup, err) != 0)
		return -1;
	*out_is_read = source_file_read(source, piece.from, backup->piece, bytes.len, err) == 0;
	if (!*out_is_read)
		return 0;
	blake3(NULL, bytes, piece.digest);
	if (put_piece(round, file->key, &piece, bytes, err) != 0)
		return -1;
	backup_file_add(file, &piece);
	return 0;
}

static int put_piece(struct round *round, const char *key, const struct backup_piece *piece,
	struct span bytes, struct error *err)
{
	struct backup *backup = round->backup;
	char name[BACKUP_NAME_BYTES];
	backup_piece_name(key, piece, name);
	if (backup_vault_put(&backup->vault, name, bytes, err) != 0)
		return -1;
	backup_known_add_there(backup->known, key, piece);
	backup_known_add_there(backup->own, key, piece);
	backup_notes_add(backup->notes, key, piece);
	round->out->pieces++;
	round->out->shipped += bytes.len;
	return 0;
}

static void note_lack(struct round *round, const char *key, const char *why)
{
	char path[BACKUP_NAME_BYTES];
	if (backup_key_path(key, path))
		backup_lacks_add(&round->backup->lacks, path, why);
}

static int put_manifest(struct round *round, struct error *err)
{
	struct backup *backup = round->backup;
	struct buffer text;
	char name[BACKUP_NAME_BYTES];
	buffer_init(&text, BACKUP_OBJECT_MAX_BYTES);
	backup_manifest_print(&round->manifest, &text);
	backup_moment_name(&round->manifest.moment, name);
	int result = buffer_check(&text, "the manifest", err);
	if (result == 0)
		result = backup_vault_put(&backup->vault, name, buffer_span(&text), err);
	if (result == 0) {
		backup_moments_add(&backup->moments, &round->manifest.moment);
		backup_notes_keep(backup->notes, &round->manifest.moment, buffer_span(&text));
	}
	buffer_release(&text);
	return result;
}
