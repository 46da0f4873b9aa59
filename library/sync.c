/* deltabucket_sync: client/sync with the settings and counts of the library. */
#include <string.h>

#include "client/sync/folder_sync.h"
#include "library/call.h"
#include "library/sized.h"

struct sync {
	struct library_call call;
	struct deltabucket_sync_settings settings;
	struct folder_sync_params params;
	struct folder_sync_counts counts;
};

static int read_settings(struct sync *sync, const struct deltabucket_client *client,
	const struct deltabucket_sync_settings *settings);
static int read_direction(const char *text, bool *out_uploads, struct error *err);
static int check_folder(const struct sync *sync, struct error *err);
static void sync_told(void *owner, enum folder_sync_event event, const struct sync_item *item,
	const struct error *why);
static int give(
	struct deltabucket_synced *out, const struct folder_sync_counts *counts, struct error *err);

int deltabucket_sync(struct deltabucket_client *client,
	const struct deltabucket_sync_settings *settings, struct deltabucket_synced *out,
	struct deltabucket_watch *watch, struct deltabucket_error *err)
{
	struct sync sync = {.settings = DELTABUCKET_SYNC_SETTINGS};
	struct error *const failure = &sync.call.failure;
	library_call_begin(&sync.call, client, watch);
	int result = read_settings(&sync, client, settings);
	if (result == 0) /* a wrong size is found before anything is done */
		result = give(out, &sync.counts, failure);
	if (result == 0)
		result = folder_sync_run(&sync.params, &sync.counts, failure);
	if (result == 0)
		result = give(out, &sync.counts, failure);
	if (result == 0)
		result = folder_sync_judge(&sync.counts, sync.params.is_dry, failure);
	return library_call_end(&sync.call, result, err);
}

static int read_settings(struct sync *sync, const struct deltabucket_client *client,
	const struct deltabucket_sync_settings *settings)
{
	struct error *const err = &sync->call.failure;
	struct deltabucket_sync_settings *const taken = &sync->settings;
	struct folder_sync_params *const params = &sync->params;
	if (library_check(client, "client", err) != 0 ||
		library_check(settings, "settings", err) != 0 ||
		sized_take(taken, sizeof(*taken), settings, "deltabucket_sync_settings", err) != 0)
		return -1;
	*params = (struct folder_sync_params){
		.session = &sync->call.session,
		.is_dry = taken->dry_run != 0,
		.deletes = taken->deletes != 0,
		.creates_bucket = taken->create_bucket != 0,
		.folder = taken->folder,
		.told = sync_told,
		.owner = sync,
	};
	params->place.key = span_text(taken->prefix);
	if (library_check_name(taken->bucket, "bucket", LIBRARY_BUCKET_MAX_BYTES,
		    &params->place.bucket, err) != 0 ||
		library_check(taken->folder, "folder", err) != 0 ||
		read_direction(taken->direction, &params->uploads, err) != 0)
		return -1;
	return check_folder(sync, err);
}

static int read_direction(const char *text, bool *out_uploads, struct error *err)
{
	*out_uploads = text != NULL && strcmp(text, "up") == 0;
	if (*out_uploads || (text != NULL && strcmp(text, "down") == 0))
		return 0;
	return error_set(err, ERROR_INVALID, "the direction is \"%.80s\"; it must be up or down",
		text != NULL ? text : "");
}

static int check_folder(const struct sync *sync, struct error *err)
{
	if (sync->params.folder[0] == '\0')
		return error_set(err, ERROR_INVALID, "the folder has no name");
	if (sync->params.place.key.len > LIBRARY_KEY_MAX_BYTES)
		return error_set(err, ERROR_KEY_TOO_LONG, "the prefix is over %d bytes",
			LIBRARY_KEY_MAX_BYTES);
	return 0;
}

static void sync_told(void *owner, enum folder_sync_event event, const struct sync_item *item,
	const struct error *why)
{
	const struct sync *const sync = owner;
	const char *const what = event == FOLDER_SYNC_REFUSED ? "refused"
		: event == FOLDER_SYNC_REMOVED                ? "removed"
		: sync->params.uploads                        ? "uploaded"
							      : "downloaded";
	(void)why;
	if (sync->settings.told != NULL)
		sync->settings.told(sync->settings.owner, what, item->name, item->size);
}

static int give(
	struct deltabucket_synced *out, const struct folder_sync_counts *counts, struct error *err)
{
	const struct deltabucket_synced made = {
		.size = sizeof(made),
		.files = counts->files,
		.moved = counts->moved,
		.moved_bytes = counts->bytes,
		.traffic_bytes = counts->traffic,
		.removed = counts->removed,
		.refused = counts->refused,
	};
	return out == NULL ? 0 : sized_give(out, &made, sizeof(made), "deltabucket_synced", err);
}
