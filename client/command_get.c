#include "client/commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "client/folder_files.h"
#include "client/remote_object.h"

struct stdout_sink {
	struct body_sink sink;
};

static enum sink_result stdout_sink_write(struct body_sink *const sink, const struct span bytes, struct error *const err)
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

static int get_to_stdout(struct remote *const remote, const char *const target, const struct remote_object_facts *const facts,
	struct error *const err)
{
	struct stdout_sink sink = {.sink = {.write = stdout_sink_write}};
	const struct remote_object_range range = {
		.target = target,
		.etag = facts->etag[0] != '\0' ? facts->etag : NULL,
		.size = facts->size,
		.whole = true,
	};
	return remote_object_get(remote, &range, &sink.sink, err);
}

/* The file to write: as given, or below a given folder under the key's last part. Heap. */
static char *make_path(struct session *const session, const struct object_name *const name, struct error *const err)
{
	const char *const given = session->options->argument_count > 1 ? session->options->arguments[1] : ".";
	struct stat facts;
	if (stat(given, &facts) != 0 || !S_ISDIR(facts.st_mode))
		return memory_copy_text(given);
	char *const key = memory_new(name->key.len + 1);
	memcpy(key, name->key.data, name->key.len);
	const char *const slash = strrchr(key, '/');
	const char *const own = slash != NULL ? slash + 1 : key;
	char *path = NULL;
	if (own[0] == '\0' || strcmp(own, ".") == 0 || strcmp(own, "..") == 0)
		session_usage(session, err, "the key %s gives no file name: say which file to write", key);
	else
		path = folder_files_join(given, own);
	free(key);
	return path;
}

static int get_to_file(struct session *const session, struct remote *const remote, const char *const target,
	const struct remote_object_facts *const facts, const char *const path, struct error *const err)
{
	struct buffer part;
	buffer_init(&part, 8192);
	buffer_format(&part, "%s.part", path);
	if (buffer_check(&part, "the path", err) != 0)
		return -1;
	struct progress *const progress = progress_new("downloading", facts->size, !session->output.quiet);
	const struct transfer_options transfer = session_transfer(session, remote, progress);
	const struct transfer_download download = {
		.target = target,
		.size = facts->size,
		.has_digest = facts->has_digest,
		.digest = facts->digest,
		.etag = facts->etag[0] != '\0' ? facts->etag : NULL,
		.path = path,
		.part_path = buffer_text(&part),
	};
	const int result = transfer_download(&transfer, &download, 1, err);
	progress_free(progress);
	buffer_release(&part);
	return result;
}

static void say_got(struct session *const session, const char *const path, const uint64_t size)
{
	char text[OUTPUT_SIZE_BYTES];
	struct output_line line;
	output_format_size(size, text);
	output_line_begin(&line, &session->output, "got");
	json_writer_text(&line.writer, "path", span_text(path));
	json_writer_u64(&line.writer, "bytes", size);
	output_line_end(&line);
	output_say(&session->output, "got %s, %s", path, text);
}

int command_get(struct session *const session, struct error *const err)
{
	const struct options *const options = session->options;
	const bool to_stdout = options->argument_count > 1 && strcmp(options->arguments[1], "-") == 0;
	struct object_name name;
	struct remote_object_facts facts;
	if (session_object_name(session, options->arguments[0], &name, err) != 0)
		return -1;
	if (name.key.len == 0)
		return session_usage(session, err, "say which object: BUCKET/KEY");
	char *const target = remote_object_target(name.bucket, name.key);
	char *const path = to_stdout ? NULL : make_path(session, &name, err);
	struct remote *const remote = to_stdout || path != NULL ? session_connect(session, err) : NULL;
	int result = remote == NULL ? -1 : remote_object_head(remote, target, &facts, err);
	if (result == 0 && to_stdout)
		result = get_to_stdout(remote, target, &facts, err);
	else if (result == 0)
		result = get_to_file(session, remote, target, &facts, path, err);
	if (result == 0 && !to_stdout)
		say_got(session, path, facts.size);
	remote_free(remote);
	free(path);
	free(target);
	return result;
}
