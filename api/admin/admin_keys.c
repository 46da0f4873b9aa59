/* Each route starts one piece of blocking work on the keyring's helper lane, waits, and prints the
 * result in its resume. The lane makes changes of keys run one at a time. */
#include "api/admin/admin_keys.h"

#include "api/admin/grant_advice.h"
#include "api/auth/audit_note.h"
#include "api/auth/grant_text.h"
#include "api/exchange/principal.h"
#include "api/route/hub_name.h"
#include "base/format/json_node.h"
#include "base/thread/helpers.h"

enum {
	REQUEST_MAX_BYTES = 64 * 1024,
	REPLY_MAX_BYTES = 32 * 1024 * 1024,
	GRANTS_MAX = 256,
	GRANT_SHOWN_BYTES = 120
};

struct admin_keys { /* the exchange's state while a helper works for it */
	struct helper_job job;
	struct exchange *exchange;
	void (*work)(struct admin_keys *keys);
	struct admin_made_key made;
	struct key_record *records;
	size_t record_count;
	struct error err;
	bool failed;
};

static enum next start_work(struct exchange *exchange, const struct keyring_new_key *new_key,
	void (*work)(struct admin_keys *keys));
static void admin_keys_run_job(struct helper_job *job);
static void admin_keys_work_list(struct admin_keys *keys);
static void admin_keys_work_add(struct admin_keys *keys);
static void log_key(const struct exchange *exchange, const char *event, struct span key_id);
static void admin_keys_work_revoke(struct admin_keys *keys);
static void print_use(struct json_writer *json, int64_t used_ms);
static void print_grants(const struct grant *grants, size_t count, struct json_writer *json);
static int take_text(const struct json_node *root, const char *name, struct arena *arena,
	const char **out, struct error *err);
static int take_grants(const struct json_node *root, const char *default_namespace,
	struct arena *arena, struct keyring_new_key *out, struct error *err);
static int take_grant(
	struct span text, const char *default_namespace, struct grant *out, struct error *err);

enum next admin_keys_list_begin(struct exchange *exchange)
{
	return start_work(exchange, NULL, admin_keys_work_list);
}

enum next admin_keys_list_resume(struct exchange *exchange)
{
	const struct admin_keys *const keys = exchange->state;
	ASSERT(keys != NULL);
	struct buffer body;
	if (keys->failed)
		return exchange_fail(exchange, &keys->err);
	buffer_init(&body, REPLY_MAX_BYTES);
	admin_keys_print_list(keys->records, keys->record_count, &body);
	return exchange_reply_buffer(exchange, 200, "application/json", &body);
}

enum next admin_keys_add_begin(struct exchange *exchange)
{
	return exchange_accept_small(exchange, REQUEST_MAX_BYTES);
}

enum next admin_keys_add_finish(struct exchange *exchange)
{
	struct keyring_new_key new_key;
	struct error err = {0};
	if (admin_keys_parse(exchange_body(exchange), exchange->context->default_namespace,
		    exchange->arena, &new_key, &err) != 0)
		return exchange_fail(exchange, &err);
	return start_work(exchange, &new_key, admin_keys_work_add);
}

enum next admin_keys_add_resume(struct exchange *exchange)
{
	const struct admin_keys *const keys = exchange->state;
	ASSERT(keys != NULL);
	struct buffer body;
	if (keys->failed)
		return exchange_fail(exchange, &keys->err);
	log_key(exchange, "key_made", span_text(keys->made.made.id));
	const struct audit_entry entry = audit_note_entry(exchange, "key_made",
		span_text(keys->made.made.id), span_text(keys->made.key.name));
	audit_note(exchange->context->store, &entry);
	buffer_init(&body, REPLY_MAX_BYTES);
	admin_keys_print_made(&keys->made, &body);
	return exchange_reply_buffer(exchange, 201, "application/json", &body);
}

enum next admin_keys_revoke_begin(struct exchange *exchange)
{
	return start_work(exchange, NULL, admin_keys_work_revoke);
}

enum next admin_keys_revoke_resume(struct exchange *exchange)
{
	const struct admin_keys *const keys = exchange->state;
	ASSERT(keys != NULL);
	if (keys->failed)
		return exchange_fail(exchange, &keys->err);
	log_key(exchange, "key_revoked", exchange->parameters[0]);
	return exchange_reply_empty(exchange, 204);
}

int admin_keys_make(struct store *store, struct keyring *keyring, const char *default_namespace,
	struct admin_made_key *made, struct arena *arena, struct error *err)
{
	grant_advice_settle(
		store, default_namespace, &made->key, arena, &made->warnings, &made->warning_count);
	return keyring_add(keyring, &made->key, arena, &made->made, err);
}

void admin_keys_print_made(const struct admin_made_key *made, struct buffer *out)
{
	struct json_writer json;
	json_writer_init(&json, out);
	json_writer_object(&json, NULL);
	json_writer_text(&json, "key_id", span_text(made->made.id));
	json_writer_text(&json, "secret", span_text(made->made.secret));
	json_writer_text(&json, "token", span_text(made->made.token));
	json_writer_text(&json, "namespace", span_text(made->made.namespace));
	print_grants(made->key.grants, made->key.grant_count, &json);
	json_writer_array(&json, "warnings");
	for (size_t i = 0; i < made->warning_count; i++)
		json_writer_text(&json, NULL, made->warnings[i]);
	json_writer_end(&json, ']');
	json_writer_end(&json, '}');
}

void admin_keys_print_list(const struct key_record *keys, size_t count, struct buffer *out)
{
	struct json_writer json;
	json_writer_init(&json, out);
	json_writer_object(&json, NULL);
	json_writer_array(&json, "keys");
	for (size_t i = 0; i < count; i++) {
		char created[CLOCK_TEXT_BYTES];
		clock_format_iso(keys[i].created_ms, created);
		json_writer_object(&json, NULL);
		json_writer_text(&json, "key_id", keys[i].id);
		json_writer_text(&json, "name", keys[i].name);
		json_writer_text(&json, "namespace", keys[i].namespace);
		json_writer_bool(&json, "root", keys[i].is_root);
		if (keys[i].is_damaged)
			json_writer_bool(&json, "damaged", true);
		json_writer_text(&json, "created", span_text(created));
		print_use(&json, keys[i].used_ms);
		print_grants(keys[i].grants, keys[i].grant_count, &json);
		json_writer_end(&json, '}');
	}
	json_writer_end(&json, ']');
	json_writer_end(&json, '}');
}

int admin_keys_parse(struct span json, const char *default_namespace, struct arena *arena,
	struct keyring_new_key *out, struct error *err)
{
	struct keyring_new_key key = {.namespace = default_namespace};
	struct json_node *const root =
		json_node_parse(json.len > 0 ? json : span_text("{}"), "The request body", err);
	if (root == NULL)
		return -1;
	int outcome = 0;
	if (!json_node_is_object(root))
		outcome = error_set(err, ERROR_INVALID, "The request body must be a JSON object.");
	if (outcome == 0)
		outcome = take_text(root, "name", arena, &key.name, err);
	if (outcome == 0)
		outcome = take_text(root, "namespace", arena, &key.namespace, err);
	if (outcome == 0)
		outcome = take_grants(root, default_namespace, arena, &key, err);
	json_node_free(root);
	if (outcome == 0)
		*out = key;
	return outcome;
}

static enum next start_work(struct exchange *exchange, const struct keyring_new_key *new_key,
	void (*work)(struct admin_keys *keys))
{
	struct admin_keys *const keys = arena_take(exchange->arena, sizeof(*keys));
	ASSERT(keys != NULL); /* Bodies here are capped far below the arena. */
	ASSERT(exchange->state == NULL);
	keys->job.run = admin_keys_run_job;
	keys->exchange = exchange;
	keys->work = work;
	if (new_key != NULL)
		keys->made.key = *new_key;
	exchange->state = keys;
	helpers_submit(store_helpers(exchange->context->store),
		keyring_lane(exchange->context->keyring), &keys->job);
	return NEXT_WAIT;
}

static void admin_keys_run_job(struct helper_job *job)
{
	struct admin_keys *const keys = (struct admin_keys *)job;
	keys->work(keys);
	exchange_wake(keys->exchange); /* The exchange may be gone from here on. */
}

static void admin_keys_work_list(struct admin_keys *keys)
{
	struct exchange *const exchange = keys->exchange;
	keys->failed = keyring_list(exchange->context->keyring, exchange->arena, &keys->records,
			       &keys->record_count, &keys->err) != 0;
}

static void admin_keys_work_add(struct admin_keys *keys)
{
	struct exchange *const exchange = keys->exchange;
	const struct api_context *const context = exchange->context;
	keys->failed = admin_keys_make(context->store, context->keyring, context->default_namespace,
			       &keys->made, exchange->arena, &keys->err) != 0;
}

/* The log line of the request names the caller; both lines have the request id. */
static void log_key(const struct exchange *exchange, const char *event, struct span key_id)
{
	const struct log_field field = log_span("key_id", key_id);
	if (exchange->context->log != NULL)
		log_event(exchange->context->log, LOG_INFO, exchange->request_id, event, &field, 1);
}

static void admin_keys_work_revoke(struct admin_keys *keys)
{
	struct exchange *const exchange = keys->exchange;
	keys->failed = keyring_revoke(exchange->context->keyring, exchange->parameters[0],
			       &keys->err) != 0;
}

static void print_use(struct json_writer *json, int64_t used_ms)
{
	char text[CLOCK_TEXT_BYTES];
	if (used_ms == 0) {
		json_writer_null(json, "last_used");
		return;
	}
	clock_format_iso(used_ms, text);
	json_writer_text(json, "last_used", span_text(text));
}

static void print_grants(const struct grant *grants, size_t count, struct json_writer *json)
{
	json_writer_array(json, "grants");
	for (size_t i = 0; i < count; i++) {
		struct buffer text;
		buffer_init(&text, REQUEST_MAX_BYTES);
		grant_text_print(&grants[i], &text);
		json_writer_text(json, NULL, buffer_span(&text));
		buffer_release(&text);
	}
	json_writer_end(json, ']');
}

/* Reads a text member into the arena. *out is unchanged when the member is absent. */
static int take_text(const struct json_node *root, const char *name, struct arena *arena,
	const char **out, struct error *err)
{
	const struct json_node *const node = json_node_member(root, name);
	struct span text;
	if (node == NULL || json_node_is_null(node))
		return 0;
	if (!json_node_text(node, &text) || text.len > 255 || span_find(text, 0) >= 0)
		return error_set(
			err, ERROR_INVALID, "\"%s\" must be a text of at most 255 bytes.", name);
	*out = arena_text(arena, text);
	return *out != NULL ? 0
			    : error_set(err, ERROR_NO_MEMORY, "The memory of a request ran out.");
}

static int take_grants(const struct json_node *root, const char *default_namespace,
	struct arena *arena, struct keyring_new_key *out, struct error *err)
{
	const struct json_node *const list = json_node_member(root, "grants");
	const size_t count = json_node_count(list);
	if (list != NULL && !json_node_is_array(list))
		return error_set(err, ERROR_INVALID,
			"\"grants\" must be a list of texts BUCKET[/PREFIX]=read,write,list,admin.");
	if (count > GRANTS_MAX)
		return error_set(err, ERROR_TOO_LARGE, "A key has at most %d grants.", GRANTS_MAX);
	struct grant *const grants = arena_take_array(arena, count + 1, sizeof(*grants));
	for (size_t i = 0; i < count; i++) {
		struct span text;
		if (!json_node_text(json_node_at(list, i), &text))
			return error_set(err, ERROR_INVALID,
				"\"grants\" must be a list of texts BUCKET[/PREFIX]=read,write,list,admin.");
		if (take_grant(arena_copy(arena, text), default_namespace, &grants[i], err) != 0)
			return -1;
	}
	out->grants = grants;
	out->grant_count = count;
	return 0;
}

/* A bucket may be made after the key, so it need not be there, but its name must be possible. */
static int take_grant(
	struct span text, const char *default_namespace, struct grant *out, struct error *err)
{
	struct error rule = {0};
	const struct span shown = span_slice(text, 0, GRANT_SHOWN_BYTES);
	if (grant_text_parse(text, out, err) != 0)
		return -1;
	if (principal_is_metrics_grant(out) ||
		hub_name_check_bucket(default_namespace, out->bucket, &rule) == 0)
		return 0;
	return error_set(err, ERROR_INVALID, "The grant '%.*s' names a bucket that cannot be: %s",
		(int)shown.len, (const char *)shown.data, rule.text);
}
