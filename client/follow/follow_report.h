/* What a follower says of itself: to who started it (lines on stdout, docs/COMMANDS.md, "JSON
 * events") and to the server (its lease). */
#ifndef CLIENT_FOLLOW_FOLLOW_REPORT_H
#define CLIENT_FOLLOW_FOLLOW_REPORT_H

#include "client/follow/follow_folder.h"
#include "client/follow/lease.h"
#include "client/transfer/catch_up.h"
#include "client/transfer/session.h"

struct follow_report { /* all borrowed */
	struct session *session;
	const struct run_name *run;
	const struct follow_folder *folder;
	struct lease *lease; /* NULL: the server is told nothing */
};

/* To the server: the state, with what is held. */
void follow_report_state(struct follow_report *report, enum replica_state state);
void follow_report_wanted(struct follow_report *report, enum replica_state state, uint64_t wanted);
void follow_report_error(struct follow_report *report, const struct error *failure);

/* On stdout: a step was swapped in; --once or --step found nothing to fetch; something went wrong
 * and following goes on (`event` says what). */
void follow_report_step(
	struct follow_report *report, const struct catch_up_result *fetched, int64_t created_ms);
void follow_report_held(struct follow_report *report);
void follow_report_failure(
	struct follow_report *report, const char *event, const struct error *failure);

#endif
