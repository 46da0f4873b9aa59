/* PUT /v1/runs/{bucket}/{run}/settings: {"keep_steps":N}, the number of steps that retention keeps; 0 keeps all. */
#ifndef API_STEPS_RUN_SETTINGS_H
#define API_STEPS_RUN_SETTINGS_H

#include "api/exchange.h"

enum next run_settings_begin(struct exchange *exchange);
enum next run_settings_finish(struct exchange *exchange);
enum next run_settings_resume(struct exchange *exchange);

#endif
