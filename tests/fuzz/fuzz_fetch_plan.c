/* Any bytes as what a server says to the command line: how to put a file together (the first byte
 * is even), or where chunks lie (odd). */
#include "client/local/chunk_table.h"
#include "client/remote/fetch_plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_plan(const struct fetch_plan *plan)
{
	for (size_t i = 0; i < plan->term_count; i++)
		ASSERT(plan->terms[i].first < plan->terms[i].end);
	for (size_t i = 0; i < plan->fetch_count; i++)
		ASSERT(plan->fetches[i].first < plan->fetches[i].end &&
			plan->fetches[i].from <= plan->fetches[i].to &&
			plan->fetches[i].target[0] == '/');
}

static void read_plan(struct span text)
{
	struct fetch_plan plan;
	struct error err = {0};
	if (fetch_plan_parse(text, &plan, &err) != 0) {
		ASSERT(err.kind == ERROR_UPSTREAM);
		return;
	}
	check_plan(&plan);
	fetch_plan_release(&plan);
}

/* Whatever was taken in can be looked at. */
static void read_answer(struct span bytes)
{
	const struct chunk_id id = {{1}};
	struct chunk_table *const table = chunk_table_new();
	struct error err = {0};
	if (chunk_table_add(table, bytes, &err) != 0)
		ASSERT(err.kind == ERROR_INVALID);
	struct table_place place = {.xorb = CHUNK_TABLE_NOWHERE};
	struct table_place first;
	uint32_t size;
	chunk_table_find(table, &id, place, &place);
	for (place = (struct table_place){0}; chunk_table_chunk(table, place, &size, &first);
		place.index++)
		ASSERT(first.xorb <= place.xorb);
	chunk_table_free(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	const struct span rest = span_of(data + 1, size - 1);
	if (data[0] % 2 == 0)
		read_plan(rest);
	else
		read_answer(rest);
	return 0;
}
