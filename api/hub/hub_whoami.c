#include "api/hub/handlers.h"

#include "api/auth/keyring.h"
#include "api/exchange/json_reply.h"
#include "api/route/hub_name.h"
#include "base/format/json_node.h"

enum { REPLY_MAX_BYTES = 16 * 1024 };

static void print_auth(const struct principal *principal, struct json_writer *json);

enum next hub_whoami_begin(struct exchange *exchange)
{
	const struct principal *const principal = exchange->principal;
	ASSERT(principal != NULL); /* the route requires a key */
	struct buffer body;
	struct json_writer json;
	buffer_init(&body, REPLY_MAX_BYTES);
	json_writer_init(&json, &body);
	json_writer_object(&json, NULL);
	json_writer_text(&json, "type", span_text("user"));
	json_writer_text(&json, "id", principal->namespace);
	json_writer_text(&json, "name", principal->namespace);
	json_writer_text(&json, "fullname", principal->namespace);
	json_writer_null(&json, "email");
	json_writer_bool(&json, "emailVerified", true);
	json_writer_bool(&json, "isPro", false);
	json_writer_bool(&json, "canPay", false);
	json_writer_null(&json, "periodEnd");
	json_writer_text(&json, "avatarUrl", span_text(""));
	json_writer_array(&json, "orgs");
	json_writer_end(&json, ']');
	print_auth(principal, &json);
	json_writer_end(&json, '}');
	return json_reply(exchange, 200, &body);
}

enum next hub_harnesses_begin(struct exchange *exchange)
{
	struct buffer body;
	buffer_init(&body, REPLY_MAX_BYTES);
	buffer_add_text(&body, "{\"standardEnvVars\":[],\"harnesses\":{}}");
	return json_reply(exchange, 200, &body);
}

enum next hub_no_repository_begin(struct exchange *exchange)
{
	struct error err = {0};
	error_set(&err, ERROR_NO_BUCKET, HUB_NAME_NO_REPOSITORY);
	return exchange_fail(exchange, &err);
}

enum next hub_no_repositories_begin(struct exchange *exchange)
{
	struct error err = {0};
	error_set(&err, ERROR_NOT_FOUND, HUB_NAME_NO_REPOSITORY);
	return exchange_fail(exchange, &err);
}

enum next hub_no_login_begin(struct exchange *exchange)
{
	struct error err = {0};
	error_set(&err, ERROR_NOT_FOUND,
		"This server has no login by browser: use `hf auth login --token TOKEN` with the token of one of its keys.");
	return exchange_fail(exchange, &err);
}

static void print_auth(const struct principal *principal, struct json_writer *json)
{
	json_writer_object(json, "auth");
	json_writer_text(json, "type", span_text("access_token"));
	json_writer_object(json, "accessToken");
	json_writer_text(json, "displayName", principal->key_id);
	json_writer_text(
		json, "role", span_text(principal->grant_count > 0 ? "fineGrained" : "write"));
	json_writer_end(json, '}');
	json_writer_end(json, '}');
}
