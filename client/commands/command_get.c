/* `get`: downloads one object. To stdout the bytes go as they come, with one plain request. A file
 * is downloaded over Xet when that can save traffic (wants_xet), because then chunks that are
 * already on this side are not sent. If the server cannot do that for the object, a plain download
 * follows. */
#include "client/commands/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "client/commands/missing_object.h"
#include "client/local/folder_files.h"
#include "client/local/part_file.h"
#include "client/remote/remote_hub.h"
#include "client/remote/remote_object.h"
#include "client/transfer/xet_download.h"

enum { XET_MIN_BYTES = 256 * 1024, PATH_MAX_BYTES = 8192 };

struct get {
	struct session *session;
	struct remote *remote;
	const struct object_name *name;
	const char *target;
	struct remote_object_facts facts;
	char *path; /* NULL: stdout */
	char *part;
	struct progress *progress;
	_Atomic uint64_t received;
};

static int get_object(struct get *get, bool to_stdout, struct error *err);
static int choose_path(struct get *get, struct error *err);
static char *make_path(struct session *session, const struct object_name *name, struct error *err);
static bool is_folder(const char *path);
static int check_folder(const char *path, struct error *err);
static int get_to_stdout(struct remote *remote, const char *target,
	const struct remote_object_facts *facts, struct error *err);
static enum sink_result command_get_write_stdout(
	struct body_sink *sink, struct span bytes, struct error *err);
static int get_to_file(struct get *get, struct error *err);
static bool wants_xet(const struct get *get);
static bool lacks_seeds(const struct get *get);
static int get_xet(struct get *get, struct error *err);
static int get_by_hash(
	struct get *get, struct xet_access *access, const struct chunk_id *hash, struct error *err);
static int get_plain(struct get *get, struct error *err);
static void say_got(struct get *get);

int command_get(struct session *session, struct error *err)
{
	const struct options *const options = session->options;
	const bool to_stdout =
		options->argument_count > 1 && strcmp(options->arguments[1], "-") == 0;
	struct object_name name;
	ASSERT(options->argument_count == 1 || options->argument_count == 2);
	if (session_object_name(session, options->arguments[0], &name, err) != 0)
		return -1;
	if (name.key.len == 0)
		return session_usage(session, err, "say which object: BUCKET/KEY");
	char *const target = remote_object_target(name.bucket, name.key);
	struct get get = {.session = session, .name = &name, .target = target};
	const int result = get_object(&get, to_stdout, err);
	remote_free(get.remote);
	free(get.part);
	free(get.path);
	free(target);
	return result;
}

static int get_object(struct get *get, bool to_stdout, struct error *err)
{
	if (!to_stdout && choose_path(get, err) != 0)
		return -1;
	get->remote = session_connect(get->session, err);
	if (get->remote == NULL)
		return -1;
	if (remote_object_head(get->remote, get->target, &get->facts, err) != 0)
		return missing_object_explain(get->remote, get->name, err);
	if (to_stdout)
		return get_to_stdout(get->remote, get->target, &get->facts, err);
	if (get_to_file(get, err) != 0)
		return -1;
	say_got(get);
	return 0;
}

static int choose_path(struct get *get, struct error *err)
{
	get->path = make_path(get->session, get->name, err);
	if (get->path == NULL)
		return -1;
	get->part = part_file_path(get->path, ".part");
	return 0;
}

/* The path of the file to write: the given one, or in a given folder the last part of the key. On
 * the heap, the caller's; NULL with the error. */
static char *make_path(struct session *session, const struct object_name *name, struct error *err)
{
	const char *const given =
		session->options->argument_count > 1 ? session->options->arguments[1] : ".";
	if (!is_folder(given))
		return check_folder(given, err) == 0 && part_file_check_target(given, err) == 0
			? memory_copy_text(given)
			: NULL;
	char *const key = memory_new(name->key.len + 1);
	memcpy(key, name->key.data, name->key.len);
	const char *const slash = strrchr(key, '/');
	const char *const own = slash != NULL ? slash + 1 : key;
	char *path = NULL;
	if (own[0] == '\0' || strcmp(own, ".") == 0 || strcmp(own, "..") == 0)
		session_usage(session, err,
			"the key %s gives no file name: say which file to write; "
			"`deltabucket sync %.*s/%s ./FOLDER` downloads a folder",
			key, (int)name->bucket.len, (const char *)name->bucket.data, key);
	else
		path = folder_files_join(given, own);
	free(key);
	return path;
}

static bool is_folder(const char *path)
{
	struct stat facts;
	return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

/* Refuses a path in a folder that does not exist, before anything is asked for. */
static int check_folder(const char *path, struct error *err)
{
	const char *const slash = strrchr(path, '/');
	if (slash == NULL || slash == path)
		return 0;
	char *const folder = memory_copy_text(path);
	folder[slash - path] = '\0';
	const int result = is_folder(folder)
		? 0
		: error_set(err, ERROR_NOT_FOUND, "there is no folder %s to write to", folder);
	free(folder);
	return result;
}

static int get_to_stdout(struct remote *remote, const char *target,
	const struct remote_object_facts *facts, struct error *err)
{
	struct body_sink sink = {.write = command_get_write_stdout};
	const struct remote_object_range range = {
		.target = target,
		.etag = facts->etag[0] != '\0' ? facts->etag : NULL,
		.size = facts->size,
		.whole = true,
	};
	return remote_object_get(remote, &range, &sink, err);
}

static enum sink_result command_get_write_stdout(
	struct body_sink *sink, struct span bytes, struct error *err)
{
	(void)sink;
	size_t done = 0;
	while (done < bytes.len) {
		const ssize_t len = write(STDOUT_FILENO, bytes.data + done, bytes.len - done);
		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0) {
			error_set_errno(err, "writing to stdout");
			return SINK_FAILED;
		}
		done += (size_t)len;
	}
	return SINK_TAKEN;
}

/* If the server refuses the download over Xet, a plain one succeeds or gives the reason. */
static int get_to_file(struct get *get, struct error *err)
{
	struct error failure = {0};
	const bool by_xet = wants_xet(get);
	get->progress = progress_new("downloading", get->facts.size, get->session->progress);
	int result = by_xet ? get_xet(get, &failure) : get_plain(get, err);
	if (by_xet && result != 0 && session_wants_plain(&failure))
		result = get_plain(get, err);
	else if (by_xet && result != 0)
		*err = failure;
	progress_free(get->progress);
	return result;
}

/* A small object is cheaper as a whole. So is a derived one, which the server would first have to
 * cut into chunks, unless there are local chunks that may save most of it. */
static bool wants_xet(const struct get *get)
{
	if (get->session->options->plain || get->facts.size < XET_MIN_BYTES ||
		!remote_hub_takes(get->name->key))
		return false;
	return !(get->facts.is_derived && get->facts.has_digest && lacks_seeds(get));
}

/* Whether there is neither a local file to take chunks from nor an earlier Xet download to
 * resume. */
static bool lacks_seeds(const struct get *get)
{
	char journal[PATH_MAX_BYTES];
	const int len = snprintf(journal, sizeof(journal), "%s.chunks", get->part);
	return get->session->options->seeds.count == 0 && !file_exists(get->path) &&
		len < PATH_MAX_BYTES && !file_exists(journal);
}

/* Downloads over Xet, by the file hash that the server has for the object now. unsupported when the
 * server has none. */
static int get_xet(struct get *get, struct error *err)
{
	struct chunk_id hash;
	uint64_t size;
	struct xet_access *const access =
		xet_access_open(get->remote, get->name->bucket, false, err);
	if (access == NULL)
		return -1;
	int result =
		remote_hub_find(get->remote, get->name->bucket, get->name->key, &size, &hash, err);
	if (result == 0)
		result = error_set(
			err, ERROR_NOT_FOUND, "the server's Hub face does not know the object");
	else if (result > 0) {
		get->facts.size = size;
		result = get_by_hash(get, access, &hash, err);
	}
	xet_access_close(access);
	return result;
}

/* Downloads the object with this file hash. */
static int get_by_hash(
	struct get *get, struct xet_access *access, const struct chunk_id *hash, struct error *err)
{
	ASSERT(get->path != NULL && get->part != NULL);
	struct session *const session = get->session;
	char *const cache_path = hash_cache_default_path();
	struct hash_cache *const cache = hash_cache_open(session->files, cache_path);
	const struct xet_download download = {
		.files = session->files,
		.options = &session->remote_options,
		.own = get->remote,
		.access = access,
		.parallel = session_parallel(session),
		.cache = cache,
		.progress = get->progress,
	};
	const struct xet_download_file file = {
		.hash = *hash,
		.size = get->facts.size,
		.name = session->options->arguments[0],
		.path = get->path,
		.part_path = get->part,
		.seeds = session->options->seeds.items,
		.seed_count = session->options->seeds.count,
	};
	const int result = xet_download(&download, &file, 1, err);
	get->received += atomic_load(&xet_access_traffic(access)->received);
	hash_cache_close(cache);
	free(cache_path);
	return result;
}

static int get_plain(struct get *get, struct error *err)
{
	ASSERT(get->path != NULL && get->part != NULL);
	struct transfer_options transfer =
		session_transfer(get->session, get->remote, get->progress);
	transfer.received = &get->received;
	const struct transfer_download download = {
		.target = get->target,
		.size = get->facts.size,
		.has_digest = get->facts.has_digest,
		.digest = get->facts.digest,
		.has_hash = get->facts.has_hash,
		.hash = get->facts.hash,
		.etag = get->facts.etag[0] != '\0' ? get->facts.etag : NULL,
		.path = get->path,
		.part_path = get->part,
	};
	return transfer_download(&transfer, &download, 1, err);
}

static void say_got(struct get *get)
{
	char size[OUTPUT_SIZE_BYTES];
	char received[OUTPUT_SIZE_BYTES];
	struct output_line line;
	ASSERT(get->path != NULL);
	output_format_size(get->facts.size, size);
	output_format_size(get->received, received);
	output_line_begin(&line, &get->session->output, "got");
	json_writer_text(&line.writer, "path", span_text(get->path));
	json_writer_u64(&line.writer, "bytes", get->facts.size);
	json_writer_u64(&line.writer, "received", get->received);
	output_line_end(&line);
	output_say(&get->session->output, "got %s, %s, received %s", get->path, size, received);
}
