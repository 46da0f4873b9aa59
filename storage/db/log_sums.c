/* Tables of a fixed size, made when their first frame comes, so that a reader never meets one that
 * moves. A log with more frames than they hold (16 GiB) is checked as far as they reach. */
#include "storage/db/log_sums.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/digest/xxh3.h"
#include "base/error.h"
#include "base/memory.h"

enum { TABLES = 4096, TABLE_FRAMES = 1024, UNKNOWN = 0 };

struct log_table {
	_Atomic uint64_t sums[TABLE_FRAMES];
};
struct log_sums {
	_Atomic(struct log_table *) tables[TABLES];
};

struct log_sums *log_sums_new(void)
{
	return memory_new(sizeof(struct log_sums));
}

void log_sums_free(struct log_sums *sums)
{
	for (unsigned i = 0; sums != NULL && i < TABLES; i++)
		free(atomic_load(&sums->tables[i]));
	free(sums);
}

/* Points to UNKNOWN for a frame behind all tables and where nothing was noted. */
static const _Atomic uint64_t *find(const struct log_sums *sums, uint64_t frame)
{
	static const _Atomic uint64_t unknown = UNKNOWN;
	uint64_t table = frame / TABLE_FRAMES;
	if (table >= TABLES)
		return &unknown;
	const struct log_table *found = atomic_load(&sums->tables[table]);
	return found == NULL ? &unknown : &found->sums[frame % TABLE_FRAMES];
}

static void put(struct log_sums *sums, uint64_t frame, uint64_t sum)
{
	ASSERT(sums != NULL);
	uint64_t table = frame / TABLE_FRAMES;
	if (table >= TABLES)
		return;
	if (atomic_load(&sums->tables[table]) == NULL)
		atomic_store(&sums->tables[table], memory_new(sizeof(struct log_table)));
	atomic_store(&atomic_load(&sums->tables[table])->sums[frame % TABLE_FRAMES], sum);
}

static uint64_t sum_of(const uint8_t page[PAGE_BYTES])
{
	uint64_t sum = xxh3_64(span_of(page, PAGE_BYTES));
	return sum == UNKNOWN ? 1 : sum;
}

void log_sums_note(struct log_sums *sums, uint64_t frame, const uint8_t page[PAGE_BYTES])
{
	put(sums, frame, sum_of(page));
}

void log_sums_forget(struct log_sums *sums, uint64_t frame)
{
	if (atomic_load(find(sums, frame)) != UNKNOWN)
		put(sums, frame, UNKNOWN);
}

bool log_sums_match(const struct log_sums *sums, uint64_t frame, const uint8_t page[PAGE_BYTES])
{
	uint64_t known = atomic_load(find(sums, frame));
	return known == UNKNOWN || known == sum_of(page);
}
