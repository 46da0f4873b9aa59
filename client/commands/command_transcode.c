#include "client/commands/commands.h"
#include "client/commands/delta_output.h"
#include "client/commands/fold_files.h"

int command_transcode(struct session *session, struct error *err)
{
	const struct options *const options = session->options;
	ASSERT(options->argument_count == 2);
	struct fold_params params = {
		.deltas = options->arguments,
		.count = 1,
		.threads = (unsigned)options->threads.value,
		.out = options->arguments[1],
	};
	params.files = session->files;
	params.has_step = options->step.given;
	params.step = options->step.value;
	struct delta_stats stats;
	enum delta_format format;
	if (options->base == NULL || options->to == NULL)
		return session_usage(session, err,
			"say which checkpoint the delta was made from and which format it gets: "
			"--base CHECKPOINT --to FORMAT");
	if (delta_output_format(session, "--to", options->to, &params.format, err) != 0 ||
		delta_output_checksum(session, &params.checksum, err) != 0)
		return -1;
	if (fold_files(options->base, &params, session->progress, &stats, &format, err) != 0)
		return -1;
	delta_output_say(session, params.out, &stats, format);
	return 0;
}
