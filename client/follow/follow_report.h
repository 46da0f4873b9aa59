/* A follower's reports about itself: lines on stdout (docs/COMMANDS.md, "JSON events"), and its
 * lease on the server. */
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
	struct lease *lease; /* NULL: nothing is reported to the server */
	bool has_pause;      /* as lease_facts has it */
	uint64_t pause_ms;
};

/* To the server: the state, the step that is held, and `wanted`, the step that is being worked
 * on. */
void follow_report_state(struct follow_report *report, enum replica_state state);
void follow_report_wanted(struct follow_report *report, enum replica_state state, uint64_t wanted);
void follow_report_error(struct follow_report *report, const struct error *failure);

/* Goes with the reports from now on, until another step is held. */
void follow_report_pause(struct follow_report *report, uint64_t pause_ms);

/* On stdout: a step became current; --once or --step found nothing to fetch; something failed and
 * following continues (`event` names it). The first two need a current generation. */
void follow_report_step(
	struct follow_report *report, const struct catch_up_result *fetched, int64_t created_ms);
void follow_report_held(struct follow_report *report);
void follow_report_failure(
	struct follow_report *report, const char *event, const struct error *failure);

#endif
