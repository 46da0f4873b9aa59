#include "server/commands/hold_client.h"

#include <stdio.h>
#include <string.h>

#include "base/encode.h"
#include "base/format/json_node.h"
#include "server/control_socket.h"
#include "storage/backup/backup_source.h"
#include "wire/step_message.h"

enum { ANSWER_ARENA_BYTES = 1024 * 1024, ID_LETTERS = 2 * BACKUP_HOLD_ID_BYTES };

static int hold_client_take(
	void *owner, const char *name, uint8_t out_id[BACKUP_HOLD_ID_BYTES], struct error *err);
static int read_id(struct span json, uint8_t out_id[BACKUP_HOLD_ID_BYTES], struct error *err);
static int hold_client_end(void *owner, const uint8_t id[BACKUP_HOLD_ID_BYTES], struct error *err);
static int ask(struct hold_client *client, const struct http_request *request,
	struct http_response *response, struct error *err);
static int tell_away(const struct hold_client *client, struct error *err);

struct backup_holder hold_client_holder(struct hold_client *client)
{
	return (struct backup_holder){
		.take = hold_client_take, .end = hold_client_end, .owner = client};
}

static int hold_client_take(
	void *owner, const char *name, uint8_t out_id[BACKUP_HOLD_ID_BYTES], struct error *err)
{
	struct hold_client *client = owner;
	struct backup_hold hold = {.made_ms = 0};
	char body[BACKUP_HOLD_NAME_BYTES + 32];
	if (client->is_alone || client->store != NULL) {
		const int taken = client->is_alone
			? 0
			: backup_holds_take_here(
				  store_backup_holds(client->store), name, &hold, err);
		memcpy(out_id, hold.id, BACKUP_HOLD_ID_BYTES);
		return taken;
	}
	snprintf(body, sizeof(body), "{\"name\":\"%s\"}", name);
	const struct http_request request = {
		.method = "POST", .target = "/-/backup-holds", .body = span_text(body)};
	struct http_response response;
	int result = ask(client, &request, &response, err);
	client->is_still = client->is_away && backup_source_is_read_only(client->folder);
	if (client->is_still) {
		memset(out_id, 0, BACKUP_HOLD_ID_BYTES);
		result = 0;
	} else if (result == 0)
		result = read_id(buffer_span(&response.body), out_id, err);
	http_response_release(&response);
	return result;
}

static int read_id(struct span json, uint8_t out_id[BACKUP_HOLD_ID_BYTES], struct error *err)
{
	struct span id;
	struct json_node *const root = json_node_parse(json, "The answer of the server", err);
	if (root == NULL)
		return -1;
	const bool is_right = json_node_text(json_node_member(root, "id"), &id) &&
		decode_hex(id, out_id, BACKUP_HOLD_ID_BYTES);
	json_node_free(root);
	return is_right ? 0 : error_set(err, ERROR_UPSTREAM, "The server answered without a hold.");
}

static int hold_client_end(void *owner, const uint8_t id[BACKUP_HOLD_ID_BYTES], struct error *err)
{
	static const char front[] = "/-/backup-holds/";
	struct hold_client *client = owner;
	char target[sizeof(front) + ID_LETTERS];
	struct http_response response;
	if (client->is_alone || client->is_still)
		return client->is_alone || backup_source_is_read_only(client->folder)
			? 0
			: error_set(err, ERROR_NOT_FOUND,
				  "The disk of %s took no writes when the backup began, and does now.",
				  client->folder);
	if (client->store != NULL)
		return backup_holds_end(store_backup_holds(client->store), id, err);
	snprintf(target, sizeof(target), "%s", front);
	encode_hex(span_of(id, BACKUP_HOLD_ID_BYTES), target + sizeof(front) - 1);
	const struct http_request request = {.method = "DELETE", .target = target};
	const int result = ask(client, &request, &response, err);
	http_response_release(&response);
	return result;
}

/* Any other status than success is an error. */
static int ask(struct hold_client *client, const struct http_request *request,
	struct http_response *response, struct error *err)
{
	struct error_message message;
	struct error unread = {0};
	client->is_away = control_socket_send(client->folder, request, response, err) != 0;
	if (client->is_away)
		return tell_away(client, err);
	if (response->status >= 200 && response->status < 300)
		return 0;
	struct arena *const arena = arena_new(ANSWER_ARENA_BYTES);
	if (error_message_parse(buffer_span(&response->body), arena, &message, &unread) == 0)
		error_set(err, response->status == 404 ? ERROR_NOT_FOUND : ERROR_INVALID, "%.*s",
			(int)message.message.len, (const char *)message.message.data);
	else
		error_set(err, ERROR_UPSTREAM, "The server answered with status %d.",
			response->status);
	arena_free(arena);
	return -1;
}

/* What libcurl says names a host and a port, which a socket in a folder does not have. */
static int tell_away(const struct hold_client *client, struct error *err)
{
	return error_set(err, ERROR_UPSTREAM,
		"The server that has %s does not answer at %s/control.sock: it was stopped or killed, or"
		" is starting. No moment was made; what was shipped stays, and the next backup goes on"
		" with it.",
		client->folder, client->folder);
}
