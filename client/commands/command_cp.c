/* `cp`: does what `put` or `get` does, or lets the server copy an object, depending on how the two
 * words are written (file_word.h). The server copies up to 5 GiB with one CopyObject; a larger
 * object is copied by its Xet hash, which the server can do only with objects that are made of
 * chunks. */
#include "base/quantity.h"
#include "client/commands/commands.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/commands/file_word.h"
#include "client/commands/missing_object.h"
#include "client/remote/missing_bucket.h"
#include "client/remote/remote_hub.h"
#include "client/remote/remote_object.h"

#define COPY_MAX_BYTES ((uint64_t)5 << 30) /* in one CopyObject */
enum { KEY_MAX_BYTES = 1024 };

struct copy {
	struct session *session;
	struct remote *remote;
	struct object_name from, to;
	struct buffer key; /* of the copy */
	char *source;      /* request targets */
	char *target;
	bool has_source;                  /* the source exists */
	struct remote_object_facts facts; /* of the source */
};

static int copy_inside(struct session *session, struct error *err);
static int copy_object(struct copy *copy, struct error *err);
static int make_key(struct copy *copy, struct error *err);
static int explain_source(struct copy *copy, const char *word, struct error *err);
static int copy_by_hash(struct copy *copy, struct error *err);
static void say_copied(const struct copy *copy);
static int explain_bucket(const struct copy *copy, const char *to, struct error *err);

int command_cp(struct session *session, struct error *err)
{
	const char *const *const words = session->options->arguments;
	ASSERT(session->options->argument_count == 2);
	const bool from_file = file_word_is_path(words[0]) || file_word_is_stdin(words[0]) ||
		strchr(words[0], '/') == NULL;
	const bool to_file = file_word_is_path(words[1]) || file_word_is_stdin(words[1]);
	if (from_file && to_file)
		return session_usage(session, err,
			"cp copies to or from a bucket: one of the two must be BUCKET/KEY; a word "
			"that begins with /, ./ or ../ is a file, and so is a source without a "
			"slash");
	if (from_file)
		return command_put(session, err);
	return to_file ? command_get(session, err) : copy_inside(session, err);
}

static int copy_inside(struct session *session, struct error *err)
{
	const char *const *const words = session->options->arguments;
	struct copy copy = {.session = session};
	buffer_init(&copy.key, KEY_MAX_BYTES);
	int result = session_object_name(session, words[0], &copy.from, err);
	if (result == 0)
		result = session_object_name(session, words[1], &copy.to, err);
	if (result == 0 && copy.from.key.len == 0)
		result = session_usage(session, err, "say which object: BUCKET/KEY");
	if (result == 0)
		result = copy_object(&copy, err);
	if (result == 0)
		say_copied(&copy);
	else if (err->kind == ERROR_NO_BUCKET && copy.has_source)
		explain_bucket(&copy, words[1], err);
	remote_free(copy.remote);
	free(copy.source);
	free(copy.target);
	buffer_release(&copy.key);
	return result;
}

static int copy_object(struct copy *copy, struct error *err)
{
	struct session *const session = copy->session;
	if (make_key(copy, err) != 0)
		return -1;
	copy->source = remote_object_target(copy->from.bucket, copy->from.key);
	copy->target = remote_object_target(copy->to.bucket, buffer_span(&copy->key));
	if (strcmp(copy->source, copy->target) == 0)
		return session_usage(session, err, "%s would be copied onto itself",
			session->options->arguments[0]);
	copy->remote = session_connect(session, err);
	if (copy->remote == NULL)
		return -1;
	if (remote_object_head(copy->remote, copy->source, &copy->facts, err) != 0)
		return explain_source(copy, session->options->arguments[0], err);
	copy->has_source = true;
	if (session->options->create_bucket &&
		remote_object_make_bucket(copy->remote, copy->to.bucket, err) != 0)
		return -1;
	if (copy->facts.size > COPY_MAX_BYTES)
		return copy_by_hash(copy, err);
	return remote_object_copy(copy->remote, copy->source, copy->target, err);
}

/* With BUCKET and BUCKET/folder/ the copy gets the source's own name. */
static int make_key(struct copy *copy, struct error *err)
{
	ASSERT(copy->from.key.len > 0 && copy->key.len == 0);
	const struct span given = copy->to.key;
	const struct span key = copy->from.key;
	buffer_add_span(&copy->key, given);
	if (given.len == 0 || given.data[given.len - 1] == '/') {
		const uint8_t *const slash = memrchr(key.data, '/', key.len);
		const size_t from = slash == NULL ? 0 : (size_t)(slash - key.data) + 1;
		buffer_add_span(&copy->key, span_slice(key, from, key.len));
	}
	return buffer_check(&copy->key, "the key", err);
}

/* If a file of that name exists, the user meant that. */
static int explain_source(struct copy *copy, const char *word, struct error *err)
{
	const bool is_missing = err->kind == ERROR_NO_KEY || err->kind == ERROR_NO_BUCKET ||
		err->kind == ERROR_NOT_FOUND;
	if (!is_missing || !file_exists(word))
		return missing_object_explain(copy->remote, &copy->from, err);
	return error_set(err, err->kind,
		"there is no object %s; the file of that name is written ./%s", word, word);
}

/* Copies an object that is too large for CopyObject. */
static int copy_by_hash(struct copy *copy, struct error *err)
{
	struct hub_change change = {.key = buffer_span(&copy->key),
		.hash = copy->facts.hash,
		.source = copy->from.bucket};
	if (!copy->facts.has_hash || !remote_hub_takes(change.key))
		return error_set(err, ERROR_UNSUPPORTED,
			"the server copies an object of over 5 GiB only after it has cut it into "
			"chunks, and only to a key that is a path");
	return remote_hub_change(copy->remote, copy->to.bucket, &change, 1, err) == 0
		? remote_hub_check(&change, 1, err)
		: -1;
}

static void say_copied(const struct copy *copy)
{
	const struct span key = buffer_span(&copy->key);
	ASSERT(copy->has_source);
	struct output *const output = &copy->session->output;
	char size[QUANTITY_TEXT_BYTES];
	struct output_line line;
	quantity_format(copy->facts.size, size);
	output_line_begin(&line, output, "copied");
	json_writer_text(&line.writer, "bucket", copy->to.bucket);
	json_writer_text(&line.writer, "key", key);
	json_writer_u64(&line.writer, "bytes", copy->facts.size);
	output_line_end(&line);
	output_say(output, "copied %s to %.*s/%.*s, %s, inside the server",
		copy->session->options->arguments[0], (int)copy->to.bucket.len,
		(const char *)copy->to.bucket.data, (int)key.len, (const char *)key.data, size);
}

static int explain_bucket(const struct copy *copy, const char *to, struct error *err)
{
	missing_bucket_refuse(copy->to.bucket, err);
	return error_set(err, err->kind, "%s. A file is written as a path: ./%s", err->text, to);
}
