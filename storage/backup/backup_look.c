/* What a run knows of its place: that it is there and is of this store, and which moments, pieces
 * and marks it has. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "storage/backup/backup_internal.h"
#include "storage/backup/backup_mark.h"

/* What somebody removes at the place is noticed after so long. */
enum { LOOK_MS = 60 * 1000 };

static int tell_lost(struct backup *backup, struct error *err);
static void recall(struct backup *backup);
static int backup_confirm(void *taker, const struct backup_object *object, struct error *err);

/* A folder that had moments and is missing is a disk that is not mounted. */
struct backup_target *backup_look_open(struct backup *backup, struct error *err)
{
	const struct backup_params *params = &backup->params;
	struct backup_target *target = backup_target_open(params->place,
		!backup_notes_had_moments(backup->notes), params->files, err);
	if (target == NULL)
		(void)tell_lost(backup, err);
	return target;
}

int backup_look_check(struct backup *backup, const uint8_t store[BACKUP_STORE_BYTES],
	struct error *err)
{
	if (backup->is_begun)
		return backup_vault_renew(&backup->vault, err) == 0 ? 0 : tell_lost(backup, err);
	backup->vault.identities = backup->params.identities;
	if (backup_vault_begin(&backup->vault, backup->target, store,
		    backup->params.recipient, backup_notes_had_moments(backup->notes), err) != 0)
		return tell_lost(backup, err);
	backup->is_begun = true;
	return 0;
}

int backup_look(struct backup *backup, struct error *err)
{
	struct backup_target *target = backup->target;
	backup_moments_release(&backup->moments);
	backup_known_doubt(backup->known);
	if (backup_moments_list(target, &backup->moments, err) != 0)
		return -1;
	recall(backup);
	if (target->ops->list(target, BACKUP_PACKS, backup_confirm, backup, err) != 0 ||
		target->ops->list(target, BACKUP_JOURNAL, backup_confirm, backup, err) != 0 ||
		backup_marks_each(target, backup_look_take_mark, backup, err) != 0)
		return -1;
	backup->look_due_ms = clock_monotonic_ms() + LOOK_MS;
	return 0;
}

int backup_look_take_mark(void *backup, const char *key, int64_t changed_ms, struct error *err)
{
	const struct backup_piece byte = {.to = 1};
	(void)changed_ms, (void)err;
	backup_known_add(((struct backup *)backup)->marked, key, &byte);
	return 0;
}

static int tell_lost(struct backup *backup, struct error *err)
{
	const struct error why = *err;
	if (why.kind != ERROR_NOT_FOUND ||
		(!backup->is_begun && !backup_notes_had_moments(backup->notes)))
		return -1;
	return error_set(err, ERROR_NOT_FOUND,
		"%.200s: %.300s Is a disk not mounted? Nothing was written there. To begin anew in"
		" an empty place, remove the notes of it: rm -r %.200s",
		backup->params.place, why.text, backup_notes_folder(backup->notes));
}

/* From the notes, and from the newest moment where that can be read. What neither has travels
 * again. Of two digests of a piece that of the newer moment is right: the piece was lost, and put
 * again with other bytes. */
static void recall(struct backup *backup)
{
	const struct backup_moments *moments = &backup->moments;
	struct error ignored;
	for (size_t i = moments->count; i-- > 0;) {
		struct backup_manifest manifest = {.count = 0};
		const bool is_known = i + 1 == moments->count
			? backup_manifest_of(backup, &moments->items[i], &manifest, &ignored) == 0
			: backup_notes_manifest(backup->notes, &moments->items[i], &manifest,
				  &ignored) == 0;
		if (is_known && memcmp(manifest.store, backup->vault.store,
					sizeof(manifest.store)) == 0)
			backup_known_need_all(backup->known, &manifest);
		backup_manifest_release(&manifest);
	}
	backup_notes_recall(backup->notes, backup->vault.store, backup->known);
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
