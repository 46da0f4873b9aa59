/* Whether the caller may know of a bucket is asked bucket by bucket, so a page has a limit on its
 * cost. Among many hidden buckets it may be short, or empty, with a link to the next page. */
#include "api/hub/handlers.h"

#include <string.h>

#include "api/auth/authorise.h"
#include "api/auth/keyring.h"
#include "api/exchange/json_reply.h"
#include "api/hub/hub_bucket.h"
#include "api/hub/hub_page.h"
#include "api/route/hub_name.h"
#include "base/digest/digest.h"
#include "base/digest/seal.h"
#include "base/encode.h"
#include "base/format/json_node.h"

/* A page must not block its reactor for long. A name costs 1, a question to the catalog about it
 * costs 5. */
enum { NAME_COST = 1, QUESTION_COST = 5, PAGE_MAX_COST = 2500 };
enum {
	CURSOR_MAX_BYTES = 512,
	PAGE_MAX_BUCKETS = 200,
	FETCHED = 200,
	BODY_MAX_BYTES = 4 * 1024 * 1024
};

struct listing {
	bool is_own; /* "me" */
	struct span namespace;
	struct span owner;  /* empty: any */
	struct span prefix; /* of names in the catalog */
	const char *search; /* "": any */
	struct span after;  /* the last name that was looked at */
	uint64_t limit;
	uint64_t shown;
	uint64_t cost;
	bool more;         /* there are names after `after` */
	bool is_storage;   /* a list of repositories */
	int64_t all_bytes; /* of the account, for a list of repositories */
};

static enum next list(struct exchange *exchange,
	int (*read)(struct exchange *, struct listing *, struct error *));
static int read_query(struct exchange *exchange, struct listing *out, struct error *err);
static int read_cursor(struct exchange *exchange, struct span *out_after, struct error *err);
static void cursor_key(const struct exchange *exchange, uint8_t out[SHA256_BYTES]);
static int show_all(struct exchange *exchange, struct listing *listing, struct json_writer *json,
	struct error *err);
static int fetch(struct exchange *exchange, const struct listing *listing, struct bucket **out,
	size_t *out_count, struct error *err);
static int fetch_granted(struct exchange *exchange, const struct listing *listing,
	struct bucket **out, size_t *out_count, struct error *err);
static struct span next_granted(const struct principal *principal, struct span after);
static int show(struct exchange *exchange, struct listing *listing, const struct bucket *bucket,
	struct json_writer *json, struct error *err);
static bool is_wanted(
	struct exchange *exchange, struct listing *listing, const struct bucket *bucket);
static bool holds_nocase(struct span text, const char *part);
static int add_link(struct exchange *exchange, struct span after, struct error *err);
static int read_owner(struct exchange *exchange, struct listing *out, struct error *err);
static int check_namespace(struct exchange *exchange, struct span namespace, struct error *err);
static int read_account(struct exchange *exchange, struct listing *out, struct error *err);

enum next hub_list_begin(struct exchange *exchange)
{
	return list(exchange, read_owner);
}

enum next hub_list_repositories_begin(struct exchange *exchange)
{
	return list(exchange, read_account);
}

static enum next list(
	struct exchange *exchange, int (*read)(struct exchange *, struct listing *, struct error *))
{
	struct listing listing = {0};
	struct error err = {0};
	struct buffer body;
	struct json_writer json;
	if (read(exchange, &listing, &err) != 0 || read_query(exchange, &listing, &err) != 0)
		return exchange_fail(exchange, &err);
	buffer_init(&body, BODY_MAX_BYTES);
	json_writer_init(&json, &body);
	json_writer_array(&json, NULL);
	if (show_all(exchange, &listing, &json, &err) != 0 ||
		(listing.more && add_link(exchange, listing.after, &err) != 0)) {
		buffer_release(&body);
		return exchange_fail(exchange, &err);
	}
	json_writer_end(&json, ']');
	return json_reply(exchange, 200, &body);
}

static int read_query(struct exchange *exchange, struct listing *out, struct error *err)
{
	struct span search = {NULL, 0};
	exchange_query(exchange, "search", &search);
	out->search = arena_text(exchange->arena, search);
	if (out->search == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The memory of the request ran out.");
	return read_cursor(exchange, &out->after, err) != 0
		? -1
		: hub_page_limit(exchange, PAGE_MAX_BUCKETS, PAGE_MAX_BUCKETS, &out->limit, err);
}

static int read_cursor(struct exchange *exchange, struct span *out_after, struct error *err)
{
	uint8_t key[SHA256_BYTES];
	uint8_t sealed[CURSOR_MAX_BYTES];
	size_t len;
	struct span text;
	struct buffer name;
	struct error broken = {0};
	if (!exchange_query(exchange, "cursor", &text))
		return 0;
	cursor_key(exchange, key);
	buffer_init(&name, CURSOR_MAX_BYTES);
	const bool good = decode_base64_url(text, sealed, sizeof(sealed), &len) &&
		seal_open(key, span_of(sealed, len), &name, &broken) == 0;
	if (good)
		*out_after = arena_copy(exchange->arena, buffer_span(&name));
	buffer_release(&name);
	return good ? 0
		    : error_set(err, ERROR_INVALID,
			      "The parameter cursor must be a value from a Link header.");
}

/* A page may end at a bucket that the caller may not know of, so a cursor is a sealed name. */
static void cursor_key(const struct exchange *exchange, uint8_t out[SHA256_BYTES])
{
	hmac_sha256(span_of(exchange->context->token_key, sizeof(exchange->context->token_key)),
		span_text("list cursor"), out);
}

static int show_all(struct exchange *exchange, struct listing *listing, struct json_writer *json,
	struct error *err)
{
	struct bucket *buckets;
	size_t count = FETCHED;
	listing->more = true;
	while (listing->more && listing->shown < listing->limit && listing->cost < PAGE_MAX_COST) {
		if (fetch(exchange, listing, &buckets, &count, err) != 0)
			return -1;
		size_t at = 0;
		ASSERT(count <= FETCHED);
		for (; at < count && listing->shown < listing->limit &&
			listing->cost < PAGE_MAX_COST;
			at++)
			if (show(exchange, listing, &buckets[at], json, err) != 0)
				return -1;
		listing->more = at < count || count == FETCHED;
	}
	return 0;
}

static int fetch(struct exchange *exchange, const struct listing *listing, struct bucket **out,
	size_t *out_count, struct error *err)
{
	const struct principal *const principal = exchange->principal;
	if (principal != NULL && principal->grant_count > 0 && !principal->is_root)
		return fetch_granted(exchange, listing, out, out_count, err);
	const struct bucket_list_params params = {.owner = listing->owner,
		.prefix = listing->prefix,
		.after = listing->after,
		.limit = FETCHED};
	return bucket_list(exchange->context->store, &params, exchange->arena, out, out_count, err);
}

static int fetch_granted(struct exchange *exchange, const struct listing *listing,
	struct bucket **out, size_t *out_count, struct error *err)
{
	struct bucket *const buckets = arena_take_array(exchange->arena, FETCHED, sizeof(*buckets));
	struct span name = listing->after;
	size_t count = 0;
	if (buckets == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The memory of the request ran out.");
	while (count < FETCHED && (name = next_granted(exchange->principal, name)).len > 0) {
		struct error missing = {0};
		if (bucket_find(exchange->context->store, bucket_named(name), exchange->arena,
			    &buckets[count], &missing) == 0)
			count++;
		else if (missing.kind != ERROR_NO_BUCKET) {
			*err = missing;
			return -1;
		}
	}
	*out = buckets;
	*out_count = count;
	return 0;
}

/* The lowest name above `after` that a grant names, or empty. Grants are few and not sorted. */
static struct span next_granted(const struct principal *principal, struct span after)
{
	struct span best = {NULL, 0};
	for (size_t i = 0; i < principal->grant_count; i++) {
		const struct span name = principal->grants[i].bucket;
		if (span_compare(name, after) > 0 &&
			(best.len == 0 || span_compare(name, best) < 0))
			best = name;
	}
	return best;
}

static int show(struct exchange *exchange, struct listing *listing, const struct bucket *bucket,
	struct json_writer *json, struct error *err)
{
	struct hub_bucket described;
	listing->after = bucket->name;
	listing->cost += NAME_COST;
	if (!is_wanted(exchange, listing, bucket))
		return 0;
	listing->cost += QUESTION_COST;
	if (hub_bucket_describe(exchange, bucket, &described, err) != 0)
		return -1;
	if (listing->is_storage)
		hub_bucket_print_storage(exchange, &described, listing->all_bytes, json);
	else
		hub_bucket_print(exchange, &described, json);
	listing->shown++;
	return 0;
}

static bool is_wanted(
	struct exchange *exchange, struct listing *listing, const struct bucket *bucket)
{
	const struct hub_name name =
		hub_name_of(exchange->context->default_namespace, bucket->name);
	if (!listing->is_own && !span_equal(name.namespace, listing->namespace))
		return false;
	if (!holds_nocase(name.name, listing->search))
		return false;
	if (hub_bucket_is_listed(exchange, bucket))
		return true;
	listing->cost += QUESTION_COST;
	return authorise_knows(exchange, bucket_ref_of(bucket));
}

static bool holds_nocase(struct span text, const char *part)
{
	const size_t len = strlen(part);
	for (size_t at = 0; at + len <= text.len; at++)
		if (span_equal_nocase(span_slice(text, at, len), part))
			return true;
	return false;
}

static int add_link(struct exchange *exchange, struct span after, struct error *err)
{
	uint8_t key[SHA256_BYTES];
	struct buffer sealed;
	struct buffer text;
	cursor_key(exchange, key);
	buffer_init(&sealed, CURSOR_MAX_BYTES);
	buffer_init(&text, 2 * CURSOR_MAX_BYTES);
	seal(key, after, &sealed);
	encode_base64_url(buffer_span(&sealed), &text);
	const int result = buffer_failed(&sealed)
		? error_set(err, ERROR_NO_MEMORY, "The memory of the request ran out.")
		: hub_page_link(exchange, buffer_span(&text), err);
	buffer_release(&sealed);
	buffer_release(&text);
	return result;
}

static int read_owner(struct exchange *exchange, struct listing *out, struct error *err)
{
	const struct principal *const principal = exchange->principal;
	ASSERT(exchange->parameter_count == 1);
	const struct span named = exchange->parameters[0];
	out->is_own = span_equal_text(named, "me");
	if (out->is_own && principal == NULL)
		return error_set(err, ERROR_NO_CREDENTIALS, "This request needs credentials.");
	if (out->is_own) {
		out->owner = principal->namespace;
		return 0;
	}
	out->namespace = named;
	if (!span_equal_text(named, exchange->context->default_namespace))
		out->prefix = span_text(arena_format(
			exchange->arena, "%.*s--", (int)named.len, (const char *)named.data));
	return check_namespace(exchange, named, err);
}

static int check_namespace(struct exchange *exchange, struct span namespace, struct error *err)
{
	const struct principal *const principal = exchange->principal;
	bool exists = span_equal_text(namespace, exchange->context->default_namespace) ||
		(principal != NULL && span_equal(namespace, principal->namespace));
	if (!exists && account_exists(exchange->context->store, namespace, &exists, err) != 0)
		return -1;
	return exists
		? 0
		: error_set(err, ERROR_NO_BUCKET, "There is no namespace '%.*s'.",
			  (int)span_slice(namespace, 0, 64).len, (const char *)namespace.data);
}

/* Only the account itself and root may see how much the account stores. */
static int read_account(struct exchange *exchange, struct listing *out, struct error *err)
{
	const struct principal *const principal = exchange->principal;
	ASSERT(principal != NULL); /* the route requires a key */
	out->owner = exchange->parameter_count > 0 ? exchange->parameters[0] : principal->namespace;
	out->is_own = true;
	out->is_storage = true;
	if (check_namespace(exchange, out->owner, err) != 0)
		return -1;
	if (!principal->is_root && !span_equal(out->owner, principal->namespace))
		return error_set(err, ERROR_DENIED,
			"You may not see what the account '%.*s' stores.",
			(int)span_slice(out->owner, 0, 64).len, (const char *)out->owner.data);
	if (principal->grant_count > 0 && !principal->is_root)
		return 0;
	return bucket_bytes_of(exchange->context->store, out->owner, &out->all_bytes, err);
}
