/* A table lists the parameters of each plain route, by pattern and method. Every parameter of a
 * request must be in the row of its route or in the list of those that all routes have. */
#include "api/s3/request/plain_query.h"

#include <string.h>

#include "api/route/router.h"

enum { READS = METHOD_GET | METHOD_HEAD, CHANGES = METHOD_PUT | METHOD_POST | METHOD_DELETE };
enum { NAMES_MAX = 10, SHOWN_MAX = 100 };

static const struct plain_names { /* a last '*' of a name stands for any rest */
	const char *pattern;
	int methods;
	const char *names[NAMES_MAX];
} table[] = {
	{"/", READS, {"bucket-region", "continuation-token", "max-buckets", "prefix"}},
	{"/{bucket}", READS,
		{"continuation-token", "delimiter", "encoding-type", "fetch-owner", "list-type",
			"marker", "max-keys", "prefix", "start-after"}},
	{"/{bucket}", CHANGES, {NULL}},
	{"/{bucket}/{key*}", READS, {"partNumber", "response-*", "versionId"}},
	{"/{bucket}/{key*}", METHOD_PUT | METHOD_POST, {NULL}},
	{"/{bucket}/{key*}", METHOD_DELETE, {"versionId"}},
};
/* All routes have these, in upper or lower case: parameters of signatures, headers that clients
 * move into URLs that they sign with version 2, and all that begin with x-, which S3 ignores and
 * clients add for logs. */
static const char *const everywhere[] = {
	"AWSAccessKeyId", "Expires", "Signature", "cache-control", "content-*", "x-*"};

typedef bool same_fn(struct span a, struct span b);

static const struct plain_names *find_row(const struct exchange *exchange);
static bool is_known(const struct plain_names *row, struct span name);
static bool fits(struct span name, const char *known, same_fn *same);
static int refuse(struct exchange *exchange, struct span name, struct error *err);

int plain_query_check(struct exchange *exchange, struct error *err)
{
	size_t count;
	const struct plain_names *const row = find_row(exchange);
	const struct query_parameter *const given = exchange_query_parameters(exchange, &count);
	const bool is_read = (exchange->method & READS) != 0;
	for (size_t i = 0; row != NULL && i < count; i++)
		if (!(is_read && given[i].value.len > 0) && !is_known(row, given[i].name))
			return refuse(exchange, given[i].name, err);
	return 0;
}

/* NULL: the request is not a plain one. A route whose marker has a value (list-type=2) is plain; a
 * marker without a value is a sub-resource. */
static const struct plain_names *find_row(const struct exchange *exchange)
{
	const struct route *const route = exchange->route;
	ASSERT(route != NULL);
	if (route->query != NULL && strchr(route->query, '=') == NULL)
		return NULL;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strcmp(table[i].pattern, route->pattern) == 0 &&
			(table[i].methods & (int)exchange->method) != 0)
			return &table[i];
	return NULL;
}

/* Names of a route must match in case: taking ?versionid for ?versionId would delete the wrong
 * version. */
static bool is_known(const struct plain_names *row, struct span name)
{
	for (size_t i = 0; i < sizeof(everywhere) / sizeof(everywhere[0]); i++)
		if (fits(name, everywhere[i], span_same_nocase))
			return true;
	for (size_t i = 0; i < NAMES_MAX && row->names[i] != NULL; i++)
		if (fits(name, row->names[i], span_equal))
			return true;
	return false;
}

static bool fits(struct span name, const char *known, same_fn *same)
{
	ASSERT(known[0] != '\0');
	const size_t stem = strlen(known) - 1;
	if (known[stem] != '*')
		return same(name, span_text(known));
	return same(span_slice(name, 0, stem), span_slice(span_text(known), 0, stem));
}

static int refuse(struct exchange *exchange, struct span name, struct error *err)
{
	const struct span shown = span_slice(name, 0, SHOWN_MAX);
	exchange_error_field(exchange, "Header", shown);
	return error_set(err, ERROR_UNSUPPORTED,
		"This server does not know the query parameter '%.*s',"
		" and does not take a request with it for a plain %s.",
		(int)shown.len, (const char *)shown.data, exchange->route->name);
}
