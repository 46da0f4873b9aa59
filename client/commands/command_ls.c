/* `ls`: lists buckets or objects, page by page, so that memory stays bounded however long the list
 * is. With -r and no bucket it lists the objects of each bucket. The listing ends early when
 * --limit is reached or nobody reads the output any more. */
#include "base/quantity.h"
#include "client/commands/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "client/remote/remote_hub.h"
#include "client/remote/remote_object.h"

enum { ARENA_BYTES = 64 * 1024 * 1024, NAME_SHOWN_MAX_BYTES = 4096 };

struct ls {
	struct session *session;
	struct remote *remote;
	struct span bucket; /* empty: the buckets are listed */
	bool names_buckets; /* before each key */
	uint64_t left;      /* entries that --limit still allows */
};

static int all_pages(struct ls *ls, struct span prefix, struct error *err);
static int one_page(
	struct ls *ls, struct span prefix, struct buffer *token, bool *out_more, struct error *err);
static bool goes_on(const struct ls *ls);
static int say_entry(struct ls *ls, const struct listing_entry *entry, struct error *err);
static int say_below(struct ls *ls, const struct listing_entry *entry, struct error *err);
static int say_bucket(struct ls *ls, const struct listing_entry *entry, struct error *err);
static void say_totals(
	struct ls *ls, const struct listing_entry *entry, const struct hub_totals *totals);
static void show_name(struct span name, char out[NAME_SHOWN_MAX_BYTES + 1]);
static void say_object(struct ls *ls, const struct listing_entry *entry);

int command_ls(struct session *session, struct error *err)
{
	const struct options *const options = session->options;
	struct ls ls = {.session = session,
		.left = options->limit.given ? options->limit.value : UINT64_MAX};
	struct object_name name = {0};
	if (options->argument_count > 0 &&
		session_object_name(session, options->arguments[0], &name, err) != 0)
		return -1;
	ls.bucket = name.bucket;
	ls.remote = session_connect(session, err);
	const int result = ls.remote == NULL ? -1 : all_pages(&ls, name.key, err);
	remote_free(ls.remote);
	return result;
}

static int all_pages(struct ls *ls, struct span prefix, struct error *err)
{
	struct buffer token;
	int result;
	bool more;
	buffer_init(&token, REMOTE_LIST_TOKEN_MAX_BYTES);
	do
		result = one_page(ls, prefix, &token, &more, err);
	while (result == 0 && more);
	buffer_release(&token);
	return result;
}

/* Fetches and prints one page, and puts the next page's token into `token`. *out_more is false at
 * the end. */
static int one_page(
	struct ls *ls, struct span prefix, struct buffer *token, bool *out_more, struct error *err)
{
	const struct remote_object_page page = {
		.bucket = ls->bucket,
		.prefix = prefix,
		.delimiter = span_text(ls->session->options->recursive ? "" : "/"),
		.token = buffer_span(token),
	};
	struct arena *const arena = arena_new(ARENA_BYTES);
	struct listing listing;
	const bool buckets = ls->bucket.len == 0;
	int result = buckets
		? remote_object_list_buckets(ls->remote, page.token, arena, &listing, err)
		: remote_object_list(ls->remote, &page, arena, &listing, err);
	*out_more = false;
	if (result == 0) {
		for (size_t i = 0; i < listing.count && result == 0 && goes_on(ls); i++)
			result = say_entry(ls, &listing.entries[i], err);
		buffer_reset(token);
		buffer_add_span(token, listing.next);
		*out_more = listing.next.len > 0 && (buckets || listing.truncated) && goes_on(ls);
	}
	arena_free(arena);
	return result;
}

static bool goes_on(const struct ls *ls)
{
	return ls->left > 0 && !ls->session->output.failed;
}

static int say_entry(struct ls *ls, const struct listing_entry *entry, struct error *err)
{
	const bool is_bucket = ls->bucket.len == 0;
	if (is_bucket && ls->session->options->recursive)
		return say_below(ls, entry, err);
	ls->left--;
	if (is_bucket)
		return say_bucket(ls, entry, err);
	say_object(ls, entry);
	return 0;
}

/* The objects of a bucket, in place of the bucket. */
static int say_below(struct ls *ls, const struct listing_entry *entry, struct error *err)
{
	struct ls below = *ls;
	ASSERT(ls->bucket.len == 0 && entry->name.len > 0);
	below.bucket = entry->name;
	below.names_buckets = true;
	const int result = all_pages(&below, (struct span){0}, err);
	ls->left = below.left;
	return result == 0 ? 0
			   : error_wrap(err, "listing %.*s", (int)entry->name.len,
				     (const char *)entry->name.data);
}

static int say_bucket(struct ls *ls, const struct listing_entry *entry, struct error *err)
{
	char name[NAME_SHOWN_MAX_BYTES + 1];
	struct hub_totals totals;
	struct output_line line;
	const bool is_long = ls->session->options->is_long;
	if (is_long && remote_hub_totals(ls->remote, entry->name, &totals, err) != 0)
		return -1;
	output_line_begin(&line, &ls->session->output, NULL);
	json_writer_text(&line.writer, "bucket", entry->name);
	json_writer_text(&line.writer, "created", entry->modified);
	if (is_long) {
		json_writer_u64(&line.writer, "objects", totals.files);
		json_writer_u64(&line.writer, "bytes", totals.bytes);
	}
	output_line_end(&line);
	if (is_long) {
		say_totals(ls, entry, &totals);
		return 0;
	}
	show_name(entry->name, name);
	output_result(&ls->session->output, "%24.*s  %s", (int)entry->modified.len,
		(const char *)entry->modified.data, name);
	return 0;
}

static void say_totals(
	struct ls *ls, const struct listing_entry *entry, const struct hub_totals *totals)
{
	char name[NAME_SHOWN_MAX_BYTES + 1];
	char size[QUANTITY_TEXT_BYTES];
	quantity_format(totals->bytes, size);
	show_name(entry->name, name);
	output_result(&ls->session->output, "%24.*s  %12" PRIu64 " object%s  %10s  %s",
		(int)entry->modified.len, (const char *)entry->modified.data, totals->files,
		totals->files == 1 ? " " : "s", size, name);
}

/* A key may hold any bytes, even control sequences: on a terminal control bytes are shown as
 * '?'. */
static void show_name(struct span name, char out[NAME_SHOWN_MAX_BYTES + 1])
{
	const bool terminal = isatty(STDOUT_FILENO);
	size_t len = 0;
	for (; len < name.len && len < NAME_SHOWN_MAX_BYTES; len++)
		out[len] = terminal && (name.data[len] < ' ' || name.data[len] == 0x7f)
			? '?'
			: (char)name.data[len];
	out[len] = '\0';
}

static void say_object(struct ls *ls, const struct listing_entry *entry)
{
	struct output *const output = &ls->session->output;
	char name[NAME_SHOWN_MAX_BYTES + 1];
	struct output_line line;
	output_line_begin(&line, output, NULL);
	json_writer_text(&line.writer, "bucket", ls->bucket);
	json_writer_text(&line.writer, entry->is_prefix ? "prefix" : "key", entry->name);
	if (!entry->is_prefix) {
		json_writer_u64(&line.writer, "bytes", entry->size);
		json_writer_text(&line.writer, "modified", entry->modified);
		json_writer_text(&line.writer, "etag", entry->etag);
	}
	output_line_end(&line);
	const struct span bucket = ls->names_buckets ? ls->bucket : (struct span){0};
	const char *const slash = ls->names_buckets ? "/" : "";
	show_name(entry->name, name);
	if (entry->is_prefix)
		output_result(output, "%14s  %24s  %s", "", "", name);
	else
		output_result(output, "%14" PRIu64 "  %24.*s  %.*s%s%s", entry->size,
			(int)entry->modified.len, (const char *)entry->modified.data,
			(int)bucket.len, (const char *)bucket.data, slash, name);
}
