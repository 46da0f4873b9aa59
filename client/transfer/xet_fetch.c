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

struct place {         /* of a term on its way */
	uint64_t next; /* offset in the file of its next chunk */
	uint64_t end;
	const struct fetch_entry *by; /* the one request that brings it, of several that could */
};

struct range {
	const struct xet_fetch *fetch;
	const struct xet_remote *xet;
	uint64_t from, to;
	struct fetch_plan plan;
	struct place *places; /* of each term */
	/* numbers of the terms that the request on its way serves; room for all */
	size_t *served;
	struct map_chunk *chunks;
	size_t count, capacity;
};

/* One request for records: which terms they serve, and what is next. */
struct delivery {
	struct body_sink sink;
	struct range *range;
	const struct fetch_entry *what;
	const size_t *terms; /* numbers of those it serves */
	size_t term_count;
	struct xorb_parse *parse;
	uint32_t index; /* of the next record in the xorb */
	uint64_t received;
};

static int fetch_once(struct range *range, struct error *err);
static bool adds_up(const struct range *range);
static void begin_places(struct range *range);
static const struct fetch_entry *find_fetch(
	const struct fetch_plan *plan, const struct fetch_term *term);
static int deliver(struct range *range, const struct fetch_entry *what, struct error *err);
static int try_delivery(
	struct range *range, const struct fetch_entry *what, int *out_status, struct error *err);
static enum sink_result delivery_write(
	struct body_sink *sink, struct span bytes, struct error *err);
static void list_terms(struct range *range, struct delivery *delivery);
static int take_record(void *taker, const struct xorb_record *record, struct error *err);
static int serve_term(
	struct range *range, size_t term, const struct xorb_record *record, struct error *err);
static int place_record(
	struct range *range, uint64_t offset, const struct xorb_record *record, struct error *err);
static void note(struct range *range, uint64_t offset, const struct xorb_record *record);
static uint64_t counted_bytes(const struct range *range, const struct map_chunk *chunk);
static int finish_delivery(const struct delivery *delivery, struct error *err);

int xet_fetch_range(const struct xet_fetch *fetch, const struct xet_remote *xet, uint64_t from,
	uint64_t to, struct map_chunk **out, size_t *out_count, struct error *err)
{
	struct range range = {.fetch = fetch, .xet = xet, .from = from, .to = to};
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
		return error_set(err, ERROR_DENIED, "the server refuses its own addresses of %s",
			fetch->path);
	return result;
}

static int fetch_once(struct range *range, struct error *err)
{
	const struct xet_fetch *const fetch = range->fetch;
	range->count = 0;
	if (xet_remote_reconstruct(
		    range->xet, &fetch->file, range->from, range->to, &range->plan, err) != 0)
		return -1;
	if (range->plan.skip > range->from || !adds_up(range))
		return error_set(err, ERROR_UPSTREAM,
			"the server's way to make %s is not %" PRIu64 " bytes long", fetch->path,
			range->to - range->from);
	range->places = memory_new_array(range->plan.term_count + 1, sizeof *range->places);
	range->served = memory_new_array(range->plan.term_count + 1, sizeof *range->served);
	begin_places(range);
	int result = 0;
	for (size_t i = 0; i < range->plan.fetch_count && result == 0; i++)
		result = deliver(range, &range->plan.fetches[i], err);
	return result;
}

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

/* Bytes may be spoilt on the way: what does not parse comes again a few times. 1 when the address
 * is no longer good and the server has to be asked for another. */
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
				"what the server sends for %s is damaged: %.200s",
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
	struct delivery delivery = {.sink = {.write = delivery_write},
		.range = range,
		.what = what,
		.index = what->first};
	char header[HEADER_BYTES];
	struct http_response response = {0};
	const size_t count = range->count;
	snprintf(header, sizeof header, "Range: bytes=%" PRIu64 "-%" PRIu64, what->from, what->to);
	const char *const headers[] = {header, NULL};
	const struct http_request request = {.method = "GET",
		.target = what->target,
		.headers = headers,
		.bearer = "",
		.sink = &delivery.sink};
	list_terms(range, &delivery);
	delivery.parse = xorb_parse_new(take_record, &delivery, true);
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

static enum sink_result delivery_write(struct body_sink *sink, struct span bytes, struct error *err)
{
	struct delivery *const delivery = (struct delivery *)sink;
	const uint64_t wanted = delivery->what->to - delivery->what->from + 1;
	delivery->received += bytes.len;
	if (delivery->received > wanted) {
		error_set(err, ERROR_CORRUPT, "the server sends more of %s than was asked for",
			delivery->range->fetch->path);
		return SINK_FAILED;
	}
	return xorb_parse_push(delivery->parse, bytes, err) == 0 ? SINK_TAKEN : SINK_FAILED;
}

/* A request that is repeated begins anew: the terms that it serves do too. */
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

static int take_record(void *taker, const struct xorb_record *record, struct error *err)
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

/* No byte outside of the range is written, whatever the server sends: others answer for those. A
 * chunk that crosses an end is noted by the ranges on both sides, so that the caller sees whether
 * they mean the same one. */
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
	note(range, offset, record);
	return file_write_at(
		range->fetch->files, range->fetch->fd, own, (off_t)first, range->fetch->path, err);
}

static void note(struct range *range, uint64_t offset, const struct xorb_record *record)
{
	if (range->count == range->capacity) {
		range->capacity = range->capacity == 0 ? 64 : 2 * range->capacity;
		range->chunks = memory_grow(range->chunks, range->capacity, sizeof *range->chunks);
	}
	struct map_chunk *const chunk = &range->chunks[range->count++];
	*chunk = (struct map_chunk){
		.offset = offset, .size = (uint32_t)record->content.len, .id = record->id};
	progress_add(range->fetch->progress, counted_bytes(range, chunk));
}

/* Content counts for the range that it begins in. */
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
