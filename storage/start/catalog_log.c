/* walk --empty or sound--> mend, cut off frames after the last commit
 *    |----torn--> keep a copy unless the end was certainly not a commit, mend, cut
 *    '----damaged--> refuse; or mend, apply the proven frames to the catalog, take the log away
 *
 * SQLite takes the frames before the first bad one and forgets the rest, so a damaged log must not
 * be there when SQLite opens the catalog (docs/decisions/007-the-log-is-walked-first.md). */
#include "storage/start/catalog_log.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "storage/db/log_walk.h"
#include "storage/start/lost_changes.h"

enum { PATH_BYTES = 4096, KEPT_LOGS = 8 };

struct preparation {
	const struct catalog_log_params *params;
	char path[PATH_BYTES]; /* of the log */
	struct log_walk walk;
};

static int prepare(struct preparation *preparation, bool *out_is_whole, struct error *err);
static bool is_certain(const struct preparation *preparation);
static int handle_damage(const struct preparation *preparation, struct error *err);
static int apply(const struct preparation *preparation, struct error *err);
static int prepare_aside(
	const struct preparation *preparation, char kept[PATH_BYTES], struct error *err);
static bool find_name(const struct preparation *preparation, char out[PATH_BYTES]);
static int mend(const struct preparation *preparation, struct error *err);
static void tell(const struct preparation *preparation, enum log_level level, const char *event,
	int64_t number);
static int take_away(const struct preparation *preparation, const char *kept, struct error *err);
static int refuse(const struct preparation *preparation, const struct lost_changes *lost,
	struct error *err);
static int settle_end(const struct preparation *preparation, bool is_whole, struct error *err);
static bool keep_copy(const struct preparation *preparation);
static bool has_room(const struct preparation *preparation);
static int copy_log(const struct preparation *preparation, const char *to, struct error *err);

int catalog_log_prepare(
	const struct catalog_log_params *params, bool *out_is_whole, struct error *err)
{
	struct preparation preparation = {.params = params};
	snprintf(preparation.path, sizeof(preparation.path), "%s-wal", params->catalog_path);
	int result = prepare(&preparation, out_is_whole, err);
	log_walk_release(&preparation.walk);
	return result;
}

static int prepare(struct preparation *preparation, bool *out_is_whole, struct error *err)
{
	const struct acknowledgement *last = preparation->params->last;
	/* zeros when nothing was noted */
	const struct log_note note = {.salt = last->log_salt,
		.frames = last->log_frames,
		.is_exact = acknowledged_is_exact(last)};
	if (log_walk(preparation->path, &note, &preparation->walk, err) != 0)
		return -1;
	*out_is_whole = preparation->walk.state != LOG_DAMAGED &&
		(preparation->walk.state != LOG_TORN || is_certain(preparation));
	return preparation->walk.state == LOG_DAMAGED ? handle_damage(preparation, err)
						      : settle_end(preparation, *out_is_whole, err);
}

/* Whether a torn end was certainly never committed. After a kill the note is exact, so it was not.
 * After a power cut it may have been the last commit. */
static bool is_certain(const struct preparation *preparation)
{
	const struct acknowledgement *last = preparation->params->last;
	return last->store.life > 0 && acknowledged_is_exact(last) &&
		last->log_salt == preparation->walk.salt;
}

/* How many changes the proven frames have is known only when they are applied, so whatever the
 * journal leads to may be further. */
static int handle_damage(const struct preparation *preparation, struct error *err)
{
	const struct catalog_log_params *params = preparation->params;
	struct lost_changes lost;
	if (params->accepts_loss && params->aside == NULL)
		return apply(preparation, err);
	lost_changes_look(params->folder, -1, &lost);
	return params->accepts_loss && !lost_changes_come_back(&lost)
		? apply(preparation, err)
		: refuse(preparation, &lost, err);
}

static int apply(const struct preparation *preparation, struct error *err)
{
	ASSERT(preparation->walk.state == LOG_DAMAGED);
	const struct catalog_log_params *params = preparation->params;
	uint32_t lost = 0;
	char kept[PATH_BYTES] = "";
	if (prepare_aside(preparation, kept, err) != 0 || mend(preparation, err) != 0 ||
		log_walk_apply(&preparation->walk, params->files, preparation->path,
			params->catalog_path, &lost, err) != 0)
		return -1;
	tell(preparation, LOG_ERROR, "catalog_log_damaged", lost);
	return take_away(preparation, kept, err);
}

/* Names the file to which the log will be moved. */
static int prepare_aside(
	const struct preparation *preparation, char kept[PATH_BYTES], struct error *err)
{
	const struct catalog_log_params *params = preparation->params;
	if (params->aside == NULL)
		return 0;
	if (file_make_folder(params->files, params->aside, 0700, err) != 0)
		return -1;
	return find_name(preparation, kept)
		? 0
		: error_set(err, ERROR_DAMAGED,
			  "%s is damaged, and %s already has %d damaged logs. Remove those that are not needed:"
			  " deltabucketd set-aside drop NAME.",
			  preparation->path, params->aside, KEPT_LOGS);
}

/* Finds DIR/catalog.db-wal.N with the first free N. False when there are KEPT_LOGS already. */
static bool find_name(const struct preparation *preparation, char out[PATH_BYTES])
{
	ASSERT(preparation->params->aside != NULL);
	const char *slash = strrchr(preparation->path, '/');
	const char *name = slash != NULL ? slash + 1 : preparation->path;
	for (unsigned i = 1; i <= KEPT_LOGS; i++) {
		if (snprintf(out, PATH_BYTES, "%s/%s.%u", preparation->params->aside, name, i) >=
			PATH_BYTES)
			return false;
		if (!file_exists(out))
			return true;
	}
	return false;
}

static int mend(const struct preparation *preparation, struct error *err)
{
	if (preparation->walk.mend_count == 0)
		return 0;
	tell(preparation, LOG_WARNING, "catalog_log_mended", (int64_t)preparation->walk.mend_count);
	return log_walk_mend(
		&preparation->walk, preparation->params->files, preparation->path, err);
}

static void tell(const struct preparation *preparation, enum log_level level, const char *event,
	int64_t number)
{
	const struct log_field fields[] = {log_number("frames", preparation->walk.frames),
		log_number("committed", preparation->walk.committed),
		log_number("damaged", number)};
	log_event(preparation->params->log, level, NULL, event, fields,
		sizeof(fields) / sizeof(*fields));
}

/* Takes the log away, because SQLite would take the frames before the damage again. */
static int take_away(const struct preparation *preparation, const char *kept, struct error *err)
{
	const struct catalog_log_params *params = preparation->params;
	int result;
	if (params->aside == NULL)
		result = params->files->unlink(params->files, preparation->path);
	else
		result = params->files->rename(params->files, preparation->path, kept);
	if (result != 0)
		return error_set_errno(err, "cannot move %s away", preparation->path);
	if (params->aside != NULL && file_sync_folder(params->files, params->aside, err) != 0)
		return -1;
	return file_sync_name(params->files, preparation->path, err);
}

static int refuse(const struct preparation *preparation, const struct lost_changes *lost,
	struct error *err)
{
	const struct log_walk *walk = &preparation->walk;
	struct error why;
	error_set(&why, ERROR_DAMAGED,
		"%s is damaged: acknowledged changes after frame %u of %u cannot all be read.",
		preparation->path, walk->committed, walk->frames);
	if (preparation->params->accepts_loss)
		return lost_changes_refuse(lost, &why, err);
	return error_set(err, why.kind, "%s%s", why.text, lost->remedy);
}

/* Cuts off an end that never committed. One that may have committed stays if it cannot be
 * copied. */
static int settle_end(const struct preparation *preparation, bool is_whole, struct error *err)
{
	bool is_kept = true;
	ASSERT(preparation->walk.state != LOG_DAMAGED);
	if (!is_whole) {
		tell(preparation, LOG_WARNING, "catalog_log_torn", 0);
		is_kept = keep_copy(preparation);
	}
	if (mend(preparation, err) != 0)
		return -1;
	return is_kept ? log_walk_cut(&preparation->walk, preparation->params->files,
				 preparation->path, err)
		       : 0;
}

/* Keeps a copy for people to look at. False when that fails, which does not fail the start. */
static bool keep_copy(const struct preparation *preparation)
{
	const struct catalog_log_params *params = preparation->params;
	struct error err = {0};
	char kept[PATH_BYTES];
	if (params->aside == NULL || !has_room(preparation))
		return false;
	if (file_make_folder(params->files, params->aside, 0700, &err) == 0 &&
		find_name(preparation, kept) && copy_log(preparation, kept, &err) == 0)
		return true;
	if (err.kind != ERROR_NONE)
		log_failure(params->log, LOG_WARNING, NULL, "catalog_log_not_kept", &err);
	return false;
}

/* Whether the disk has more free space than must stay free. */
static bool has_room(const struct preparation *preparation)
{
	struct error ignored;
	return disk_floor_check(preparation->params->floor, &ignored) == 0;
}

static int copy_log(const struct preparation *preparation, const char *to, struct error *err)
{
	const struct file_ops *files = preparation->params->files;
	if (file_clone(files, preparation->path, to, err) != 0)
		return -1;
	int fd = files->open(files, to, O_RDONLY, 0);
	if (fd < 0)
		return error_set_errno(err, "cannot open %s", to);
	int result = file_sync(files, fd, to, err);
	close(fd);
	return result == 0 ? file_sync_folder(files, preparation->params->aside, err) : -1;
}
