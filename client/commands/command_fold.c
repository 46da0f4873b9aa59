#include "client/commands/commands.h"
#include "client/commands/delta_output.h"
#include "client/commands/fold_files.h"

int command_fold(struct session *session, struct error *err)
{
	const struct options *const options = session->options;
	ASSERT(options->argument_count >= 2);
	struct fold_params params = {
		.deltas = options->arguments,
		.count = options->argument_count - 1,
		.threads = (unsigned)options->threads.value,
		.out = options->arguments[options->argument_count - 1],
		.files = session->files,
	};
	params.has_step = options->step.given;
	params.step = options->step.value;
	struct delta_stats stats;
	enum delta_format format;
	if (delta_output_format(session, "--to", options->to, &params.format, err) != 0 ||
		delta_output_checksum(session, &params.checksum, err) != 0)
		return -1;
	if (options->base == NULL && (options->to != NULL || options->step.given))
		return session_usage(session, err,
			"--to and --step need --base: without it the fold keeps the format and "
			"the step of the deltas");
	if (fold_files(options->base, &params, session->progress, &stats, &format, err) != 0)
		return -1;
	delta_output_say(session, params.out, &stats, format);
	return 0;
}
