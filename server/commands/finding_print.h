/* Writes findings of fsck as text and as JSON. One thread. */
#ifndef SERVER_COMMANDS_FINDING_PRINT_H
#define SERVER_COMMANDS_FINDING_PRINT_H

#include "base/format/json_node.h"
#include "storage/fsck/fsck.h"

/* On stdout, in several lines. `with_remedy` also says what a repair would do about it. */
void finding_print_text(const struct finding *finding, bool with_remedy);
/* Adds an object to the open array of `json`. */
void finding_print_json(const struct finding *finding, struct json_writer *json);
/* What was looked at, in two lines and as an object. */
void fsck_report_print_text(const struct fsck_report *report);
void fsck_report_print_json(const struct fsck_report *report, struct json_writer *json);

#endif
