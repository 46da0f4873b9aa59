/* A folder made like a prefix, or a prefix like a folder. Files of one size are compared by digest: the object's comes with a HEAD; an object that has
 * none (it came in parts) counts as another. */
#include "client/commands.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/lock.h"
#include "base/memory.h"
#include "client/pool.h"
#include "client/remote_object.h"
#include "client/sync_plan.h"

enum { KEY_MAX_BYTES = 1024 };

struct sync {
	struct session *session;
	struct remote *remote;
	bool uploads;
	const char *folder;
	struct span bucket;
	struct buffer prefix;      /* empty, or ends in '/' */
	struct sync_list source, target;
	struct sync_plan plan;
	struct lock lock;
	size_t next;               /* guarded by lock: the item to compare next */
	struct transfer_upload *uploading;
	struct transfer_download *downloading;
	const struct sync_item **moving;
	size_t move_count;
	uint64_t bytes;
	size_t removed;
};

static char *item_target(const struct sync *const sync, const char *const name)
{
	struct buffer key;
	buffer_init(&key, 2 * KEY_MAX_BYTES + 4096);
	buffer_add_span(&key, buffer_span(&sync->prefix));
	buffer_add_text(&key, name);
	char *const target = remote_object_target(sync->bucket, buffer_span(&key));
	buffer_release(&key);
	return target;
}

/* What a person writes for a folder begins like a path; so it never depends on what happens to lie on the disk. */
static bool is_folder_word(const char *const word)
{
	return word[0] == '/' || strcmp(word, ".") == 0 || strcmp(word, "..") == 0 || strncmp(word, "./", 2) == 0 || strncmp(word, "../", 3) == 0;
}

static int read_arguments(struct sync *const sync, struct error *const err)
{
	struct session *const session = sync->session;
	const char *const *const words = session->options->arguments;
	struct object_name name;
	sync->uploads = is_folder_word(words[0]);
	if (sync->uploads == is_folder_word(words[1]))
		return session_usage(session, err,
			"sync goes from a folder to BUCKET[/PREFIX] or back; one of the two is a path that begins with /, ./ or ../");
	sync->folder = words[sync->uploads ? 0 : 1];
	if (session_object_name(session, words[sync->uploads ? 1 : 0], &name, err) != 0)
		return -1;
	sync->bucket = name.bucket;
	buffer_add_span(&sync->prefix, name.key);
	if (name.key.len > 0 && name.key.data[name.key.len - 1] != '/')
		buffer_add_byte(&sync->prefix, '/');
	return 0;
}

/* Names that could leave the folder, or stand for a file and a folder at once, are refused before anything is done. */
static int check_names(const struct sync *const sync, struct error *const err)
{
	for (size_t i = 0; i < sync->source.count; i++)
		if (!sync_plan_is_path(sync->source.entries[i].name))
			return error_set(err, ERROR_INVALID, "\"%s%s\" cannot be the name of a file below %s: nothing was done", buffer_text(&sync->prefix),
				sync->source.entries[i].name, sync->folder);
	return 0;
}

static int read_lists(struct sync *const sync, struct error *const err)
{
	struct sync_list *const local = sync->uploads ? &sync->source : &sync->target;
	struct sync_list *const remote = sync->uploads ? &sync->target : &sync->source;
	const bool dry = sync->session->options->dry_run;
	if (sync->uploads && sync->session->options->create_bucket && !dry &&
		remote_object_make_bucket(sync->remote, sync->bucket, err) != 0)
		return -1;
	if (sync_list_prefix(sync->remote, sync->bucket, buffer_span(&sync->prefix), remote, err) != 0)
		return -1;
	if (!sync->uploads && check_names(sync, err) != 0)
		return -1;
	if (!sync->uploads && !dry && file_make_folder(sync->folder, 0755, err) != 0)
		return -1;
	if ((sync->uploads || file_exists(sync->folder)) && sync_list_folder(sync->folder, local, err) != 0)
		return -1;
	/* A mistyped source looks like an empty one. */
	if (sync->session->options->delete && sync->source.count == 0 && sync->target.count > 0)
		return error_set(err, ERROR_NOT_FOUND, "there is nothing at %s: with --delete this would empty the target, so nothing was done",
			sync->session->options->arguments[0]);
	sync_plan_make(&sync->source, &sync->target, &sync->plan);
	return 0;
}

static int compare(const struct sync *const sync, struct sync_item *const item, struct remote *const remote, struct error *const err)
{
	struct remote_object_facts facts;
	struct digest128 digest;
	char *const target = item_target(sync, item->name);
	char *const path = folder_files_join(sync->folder, item->name);
	int result = remote_object_head(remote, target, &facts, err);
	item->state = SYNC_DIFFERS;
	if (result == 0 && facts.has_digest && facts.size == item->size) {
		result = transfer_file_digest(path, &digest, err);
		if (result == 0 && digest128_equal(&digest, &facts.digest))
			item->state = SYNC_SAME;
	}
	free(path);
	free(target);
	return result;
}

static int compare_piece(void *const job, struct remote *const remote, struct error *const err)
{
	struct sync *const sync = job;
	lock_enter(&sync->lock);
	while (sync->next < sync->plan.count && sync->plan.items[sync->next].state != SYNC_MAYBE)
		sync->next++;
	struct sync_item *const item = sync->next < sync->plan.count ? &sync->plan.items[sync->next++] : NULL;
	lock_leave(&sync->lock);
	if (item == NULL)
		return 0;
	return compare(sync, item, remote, err) == 0 ? 1 : -1;
}

static int compare_all(struct sync *const sync, struct error *const err)
{
	const uint64_t parallel = sync->session->options->parallel.value;
	const struct pool_params params = {
		.remote = &sync->session->remote_options,
		.own = sync->remote,
		.threads = parallel != 0 ? (unsigned)parallel : TRANSFER_PARALLEL,
		.piece = compare_piece,
		.job = sync,
	};
	return pool_run(&params, err);
}

static void say(struct sync *const sync, const struct sync_item *const item, const char *const event, const char *const word)
{
	struct output_line line;
	output_line_begin(&line, &sync->session->output, event);
	json_writer_text(&line.writer, "name", span_text(item->name));
	json_writer_u64(&line.writer, "bytes", item->size);
	output_line_end(&line);
	output_say(&sync->session->output, "%s %s", word, item->name);
}

static int add_move(struct sync *const sync, const struct sync_item *const item, struct error *const err)
{
	const size_t i = sync->move_count++;
	char *const path = folder_files_join(sync->folder, item->name);
	sync->moving[i] = item;
	sync->bytes += item->size;
	if (sync->uploads) {
		sync->uploading[i] = (struct transfer_upload){.target = item_target(sync, item->name), .path = path, .size = item->size};
		return 0;
	}
	struct buffer part;
	buffer_init(&part, 8192);
	buffer_format(&part, "%s%s", path, SYNC_PART_SUFFIX);
	sync->downloading[i] = (struct transfer_download){
		.target = item_target(sync, item->name),
		.size = item->size,
		.path = path,
		.part_path = memory_copy_text(buffer_text(&part)),
	};
	buffer_release(&part);
	return folder_files_make_parent(path, err);
}

static int choose_moves(struct sync *const sync, struct error *const err)
{
	sync->moving = memory_new_array(sync->plan.count + 1, sizeof *sync->moving);
	sync->uploading = memory_new_array(sync->plan.count + 1, sizeof *sync->uploading);
	sync->downloading = memory_new_array(sync->plan.count + 1, sizeof *sync->downloading);
	for (size_t i = 0; i < sync->plan.count; i++) {
		const struct sync_item *const item = &sync->plan.items[i];
		if (item->state != SYNC_NEW && item->state != SYNC_DIFFERS)
			continue;
		if (add_move(sync, item, err) != 0)
			return -1;
	}
	return 0;
}

/* The digest that the bytes are checked against: the listing has none. */
static int pin_download(const struct sync *const sync, struct transfer_download *const download, struct error *const err)
{
	struct remote_object_facts facts;
	if (remote_object_head(sync->remote, download->target, &facts, err) != 0)
		return -1;
	download->size = facts.size;
	download->has_digest = facts.has_digest;
	download->digest = facts.digest;
	download->etag = memory_copy_text(facts.etag);
	return 0;
}

static int told_upload(void *const owner, const size_t index, struct error *const err)
{
	struct sync *const sync = owner;
	(void)err;
	say(sync, sync->moving[index], "uploaded", "uploaded");
	return 0;
}

static int move_all(struct sync *const sync, struct error *const err)
{
	struct progress *const progress = progress_new(sync->uploads ? "uploading" : "downloading", sync->bytes, !sync->session->output.quiet);
	const struct transfer_options transfer = session_transfer(sync->session, sync->remote, progress);
	int result = 0;
	if (sync->uploads)
		result = transfer_upload(&transfer, sync->uploading, sync->move_count, told_upload, sync, err);
	for (size_t i = 0; i < sync->move_count && !sync->uploads && result == 0; i++)
		result = pin_download(sync, &sync->downloading[i], err);
	if (!sync->uploads && result == 0)
		result = transfer_download(&transfer, sync->downloading, sync->move_count, err);
	for (size_t i = 0; i < sync->move_count && !sync->uploads && result == 0; i++)
		say(sync, sync->moving[i], "downloaded", "downloaded");
	progress_free(progress);
	return result;
}

static int remove_one(struct sync *const sync, const struct sync_item *const item, struct error *const err)
{
	int result;
	if (sync->uploads) {
		char *const target = item_target(sync, item->name);
		result = remote_object_delete(sync->remote, target, err);
		free(target);
	} else {
		char *const path = folder_files_join(sync->folder, item->name);
		result = unlink(path) == 0 ? 0 : error_set_errno(err, "removing %s", path);
		free(path);
	}
	if (result == 0)
		say(sync, item, "removed", "removed");
	sync->removed++;
	return result;
}

/* Last: who reads meanwhile sees the new before the old is gone. */
static int remove_gone(struct sync *const sync, struct error *const err)
{
	int result = 0;
	for (size_t i = 0; i < sync->plan.count && result == 0 && sync->session->options->delete; i++)
		if (sync->plan.items[i].state == SYNC_GONE)
			result = remove_one(sync, &sync->plan.items[i], err);
	return result;
}

static void say_plan(struct sync *const sync)
{
	for (size_t i = 0; i < sync->plan.count; i++) {
		const struct sync_item *const item = &sync->plan.items[i];
		if (item->state == SYNC_NEW || item->state == SYNC_DIFFERS)
			say(sync, item, sync->uploads ? "would_upload" : "would_download", sync->uploads ? "would upload" : "would download");
		else if (item->state == SYNC_GONE && sync->session->options->delete)
			say(sync, item, "would_remove", "would remove");
	}
}

static void say_result(struct sync *const sync)
{
	char size[OUTPUT_SIZE_BYTES];
	struct output_line line;
	output_format_size(sync->bytes, size);
	output_line_begin(&line, &sync->session->output, "synced");
	json_writer_u64(&line.writer, "files", sync->source.count);
	json_writer_u64(&line.writer, "sent", sync->move_count);
	json_writer_u64(&line.writer, "bytes", sync->bytes);
	json_writer_u64(&line.writer, "removed", sync->removed);
	output_line_end(&line);
	output_say(&sync->session->output, "%zu files, %zu sent (%s), %zu removed", sync->source.count, sync->move_count, size, sync->removed);
}

static void release(struct sync *const sync)
{
	for (size_t i = 0; i < sync->move_count; i++) {
		free((char *)sync->uploading[i].target);
		free((char *)sync->uploading[i].path);
		free((char *)sync->downloading[i].target);
		free((char *)sync->downloading[i].path);
		free((char *)sync->downloading[i].part_path);
		free((char *)sync->downloading[i].etag);
	}
	free(sync->moving);
	free(sync->uploading);
	free(sync->downloading);
	sync_plan_release(&sync->plan);
	sync_list_release(&sync->source);
	sync_list_release(&sync->target);
	remote_free(sync->remote);
	lock_release(&sync->lock);
	buffer_release(&sync->prefix);
}

static int run(struct sync *const sync, struct error *const err)
{
	if (read_arguments(sync, err) != 0)
		return -1;
	sync->remote = session_connect(sync->session, err);
	if (sync->remote == NULL || read_lists(sync, err) != 0 || compare_all(sync, err) != 0)
		return -1;
	if (sync->session->options->dry_run) {
		say_plan(sync);
		return 0;
	}
	if (choose_moves(sync, err) != 0 || move_all(sync, err) != 0 || remove_gone(sync, err) != 0)
		return -1;
	say_result(sync);
	return 0;
}

int command_sync(struct session *const session, struct error *const err)
{
	struct sync sync = {.session = session};
	lock_init(&sync.lock, LOCK_TRANSFER_PARTS);
	buffer_init(&sync.prefix, KEY_MAX_BYTES + 1);
	const int result = run(&sync, err);
	release(&sync);
	return result;
}
