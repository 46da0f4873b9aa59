/* The server's reconstruction of a range has terms (places in the file) and requests for records.
 * Each term is served by the first request that covers it; one request can serve many terms. The
 * records of an answer are parsed as they arrive, and each is written to its place in every term
 * that contains it. The server's numbers are checked before they are used, and bytes outside of the
 * range are never written. Three kinds of repetition: a damaged answer is requested again, up to
 * DAMAGED_MOST times in all; a lost one follows the retry rule; for refused addresses (403) the
 * reconstruction is requested again, up to ASKED_MOST times in all. */
#include "client/transfer/xet_fetch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/memory.h"
#include "chunker/xorb_parse.h"

enum {
	HEADER_BYTES = 80,
	ASKED_MOST = 4,
	DAMAGED_MOST = 3,
	OK = 200,
	PARTIAL = 206,
	FORBIDDEN = 403
};

struct place {         /* of a term in the file */
	uint64_t next; /* the offset of its next chunk */
	uint64_t end;
	const struct fetch_entry *by; /* the request that serves it */
};

struct range {
	const struct xet_fetch *fetch;
	const struct xet_remote *xet;
	uint64_t from, to;
	struct fetch_plan plan;
	struct place *places;     /* one for each term */
	size_t *served;           /* numbers of the terms that the current request serves */
	struct map_chunk *chunks; /* written so far */
	size_t count, capacity;
};

/* One request for records. */
struct delivery {
	struct body_sink sink; /* must be first: xet_fetch_sink_write casts it back */
	struct range *range;
	const struct fetch_entry *what;
	const size_t *terms; /* numbers of the terms that it serves */
	size_t term_count;
	struct xorb_parse *parse;
	uint32_t index;    /* of the next record in the xorb */
	uint64_t received; /* bytes */
};

static int fetch_once(struct range *range, struct error *err);
static bool adds_up(const struct range *range);
static void begin_places(struct range *range);
static const struct fetch_entry *find_fetch(
	const struct fetch_plan *plan, const struct fetch_term *term);
static int deliver(struct range *range, const struct fetch_entry *what, struct error *err);
static int try_delivery(
	struct range *range, const struct fetch_entry *what, int *out_status, struct error *err);
static enum sink_result xet_fetch_sink_write(
	struct body_sink *sink, struct span bytes, struct error *err);
static void list_terms(struct range *range, struct delivery *delivery);
static int xet_fetch_take_record(void *taker, const struct xorb_record *record, struct error *err);
static int serve_term(
	struct range *range, size_t term, const struct xorb_record *record, struct error *err);
static int place_record(
	struct range *range, uint64_t offset, const struct xorb_record *record, struct error *err);
static void note_chunk(struct range *range, uint64_t offset, const struct xorb_record *record);
static uint64_t counted_bytes(const struct range *range, const struct map_chunk *chunk);
static int finish_delivery(const struct delivery *delivery, struct error *err);

int xet_fetch_range(const struct xet_fetch *fetch, const struct xet_remote *xet,
	const struct map_gap *gap, struct map_chunk **out, size_t *out_count, struct error *err)
{
	ASSERT(gap->from < gap->to && gap->to <= fetch->size && fetch->fd >= 0);
	struct range range = {.fetch = fetch, .xet = xet, .from = gap->from, .to = gap->to};
	int result = 1;
	for (int asked = 0; result > 0 && asked < ASKED_MOST; asked++) {
		result = fetch_once(&range, err);
		fetch_plan_release(&range.plan);
		free(range.places);
		free(range.served);
		range.places = NULL;
		range.served = NULL;
	}
	*out = range.chunks;
	*out_count = result == 0 ? range.count : 0;
	if (result > 0)
		return error_set(err, ERROR_DENIED,
			"the server refuses the addresses that it gave for %s", fetch->path);
	return result;
}

static int fetch_once(struct range *range, struct error *err)
{
	const struct xet_fetch *const fetch = range->fetch;
	ASSERT(range->places == NULL && range->served == NULL);
	range->count = 0;
	if (xet_remote_reconstruct(
		    range->xet, &fetch->file, range->from, range->to, &range->plan, err) != 0)
		return -1;
	if (range->plan.skip > range->from || !adds_up(range))
		return error_set(err, ERROR_UPSTREAM,
			"the server's reconstruction of %s does not have the requested %" PRIu64
			" bytes",
			fetch->path, range->to - range->from);
	range->places = memory_new_array(range->plan.term_count + 1, sizeof(*range->places));
	range->served = memory_new_array(range->plan.term_count + 1, sizeof(*range->served));
	begin_places(range);
	int result = 0;
	for (size_t i = 0; i < range->plan.fetch_count && result == 0; i++)
		result = deliver(range, &range->plan.fetches[i], err);
	return result;
}

/* Whether the terms cover the range and stay within the file. */
static bool adds_up(const struct range *range)
{
	uint64_t end = range->from - range->plan.skip;
	for (size_t i = 0; i < range->plan.term_count; i++) {
		if (range->plan.terms[i].bytes > range->fetch->size - end)
			return false;
		end += range->plan.terms[i].bytes;
	}
	return end >= range->to;
}

static void begin_places(struct range *range)
{
	uint64_t at = range->from - range->plan.skip;
	for (size_t i = 0; i < range->plan.term_count; i++) {
		const struct fetch_term *const term = &range->plan.terms[i];
		range->places[i] = (struct place){
			.next = at, .end = at + term->bytes, .by = find_fetch(&range->plan, term)};
		at += term->bytes;
	}
}

static const struct fetch_entry *find_fetch(
	const struct fetch_plan *plan, const struct fetch_term *term)
{
	size_t i = 0;
	while (i < plan->fetch_count && !fetch_plan_covers(&plan->fetches[i], term))
		i++;
	return i < plan->fetch_count ? &plan->fetches[i] : NULL;
}

/* Makes a request until it succeeds. Bytes may be damaged on the way, so an answer that cannot be
 * parsed is requested again a few times. 1 when the address has expired and the server must be
 * asked for another. */
static int deliver(struct range *range, const struct fetch_entry *what, struct error *err)
{
	struct retry retry = remote_retry(range->xet->remote);
	struct error failure = {0};
	int damaged = 0;
	int status = 0;
	while (try_delivery(range, what, &status, &failure) != 0) {
		const bool is_damage = status == OK || status == PARTIAL;
		if (status == FORBIDDEN)
			return 1;
		if (is_damage && (failure.kind == ERROR_INVALID || failure.kind == ERROR_CORRUPT) &&
			++damaged < DAMAGED_MOST)
			continue;
		if (is_damage && failure.kind == ERROR_INVALID)
			return error_set(err, ERROR_CORRUPT,
				"the records that the server sends for %s are damaged: %.200s",
				range->fetch->path, failure.text);
		if (remote_again(range->xet->remote, &retry, &failure))
			continue;
		*err = failure;
		return -1;
	}
	return 0;
}

static int try_delivery(
	struct range *range, const struct fetch_entry *what, int *out_status, struct error *err)
{
	struct delivery delivery = {.sink = {.write = xet_fetch_sink_write},
		.range = range,
		.what = what,
		.index = what->first};
	char header[HEADER_BYTES];
	struct http_response response = {0};
	const size_t count = range->count;
	snprintf(header, sizeof(header), "Range: bytes=%" PRIu64 "-%" PRIu64, what->from, what->to);
	const char *const headers[] = {header, NULL};
	const struct http_request request = {.method = "GET",
		.target = what->target,
		.headers = headers,
		.bearer = "",
		.sink = &delivery.sink};
	list_terms(range, &delivery);
	delivery.parse = xorb_parse_new(xet_fetch_take_record, &delivery, true);
	int result = remote_try(range->xet->remote, &request, &response, err);
	*out_status = response.status;
	if (result == 0)
		result = finish_delivery(&delivery, err);
	atomic_fetch_add(&xet_access_traffic(range->xet->access)->received, delivery.received);
	if (result != 0) {
		for (size_t i = count; i < range->count; i++)
			progress_take_back(
				range->fetch->progress, counted_bytes(range, &range->chunks[i]));
		range->count = count;
	}
	xorb_parse_free(delivery.parse);
	http_response_release(&response);
	return result;
}

static enum sink_result xet_fetch_sink_write(
	struct body_sink *sink, struct span bytes, struct error *err)
{
	struct delivery *const delivery = (struct delivery *)sink;
	const uint64_t wanted = delivery->what->to - delivery->what->from + 1;
	delivery->received += bytes.len;
	if (delivery->received > wanted) {
		error_set(err, ERROR_CORRUPT,
			"the server sends more bytes of %s than were requested",
			delivery->range->fetch->path);
		return SINK_FAILED;
	}
	return xorb_parse_push(delivery->parse, bytes, err) == 0 ? SINK_TAKEN : SINK_FAILED;
}

/* Lists the terms that the request serves and starts each of them at its beginning, because the
 * request may be a repetition. */
static void list_terms(struct range *range, struct delivery *delivery)
{
	for (size_t i = 0; i < range->plan.term_count; i++) {
		if (range->places[i].by != delivery->what)
			continue;
		range->places[i].next = range->places[i].end - range->plan.terms[i].bytes;
		range->served[delivery->term_count++] = i;
	}
	delivery->terms = range->served;
}

static int xet_fetch_take_record(void *taker, const struct xorb_record *record, struct error *err)
{
	struct delivery *const delivery = taker;
	struct range *const range = delivery->range;
	const uint32_t index = delivery->index++;
	for (size_t i = 0; i < delivery->term_count; i++) {
		const struct fetch_term *const term = &range->plan.terms[delivery->terms[i]];
		if (index >= term->first && index < term->end &&
			serve_term(range, delivery->terms[i], record, err) != 0)
			return -1;
	}
	return 0;
}

static int serve_term(
	struct range *range, size_t term, const struct xorb_record *record, struct error *err)
{
	struct place *const place = &range->places[term];
	const uint64_t offset = place->next;
	if (place->end - offset < record->content.len)
		return error_set(err, ERROR_CORRUPT,
			"the server sends more for %s than it announced", range->fetch->path);
	place->next += record->content.len;
	return place_record(range, offset, record, err);
}

/* Writes the bytes of the record that are in the range. Other threads write the bytes outside of
 * it, so these are never written here, whatever the server sends. A chunk that crosses an end is
 * noted by the ranges on both sides, so that the caller can check that both have the same chunk. */
static int place_record(
	struct range *range, uint64_t offset, const struct xorb_record *record, struct error *err)
{
	const uint64_t end = offset + record->content.len;
	if (end <= range->from || offset >= range->to)
		return 0;
	const uint64_t first = offset < range->from ? range->from : offset;
	const uint64_t last = end > range->to ? range->to : end;
	const struct span own =
		span_slice(record->content, (size_t)(first - offset), (size_t)(last - offset));
	ASSERT(first <= last);
	note_chunk(range, offset, record);
	return file_write_at(
		range->fetch->files, range->fetch->fd, own, (off_t)first, range->fetch->path, err);
}

static void note_chunk(struct range *range, uint64_t offset, const struct xorb_record *record)
{
	range->chunks = memory_make_room(
		range->chunks, range->count, &range->capacity, sizeof(*range->chunks));
	struct map_chunk *const chunk = &range->chunks[range->count++];
	*chunk = (struct map_chunk){
		.offset = offset, .size = (uint32_t)record->content.len, .id = record->id};
	progress_add(range->fetch->progress, counted_bytes(range, chunk));
}

/* A chunk that crosses an end counts only in the range that it begins in. */
static uint64_t counted_bytes(const struct range *range, const struct map_chunk *chunk)
{
	return chunk->offset >= range->from ? chunk->size : 0;
}

static int finish_delivery(const struct delivery *delivery, struct error *err)
{
	const struct fetch_entry *const what = delivery->what;
	const struct range *const range = delivery->range;
	struct chunk_id ignored;
	if (xorb_parse_end(delivery->parse, &ignored, err) != 0)
		return -1;
	if (delivery->index != what->end)
		return error_set(err, ERROR_CORRUPT,
			"the server sends %u records for %s instead of %u",
			delivery->index - what->first, range->fetch->path, what->end - what->first);
	for (size_t i = 0; i < delivery->term_count; i++) {
		const struct place *const place = &range->places[delivery->terms[i]];
		if (place->next != place->end)
			return error_set(err, ERROR_CORRUPT,
				"the server sends less for %s than it announced",
				range->fetch->path);
	}
	return 0;
}
