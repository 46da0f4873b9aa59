#include "api/steps/handlers.h"

#include "api/steps/steps_request.h"
#include "base/format/json_node.h"
#include "storage/overview/fold_list.h"

enum {
	PAGE_FOLDS = 100,
	PAGE_MAX_FOLDS = 1000,
	BODY_MAX_BYTES = 512 * 1024 /* a fold takes some 200 bytes */
};

static void print_fold(const struct fold_note *fold, struct json_writer *writer);

enum next list_folds_begin(struct exchange *exchange)
{
	struct fold_scan scan = {.run = steps_request_run(exchange)};
	struct fold_list list;
	struct error err = {0};
	bool has_to;
	uint64_t limit;
	enum next next;
	if (!steps_request_number(exchange, "to", &has_to, &scan.to, &next) ||
		!steps_request_limit(exchange, PAGE_FOLDS, PAGE_MAX_FOLDS, &limit, &next))
		return next;
	scan.to = has_to ? scan.to : INT64_MAX;
	scan.limit = (size_t)limit;
	if (fold_list_read(exchange->context->store, &scan, exchange->arena, &list, &err) != 0)
		return exchange_fail(exchange, &err);
	struct buffer body;
	struct json_writer writer;
	buffer_init(&body, BODY_MAX_BYTES);
	json_writer_init(&writer, &body);
	json_writer_object(&writer, NULL);
	json_writer_array(&writer, "folds");
	for (size_t i = 0; i < list.count; i++)
		print_fold(&list.folds[i], &writer);
	json_writer_end(&writer, ']');
	if (list.has_next)
		json_writer_u64(&writer, "next", list.next);
	json_writer_end(&writer, '}');
	exchange_add_header(exchange, "Cache-Control", "no-store");
	return steps_request_reply_json(exchange, 200, &body);
}

static void print_fold(const struct fold_note *fold, struct json_writer *writer)
{
	json_writer_object(writer, NULL);
	json_writer_u64(writer, "from", fold->from);
	json_writer_u64(writer, "to", fold->to);
	json_writer_text(writer, "kind", span_text(fold->is_direct ? "direct" : "skip"));
	json_writer_text(writer, "format", fold->format);
	json_writer_u64(writer, "bytes", fold->bytes);
	json_writer_end(writer, '}');
}
