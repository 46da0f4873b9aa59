/* A scan finds changes in element order; a block has them class by class. The writer counts the
 * changes of each class and then puts each change to its place (a counting sort). The reader does
 * not sort back: it gives each class its own list of ranks, and the patch takes from the list of
 * the class of each element. */
#include "weights/codec/ulp_stream.h"

#include "weights/codec/gap_code.h"
#include "weights/codec/ulp_steps.h"
#include "weights/codec/varint.h"

static int malformed(const char *why, struct error *err);
static int read_parameters(struct span *rest, struct ulp_table *table, struct error *err);
static void first_places(const struct ulp_table *table, uint32_t places[ULP_CLASSES_MAX]);

size_t ulp_table_count(const struct ulp_table *table)
{
	size_t count = 0;
	for (unsigned class = 0; class < table->classes; class ++)
		count += table->counts[class];
	return count;
}

size_t ulp_table_write(const struct ulp_table *table, uint8_t into[ULP_TABLE_BYTES_MAX])
{
	uint8_t parameters[8 + BIT_STREAM_SLACK];
	struct bit_writer writer = {.at = parameters};
	size_t bytes = 0;
	ASSERT(table->classes > 0 && table->classes <= ULP_CLASSES_MAX);
	into[bytes++] = table->top;
	for (unsigned class = 0; class < table->classes; class ++) {
		bytes += varint_write(table->counts[class], into + bytes);
		if (table->counts[class] != 0)
			bit_writer_put(&writer, table->parameters[class], GAP_CODE_PARAMETER_BITS);
	}
	const size_t packed = (size_t)(bit_writer_end(&writer) - parameters);
	ASSERT(bytes + packed <= ULP_TABLE_BYTES_MAX);
	memcpy(into + bytes, parameters, packed);
	return bytes + packed;
}

int ulp_table_read(struct span *rest, uint64_t elements, struct ulp_table *table, struct error *err)
{
	uint64_t count = 0;
	if (rest->len == 0)
		return malformed("is missing", err);
	table->top = rest->data[0];
	*rest = span_slice(*rest, 1, rest->len);
	for (unsigned class = 0; class < table->classes; class ++) {
		table->parameters[class] = 0;
		if (!varint_read(rest, &table->counts[class]))
			return malformed("has a malformed count", err);
		count += table->counts[class];
	}
	if (count == 0 || count > elements)
		return error_set(err, ERROR_INVALID,
			"the header of a block of %llu elements says that %llu of them changed",
			(unsigned long long)elements, (unsigned long long)count);
	return read_parameters(rest, table, err);
}

void ulp_stream_arrange(
	const struct ulp_scan *scan, const struct ulp_view *view, struct ulp_stream *stream)
{
	struct ulp_table *const table = &stream->table;
	ASSERT(view->classes > 0 && view->classes <= ULP_CLASSES_MAX);
	uint32_t places[ULP_CLASSES_MAX] = {0};
	*table = (struct ulp_table){.top = view->top, .classes = view->classes};
	for (size_t i = 0; i < scan->count; i++)
		table->counts[scan->keys[i] >> ULP_SCAN_GAP_BITS]++;
	for (unsigned class = 0; class < view->classes; class ++)
		if (table->counts[class] != 0)
			table->parameters[class] = (uint8_t)gap_code_parameter(
				scan->from[class] - table->counts[class], table->counts[class]);
	first_places(table, places);
	for (size_t i = 0; i < scan->count; i++) {
		const uint32_t place = places[scan->keys[i] >> ULP_SCAN_GAP_BITS]++;
		stream->gaps[place] = scan->keys[i] & ((1u << ULP_SCAN_GAP_BITS) - 1);
		stream->steps[place] = scan->steps[i];
	}
}

size_t ulp_stream_write(const struct ulp_stream *stream, uint32_t *places, uint8_t *into)
{
	struct bit_writer writer = {.at = into};
	const uint32_t *gaps = stream->gaps;
	for (unsigned class = stream->table.classes; class -- > 0;
		gaps += stream->table.counts[class])
		gap_code_write(&writer, gaps, stream->table.counts[class],
			stream->table.parameters[class]);
	ulp_steps_write(&writer, stream->steps, ulp_table_count(&stream->table), places);
	return (size_t)(bit_writer_end(&writer) - into);
}

int ulp_stream_read(const struct ulp_table *table, struct span payload, uint32_t elements,
	const struct ulp_lists *lists, struct ulp_patch *out_patch, struct error *err)
{
	static const uint32_t no_ranks = UINT32_MAX;
	struct bit_reader reader = bit_reader_open(payload);
	uint32_t *place = lists->ranks;
	const int16_t *step = lists->steps;
	*out_patch = (struct ulp_patch){.seen = {0}};
	for (unsigned class = ULP_SCAN_LANES; class -- > 0;) {
		const uint32_t count = class < table->classes ? table->counts[class] : 0;
		out_patch->ranks[class] = count > 0 ? place : &no_ranks;
		out_patch->steps[class] = step;
		if (count == 0)
			continue;
		if (!gap_code_read(&reader, table->parameters[class], count, elements, place))
			return error_set(
				err, ERROR_INVALID, "a block changes an element beyond its end");
		place += count;
		step += count;
		*place++ = UINT32_MAX;
	}
	if (!ulp_steps_read(&reader, (size_t)(step - lists->steps), lists->steps))
		return error_set(err, ERROR_INVALID, "a block's steps are malformed");
	if (bit_reader_bytes(&reader) != payload.len)
		return error_set(err, ERROR_INVALID,
			"the payload of a block has %zu bytes, its codes take %llu", payload.len,
			(unsigned long long)bit_reader_bytes(&reader));
	return 0;
}

static int malformed(const char *why, struct error *err)
{
	return error_set(err, ERROR_INVALID, "a block's table of classes %s", why);
}

static int read_parameters(struct span *rest, struct ulp_table *table, struct error *err)
{
	struct bit_reader reader = bit_reader_open(*rest);
	for (unsigned class = 0; class < table->classes; class ++) {
		if (table->counts[class] == 0)
			continue;
		table->parameters[class] =
			(uint8_t)bit_reader_take(&reader, GAP_CODE_PARAMETER_BITS);
		if (table->parameters[class] > GAP_CODE_PARAMETER_MAX)
			return malformed(
				"has a Rice parameter over 20", err); /* GAP_CODE_PARAMETER_MAX */
	}
	const uint64_t bytes = bit_reader_bytes(&reader);
	if (bytes > rest->len)
		return malformed("is cut off", err);
	if (bit_reader_take(&reader, (unsigned)(8 * bytes - bit_reader_at(&reader))) != 0)
		return malformed("is not filled up with zeros", err);
	*rest = span_slice(*rest, bytes, rest->len);
	return 0;
}

/* The place where each class begins; the last class comes first. */
static void first_places(const struct ulp_table *table, uint32_t places[ULP_CLASSES_MAX])
{
	uint32_t place = 0;
	for (unsigned class = table->classes; class -- > 0; place += table->counts[class])
		places[class] = place;
}
