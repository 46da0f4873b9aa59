#include "server/commands/store_command.h"

#include <stdlib.h>
#include <time.h>

#include "server/control_socket.h"
#include "server/folder_owner.h"
#include "storage/open/store_open.h"
#include "wire/step_message.h"

enum { ANSWER_ARENA_BYTES = 32 * 1024 * 1024, REACH_TRIES = 50 };

static int check_new(const struct store_command *command, struct error *err);
static int work_alone(const struct store_command *command, const struct data_folder *folder,
	struct buffer *out, struct error *err);
static int ask_server(const struct store_command *command, struct buffer *out, struct error *err);
static int take_answer(const struct http_response *response, struct buffer *out, struct error *err);

int store_command_run(const struct store_command *command, struct buffer *out, struct error *err)
{
	struct error last = {0};
	ASSERT(command->data != NULL && command->work != NULL);
	if (command->makes_store && check_new(command, err) != 0)
		return -1;
	for (int i = 0; i < REACH_TRIES; i++) {
		struct data_folder folder;
		last.kind = ERROR_NONE;
		if (data_folder_open(&folder, file_system(), command->data, command->master_key,
			    command->makes_store, &last) == 0) {
			const int outcome = work_alone(command, &folder, out, err);
			data_folder_close(&folder);
			return outcome;
		}
		if (last.kind == ERROR_BUSY && ask_server(command, out, &last) == 0)
			return 0;
		if (last.kind != ERROR_UPSTREAM)
			break;
		nanosleep(&(struct timespec){.tv_nsec = 100 * 1000 * 1000}, NULL);
	}
	*err = last;
	return -1;
}

/* The server's settings may lie in the folder. */
static int check_new(const struct store_command *command, struct error *err)
{
	return data_folder_need(command->data, err) != 0
		? -1
		: data_folder_check_new(command->data, getenv("DELTABUCKET_CONFIG"), err);
}

static int work_alone(const struct store_command *command, const struct data_folder *folder,
	struct buffer *out, struct error *err)
{
	const struct store_options options = {.folder = folder->path};
	if (command->is_for_server)
		return command->work(command->owner, NULL, folder, out, err);
	struct store *const store = store_open(&options, err);
	if (store == NULL)
		return folder_owner_advise(folder->path, err);
	const int outcome = command->work(command->owner, store, folder, out, err);
	store_close(store);
	return outcome;
}

static int ask_server(const struct store_command *command, struct buffer *out, struct error *err)
{
	struct http_response response;
	int outcome = control_socket_send(command->data, &command->request, &response, err);
	if (outcome == 0)
		outcome = take_answer(&response, out, err);
	http_response_release(&response);
	return outcome;
}

static int take_answer(const struct http_response *response, struct buffer *out, struct error *err)
{
	struct error_message message;
	struct error unread = {0};
	struct arena *const arena = arena_new(ANSWER_ARENA_BYTES);
	int outcome = 0;
	if (response->status >= 200 && response->status < 300)
		buffer_add_span(out, buffer_span(&response->body));
	else if (error_message_parse(buffer_span(&response->body), arena, &message, &unread) == 0)
		outcome = error_set(err, ERROR_INVALID, "%.*s", (int)message.message.len,
			(const char *)message.message.data);
	else
		outcome = error_set(err, ERROR_UPSTREAM, "the server answered with status %d",
			response->status);
	arena_free(arena);
	return outcome;
}
