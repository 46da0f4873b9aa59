/* How often the workers of a fleet report, and how long their leases are. Both grow with the number
 * of replicas that have a lease on this server, so that all of them together send under 200
 * requests a second that say nothing new.
 *
 *   counted   = the replicas, rounded up to one of four numbers an octave (..., 8, 10, 12, 14, 16,
 *               20, ...): a growing fleet changes its leases seldom, and each longer lease is
 *               saved once
 *   report_s  = a quarter of the run's lease_s, or counted / 200 rounded up where that is more;
 *               never above REPORT_MOST_S. A worker adds up to a quarter of it by chance, so that
 *               the fleet does not march in step
 *   lease_s   = the run's own, or 4 x report_s where that is more: two reports in a row may be lost
 *   passing_s = 0 up to 64 replicas, else counted / 200 rounded up, at most REPORT_MOST_S: for so
 *               long a worker has been fetching or staging before it says so
 *
 *   replicas   report_s   lease_s   passing_s   repeated, a second   a step each 30 s, a second
 *          1         30       120           0                 0.03                        0.03
 *        100         30       120           1                  3.3                         3.3
 *     10,000         52       208          52                  192                         333
 *    100,000        574      2296         574                  174                       3,333
 *
 * (a run with lease_s 120; up to 132,000 replicas repeat under 200 a second, the 262,144 that there
 * may be 375). What is new is told at once and lies beside that budget: a step costs one request of
 * each worker, when it is ready to serve it, and the next repeated one is due report_s after that.
 * So where steps come more often than report_s, workers send that one request a step and repeat
 * nothing. Fetching and staging are told at most once in passing_s, so they stay within the 200. */
#ifndef STORAGE_RUN_TABLES_REPORT_PACE_H
#define STORAGE_RUN_TABLES_REPORT_PACE_H

#include <stddef.h>
#include <stdint.h>

enum {
	REPORTS_PER_S = 200,
	/* With its quarter, or with the third of older workers, it is below the 15 minutes for
	 * which retention leaves runs alone after a start: a server that lost leases (an older
	 * backup) has heard of each worker by then. So the size of the fleet keeps the steps of a
	 * dead worker for 44 minutes at most. */
	REPORT_MOST_S = 660,
	REPORTS_OF_LEASE = 4,
	PASSING_FREE = 64 /* replicas up to which all that passes is told */
};

struct report_pace {
	uint64_t report_s;
	uint64_t lease_s;
	uint64_t passing_s;
};

/* `replicas` have a lease on this server; `lease_s` is the setting of the run. */
struct report_pace report_pace_of(size_t replicas, uint64_t lease_s);

#endif
