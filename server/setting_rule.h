/* What the texts and list items among the settings must be: judged where each is read, so that a
 * mistake is told with its place. Any thread. */
#ifndef SERVER_SETTING_RULE_H
#define SERVER_SETTING_RULE_H

#include "base/error.h"

/* 0 when the setting `name` may have this value, which is empty for "not set"; else invalid, with
 * what would be right. */
int setting_rule_check(const char *name, const char *value, struct error *err);

#endif
