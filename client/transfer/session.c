#include "client/transfer/session.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { BUCKET_MAX_BYTES = 255, KEY_MAX_BYTES = 1024 };

int session_usage(struct session *session, struct error *err, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	error_set_list(err, ERROR_INVALID, format, arguments);
	va_end(arguments);
	session->usage = true;
	return -1;
}

struct remote *session_connect(struct session *session, struct error *err)
{
	return remote_new(&session->remote_options, err);
}

struct transfer_options session_transfer(
	struct session *session, struct remote *own, struct progress *progress)
{
	return (struct transfer_options){
		.remote = &session->remote_options,
		.own = own,
		.files = session->files,
		.parallel = session->parallel,
		.progress = progress,
	};
}

unsigned session_parallel(const struct session *session)
{
	return session->parallel != 0 ? session->parallel : TRANSFER_PARALLEL;
}

bool session_wants_plain(const struct error *failure)
{
	static const enum error_kind KINDS[] = {ERROR_UNSUPPORTED, ERROR_NOT_FOUND, ERROR_NO_KEY,
		ERROR_NO_BUCKET, ERROR_METHOD, ERROR_DENIED, ERROR_NO_CREDENTIALS};
	for (size_t i = 0; i < sizeof(KINDS) / sizeof(KINDS[0]); i++)
		if (failure->kind == KINDS[i])
			return true;
	return false;
}

int session_object_name(
	struct session *session, const char *text, struct object_name *out, struct error *err)
{
	const char *const scheme = "s3://";
	const char *const name =
		strncmp(text, scheme, strlen(scheme)) == 0 ? text + strlen(scheme) : text;
	const char *const slash = strchr(name, '/');
	if (text[0] == '/' || strncmp(text, "./", 2) == 0 || strncmp(text, "../", 3) == 0)
		return session_usage(session, err,
			"%s is the path of a file; BUCKET/KEY is wanted in its place", text);
	out->bucket = slash == NULL ? span_text(name) : span_of(name, (size_t)(slash - name));
	out->key = slash == NULL ? (struct span){0} : span_text(slash + 1);
	if (out->bucket.len == 0 || out->bucket.len > BUCKET_MAX_BYTES)
		return session_usage(
			session, err, "\"%s\" names no bucket: the form is BUCKET/KEY", text);
	if (out->key.len > KEY_MAX_BYTES)
		return session_usage(session, err, "the key is over %d bytes", KEY_MAX_BYTES);
	return 0;
}
