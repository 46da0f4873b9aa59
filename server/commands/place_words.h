/* Whether the place of a backup can be what the caller named. Each fails with invalid. */
#ifndef SERVER_COMMANDS_PLACE_WORDS_H
#define SERVER_COMMANDS_PLACE_WORDS_H

#include "base/error.h"

/* Both check too what backup_place_check checks.
 *
 * To back up a data folder: the place is not in it. */
int place_words_check_to(const char *place, const char *data, struct error *err);
/* To restore one: neither is in the other. */
int place_words_check_from(const char *place, const char *data, struct error *err);

#endif
