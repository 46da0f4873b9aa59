/* Any bytes as a server's XML answer, as the command line reads it: a listing or a refusal within
 * the caps. The first byte chooses how much memory the answer may take. */
#include "base/format/xml_reader.h"
#include "client/remote/listing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_STEP_BYTES = 4096 };

static void check_text(struct span text)
{
	ASSERT(text.len <= XML_READER_TEXT_MAX_BYTES && (text.len == 0 || text.data != NULL));
}

static void check_listing(const struct listing *listing)
{
	ASSERT(listing->count <= LISTING_ENTRIES_MAX);
	for (size_t i = 0; i < listing->count; i++) {
		check_text(listing->entries[i].name);
		check_text(listing->entries[i].modified);
		check_text(listing->entries[i].etag);
	}
	check_text(listing->next);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	const struct span xml = span_of(data + 1, size - 1);
	struct arena *const arena = arena_new((size_t)(data[0] + 1) * ARENA_STEP_BYTES);
	struct listing listing;
	struct listing_error refusal;
	struct error err = {0};
	if (listing_parse(xml, arena, &listing, &err) == 0)
		check_listing(&listing);
	else
		ASSERT(err.kind == ERROR_UPSTREAM || err.kind == ERROR_TOO_LARGE);
	if (listing_parse_error(xml, arena, &refusal)) {
		ASSERT(refusal.code.len > 0);
		check_text(refusal.code);
		check_text(refusal.message);
	}
	arena_free(arena);
	return 0;
}
