#include "api/route/audit_rules.h"

#include <string.h>

#include "api/auth/audit_note.h"
#include "api/exchange/route.h"
#include "api/route/hub_name.h"
#include "base/format/json_node.h"

enum subject { SUBJECT_NONE, SUBJECT_FIRST, SUBJECT_RUN, SUBJECT_HUB_BUCKET };
enum detail { DETAIL_NONE, DETAIL_THIRD, DETAIL_BODY, DETAIL_ROUTE };

struct rule {
	const char *route;
	const char *action;
	enum subject subject; /* of the parameters of the route's pattern */
	enum detail detail;
};
static const struct rule rules[] = {
	{"RevokeKey", "key_revoked", SUBJECT_FIRST, DETAIL_NONE},
	{"RunSettings", "run_settings", SUBJECT_RUN, DETAIL_NONE},
	{"DeleteRun", "run_removed", SUBJECT_RUN, DETAIL_NONE},
	{"PutPin", "pin_put", SUBJECT_RUN, DETAIL_THIRD},
	{"DeletePin", "pin_removed", SUBJECT_RUN, DETAIL_THIRD},
	{"PutRollback", "rollback", SUBJECT_RUN, DETAIL_BODY},
	{"DeleteRollback", "forward", SUBJECT_RUN, DETAIL_NONE},
	{"CreateBucket", "bucket_made", SUBJECT_FIRST, DETAIL_NONE},
	{"CreateHubBucket", "bucket_made", SUBJECT_HUB_BUCKET, DETAIL_NONE},
	{"DeleteBucket", "bucket_removed", SUBJECT_FIRST, DETAIL_NONE},
	{"DeleteHubBucket", "bucket_removed", SUBJECT_FIRST, DETAIL_NONE},
	{"MoveHubBucket", "bucket_settings", SUBJECT_NONE, DETAIL_BODY},
	{"Gc", "gc", SUBJECT_NONE, DETAIL_BODY},
	{"Scrub", "scrub", SUBJECT_NONE, DETAIL_BODY},
};
/* All other changes that need `admin` on a bucket. */
static const struct rule other_settings = {NULL, "bucket_settings", SUBJECT_FIRST, DETAIL_ROUTE};

static bool has_changed_nothing(const struct exchange *exchange);
static const struct rule *find_rule(const struct route *route);
static struct span subject_of(struct exchange *exchange, enum subject subject);
static struct span detail_of(const struct exchange *exchange, enum detail detail);

void audit_rules_note(struct exchange *exchange)
{
	const struct route *const route = exchange->route;
	if (route == NULL || route->name == NULL || exchange->reply.status / 100 != 2 ||
		(exchange->method & (METHOD_PUT | METHOD_POST | METHOD_DELETE)) == 0 ||
		route->body == BODY_STREAM || route->access == ACCESS_OBJECT_DELETE)
		return;
	const struct rule *const rule = find_rule(route);
	if (rule == NULL || has_changed_nothing(exchange))
		return;
	const struct audit_entry entry = audit_note_entry(exchange, rule->action,
		subject_of(exchange, rule->subject), detail_of(exchange, rule->detail));
	audit_note(exchange->context->store, &entry);
}

/* A success over a call that failed, as of CreateBucket for a bucket that is there; a dry run. */
static bool has_changed_nothing(const struct exchange *exchange)
{
	struct error ignored = {0};
	bool is_dry = false;
	if (exchange->call != NULL && call_outcome(exchange->call, &ignored) != 0)
		return true;
	if (strcmp(exchange->route->name, "Gc") != 0)
		return false;
	struct json_node *const body =
		json_node_parse(exchange_body(exchange), "The request body", &ignored);
	json_node_bool(json_node_member(body, "dry_run"), &is_dry);
	json_node_free(body);
	return is_dry;
}

static const struct rule *find_rule(const struct route *route)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (strcmp(route->name, rules[i].route) == 0)
			return &rules[i];
	return route->access == ACCESS_BUCKET_ADMIN ? &other_settings : NULL;
}

static struct span subject_of(struct exchange *exchange, enum subject subject)
{
	const struct span first = exchange->parameters[0];
	const struct span second = exchange->parameters[1];
	if (subject == SUBJECT_NONE)
		return (struct span){NULL, 0};
	if (subject == SUBJECT_HUB_BUCKET)
		return hub_name_bucket(
			exchange->arena, exchange->context->default_namespace, first, second);
	if (subject == SUBJECT_FIRST)
		return first;
	return span_text(arena_format(exchange->arena, "%.*s/%.*s", (int)first.len,
		(const char *)first.data, (int)second.len, (const char *)second.data));
}

static struct span detail_of(const struct exchange *exchange, enum detail detail)
{
	switch (detail) {
	case DETAIL_THIRD:
		return exchange->parameters[2];
	case DETAIL_BODY:
		return span_is_utf8(exchange_body(exchange)) ? exchange_body(exchange)
							     : (struct span){NULL, 0};
	case DETAIL_ROUTE:
		return span_text(exchange->route->name);
	case DETAIL_NONE:
		break;
	}
	return (struct span){NULL, 0};
}
