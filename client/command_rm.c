#include "client/commands.h"

#include <stdlib.h>

#include "client/remote_object.h"

static int remove_one(struct session *const session, struct remote *const remote, const char *const text, struct error *const err)
{
	struct object_name name;
	if (session_object_name(session, text, &name, err) != 0)
		return -1;
	if (name.key.len == 0)
		return session_usage(session, err, "say which object: BUCKET/KEY");
	char *const target = remote_object_target(name.bucket, name.key);
	const int result = remote_object_delete(remote, target, err);
	free(target);
	if (result != 0)
		return error_wrap(err, "removing %s", text);
	struct output_line line;
	output_line_begin(&line, &session->output, "removed");
	json_writer_text(&line.writer, "bucket", name.bucket);
	json_writer_text(&line.writer, "key", name.key);
	output_line_end(&line);
	output_say(&session->output, "removed %s", text);
	return 0;
}

int command_rm(struct session *const session, struct error *const err)
{
	struct remote *const remote = session_connect(session, err);
	int result = remote == NULL ? -1 : 0;
	for (size_t i = 0; i < session->options->argument_count && result == 0; i++)
		result = remove_one(session, remote, session->options->arguments[i], err);
	remote_free(remote);
	return result;
}
