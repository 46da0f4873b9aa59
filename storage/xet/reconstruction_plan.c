/* Merging sorts the terms by xorb and first chunk, the longest first; then a term either lies
 * within the last range, continues it, or begins the next one. A range that is continued by chunks
 * of another pack gets another piece. */
#include "storage/xet/reconstruction_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static int add_term(
	struct reconstruction *plan, const struct reconstruction_term *term, struct error *err);
static int compare_terms(const void *a, const void *b);
static bool continues(const struct reconstruction *plan, const struct reconstruction_term *term);
static void extend(struct reconstruction *plan, const struct reconstruction_term *term);
static bool same_place(const struct reconstruction_place *a, const struct reconstruction_place *b);
static void add_piece(struct reconstruction *plan, const struct reconstruction_piece *piece);

void reconstruction_release(struct reconstruction *plan)
{
	free(plan->terms);
	free(plan->ranges);
	free(plan->pieces);
	*plan = (struct reconstruction){0};
}

int reconstruction_add(struct reconstruction *plan, struct reconstruction_walk *walk,
	const struct reconstruction_term *run, const uint32_t *sizes, struct error *err)
{
	struct reconstruction_term term = *run;
	uint64_t from = 0; /* where the kept chunks begin in the file */
	uint64_t at = walk->at;
	ASSERT(run->first <= run->end);
	ASSERT(plan->ranges == NULL); /* not merged yet */
	term.first = run->end;
	term.end = run->end;
	term.bytes = 0;
	for (uint32_t i = 0; i < run->end - run->first; at += sizes[i++]) {
		if (at + sizes[i] <= walk->start || at >= walk->end)
			continue;
		if (term.bytes == 0) {
			term.first = run->first + i;
			from = at;
		}
		term.bytes += sizes[i];
		term.end = run->first + i + 1;
	}
	walk->at = at;
	if (term.bytes == 0)
		return 0;
	if (!walk->began)
		walk->skip = walk->start > from ? walk->start - from : 0;
	walk->began = true;
	return add_term(plan, &term, err);
}

void reconstruction_merge(struct reconstruction *plan)
{
	ASSERT(plan->ranges == NULL); /* once */
	const struct reconstruction_term **const sorted =
		memory_new_array(plan->term_count + 1, sizeof(*sorted));
	for (size_t i = 0; i < plan->term_count; i++)
		sorted[i] = &plan->terms[i];
	qsort(sorted, plan->term_count, sizeof(*sorted), compare_terms);
	plan->ranges = memory_new_array(plan->term_count + 1, sizeof(*plan->ranges));
	for (size_t i = 0; i < plan->term_count; i++) {
		const struct reconstruction_term *const term = sorted[i];
		if (continues(plan, term)) {
			extend(plan, term);
			continue;
		}
		plan->ranges[plan->range_count++] =
			(struct reconstruction_range){.xorb = term->xorb,
				.first = term->first,
				.end = term->end,
				.piece = plan->piece_count,
				.piece_count = 1};
		add_piece(plan,
			&(struct reconstruction_piece){.place = term->place,
				.first = term->first,
				.end = term->end,
				.length = term->bytes});
	}
	free(sorted);
}

static int add_term(
	struct reconstruction *plan, const struct reconstruction_term *term, struct error *err)
{
	if (plan->term_count == RECONSTRUCTION_TERMS_MAX)
		return error_set(err, ERROR_TOO_LARGE,
			"The range lies in more than %d places: ask for less at a time.",
			RECONSTRUCTION_TERMS_MAX);
	plan->terms = memory_make_room(
		plan->terms, plan->term_count, &plan->term_capacity, sizeof(*plan->terms));
	plan->terms[plan->term_count++] = *term;
	return 0;
}

/* By xorb, then by first chunk, then the longest first. */
static int compare_terms(const void *a, const void *b)
{
	const struct reconstruction_term *const one = *(const struct reconstruction_term *const *)a;
	const struct reconstruction_term *const other =
		*(const struct reconstruction_term *const *)b;
	const int order = memcmp(one->xorb.bytes, other->xorb.bytes, CHUNK_ID_BYTES);
	if (order != 0)
		return order;
	if (one->first != other->first)
		return one->first < other->first ? -1 : 1;
	return one->end == other->end ? 0 : one->end > other->end ? -1 : 1;
}

static bool continues(const struct reconstruction *plan, const struct reconstruction_term *term)
{
	if (plan->range_count == 0)
		return false;
	const struct reconstruction_range *const range = &plan->ranges[plan->range_count - 1];
	return chunk_id_equal(&range->xorb, &term->xorb) && term->first <= range->end;
}

/* Adds to the last range the chunks of the term that it lacks. The term begins at the end of the
 * range or before. */
static void extend(struct reconstruction *plan, const struct reconstruction_term *term)
{
	struct reconstruction_range *const range = &plan->ranges[plan->range_count - 1];
	ASSERT(term->first >= range->first && term->first <= range->end);
	if (term->end <= range->end)
		return;
	struct reconstruction_piece *const last = &plan->pieces[plan->piece_count - 1];
	if (same_place(&last->place, &term->place)) {
		last->end = term->end;
	} else {
		add_piece(plan,
			&(struct reconstruction_piece){
				.place = term->place, .first = range->end, .end = term->end});
		range->piece_count++;
	}
	range->end = term->end;
}

static bool same_place(const struct reconstruction_place *a, const struct reconstruction_place *b)
{
	return a->version == b->version && a->base == b->base &&
		memcmp(&a->pack, &b->pack, sizeof(a->pack)) == 0;
}

static void add_piece(struct reconstruction *plan, const struct reconstruction_piece *piece)
{
	plan->pieces = memory_make_room(
		plan->pieces, plan->piece_count, &plan->piece_capacity, sizeof(*plan->pieces));
	plan->pieces[plan->piece_count++] = *piece;
}
