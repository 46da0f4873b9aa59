/* What the server says of itself, whose the token is, and what that may do. Nothing is changed. */
#ifndef CLIENT_DOCTOR_SERVER_CHECK_H
#define CLIENT_DOCTOR_SERVER_CHECK_H

#include "client/doctor/checkup.h"
#include "client/remote/remote.h"

/* Whether it takes requests, its faults, and its version where it says that. */
void server_check(struct checkup *checkup, struct remote *remote);
/* False when the server does not take the token. */
bool server_check_key(struct checkup *checkup, struct remote *remote, bool has_token);
/* The time of a small request. */
void server_check_speed(struct checkup *checkup, struct remote *remote);

#endif
