/* The order is what makes it safe: the manifests of all moments that stay are read first, then the
 * other moments go, for good, and then the pieces that none of the manifests names. So no moment
 * ever names a piece that was removed, nor does one that a power cut brings back.
 *
 * A piece that no moment names may be one that a run under way has just put. A run ends after
 * BACKUP_HOLD_MS, so older ones are nobody's.
 *
 * Right before something goes, a look tells whether somebody restores from the place: then it
 * stays. A restore that came a moment later finds its moment gone, not its pieces alone. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "storage/backup/backup_internal.h"
#include "storage/backup/backup_mark.h"
#include "storage/backup/backup_reader.h"

/* The clock of the target may be an hour off. */
static const int64_t RUN_MAX_MS = (int64_t)BACKUP_HOLD_MS + 60 * 60 * 1000;

struct pruning {
	struct backup *backup;
	struct backup_known *named; /* by the moments that stay */
	struct backup_pruned *out;
	struct backup_piece *pieces; /* to remove */
	char (*keys)[BACKUP_KEY_BYTES];
	size_t count;
	size_t piece_capacity;
	size_t key_capacity;
};

static bool *choose(const struct backup *backup);
static bool all_stay(const struct backup *backup, const bool *stays);
static int remove_moments(
	struct backup *backup, const bool *stays, struct backup_pruned *out, struct error *err);
static int remove_moment(
	struct backup *backup, const struct backup_moment *moment, struct error *err);
static int list_again(struct backup *backup, struct error *err);
static int read_named(struct pruning *pruning, const bool *stays, struct error *err);
static int sweep(struct pruning *pruning, const char *kind, struct error *err);
static int backup_prune_take(void *taker, const struct backup_object *object, struct error *err);
static int backup_prune_mark(void *taker, const char *key, int64_t changed_ms, struct error *err);
static bool is_nobodys(const struct pruning *pruning, const char *key,
	const struct backup_piece *piece, int64_t changed_ms);
static int remove_pieces(struct pruning *pruning, struct error *err);

int backup_thin(struct backup *backup, struct backup_pruned *out, struct error *err)
{
	*out = (struct backup_pruned){.moments = 0};
	bool *stays = choose(backup);
	const int result = remove_moments(backup, stays, out, err);
	free(stays);
	return result;
}

int backup_prune(struct backup *backup, struct backup_pruned *out, struct error *err)
{
	struct pruning pruning = {.backup = backup, .out = out, .named = backup_known_new()};
	*out = (struct backup_pruned){.moments = 0};
	bool *stays = NULL;
	int result = list_again(backup, err);
	if (result == 0) {
		stays = choose(backup);
		result = read_named(&pruning, stays, err);
	}
	if (result == 0)
		result = remove_moments(backup, stays, out, err);
	if (result == 0)
		result = sweep(&pruning, BACKUP_PACKS, err);
	if (result == 0)
		result = sweep(&pruning, BACKUP_JOURNAL, err);
	if (result == 0 && out->reader[0] == '\0')
		result = backup_marks_each(backup->target, backup_prune_mark, &pruning, err);
	free(stays);
	free(pruning.pieces);
	free(pruning.keys);
	backup_known_free(pruning.named);
	return result;
}

/* Which moments stay: the newest of each stretch of time, and of these the newest `keep`. */
static bool *choose(const struct backup *backup)
{
	const struct backup_params *params = &backup->params;
	const struct backup_moments *moments = &backup->moments;
	bool *stays = memory_new_array(moments->count + 1, sizeof(*stays));
	uint64_t kept = 0;
	int64_t last = -1; /* the stretch of the last one that stays */
	for (size_t i = moments->count; i-- > 0;) {
		const int64_t stretch =
			params->spacing_ms > 0 ? moments->items[i].made_ms / params->spacing_ms : 0;
		stays[i] = (params->spacing_ms == 0 || kept == 0 || stretch != last) &&
			(params->keep == 0 || kept < params->keep);
		kept += stays[i];
		last = stays[i] ? stretch : last;
	}
	return stays;
}

static bool all_stay(const struct backup *backup, const bool *stays)
{
	for (size_t i = 0; i < backup->moments.count; i++)
		if (!stays[i])
			return false;
	return true;
}

static int remove_moments(
	struct backup *backup, const bool *stays, struct backup_pruned *out, struct error *err)
{
	struct backup_moments *moments = &backup->moments;
	size_t left = 0;
	out->left = moments->count;
	if (all_stay(backup, stays))
		return 0;
	int result = backup_reader_find(backup->target, out->reader, err);
	if (out->reader[0] != '\0')
		return 0;
	for (size_t i = 0; i < moments->count; i++) {
		const struct backup_moment moment = moments->items[i];
		const bool goes = !stays[i] && result == 0;
		if (goes)
			result = remove_moment(backup, &moment, err);
		out->moments += goes && result == 0;
		if (!goes || result != 0)
			moments->items[left++] = moment;
	}
	moments->count = left;
	out->left = left;
	if (result == 0 && out->moments > 0)
		result = backup->target->ops->settle(backup->target, BACKUP_MOMENTS, err);
	return result;
}

static int remove_moment(
	struct backup *backup, const struct backup_moment *moment, struct error *err)
{
	char name[BACKUP_NAME_BYTES];
	backup_moment_name(moment, name);
	if (backup->target->ops->remove(backup->target, name, err) != 0)
		return -1;
	backup_notes_drop(backup->notes, moment);
	return 0;
}

/* Another run may have made moments. */
static int list_again(struct backup *backup, struct error *err)
{
	struct backup_moments found;
	if (backup_moments_list(backup->target, &found, err) != 0)
		return -1;
	backup_moments_release(&backup->moments);
	backup->moments = found;
	return 0;
}

static int read_named(struct pruning *pruning, const bool *stays, struct error *err)
{
	const struct backup_moments *moments = &pruning->backup->moments;
	int result = 0;
	for (size_t i = 0; i < moments->count && result == 0; i++) {
		struct backup_manifest manifest = {.count = 0};
		if (!stays[i])
			continue;
		result = backup_manifest_of(pruning->backup, &moments->items[i], &manifest, err);
		if (result == 0)
			backup_known_add_all(pruning->named, &manifest);
		backup_manifest_release(&manifest);
	}
	return result == 0 ? 0 : error_wrap(err, "Nothing was pruned");
}

static int sweep(struct pruning *pruning, const char *kind, struct error *err)
{
	struct backup_target *target = pruning->backup->target;
	pruning->count = 0;
	if (pruning->out->reader[0] != '\0')
		return 0;
	if (target->ops->list(target, kind, backup_prune_take, pruning, err) != 0)
		return -1;
	if (pruning->count > 0 && backup_reader_find(target, pruning->out->reader, err) != 0)
		return -1;
	return pruning->out->reader[0] != '\0' ? 0 : remove_pieces(pruning, err);
}

static int backup_prune_take(void *taker, const struct backup_object *object, struct error *err)
{
	struct pruning *pruning = taker;
	char key[BACKUP_KEY_BYTES];
	struct backup_piece piece;
	(void)err;
	if (!backup_piece_parse(object->name, key, &piece) ||
		!is_nobodys(pruning, key, &piece, object->changed_ms))
		return 0;
	pruning->pieces = memory_make_room(pruning->pieces, pruning->count,
		&pruning->piece_capacity, sizeof(*pruning->pieces));
	pruning->keys = memory_make_room(
		pruning->keys, pruning->count, &pruning->key_capacity, sizeof(*pruning->keys));
	pruning->pieces[pruning->count] = piece;
	memcpy(pruning->keys[pruning->count++], key, sizeof(key));
	return 0;
}

/* The mark of a pack that no moment names, and no run under way has just put. */
static int backup_prune_mark(void *taker, const char *key, int64_t changed_ms, struct error *err)
{
	const struct pruning *pruning = taker;
	struct backup_target *target = pruning->backup->target;
	char name[BACKUP_NAME_BYTES];
	if (backup_known_has(pruning->named, key) || changed_ms >= clock_wall_ms() - RUN_MAX_MS)
		return 0;
	backup_mark_name(key, name);
	return target->ops->remove(target, name, err);
}

static bool is_nobodys(const struct pruning *pruning, const char *key,
	const struct backup_piece *piece, int64_t changed_ms)
{
	if (backup_known_has_piece(pruning->named, key, piece))
		return false;
	return backup_known_has_piece(pruning->backup->own, key, piece) ||
		changed_ms < clock_wall_ms() - RUN_MAX_MS;
}

static int remove_pieces(struct pruning *pruning, struct error *err)
{
	struct backup *backup = pruning->backup;
	for (size_t i = 0; i < pruning->count; i++) {
		char name[BACKUP_NAME_BYTES];
		const struct backup_piece *piece = &pruning->pieces[i];
		backup_piece_name(pruning->keys[i], piece, name);
		backup_known_drop(backup->known, pruning->keys[i], piece);
		backup_known_drop(backup->own, pruning->keys[i], piece);
		if (backup->target->ops->remove(backup->target, name, err) != 0)
			return -1;
		pruning->out->pieces++;
		pruning->out->bytes +=
			backup_vault_bytes(&backup->vault, piece->to - piece->from);
	}
	return 0;
}
