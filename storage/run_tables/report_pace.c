#include "storage/run_tables/report_pace.h"

#include "base/error.h"
#include "storage/run_tables/path_hold.h"

enum { OCTAVE = 4 };

_Static_assert(REPORT_MOST_S * 1000 / 3 * 4 < PATH_HOLD_MS,
	"workers, also older ones, report before retention trusts the leases of another life");

static uint64_t seconds_for(size_t replicas);
static uint64_t round_up(uint64_t count);

struct report_pace report_pace_of(size_t replicas, uint64_t lease_s)
{
	struct report_pace pace = {.report_s = lease_s / REPORTS_OF_LEASE};
	const uint64_t needed = seconds_for(replicas);
	ASSERT(lease_s >= REPORTS_OF_LEASE);
	if (pace.report_s < needed)
		pace.report_s = needed;
	if (pace.report_s > REPORT_MOST_S)
		pace.report_s = REPORT_MOST_S;
	pace.lease_s = REPORTS_OF_LEASE * pace.report_s;
	if (pace.lease_s < lease_s)
		pace.lease_s = lease_s;
	if (replicas > PASSING_FREE)
		pace.passing_s = needed < REPORT_MOST_S ? needed : REPORT_MOST_S;
	return pace;
}

/* The time that so many replicas share the requests of. */
static uint64_t seconds_for(size_t replicas)
{
	return (round_up(replicas) + REPORTS_PER_S - 1) / REPORTS_PER_S;
}

/* To OCTAVE, 5, 6, 7 or 8 times a power of two. */
static uint64_t round_up(uint64_t count)
{
	uint64_t unit = 1;
	while (count > 2 * OCTAVE * unit)
		unit *= 2;
	return (count + unit - 1) / unit * unit;
}
