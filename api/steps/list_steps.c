/* Manifests can be large, so a page ends after a number of steps or a number of bytes, whichever
 * comes first. Steps are read in slices of a few, so that little is read beyond the page. */
#include "api/steps/handlers.h"

#include "api/steps/step_url.h"
#include "api/steps/steps_request.h"
#include "base/format/json_node.h"

enum {
	PAGE_STEPS = 100,
	PAGE_MAX_STEPS = 1000,
	PAGE_FULL_BYTES = 2 * 1024 * 1024,
	SLICE_STEPS = 8,
	BODY_MAX_BYTES = 40 * 1024 * 1024
};

struct page {
	struct exchange *exchange;
	struct json_writer writer;
	struct buffer body;
	struct buffer one;
	uint64_t from;
	uint64_t left; /* steps that the page may still take */
	bool more;     /* there may be steps from `from` on */
};

static bool add_slice(struct page *page, struct error *err);
static enum next reply(struct page *page);

enum next list_steps_begin(struct exchange *exchange)
{
	struct page page = {.exchange = exchange};
	struct error err = {0};
	bool has_from;
	enum next next;
	if (!steps_request_number(exchange, "from", &has_from, &page.from, &next) ||
		!steps_request_limit(exchange, PAGE_STEPS, PAGE_MAX_STEPS, &page.left, &next))
		return next;
	buffer_init(&page.body, BODY_MAX_BYTES);
	buffer_init(&page.one, 2 * STEP_MESSAGE_MAX_BYTES);
	json_writer_init(&page.writer, &page.body);
	json_writer_object(&page.writer, NULL);
	json_writer_array(&page.writer, "steps");
	while (add_slice(&page, &err))
		;
	if (err.kind == ERROR_NONE)
		next = reply(&page);
	else
		next = exchange_fail(exchange, &err);
	buffer_release(&page.body);
	buffer_release(&page.one);
	return next;
}

/* Adds one slice. True while the page needs another. */
static bool add_slice(struct page *page, struct error *err)
{
	struct exchange *const exchange = page->exchange;
	const struct run_steps_scan scan = {.run = steps_request_run(exchange),
		.from = page->from,
		.limit = page->left < SLICE_STEPS ? page->left : SLICE_STEPS};
	struct step_message *steps = NULL;
	size_t count = 0;
	if (run_list_steps(exchange->context->store, &scan, exchange->arena, &steps, &count, err) !=
		0)
		return false;
	page->more = count == scan.limit;
	for (size_t i = 0; i < count; i++) {
		if (page->body.len >= PAGE_FULL_BYTES) {
			page->more = true;
			return false;
		}
		if (step_url_complete_step(exchange, &steps[i], err) != 0)
			return false;
		buffer_reset(&page->one);
		step_message_print(&steps[i], steps_request_name(exchange), false, &page->one);
		json_writer_raw(&page->writer, NULL, buffer_span(&page->one));
		page->from = steps[i].step + 1;
		page->left--;
	}
	return page->more && page->left > 0;
}

static enum next reply(struct page *page)
{
	json_writer_end(&page->writer, ']');
	if (page->more)
		json_writer_u64(&page->writer, "next", page->from);
	json_writer_end(&page->writer, '}');
	return steps_request_reply_json(page->exchange, 200, &page->body);
}
