#include "tests/support/route_text.h"

#include "api/route/router.h"

static const struct {
	int method;
	const char *name;
} methods[] = {{METHOD_GET, "GET"}, {METHOD_HEAD, "HEAD"}, {METHOD_PUT, "PUT"},
	{METHOD_POST, "POST"}, {METHOD_DELETE, "DELETE"}, {METHOD_OPTIONS, "OPTIONS"}};
static const char *const accesses[] = {
	[ACCESS_ANYONE] = "anyone",
	[ACCESS_SIGNED_IN] = "signed in",
	[ACCESS_METRICS] = "metrics",
	[ACCESS_ROOT] = "root",
	[ACCESS_CREATE_BUCKET] = "create bucket",
	[ACCESS_BUCKET_KNOWN] = "bucket known",
	[ACCESS_BUCKET_CHANGES] = "bucket changes",
	[ACCESS_BUCKET_LIST] = "bucket list",
	[ACCESS_BUCKET_SCAN] = "bucket scan",
	[ACCESS_BUCKET_RUNS] = "bucket runs",
	[ACCESS_BUCKET_SETTINGS] = "bucket settings",
	[ACCESS_BUCKET_ADMIN] = "bucket admin",
	[ACCESS_OBJECT_READ] = "object read",
	[ACCESS_OBJECT_WRITE] = "object write",
	[ACCESS_OBJECT_DELETE] = "object delete",
	[ACCESS_OBJECT_TAGS_READ] = "object tags read",
	[ACCESS_OBJECT_TAGS_WRITE] = "object tags write",
	[ACCESS_OBJECT_ADMIN] = "object admin",
	[ACCESS_RUN_READ] = "run read",
	[ACCESS_RUN_FLEET] = "run fleet",
	[ACCESS_RUN_OBJECT] = "run object",
	[ACCESS_RUN_WRITE] = "run write",
	[ACCESS_XET_READ] = "token to read",
	[ACCESS_XET_WRITE] = "token to write",
};
static const char *const bodies[] = {
	[BODY_NONE] = "no body",
	[BODY_SMALL] = "small body",
	[BODY_STREAM] = "stream",
};

static void print_methods(const struct route *route, struct buffer *out)
{
	const char *separator = "";
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if ((route->methods & methods[i].method) == 0)
			continue;
		buffer_format(out, "%s%s", separator, methods[i].name);
		separator = ",";
	}
}

static void print_row(const struct route *route, struct buffer *out)
{
	const bool has_query = route->query != NULL;
	ASSERT((size_t)route->access < sizeof(accesses) / sizeof(accesses[0]));
	ASSERT(accesses[route->access] != NULL);
	print_methods(route, out);
	buffer_format(out, " %s%s%s -> %s (%s, %s)\n", route->pattern, has_query ? "?" : "",
		has_query ? route->query : "", route->name, accesses[route->access],
		bodies[route->body]);
}

void route_text_print(struct buffer *out)
{
	static const struct route *const tables[] = {admin_routes, console_routes, steps_routes,
		hot_load_routes, hub_routes, xet_routes, s3_routes};
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct route *route = tables[i]; route->pattern != NULL; route++)
			print_row(route, out);
}
