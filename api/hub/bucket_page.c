/* One page of HTML without scripts. Names of files come from any writer, so all of them are
 * escaped, and a Content-Security-Policy lets the page load nothing. */
#include "api/hub/bucket_page.h"

#include "api/auth/keyring.h"
#include "api/exchange/json_reply.h"
#include "api/hub/hub_bucket.h"
#include "api/hub/list_tree.h"
#include "base/encode.h"

enum { PAGE_MAX_BYTES = 8 * 1024 * 1024, ERROR_PAGE_MAX_BYTES = 16 * 1024 };

static const char content_type[] = "text/html; charset=utf-8";

static enum next reply(
	struct exchange *exchange, const struct hub_bucket *bucket, const struct tree *tree);
static void start(struct exchange *exchange, struct buffer *out, size_t cap, struct span title);
static void add_escaped(struct buffer *out, struct span text);
static void add_facts(
	struct exchange *exchange, struct buffer *out, const struct hub_bucket *bucket);
static void add_entry(struct buffer *out, const char *id, const struct tree_entry *entry);
static void bucket_page_write_error(
	struct exchange *exchange, const struct error *err, const struct error_row *row);

const struct face face_hub_page = {.name = "hub",
	.hides = true,
	.busy_status = JSON_REPLY_BUSY,
	.write_error = bucket_page_write_error,
	.prepare = json_reply_prepare};

enum next bucket_page_begin(struct exchange *exchange)
{
	struct tree_params params = {.limit = TREE_LIMIT};
	struct error err = {0};
	struct bucket bucket;
	struct hub_bucket described;
	struct tree tree;
	if (list_tree_place(exchange, &params, &err) != 0 ||
		bucket_find(exchange->context->store, params.bucket, exchange->arena, &bucket,
			&err) != 0 ||
		hub_bucket_describe(exchange, &bucket, &described, &err) != 0 ||
		tree_list(exchange->context->store, &params, exchange->arena, &tree, &err) != 0)
		return exchange_fail(exchange, &err);
	if (params.prefix.len > 0 && tree.count == 0 && !tree.truncated) {
		error_set(&err, ERROR_NO_KEY, "There is nothing at this path of the bucket.");
		return exchange_fail(exchange, &err);
	}
	return reply(exchange, &described, &tree);
}

static enum next reply(
	struct exchange *exchange, const struct hub_bucket *bucket, const struct tree *tree)
{
	const char *const id = hub_bucket_id(exchange, bucket->bucket.name);
	struct buffer out;
	start(exchange, &out, PAGE_MAX_BYTES, span_text(id));
	add_facts(exchange, &out, bucket);
	for (size_t i = 0; i < tree->count; i++)
		add_entry(&out, id, &tree->entries[i]);
	buffer_add_text(&out, tree->truncated ? "</ul>\n<p>And more.\n" : "</ul>\n");
	return exchange_reply_buffer(exchange, 200, content_type, &out);
}

/* The page of a failure may take the place of one that was too large. */
static void start(struct exchange *exchange, struct buffer *out, size_t cap, struct span title)
{
	if (!exchange_has_reply_header(exchange, "Content-Security-Policy"))
		exchange_add_header(exchange, "Content-Security-Policy", "default-src 'none'");
	buffer_init(out, cap);
	buffer_add_text(out, "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>");
	add_escaped(out, title);
	buffer_add_text(out, "</title><h1>");
	add_escaped(out, title);
	buffer_add_text(out, "</h1>\n");
}

static void add_escaped(struct buffer *out, struct span text)
{
	static const struct {
		uint8_t byte;
		const char *escape;
	} escapes[] = {
		{'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
	for (size_t i = 0; i < text.len; i++) {
		const char *escape = NULL;
		for (size_t j = 0; j < sizeof(escapes) / sizeof(escapes[0]); j++)
			if (escapes[j].byte == text.data[i])
				escape = escapes[j].escape;
		if (escape != NULL)
			buffer_add_text(out, escape);
		else
			buffer_add_byte(out, text.data[i]);
	}
}

static void add_facts(
	struct exchange *exchange, struct buffer *out, const struct hub_bucket *bucket)
{
	const char *const id = hub_bucket_id(exchange, bucket->bucket.name);
	char changed[CLOCK_TEXT_BYTES];
	clock_format_iso(bucket->totals.updated_ms, changed);
	buffer_format(out,
		"<p>A %s bucket: %lld files, %lld bytes, last changed %s.\n<pre>hf buckets ls ",
		bucket->is_public ? "public" : "private", (long long)bucket->totals.files,
		(long long)bucket->totals.bytes, changed);
	add_escaped(out, span_text(id));
	buffer_add_text(out, " -R\nhf sync hf://buckets/");
	add_escaped(out, span_text(id));
	buffer_add_text(out, " FOLDER</pre>\n<ul>\n");
}

static void add_entry(struct buffer *out, const char *id, const struct tree_entry *entry)
{
	buffer_format(
		out, "<li><a href=\"/buckets/%s/%s/", id, entry->is_directory ? "tree" : "resolve");
	encode_percent(entry->path, true, out);
	buffer_add_text(out, "\">");
	add_escaped(out, entry->path);
	if (entry->is_directory)
		buffer_add_text(out, "/</a>\n");
	else
		buffer_format(out, "</a> %llu\n", (unsigned long long)entry->size);
}

static const char *advice(enum error_kind kind)
{
	if (kind == ERROR_NO_CREDENTIALS)
		return "<p>This bucket is private or does not exist. With a token that may see it, <code>hf buckets ls</code> shows it.\n";
	return "";
}

/* Takes status and headers from the Hub's face, and replaces its body by one for people. */
static void bucket_page_write_error(
	struct exchange *exchange, const struct error *err, const struct error_row *row)
{
	struct buffer out;
	face_hub.write_error(exchange, err, row);
	start(exchange, &out, ERROR_PAGE_MAX_BYTES,
		span_text(arena_format(exchange->arena, "%d", exchange->reply.status)));
	buffer_add_text(&out, "<p>");
	add_escaped(&out, span_text(error_map_text(err, row)));
	buffer_add_text(&out, "\n");
	buffer_add_text(&out, advice(err->kind));
	exchange->reply.body = buffer_failed(&out) ? (struct span){NULL, 0}
						   : arena_copy(exchange->arena, buffer_span(&out));
	exchange->reply.content_type = content_type;
	buffer_release(&out);
}
