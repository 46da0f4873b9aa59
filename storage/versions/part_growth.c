#include "storage/versions/part_growth.h"

#include "storage/versions/part_internal.h"

static const char SQL_GROWTH_SET[] = "INSERT INTO part_sets (row_count) VALUES (?1)";
static const char SQL_GROWTH_PART[] =
	"INSERT INTO parts (part_set, number, size, md5, digest, file_hash, sum) VALUES (?1, ?2, ?3, x'', x'', x'', ?4)";

static struct part_row row_of(const struct part_growth *growth);

int part_growth_begin(struct db *db, size_t segments, struct part_growth *out, struct error *err)
{
	const int64_t rows = (int64_t)segments + 1; /* and the part */
	int64_t set = 0;
	ASSERT(segments > 0);
	if (db_insert(db, SQL_GROWTH_SET, &set, err, db_i64(rows)) != 0)
		return -1;
	*out = (struct part_growth){.set = set};
	return 0;
}

int part_growth_add(struct db *db, struct part_growth *growth, const struct segment *segments,
	size_t count, struct error *err)
{
	struct part_row row = row_of(growth);
	ASSERT(growth->set > 0);
	if (part_grow(db, growth->set, segments, count, &row, err) != 0)
		return -1;
	growth->size = row.size;
	growth->sum = row.sum;
	return 0;
}

int part_growth_end(
	struct db *db, const struct part_growth *growth, uint64_t *out_contents, struct error *err)
{
	const struct span none = {NULL, 0};
	const struct part_row row = row_of(growth);
	*out_contents = part_row_add_to(0, &row, none, none, none);
	return db_run(db, SQL_GROWTH_PART, err, db_i64(growth->set), db_i64(row.number),
		db_i64((int64_t)row.size), db_i64((int64_t)row.sum));
}

static struct part_row row_of(const struct part_growth *growth)
{
	return (struct part_row){.number = 1, .size = growth->size, .sum = growth->sum};
}
