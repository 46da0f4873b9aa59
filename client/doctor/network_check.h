/* The way to the server: proxy, name, connection, TLS and its certificate, and the two clocks. */
#ifndef CLIENT_DOCTOR_NETWORK_CHECK_H
#define CLIENT_DOCTOR_NETWORK_CHECK_H

#include "client/doctor/checkup.h"
#include "client/remote/remote.h"

/* Whether the server answers and is trusted, so that requests with the token may go there. */
bool network_check(struct checkup *checkup, const struct remote_options *remote);

#endif
