/* The items are dealt into two lots, by Xet and plain, and each lot is one transfer. If the server
 * turns out to be unable to move the first lot over the Xet face, for example because an object is
 * too large to be made into chunks, the items that have not arrived are added to the plain lot,
 * which goes last. */
#include "client/sync/sync_move.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "client/local/part_file.h"
#include "client/remote/remote_hub.h"
#include "client/remote/remote_object.h"
#include "client/transfer/removal.h"
#include "client/transfer/xet_download.h"
#include "client/transfer/xet_upload.h"

enum {
	/* up to so many files, of fewer bytes in all, go up in one plain request each: that costs
	 * less than asking first */
	PLAIN_MOST = 4,
	PLAIN_MOST_BYTES = 64 * 1024,
	ASK_DERIVED_BYTES = 8 * 1024 * 1024 /* see is_expensive_by_xet */
};

/* The items that move in one way, with the data of each that a transfer needs. It owns the
 * texts. */
struct lot {
	struct sync_move *move;
	sync_told_fn *told;
	struct progress *progress;
	const struct sync_item **items;
	size_t count;
	char **keys, **paths, **parts, **targets;
	bool *done;                /* the item has arrived and was reported */
	_Atomic uint64_t received; /* bytes of plain downloads */
};

struct removing {
	struct sync_move *move;
	const struct sync_item *const *items;
	sync_told_fn *told;
	sync_refused_fn *refused;
};

static char *make_key(const struct sync_move *move, const char *name);
static int open_access(struct sync_move *move, struct error *err);
static void lot_init(
	struct lot *lot, struct sync_move *move, sync_told_fn *told, struct progress *progress);
static void lot_add(struct lot *lot, const struct sync_item *item);
static bool goes_by_xet(const struct sync_move *move, const struct sync_item *item);
static bool is_expensive_by_xet(const struct sync_move *move, const struct sync_item *item);
static int make_folders(const struct sync_move *move, const struct lot *lot, struct error *err);
static int move_by_xet(struct lot *by_xet, struct lot *plain, struct error *err);
static int upload_xet(struct lot *lot, struct error *err);
static int sync_move_report_done(void *owner, size_t index, struct error *err);
static int download_xet(struct lot *lot, struct error *err);
static int upload_plain(struct lot *lot, struct error *err);
static int download_plain(struct lot *lot, struct error *err);
static int pin_download(const struct lot *lot, size_t number, struct transfer_download *download,
	struct error *err);
static void lot_release(struct lot *lot);
static int remove_objects(struct removing *removing, size_t count, struct error *err);
static void sync_move_removed(void *owner, size_t number);
static void sync_move_refused(void *owner, size_t number, const struct error *why);
static int remove_locally(struct sync_move *move, const struct sync_item *const *items,
	size_t count, sync_told_fn *told, struct error *err);
static int remove_local(
	const struct sync_move *move, const struct sync_item *item, struct error *err);

char *sync_move_target(const struct sync_move *move, const char *name)
{
	char *const key = make_key(move, name);
	char *const target = remote_object_target(move->bucket, span_text(key));
	free(key);
	return target;
}

int sync_move_all(struct sync_move *move, sync_told_fn *told, struct error *err)
{
	struct lot by_xet;
	struct lot plain;
	if (open_access(move, err) != 0)
		return -1;
	struct progress *const progress = progress_new(
		move->uploads ? "uploading" : "downloading", move->bytes, move->session->progress);
	lot_init(&by_xet, move, told, progress);
	lot_init(&plain, move, told, progress);
	for (size_t i = 0; i < move->count; i++)
		lot_add(goes_by_xet(move, move->items[i]) ? &by_xet : &plain, move->items[i]);
	int result = make_folders(move, &by_xet, err) == 0 ? make_folders(move, &plain, err) : -1;
	if (result == 0)
		result = move_by_xet(&by_xet, &plain, err);
	if (result == 0 && plain.count > 0)
		result = move->uploads ? upload_plain(&plain, err) : download_plain(&plain, err);
	move->traffic += atomic_load(&plain.received);
	if (move->access != NULL)
		move->traffic += move->uploads ? xet_access_traffic(move->access)->sent
					       : xet_access_traffic(move->access)->received;
	lot_release(&by_xet);
	lot_release(&plain);
	progress_free(progress);
	return result;
}

int sync_move_remove(struct sync_move *move, const struct sync_item *const *items, size_t count,
	sync_told_fn *told, sync_refused_fn *refused, struct error *err)
{
	ASSERT(told != NULL && refused != NULL);
	struct removing removing = {.move = move, .items = items, .told = told, .refused = refused};
	return move->uploads ? remove_objects(&removing, count, err)
			     : remove_locally(move, items, count, told, err);
}

static char *make_key(const struct sync_move *move, const char *name)
{
	char *const key = memory_new(move->prefix.len + strlen(name) + 1);
	if (move->prefix.len > 0)
		memcpy(key, move->prefix.data, move->prefix.len);
	memcpy(key + move->prefix.len, name, strlen(name));
	return key;
}

/* If the server gives no token, everything goes by plain requests. */
static int open_access(struct sync_move *move, struct error *err)
{
	struct error failure = {0};
	if (move->is_plain || move->count == 0 ||
		(move->uploads && move->count <= PLAIN_MOST && move->bytes < PLAIN_MOST_BYTES))
		return 0;
	move->access = xet_access_open(move->remote, move->bucket, move->uploads, &failure);
	if (move->access != NULL || session_wants_plain(&failure))
		return 0;
	*err = failure;
	return -1;
}

static void lot_init(
	struct lot *lot, struct sync_move *move, sync_told_fn *told, struct progress *progress)
{
	*lot = (struct lot){.move = move, .told = told, .progress = progress};
	lot->items = memory_new_array(move->count + 1, sizeof(*lot->items));
	lot->keys = memory_new_array(move->count + 1, sizeof(*lot->keys));
	lot->paths = memory_new_array(move->count + 1, sizeof(*lot->paths));
	lot->parts = memory_new_array(move->count + 1, sizeof(*lot->parts));
	lot->targets = memory_new_array(move->count + 1, sizeof(*lot->targets));
	lot->done = memory_new_array(move->count + 1, sizeof(*lot->done));
}

static void lot_add(struct lot *lot, const struct sync_item *item)
{
	ASSERT(lot->count < lot->move->count);
	const size_t i = lot->count++;
	lot->items[i] = item;
	lot->keys[i] = make_key(lot->move, item->name);
	lot->paths[i] = folder_files_join(lot->move->folder, item->name);
	lot->parts[i] = part_file_path(lot->paths[i], SYNC_PART_SUFFIX);
	lot->targets[i] = sync_move_target(lot->move, item->name);
}

static bool goes_by_xet(const struct sync_move *move, const struct sync_item *item)
{
	if (move->access == NULL)
		return false;
	if (!move->uploads)
		return item->hash != NULL && !is_expensive_by_xet(move, item);
	char *const key = make_key(move, item->name);
	const bool takes = remote_hub_takes(span_text(key));
	free(key);
	return takes;
}

/* Whether the server would first have to make the object into chunks. Then a plain request is
 * cheaper, unless there is a local file that chunks can be copied from. Only for large files is it
 * worth asking. */
static bool is_expensive_by_xet(const struct sync_move *move, const struct sync_item *item)
{
	struct remote_object_facts facts;
	struct error ignored = {0};
	if (item->state != SYNC_NEW || item->size < ASK_DERIVED_BYTES)
		return false;
	char *const target = sync_move_target(move, item->name);
	const bool is_derived = remote_object_head(move->remote, target, &facts, &ignored) == 0 &&
		facts.is_derived && facts.has_digest;
	free(target);
	return is_derived;
}

static int make_folders(const struct sync_move *move, const struct lot *lot, struct error *err)
{
	int result = 0;
	for (size_t i = 0; i < lot->count && result == 0 && !move->uploads; i++)
		result = file_make_parent(move->session->files, lot->paths[i], 0755, err);
	return result;
}

/* Moves the lot over the Xet face. If the server cannot do that after all, adds the items that have
 * not arrived to the plain lot. */
static int move_by_xet(struct lot *by_xet, struct lot *plain, struct error *err)
{
	struct error failure = {0};
	if (by_xet->count == 0)
		return 0;
	if ((by_xet->move->uploads ? upload_xet(by_xet, &failure)
				   : download_xet(by_xet, &failure)) == 0)
		return 0;
	if (!session_wants_plain(&failure)) {
		*err = failure;
		return -1;
	}
	for (size_t i = 0; i < by_xet->count; i++)
		if (!by_xet->done[i])
			lot_add(plain, by_xet->items[i]);
	return 0;
}

static int upload_xet(struct lot *lot, struct error *err)
{
	const struct sync_move *const move = lot->move;
	struct progress *const reading =
		progress_new("hashing", move->bytes, move->session->progress);
	struct xet_upload_file *const files = memory_new_array(lot->count + 1, sizeof(*files));
	for (size_t i = 0; i < lot->count; i++)
		files[i] = (struct xet_upload_file){
			.path = lot->paths[i], .key = span_text(lot->keys[i])};
	const struct xet_upload upload = {
		.options = &move->session->remote_options,
		.own = move->remote,
		.access = move->access,
		.bucket = move->bucket,
		.parallel = session_parallel(move->session),
		.cache = move->cache,
		.reading = reading,
		.progress = lot->progress,
		.done = sync_move_report_done,
		.owner = lot,
	};
	const int result = xet_upload(&upload, files, lot->count, err);
	progress_free(reading);
	free(files);
	return result;
}

static int sync_move_report_done(void *owner, size_t index, struct error *err)
{
	struct lot *const lot = owner;
	(void)err;
	ASSERT(index < lot->count && !lot->done[index]);
	lot->done[index] = true;
	lot->told(lot->move->owner, lot->items[index]);
	return 0;
}

static int download_xet(struct lot *lot, struct error *err)
{
	const struct sync_move *const move = lot->move;
	struct xet_download_file *const files = memory_new_array(lot->count + 1, sizeof(*files));
	for (size_t i = 0; i < lot->count; i++) {
		ASSERT(lot->items[i]->hash != NULL); /* see goes_by_xet */
		files[i] = (struct xet_download_file){
			.hash = *lot->items[i]->hash,
			.size = lot->items[i]->size,
			.name = lot->keys[i],
			.path = lot->paths[i],
			.part_path = lot->parts[i],
		};
	}
	const struct xet_download download = {
		.files = move->session->files,
		.options = &move->session->remote_options,
		.own = move->remote,
		.access = move->access,
		.parallel = session_parallel(move->session),
		.cache = move->cache,
		.progress = lot->progress,
		.done = sync_move_report_done,
		.owner = lot,
	};
	const int result = xet_download(&download, files, lot->count, err);
	free(files);
	return result;
}

static int upload_plain(struct lot *lot, struct error *err)
{
	const struct transfer_options transfer =
		session_transfer(lot->move->session, lot->move->remote, lot->progress);
	struct transfer_upload *const files = memory_new_array(lot->count + 1, sizeof(*files));
	for (size_t i = 0; i < lot->count; i++) {
		files[i] = (struct transfer_upload){.target = lot->targets[i],
			.path = lot->paths[i],
			.size = lot->items[i]->size};
		lot->move->traffic += lot->items[i]->size;
	}
	const int result =
		transfer_upload(&transfer, files, lot->count, sync_move_report_done, lot, err);
	free(files);
	return result;
}

static int download_plain(struct lot *lot, struct error *err)
{
	struct transfer_options transfer =
		session_transfer(lot->move->session, lot->move->remote, lot->progress);
	struct transfer_download *const files = memory_new_array(lot->count + 1, sizeof(*files));
	transfer.received = &lot->received;
	int result = 0;
	for (size_t i = 0; i < lot->count && result == 0; i++)
		result = pin_download(lot, i, &files[i], err);
	if (result == 0)
		result = transfer_download(&transfer, files, lot->count, err);
	for (size_t i = 0; i < lot->count; i++) {
		if (result == 0)
			sync_move_report_done(lot, i, err);
		free((char *)files[i].etag);
	}
	free(files);
	return result;
}

/* Asks for the digest and ETag that the download is checked against, because a listing has no
 * digest. */
static int pin_download(
	const struct lot *lot, size_t number, struct transfer_download *download, struct error *err)
{
	struct remote_object_facts facts;
	if (remote_object_head(lot->move->remote, lot->targets[number], &facts, err) != 0)
		return -1;
	*download = (struct transfer_download){
		.target = lot->targets[number],
		.size = facts.size,
		.has_digest = facts.has_digest,
		.digest = facts.digest,
		.has_hash = facts.has_hash,
		.hash = facts.hash,
		.etag = memory_copy_text(facts.etag),
		.path = lot->paths[number],
		.part_path = lot->parts[number],
	};
	return 0;
}

static void lot_release(struct lot *lot)
{
	for (size_t i = 0; i < lot->count; i++) {
		free(lot->keys[i]);
		free(lot->paths[i]);
		free(lot->parts[i]);
		free(lot->targets[i]);
	}
	free(lot->keys);
	free(lot->paths);
	free(lot->parts);
	free(lot->targets);
	free(lot->done);
	free(lot->items);
}

static int remove_objects(struct removing *removing, size_t count, struct error *err)
{
	const struct sync_move *const move = removing->move;
	const struct removal removal = {
		.remote = move->remote,
		.bucket = move->bucket,
		.is_dry = move->is_dry,
		.removed = sync_move_removed,
		.refused = sync_move_refused,
		.owner = removing,
	};
	char **const keys = memory_new_array(count + 1, sizeof(*keys));
	struct span *const spans = memory_new_array(count + 1, sizeof(*spans));
	for (size_t i = 0; i < count; i++) {
		keys[i] = make_key(move, removing->items[i]->name);
		spans[i] = span_text(keys[i]);
	}
	const int result = removal_run(&removal, spans, count, err);
	for (size_t i = 0; i < count; i++)
		free(keys[i]);
	free(spans);
	free(keys);
	return result;
}

static void sync_move_removed(void *owner, size_t number)
{
	const struct removing *const removing = owner;
	removing->told(removing->move->owner, removing->items[number]);
}

static void sync_move_refused(void *owner, size_t number, const struct error *why)
{
	const struct removing *const removing = owner;
	removing->refused(removing->move->owner, removing->items[number], why);
}

static int remove_locally(struct sync_move *move, const struct sync_item *const *items,
	size_t count, sync_told_fn *told, struct error *err)
{
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++) {
		if (!move->is_dry)
			result = remove_local(move, items[i], err);
		if (result == 0)
			told(move->owner, items[i]);
	}
	return result;
}

static int remove_local(
	const struct sync_move *move, const struct sync_item *item, struct error *err)
{
	const struct file_ops *const files = move->session->files;
	char *const path = folder_files_join(move->folder, item->name);
	const int result =
		files->unlink(files, path) == 0 ? 0 : error_set_errno(err, "removing %s", path);
	free(path);
	return result;
}
