/* A grant is split at its last '=', because a prefix may contain others. A refused grant gets a
 * message that shows the correct form, above all for a wildcard: people expect '*' to work, but a
 * grant without it covers the same keys. */
#include "api/auth/grant_text.h"

#include "api/exchange/principal.h"

enum { GRANT_SHOWN_BYTES = 120 };

static const struct {
	const char *name;
	unsigned permission;
} permission_names[] = {{"read", PERMISSION_READ}, {"write", PERMISSION_WRITE},
	{"list", PERMISSION_LIST}, {"admin", PERMISSION_ADMIN}};

/* The stored form of the grant "metrics". No bucket can have the name "-". */
static const struct grant metrics_grant = {.bucket = {(const uint8_t *)"-", 1},
	.prefix = {(const uint8_t *)"metrics", 7},
	.permissions = PERMISSION_READ};

static struct grant split_place(struct span where);
static int refuse_form(struct span text, struct error *err);
static int refuse_wildcard(struct span where, struct span rights, struct error *err);
static int parse_permissions(
	struct span text, struct span rights, unsigned *out, struct error *err);
static unsigned find_permission(struct span name);

int grant_text_parse(struct span text, struct grant *out, struct error *err)
{
	const struct span shown = span_slice(text, 0, GRANT_SHOWN_BYTES);
	if (span_equal_text(text, "metrics")) {
		*out = metrics_grant;
		return 0;
	}
	ptrdiff_t equals = (ptrdiff_t)text.len - 1; /* the last '=' */
	while (equals >= 0 && text.data[equals] != '=')
		equals--;
	const struct span where = span_slice(text, 0, equals < 0 ? 0 : (size_t)equals);
	const struct span rights = span_slice(text, (size_t)(equals + 1), text.len);
	struct grant grant = split_place(where);
	if (grant.bucket.len == 0 || principal_is_metrics_grant(&grant))
		return refuse_form(shown, err);
	if (refuse_wildcard(where, rights, err) != 0 ||
		parse_permissions(shown, rights, &grant.permissions, err) != 0)
		return -1;
	*out = grant;
	return 0;
}

void grant_text_print(const struct grant *grant, struct buffer *out)
{
	if (principal_is_metrics_grant(grant)) {
		buffer_add_text(out, "metrics");
		return;
	}
	buffer_add_span(out, grant->bucket);
	if (grant->prefix.len > 0) {
		buffer_add_byte(out, '/');
		buffer_add_span(out, grant->prefix);
	}
	char separator = '=';
	for (size_t i = 0; i < sizeof(permission_names) / sizeof(permission_names[0]); i++)
		if ((grant->permissions & permission_names[i].permission) != 0) {
			buffer_add_byte(out, (uint8_t)separator);
			buffer_add_text(out, permission_names[i].name);
			separator = ',';
		}
}

static struct grant split_place(struct span where)
{
	const ptrdiff_t slash = span_find(where, '/');
	if (slash < 0)
		return (struct grant){.bucket = where};
	return (struct grant){.bucket = span_slice(where, 0, (size_t)slash),
		.prefix = span_slice(where, (size_t)slash + 1, where.len)};
}

static int refuse_form(struct span text, struct error *err)
{
	return error_set(err, ERROR_INVALID,
		"The grant '%.*s' is neither of the form BUCKET[/PREFIX]=read,write,list,admin nor \"metrics\".",
		(int)text.len, (const char *)text.data);
}

/* An object key may contain a star, but in a grant it is meant as a wildcard. */
static int refuse_wildcard(struct span where, struct span rights, struct error *err)
{
	const ptrdiff_t star = span_find(where, '*');
	if (star < 0)
		return 0;
	const struct span stem = span_slice(where, 0, (size_t)star);
	if (span_find(stem, '/') < 0)
		return error_set(err, ERROR_INVALID,
			"Grants have no wildcards: '%.*s' must be the name of one bucket, as in files=%.*s.",
			(int)where.len, (const char *)where.data, (int)rights.len,
			(const char *)rights.data);
	return error_set(err, ERROR_INVALID,
		"Grants have no wildcards: instead of '%.*s' write %.*s=%.*s, which covers all keys with this beginning.",
		(int)where.len, (const char *)where.data, (int)stem.len, (const char *)stem.data,
		(int)rights.len, (const char *)rights.data);
}

static int parse_permissions(struct span text, struct span rights, unsigned *out, struct error *err)
{
	struct span name;
	*out = 0;
	while (span_split(&rights, ',', &name)) {
		const unsigned permission = find_permission(name);
		if (permission == 0 && name.len > 0)
			return error_set(err, ERROR_INVALID,
				"The grant '%.*s' names '%.*s', which is not one of read, write, list and admin.",
				(int)text.len, (const char *)text.data, (int)name.len,
				(const char *)name.data);
		if (permission == 0)
			return refuse_form(text, err);
		*out |= permission;
	}
	return *out != 0 ? 0 : refuse_form(text, err);
}

static unsigned find_permission(struct span name)
{
	for (size_t i = 0; i < sizeof(permission_names) / sizeof(permission_names[0]); i++)
		if (span_equal_text(name, permission_names[i].name))
			return permission_names[i].permission;
	return 0;
}
