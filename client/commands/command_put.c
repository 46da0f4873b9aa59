/* `put`: uploads one file or stdin. A large file goes over Xet, because then chunks that the server
 * already has are not sent. Small files, stdin, and keys that the Hub face does not take go with
 * one plain request; so does a file whose upload over Xet the server refuses. */
#include "client/commands/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "client/commands/file_word.h"
#include "client/remote/missing_bucket.h"
#include "client/remote/remote_hub.h"
#include "client/remote/remote_object.h"
#include "client/transfer/xet_upload.h"

enum { COPY_BLOCK_BYTES = 256 * 1024, XET_MIN_BYTES = 64 * 1024 };

struct put {
	struct session *session;
	struct remote *remote;
	const char *path;
	struct span bucket, key;
	uint64_t size;
	uint64_t sent;
};

static int check_file(struct put *put, struct error *err);
static int make_key(struct session *session, const char *path, const struct object_name *name,
	struct buffer *out, struct error *err);
static int send_file(struct put *put, struct error *err);
static bool wants_xet(struct put *put);
static int put_plain(struct put *put, struct error *err);
static int open_file(const char *path, struct error *err);
static int spool_stdin(struct error *err);
static int put_xet(struct put *put, struct xet_access *access, struct error *err);
static void say_put(const struct put *put);

int command_put(struct session *session, struct error *err)
{
	struct put put = {.session = session, .path = session->options->arguments[0]};
	struct object_name name;
	struct buffer key;
	int result = -1;
	ASSERT(session->options->argument_count == 2);
	buffer_init(&key, 1024);
	if (check_file(&put, err) != 0)
		goto out;
	if (session_object_name(session, session->options->arguments[1], &name, err) != 0 ||
		make_key(session, put.path, &name, &key, err) != 0)
		goto out;
	put.bucket = name.bucket;
	put.key = buffer_span(&key);
	put.remote = session_connect(session, err);
	if (put.remote == NULL)
		goto out;
	if (session->options->create_bucket &&
		remote_object_make_bucket(put.remote, name.bucket, err) != 0)
		goto out;
	result = send_file(&put, err);
	if (result == 0)
		say_put(&put);
	else if (err->kind == ERROR_NO_BUCKET)
		missing_bucket_refuse(name.bucket, err);
out:
	remote_free(put.remote);
	buffer_release(&key);
	return result;
}

/* Refuses a folder, naming the command that uploads one. */
static int check_file(struct put *put, struct error *err)
{
	struct stat facts;
	const char *const path = put->path;
	if (strcmp(path, "-") == 0 || stat(path, &facts) != 0 || !S_ISDIR(facts.st_mode))
		return 0;
	const char *const dot = file_word_is_path(path) ? "" : "./";
	return session_usage(put->session, err,
		"%s is a folder; `deltabucket sync %s%s %s` uploads what it contains", path, dot,
		path, put->session->options->arguments[1]);
}

/* With BUCKET/ or BUCKET/folder/ the object gets the file's own name. */
static int make_key(struct session *session, const char *path, const struct object_name *name,
	struct buffer *out, struct error *err)
{
	buffer_add_span(out, name->key);
	if (name->key.len > 0 && name->key.data[name->key.len - 1] != '/')
		return 0;
	const char *const slash = strrchr(path, '/');
	const char *const own = slash != NULL ? slash + 1 : path;
	if (strcmp(path, "-") == 0 || own[0] == '\0')
		return session_usage(session, err, "say under which key: BUCKET/KEY");
	buffer_add_text(out, own);
	return buffer_check(out, "the key", err);
}

/* If the server refuses the upload over Xet, a plain one succeeds or gives the reason. */
static int send_file(struct put *put, struct error *err)
{
	struct error failure = {0};
	if (!wants_xet(put))
		return put_plain(put, err);
	struct xet_access *const access = xet_access_open(put->remote, put->bucket, true, &failure);
	const int result = access == NULL ? -1 : put_xet(put, access, &failure);
	xet_access_close(access);
	if (result == 0)
		return 0;
	if (session_wants_plain(&failure))
		return put_plain(put, err);
	*err = failure;
	return -1;
}

/* Whether to upload over Xet. Also sets put->size then. Small files are cheaper in one plain
 * request; streams and keys that the Hub face does not take are only possible so. */
static bool wants_xet(struct put *put)
{
	struct file_facts facts;
	struct error ignored = {0};
	if (put->session->options->plain || strcmp(put->path, "-") == 0 ||
		!remote_hub_takes(put->key))
		return false;
	if (file_facts_read(put->path, &facts, &ignored) != 0)
		return false;
	put->size = facts.size;
	return facts.size >= XET_MIN_BYTES;
}

static int put_plain(struct put *put, struct error *err)
{
	ASSERT(put->key.len > 0);
	const int fd = open_file(put->path, err);
	if (fd < 0)
		return -1;
	struct stat facts;
	int result = fstat(fd, &facts) == 0 ? 0 : error_set_errno(err, "looking at %s", put->path);
	if (result == 0 && !S_ISREG(facts.st_mode))
		result = error_set(err, ERROR_INVALID,
			"%s is not a regular file; give - to upload what comes on stdin",
			put->path);
	if (result == 0) {
		put->size = (uint64_t)facts.st_size;
		put->sent = put->size;
		char *const target = remote_object_target(put->bucket, put->key);
		struct progress *const progress =
			progress_new("uploading", put->size, put->session->progress);
		const struct remote_object_body body = {
			.fd = fd, .size = put->size, .path = put->path, .progress = progress};
		result = remote_object_put(put->remote, target, &body, err);
		progress_free(progress);
		free(target);
	}
	close(fd);
	return result;
}

static int open_file(const char *path, struct error *err)
{
	if (strcmp(path, "-") == 0)
		return spool_stdin(err);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 ? fd : error_set_errno(err, "opening %s", path);
}

/* Copies stdin to a nameless temporary file and returns its descriptor. A stream has no size and
 * could not be sent again after a failure. */
static int spool_stdin(struct error *err)
{
	const char *const folder = getenv("TMPDIR");
	const int fd = open(folder != NULL ? folder : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_set_errno(
			err, "making a temporary file in %s", folder != NULL ? folder : "/tmp");
	uint8_t *const block = memory_new(COPY_BLOCK_BYTES);
	ssize_t len;
	int result = fd;
	while (result >= 0 && (len = read(STDIN_FILENO, block, COPY_BLOCK_BYTES)) != 0) {
		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0)
			result = error_set_errno(err, "reading stdin");
		else if (write(fd, block, (size_t)len) != len)
			result = error_set_errno(err, "keeping stdin in a temporary file");
	}
	free(block);
	if (result < 0)
		close(fd);
	return result;
}

static int put_xet(struct put *put, struct xet_access *access, struct error *err)
{
	struct session *const session = put->session;
	ASSERT(put->key.len > 0);
	char *const cache_path = hash_cache_default_path();
	struct hash_cache *const cache = hash_cache_open(session->files, cache_path);
	struct progress *const reading = progress_new("hashing", put->size, session->progress);
	struct progress *const progress = progress_new("uploading", put->size, session->progress);
	const struct xet_upload upload = {
		.options = &session->remote_options,
		.own = put->remote,
		.access = access,
		.bucket = put->bucket,
		.parallel = session_parallel(session),
		.cache = cache,
		.reading = reading,
		.progress = progress,
	};
	const struct xet_upload_file file = {.path = put->path, .key = put->key};
	const int result = xet_upload(&upload, &file, 1, err);
	put->sent = atomic_load(&xet_access_traffic(access)->sent);
	progress_free(reading);
	progress_free(progress);
	hash_cache_close(cache);
	free(cache_path);
	return result;
}

static void say_put(const struct put *put)
{
	char size[OUTPUT_SIZE_BYTES];
	char sent[OUTPUT_SIZE_BYTES];
	struct output_line line;
	output_format_size(put->size, size);
	output_format_size(put->sent, sent);
	output_line_begin(&line, &put->session->output, "put");
	json_writer_text(&line.writer, "bucket", put->bucket);
	json_writer_text(&line.writer, "key", put->key);
	json_writer_u64(&line.writer, "bytes", put->size);
	json_writer_u64(&line.writer, "sent", put->sent);
	output_line_end(&line);
	output_say(&put->session->output, "put %.*s/%.*s, %s, sent %s", (int)put->bucket.len,
		(const char *)put->bucket.data, (int)put->key.len, (const char *)put->key.data,
		size, sent);
}
