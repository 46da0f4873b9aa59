/* It lists both ends, plans, compares, moves what differs, and last removes what the source lacks.
 * Files of the same size are compared by the file hash from the listing. If the server has no such
 * listing, they are compared by the hash or digest from a HEAD; an object that has neither yet,
 * because it was just uploaded in parts, counts as different. */
#include "client/sync/folder_sync.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/thread/lock.h"
#include "client/remote/remote_object.h"
#include "client/sync/sync_move.h"
#include "client/transfer/pool.h"

enum { KEY_MAX_BYTES = 1024 };

struct folder_sync {
	const struct folder_sync_params *params;
	struct folder_sync_counts *counts;
	struct sync_move move; /* both ends, and the items that go from one to the other */
	struct buffer prefix;  /* empty, or ends in '/' */
	struct sync_list source, target;
	struct sync_plan plan;
	struct lock lock;
	size_t next; /* guarded by lock: the item to compare next */
};

static int run(struct folder_sync *sync, struct error *err);
static int read_prefix(struct folder_sync *sync, struct error *err);
static int read_lists(struct folder_sync *sync, struct error *err);
static int list_objects(const struct folder_sync *sync, struct sync_list *out, struct error *err);
static int list_files(const struct folder_sync *sync, struct sync_list *out, struct error *err);
static int check_names(const struct folder_sync *sync, struct error *err);
static bool lies_below_a_file(const struct sync_list *list, const char *name);
static int folder_sync_by_name(const void *name, const void *entry);
static int refuse_empty(const struct folder_sync *sync, struct error *err);
static int compare_all(struct folder_sync *sync, struct error *err);
static int folder_sync_compare(void *job, struct remote *remote, struct error *err);
static int compare(const struct folder_sync *sync, struct sync_item *item, struct remote *remote,
	struct error *err);
static int compare_hashes(const struct folder_sync *sync, struct sync_item *item,
	const struct chunk_id *wanted, const char *path, struct error *err);
static int compare_digests(const struct folder_sync *sync, struct sync_item *item, const char *path,
	struct remote *remote, struct error *err);
static void choose_moves(struct folder_sync *sync);
static int move_all(struct folder_sync *sync, struct error *err);
static void folder_sync_moved(void *owner, const struct sync_item *item);
static int remove_gone(struct folder_sync *sync, struct error *err);
static void folder_sync_removed(void *owner, const struct sync_item *item);
static void folder_sync_refused(void *owner, const struct sync_item *item, const struct error *why);
static void release(struct folder_sync *sync);

int folder_sync_run(
	const struct folder_sync_params *params, struct folder_sync_counts *out, struct error *err)
{
	ASSERT(params->told != NULL);
	char *const cache_path = hash_cache_default_path();
	struct folder_sync sync = {
		.params = params,
		.counts = out,
		.move =
			{
				.session = params->session,
				.cache = hash_cache_open(params->session->files, cache_path),
				.uploads = params->uploads,
				.is_plain = params->is_plain,
				.is_dry = params->is_dry,
				.folder = params->folder,
				.bucket = params->place.bucket,
			},
	};
	sync.move.owner = &sync;
	*out = (struct folder_sync_counts){0};
	lock_init(&sync.lock, LOCK_TRANSFER_PARTS);
	buffer_init(&sync.prefix, KEY_MAX_BYTES + 1);
	const int result = run(&sync, err);
	release(&sync);
	free(cache_path);
	return result;
}

int folder_sync_judge(const struct folder_sync_counts *counts, bool is_dry, struct error *err)
{
	if (counts->refused == 0)
		return 0;
	*err = counts->refusal;
	return error_wrap(err, "%zu of the objects to remove %s, the first because",
		counts->refused, is_dry ? "would stay" : "stay");
}

static int run(struct folder_sync *sync, struct error *err)
{
	if (read_prefix(sync, err) != 0)
		return -1;
	sync->move.remote = session_connect(sync->params->session, err);
	if (sync->move.remote == NULL || read_lists(sync, err) != 0 || compare_all(sync, err) != 0)
		return -1;
	choose_moves(sync);
	return move_all(sync, err) == 0 ? remove_gone(sync, err) : -1;
}

static int read_prefix(struct folder_sync *sync, struct error *err)
{
	const struct span prefix = sync->params->place.key;
	buffer_add_span(&sync->prefix, prefix);
	if (prefix.len > 0 && prefix.data[prefix.len - 1] != '/')
		buffer_add_byte(&sync->prefix, '/');
	sync->move.prefix = buffer_span(&sync->prefix);
	return buffer_check(&sync->prefix, "the prefix", err);
}

static int read_lists(struct folder_sync *sync, struct error *err)
{
	const struct folder_sync_params *const params = sync->params;
	struct sync_list *const local = params->uploads ? &sync->source : &sync->target;
	struct sync_list *const remote = params->uploads ? &sync->target : &sync->source;
	if (params->uploads && params->creates_bucket && !params->is_dry &&
		remote_object_make_bucket(sync->move.remote, sync->move.bucket, err) != 0)
		return -1;
	if (list_objects(sync, remote, err) != 0)
		return -1;
	if (!params->uploads && check_names(sync, err) != 0)
		return -1;
	if (list_files(sync, local, err) != 0)
		return -1;
	if (params->deletes && sync->source.count == 0 && sync->target.count > 0)
		return refuse_empty(sync, err);
	sync->counts->files = sync->source.count;
	sync_plan_make(&sync->source, &sync->target, &sync->plan);
	return 0;
}

/* Lists the objects from one listing that has every key, and adds the hashes from another. */
static int list_objects(const struct folder_sync *sync, struct sync_list *out, struct error *err)
{
	const struct sync_move *const move = &sync->move;
	struct error failure = {0};
	if (sync_list_prefix(move->remote, move->bucket, move->prefix, out, err) != 0)
		return -1;
	if (move->is_plain ||
		sync_list_add_hashes(move->remote, move->bucket, move->prefix, out, &failure) ==
			0 ||
		session_wants_plain(&failure))
		return 0;
	*err = failure;
	return -1;
}

/* A folder that files are to come to is made, or, in a dry run, counts as empty. */
static int list_files(const struct folder_sync *sync, struct sync_list *out, struct error *err)
{
	const struct sync_move *const move = &sync->move;
	if (!move->uploads && !move->is_dry &&
		file_make_folder(move->session->files, move->folder, 0755, err) != 0)
		return -1;
	if (!move->uploads && !file_exists(move->folder))
		return 0;
	return sync_list_folder(move->folder, move->uploads, out, err);
}

/* Refuses names that could leave the folder, or that are a file and a folder at once, before
 * anything is done. */
static int check_names(const struct folder_sync *sync, struct error *err)
{
	for (size_t i = 0; i < sync->source.count; i++)
		if (!sync_plan_is_path(sync->source.entries[i].name) ||
			lies_below_a_file(&sync->source, sync->source.entries[i].name))
			return error_set(err, ERROR_INVALID,
				"\"%s%s\" cannot be the name of a file below %s, so nothing was "
				"done",
				buffer_text(&sync->prefix), sync->source.entries[i].name,
				sync->move.folder);
	return 0;
}

/* Whether the list has a file whose name is a folder above this one. */
static bool lies_below_a_file(const struct sync_list *list, const char *name)
{
	char *const above = memory_copy_text(name);
	bool found = false;
	for (char *slash = strchr(above, '/'); slash != NULL && !found;
		slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		found = bsearch(above, list->entries, list->count, sizeof(*list->entries),
				folder_sync_by_name) != NULL;
		*slash = '/';
	}
	free(above);
	return found;
}

static int folder_sync_by_name(const void *name, const void *entry)
{
	return strcmp(name, ((const struct sync_entry *)entry)->name);
}

/* A mistyped source looks like an empty source. */
static int refuse_empty(const struct folder_sync *sync, struct error *err)
{
	const struct span bucket = sync->move.bucket;
	const bool has_prefix = sync->move.prefix.len > 0;
	if (sync->move.uploads)
		return error_set(err, ERROR_NOT_FOUND,
			"there is nothing at %s: with --delete this would empty the target, so "
			"nothing was done",
			sync->move.folder);
	return error_set(err, ERROR_NOT_FOUND,
		"there is nothing at %.*s%s%s: with --delete this would empty the target, so "
		"nothing was done",
		(int)bucket.len, (const char *)bucket.data, has_prefix ? "/" : "",
		has_prefix ? buffer_text(&sync->prefix) : "");
}

static int compare_all(struct folder_sync *sync, struct error *err)
{
	const struct session *const session = sync->params->session;
	const struct pool_params params = {
		.remote = &session->remote_options,
		.own = sync->move.remote,
		.threads = session_parallel(session),
		.piece = folder_sync_compare,
		.job = sync,
	};
	return pool_run(&params, err);
}

/* Compares the next item. Called by the threads of a pool: 1 to be called again, 0 when no item is
 * left. */
static int folder_sync_compare(void *job, struct remote *remote, struct error *err)
{
	struct folder_sync *const sync = job;
	lock_enter(&sync->lock);
	while (sync->next < sync->plan.count && sync->plan.items[sync->next].state != SYNC_MAYBE)
		sync->next++;
	struct sync_item *const item =
		sync->next < sync->plan.count ? &sync->plan.items[sync->next++] : NULL;
	lock_leave(&sync->lock);
	if (item == NULL)
		return 0;
	ASSERT(item->state == SYNC_MAYBE);
	return compare(sync, item, remote, err) == 0 ? 1 : -1;
}

static int compare(const struct folder_sync *sync, struct sync_item *item, struct remote *remote,
	struct error *err)
{
	char *const path = folder_files_join(sync->move.folder, item->name);
	const int result = item->hash != NULL ? compare_hashes(sync, item, item->hash, path, err)
					      : compare_digests(sync, item, path, remote, err);
	free(path);
	return result;
}

static int compare_hashes(const struct folder_sync *sync, struct sync_item *item,
	const struct chunk_id *wanted, const char *path, struct error *err)
{
	struct chunk_id hash;
	if (hash_cache_hash(sync->move.cache, path, sync->params->session->stop, &hash, err) != 0)
		return -1;
	item->state = chunk_id_equal(&hash, wanted) ? SYNC_SAME : SYNC_DIFFERS;
	return 0;
}

static int compare_digests(const struct folder_sync *sync, struct sync_item *item, const char *path,
	struct remote *remote, struct error *err)
{
	struct remote_object_facts facts;
	struct digest128 digest;
	char *const target = sync_move_target(&sync->move, item->name);
	int result = remote_object_head(remote, target, &facts, err);
	const bool same_size = result == 0 && facts.size == item->size;
	item->state = SYNC_DIFFERS;
	if (same_size && facts.has_hash)
		result = compare_hashes(sync, item, &facts.hash, path, err);
	if (same_size && result == 0 && item->state == SYNC_DIFFERS && facts.has_digest) {
		result = transfer_file_digest(path, &digest, err);
		if (result == 0 && digest128_equal(&digest, &facts.digest))
			item->state = SYNC_SAME;
	}
	free(target);
	return result;
}

static void choose_moves(struct folder_sync *sync)
{
	ASSERT(sync->move.items == NULL && sync->move.count == 0);
	sync->move.items = memory_new_array(sync->plan.count + 1, sizeof(*sync->move.items));
	for (size_t i = 0; i < sync->plan.count; i++) {
		const struct sync_item *const item = &sync->plan.items[i];
		if (item->state != SYNC_NEW && item->state != SYNC_DIFFERS)
			continue;
		sync->move.items[sync->move.count++] = item;
		sync->move.bytes += item->size;
	}
}

static int move_all(struct folder_sync *sync, struct error *err)
{
	int result = 0;
	for (size_t i = 0; i < sync->move.count && sync->move.is_dry; i++)
		folder_sync_moved(sync, sync->move.items[i]);
	if (!sync->move.is_dry)
		result = sync_move_all(&sync->move, folder_sync_moved, err);
	sync->counts->traffic = sync->move.traffic;
	return result;
}

static void folder_sync_moved(void *owner, const struct sync_item *item)
{
	const struct folder_sync *const sync = owner;
	sync->counts->moved++;
	sync->counts->bytes += item->size;
	sync->params->told(sync->params->owner, FOLDER_SYNC_MOVED, item, NULL);
}

/* Removes last: a reader meanwhile sees the new objects before the old ones are gone. */
static int remove_gone(struct folder_sync *sync, struct error *err)
{
	const struct sync_item **const gone = memory_new_array(sync->plan.count + 1, sizeof(*gone));
	size_t count = 0;
	for (size_t i = 0; i < sync->plan.count && sync->params->deletes; i++)
		if (sync->plan.items[i].state == SYNC_GONE)
			gone[count++] = &sync->plan.items[i];
	const int result = sync_move_remove(
		&sync->move, gone, count, folder_sync_removed, folder_sync_refused, err);
	free(gone);
	return result;
}

static void folder_sync_removed(void *owner, const struct sync_item *item)
{
	const struct folder_sync *const sync = owner;
	sync->counts->removed++;
	sync->params->told(sync->params->owner, FOLDER_SYNC_REMOVED, item, NULL);
}

static void folder_sync_refused(void *owner, const struct sync_item *item, const struct error *why)
{
	const struct folder_sync *const sync = owner;
	if (sync->counts->refused++ == 0)
		sync->counts->refusal = *why;
	sync->params->told(sync->params->owner, FOLDER_SYNC_REFUSED, item, why);
}

static void release(struct folder_sync *sync)
{
	free(sync->move.items);
	xet_access_close(sync->move.access);
	hash_cache_close(sync->move.cache);
	sync_plan_release(&sync->plan);
	sync_list_release(&sync->source);
	sync_list_release(&sync->target);
	remote_free(sync->move.remote);
	lock_release(&sync->lock);
	buffer_release(&sync->prefix);
}
