/* PUT /v1/runs/{bucket}/{run}/settings: changes the settings that the body names
 * (wire/run_settings_message.h). */
#ifndef API_STEPS_RUN_SETTINGS_H
#define API_STEPS_RUN_SETTINGS_H

#include "api/exchange/exchange.h"

enum next run_settings_begin(struct exchange *exchange);
enum next run_settings_finish(struct exchange *exchange);
enum next run_settings_resume(struct exchange *exchange);

#endif
