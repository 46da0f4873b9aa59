#include "api/auth/signing_key.h"

#include <string.h>

#include "base/buffer.h"

static struct signing_key_slot *slot_of(
	struct signing_key_cache *cache, const struct signing_key_slot *wanted);
static bool is_same(const struct signing_key_slot *slot, const struct signing_key_slot *wanted);

void signing_key_derive(
	struct span secret, struct span date, struct span region, uint8_t out[SHA256_BYTES])
{
	const struct span links[] = {date, region, span_text("s3"), span_text("aws4_request")};
	struct buffer start;
	uint8_t next[SHA256_BYTES];
	buffer_init(&start, secret.len + 4);
	buffer_add_text(&start, "AWS4");
	buffer_add_span(&start, secret);
	hmac_sha256(buffer_span(&start), links[0], out);
	for (size_t i = 1; i < sizeof(links) / sizeof(links[0]); i++) {
		hmac_sha256(span_of(out, SHA256_BYTES), links[i], next);
		memcpy(out, next, SHA256_BYTES);
	}
	explicit_bzero(next, sizeof(next));
	explicit_bzero(start.data, start.len);
	buffer_release(&start);
}

void signing_key_find(struct signing_key_cache *cache, size_t owner, struct span secret,
	struct span date, struct span region, uint8_t out[SHA256_BYTES])
{
	ASSERT(owner > 0);
	struct signing_key_slot wanted = {.owner = owner, .region_len = (uint8_t)region.len};
	if (date.len != sizeof(wanted.date) || region.len > sizeof(wanted.region)) {
		signing_key_derive(secret, date, region, out);
		return;
	}
	memcpy(wanted.date, date.data, date.len);
	memcpy(wanted.region, region.data, region.len);
	struct signing_key_slot *const slot = slot_of(cache, &wanted);
	if (!is_same(slot, &wanted)) {
		signing_key_derive(secret, date, region, wanted.key);
		*slot = wanted;
		explicit_bzero(wanted.key, sizeof(wanted.key));
	}
	memcpy(out, slot->key, sizeof(slot->key));
}

void signing_key_wipe(struct signing_key_cache *cache)
{
	explicit_bzero(cache, sizeof(*cache));
}

static struct signing_key_slot *slot_of(
	struct signing_key_cache *cache, const struct signing_key_slot *wanted)
{
	/* FNV-1a, because number, day and region are few bytes. A collision costs only one more
	 * derivation. */
	const uint8_t *const bytes = wanted->date;
	uint32_t hash = 2166136261u ^ (uint32_t)wanted->owner * 2654435761u;
	for (size_t i = 0; i < sizeof(wanted->date); i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	for (size_t i = 0; i < wanted->region_len; i++)
		hash = (hash ^ wanted->region[i]) * 16777619u;
	return &cache->slots[hash % SIGNING_KEY_SLOTS];
}

static bool is_same(const struct signing_key_slot *slot, const struct signing_key_slot *wanted)
{
	return slot->owner == wanted->owner && slot->region_len == wanted->region_len &&
		memcmp(slot->date, wanted->date, sizeof(slot->date)) == 0 &&
		memcmp(slot->region, wanted->region, slot->region_len) == 0;
}
