/* `get`: downloads one object. To stdout the bytes go as they come, with one plain request. */
#include "base/quantity.h"
#include "client/commands/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "client/commands/missing_object.h"
#include "client/local/folder_files.h"
#include "client/transfer/object_download.h"

static int get_object(struct object_download *download, bool to_stdout, struct error *err);
static int download_to(struct object_download *download, bool to_stdout, struct error *err);
static char *make_path(struct session *session, const struct object_name *name, struct error *err);
static bool is_folder(const char *path);
static int get_to_stdout(struct remote *remote, const char *target,
	const struct remote_object_facts *facts, struct error *err);
static enum sink_result command_get_write_stdout(
	struct body_sink *sink, struct span bytes, struct error *err);
static void say_got(struct object_download *download);

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
	struct object_download download = {
		.session = session,
		.name = name,
		.target = target,
		.seeds = options->seeds.items,
		.seed_count = options->seeds.count,
		.is_plain = options->plain,
	};
	const int result = get_object(&download, to_stdout, err);
	free(target);
	return result;
}

static int get_object(struct object_download *download, bool to_stdout, struct error *err)
{
	char *const path = to_stdout ? NULL : make_path(download->session, &download->name, err);
	if (path == NULL && !to_stdout)
		return -1;
	download->path = path;
	download->remote = session_connect(download->session, err);
	const int result = download->remote == NULL ? -1 : download_to(download, to_stdout, err);
	remote_free(download->remote);
	free(path);
	return result;
}

static int download_to(struct object_download *download, bool to_stdout, struct error *err)
{
	struct remote *const remote = download->remote;
	if (remote_object_head(remote, download->target, &download->facts, err) != 0)
		return missing_object_explain(remote, &download->name, err);
	if (to_stdout)
		return get_to_stdout(remote, download->target, &download->facts, err);
	if (object_download_run(download, err) != 0)
		return -1;
	say_got(download);
	return 0;
}

/* The path of the file to write: the given one, or in a given folder the last part of the key. On
 * the heap, the caller's; NULL with the error. */
static char *make_path(struct session *session, const struct object_name *name, struct error *err)
{
	const char *const given =
		session->options->argument_count > 1 ? session->options->arguments[1] : ".";
	if (!is_folder(given))
		return object_download_check(given, err) == 0 ? memory_copy_text(given) : NULL;
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

static void say_got(struct object_download *download)
{
	char size[QUANTITY_TEXT_BYTES];
	char received[QUANTITY_TEXT_BYTES];
	struct output_line line;
	quantity_format(download->facts.size, size);
	quantity_format(download->received, received);
	output_line_begin(&line, &download->session->output, "got");
	json_writer_text(&line.writer, "path", span_text(download->path));
	json_writer_u64(&line.writer, "bytes", download->facts.size);
	json_writer_u64(&line.writer, "received", download->received);
	output_line_end(&line);
	output_say(&download->session->output, "got %s, %s, received %s", download->path, size,
		received);
}
