#include "client/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "client/remote_object.h"

enum { COPY_BLOCK_BYTES = 256 * 1024 };

/* A stream has no size and cannot be sent twice: it becomes a nameless temporary file first. */
static int spool_stdin(struct error *const err)
{
	const char *const folder = getenv("TMPDIR");
	const int fd = open(folder != NULL ? folder : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_set_errno(err, "making a temporary file in %s", folder != NULL ? folder : "/tmp");
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

static int open_file(const char *const path, struct error *const err)
{
	if (strcmp(path, "-") == 0)
		return spool_stdin(err);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 ? fd : error_set_errno(err, "opening %s", path);
}

/* BUCKET/ or BUCKET/folder/ takes the file's own name. */
static int make_key(struct session *const session, const char *const path, const struct object_name *const name, struct buffer *const out,
	struct error *const err)
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

static int send_file(struct session *const session, struct remote *const remote, const char *const target, const char *const path,
	uint64_t *const out_size, struct error *const err)
{
	const int fd = open_file(path, err);
	if (fd < 0)
		return -1;
	struct stat facts;
	int result = fstat(fd, &facts) == 0 ? 0 : error_set_errno(err, "looking at %s", path);
	if (result == 0 && !S_ISREG(facts.st_mode))
		result = error_set(err, ERROR_INVALID, "%s is no file; give - to send what comes on stdin", path);
	if (result == 0) {
		*out_size = (uint64_t)facts.st_size;
		struct progress *const progress = progress_new("uploading", *out_size, !session->output.quiet);
		const struct remote_object_body body = {.fd = fd, .size = *out_size, .path = path, .progress = progress};
		result = remote_object_put(remote, target, &body, err);
		progress_free(progress);
	}
	close(fd);
	return result;
}

static void say_put(struct session *const session, const struct object_name *const name, const struct span key, const uint64_t size)
{
	char text[OUTPUT_SIZE_BYTES];
	struct output_line line;
	output_format_size(size, text);
	output_line_begin(&line, &session->output, "put");
	json_writer_text(&line.writer, "bucket", name->bucket);
	json_writer_text(&line.writer, "key", key);
	json_writer_u64(&line.writer, "bytes", size);
	output_line_end(&line);
	output_say(&session->output, "put %.*s/%.*s, %s", (int)name->bucket.len, (const char *)name->bucket.data, (int)key.len,
		(const char *)key.data, text);
}

int command_put(struct session *const session, struct error *const err)
{
	const char *const path = session->options->arguments[0];
	struct object_name name;
	struct buffer key;
	char *target = NULL;
	struct remote *remote = NULL;
	uint64_t size = 0;
	int result = -1;
	buffer_init(&key, 1024);
	if (session_object_name(session, session->options->arguments[1], &name, err) != 0 || make_key(session, path, &name, &key, err) != 0)
		goto out;
	remote = session_connect(session, err);
	if (remote == NULL)
		goto out;
	if (session->options->create_bucket && remote_object_make_bucket(remote, name.bucket, err) != 0)
		goto out;
	target = remote_object_target(name.bucket, buffer_span(&key));
	result = send_file(session, remote, target, path, &size, err);
	if (result == 0)
		say_put(session, &name, buffer_span(&key), size);
	else if (err->kind == ERROR_NO_BUCKET)
		error_set(err, ERROR_NO_BUCKET, "there is no bucket %.*s; --create-bucket makes it", (int)name.bucket.len,
			(const char *)name.bucket.data);
out:
	free(target);
	remote_free(remote);
	buffer_release(&key);
	return result;
}
