/* The rules for settings that are texts or lists of texts. Each value is checked when it is read,
 * so that the message can name its place. Any thread. */
#ifndef SERVER_SETTING_RULE_H
#define SERVER_SETTING_RULE_H

#include "base/error.h"

/* Checks a value of the setting `name`; empty means not set. Fails with invalid and says what is
 * allowed. */
int setting_rule_check(const char *name, const char *value, struct error *err);

#endif
