/* Any bytes as an XML request body: elements open and close in order, within the caps, and a whole
 * document closes all it opened. */
#include "base/format/xml_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct nesting {
	size_t depth;
	size_t closed;
	size_t refuse_after; /* elements closed until the event itself fails */
};

static int on_open(void *owner, size_t depth, struct span name, struct error *err)
{
	struct nesting *const nesting = owner;
	(void)name;
	(void)err;
	ASSERT(depth == nesting->depth + 1 && depth <= XML_READER_DEPTH_MAX);
	nesting->depth = depth;
	return 0;
}

static int on_close(
	void *owner, size_t depth, struct span name, struct span text, struct error *err)
{
	struct nesting *const nesting = owner;
	(void)name;
	ASSERT(depth == nesting->depth && text.len <= XML_READER_TEXT_MAX_BYTES);
	nesting->depth--;
	return ++nesting->closed > nesting->refuse_after ? error_set(err, ERROR_INVALID, "enough")
							 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct xml_reader_events events = {.open = on_open, .close = on_close};
	if (size == 0)
		return 0;
	struct nesting nesting = {.refuse_after = data[0]};
	struct error err = {0};
	if (xml_reader_parse(span_of(data + 1, size - 1), &events, &nesting, &err) == 0)
		ASSERT(nesting.depth == 0 && nesting.closed > 0 &&
			nesting.closed <= nesting.refuse_after);
	else
		ASSERT(err.kind == ERROR_MALFORMED_XML ||
			(err.kind == ERROR_INVALID && nesting.closed == nesting.refuse_after + 1));
	return 0;
}
