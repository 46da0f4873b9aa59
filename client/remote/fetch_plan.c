/* The answer comes from outside, so every member is read by a function that returns false for a
 * missing, mistyped or impossible value; the caller then refuses the answer as a whole. The last
 * step checks that some fetch covers each term. It compares every term with every fetch, because
 * real answers are small; FETCH_PLAN_PAIRS_MAX bounds the work for hostile ones. */
#include "client/remote/fetch_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/format/json_node.h"
#include "base/memory.h"
#include "chunker/xorb_record.h"
#include "client/remote/remote_json.h"

enum { URL_MAX_BYTES = 8192 };

static bool read_all(struct fetch_plan *out, const struct json_node *root);
static bool read_term(const struct json_node *node, struct fetch_term *out);
static bool read_chunks(const struct json_node *node, uint32_t *out_first, uint32_t *out_end);
static bool read_pair(const struct json_node *node, uint64_t *out_start, uint64_t *out_end);
static bool read_xorb(struct fetch_plan *out, struct span name, const struct json_node *entries);
static bool read_fetch(struct fetch_plan *out, const struct chunk_id *xorb,
	const struct json_node *url, const struct json_node *range);
static bool has_possible_size(const struct fetch_entry *fetch);
static char *read_target(const struct json_node *node);
static bool is_covered(const struct fetch_plan *plan, const struct fetch_term *term);

const char *fetch_plan_target(const char *url)
{
	const char *const host = strstr(url, "://");
	return host == NULL ? NULL : strchr(host + 3, '/');
}

bool fetch_plan_covers(const struct fetch_entry *fetch, const struct fetch_term *term)
{
	return fetch->first <= term->first && term->end <= fetch->end &&
		chunk_id_equal(&fetch->xorb, &term->xorb);
}

int fetch_plan_parse(struct span answer, struct fetch_plan *out, struct error *err)
{
	struct json_node *const root =
		remote_json_parse(answer, "the server's reconstruction", err);
	*out = (struct fetch_plan){0};
	if (root == NULL)
		return -1;
	const bool good = read_all(out, root);
	json_node_free(root);
	if (good)
		return 0;
	fetch_plan_release(out);
	return error_set(err, ERROR_UPSTREAM, "the server's reconstruction of a file is malformed");
}

void fetch_plan_release(struct fetch_plan *plan)
{
	for (size_t i = 0; i < plan->fetch_count; i++)
		free(plan->fetches[i].target);
	free(plan->fetches);
	free(plan->terms);
	*plan = (struct fetch_plan){0};
}

static bool read_all(struct fetch_plan *out, const struct json_node *root)
{
	const struct json_node *const terms = json_node_member(root, "terms");
	const struct json_node *const xorbs = json_node_member(root, "xorbs");
	struct span name;
	const struct json_node *entries;
	void *cursor = NULL;
	if (!json_node_u64(json_node_member(root, "offset_into_first_range"), &out->skip) ||
		!json_node_is_array(terms) || !json_node_is_object(xorbs) ||
		json_node_count(terms) > FETCH_PLAN_TERMS_MAX)
		return false;
	out->terms = memory_new_array(json_node_count(terms) + 1, sizeof(*out->terms));
	for (; out->term_count < json_node_count(terms); out->term_count++)
		if (!read_term(json_node_at(terms, out->term_count), &out->terms[out->term_count]))
			return false;
	while (json_node_each(xorbs, &cursor, &name, &entries))
		if (!read_xorb(out, name, entries))
			return false;
	if (out->term_count * out->fetch_count > FETCH_PLAN_PAIRS_MAX)
		return false;
	for (size_t i = 0; i < out->term_count; i++)
		if (!is_covered(out, &out->terms[i]))
			return false;
	return true;
}

static bool read_term(const struct json_node *node, struct fetch_term *out)
{
	struct span hash;
	return json_node_text(json_node_member(node, "hash"), &hash) &&
		chunk_id_parse(hash, &out->xorb) &&
		json_node_u64(json_node_member(node, "unpacked_length"), &out->bytes) &&
		read_chunks(json_node_member(node, "range"), &out->first, &out->end) &&
		out->bytes >= out->end - out->first;
}

static bool read_chunks(const struct json_node *node, uint32_t *out_first, uint32_t *out_end)
{
	uint64_t first;
	uint64_t end;
	if (!read_pair(node, &first, &end) || first >= end || end > UINT32_MAX)
		return false;
	*out_first = (uint32_t)first;
	*out_end = (uint32_t)end;
	return true;
}

static bool read_pair(const struct json_node *node, uint64_t *out_start, uint64_t *out_end)
{
	return json_node_u64(json_node_member(node, "start"), out_start) &&
		json_node_u64(json_node_member(node, "end"), out_end);
}

static bool read_xorb(struct fetch_plan *out, struct span name, const struct json_node *entries)
{
	struct chunk_id xorb;
	if (!chunk_id_parse(name, &xorb))
		return false;
	for (size_t i = 0; i < json_node_count(entries); i++) {
		const struct json_node *const entry = json_node_at(entries, i);
		const struct json_node *const ranges = json_node_member(entry, "ranges");
		for (size_t k = 0; k < json_node_count(ranges); k++)
			if (!read_fetch(out, &xorb, json_node_member(entry, "url"),
				    json_node_at(ranges, k)))
				return false;
	}
	return true;
}

static bool read_fetch(struct fetch_plan *out, const struct chunk_id *xorb,
	const struct json_node *url, const struct json_node *range)
{
	struct fetch_entry fetch = {.xorb = *xorb};
	if (!read_chunks(json_node_member(range, "chunks"), &fetch.first, &fetch.end) ||
		!read_pair(json_node_member(range, "bytes"), &fetch.from, &fetch.to) ||
		!has_possible_size(&fetch) || out->fetch_count == FETCH_PLAN_FETCHES_MAX)
		return false;
	fetch.target = read_target(url);
	if (fetch.target == NULL)
		return false;
	out->fetches = memory_grow(out->fetches, out->fetch_count + 1, sizeof(*out->fetches));
	out->fetches[out->fetch_count++] = fetch;
	return true;
}

/* Whether so many chunks can have so many bytes. This bounds the size of the download. */
static bool has_possible_size(const struct fetch_entry *fetch)
{
	return fetch->from <= fetch->to &&
		fetch->to - fetch->from < (uint64_t)(fetch->end - fetch->first) *
			(XORB_RECORD_HEADER_BYTES + XORB_STORED_MAX_BYTES);
}

static char *read_target(const struct json_node *node)
{
	struct span url;
	if (!json_node_text(node, &url) || url.len > URL_MAX_BYTES || span_find(url, 0) >= 0)
		return NULL;
	char *const text = memory_new(url.len + 1);
	memcpy(text, url.data, url.len);
	const char *const target = fetch_plan_target(text);
	char *const copy = target == NULL ? NULL : memory_copy_text(target);
	free(text);
	return copy;
}

static bool is_covered(const struct fetch_plan *plan, const struct fetch_term *term)
{
	for (size_t i = 0; i < plan->fetch_count; i++)
		if (fetch_plan_covers(&plan->fetches[i], term))
			return true;
	return false;
}
