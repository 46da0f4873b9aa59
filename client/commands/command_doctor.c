/* `doctor`: looks at everything between this machine and the server that can be wrong, one line
 * each, and says what to do about it. It changes nothing. Behind a problem it goes on with what
 * does not depend on that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/commands/commands.h"
#include "client/doctor/checkup.h"
#include "client/doctor/local_check.h"
#include "client/doctor/network_check.h"
#include "client/doctor/place_check.h"
#include "client/doctor/server_check.h"
#include "client/doctor/settings_check.h"
#include "client/terminal/terminal.h"

struct doctor {
	struct session *session;
	struct options options; /* completed */
	struct checkup checkup;
	struct object_name place;
	struct run_name run; /* zeroed when the argument names none */
	uint64_t wanted;     /* bytes of a checkpoint; 0: not known */
};

static int read_place(struct doctor *doctor, struct error *err);
static int check_all(struct doctor *doctor, struct error *err);
static void ask_server(struct doctor *doctor, const struct remote_options *options);
static void check_machine(struct doctor *doctor);

int command_doctor(struct session *session, struct error *err)
{
	struct doctor doctor = {.session = session,
		.options = *session->options,
		.checkup = {.output = &session->output, .colours = terminal_has_colours()}};
	int result = read_place(&doctor, err);
	session->usage |= result != 0;
	if (result == 0)
		result = check_all(&doctor, err);
	run_name_release(&doctor.run);
	options_release(&doctor.options);
	return result;
}

static int read_place(struct doctor *doctor, struct error *err)
{
	const struct options *const options = doctor->session->options;
	if (options->argument_count == 0)
		return 0;
	if (session_object_name(doctor->session, options->arguments[0], &doctor->place, err) != 0)
		return -1;
	return doctor->place.key.len > 0
		? run_name_init(&doctor->run, (const char *)doctor->place.bucket.data, err)
		: 0;
}

static int check_all(struct doctor *doctor, struct error *err)
{
	struct checkup *const checkup = &doctor->checkup;
	const bool has_server = settings_check(checkup, &doctor->options);
	doctor->session->usage = !has_server; /* it is the first problem then */
	const struct remote_options remote = {
		.endpoint = doctor->options.endpoint,
		.token = doctor->options.token,
		.ca = doctor->options.ca,
		.stop = doctor->session->stop,
	};
	if (has_server && network_check(checkup, &remote))
		ask_server(doctor, &remote);
	if (stop_check(doctor->session->stop, err) != 0)
		return -1;
	check_machine(doctor);
	return checkup_end(checkup, err);
}

static void ask_server(struct doctor *doctor, const struct remote_options *options)
{
	struct checkup *const checkup = &doctor->checkup;
	struct error err = {0};
	struct remote *const remote = remote_new(options, &err);
	if (remote == NULL) {
		checkup_fail(
			checkup, "key", "`deltabucket login ENDPOINT` stores another token", &err);
		return;
	}
	server_check(checkup, remote);
	server_check_speed(checkup, remote);
	const bool is_known = server_check_key(checkup, remote, options->token != NULL);
	if (is_known && doctor->run.text != NULL)
		doctor->wanted = place_check_run(checkup, remote, &doctor->run);
	else if (is_known && doctor->place.bucket.len > 0)
		place_check_bucket(checkup, remote, doctor->place.bucket);
	remote_free(remote);
}

static void check_machine(struct doctor *doctor)
{
	struct checkup *const checkup = &doctor->checkup;
	const struct options *const options = &doctor->options;
	if (options->state != NULL)
		local_check_folder(checkup, "state", options->state, doctor->wanted);
	else
		local_check_state(checkup, doctor->wanted);
	if (options->into != NULL)
		local_check_folder(checkup, "into", options->into, doctor->wanted);
	local_check_engine(checkup, doctor->wanted);
	local_check_limits(checkup);
}
