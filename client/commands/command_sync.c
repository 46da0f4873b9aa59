/* `sync`: makes a folder like a prefix, or a prefix like a folder. It lists both ends, plans,
 * compares, moves what differs, and last, with --delete, removes what the source lacks. Files of
 * the same size are compared by the file hash from the listing. If the server has no such listing,
 * they are compared by the hash or digest from a HEAD; an object that has neither yet, because it
 * was just uploaded in parts, counts as different. */
#include "client/commands/commands.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/thread/lock.h"
#include "client/commands/file_word.h"
#include "client/remote/remote_object.h"
#include "client/sync/sync_move.h"
#include "client/transfer/pool.h"

enum { KEY_MAX_BYTES = 1024 };

struct sync {
	struct session *session;
	struct sync_move move; /* both ends, and the items that go from one to the other */
	struct buffer prefix;  /* empty, or ends in '/' */
	struct sync_list source, target;
	struct sync_plan plan;
	struct lock lock;
	size_t next; /* guarded by lock: the item to compare next */
	size_t removed;
	size_t refused;       /* removals that the server refused */
	struct error refusal; /* the first one */
};

static int run(struct sync *sync, struct error *err);
static int read_arguments(struct sync *sync, struct error *err);
static int refuse_ends(struct session *session, const char *const *words, struct error *err);
static int refuse_file(const struct sync *sync, struct error *err);
static int read_lists(struct sync *sync, struct error *err);
static int list_objects(struct sync *sync, struct sync_list *out, struct error *err);
static int check_names(const struct sync *sync, struct error *err);
static bool lies_below_a_file(const struct sync_list *list, const char *name);
static int command_sync_by_name(const void *name, const void *entry);
static int compare_all(struct sync *sync, struct error *err);
static int command_sync_compare(void *job, struct remote *remote, struct error *err);
static int compare(
	const struct sync *sync, struct sync_item *item, struct remote *remote, struct error *err);
static int compare_hashes(const struct sync *sync, struct sync_item *item,
	const struct chunk_id *wanted, const char *path, struct error *err);
static int compare_digests(const struct sync *sync, struct sync_item *item, const char *path,
	struct remote *remote, struct error *err);
static void say_plan(struct sync *sync);
static void say(
	struct sync *sync, const struct sync_item *item, const char *event, const char *word);
static int remove_gone(struct sync *sync, struct error *err);
static void command_sync_removed(void *owner, const struct sync_item *item);
static void command_sync_refused(
	void *owner, const struct sync_item *item, const struct error *why);
static int judge_removal(const struct sync *sync, struct error *err);
static void choose_moves(struct sync *sync);
static void command_sync_moved(void *owner, const struct sync_item *item);
static void say_result(struct sync *sync);
static void release(struct sync *sync);

int command_sync(struct session *session, struct error *err)
{
	char *const cache_path = hash_cache_default_path();
	struct sync sync = {.session = session,
		.move = {.session = session, .cache = hash_cache_open(session->files, cache_path)}};
	sync.move.owner = &sync;
	lock_init(&sync.lock, LOCK_TRANSFER_PARTS);
	buffer_init(&sync.prefix, KEY_MAX_BYTES + 1);
	const int result = run(&sync, err);
	release(&sync);
	free(cache_path);
	return result;
}

static int run(struct sync *sync, struct error *err)
{
	if (read_arguments(sync, err) != 0)
		return -1;
	sync->move.remote = session_connect(sync->session, err);
	if (sync->move.remote == NULL || read_lists(sync, err) != 0 || compare_all(sync, err) != 0)
		return -1;
	if (sync->session->options->dry_run) {
		say_plan(sync);
		return remove_gone(sync, err) == 0 ? judge_removal(sync, err) : -1;
	}
	choose_moves(sync);
	if (sync_move_all(&sync->move, command_sync_moved, err) != 0 || remove_gone(sync, err) != 0)
		return -1;
	say_result(sync);
	return judge_removal(sync, err);
}

static int read_arguments(struct sync *sync, struct error *err)
{
	struct session *const session = sync->session;
	const char *const *const words = session->options->arguments;
	struct object_name name;
	ASSERT(session->options->argument_count == 2);
	sync->move.uploads = file_word_is_path(words[0]);
	sync->move.is_plain = session->options->plain;
	sync->move.is_dry = session->options->dry_run;
	if (sync->move.uploads == file_word_is_path(words[1]))
		return refuse_ends(session, words, err);
	sync->move.folder = words[sync->move.uploads ? 0 : 1];
	if (file_word_is_no_folder(sync->move.folder))
		return refuse_file(sync, err);
	if (session_object_name(session, words[sync->move.uploads ? 1 : 0], &name, err) != 0)
		return -1;
	sync->move.bucket = name.bucket;
	buffer_add_span(&sync->prefix, name.key);
	if (name.key.len > 0 && name.key.data[name.key.len - 1] != '/')
		buffer_add_byte(&sync->prefix, '/');
	sync->move.prefix = buffer_span(&sync->prefix);
	return buffer_check(&sync->prefix, "the prefix", err);
}

/* Refuses two words of which not exactly one is a path. The spelling alone decides (file_word.h),
 * so a folder that happens to exist here does not change the meaning. */
static int refuse_ends(struct session *session, const char *const *words, struct error *err)
{
	for (int i = 0; i < 2; i++)
		if (!file_word_is_path(words[i]) && file_exists(words[i]))
			return session_usage(session, err,
				"%s is taken for a bucket; the folder of that name is written ./%s",
				words[i], words[i]);
	return session_usage(session, err,
		"sync goes from a folder to BUCKET[/PREFIX] or back; exactly one of the two must be a "
		"path that begins with /, ./ or ../");
}

/* Names the command that moves one file. */
static int refuse_file(const struct sync *sync, struct error *err)
{
	const struct options *const options = sync->session->options;
	const char *const file = sync->move.folder;
	return sync->move.uploads
		? session_usage(sync->session, err,
			  "%s is not a folder; `deltabucket put %s %s` uploads one file", file,
			  file, options->arguments[1])
		: session_usage(sync->session, err,
			  "%s is not a folder; `deltabucket get BUCKET/KEY %s` downloads one object",
			  file, file);
}

static int read_lists(struct sync *sync, struct error *err)
{
	struct sync_list *const local = sync->move.uploads ? &sync->source : &sync->target;
	struct sync_list *const remote = sync->move.uploads ? &sync->target : &sync->source;
	const bool dry = sync->session->options->dry_run;
	if (sync->move.uploads && sync->session->options->create_bucket && !dry &&
		remote_object_make_bucket(sync->move.remote, sync->move.bucket, err) != 0)
		return -1;
	if (list_objects(sync, remote, err) != 0)
		return -1;
	if (!sync->move.uploads && check_names(sync, err) != 0)
		return -1;
	if (!sync->move.uploads && !dry &&
		file_make_folder(sync->session->files, sync->move.folder, 0755, err) != 0)
		return -1;
	if ((sync->move.uploads || file_exists(sync->move.folder)) &&
		sync_list_folder(sync->move.folder, sync->move.uploads, local, err) != 0)
		return -1;
	/* A mistyped source looks like an empty source. */
	if (sync->session->options->delete &&sync->source.count == 0 && sync->target.count > 0)
		return error_set(err, ERROR_NOT_FOUND,
			"there is nothing at %s: with --delete this would empty the target, so "
			"nothing was done",
			sync->session->options->arguments[0]);
	sync_plan_make(&sync->source, &sync->target, &sync->plan);
	return 0;
}

/* Lists the objects from one listing that has every key, and adds the hashes from another. */
static int list_objects(struct sync *sync, struct sync_list *out, struct error *err)
{
	const struct sync_move *const move = &sync->move;
	struct error failure = {0};
	if (sync_list_prefix(move->remote, move->bucket, move->prefix, out, err) != 0)
		return -1;
	if (sync->session->options->plain ||
		sync_list_add_hashes(move->remote, move->bucket, move->prefix, out, &failure) ==
			0 ||
		session_wants_plain(&failure))
		return 0;
	*err = failure;
	return -1;
}

/* Refuses names that could leave the folder, or that are a file and a folder at once, before
 * anything is done. */
static int check_names(const struct sync *sync, struct error *err)
{
	for (size_t i = 0; i < sync->source.count; i++)
		if (!sync_plan_is_path(sync->source.entries[i].name) ||
			lies_below_a_file(&sync->source, sync->source.entries[i].name))
			return error_set(err, ERROR_INVALID,
				"\"%s%s\" cannot be the name of a file below %s, so nothing was done",
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
				command_sync_by_name) != NULL;
		*slash = '/';
	}
	free(above);
	return found;
}

static int command_sync_by_name(const void *name, const void *entry)
{
	return strcmp(name, ((const struct sync_entry *)entry)->name);
}

static int compare_all(struct sync *sync, struct error *err)
{
	const struct pool_params params = {
		.remote = &sync->session->remote_options,
		.own = sync->move.remote,
		.threads = session_parallel(sync->session),
		.piece = command_sync_compare,
		.job = sync,
	};
	return pool_run(&params, err);
}

/* Compares the next item. Called by the threads of a pool: 1 to be called again, 0 when no item is
 * left. */
static int command_sync_compare(void *job, struct remote *remote, struct error *err)
{
	struct sync *const sync = job;
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

static int compare(
	const struct sync *sync, struct sync_item *item, struct remote *remote, struct error *err)
{
	char *const path = folder_files_join(sync->move.folder, item->name);
	const int result = item->hash != NULL ? compare_hashes(sync, item, item->hash, path, err)
					      : compare_digests(sync, item, path, remote, err);
	free(path);
	return result;
}

static int compare_hashes(const struct sync *sync, struct sync_item *item,
	const struct chunk_id *wanted, const char *path, struct error *err)
{
	struct chunk_id hash;
	if (hash_cache_hash(sync->move.cache, path, sync->session->stop, &hash, err) != 0)
		return -1;
	item->state = chunk_id_equal(&hash, wanted) ? SYNC_SAME : SYNC_DIFFERS;
	return 0;
}

static int compare_digests(const struct sync *sync, struct sync_item *item, const char *path,
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

static void say_plan(struct sync *sync)
{
	for (size_t i = 0; i < sync->plan.count; i++) {
		const struct sync_item *const item = &sync->plan.items[i];
		if (item->state == SYNC_NEW || item->state == SYNC_DIFFERS)
			say(sync, item, sync->move.uploads ? "would_upload" : "would_download",
				sync->move.uploads ? "would upload" : "would download");
	}
}

static void say(
	struct sync *sync, const struct sync_item *item, const char *event, const char *word)
{
	struct output_line line;
	output_line_begin(&line, &sync->session->output, event);
	json_writer_text(&line.writer, "name", span_text(item->name));
	json_writer_u64(&line.writer, "bytes", item->size);
	output_line_end(&line);
	output_fn *const tell = sync->session->options->dry_run ? output_result : output_say;
	tell(&sync->session->output, "%s %s", word, item->name);
}

/* Removes last: a reader meanwhile sees the new objects before the old ones are gone. */
static int remove_gone(struct sync *sync, struct error *err)
{
	const struct sync_item **const gone = memory_new_array(sync->plan.count + 1, sizeof(*gone));
	size_t count = 0;
	for (size_t i = 0; i < sync->plan.count && sync->session->options->delete; i++)
		if (sync->plan.items[i].state == SYNC_GONE)
			gone[count++] = &sync->plan.items[i];
	const int result = sync_move_remove(
		&sync->move, gone, count, command_sync_removed, command_sync_refused, err);
	free(gone);
	return result;
}

static void command_sync_removed(void *owner, const struct sync_item *item)
{
	struct sync *const sync = owner;
	const bool dry = sync->session->options->dry_run;
	sync->removed++;
	say(sync, item, dry ? "would_remove" : "removed", dry ? "would remove" : "removed");
}

static void command_sync_refused(void *owner, const struct sync_item *item, const struct error *why)
{
	struct sync *const sync = owner;
	struct output_line line;
	if (sync->refused++ == 0)
		sync->refusal = *why;
	output_line_begin(&line, &sync->session->output, "refused");
	json_writer_text(&line.writer, "name", span_text(item->name));
	json_writer_text(&line.writer, "code", span_text(error_kind_name(why->kind)));
	json_writer_text(&line.writer, "message", span_text(why->text));
	output_line_end(&line);
	output_failure(&sync->session->output, "%s %s: %s",
		sync->session->options->dry_run ? "would keep" : "kept", item->name, why->text);
}

static int judge_removal(const struct sync *sync, struct error *err)
{
	if (sync->refused == 0)
		return 0;
	*err = sync->refusal;
	return error_wrap(err, "%zu of the objects to remove %s, the first because", sync->refused,
		sync->session->options->dry_run ? "would stay" : "stay");
}

static void choose_moves(struct sync *sync)
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

static void command_sync_moved(void *owner, const struct sync_item *item)
{
	struct sync *const sync = owner;
	const char *const event = sync->move.uploads ? "uploaded" : "downloaded";
	say(sync, item, event, event);
}

static void say_result(struct sync *sync)
{
	char size[OUTPUT_SIZE_BYTES];
	char moved[OUTPUT_SIZE_BYTES];
	struct output_line line;
	const struct sync_move *const move = &sync->move;
	output_format_size(move->bytes, size);
	output_format_size(move->traffic, moved);
	output_line_begin(&line, &sync->session->output, "synced");
	json_writer_u64(&line.writer, "files", sync->source.count);
	json_writer_u64(&line.writer, "sent", move->count);
	json_writer_u64(&line.writer, "bytes", move->bytes);
	json_writer_u64(
		&line.writer, move->uploads ? "sent_bytes" : "received_bytes", move->traffic);
	json_writer_u64(&line.writer, "removed", sync->removed);
	json_writer_u64(&line.writer, "refused", sync->refused);
	output_line_end(&line);
	if (move->count == 0)
		output_say(&sync->session->output, "%zu files, nothing to send, %zu removed",
			sync->source.count, sync->removed);
	else
		output_say(&sync->session->output,
			"%zu files, %zu %s (%s; %s over the network), %zu removed",
			sync->source.count, move->count, move->uploads ? "sent" : "received", size,
			moved, sync->removed);
}

static void release(struct sync *sync)
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
