#include "client/commands/commands.h"

int command_version(struct session *session, struct error *err)
{
	struct output_line line;
	(void)err;
	output_line_begin(&line, &session->output, NULL);
	json_writer_text(&line.writer, "version", span_text(PACKAGE_VERSION));
	output_line_end(&line);
	output_result(&session->output, "deltabucket " PACKAGE_VERSION);
	return 0;
}
