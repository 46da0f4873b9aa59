#include "api/admin/admin_backup.h"

#include <stdio.h>
#include <string.h>

#include "base/encode.h"
#include "base/format/json_node.h"
#include "storage/core/call.h"
#include "storage/packs/backup_holds.h"

enum { REQUEST_MAX_BYTES = 4096, REPLY_MAX_BYTES = 16 * 1024 };

struct hold_work {
	struct call call; /* first */
	struct backup_hold hold;
};

static int parse_name(struct span json, char out[BACKUP_HOLD_NAME_BYTES], struct error *err);
static enum call_next admin_backup_help_take(struct call *call, struct error *err);
static enum call_next admin_backup_help_end(struct call *call, struct error *err);
static void print_hold(const struct backup_hold *hold, struct json_writer *json);

static const struct call_kind take_kind = {.stages = {{.help = admin_backup_help_take}}};
static const struct call_kind end_kind = {.stages = {{.help = admin_backup_help_end}}};

enum next admin_backup_list_begin(struct exchange *exchange)
{
	struct backup_hold holds[BACKUP_HOLDS_MAX];
	const size_t count = backup_holds_list(store_backup_holds(exchange->context->store), holds);
	struct buffer body;
	struct json_writer json;
	buffer_init(&body, REPLY_MAX_BYTES);
	json_writer_init(&json, &body);
	json_writer_object(&json, NULL);
	json_writer_array(&json, "holds");
	for (size_t i = 0; i < count; i++)
		print_hold(&holds[i], &json);
	json_writer_end(&json, ']');
	json_writer_end(&json, '}');
	return exchange_reply_buffer(exchange, 200, "application/json", &body);
}

enum next admin_backup_hold_begin(struct exchange *exchange)
{
	return exchange_accept_small(exchange, REQUEST_MAX_BYTES);
}

enum next admin_backup_hold_finish(struct exchange *exchange)
{
	struct error err = {0};
	char name[BACKUP_HOLD_NAME_BYTES];
	if (parse_name(exchange_body(exchange), name, &err) != 0)
		return exchange_fail(exchange, &err);
	struct hold_work *const work =
		call_new(sizeof(*work), &take_kind, exchange->context->store, 0);
	memcpy(work->hold.name, name, sizeof(name));
	return exchange_await(exchange, &work->call);
}

enum next admin_backup_hold_resume(struct exchange *exchange)
{
	struct error err = {0};
	struct buffer body;
	struct json_writer json;
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	buffer_init(&body, REPLY_MAX_BYTES);
	json_writer_init(&json, &body);
	print_hold(&((const struct hold_work *)exchange->call)->hold, &json);
	return exchange_reply_buffer(exchange, 201, "application/json", &body);
}

enum next admin_backup_end_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct hold_work *const work =
		call_new(sizeof(*work), &end_kind, exchange->context->store, 0);
	if (decode_hex(exchange->parameters[0], work->hold.id, sizeof(work->hold.id)))
		return exchange_await(exchange, &work->call);
	call_free(&work->call);
	error_set(&err, ERROR_INVALID, "The id of a hold has %d hex digits.",
		2 * BACKUP_HOLD_ID_BYTES);
	return exchange_fail(exchange, &err);
}

enum next admin_backup_end_resume(struct exchange *exchange)
{
	struct error err = {0};
	return call_outcome(exchange->call, &err) != 0 ? exchange_fail(exchange, &err)
						       : exchange_reply_empty(exchange, 204);
}

static int parse_name(struct span json, char out[BACKUP_HOLD_NAME_BYTES], struct error *err)
{
	struct span name;
	struct json_node *const root = json_node_parse(json, "The request body", err);
	if (root == NULL)
		return -1;
	int result = 0;
	if (!json_node_text(json_node_member(root, "name"), &name) ||
		name.len >= BACKUP_HOLD_NAME_BYTES)
		result = error_set(err, ERROR_INVALID,
			"\"name\" must be a text of at most %d bytes.", BACKUP_HOLD_NAME_BYTES - 1);
	else
		snprintf(out, BACKUP_HOLD_NAME_BYTES, "%.*s", (int)name.len,
			(const char *)name.data);
	json_node_free(root);
	return result;
}

static enum call_next admin_backup_help_take(struct call *call, struct error *err)
{
	struct hold_work *const work = (struct hold_work *)call;
	struct backup_hold taken;
	if (backup_holds_take_here(store_backup_holds(call->store), work->hold.name, &taken, err) !=
		0)
		return CALL_FAILS;
	work->hold = taken;
	return CALL_NEXT;
}

static enum call_next admin_backup_help_end(struct call *call, struct error *err)
{
	struct hold_work *const work = (struct hold_work *)call;
	return backup_holds_end(store_backup_holds(call->store), work->hold.id, err) == 0
		? CALL_NEXT
		: CALL_FAILS;
}

static void print_hold(const struct backup_hold *hold, struct json_writer *json)
{
	char id[2 * BACKUP_HOLD_ID_BYTES + 1];
	char made[CLOCK_TEXT_BYTES];
	char until[CLOCK_TEXT_BYTES];
	encode_hex(span_of(hold->id, sizeof(hold->id)), id);
	clock_format_iso(hold->made_ms, made);
	clock_format_iso(hold->until_ms, until);
	json_writer_object(json, NULL);
	json_writer_text(json, "id", span_text(id));
	json_writer_text(json, "name", span_text(hold->name));
	json_writer_text(json, "made", span_text(made));
	json_writer_text(json, "until", span_text(until));
	json_writer_end(json, '}');
}
