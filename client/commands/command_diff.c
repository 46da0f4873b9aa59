#include "client/commands/commands.h"
#include "client/commands/delta_output.h"
#include "client/work/progress.h"

static int read_params(
	struct session *session, struct delta_diff_params *params, struct error *err);

int command_diff(struct session *session, struct error *err)
{
	const struct options *const options = session->options;
	ASSERT(options->argument_count == 3);
	struct delta_diff_params params = {0};
	struct delta_stats stats;
	if (read_params(session, &params, err) != 0)
		return -1;
	struct checkpoint *const base = checkpoint_open(options->arguments[0], err);
	struct checkpoint *const next =
		base == NULL ? NULL : checkpoint_open(options->arguments[1], err);
	params.base = base;
	params.next = next;
	struct progress *const progress = progress_new(
		"comparing", next != NULL ? checkpoint_bytes(next) : 0, session->progress);
	params.watch = progress_watch(progress, session->stop);
	const int result = next != NULL ? delta_diff(&params, &stats, err) : -1;
	progress_free(progress);
	if (result == 0)
		delta_output_say(session, params.out, &stats, params.format);
	checkpoint_close(next);
	checkpoint_close(base);
	return result;
}

static int read_params(struct session *session, struct delta_diff_params *params, struct error *err)
{
	const struct options *const options = session->options;
	params->model_version = options->step.given ? options->step.value : 0;
	params->threads = (unsigned)options->threads.value;
	params->out = options->arguments[2];
	params->files = session->files;
	return delta_output_format(session, "--format", options->format, &params->format, err) != 0
		? -1
		: delta_output_checksum(session, &params->checksum, err);
}
