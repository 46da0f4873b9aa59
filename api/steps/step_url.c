#include "api/steps/step_url.h"

#include <inttypes.h>
#include <string.h>

#include "api/auth/shared_url.h"
#include "base/encode.h"

enum { YEAR_S = 365 * 24 * 60 * 60, DIGEST_TEXT_BYTES = SHARED_URL_DIGEST_CHARACTERS + 1 };

/* What all URLs of one reply share. */
struct terms {
	struct exchange *exchange;
	/* without object and digest; both are for replies with shared URLs */
	struct shared_url url;
	struct shared_url_key key;
};

static int terms_init(struct terms *terms, struct exchange *exchange, struct error *err);
static void complete_form(const struct terms *terms, struct step_form *form);
static struct span complete(const struct terms *terms, const struct step_object *object);
static int terms_end(struct terms *terms, struct error *err);

int step_url_complete_step(struct exchange *exchange, struct step_message *step, struct error *err)
{
	struct terms terms;
	if (terms_init(&terms, exchange, err) != 0)
		return -1;
	for (size_t i = 0; i < step->form_count; i++)
		complete_form(&terms, &step->forms[i]);
	return terms_end(&terms, err);
}

int step_url_complete_path(struct exchange *exchange, struct path_message *path, struct error *err)
{
	struct terms terms;
	if (terms_init(&terms, exchange, err) != 0)
		return -1;
	for (size_t i = 0; i < path->link_count; i++)
		complete_form(&terms, &path->links[i].form);
	return terms_end(&terms, err);
}

int step_url_check(struct exchange *exchange, const struct object *object, struct error *err)
{
	struct span given;
	char digest[DIGEST_TEXT_BYTES];
	if (!exchange_query(exchange, "v", &given) ||
		(object->sequence == 0 && !object->has_digest))
		return 0;
	encode_hex(span_of(object->digest.bytes, sizeof(object->digest.bytes)), digest);
	if (object->has_digest && span_equal_text(given, digest))
		return 0;
	exchange_add_header(exchange, "Cache-Control", "no-store");
	return error_set(err, ERROR_NO_KEY,
		"The object has other bytes than the v of this URL names: it was made anew. Ask for the step or the path again.");
}

/* A reply to a shared URL that is not valid, which the caller's key has opened, must not stay in a
 * cache: it would serve the URL on. So would a shared cache the URL without its signature, where
 * URLs have one. A URL without `v` may mean other bytes one day: no shared cache may keep those. */
const char *step_url_cache_control(struct exchange *exchange)
{
	const struct api_context *const context = exchange->context;
	const int64_t now_s = context->clock->wall_ms(context->clock) / 1000;
	const bool is_shared = exchange->shared_until_s != 0;
	struct span digest;
	int64_t age_s = YEAR_S;
	if (shared_url_is_present(exchange) && !is_shared)
		return "private, no-store";
	if (is_shared && exchange->shared_until_s - now_s < age_s)
		age_s = exchange->shared_until_s > now_s ? exchange->shared_until_s - now_s : 0;
	const bool is_public = context->shared_cache && (is_shared || !context->shared_urls) &&
		exchange_query(exchange, "v", &digest);
	const char *const text = arena_format(exchange->arena, "%s, max-age=%" PRId64 ", immutable",
		is_public ? "public" : "private", age_s);
	return text != NULL ? text : "private, no-store";
}

static int terms_init(struct terms *terms, struct exchange *exchange, struct error *err)
{
	const struct api_context *const context = exchange->context;
	struct bucket bucket;
	ASSERT(exchange->parameter_count >= 2);
	*terms = (struct terms){.exchange = exchange};
	if (!context->shared_urls)
		return 0;
	/* The route of the root key has no id. */
	if (bucket_find(context->store, exchange_bucket(exchange), exchange->arena, &bucket, err) !=
		0)
		return -1;
	shared_url_key_init(&terms->key, context);
	terms->url = (struct shared_url){.bucket = bucket_ref_of(&bucket),
		.run = exchange->parameters[1],
		.expires_s = shared_url_expiry_s(context->clock->wall_ms(context->clock))};
	return 0;
}

static void complete_form(const struct terms *terms, struct step_form *form)
{
	for (size_t i = 0; i < form->object_count; i++)
		form->objects[i].url = complete(terms, &form->objects[i]);
}

static struct span complete(const struct terms *terms, const struct step_object *object)
{
	struct exchange *const exchange = terms->exchange;
	struct shared_url url = terms->url;
	char digest[DIGEST_TEXT_BYTES];
	char sign[SHARED_URL_SIGN_TEXT_BYTES];
	const int len = (int)object->url.len;
	const char *const path = (const char *)object->url.data;
	encode_hex(span_of(object->digest.bytes, sizeof(object->digest.bytes)), digest);
	if (object->url.len == 0) /* the arena ran out before */
		return object->url;
	if (!exchange->context->shared_urls)
		return span_text(arena_format(exchange->arena, "%.*s?v=%s", len, path, digest));
	url.object = object->url;
	url.digest = span_text(digest);
	shared_url_sign(&terms->key, &url, sign);
	return span_text(arena_format(exchange->arena, "%.*s?v=%s&expires=%" PRId64 "&sign=%s", len,
		path, digest, url.expires_s, sign));
}

static int terms_end(struct terms *terms, struct error *err)
{
	explicit_bzero(&terms->key, sizeof(terms->key));
	return arena_overflowed(terms->exchange->arena)
		? error_set(err, ERROR_NO_MEMORY, "The memory of a request ran out.")
		: 0;
}
