#include "storage/backup/backup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "storage/backup/backup_internal.h"
#include "storage/backup/backup_source.h"

/* The journal leads to every change but for the second until its next snapshot is made. */
enum { SOURCE_TRIES = 60, SOURCE_PAUSE_MS = 500 };

struct round {
	struct backup *backup;
	struct backup_source source;
	struct backup_manifest manifest;
	struct backup_report *out;
	uint8_t hold[BACKUP_HOLD_ID_BYTES];
};

static int take_hold(struct round *round, struct error *err);
static int make_moment(struct round *round, struct error *err);
static int read_source(struct round *round, struct error *err);
static bool backup_knows(void *owner, const char *key);
static int check_goes_on(const struct backup *backup, struct error *err);
static int begin(struct round *round, struct error *err);
static void recall(struct backup *backup);
static int backup_confirm(void *taker, const struct backup_object *object, struct error *err);
static bool is_there_already(const struct round *round);
static int ship_all(struct round *round, struct error *err);
static int ship_file(struct round *round, const struct source_file *source, struct error *err);
static void merge_last(struct backup_file *file);
static int ship_piece(struct round *round, const struct source_file *source,
	struct backup_file *file, bool *out_is_read, struct error *err);
static void note_lack(struct round *round, const struct error *why);
static int put_manifest(struct round *round, struct error *err);

struct backup *backup_open(const struct backup_params *params, struct error *err)
{
	struct backup *backup = memory_new(sizeof(*backup));
	backup->params = *params;
	backup->known = backup_known_new();
	backup->own = backup_known_new();
	backup->piece = memory_new(BACKUP_PIECE_MAX_BYTES);
	backup->notes = backup_notes_open(params->files, params->folder, params->place, err);
	if (backup->notes != NULL)
		backup->target = backup_target_open(params->place, true, params->files, err);
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
	free(backup->piece);
	free(backup);
}

bool backup_is_far(const struct backup *backup)
{
	return backup->target->is_far;
}

int backup_round(struct backup *backup, struct backup_report *out, struct error *err)
{
	struct round round = {.backup = backup, .out = out};
	*out = (struct backup_report){.files = 0};
	if (backup_notes_renew(backup->notes, err) != 0 || take_hold(&round, err) != 0)
		return -1;
	int result = make_moment(&round, err);
	/* Only a hold that lasted until now proves that nothing went that the moment names. */
	struct error ended = {0};
	const struct backup_holder *holder = &backup->params.holder;
	if (holder->end(holder->owner, round.hold, &ended) != 0 && result == 0) {
		*err = ended;
		result = -1;
	}
	if (result == 0 && out->is_new)
		result = put_manifest(&round, err);
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

static int make_moment(struct round *round, struct error *err)
{
	if (read_source(round, err) != 0 || begin(round, err) != 0)
		return -1;
	round->out->is_new = !is_there_already(round);
	return round->out->is_new ? ship_all(round, err) : 0;
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

/* Once, before the first piece. */
static int begin(struct round *round, struct error *err)
{
	struct backup *backup = round->backup;
	struct backup_target *target = backup->target;
	if (backup->is_begun &&
		memcmp(backup->vault.store, round->source.store, sizeof(backup->vault.store)) != 0)
		return error_set(err, ERROR_INVALID, "There is another store in %s now.",
			backup->params.folder);
	if (backup->is_begun)
		return 0;
	backup->vault.identities = backup->params.identities;
	if (backup_vault_begin(&backup->vault, target, round->source.store,
		    backup->params.recipient, err) != 0 ||
		backup_moments_list(target, &backup->moments, err) != 0)
		return -1;
	recall(backup);
	if (target->ops->list(target, BACKUP_PACKS, backup_confirm, backup, err) != 0 ||
		target->ops->list(target, BACKUP_JOURNAL, backup_confirm, backup, err) != 0)
		return -1;
	backup->is_begun = true;
	return 0;
}

/* From the notes, and from the newest moment where that can be read. Without either all travels
 * again. */
static void recall(struct backup *backup)
{
	struct backup_manifest manifest = {.count = 0};
	struct error ignored;
	backup_notes_recall(backup->notes, backup->vault.store, backup->known);
	if (backup->moments.count > 0 &&
		backup_manifest_of(backup, &backup->moments.items[backup->moments.count - 1],
			&manifest, &ignored) == 0)
		backup_known_add_all(backup->known, &manifest);
	backup_manifest_release(&manifest);
}

static int backup_confirm(void *taker, const struct backup_object *object, struct error *err)
{
	struct backup *backup = taker;
	char key[BACKUP_KEY_BYTES];
	struct backup_piece piece;
	(void)err;
	if (backup_piece_parse(object->name, key, &piece) &&
		object->bytes == backup_vault_bytes(&backup->vault, piece.to - piece.from))
		backup_known_confirm(backup->known, key, &piece);
	return 0;
}

/* A start and each change have numbers of their own: a moment of the same numbers has the same
 * content. */
static bool is_there_already(const struct round *round)
{
	const struct backup_moments *moments = &round->backup->moments;
	const struct backup_moment *now = &round->source.moment;
	round->out->moment = *now;
	for (size_t i = moments->count; i-- > 0;)
		if (moments->items[i].life == now->life &&
			moments->items[i].change == now->change) {
			round->out->moment = moments->items[i];
			return true;
		}
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
	if (is_read && round->out->pieces > before)
		is_read = source_file_check(source, round->backup->params.folder, err) == 0;
	if (is_read)
		return 0;
	note_lack(round, err);
	return source->fd < 0 ? 0 : -1;
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
	char name[BACKUP_NAME_BYTES];
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
	backup_piece_name(file->key, &piece, name);
	if (backup_vault_put(&backup->vault, name, bytes, err) != 0)
		return -1;
	backup_known_add_there(backup->known, file->key, &piece);
	backup_known_add_there(backup->own, file->key, &piece);
	backup_notes_add(backup->notes, file->key, &piece);
	backup_file_add(file, &piece);
	round->out->pieces++;
	round->out->shipped += bytes.len;
	return 0;
}

static void note_lack(struct round *round, const struct error *why)
{
	struct backup_report *out = round->out;
	if (out->lacking++ == 0)
		snprintf(out->lack, sizeof(out->lack), "%s", why->text);
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
