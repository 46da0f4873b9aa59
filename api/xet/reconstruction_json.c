/* In the first form each range has a URL of its own. In the second form the ranges of a xorb that
 * lie in one place share a URL, up to FETCH_SPANS_MAX of them: their offsets rise, so one token can
 * name them all. */
#include "api/xet/reconstruction_json.h"

#include <string.h>

#include "api/auth/shared_url.h"
#include "api/auth/xet_token.h"
#include "api/xet/fetch_token.h"

static void write_xorb(const struct reconstruction_json *reply, size_t from, size_t to);
static size_t entry_end(const struct reconstruction_json *reply, size_t from, size_t xorb_end);
static void write_grouped_entry(const struct reconstruction_json *reply, size_t from, size_t to);
static void write_url(const struct reconstruction_json *reply, size_t from, size_t to);
static void set_terms(const struct reconstruction_json *reply, struct fetch_token *token);
static void write_range(const struct reconstruction_json *reply, size_t index, const char *chunks,
	const char *bytes);
static void write_bounds(struct json_writer *json, const char *name, uint64_t start, uint64_t end);
static void write_plain_entry(const struct reconstruction_json *reply, size_t index);

void reconstruction_json_terms(
	const struct reconstruction_json *reply, const char *name, size_t from, size_t to)
{
	struct json_writer *const json = reply->json;
	ASSERT(from <= to && to <= reply->plan->term_count);
	json_writer_array(json, name);
	for (size_t i = from; i < to; i++) {
		const struct reconstruction_term *const term = &reply->plan->terms[i];
		char hash[CHUNK_ID_TEXT_BYTES];
		chunk_id_format(&term->xorb, hash);
		json_writer_object(json, NULL);
		json_writer_text(json, "hash", span_text(hash));
		json_writer_u64(json, "unpacked_length", term->bytes);
		json_writer_object(json, "range");
		json_writer_u64(json, "start", term->first);
		json_writer_u64(json, "end", term->end);
		json_writer_end(json, '}');
		json_writer_end(json, '}');
	}
	json_writer_end(json, ']');
}

int reconstruction_json_ranges(const struct reconstruction_json *reply, struct error *err)
{
	const struct reconstruction *const plan = reply->plan;
	for (size_t i = 0; i < plan->range_count; i++)
		if (plan->ranges[i].piece_count > FETCH_SPANS_MAX ||
			plan->ranges[i].total > UINT32_MAX)
			return error_set(err, ERROR_TOO_LARGE,
				"A xorb of the file lies in too many places: ask for less at a time.");
	json_writer_object(reply->json, reply->grouped ? "xorbs" : "fetch_info");
	for (size_t i = 0; i < plan->range_count;) {
		size_t end = i + 1;
		while (end < plan->range_count &&
			chunk_id_equal(&plan->ranges[end].xorb, &plan->ranges[i].xorb))
			end++;
		write_xorb(reply, i, end);
		i = end;
	}
	json_writer_end(reply->json, '}');
	return 0;
}

/* Writes the entries of ranges [from, to), which are all ranges of one xorb. */
static void write_xorb(const struct reconstruction_json *reply, size_t from, size_t to)
{
	char hash[CHUNK_ID_TEXT_BYTES];
	chunk_id_format(&reply->plan->ranges[from].xorb, hash);
	json_writer_array(reply->json, hash);
	for (size_t i = from; i < to;) {
		const size_t end = entry_end(reply, i, to);
		if (reply->grouped)
			write_grouped_entry(reply, i, end);
		else
			write_plain_entry(reply, i);
		i = end;
	}
	json_writer_end(reply->json, ']');
}

/* The end of the ranges that share a URL with the range `from`. */
static size_t entry_end(const struct reconstruction_json *reply, size_t from, size_t xorb_end)
{
	const struct reconstruction *const plan = reply->plan;
	const struct reconstruction_range *const first = &plan->ranges[from];
	size_t to = from + 1;
	if (!reply->grouped || first->piece_count > 1)
		return to;
	const struct reconstruction_place *const place = &plan->pieces[first->piece].place;
	while (to < xorb_end && to - from < FETCH_SPANS_MAX && plan->ranges[to].piece_count == 1) {
		const struct reconstruction_place *const other =
			&plan->pieces[plan->ranges[to].piece].place;
		if (other->base != place->base ||
			memcmp(&other->pack, &place->pack, sizeof(place->pack)) != 0)
			break;
		to++;
	}
	return to;
}

static void write_grouped_entry(const struct reconstruction_json *reply, size_t from, size_t to)
{
	json_writer_object(reply->json, NULL);
	write_url(reply, from, to);
	json_writer_array(reply->json, "ranges");
	for (size_t i = from; i < to; i++) {
		json_writer_object(reply->json, NULL);
		write_range(reply, i, "chunks", "bytes");
		json_writer_end(reply->json, '}');
	}
	json_writer_end(reply->json, ']');
	json_writer_end(reply->json, '}');
}

/* Writes the URL of ranges [from, to) of the plan. They must be of one xorb and have at most
 * FETCH_SPANS_MAX pieces. */
static void write_url(const struct reconstruction_json *reply, size_t from, size_t to)
{
	const struct reconstruction *const plan = reply->plan;
	struct fetch_token token = {.as_stored = reply->as_stored,
		.total = (uint32_t)plan->ranges[from].total,
		.version = plan->pieces[plan->ranges[from].piece].place.version};
	set_terms(reply, &token);
	for (size_t i = plan->ranges[from].piece;
		i < plan->ranges[to - 1].piece + plan->ranges[to - 1].piece_count; i++) {
		const struct reconstruction_piece *const piece = &plan->pieces[i];
		ASSERT(token.span_count < FETCH_SPANS_MAX);
		token.spans[token.span_count++] = (struct fetch_span){.pack = piece->place.pack,
			.first = piece->place.base + piece->first,
			.count = piece->end - piece->first,
			.offset = (uint32_t)piece->offset,
			.length = (uint32_t)piece->length};
	}
	struct buffer url;
	buffer_init(&url, 8 * FETCH_TOKEN_MAX_BYTES);
	buffer_add_text(&url, reply->base);
	buffer_add_text(&url, "/xet/v1/fetch/");
	fetch_token_print(&token, reply->exchange->context->token_key, &url);
	json_writer_text(reply->json, "url", buffer_span(&url));
	buffer_release(&url);
}

/* Sets for whom the token is and until when. */
static void set_terms(const struct reconstruction_json *reply, struct fetch_token *token)
{
	const struct api_context *const context = reply->exchange->context;
	const struct xet_token *const caller = reply->exchange->transfer;
	const int64_t now_ms = context->clock->wall_ms(context->clock);
	token->bucket = caller->bucket_id;
	token->is_shared = context->shared_urls;
	if (token->is_shared) {
		token->expires_s = shared_url_expiry_s(now_ms);
		return;
	}
	token->expires_s = now_ms / 1000 + FETCH_TOKEN_SECONDS;
	token->key_id_len = caller->key_id.len;
	if (caller->key_id.len > 0)
		memcpy(token->key_id, caller->key_id.data, caller->key_id.len);
}

/* Writes the chunks of a range, and the bytes that contain them (inclusive). */
static void write_range(const struct reconstruction_json *reply, size_t index, const char *chunks,
	const char *bytes)
{
	const struct reconstruction_range *const range = &reply->plan->ranges[index];
	const struct reconstruction_piece *const first = &reply->plan->pieces[range->piece];
	const struct reconstruction_piece *const last = first + range->piece_count - 1;
	write_bounds(reply->json, chunks, range->first, range->end);
	write_bounds(reply->json, bytes, first->offset, last->offset + last->length - 1);
}

static void write_bounds(struct json_writer *json, const char *name, uint64_t start, uint64_t end)
{
	json_writer_object(json, name);
	json_writer_u64(json, "start", start);
	json_writer_u64(json, "end", end);
	json_writer_end(json, '}');
}

static void write_plain_entry(const struct reconstruction_json *reply, size_t index)
{
	json_writer_object(reply->json, NULL);
	write_url(reply, index, index + 1);
	write_range(reply, index, "range", "url_range");
	json_writer_end(reply->json, '}');
}
