/* A place that is not read rots unseen: a later round only looks at the names and lengths of what
 * is there. Pieces of several moments are read once. Only when one is lost are the manifests read
 * again, to tell which moments need it. */
#include "storage/backup/backup_verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/backup/backup_about.h"
#include "storage/backup/backup_fetch.h"
#include "storage/backup/backup_mark.h"
#include "storage/backup/backup_reader.h"
#include "storage/backup/backup_source.h"

enum { PATH_BYTES = 4096 };

struct verifying {
	const struct backup_params *params;
	struct backup_verified *out;
	struct backup_target *target;
	struct backup_vault vault;
	struct backup_reader reader;
	struct backup_notes *notes;
	struct backup_moments moments;
	struct backup_known *seen;
	struct backup_known *lost;
	struct backup_known *marked;
	struct buffer piece;
};

static int verify(struct verifying *verifying, struct error *err);
static int begin(struct verifying *verifying, struct error *err);
static int check_store(const struct verifying *verifying, struct error *err);
static int mend_about(struct verifying *verifying, struct error *err);
static int verify_held(struct verifying *verifying, struct error *err);
static int verify_all(struct verifying *verifying, struct error *err);
static int verify_moment(
	struct verifying *verifying, const struct backup_moment *moment, struct error *err);
static int read_manifest(struct verifying *verifying, const struct backup_moment *moment,
	struct backup_manifest *out, struct error *err);
static int mend_manifest(struct verifying *verifying, const struct backup_moment *moment,
	struct backup_manifest *out, struct error *err);
static int verify_file(
	struct verifying *verifying, const struct backup_file *file, struct error *err);
static int verify_piece(struct verifying *verifying, const char *key,
	const struct backup_piece *piece, struct error *err);
static int mend_piece(struct verifying *verifying, const char *key,
	const struct backup_piece *piece, struct error *err);
static bool read_source(
	struct verifying *verifying, const char *key, const struct backup_piece *piece);
static int find_damaged(struct verifying *verifying, struct error *err);
static int backup_verify_take_mark(
	void *taker, const char *key, int64_t changed_ms, struct error *err);
static int verify_mark(
	struct verifying *verifying, const struct source_file *pack, struct error *err);
static void add_damaged(struct verifying *verifying, const char *key, const char *why);
static int find_touched(struct verifying *verifying, struct error *err);
static bool needs_lost(
	const struct verifying *verifying, const struct backup_manifest *manifest);
static void add_touched(struct backup_verified *out, const struct backup_moment *moment);
static void add_name(struct backup_names *names, const char *text);

int backup_verify(
	const struct backup_params *params, struct backup_verified *out, struct error *err)
{
	struct verifying verifying = {.params = params, .out = out};
	*out = (struct backup_verified){.moments = 0};
	verifying.target = backup_target_open(params->place, false, params->files, err);
	if (verifying.target == NULL)
		return -1;
	verifying.target->tell = params->tell;
	verifying.target->owner = params->owner;
	verifying.notes = backup_notes_look(params->files, params->folder, params->place);
	verifying.seen = backup_known_new();
	verifying.lost = backup_known_new();
	verifying.marked = backup_known_new();
	buffer_init(&verifying.piece, BACKUP_PIECE_MAX_BYTES);
	const int result = verify(&verifying, err);
	backup_reader_end(&verifying.reader);
	backup_moments_release(&verifying.moments);
	buffer_release(&verifying.piece);
	backup_known_free(verifying.seen);
	backup_known_free(verifying.lost);
	backup_known_free(verifying.marked);
	backup_notes_close(verifying.notes);
	backup_target_free(verifying.target);
	return result;
}

void backup_verified_release(struct backup_verified *verified)
{
	free(verified->mended.items);
	free(verified->lost.items);
	free(verified->touched.items);
	backup_lacks_release(&verified->damaged);
	*verified = (struct backup_verified){.moments = 0};
}

static int verify(struct verifying *verifying, struct error *err)
{
	if (begin(verifying, err) != 0)
		return -1;
	verifying->out->moments = verifying->moments.count;
	return verify_held(verifying, err);
}

/* A place that cannot be written cannot be mended either, which the first piece tells. */
static int begin(struct verifying *verifying, struct error *err)
{
	struct error ignored;
	verifying->vault.identities = verifying->params->identities;
	if (backup_vault_find(&verifying->vault, verifying->target, err) != 0 ||
		check_store(verifying, err) != 0 || mend_about(verifying, err) != 0)
		return -1;
	verifying->out->needs_identity =
		verifying->vault.is_sealed && verifying->params->identities == NULL;
	if (verifying->out->needs_identity)
		return error_set(err, ERROR_DENIED,
			"The backup is encrypted, and can be compared only by whoever opens it: name the"
			" file with its secret key with --identity");
	(void)backup_reader_begin(&verifying->reader, verifying->target, &ignored);
	return backup_moments_list(verifying->target, &verifying->moments, err);
}

/* The manifests have proven that the place is this store's. */
static int mend_about(struct verifying *verifying, struct error *err)
{
	if (verifying->vault.about.kind == ERROR_NONE)
		return 0;
	if (backup_about_put(&verifying->vault, err) != 0)
		return -1;
	verifying->vault.about.kind = ERROR_NONE;
	add_name(&verifying->out->mended, BACKUP_ABOUT);
	return 0;
}

static int check_store(const struct verifying *verifying, struct error *err)
{
	struct backup_moment ignored;
	uint8_t store[BACKUP_STORE_BYTES];
	if (backup_source_peek(verifying->params->folder, &ignored, store, err) != 0)
		return -1;
	return memcmp(store, verifying->vault.store, sizeof(store)) == 0
		? 0
		: error_set(err, ERROR_INVALID, "The backups there are of another store.");
}

/* gc removes nothing meanwhile. What a hold that ended early has let go is told as lost. */
static int verify_held(struct verifying *verifying, struct error *err)
{
	const struct backup_holder *holder = &verifying->params->holder;
	char name[16 + BACKUP_ID_BYTES] = "verify-";
	uint8_t hold[BACKUP_HOLD_ID_BYTES];
	struct error ignored;
	backup_notes_id(verifying->params->place, name + strlen(name));
	if (holder->take(holder->owner, name, hold, err) != 0)
		return -1;
	int result = verify_all(verifying, err);
	if (result == 0)
		result = find_damaged(verifying, err);
	(void)holder->end(holder->owner, hold, &ignored);
	if (result == 0)
		result = find_touched(verifying, err);
	return result;
}

static int verify_all(struct verifying *verifying, struct error *err)
{
	int result = 0;
	for (size_t i = verifying->moments.count; i-- > 0 && result == 0;)
		result = verify_moment(verifying, &verifying->moments.items[i], err);
	return result;
}

static int verify_moment(
	struct verifying *verifying, const struct backup_moment *moment, struct error *err)
{
	struct backup_manifest manifest;
	int result = read_manifest(verifying, moment, &manifest, err);
	for (size_t i = 0; i < manifest.count && result == 0; i++)
		result = verify_file(verifying, &manifest.files[i], err);
	backup_manifest_release(&manifest);
	return result;
}

/* One that is lost, or was pruned meanwhile, gives no files. */
static int read_manifest(struct verifying *verifying, const struct backup_moment *moment,
	struct backup_manifest *out, struct error *err)
{
	if (backup_vault_manifest(&verifying->vault, moment, out, err) == 0)
		return 0;
	backup_manifest_release(out);
	return err->kind == ERROR_CORRUPT    ? mend_manifest(verifying, moment, out, err)
		: err->kind == ERROR_NOT_FOUND ? backup_vault_check(&verifying->vault, err)
					       : -1;
}

/* From the notes, which have it as it was put. */
static int mend_manifest(struct verifying *verifying, const struct backup_moment *moment,
	struct backup_manifest *out, struct error *err)
{
	struct buffer text;
	char name[BACKUP_NAME_BYTES];
	struct error ignored;
	backup_moment_name(moment, name);
	if (backup_notes_manifest(verifying->notes, moment, out, &ignored) != 0 ||
		memcmp(out->store, verifying->vault.store, sizeof(out->store)) != 0) {
		backup_manifest_release(out);
		add_name(&verifying->out->lost, name);
		add_touched(verifying->out, moment);
		return 0;
	}
	buffer_init(&text, BACKUP_OBJECT_MAX_BYTES);
	backup_manifest_print(out, &text);
	int result = buffer_check(&text, "the manifest", err);
	if (result == 0)
		result = backup_vault_put(&verifying->vault, name, buffer_span(&text), err);
	buffer_release(&text);
	if (result == 0)
		add_name(&verifying->out->mended, name);
	return result;
}

static int verify_file(
	struct verifying *verifying, const struct backup_file *file, struct error *err)
{
	const struct backup_params *params = verifying->params;
	for (size_t i = 0; i < file->count; i++) {
		const struct backup_piece *piece = &file->pieces[i];
		if (!params->goes_on(params->owner))
			return error_set(err, ERROR_BUSY, "It was interrupted.");
		backup_reader_renew(&verifying->reader);
		if (backup_known_has_piece(verifying->seen, file->key, piece))
			continue;
		backup_known_add(verifying->seen, file->key, piece);
		if (verify_piece(verifying, file->key, piece, err) != 0)
			return -1;
	}
	return 0;
}

static int verify_piece(struct verifying *verifying, const char *key,
	const struct backup_piece *piece, struct error *err)
{
	struct backup_verified *out = verifying->out;
	if (backup_fetch_piece(&verifying->vault, key, piece, &verifying->piece, err) == 0) {
		out->pieces++;
		out->bytes += piece->to - piece->from;
		return 0;
	}
	return err->kind == ERROR_CORRUPT ? mend_piece(verifying, key, piece, err) : -1;
}

static int mend_piece(struct verifying *verifying, const char *key,
	const struct backup_piece *piece, struct error *err)
{
	char name[BACKUP_NAME_BYTES];
	backup_piece_name(key, piece, name);
	if (!read_source(verifying, key, piece)) {
		backup_known_add(verifying->lost, key, piece);
		add_name(&verifying->out->lost, name);
		return 0;
	}
	if (backup_vault_put(&verifying->vault, name, buffer_span(&verifying->piece), err) != 0)
		return -1;
	add_name(&verifying->out->mended, name);
	return 0;
}

/* Exactly these bytes. */
static bool read_source(
	struct verifying *verifying, const char *key, const struct backup_piece *piece)
{
	char name[BACKUP_NAME_BYTES];
	char path[PATH_BYTES];
	uint8_t digest[BLAKE3_BYTES];
	struct error ignored;
	const size_t len = (size_t)(piece->to - piece->from);
	const struct source_file source = {.path = path, .fd = -1};
	buffer_reset(&verifying->piece);
	uint8_t *room = buffer_reserve(&verifying->piece, len);
	if (room == NULL || !backup_key_path(key, name))
		return false;
	snprintf(path, sizeof(path), "%s/%s", verifying->params->folder, name);
	if (source_file_read(&source, piece->from, room, len, &ignored) != 0)
		return false;
	buffer_commit(&verifying->piece, len);
	blake3(NULL, buffer_span(&verifying->piece), digest);
	return memcmp(digest, piece->digest, sizeof(digest)) == 0;
}

/* Of what the moments name: packs that are marked, and those with chunks that the server knows to
 * be damaged. */
static int find_damaged(struct verifying *verifying, struct error *err)
{
	struct backup_source packs;
	struct error why;
	int result = backup_source_read_packs(verifying->params->folder, &packs, err);
	if (result == 0)
		result = backup_marks_each(
			verifying->target, backup_verify_take_mark, verifying, err);
	for (size_t i = 0; i < packs.count && result == 0; i++) {
		const struct source_file *pack = &packs.files[i];
		if (backup_known_has(verifying->marked, pack->key))
			result = verify_mark(verifying, pack, err);
		error_set(&why, ERROR_CORRUPT, "%u chunks of it are damaged in the store.",
			pack->damaged);
		if (pack->damaged > 0)
			add_damaged(verifying, pack->key, why.text);
	}
	backup_source_release(&packs);
	return result;
}

static int backup_verify_take_mark(
	void *taker, const char *key, int64_t changed_ms, struct error *err)
{
	struct verifying *verifying = taker;
	const struct backup_piece byte = {.to = 1};
	(void)changed_ms, (void)err;
	backup_known_add(verifying->marked, key, &byte);
	add_damaged(verifying, key, "It described itself wrongly when it was backed up.");
	return 0;
}

static int verify_mark(
	struct verifying *verifying, const struct source_file *pack, struct error *err)
{
	char name[BACKUP_NAME_BYTES];
	bool is_mended = false;
	if (backup_mark_mend(&verifying->vault, pack, verifying->params->folder, &is_mended, err) !=
		0)
		return -1;
	backup_mark_name(pack->key, name);
	if (is_mended)
		add_name(&verifying->out->mended, name);
	return 0;
}

static void add_damaged(struct verifying *verifying, const char *key, const char *why)
{
	char path[BACKUP_NAME_BYTES];
	if (backup_known_has(verifying->seen, key) && backup_key_path(key, path))
		backup_lacks_add(&verifying->out->damaged, path, why);
}

static int find_touched(struct verifying *verifying, struct error *err)
{
	const struct backup_moments *moments = &verifying->moments;
	int result = 0;
	if (verifying->out->lost.count == 0)
		return 0;
	for (size_t i = 0; i < moments->count && result == 0; i++) {
		struct backup_manifest manifest;
		result = backup_vault_manifest(
			&verifying->vault, &moments->items[i], &manifest, err);
		if (result == 0 && needs_lost(verifying, &manifest))
			add_touched(verifying->out, &moments->items[i]);
		backup_manifest_release(&manifest);
		if (result != 0 && (err->kind == ERROR_CORRUPT || err->kind == ERROR_NOT_FOUND))
			result = 0; /* told before, or pruned */
	}
	return result;
}

static bool needs_lost(const struct verifying *verifying, const struct backup_manifest *manifest)
{
	for (size_t i = 0; i < manifest->count; i++)
		for (size_t j = 0; j < manifest->files[i].count; j++)
			if (backup_known_has_piece(verifying->lost, manifest->files[i].key,
				    &manifest->files[i].pieces[j]))
				return true;
	return false;
}

static void add_touched(struct backup_verified *out, const struct backup_moment *moment)
{
	char text[BACKUP_MOMENT_BYTES];
	backup_moment_print(moment, text);
	add_name(&out->touched, text);
}

static void add_name(struct backup_names *names, const char *text)
{
	names->items = memory_make_room(
		names->items, names->count, &names->capacity, sizeof(*names->items));
	snprintf(names->items[names->count++].text, sizeof(names->items->text), "%s", text);
}
