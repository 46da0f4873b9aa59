/* `put`: uploads one file or stdin. */
#include "base/quantity.h"
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
#include "client/remote/remote_object.h"
#include "client/transfer/object_upload.h"

enum { COPY_BLOCK_BYTES = 256 * 1024 };

static int check_file(struct session *session, const char *path, struct error *err);
static int make_key(struct session *session, const char *path, const struct object_name *name,
	struct buffer *out, struct error *err);
static int send_file(struct object_upload *upload, struct error *err);
static int explain(const struct object_upload *upload, struct error *err);
static int spool_stdin(struct error *err);
static void say_put(const struct object_upload *upload);

int command_put(struct session *session, struct error *err)
{
	struct object_upload upload = {
		.session = session,
		.path = session->options->arguments[0],
		.is_plain = session->options->plain,
	};
	struct object_name name;
	struct buffer key;
	int result = -1;
	ASSERT(session->options->argument_count == 2);
	buffer_init(&key, 1024);
	if (check_file(session, upload.path, err) != 0)
		goto out;
	if (session_object_name(session, session->options->arguments[1], &name, err) != 0 ||
		make_key(session, upload.path, &name, &key, err) != 0)
		goto out;
	upload.name = (struct object_name){.bucket = name.bucket, .key = buffer_span(&key)};
	upload.remote = session_connect(session, err);
	if (upload.remote == NULL)
		goto out;
	if (session->options->create_bucket &&
		remote_object_make_bucket(upload.remote, name.bucket, err) != 0)
		goto out;
	result = send_file(&upload, err);
	if (result == 0)
		say_put(&upload);
out:
	remote_free(upload.remote);
	buffer_release(&key);
	return result;
}

/* Refuses a folder, naming the command that uploads one. */
static int check_file(struct session *session, const char *path, struct error *err)
{
	struct stat facts;
	if (strcmp(path, "-") == 0 || stat(path, &facts) != 0 || !S_ISDIR(facts.st_mode))
		return 0;
	const char *const dot = file_word_is_path(path) ? "" : "./";
	return session_usage(session, err,
		"%s is a folder; `deltabucket sync %s%s %s` uploads what it contains", path, dot,
		path, session->options->arguments[1]);
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

static int send_file(struct object_upload *upload, struct error *err)
{
	if (strcmp(upload->path, "-") != 0)
		return object_upload_run(upload, err) == 0 ? 0 : explain(upload, err);
	const int fd = spool_stdin(err);
	if (fd < 0)
		return -1;
	upload->fd = &fd;
	const int result = object_upload_run(upload, err);
	upload->fd = NULL;
	close(fd);
	return result == 0 ? 0 : explain(upload, err);
}

/* Says more of a failure where the command line offers a way out. */
static int explain(const struct object_upload *upload, struct error *err)
{
	struct stat facts;
	if (err->kind == ERROR_NO_BUCKET)
		return missing_bucket_refuse(upload->name.bucket, err);
	if (err->kind == ERROR_INVALID && stat(upload->path, &facts) == 0 &&
		!S_ISREG(facts.st_mode))
		error_advise(err, "give - to upload what comes on stdin");
	return -1;
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

static void say_put(const struct object_upload *upload)
{
	struct output *const output = &upload->session->output;
	const struct span bucket = upload->name.bucket;
	const struct span key = upload->name.key;
	char size[QUANTITY_TEXT_BYTES];
	char sent[QUANTITY_TEXT_BYTES];
	struct output_line line;
	quantity_format(upload->size, size);
	quantity_format(upload->sent, sent);
	output_line_begin(&line, output, "put");
	json_writer_text(&line.writer, "bucket", bucket);
	json_writer_text(&line.writer, "key", key);
	json_writer_u64(&line.writer, "bytes", upload->size);
	json_writer_u64(&line.writer, "sent", upload->sent);
	output_line_end(&line);
	output_say(output, "put %.*s/%.*s, %s, sent %s", (int)bucket.len, (const char *)bucket.data,
		(int)key.len, (const char *)key.data, size, sent);
}
