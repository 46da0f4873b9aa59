/* The headers let a browser run and apply only what is below /console/ of this server: stored
 * objects share the origin, so 'self' would let an object be a script. No file below /console/
 * redirects, because a redirect would take the path out of that comparison. */
#include "api/console/console_file.h"

#include "api/console/file_list.h"
#include "api/exchange/base_url.h"
#include "api/objects/conditional.h"

static const struct console_file *find_file(struct span name);
static enum next reply_file(struct exchange *exchange, const struct console_file *file);
static bool accepts_gzip(struct span accepted);
static bool is_refused(struct span parameters);
static void add_headers(struct exchange *exchange);

enum next console_page_begin(struct exchange *exchange)
{
	const struct span path = exchange->path;
	if (path.len > 0 && path.data[path.len - 1] == '/')
		return reply_file(exchange, find_file(span_text("index.html")));
	/* Relative, so that it is right behind any proxy. */
	exchange_add_header(exchange, "Location", "console/");
	add_headers(exchange);
	return exchange_reply_empty(exchange, 308);
}

enum next console_file_begin(struct exchange *exchange)
{
	ASSERT(exchange->parameter_count == 1);
	return reply_file(exchange, find_file(exchange->parameters[0]));
}

static const struct console_file *find_file(struct span name)
{
	for (size_t i = 0; i < console_file_count; i++)
		if (span_equal_text(name, console_files[i].name))
			return &console_files[i];
	return NULL;
}

static enum next reply_file(struct exchange *exchange, const struct console_file *file)
{
	struct error err = {0};
	add_headers(exchange);
	if (file == NULL) {
		error_set(&err, ERROR_NOT_FOUND, "The console has no such file.");
		return exchange_fail(exchange, &err);
	}
	const bool packs =
		file->packed.len > 0 && accepts_gzip(exchange_header(exchange, "accept-encoding"));
	const char *const etag =
		arena_format(exchange->arena, "%s%s", file->digest, packs ? "-gzip" : "");
	exchange_add_header(exchange, "ETag",
		arena_format(exchange->arena, "\"%s\"", etag != NULL ? etag : ""));
	exchange_add_header(exchange, "Cache-Control", "no-cache");
	exchange_add_header(exchange, "Vary", "Accept-Encoding");
	if (etag != NULL &&
		conditional_etag_listed(exchange_header(exchange, "if-none-match"), etag))
		return exchange_reply_empty(exchange, 304);
	if (packs)
		exchange_add_header(exchange, "Content-Encoding", "gzip");
	return exchange_reply_body(
		exchange, 200, file->content_type, packs ? file->packed : file->plain);
}

/* Whether Accept-Encoding names gzip, and not with "q=0". */
static bool accepts_gzip(struct span accepted)
{
	struct span coding;
	while (span_split(&accepted, ',', &coding)) {
		struct span parameters = coding;
		struct span name = {NULL, 0};
		span_split(&parameters, ';', &name);
		if (span_equal_nocase(span_trim(name), "gzip"))
			return !is_refused(span_trim(parameters));
	}
	return false;
}

/* A weight of 0, in any of its forms: q=0, q=0.000. */
static bool is_refused(struct span parameters)
{
	if (parameters.len < 3 || !span_equal_nocase(span_slice(parameters, 0, 2), "q="))
		return false;
	for (size_t i = 2; i < parameters.len; i++)
		if (parameters.data[i] != '0' && parameters.data[i] != '.')
			return false;
	return true;
}

static void add_headers(struct exchange *exchange)
{
	const char *const base = base_url(exchange);
	exchange_add_header(exchange, "Content-Security-Policy",
		arena_format(exchange->arena,
			"default-src 'none'; script-src %s/console/; style-src %s/console/; font-src %s/console/; "
			"img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
			base, base, base));
	exchange_add_header(exchange, "Referrer-Policy", "no-referrer");
}
