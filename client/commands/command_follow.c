#include "client/commands/commands.h"

#include "client/commands/file_word.h"
#include "client/follow/follower.h"
#include "client/local/subset.h"
#include "wire/replica_message.h"

enum { POLL_S = 30, KEEP = 1 };

int command_follow(struct session *session, struct error *err)
{
	const struct options *const options = session->options;
	struct follow_order order = {
		.run = options->run,
		.into = options->into,
		.exec = options->exec,
		.once = options->once,
		.has_step = options->step.given,
		.step = options->step.value,
		.wait_s = options->wait.value,
		.poll_s = options->poll.given ? options->poll.value : POLL_S,
		.keep = options->keep.given ? options->keep.value : KEEP,
		.replica = options->replica,
		.threads = (unsigned)options->threads.value,
		.is_volatile = options->is_volatile,
	};
	if (options->run == NULL)
		return session_usage(session, err, "say which run: --run BUCKET/RUN");
	if (options->into == NULL)
		return session_usage(session, err, "say where the weights go: --into DIR");
	if (file_word_is_no_folder(options->into))
		return session_usage(session, err,
			"--into wants a folder, new or a follower's, and %s is not one",
			options->into);
	if (options->wait.given && !options->once)
		return session_usage(session, err,
			"--wait goes with --once; without --once follow waits forever");
	if (options->replica != NULL &&
		replica_check_id("--replica", span_text(options->replica), err) != 0) {
		session->usage = true;
		return -1;
	}
	struct subset subset;
	if (subset_init(&subset, options->glob, options->rank, err) != 0) {
		session->usage = true;
		return -1;
	}
	if (subset.text != NULL)
		order.subset = &subset;
	const int result = follower_run(session, &order, err);
	subset_release(&subset);
	return result;
}
